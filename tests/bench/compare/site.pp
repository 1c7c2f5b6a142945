# The state by puppet apply: its own types where it has them, one exec for
# the rest, of which the check is the state itself.
file { '/etc/modules-load.d/bench.conf':
  source => '/bench/modules',
}
file { '/etc/sysctl.d/90-bench.conf':
  source => '/bench/sysctls.conf',
}
file { '/etc/localtime':
  ensure => link,
  target => '/usr/share/zoneinfo/Etc/UTC',
}
file { '/etc/timezone':
  content => "Etc/UTC\n",
}
service { 'iscsid.socket':
  ensure   => running,
  enable   => true,
  provider => systemd,
}
exec { '/bench/state.sh live': }

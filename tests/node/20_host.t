#!/bin/sh
# The host's own resources on a real systemd and D-Bus: sysctl, modules,
# timezone, iscsid. Modules and iSCSI devices of a lab are made up; the vm
# level has real ones.
. "$(dirname "$0")/../lib/tap.sh"

here=$(cd "$(dirname "$0")" && pwd)
lab=$here/../lab/lab
agent=$(readlink -f "${BUILD:-build}/garboard-agent")
[ "$(id -u)" = 0 ] || skip_all "needs root"
[ -x "$agent" ] || bail "no $agent"

tmp=$(mktemp -d)
export GARBOARD_LAB="$tmp/lab"
at_exit 'rm -rf --one-file-system "$tmp"'
at_exit '"$lab" down'
mkdir "$tmp/x"
"$lab" up 1 --tie $$ --bind "$tmp/x:/x" \
	--bind "$agent:/usr/sbin/garboard-agent:ro" \
	--bind "${agent}d:/usr/lib/garboard/garboard-agentd:ro" >"$tmp/up" 2>&1 ||
	bail "no lab: $(cat "$tmp/up")"

on() { "$lab" exec server-1 "$@"; }
spec() { # the baseline, indented by two, on stdin
	{ echo "apiVersion: garboard/v1"; echo "baseline:"; cat; } \
		>"$tmp/x/spec.yaml"
}
# Prints the report; what is still blocked is not the matter of every test.
converge() { on garboard-agent converge --spec /x/spec.yaml "$@" 2>&1; }
line() { # REPORT KEY
	printf '%s\n' "$1" | grep -F -e "$2" | head -n 1
}

# ---- timezone ----

spec <<'X'
  timezone: Asia/Tokyo
X
on sh -c 'cat >/etc/systemd/system/cron.service; echo UTC >/etc/timezone
	systemctl daemon-reload; systemctl start cron' <<'X'
[Service]
ExecStart=/bin/sleep infinity
X
life() { on systemctl show -p InvocationID --value cron; }
before=$(life)
clock=$(($(on date +%s) - $(date +%s)))
out=$(converge --check --only timezone)
like "$out" '^changed +timezone /etc/localtime: .*-> Asia/Tokyo' \
	"a12: a dry run tells the old zone and the new"
unlike "$(on readlink /etc/localtime)" Tokyo "and changes nothing"
ok "a zone is set through timedated" converge --only timezone
like "$(on readlink /etc/localtime)" '^\.\./usr/share/zoneinfo/Asia/Tokyo$' \
	"/etc/localtime names it"
is "$(on cat /etc/timezone)" Asia/Tokyo "/etc/timezone too, as it exists"
is "$(on date +%Z)" JST "and clocks show it"
drift=$(($(on date +%s) - $(date +%s) - clock))
ok "a03: the clock was not stepped" [ "${drift#-}" -le 2 ]
renewed() { [ "$(life)" != "$before" ]; }
ok "a03: cron was restarted, since it ran" wait_until 10 renewed
before=$(life)
like "$(converge --only timezone)" ' 0 changed' "a03: a second run changes nothing"
is "$(life)" "$before" "and leaves cron alone"
on systemctl stop cron
if [ -n "${GARBOARD_LONG:-}" ]; then
	spec <<'X'
  timezone: Europe/Riga
X
	on sh -c 'd=/run/systemd/system/systemd-timedated.service.d; mkdir -p $d
		printf "[Service]\nExecStart=\nExecStart=/bin/sleep infinity\n" >$d/x.conf
		systemctl daemon-reload; systemctl stop systemd-timedated'
	ok "a timedated that does not answer is waited for, not for ever" \
		converge --only timezone
	like "$(on readlink /etc/localtime)" 'Europe/Riga$' "and done without"
	on systemctl stop systemd-timedated.service
else
	skip "a timedated that does not answer takes 20 s (GARBOARD_LONG)" 2
fi
on systemctl mask systemd-timedated.service 2>/dev/null
spec <<'X'
  timezone: Europe/Oslo
X
ok "without timedated the agent does it itself" converge --only timezone
like "$(on readlink /etc/localtime)" '^\.\./usr/share/zoneinfo/Europe/Oslo$' \
	"with the same link"
is "$(on systemctl is-active cron)" inactive "a03: a stopped cron stays stopped"
on ln -sfn /usr/share/zoneinfo/No/Where /etc/localtime
like "$(converge --only timezone)" 'No/Where \(dangling\) -> Europe/Oslo' \
	"tz01: a dangling link is drift"

# ---- sysctl ----

spec <<'X'
  sysctl:
    net.ipv4.ip_default_ttl: 65
    net.ipv4.conf.all.rp_filter: 2
X
converge --only sysctl >"$tmp/out"
is "$(on cat /proc/sys/net/ipv4/ip_default_ttl)" 65 "a09: a value is set"
ok "and persisted" on grep -q '^net/ipv4/ip_default_ttl = 65$' \
	/etc/sysctl.d/90-garboard.conf
on sh -c 'echo 64 >/proc/sys/net/ipv4/ip_default_ttl'
out=$(converge --only sysctl)
like "$out" '^changed +sysctl net.ipv4.ip_default_ttl: 64 -> 65$' \
	"sy01: a live value that drifted is found, the file being right"
like "$out" ' 1 changed' "and is all that is changed"
on rm /etc/sysctl.d/90-garboard.conf
like "$(line "$(converge --only sysctl)" 'ip_default_ttl (persisted)')" \
	'^changed .*: \(nothing\) -> 65' "sy01: the file is, the value being right"
on sh -c 'printf "# x\nnet.ipv4.conf.all.rp_filter=1\n" >/etc/sysctl.d/99-zz.conf'
like "$(converge --only sysctl)" '99-zz.conf:2 sets 1 after our file' \
	"sy03: the file and line that win at boot are named"
on rm /etc/sysctl.d/99-zz.conf
ok "systemd-sysctl reads what was written" on sh -c \
	'echo 64 >/proc/sys/net/ipv4/ip_default_ttl
	/lib/systemd/systemd-sysctl --prefix=/net/ipv4/ip_default_ttl
	grep -q 65 /proc/sys/net/ipv4/ip_default_ttl'

spec <<'X'
  sysctl:
    net.ipv4.ip_default_ttl: 70
    net.ipv4.conf.lo.accept_local: 1
    net.ipv4.no_such_key: 1
    net.ipv4.conf.lo.log_martians: 1
    net.ipv4.conf.lo.send_redirects: 0
    net.ipv4.tcp_available_congestion_control: none
    net.ipv4.conf.lo.arp_ignore: 1
    net.ipv4.tcp_fin_timeout: wrong
    net.ipv4.conf.lo.arp_announce: 2
    net.ipv4.conf.lo.forwarding: 1
X
out=$(converge --only sysctl)
like "$(line "$out" 'no_such_key: ')" '^blocked .*ENOENT' \
	"sy05: an unknown key is blocked with its errno"
like "$(line "$out" 'congestion_control: ')" '^blocked .*read-only' \
	"sy05: a read-only key is told apart"
like "$(line "$out" 'tcp_fin_timeout: ')" '^blocked .*Invalid argument' \
	"sy05: a value the kernel refuses, too"
is "$(on sh -c 'cd /proc/sys/net/ipv4; cat ip_default_ttl conf/lo/accept_local \
	conf/lo/log_martians conf/lo/send_redirects conf/lo/arp_ignore \
	conf/lo/arp_announce conf/lo/forwarding | xargs')" \
	"70 1 1 0 1 2 1" "sy05: the other seven are applied"
not_ok "a refused value is not kept for the next boot" \
	on grep -q fin_timeout /etc/sysctl.d/90-garboard.conf

spec <<'X'
  sysctl:
    net.ipv4.conf.lo.arp_ignore: 1
X
converge --only sysctl >"$tmp/out"
is "$(on cat /proc/sys/net/ipv4/ip_default_ttl)" 64 \
	"sy06: a key that left the spec has the value of before us"
not_ok "sy06: and no line of ours" \
	on grep -q ip_default_ttl /etc/sysctl.d/90-garboard.conf
like "$(converge --only sysctl)" ' 0 changed' "sy06: once"

# ---- wildcards: what systemd-sysctl makes of our file is what we made ----

spec <<'X'
  sysctl:
    net.ipv4.conf.*.rp_filter: 2
    net.ipv4.conf.all.rp_filter: {exclude: true}
    net.ipv4.conf.v0/100.rp_filter: 1
X
rp() { on sh -c 'cd /proc/sys/net/ipv4/conf; cat all/rp_filter lo/rp_filter \
	eth0/rp_filter v0.100/rp_filter v1/rp_filter | xargs'; }
reset() { on sh -c 'for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 >$f; done'; }
converge --only sysctl >"$tmp/out"
like "$(cat "$tmp/out")" '^pending .*v0/100.*when the link comes' \
	"sy03: a key of a link that is not there waits for it"
on ip link add v0.100 type veth peer name v1
reset
converge --only sysctl >"$tmp/out"
is "$(rp)" "0 2 2 1 2" \
	"sy03: a wildcard is for every link, but for what is named or excluded"
like "$(converge --only sysctl)" ' 0 changed' "sy03: a second run changes nothing"
reset
on /lib/systemd/systemd-sysctl --prefix=/net/ipv4/conf
is "$(rp)" "0 2 2 1 2" "sy03: the next boot does the same"
on sh -c 'echo "net.ipv4.conf.e*.rp_filter = 1" >/etc/sysctl.d/99-zz.conf'
like "$(converge --only sysctl)" '99-zz.conf:1 sets net/ipv4/conf/eth0/rp_filter to 1' \
	"sy03: another wildcard that wins for one link is named"
on /lib/systemd/systemd-sysctl --prefix=/net/ipv4/conf
is "$(rp)" "0 2 1 1 2" "sy03: as it does"
on sh -c 'rm /etc/sysctl.d/99-zz.conf; ip link del v0.100'
spec <<'X'
  sysctl: {net.ipv4.conf.lo.arp_ignore: 1}
X
converge --only sysctl >"$tmp/out"
is "$(on cat /proc/sys/net/ipv4/conf/lo/rp_filter)" 0 \
	"sy06: without the wildcard the value of before us is back"

# ---- keys that the agent may not set: a unit of our own does ----

"$lab" cp server-1 "$here/../../units/garboard-sysctl@.service" \
	/etc/systemd/system/garboard-sysctl@.service
on systemctl daemon-reload
ip4=/proc/sys/net/ipv4
beyond() { # as if these files of net/ipv4 were not the agent's to write
	on unshare -m sh -c 'cd /proc/sys/net/ipv4
		for f in ip_default_ttl conf/lo/arp_notify; do
			mount --bind $f $f && mount -o remount,bind,ro $f || exit 9
		done
		exec garboard-agent converge --spec /x/spec.yaml --only sysctl' 2>&1
}
spec <<'X'
  sysctl:
    net.ipv4.conf.lo.arp_notify: 1
X
on sh -c 'echo net.ipv4.conf.lo.drop_gratuitous_arp=1 >/etc/sysctl.d/10-theirs.conf'
out=$(beyond)
like "$out" '^changed +sysctl net.ipv4.conf.lo.arp_notify: 0 -> 1$' \
	"sy05: a key beyond the agent is set by a unit of its own" || diag "$out"
is "$(on cat $ip4/conf/lo/arp_notify)" 1 "sy05: it is live"
is "$(on cat $ip4/conf/lo/drop_gratuitous_arp)" 0 \
	"sy05: and nobody else's file was applied again"
on sh -c "echo 0 >$ip4/conf/lo/arp_notify
	echo net.ipv4.conf.lo.arp_notify=0 >/etc/sysctl.d/99-zz.conf"
like "$(line "$(beyond)" 'arp_notify: ')" '^blocked .*another file of sysctl.d wins' \
	"sy05: a later file that wins is told"
on rm /etc/sysctl.d/99-zz.conf /etc/sysctl.d/10-theirs.conf
spec <<'X'
  sysctl:
    net.ipv4.ip_default_ttl: 999
    net.ipv4.conf.lo.arp_notify: 1
X
out=$(beyond)
like "$(line "$out" 'ip_default_ttl: ')" '^blocked .*refuses this value, from garb' \
	"sy05: a value that the kernel refuses to the unit, too" || diag "$out"
not_ok "sy05: is not kept for the next boot" \
	on grep -q ip_default_ttl /etc/sysctl.d/90-garboard.conf
is "$(on cat $ip4/conf/lo/arp_notify)" 1 "sy05: the other is set"
on sh -c "echo 0 >$ip4/conf/lo/arp_notify
	mv /etc/systemd/system/garboard-sysctl@.service /root/
	systemctl daemon-reload"
like "$(line "$(beyond)" 'arp_notify: ')" '^blocked .*reinstall garboard-agent' \
	"sy05: without the unit the remedy is told"
on sh -c 'mv /root/garboard-sysctl@.service /etc/systemd/system/
	systemctl daemon-reload; mv /run/dbus/system_bus_socket /run/dbus/away'
like "$(line "$(beyond)" 'arp_notify: ')" '^pending .*D-Bus is not there yet' \
	"sy05: and without D-Bus, what is waited for"
on mv /run/dbus/away /run/dbus/system_bus_socket
spec <<'X'
  sysctl: {net.ipv4.conf.lo.arp_ignore: 1}
X
converge --only sysctl >"$tmp/out"

# ---- modules ----

rel=$(uname -r)
on sh -c "mkdir -p /lib/modules/$rel /etc/modprobe.d && cd /lib/modules/$rel &&
	echo kernel/garboard_lab.ko: >modules.dep &&
	echo kernel/garboard_denied.ko: >>modules.dep &&
	echo kernel/garboard_in.ko >modules.builtin &&
	rm -rf /etc/modules-load.d &&
	echo 'blacklist garboard-denied' >/etc/modprobe.d/x.conf"
spec <<'X'
  modules: [garboard_lab, garboard_denied, garboard_in, garboard_none]
X
out=$(converge --only modules)
like "$out" '^ok +modules garboard_in$' \
	"a built-in module counts as loaded"
like "$out" '^blocked .*garboard_none: .*no such module|cannot load modules' \
	"mo04: a module that the kernel does not have is named"
like "$out" '^blocked .*garboard_denied: .*(x.conf:1|cannot load modules)' \
	"mo04: so is a deny-listed one, with file and line"
like "$out" '^blocked .*garboard_lab: ' \
	"a load that does not help is not taken for one that did"
ok "mo02: the list is written, with its directory" \
	on grep -q '^garboard_lab$' /etc/modules-load.d/garboard.conf
like "$(converge --only modules)" ' 0 changed' "a second run changes nothing"

# ---- iscsid ----

spec <<'X'
  storage: longhorn
X
like "$(converge --only iscsid)" 'apt-get install open-iscsi' \
	"without the package iscsid is blocked, with the remedy"
on sh -c 'mkdir -p /etc/iscsi
	printf "#!/bin/sh\nexec sleep infinity\n" >/usr/sbin/iscsid
	chmod 755 /usr/sbin/iscsid
	cat >/etc/systemd/system/iscsid.service
	printf "[Socket]\nListenStream=@ISCSIADM_ABSTRACT_NAMESPACE\n[Install]\nWantedBy=sockets.target\n" \
		>/etc/systemd/system/iscsid.socket
	printf "[Service]\nExecStart=/bin/sleep infinity\n" \
		>/etc/systemd/system/multipathd.service
	systemctl daemon-reload' <<'X'
[Service]
ExecStartPre=/bin/grep -q ^InitiatorName=iqn /etc/iscsi/initiatorname.iscsi
ExecStart=/usr/sbin/iscsid
X
# A lab's /sys is the host's: the module is made up, on top of it.
on sh -c 'mount -t tmpfs none /sys/module && mkdir /sys/module/iscsi_tcp' ||
	bail "no place for a made-up module"
out=$(converge --only iscsid)
like "$out" '^changed +iscsid initiatorname' "is01: a node without a name gets one"
is "$(on stat -c %a /etc/iscsi/initiatorname.iscsi)" 600 "for root's eyes"
name=$(on grep ^InitiatorName= /etc/iscsi/initiatorname.iscsi)
like "$name" '^InitiatorName=iqn\.1993-08\.org\.debian:01:[0-9a-f]{16}$' \
	"of random digits"
converge --only iscsid >"$tmp/out"
is "$(on systemctl is-active iscsid.socket)" active "the socket listens"
is "$(on systemctl is-enabled iscsid.socket)" enabled "a10: at each boot"
like "$(converge --only iscsid)" ' 0 changed' "a second run changes nothing"
is "$(on grep ^InitiatorName= /etc/iscsi/initiatorname.iscsi)" "$name" \
	"is01: the name stays"
on sh -c 'systemctl stop iscsid.socket
	mv /etc/iscsi/initiatorname.iscsi /etc/iscsi/away
	systemctl reset-failed
	for i in 1 2 3 4 5 6 7; do systemctl start iscsid.service; done' \
	>/dev/null 2>&1
is "$(on systemctl is-failed iscsid.service)" failed \
	"a daemon that was started too often without a name has failed"
on mv /etc/iscsi/away /etc/iscsi/initiatorname.iscsi
ok "it is reset, and the socket started" converge --only iscsid
is "$(on systemctl is-active iscsid.socket)" active "and listening"
on systemctl stop iscsid.socket
on systemctl start iscsid.service
like "$(converge --only iscsid)" ' 0 changed' \
	"a running service is as good as the socket"
on systemctl start multipathd.service
like "$(line "$(converge --only iscsid)" multipathd)" '^blocked .*Longhorn' \
	"is04: an active multipathd is reported"
is "$(on systemctl is-active multipathd.service)" active "is04: and left alone"

done_testing

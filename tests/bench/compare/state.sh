#!/bin/sh
# state.sh all|live: the state of docs/performance.md by ordinary tools, asking
# before changing. `live` leaves out what the other tools have resources of
# their own for: files, the time zone, the service. Prints what it changed.
set -eu
cd /bench
did() { echo "changed $*"; }
put() { # FILE < content
	cat >/run/bench.new
	cmp -s /run/bench.new "$1" || { cp /run/bench.new "$1"; did "$1"; }
}

if [ "$1" = all ]; then
	put /etc/modules-load.d/bench.conf <modules
	sed 's/ / = /' sysctls | put /etc/sysctl.d/90-bench.conf
	[ "$(readlink /etc/localtime)" = /usr/share/zoneinfo/Etc/UTC ] ||
		{ ln -sfn /usr/share/zoneinfo/Etc/UTC /etc/localtime; did zone; }
	echo Etc/UTC | put /etc/timezone
	[ -s /etc/iscsi/initiatorname.iscsi ]
	systemctl -q is-enabled iscsid.socket ||
		{ systemctl -q enable iscsid.socket; did enabled; }
	systemctl -q is-active iscsid.socket ||
		{ systemctl start iscsid.socket; did started; }
fi
builtin=/lib/modules/$(uname -r)/modules.builtin
while read -r m; do
	[ -d "/sys/module/$m" ] || grep -q "/$m\.ko" "$builtin" ||
		{ modprobe "$m"; did "$m"; }
done <modules
while read -r key value; do
	[ "$(sysctl -n "$key")" = "$value" ] ||
		{ sysctl -qw "$key=$value"; did "$key"; }
done <sysctls
rules=$(ip rule)
for r in "from 198.51.100.64/28" "from 10.64.0.2"; do
	case $rules in
	*"$r lookup 51820"*) ;;
	*) ip rule add $r lookup 51820 priority 18201; did "$r" ;;
	esac
done
routes=$(ip route show table 51820 2>/dev/null || :)
case $routes in *"default dev wg0"*) ;;
*) ip route add default dev wg0 table 51820; did default ;; esac
case $routes in *"unreachable default"*) ;;
*) ip route add unreachable default metric 4278198272 table 51820; did unreachable ;; esac
nft -s list table inet bench 2>/dev/null | cmp -s - killswitch.seen || {
	nft -f killswitch.nft
	nft -s list table inet bench >killswitch.seen
	did killswitch
}

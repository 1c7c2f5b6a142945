#!/bin/sh
# The packages on a machine with a real systemd: install, upgrade, remove and
# purge; none of them opens an armed kill-switch. `make deb` made them.
. "$(dirname "$0")/../lib/tap.sh"

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
lab=$top/tests/lab/lab
[ "$(id -u)" = 0 ] || skip_all "needs root"
debs=$(cd "$top" && cd "${BUILD:-build}/deb" 2>/dev/null && pwd) ||
	bail "no packages: make deb"
version=$(sed -n 's/^VERSION := //p' "$top/Makefile")

is "$(dpkg-parsechangelog -l "$top/debian/changelog" -S Version)" "$version" \
	"debian/changelog and the Makefile name one version"
tmp=$(mktemp -d)
export GARBOARD_LAB="$tmp/lab"
at_exit 'rm -rf --one-file-system "$tmp"'
at_exit '"$lab" down'
mkdir "$tmp/x"
cp "$debs/garboard_${version}_"*.deb "$tmp/x/garboard.deb" &&
	cp "$debs/garboard-agent_${version}_"*.deb "$tmp/x/agent.deb" ||
	bail "no packages: make deb"
# The next version differs in its number only.
dpkg-deb -R "$tmp/x/agent.deb" "$tmp/next"
sed -i "s/^Version:.*/Version: $version+next/" "$tmp/next/DEBIAN/control"
dpkg-deb --root-owner-group -Znone -b "$tmp/next" "$tmp/x/next.deb" >"$tmp/log" ||
	bail "$(cat "$tmp/log")"
cat >"$tmp/x/node.yaml" <<'Y'
apiVersion: garboard/v1
baseline:
  sysctl: {net.ipv4.ip_default_ttl: 65}
egress:
  classes:
    vpn: {sources: [198.51.100.64/28], tunnel: wg0, dns: [10.64.0.1]}
  tunnels:
    wg0:
      kind: wireguard
      endpoints: ["203.0.113.7:51820/udp"]
      table: 51820
      rulePriority: 18200
  uplinks: [eth0]
Y
"$lab" up 1 --tie $$ --bind "$tmp/x:/x" >"$tmp/up" 2>&1 ||
	bail "no lab: $(cat "$tmp/up")"
on() { "$lab" exec server-1 "$@"; }
prop() { on systemctl show -p "$2" --value "$1"; }
status() { on dpkg-query -Wf '${db:Status-Status}' "$1" 2>/dev/null; }
pkg() { # what dpkg and the scripts say
	on env DEBIAN_FRONTEND=noninteractive "$@" 2>&1
}

# ---- install ----

out=$(pkg dpkg -i /x/agent.deb) ||
	bail "does not install: $out"
is "$(status garboard-agent)" installed "the agent's package installs"
is "$(on sh -c 'for u in garboard-agent.service garboard-link.service \
	garboard-lockdown.service \
	garboard-agent-link.socket garboard-agent-status.socket; do
	systemctl is-enabled $u; done | sort | uniq -c | xargs')" "5 enabled" \
	"its units are enabled"
is "$(on systemctl is-active garboard-agent.service garboard-agent-link.socket \
	garboard-agent-status.socket | xargs)" "active active active" \
	"the agent runs, behind its sockets"
is "$(prop garboard-link ConditionResult)" no "the link waits for a bundle"
is "$(on sh -c 'stat -c %a:%U /var/lib/garboard /etc/garboard/bundle; id -un garboard' |
	xargs)" "700:root 700:root garboard" "directories and the user are there"
is "$(on sh -c 'for p in /usr/sbin/garboard-agent /usr/sbin/garboard-lockdown \
	/usr/lib/garboard/garboard-link; do
	ldd $p; done | grep -c "not found"')" 0 "every library is a dependency"
like "$(on garboard-agent version)" "$version" "it says its version"
like "$(on ip -details route show table all proto garboard 2>&1; echo $?)" '^0$' \
	"ip(8) knows the name of our routes"
out=$(pkg dpkg -i /x/garboard.deb)
is "$(status garboard)" installed "the coordinator's package installs beside it" ||
	diag "$out"
like "$(on garboard version)" "$version" "and runs"

# ---- an armed node ----

on garboard-agent converge --spec /x/node.yaml >"$tmp/converge" 2>&1
# The rules that drop, without their counters and without the owner, which is
# the agent that runs; and the way to the tunnel.
closed() {
	on sh -c 'nft -s list table inet garboard
		nft -s list table netdev garboard_egress_eth0
		ip rule; ip route show table 51820' 2>&1 |
		sed 's/ *# progname .*//; /^\tflags/d'
}
before=$(closed)
stands() { # WHAT
	closed >"$tmp/now"
	ok "$1" diff "$tmp/before" "$tmp/now"
}
closed >"$tmp/before"
like "$before" 'hook egress device "?eth0' "the class is armed at the uplink" ||
	diag "$(cat "$tmp/converge")"
like "$before" '198\.51\.100\.64/28' "for its sources"

# What nft sees from now on: an upgrade must not take anything away, even for
# a moment.
on sh -c 'stdbuf -oL nft monitor >/run/seen 2>&1 & echo $! >/run/monitor'

# ---- upgrade ----

pid=$(prop garboard-agent MainPID)
since=$(prop garboard-agent-link.socket ActiveEnterTimestampMonotonic)
out=$(pkg dpkg -i /x/next.deb) || diag "$out"
is "$(on dpkg-query -Wf '${Version}' garboard-agent)" "$version+next" "an upgrade"
now=$(prop garboard-agent MainPID)
ok "restarts the agent" [ "$now" -gt 1 -a "$now" != "$pid" ]
is "$(on systemctl is-active garboard-agent)" active "which is ready at once"
is "$(prop garboard-agent-link.socket ActiveEnterTimestampMonotonic)" "$since" \
	"and leaves its sockets open"
stands "the kill-switch stands as before"
out=$(pkg dpkg -i /x/agent.deb)
is "$(on systemctl is-active garboard-agent)" active "so does a way back" ||
	diag "$out"
stands "and the kill-switch with it"

# ---- remove, purge ----

out=$(pkg dpkg -r garboard-agent)
is "$(status garboard-agent)" config-files "a removal"
like "$out" 'armed: vpn' "says which class stays armed" || diag "$out"
like "$out" 'garboard-agent disarm --local' "and how it is opened"
not_ok "the agent is gone" on systemctl is-active garboard-agent
stands "the kill-switch is not"
ok "nft has watched all the time" on sh -c 'kill $(cat /run/monitor)'
is "$(on sed -n '/^\(add\|#\|$\)/!p' /run/seen)" "" "nor was any of it for a moment"
ok "the state stays" on test -s /var/lib/garboard/ours/killswitch
ok "and what was persisted" on test -s /etc/sysctl.d/90-garboard.conf

out=$(pkg dpkg -P garboard-agent) || diag "$out"
is "$(status garboard-agent)" "" "a purge"
like "$out" 'armed state of vpn stays in /var/lib/garboard/ours/killswitch' \
	"says that the armed state stays" || diag "$out"
is "$(on find /var/lib/garboard /etc/garboard /var/lib/garboard-link -type f 2>/dev/null)" \
	/var/lib/garboard/ours/killswitch "and leaves that alone"
not_ok "what was persisted is gone" on test -e /etc/sysctl.d/90-garboard.conf
stands "the kill-switch still stands"

on nft flush ruleset
out=$(pkg dpkg -i /x/agent.deb)
armed_again() { on nft list table inet garboard | grep -q 198.51.100.64; }
ok "installed again, it is enforced again" wait_until 10 armed_again ||
	diag "$out $(on journalctl -u garboard-agent -o cat -n 20)"
on garboard-agent disarm --local --reason test vpn >/dev/null
open() { ! on nft list tables | grep -q garboard; }
ok "until it is disarmed" wait_until 10 open || diag "$(on nft list ruleset)"
out=$(pkg dpkg -P garboard-agent)
unlike "$out" 'armed' "then a purge has nothing to say"
not_ok "and leaves no state" on test -e /var/lib/garboard
is "$(on systemctl list-unit-files 'garboard*' --no-legend)" "" "nor units"
done_testing

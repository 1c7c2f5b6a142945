#!/bin/sh
# garboard-agent as a unit of a real systemd: what it may, that it keeps a
# node, and that no end of the process opens anything.
. "$(dirname "$0")/../lib/tap.sh"

here=$(cd "$(dirname "$0")" && pwd)
top=$here/../..
lab=$top/tests/lab/lab
build=$(cd "$top" && cd "${BUILD:-build}" && pwd)
[ "$(id -u)" = 0 ] || skip_all "needs root"
[ -x "$build/garboard-agent" ] || skip_all "garboard-agent is not built"

tmp=$(mktemp -d)
export GARBOARD_LAB="$tmp/lab"
at_exit 'rm -rf --one-file-system "$tmp"'
at_exit '"$lab" down'
"$lab" up 1 --tie $$ >"$tmp/up" 2>&1 || bail "no lab: $(cat "$tmp/up")"
on() { "$lab" exec server-1 "$@"; }
wait_for() { # SECONDS CMD...
	_end=$(($(date +%s) + $1)); shift
	until "$@" >/dev/null 2>&1; do
		[ "$(date +%s)" -lt "$_end" ] || return 1
	done
}

on mkdir -p /etc/sysusers.d /etc/tmpfiles.d /usr/sbin /usr/lib/garboard
"$lab" cp server-1 "$build/garboard-agent" /usr/sbin/garboard-agent
"$lab" cp server-1 "$build/garboard-agentd" /usr/lib/garboard/garboard-agentd
on chmod 755 /usr/sbin/garboard-agent /usr/lib/garboard/garboard-agentd
for u in garboard-agent.service garboard-agent-link.socket garboard-agent-status.socket; do
	"$lab" cp server-1 "$top/units/$u" "/etc/systemd/system/$u"
done
"$lab" cp server-1 "$top/units/sysusers.d/garboard.conf" /etc/sysusers.d/garboard.conf
for f in garboard garboard-agent; do
	"$lab" cp server-1 "$top/units/tmpfiles.d/$f.conf" "/etc/tmpfiles.d/$f.conf"
done
on systemd-sysusers
on systemd-tmpfiles --create
on systemctl daemon-reload

# ---- one box, no coordinator ----
cat >"$tmp/box.yaml" <<X
apiVersion: garboard/v1
baseline:
  timezone: Asia/Tokyo
  sysctl:
    net.ipv4.ip_forward: 1
    net.ipv4.conf.all.arp_ignore: 1
  modes: {modules: observe, iscsid: observe}
X
"$lab" cp server-1 "$tmp/box.yaml" /root/box.yaml
conv() { on garboard-agent converge --only timezone,sysctl --spec /root/box.yaml "$@"; }
on sysctl -qw net.ipv4.conf.all.arp_ignore=0
before=$(on sh -c 'readlink /etc/localtime; cat /proc/sys/net/ipv4/conf/all/arp_ignore; ls -l /etc/sysctl.d')
out=$(conv --check)
like "$out" 'changed +timezone .*Asia/Tokyo' "a dry run says what would change (A12)"
like "$out" 'changed +sysctl net.ipv4.conf.all.arp_ignore: 0 -> 1' "with what is and what would be"
is "$(on sh -c 'readlink /etc/localtime; cat /proc/sys/net/ipv4/conf/all/arp_ignore; ls -l /etc/sysctl.d')" \
	"$before" "and changes nothing"
conv --check --exit-code >/dev/null
is $? 3 "pending changes are exit code 3 when asked for"
out=$(conv) || diag "$out"
is "$(on readlink /etc/localtime | sed 's|.*zoneinfo/||')" Asia/Tokyo "converge sets the zone"
is "$(on cat /proc/sys/net/ipv4/conf/all/arp_ignore)" 1 "and the sysctl"
out=$(conv)
like "$out" ', 0 changed,' "a second converge changes nothing"
on garboard-agent converge --spec /nonexistent >/dev/null 2>&1
is $? 2 "no spec is exit code 2"

# ---- the service ----
on garboard-agent health >/dev/null
is $? 2 "an agent that does not run is critical"
ok "it is ready without bundle, link or desired state" \
	on timeout 30 systemctl start garboard-agent ||
	diag "$(on journalctl -u garboard-agent -o cat -n 9)"
pid=$(on systemctl show -p MainPID --value garboard-agent)
is "$(on sed -n 's/^CapBnd:\t//p' "/proc/$pid/status")" 0000000000001000 \
	"its bounding set is CAP_NET_ADMIN alone"
is "$(on sed -n 's/^\(NoNewPrivs\|Seccomp\):\t//p' "/proc/$pid/status" | tr '\n' ' ')" \
	"1 2 " "no new privileges, and a system call filter"
inodes=$(on sh -c "ls -l /proc/$pid/fd" | sed -n 's/.*socket:\[\([0-9]*\)\].*/\1/p')
ok "it has sockets" test -n "$inodes"
unlike "$(on sh -c "cat /proc/$pid/net/tcp /proc/$pid/net/tcp6 /proc/$pid/net/udp /proc/$pid/net/udp6 /proc/$pid/net/raw")" \
	" ($(echo $inodes | tr ' ' '|')) " "none of them an IP socket"
out=$(on garboard-agent health)
is $? 1 "health warns: nothing is desired"
like "$out" '^GARBOARD WARNING - nothing is desired.*\| items=' "in one line with performance data"
like "$(on runuser -u nobody -- garboard-agent status)" 'session +no bundle' \
	"anybody may read the status"
is "$(on stat -c '%a %U %G' /run/garboard/link.sock)" "660 root garboard" \
	"the link's socket is the link's"
is "$(on stat -c '%a' /var/lib/garboard)" 700 "its state is its own"
# Idle: what only its start needed is given back some seconds later.
small() {
	kb=$(on sed -n 's/^Pss: *\([0-9]*\) kB/\1/p' "/proc/$pid/smaps_rollup")
	[ "$kb" -le 3000 ]
}
ok "it is small when idle: at most 3 MB proportional" wait_for 30 small
small
diag "proportional memory: $kb kB"
on systemctl kill -s KILL garboard-agent
ok "it is back after a kill -9" wait_for 20 on sh -c \
	"p=\$(systemctl show -p MainPID --value garboard-agent); [ \$p != 0 ] && [ \$p != $pid ] && garboard-agent status | grep -q 'epoch'"
like "$(on garboard-agent status -o json)" '"starts":2,' "and counts its starts"
on garboard-agent reset-identity --confirm >/dev/null 2>&1
is $? 4 "the identity of a running agent is not reset"
on systemctl stop garboard-agent garboard-agent-link.socket garboard-agent-status.socket
is "$(on systemctl show -p Result --value garboard-agent)" success "it ends cleanly"
old=$(on sha256sum /var/lib/garboard/report.key)
ok "a stopped one's is" on garboard-agent reset-identity --confirm
on systemctl start garboard-agent
unlike "$(on sha256sum /var/lib/garboard/report.key)" "${old%% *}" "the next start makes new keys"

# ---- a class once armed stays closed until it is disarmed by name ----
cat >"$tmp/egress.yaml" <<X
apiVersion: garboard/v1
baseline: {timezone: Etc/UTC}
egress:
  classes: {vpn: {sources: [192.0.2.77], tunnel: wg0}}
  tunnels: {wg0: {kind: wireguard, endpoints: ["198.51.100.7:51820/udp"], table: 51820, rulePriority: 18200}}
  uplinks: auto
X
"$lab" cp server-1 "$tmp/egress.yaml" /root/egress.yaml
closed() { on nft list table inet garboard 2>/dev/null | grep -q 192.0.2.77; }
on garboard-agent converge --only killswitch --spec /root/egress.yaml >/dev/null
ok "converge arms the class" closed
on systemctl kill -s KILL garboard-agent
ok "it stays closed when the agent is killed" closed
on systemctl restart garboard-agent
on nft delete table inet garboard 2>/dev/null
ok "an agent with no desired state keeps it closed all the same" wait_for 20 closed
is "$(on sh -c 'garboard-agent disarm vpn >/dev/null 2>&1; echo $?')" 2 "disarming takes a reason"
is "$(on sh -c 'garboard-agent disarm --local --reason test nope >/dev/null 2>&1; echo $?')" 4 \
	"a class that was never armed is refused"
ok "the console disarms it" on garboard-agent disarm --local --reason "a test" vpn
opened() { ! closed; }
ok "and then it opens" wait_for 20 opened
like "$(on journalctl -o cat -n 50)" 'class vpn: disarm on the console by uid 0: a test' \
	"which the journal tells, with the reason"

# ---- state on a bad disk ----
on systemctl stop garboard-agent
on sh -c 'echo rubbish >/var/lib/garboard/boots'
on systemctl start garboard-agent
like "$(on garboard-agent health)" 'WARNING.*state: .*not a state file' \
	"a broken state file is replaced by its previous copy, and reported"
done_testing

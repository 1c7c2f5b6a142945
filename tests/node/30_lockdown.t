#!/bin/sh
# garboard-lockdown as a unit of a real systemd (KS-01): armed classes are
# closed at each boot, whatever became of the agent or of the file.
. "$(dirname "$0")/../lib/tap.sh"

here=$(cd "$(dirname "$0")" && pwd)
top=$here/../..
lab=$top/tests/lab/lab
build=$(cd "$top" && cd "${BUILD:-build}" && pwd)
[ "$(id -u)" = 0 ] || skip_all "needs root"
[ -x "$build/garboard-lockdown" ] || skip_all "garboard-lockdown is not built"

tmp=$(mktemp -d)
export GARBOARD_LAB="$tmp/lab"
at_exit 'rm -rf --one-file-system "$tmp"'
at_exit '"$lab" down'
"$lab" up 1 --tie $$ >"$tmp/up" 2>&1 || bail "no lab: $(cat "$tmp/up")"
on() { "$lab" exec server-1 "$@"; }
# An agent that cannot run may leave its sockets failed, and systemd then calls
# the machine degraded, now and again: that is no matter here.
boot() {
	"$lab" reboot server-1 >"$tmp/boot" 2>&1 ||
		grep -q 'is degraded' "$tmp/boot" ||
		bail "no boot: $(cat "$tmp/boot")"
}

on mkdir -p /etc/sysusers.d /etc/tmpfiles.d /usr/sbin /usr/lib/garboard
put() { # PROGRAM PATH
	"$lab" cp server-1 "$build/$1" "$2" && on chmod 755 "$2"
}
install_agent() {
	put garboard-agent /usr/sbin/garboard-agent
	put garboard-agentd /usr/lib/garboard/garboard-agentd
}
install_agent
put garboard-lockdown /usr/sbin/garboard-lockdown
for u in garboard-lockdown.service garboard-agent.service \
	garboard-agent-link.socket garboard-agent-status.socket; do
	"$lab" cp server-1 "$top/units/$u" "/etc/systemd/system/$u"
done
"$lab" cp server-1 "$top/units/sysusers.d/garboard.conf" /etc/sysusers.d/garboard.conf
for f in garboard garboard-agent; do
	"$lab" cp server-1 "$top/units/tmpfiles.d/$f.conf" "/etc/tmpfiles.d/$f.conf"
done
on systemd-sysusers
on systemd-tmpfiles --create
on systemctl daemon-reload
on systemctl enable -q garboard-lockdown garboard-agent

cat >"$tmp/egress.yaml" <<X
apiVersion: garboard/v1
baseline: {timezone: Etc/UTC}
egress:
  classes: {vpn: {sources: [192.0.2.77], mark: {value: 0x2000, mask: 0x3f00}, tunnel: wg0}}
  tunnels: {wg0: {kind: wireguard, endpoints: ["198.51.100.7:51820/udp"], table: 51820, rulePriority: 18200}}
  uplinks: [eth0]
X
"$lab" cp server-1 "$tmp/egress.yaml" /root/egress.yaml

state() { on systemctl show -p "$2" --value "$1"; }
closed() { # at both layers, the class by its address
	on nft list table inet garboard 2>/dev/null | grep -q 192.0.2.77 &&
		on nft list table netdev garboard_egress_eth0 2>/dev/null |
		grep -q 'device "eth0"'
}
said() { on journalctl -b -u garboard-lockdown -o cat; }

# ---- ordering ----
out=$(on systemd-analyze verify --man=no /etc/systemd/system/garboard-lockdown.service \
	/etc/systemd/system/garboard-agent.service 2>&1 | grep -iE 'cycle|lockdown')
is "$out" "" "no ordering cycle, and nothing else to say of the unit"
boot
is "$(state garboard-lockdown Result),$(state garboard-lockdown ActiveState)" success,active \
	"a node that was never armed boots with it"
like "$(said)" 'no class was ever armed here' "and is told so"
not_ok "which makes no table" on nft list table inet garboard

# ---- armed ----
on systemctl disable -q garboard-agent
on systemctl stop garboard-agent garboard-agent-link.socket garboard-agent-status.socket
out=$(on garboard-agent converge --only killswitch,routing --spec /root/egress.yaml)
ok "converge arms the class" closed || diag "$out"
is "$(on sh -c 'head -1 /var/lib/garboard/lockdown; stat -c %a /var/lib/garboard/lockdown')" \
	"garboard-lockdown 1
600" "and writes the file of the next boot"
ok "with its twin" on cmp /var/lib/garboard/lockdown /var/lib/garboard/lockdown.copy

boot
is "$(state garboard-agent ActiveState)" inactive "the agent is disabled"
ok "ks01_agent_disabled: the next boot is closed all the same" closed || diag "$(said)"
done_at=$(state garboard-lockdown ExecMainExitTimestampMonotonic)
pre_at=$(state network-pre.target ActiveEnterTimestampMonotonic)
ok "it was closed ($done_at) before network-pre.target ($pre_at)" \
	test "$done_at" -gt 0 -a "$done_at" -le "$pre_at"
on systemctl stop garboard-lockdown
ok "ks02: stopping the unit opens nothing" closed
on systemctl start garboard-lockdown
like "$(said)" 'inet: closed already' "starting it again changes nothing"

on systemctl enable -q garboard-agent
on sh -c 'cp /bin/false /usr/sbin/garboard-agent; cp /bin/false /usr/lib/garboard/garboard-agentd'
boot
ok "ks01_agent_replaced: with false in the agent's place it is closed" closed ||
	diag "$(said)"

# ---- the file ----
on systemctl disable -q garboard-agent
on truncate -s 100 /var/lib/garboard/lockdown
boot
ok "ks01_file_truncated: the twin closes it" closed || diag "$(said)"
like "$(said)" 'lockdown: damaged' "and the damage is named"
on truncate -s 100 /var/lib/garboard/lockdown.copy
boot
ok "ks01_both_truncated: the armed record closes it" closed || diag "$(said)"
on mv /var/lib/garboard/ours/killswitch /root/record
on sh -c 'printf "source 192.0.2.77/32\nsou" >/var/lib/garboard/lockdown'
boot
out=$(said)
like "$out" 'the built-in form closes every mark' "ks01_all_lost: the built-in form is named" ||
	diag "$out"
ok "and closes what can still be read" on sh -c 'nft list table inet garboard | grep -q 192.0.2.77'
ok "and every mark a class may have" on sh -c \
	'[ "$(nft list chain inet garboard output | grep -c "meta mark & 0x00003f00")" = 3 ]'
ok "other traffic passes" on ping -c1 -W5 192.0.2.1 || "$lab" net ip addr show

# ---- back to the agent ----
on mv /root/record /var/lib/garboard/ours/killswitch
install_agent
on systemctl enable -q garboard-agent
boot
ok "the agent comes back" wait_until 20 on sh -c \
	'garboard-agent status | grep -q "killswitch *enforce"' ||
	diag "$(on garboard-agent status)"
ok "keeps it closed by its record" closed
ok "and its log tells of the time before garboard-lockdown" wait_until 20 on sh -c \
	'garboard-agent killswitch-log | grep -q "OPEN .*by boot, before garboard-lockdown"' ||
	diag "$(on garboard-agent killswitch-log; on cat /run/garboard-lockdown/stood)"
ok "and mends the file" wait_until 10 on sh -c \
	'garboard-lockdown --state-dir /var/lib/garboard 2>&1 | grep -q ": 1 class to close"'

# ---- disarmed on purpose ----
on systemctl disable -q garboard-agent
on systemctl stop garboard-agent garboard-agent-link.socket garboard-agent-status.socket
ok "the console disarms with no agent" on garboard-agent disarm --local --reason "a test" vpn
boot
not_ok "and the next boot is open" on sh -c 'nft list table inet garboard | grep 192.0.2.77'
done_testing

#!/bin/sh
# docs/one-box.md as it stands, command by command, on a machine with a real
# systemd. What a lab has not: kernel.*, vm.* and fs.* keys of its own, modules
# and wireguard; they are made up.
. "$(dirname "$0")/../lib/tap.sh"

top=$(cd "$(dirname "$0")/../.." && pwd)
lab=$top/tests/lab/lab
[ "$(id -u)" = 0 ] || skip_all "needs root"
debs=$(cd "$top" && cd "${BUILD:-build}/deb" 2>/dev/null && pwd) ||
	bail "no packages: make deb"

tmp=$(mktemp -d)
export GARBOARD_LAB="$tmp/lab"
at_exit 'rm -rf --one-file-system "$tmp"'
at_exit '"$lab" down'
mkdir "$tmp/x"
cp "$debs"/garboard-agent_*.deb "$top/docs/node.example.yaml" "$tmp/x" ||
	bail "no package: make deb"
# Indented lines are commands; a heredoc among them is one.
sed -n '/^## Five minutes/,/^All keys/s/^    //p' "$top/docs/one-box.md" \
	>"$tmp/all"
awk -v dir="$tmp/x" '
	end == "" { file = sprintf("%s/%02d", dir, ++n) }
	{ print >file }
	end != "" { if ($0 == end) end = ""; next }
	match($0, /<<.[A-Z]+./) { end = substr($0, RSTART + 3, RLENGTH - 4) }
' "$tmp/all"
is "$(ls "$tmp/x" | grep -c '^[0-9]')" 13 "docs/one-box.md has the commands that are run here"

"$lab" up 1 --tie $$ --bind "$tmp/x:/x" >"$tmp/up" 2>&1 ||
	bail "no lab: $(cat "$tmp/up")"
on() { "$lab" exec server-1 "$@"; }
on sh -ec '
	d=/lib/modules/$(uname -r); mkdir -p $d; : >$d/modules.dep
	for m in overlay br_netfilter nf_conntrack vxlan wireguard; do
		echo kernel/$m.ko; done >$d/modules.builtin
	mkdir /keys
	for k in fs/inotify/max_user_instances fs/inotify/max_user_watches \
		vm/overcommit_memory vm/panic_on_oom kernel/panic \
		kernel/panic_on_oops kernel/keys/root_maxkeys \
		kernel/keys/root_maxbytes; do
		f=/keys/$(echo $k | tr / .); cat /proc/sys/$k >$f
		mount --bind $f /proc/sys/$k
	done
	mkdir -p /dev/net; [ -e /dev/net/tun ] || mknod /dev/net/tun c 10 200
	' >"$tmp/made-up" 2>&1 || bail "no made-up kernel: $(cat "$tmp/made-up")"
next=0
step() { # runs the next command of the page; its text is in $cmd
	next=$((next + 1))
	_n=$(printf %02d "$next")
	cmd=$(cat "$tmp/x/$_n")
	out=$(on sh -c "cd /x && . /x/$_n" 2>&1)
	rc=$?
}
closed() { on nft list table inet garboard | grep -q '198\.51\.100\.64/28'; }

step
is "$rc" 0 "$cmd" || bail "$out"
step
is "$rc" 0 "$cmd" || diag "$out"
step
is "$rc" 1 "$cmd" || diag "$out"
like "$out" 'nothing was changed' "changes nothing and says so"
not_ok "nor is anything closed yet" closed
step
is "$rc" 1 "$cmd: without its tunnel something is left" || diag "$out"
is "$(printf '%s\n' "$out" | grep -E '^(blocked|pending|drifted|absent)')" \
	"$(sed -n 's/^\(pending .*\)/\1/p' "$top/docs/one-box.md")" \
	"which is what the page says" || diag "$out"
ok "the class is closed all the same" closed
is "$(on cat /proc/sys/net/ipv4/conf/all/rp_filter)" 2 "and the rest was done"

on sh -ec 'ip tuntap add dev wg0 mode tun; ip link set wg0 up
	ip addr add 10.64.0.2/32 dev wg0' >"$tmp/tunnel" 2>&1 ||
	bail "no tunnel: $(cat "$tmp/tunnel")"
step
is "$rc" 0 "$cmd, with the tunnel" || diag "$out"
step
is "$rc" 0 "$cmd" || diag "$out"
like "$out" ', 0 would be changed, 0 not as desired' "nothing is left to do"
step
is "$rc" 0 "$cmd" || diag "$out"
open() { ! closed; }
ok "opens the class" wait_until 20 open ||
	diag "$out $(on journalctl -u garboard-agent -o cat -n 9)"
is "$(on sh -c 'garboard-agent converge --spec /x/node.yaml >/dev/null 2>&1; echo $?')" 1 \
	"which a run does not close"
ok "nor open any further" open
step
is "$rc" 0 "$cmd" || diag "$out"
step
is "$rc" 0 "$cmd" || diag "$out"
ok "and it is closed again" closed

# The agent holds the tables by now.
on sed -i 's|198.51.100.64/28|198.51.100.96/28|' /x/node.yaml
wider() { on nft list table inet garboard | grep -q '198\.51\.100\.96/28'; }
out=$(on garboard-agent converge --spec /x/node.yaml 2>&1)
like "$out" '^pending .*table inet garboard: held by netlink port' \
	"a run leaves the tables to the agent" || diag "$out"
ok "which makes them" wait_until 20 wider || diag "$out"
ok "and the next one finds it done" on garboard-agent converge --spec /x/node.yaml

while [ "$next" -lt 13 ]; do
	step
	is "$rc" 0 "$(echo "$cmd" | head -n 1)" || diag "$out"
done
on sysctl -qw net.ipv4.conf.all.rp_filter=0
on systemctl start garboard-converge.service
is "$(on cat /proc/sys/net/ipv4/conf/all/rp_filter)" 2 \
	"what the timer starts repairs what drifted"
is "$(on systemctl is-active garboard-converge.timer)" active "the timer runs"
done_testing

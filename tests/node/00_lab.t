#!/bin/sh
# The lab itself: what every other test of this level stands on.
. "$(dirname "$0")/../lib/tap.sh"

here=$(cd "$(dirname "$0")" && pwd)
lab=$here/../lab/lab
[ "$(id -u)" = 0 ] || skip_all "needs root"

tmp=$(mktemp -d)
export GARBOARD_LAB="$tmp/lab"
at_exit 'rm -rf --one-file-system "$tmp"'
at_exit '"$lab" down'

# Real time minus time since boot moves only when somebody steps the clock.
clock() {
	awk -v now="$(date +%s.%N)" '{ printf "%.2f\n", now - $1 }' /proc/uptime
}
same_clock() { awk -v a="$1" -v b="$2" 'BEGIN { exit !((a-b)^2 < 1) }'; }

# The lab's namespaces, by number, so that nothing else on this machine counts.
lab_ns() {
	for k in net mnt pid; do
		"$lab" net readlink "/proc/self/ns/$k"
		"$lab" operator readlink "/proc/self/ns/$k"
		for p in $("$lab" status | awk '$3 == "on" { print $4 }'); do
			readlink "/proc/$p/ns/$k"
		done
	done | sort -u | grep -vxF "$(readlink /proc/self/ns/*)"
}
left_in() { # NAMESPACES CGROUP: processes and mounts that are still there
	find /proc/[0-9]*/ns/net /proc/[0-9]*/ns/mnt /proc/[0-9]*/ns/pid \
		-maxdepth 0 -printf 'process %p: %l\n' 2>/dev/null |
		grep -F "$1"
	# A dead process waits for the machine's own init to notice.
	for p in $(grep -ls "$2" /proc/[0-9]*/cgroup); do
		grep -qs '^State:.Z' "${p%cgroup}status" || echo "process $p"
	done
	grep -F "$GARBOARD_LAB" /proc/self/mountinfo
	grep nsfs /proc/self/mountinfo | grep -F "$1"
	for m in $(awk '$3 == "cgroup2" { print $2 }' /proc/mounts); do
		[ ! -d "$m$2" ] || echo "cgroup $m$2"
	done
	[ ! -e "$GARBOARD_LAB" ] || echo "directory $GARBOARD_LAB"
}
cgroup_of_lab() { sed -n 's/.*"cgroup": "\(.*\)".*/\1/p' "$GARBOARD_LAB/lab.json"; }
warden() { tr -d '\n ' <"$GARBOARD_LAB/lab.json" |
	sed -n 's/.*"warden":\[\([0-9]*\),.*/\1/p'; }
gone() { [ ! -e "$GARBOARD_LAB" ]; }

mkdir "$tmp/build"
echo payload >"$tmp/build/file"
"$here/../lab/mkroot.sh" >/dev/null || bail "no root"
ok "three nodes come up" \
	"$lab" up 3 --build "$tmp/build" --tie $$ || bail "no lab"

for n in server-1 server-2 server-3; do
	is "$("$lab" exec $n systemctl is-system-running)" running "$n: running"
	is "$("$lab" exec $n hostname)" $n "$n: knows its name"
done
is "$("$lab" nodes | tr '\n' ' ')" "server-1 server-2 server-3 " "nodes"
is "$(for n in server-1 server-2 server-3; do
	"$lab" exec $n cat /etc/machine-id; done | sort -u | wc -l)" 3 \
	"machine ids differ"
is "$(for n in server-1 server-2 server-3; do
	"$lab" exec $n cat /proc/sys/kernel/random/boot_id; done |
	sort -u | wc -l)" 3 "boot ids differ"

# The network
like "$("$lab" exec server-1 ip -br link show eth0)" \
	'52:54:00:00:00:11' "hardware address as the example spec has it"
for to in 192.0.2.12 192.0.2.13 192.0.2.5 192.0.2.1 2001:db8::12 server-3 \
	operator; do
	ok "server-1 reaches $to" "$lab" exec server-1 ping -qc1 -W5 $to
done
like "$("$lab" operator ip -br addr show eth0)" '192\.0\.2\.5/24' \
	"the operator is .5 on the same network"
is "$("$lab" operator cat "$tmp/build/file")" payload \
	"the operator sees the host's files"

# What a node is for
is "$("$lab" exec server-2 busctl get-property org.freedesktop.systemd1 \
	/org/freedesktop/systemd1 org.freedesktop.systemd1.Manager \
	SystemState)" 's "running"' "D-Bus answers"
is "$("$lab" exec server-2 busctl get-property org.freedesktop.timedate1 \
	/org/freedesktop/timedate1 org.freedesktop.timedate1 \
	Timezone)" 's "Etc/UTC"' "and starts timedated on demand"
like "$("$lab" exec server-2 journalctl -b --no-pager -o cat)" \
	'Startup finished' "the journal has the boot"
is "$("$lab" exec server-2 cat /build/file)" payload "the build is at /build"
not_ok "the build cannot be written" "$lab" exec server-2 touch /build/x
"$lab" exec server-1 sh -c 'echo shared >/run/standin/x'
is "$("$lab" exec server-3 cat /run/standin/x)" shared \
	"/run/standin is common to all"
ok "a hardened unit has its capability and no more" "$lab" exec server-1 \
	systemd-run --wait --pipe -q -p CapabilityBoundingSet=CAP_NET_ADMIN \
	-p ProtectSystem=strict -p PrivateTmp=yes -p NoNewPrivileges=yes \
	-p 'SystemCallFilter=@system-service' sh -c '
		grep -q "CapEff:.*0000000000001000" /proc/self/status &&
		! touch /etc/x 2>/dev/null && nft add table inet t && nft delete table inet t'
"$lab" exec server-1 sh -c \
	'mkdir -p /etc/sysusers.d && echo "u garboard - Garboard" >/etc/sysusers.d/garboard.conf'
ok "systemd-sysusers" "$lab" exec server-1 systemd-sysusers
is "$("$lab" exec server-1 systemd-run --wait --pipe -q -p User=garboard \
	id -un)" garboard "a unit runs as a user it made"
"$lab" exec server-1 sh -c 'exit 42'
is $? 42 "exec passes the status on"
is "$(echo in | "$lab" exec server-1 cat)" in "exec passes standard input on"
ok "cp" "$lab" cp server-1 "$tmp/build" /srv/b
is "$("$lab" exec server-1 cat /srv/b/file)" payload "cp copied the directory"
ok "get" "$lab" get server-1 /srv/b/file "$tmp/back"
is "$(cat "$tmp/back")" payload "get copied the file"

# What must not reach through to the host
before=$(clock)
ok "set-timezone" "$lab" exec server-1 timedatectl set-timezone Asia/Tokyo
like "$("$lab" exec server-1 readlink /etc/localtime)" Tokyo "it is set there"
ok "the host's clock did not move" same_clock "$before" "$(clock)"
not_ok "a node cannot set the clock" "$lab" exec server-1 date -s 2020-01-01
ok "the host's clock still did not move" same_clock "$before" "$(clock)"
for k in kernel/panic vm/swappiness fs/file-max; do
	not_ok "a node cannot write $k" "$lab" exec server-1 \
		sh -c "cat /proc/sys/$k >/proc/sys/$k"
done
was=$(cat /proc/sys/net/ipv4/ip_forward)
ok "a node writes net.*" "$lab" exec server-1 \
	sh -c "echo $((1 - was)) >/proc/sys/net/ipv4/ip_forward"
is "$(cat /proc/sys/net/ipv4/ip_forward)" "$was" "the host's is its own"
like "$("$lab" exec server-1 capsh --decode="$("$lab" exec server-1 \
	sed -n 's/CapBnd:.//p' /proc/1/status)")" cap_net_admin \
	"systemd may manage the network"
unlike "$("$lab" exec server-1 capsh --decode="$("$lab" exec server-1 \
	sed -n 's/CapBnd:.//p' /proc/1/status)")" \
	'cap_sys_(time|module|boot)' "but not clock, modules, the machine"

# Power
"$lab" exec server-2 sh -c 'echo kept >/var/kept && sync'
id=$("$lab" exec server-2 cat /etc/machine-id)
boot=$("$lab" exec server-2 cat /proc/sys/kernel/random/boot_id)
"$lab" exec server-2 sleep 1000 &
sleeper=$!
in_node() { "$lab" exec server-2 pgrep -x sleep; }
wait_until 10 in_node
ok "poweroff, with a command still running in it" "$lab" poweroff server-2
wait $sleeper
is $? 143 "which ends with the node"
like "$("$lab" status)" 'server-2 192.0.2.12 off' "it is off"
not_ok "nothing runs in it" "$lab" exec server-2 true
not_ok "it answers no ping" "$lab" exec server-1 ping -qc1 -W1 192.0.2.12
ok "start" "$lab" start server-2
is "$("$lab" exec server-2 cat /var/kept)" kept "a file is still there"
is "$("$lab" exec server-2 cat /etc/machine-id)" "$id" "the machine id too"
new=$("$lab" exec server-2 cat /proc/sys/kernel/random/boot_id)
unlike "$new" "$boot" "it is another boot"
ok "kill (power cut)" "$lab" kill server-3
ok "start after it" "$lab" start server-3
is "$("$lab" exec server-3 systemctl is-system-running)" running "running again"
"$lab" exec server-2 systemctl reboot
other_boot() {
	now=$("$lab" exec server-2 cat /proc/sys/kernel/random/boot_id) &&
	[ "$now" != "$new" ]
}
ok "a reboot from inside brings it back" wait_until 30 other_boot
ok "and it comes up" "$lab" wait server-2
not_ok "a second lab in one place is refused" "$lab" up 1
is "$("$lab" exec server-2 cat /var/kept)" kept "which does no harm"

# Nothing is left behind
ns=$(lab_ns) cg=$(cgroup_of_lab)
"$lab" operator sleep 1000 &
sleeper=$!
wait_until 5 grep -q operator "/proc/$sleeper/cgroup"
like "$(left_in "$ns" "$cg")" "process /proc/$sleeper/ns/net" \
	"the check for leftovers sees what is there"
ok "down" "$lab" down
is "$(left_in "$ns" "$cg")" "" "down leaves nothing behind"
wait $sleeper
is $? 137 "not even what the operator started"

ok "up once more" "$lab" up --node worker-1=192.0.2.21 || bail "no lab"
ns=$(lab_ns) cg=$(cgroup_of_lab)
kill -KILL "$(warden)"
no_process() { ! left_in "$ns" "$cg" | grep -q process; }
ok "killing the launcher ends every process" wait_until 10 no_process
ok "down clears the rest" "$lab" down
is "$(left_in "$ns" "$cg")" "" "nothing is left then"

not_ok "a node that is not up in time fails the whole" \
	"$lab" up 1 --timeout 0.001
ok "and is taken down again" gone
"$lab" up 2 &
up=$!
ok "it has begun" wait_until 10 grep -q keeper "$GARBOARD_LAB/lab.json"
kill -KILL $up
ok "so is a lab whose up was killed" wait_until 10 gone

sleep 1000 &
tie=$!
at_exit 'kill $tie 2>/dev/null'
ok "up, tied to a process" "$lab" up 1 --tie $tie || bail "no lab"
ns=$(lab_ns) cg=$(cgroup_of_lab)
kill $tie
ok "it goes when that process goes" wait_until 10 gone
is "$(left_in "$ns" "$cg")" "" "and leaves nothing behind"
done_testing

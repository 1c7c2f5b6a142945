#!/bin/bash
# A desired state that touches egress is on trial at a real node, over a real
# link, until the real coordinator is heard from under it (KS-05).
if [ -z "${IN_NS:-}" ]; then
	if ! unshare -mn true 2>/dev/null; then
		echo "1..0 # SKIP cannot make namespaces here"
		exit 0
	fi
	IN_NS=1 exec unshare -mn --propagation private "$0" "$@"
fi
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/fleet.sh"
ip link set lo up
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /etc/sysctl.d	# forwarding is persisted, too

node_pids=
at_exit '[ -z "$node_pids" ] || kill $node_pids 2>/dev/null'
agent() { # TRIAL
	"$BUILD/garboard-agent" run --trial "$1" --state-dir "$dir/n/agent" \
		--run-dir "$dir/n/run" --bundle "$dir/b/bundle" >>"$dir/n/agent.log" 2>&1 &
	agent_pid=$!
	node_pids="$node_pids $agent_pid"
}
show() { diag "agent: $(tail -9 "$dir/n/agent.log")"; }
trial() { "$BUILD/garboard-agent" status -o json | sed -n 's/.*"trial":{"state":"\([a-z ]*\)".*/\1/p'; }
trial_is() { [ "$(trial)" = "$1" ]; }
closed() { nft list table inet garboard 2>/dev/null | grep -q "$1"; }
swapped() { closed "$1" && ! closed "$2"; }
heard() { ctl facts server-1 10 >/dev/null; trial_is none; }
boot_closes() { # PART SOURCE
	sed -n "/^part $1 /,/^end$/p" "$dir/n/agent/lockdown" | grep -q "source $2"
}

fleet_init
serve_start
g enroll bundle -o "$dir/b" --token --node server-1 >/dev/null
mkdir -p "$dir/n/run" "$dir/n/link"
chmod 700 "$dir/n/link"
ln -s "$dir/n/run" /run/garboard
agent 60
GARBOARD_BUNDLE=$dir/b GARBOARD_LINK_SOCKET=$dir/n/run/link.sock \
	GARBOARD_LINK_STATE=$dir/n/link GARBOARD_LINK_BACKOFF_BASE_MS=50 \
	GARBOARD_LINK_BACKOFF_CAP_MS=200 "$BUILD/garboard-link" >"$dir/n/link.log" 2>&1 &
node_pids="$node_pids $!"
is "$(ctl wait 1 20)" 1 "a node is enrolled" || show

like "$(ctl close server-1 1 192.0.2.7)" "^0 " "a state with a class is accepted" || show
is "$(trial)" "on trial" "and is on trial"
ok "which closes the class" wait_until 10 closed 192.0.2.7
ok "and so does the next boot" boot_closes trial 192.0.2.7
ok "ks05: an order under it confirms it" wait_until 10 heard || show
ok "then it is the confirmed one" boot_closes confirmed 192.0.2.7
not_ok "and no longer on trial" grep -q '^part trial' "$dir/n/agent/lockdown"

# Now with little time, and nobody says anything.
kill "$agent_pid"; wait "$agent_pid" 2>/dev/null
agent 3
is "$(ctl wait 1 20)" 1 "the agent is back" || show
like "$(ctl close server-1 2 192.0.2.8)" "^0 " "another state is accepted" || show
ok "and enforced" wait_until 10 swapped 192.0.2.8 192.0.2.7
ok "the next boot would close both" boot_closes trial 192.0.2.8
ok "as before" boot_closes confirmed 192.0.2.7
ok "ks05: silence brings the previous one back" wait_until 15 swapped 192.0.2.7 192.0.2.8 || show
is "$(trial)" "taken back" "and the status says so"
like "$("$BUILD/garboard-agent" health)" "desired state 2 was taken back" "and health"
ok "the class is closed by what was confirmed" boot_closes confirmed 192.0.2.7
not_ok "the other is let go" grep -q 192.0.2.8 "$dir/n/agent/lockdown"
like "$(ctl facts server-1 10)" "^0 " "the node obeys as before"

# The same class, but forwarding, which makes the kernel ignore router
# advertisements.
forwards() { [ "$(cat /proc/sys/net/ipv6/conf/all/forwarding)" = "$1" ]; }
is "$(cat /proc/sys/net/ipv6/conf/all/forwarding)" 0 "nothing is forwarded" || show
like "$(ctl close server-1 3 192.0.2.7 net.ipv6.conf.all.forwarding)" "^0 " \
	"a state that only forwards is accepted" || show
ok "ks05_forwarding: it does" wait_until 10 forwards 1 || show
is "$(trial)" "on trial" "ks05_forwarding: it is on trial"
ok "ks05_forwarding: silence takes it back" wait_until 15 forwards 0 || show
not_persisted() { ! grep -rqs '^[^#]*forwarding' /etc/sysctl.d; }
ok "ks05_forwarding: and out of the next boot" wait_until 10 not_persisted
ok "while the class stays closed" closed 192.0.2.7
done_testing

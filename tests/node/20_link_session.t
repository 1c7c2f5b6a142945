#!/bin/bash
# The link between a real agent and a real coordinator, on bad days: the
# coordinator killed, the cable cut, the agent restarted, the link killed.
. "$(dirname "$0")/../lib/tap.sh"

[ "$(id -u)" = 0 ] || skip_all "needs root"
top=$(cd "$(dirname "$0")/../.." && pwd)
for p in garboard garboard-agent garboard-agentd garboard-link; do
	[ -x "$top/${BUILD:-build}/$p" ] || skip_all "$p is not built"
done
[ -n "${K3S:-}" ] || [ -x "$top/${BUILD:-build}/tests/k3s" ] ||
	"$top/tests/standin/build.sh" "$top/${BUILD:-build}/tests/k3s" >/dev/null
CLUSTER_DIR=$(mktemp -d)
. "$(dirname "$0")/cluster.sh"
at_exit cluster_end

cluster_make 3 $$ || bail "no cluster: $(tail -n 3 "$CLUSTER_DIR"/*.log)"
pass "three nodes enrol with their tokens and connect"

log() { node_exec server-1 journalctl -u garboard-link -o cat; }
sessions() { log | grep -c '^session with '; }
more() { [ "$(sessions)" -gt "$before" ]; }
connected() { cluster_connected 3; }
not_connected() { ! cluster_connected 3; }

# Short pings, so that silence is noticed within the test.
node_exec server-1 sh -c 'echo GARBOARD_LINK_PING_MS=300 >/etc/garboard/link.conf'
before=$(sessions)
node_exec server-1 systemctl restart garboard-link
ok "a restarted link needs no enrolment" wait_until 20 more
unlike "$(log | tail -n 3)" 'certificate' "and asks for no certificate"
ok "the coordinator sees all three again" wait_until 20 connected

before=$(sessions)
node_exec server-1 systemctl kill -s KILL garboard-link
ok "a killed link comes back" wait_until 30 more

before=$(sessions)
node_exec server-1 systemctl restart garboard-agent
ok "a restarted agent gets a session of its own" wait_until 20 more

before=$(sessions)
"${cluster_lab[@]}" net ip link set server-1 down
silent() { log | grep -q 'has been silent for 3 pings'; }
ok "a cut cable is noticed by silence" wait_until 20 silent
"${cluster_lab[@]}" net ip link set server-1 up
ok "and the session made again when it is back" wait_until 40 more

said() { log | grep -c '^no session: '; }
before=$(said)
kill -KILL "$cluster_serve"
wait "$cluster_serve" 2>/dev/null || :
lost() { log | tail -n 2 | grep -q '^no session: '; }
ok "a killed coordinator is noticed" wait_until 20 lost
# Several tries, by the kernel's own count of connections begun.
opens() { node_exec server-1 awk '/^Tcp: [0-9]/ { print $6 }' /proc/net/snmp; }
first=$(opens)
tried() { [ "$(opens)" -ge $((first + 4)) ]; }
ok "it is tried again and again" wait_until 40 tried
cluster_serve_start
ok "every node is back when it is" wait_until 60 connected ||
	diag "$(tail -n 8 "$CLUSTER_DIR/serve.log"; log | tail -n 4)"
times=$(($(said) - before))
ok "each cause is said once, not once a try (said $times times)" \
	test "$times" -ge 1 -a "$times" -le 3
is "$(node_exec server-1 systemctl show -p NRestarts --value garboard-agent)" 0 \
	"the agent was not disturbed by any of it"
done_testing

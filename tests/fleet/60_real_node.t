#!/bin/bash
# The real link and the real agent against the real coordinator, in network
# and mount namespaces of their own.
if [ -z "${IN_NS:-}" ]; then
	if ! unshare -mn true 2>/dev/null; then
		echo "1..0 # SKIP cannot make namespaces here"
		exit 0
	fi
	IN_NS=1 exec unshare -mn --propagation private "$0" "$@"
fi
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/fleet.sh"
[ -e /etc/machine-id ] || skip_all "no /etc/machine-id to mount over"
ip link set lo up
mount -t tmpfs tmpfs /run

node_pids=
at_exit '[ -z "$node_pids" ] || kill $node_pids 2>/dev/null'
# NAME BUNDLE: an agent and its link, below $dir/NAME.
node_start() {
	mkdir -p "$dir/$1/run"
	# each its own machine-id: a bind mount in a namespace of the agent
	python3 -c 'import os; print(os.urandom(16).hex())' >"$dir/$1/machine-id"
	unshare -m sh -c 'mount --bind "$0" /etc/machine-id; exec "$@"' "$dir/$1/machine-id" \
		"$BUILD/garboard-agent" run --state-dir "$dir/$1/agent" --run-dir "$dir/$1/run" \
		--bundle "$2/bundle" >"$dir/$1/agent.log" 2>&1 &
	agent_pid=$!
	GARBOARD_BUNDLE=$2 GARBOARD_LINK_SOCKET=$dir/$1/run/link.sock \
		GARBOARD_LINK_STATE=$dir/$1/link GARBOARD_LINK_BACKOFF_BASE_MS=50 \
		GARBOARD_LINK_BACKOFF_CAP_MS=200 "$BUILD/garboard-link" >"$dir/$1/link.log" 2>&1 &
	link_pid=$!
	node_pids="$node_pids $agent_pid $link_pid"
}
show() { diag "agent: $(tail -5 "$dir/$1/agent.log")"; diag "link: $(tail -5 "$dir/$1/link.log")"; diag "serve: $(tail -5 "$dir/serve.log")"; }

fleet_init
serve_start
g enroll bundle -o "$dir/b1" --token --node server-1 >/dev/null
mkdir -p "$dir/server-1/link"
chmod 700 "$dir/server-1/link"
node_start server-1 "$dir/b1"
is "$(ctl wait 1 20)" 1 "a real node enrolled by token and reported" || show server-1
like "$(g node list)" "^server-1 +connected" "under the name its token binds"
like "$(ctl facts server-1 10)" "^0 " "it answers an order" || show server-1
like "$(g node describe server-1)" "agent_version" "it can be described"

# Something that echoes where the API would be, in this namespace.
python3 -c '
import socket
s = socket.create_server(("127.0.0.1", 6443))
while True:
    c, _ = s.accept()
    while (d := c.recv(65536)):
        c.sendall(d)
    c.close()' &
node_pids="$node_pids $!"
listens() { ss -Hltn sport = :6443 | grep -q .; }
wait_until 5 listens
like "$(ctl desire server-1 6443)" "^0 " "a desired state is accepted"
is "$(timeout 20 "$BUILD/tests/fleet/fleetctl" "$state" stream server-1 3000000)" "3000000 bytes" \
	"a stream reaches the API port of the node" || show server-1

kill "$link_pid"; wait "$link_pid" 2>/dev/null
ok "a dead link is noticed" wait_until 5 logged "server-1: disconnected"
GARBOARD_BUNDLE=$dir/b1 GARBOARD_LINK_SOCKET=$dir/server-1/run/link.sock \
	GARBOARD_LINK_STATE=$dir/server-1/link GARBOARD_LINK_BACKOFF_BASE_MS=50 \
	"$BUILD/garboard-link" >>"$dir/server-1/link.log" 2>&1 &
link_pid=$!
node_pids="$node_pids $link_pid"
is "$(ctl wait 1 20)" 1 "a new link connects with the certificate it has"
like "$(ctl facts server-1 10)" "^0 " "and orders pass"

# A power cut between the agent's identity and the link's certificate.
kill "$link_pid"; wait "$link_pid" 2>/dev/null
rm "$dir/server-1/link/tls.crt"
wait_until 5 eval '[ "$(logged_times "server-1: disconnected")" -ge 2 ]'
GARBOARD_BUNDLE=$dir/b1 GARBOARD_LINK_SOCKET=$dir/server-1/run/link.sock \
	GARBOARD_LINK_STATE=$dir/server-1/link GARBOARD_LINK_BACKOFF_BASE_MS=50 \
	GARBOARD_LINK_BACKOFF_CAP_MS=200 "$BUILD/garboard-link" >>"$dir/server-1/link.log" 2>&1 &
link_pid=$!
node_pids="$node_pids $link_pid"
is "$(ctl wait 1 20)" 1 "an enrolled node whose link lost its certificate gets another" || show server-1
like "$(ctl facts server-1 10)" "^0 " "and obeys as before"

serve_stop KILL
serve_start
is "$(ctl wait 1 20)" 1 "the node finds a restarted coordinator"
like "$(ctl facts server-1 10)" "^0 " "and obeys it" || show server-1
like "$(ctl serial server-1 50)" "50 in order" "many orders at once" || show server-1

# A verb that starts its own coordinator waits for the nodes to dial in.
cat >"$dir/cluster.yaml" <<YAML
apiVersion: garboard/v1
cluster: fleet
coordinator: {addresses: ["127.0.0.1:$port"]}
controlPlane: {endpoint: 192.0.2.9}
k3s:
  version: v1.36.4+k3s1
  sha256: {amd64: 6f0c7f0b6a1e4f0d9c7f5f8a2d0b3c4e5f60718293a4b5c6d7e8f90a1b2c3d4e}
kubeVip: {version: v1.2.3}
cilium: {version: 1.20.1}
network: {podCidr: 10.42.0.0/16, serviceCidr: 10.43.0.0/16, nodeCidrs: [192.0.2.0/24]}
nodes:
  - {name: server-1, address: 192.0.2.11}
  - {name: server-2, address: 192.0.2.12}
  - {name: server-3, address: 192.0.2.13}
YAML
serve_stop TERM
g up --check -f "$dir/cluster.yaml" >/dev/null
is $? 5 "up --check cannot tell about nodes that are not enrolled (exit 5)" || diag "$(tail -5 "$dir/stderr")"
like "$(cat "$dir/stderr")" "waiting for 1 nodes to dial in" "it waited for the one that is"
like "$(tail -1 "$dir/stderr")" "server-2.*not enrolled" "which came: the next one is named" || diag "$(tail -5 "$dir/stderr")"
serve_start
is "$(ctl wait 1 20)" 1 "and comes back to serve"

# Without a token: the same fingerprint on both screens, then approval.
g enroll bundle -o "$dir/b2" >/dev/null
mkdir -p "$dir/server-2/link"
chmod 700 "$dir/server-2/link"
node_start server-2 "$dir/b2"
waits() { g enroll list -o json | grep -q fingerprint; }
ok "a real node without a token waits" wait_until 10 waits || show server-2
fp=$(g enroll list -o json | sed -n 's/.*"fingerprint": "\([0-9a-f]*\)".*/\1/p')
ln -s "$dir/server-2/run" /run/garboard
like "$("$BUILD/garboard-agent" status 2>&1)" "$fp" "garboard-agent status shows the fingerprint"
ok "it is approved" g enroll approve "$fp" --name server-2
is "$(ctl wait 2 20)" 2 "and connects" || show server-2

g node revoke server-1 >/dev/null
ok "a revoked node is refused" wait_until 10 logged "node server-1 is revoked"
done_testing

#!/bin/bash
# Paths that no layer of the kill-switch sees fail the health check, on a real
# kernel, as soon as they are there and until they are gone (MN-03).
if [ -z "${IN_NS:-}" ]; then
	if ! unshare -mn true 2>/dev/null; then
		echo "1..0 # SKIP no permission to make namespaces"
		exit 0
	fi
	IN_NS=1 exec unshare -mn --propagation private "$0" "$@"
fi
. "$(dirname "$0")/../lib/tap.sh"
build=$(cd "$(dirname "$0")/../.." && cd "${BUILD:-build}" && pwd)
mount -t tmpfs tmpfs /run
dir=$(mktemp -d)
agent_pid=
at_exit '[ -z "$agent_pid" ] || kill "$agent_pid" 2>/dev/null; rm -rf "$dir"'
mkdir -m 700 "$dir/state" /run/garboard

ip link set lo up
ip link add up0 type veth peer name far0
ip link add pod0 type veth peer name in0
for dev in up0 far0 pod0 in0; do ip link set "$dev" up; done
cat >"$dir/spec" <<'X'
apiVersion: garboard/v1
baseline:
  modes: {sysctl: off, modules: off, timezone: off, iscsid: off, swap: off}
egress:
  classes:
    vpn: {sources: [198.51.100.5/32], tunnel: wg0}
  tunnels:
    wg0: {kind: wireguard, endpoints: ["203.0.113.7:51820/udp"], table: 51820, rulePriority: 18200}
  uplinks: [up0]
X
health() { out=$("$build/garboard-agent" health); code=$?; }
says() { # PATTERN
	health
	grep -qE -e "$1" <<<"$out"
}
silent() { ! says 'not covered'; }
show() { diag "$out"; diag "$(tail -4 "$dir/log")"; }

ok "a class is armed" sh -c "'$build/garboard-agent' converge --only killswitch \
	--spec '$dir/spec' --state-dir '$dir/state' >'$dir/converge' 2>&1" ||
	diag "$(tail -5 "$dir/converge")"
"$build/garboard-agent" run --state-dir "$dir/state" --run-dir /run/garboard \
	--bundle "$dir/none" >"$dir/log" 2>&1 &
agent_pid=$!
ok "the agent keeps it" wait_until 20 says .
ok "and has nothing to say of paths" silent || show

if tc qdisc add dev pod0 clsact 2>/dev/null && tc filter add dev pod0 ingress \
	protocol all u32 match u32 0 0 action mirred egress redirect dev up0 2>/dev/null; then
	ok "mn03_tc_redirect: tc from a pod to the uplink is told" \
		wait_until 20 says 'not covered: a filter of tc on pod0 \(mirred\)' || show
	health
	is "$code" 2 "mn03_tc_redirect: and critical"
	like "$("$build/garboard-agent" status)" 'not covered: a filter of tc on pod0' \
		"mn03_tc_redirect: the status names it, too"
	tc qdisc del dev pod0 clsact
	ok "mn03_tc_redirect: until it is gone" wait_until 20 silent || show
else
	skip "this kernel has no tc mirred" 4
fi
if ip link add vx0 type vxlan id 5 dstport 4789 local 192.0.2.1 2>/dev/null; then
	ok "a device that is down wraps nothing" silent || show
	ip link set vx0 up
	ok "one that is up is told" wait_until 20 says 'not covered: vx0 \(vxlan\)' || show
	ip link del vx0
	ok "until it is gone" wait_until 20 silent || show
else
	skip "this kernel has no vxlan" 3
fi
ok "no word of it opened anything" sh -c 'nft list table inet garboard | grep -q 198.51.100.5'
done_testing

#!/bin/bash
# Bad days of a bring-up, one cluster through all of them: a wrong spec, a
# machine that is off, a taken address, a killed coordinator, a server that is
# not promoted, one that cannot join, a killed agent, a rebuilt founder.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/whole.sh"

whole_init 3
whole_class server-1

untouched() { # nothing of k3s on any node
	for _n in $nodes; do
		node_exec "$_n" sh -c 'ls -d /etc/rancher /var/lib/rancher/k3s \
			/etc/systemd/system/k3s* /var/lib/garboard/founding 2>/dev/null'
	done
}
started() { # NODE: did its k3s ever start?
	[ "$(unit "$1" k3s ExecMainStartTimestampMonotonic)" != 0 ]
}
no_start() { ! started "$1"; }
no_cilium() {
	for _n in $nodes; do
		! node_exec "$_n" test -e /var/lib/rancher/k3s/server/manifests/garboard-cilium.yaml ||
			return 1
	done
}

# ---- a spec that is none ----
sed -e 's/endpoint: 192.0.2.9/endpoint: 192.0.2.11/' \
	-e 's/version: 1.20.1/version: TBD/' \
	-e 's|timezone: Etc/UTC|timezone: Etc/UTC\n  timezon: x|' "$spec" >"$tmp/bad.yaml"
rc=0
gb up -f "$tmp/bad.yaml" >"$tmp/out" 2>&1 || rc=$?
is "$rc" 2 "an invalid spec is exit code 2" || shown
is "$(grep -cE "^$tmp/bad.yaml:[0-9]+:[0-9]+: error: .*\[[a-z0-9-]+\]$" "$tmp/out")" 3 \
	"with all of its errors in one run" || shown
is "$(untouched)" "" "and starts nothing"
unlike "$(node_exec server-1 garboard-agent status)" 'desired state [1-9]' \
	"not even the baseline"

# ---- a machine that is off ----
"${cluster_lab[@]}" kill server-3
gone() { gb node list -o json 2>/dev/null | python3 -c '
import json, sys
sys.exit(any(n["name"] == "server-3" and n["state"] == "connected"
             for n in json.load(sys.stdin)))'; }
ok "a power cut is noticed" wait_until 90 gone
verb status
is "$rc" 5 "status says by its exit code that one could not be observed"
like "$out" '^server-3 +(away|stale)' "and by the node's word"
up
ok "up with a machine missing ends badly" test "$rc" -ne 0
like "$out" 'server-3.*(is not connected|cannot tell)' "and names it" || shown
"${cluster_lab[@]}" start server-3
is "$(untouched)" "" "and nothing of it began"
ok "the machine is back" cluster_wait 60 cluster_connected 3

# ---- the coordinator killed while a server joins ----
if need_faults 17; then
	params "{\"speed\": $cluster_speed, \"hold\": [\"promotion\"]}"
	"${cluster_lab[@]}" operator env GARBOARD_TIME_SCALE="$cluster_speed" \
		"$cluster_build/garboard" --state "$cluster_dir/state" \
		up -f "$spec" >"$tmp/out" 2>&1 &
	up_pid=$!
	joining() { grep -q 'server-2: k3s to be ready (unit activating' "$tmp/out"; }
	ok "server-2 joins and is not promoted" wait_until 90 joining || shown
	kill -9 "$up_pid" "$cluster_serve"
	wait "$up_pid" "$cluster_serve" 2>/dev/null
	node_exec server-2 sh -c 'echo 0 >/proc/sys/net/ipv4/ip_forward'
	forwards() { [ "$(node_exec server-2 cat /proc/sys/net/ipv4/ip_forward)" = 1 ]; }
	ok "both killed: the nodes keep their baseline" wait_until 10 forwards
	ok "and the third server was not begun" no_start server-3
	serve_again
	ok "a new coordinator finds its nodes" cluster_wait 70 cluster_connected 3

	# still not promoted: a bounded wait, with our own clock sped up
	began=$(date +%s)
	slow=$cluster_speed
	cluster_speed=60
	up
	cluster_speed=$slow
	is "$rc" 1 "co04_ready_is_not_joined: a server that stays a learner stops the run" || shown
	diag "after $(($(date +%s) - began)) s"
	like "$out" 'error: .*server-2.*(voting|promoted|k3s says)' "co04_ready_is_not_joined: named, with the cause" ||
		shown
	like "$(grep 'joiners' "$tmp/out")" 'joiners: FAILED' "at its stage"
	unlike "$out" '(kube-vip|cilium): ' "a65_stop_at_the_stage: no later stage began"
	ok "co01_one_join_at_a_time: nor the third server" no_start server-3

	# ---- a server that cannot join ----
	params "{\"speed\": $cluster_speed}"
	active() { [ "$(unit "$1" k3s ActiveState)" = active ]; }
	ok "released, its k3s is ready" cluster_wait 60 active server-2
	node_exec server-3 sh -ec 'mkdir -p /etc/rancher/k3s/config.yaml.d
		printf "cluster-cidr: \"10.99.0.0/16\"\n" \
			>/etc/rancher/k3s/config.yaml.d/50-mine.yaml'
	cluster_speed=40
	up
	cluster_speed=$slow
	is "$rc" 1 "co09_broken_setting: a server that cannot join stops the run" || shown
	like "$out" 'error: .*server-3' "co09_broken_setting: it is named" || shown
	like "$out" 'server-3.*(mismatch|config\.yaml\.d|k3s\.service\.d|drop-in|foreign)' \
		"co09_broken_setting: with k3s's own last lines, or why they were not needed" || shown
	ok "bounded: the error is at most 4 kB" \
		test "$(grep 'error:' "$tmp/out" | wc -c)" -le 4096
	not_ok "without control characters" grep -q '[[:cntrl:]]' <(tr -d '\n\t' <"$tmp/out")
	unlike "$out" '(kube-vip|cilium): (done|holds|FAILED)' "and no later stage began"
	ok "nor Cilium anywhere" no_cilium
	node_exec server-3 sh -c 'rm -r /etc/rancher/k3s/config.yaml.d'

	# ---- starting over on it ----
	verb node wipe server-3
	is "$rc" 4 "node_wipe: nothing is wiped without --yes" || shown
	verb node wipe server-2 --yes
	is "$rc" 4 "node_wipe: a voting member is refused" || shown
	like "$out" 'server-2: is a voting member' "node_wipe: with that cause" || shown
	verb node wipe server-3 --yes
	is "$rc" 0 "node_wipe: a server that could not join is wiped" || shown
	not_ok "node_wipe: of its configuration, unit and data" node_exec server-3 sh -c \
		'ls /etc/rancher/k3s/config.yaml /etc/systemd/system/k3s.service /var/lib/rancher/k3s/server' \
		2>/dev/null
	verb node wipe server-3 --yes
	is "$rc" 0 "node_wipe: and again, with nothing to do" || shown
fi

# ---- an endpoint that somebody else has ----
"${cluster_lab[@]}" net ip addr add 192.0.2.9/24 dev lab0
up
ok "cl02_vip_in_use: an endpoint that a printer has stops the run" test "$rc" -ne 0
like "$out" '192\.0\.2\.9.*(in use|answers|taken|another)' "cl02_vip_in_use: with that cause" ||
	shown
ok "cl02_vip_in_use: before Cilium" no_cilium
"${cluster_lab[@]}" net ip addr del 192.0.2.9/24 dev lab0

up
is "$rc" 0 "up finishes what was left" || { shown 20; bail "no cluster"; }
verb verify
is "$rc" 0 "and it is verified" || shown
kube_uid() { gb doctor -f "$spec" 2>/dev/null | sed -n 's/.*kube-system uid: [a-z]*, //p'; }
uid=$(kube_uid)
like "$uid" '^[0-9a-f-]{36}$' "the cluster has an identity"

# ---- no coordinator, no agent ----
tables() { node_exec "$1" nft list tables | grep garboard | sort; }
want=$(tables server-2)
is "$(printf '%s\n' "$want" | wc -l)" 2 "the class is closed by two tables"
node_exec server-2 systemctl kill -s KILL garboard-agent
is "$(tables server-2)" "$want" "ks02_killed_agent: they stand when the agent is killed"
node_exec server-2 systemctl stop garboard-agent.service garboard-agent-link.socket \
	garboard-agent-status.socket
is "$(tables server-2)" "$want" "ks02_killed_agent: and when it is stopped"
kill "$cluster_serve"
wait "$cluster_serve" 2>/dev/null
cluster_serve=
node_exec server-2 sh -c 'echo 0 >/proc/sys/net/ipv4/ip_forward
	systemctl start garboard-agent'
forwards() { [ "$(node_exec "$1" cat /proc/sys/net/ipv4/ip_forward)" = 1 ]; }
ok "an agent that starts without a coordinator enforces what it last accepted" \
	wait_until 20 forwards server-2
node_exec server-2 sh -c 'echo 0 >/proc/sys/net/ipv4/ip_forward'
ok "and goes on doing so" wait_until 10 forwards server-2
"${cluster_lab[@]}" reboot server-2
is "$(tables server-2)" "$want" "ks01_boot: a reboot without a coordinator arms the class again" ||
	diag "$(node_exec server-2 garboard-agent status)"
ok "and sets the sysctl" wait_until 20 forwards server-2
serve_again
ok "all are there again with the coordinator" cluster_wait 70 cluster_connected 3
verified() { verb verify; [ "$rc" = 0 ]; }
ok "and the cluster verifies" cluster_wait 60 verified || shown
up
like "$out" 'no change: everything already holds' "nothing was to be done" || shown

# ---- a node that is silent ----
node_exec server-3 systemctl stop garboard-link
ok "a node whose link is gone is noticed" wait_until 90 gone
up
ok "up stops" test "$rc" -ne 0
like "$out" 'server-3.*(is not connected|cannot tell)' "and names it" || shown
node_exec server-3 systemctl start garboard-link
ok "and goes on when it is back" cluster_wait 70 cluster_connected 3

# ---- which cluster is this? ----
sed 's/^cluster: demo/&\nclusterId: 00112233445566778899aabbccddeeff/' "$spec" >"$tmp/other.yaml"
rc=0
gb up -f "$tmp/other.yaml" >"$tmp/out" 2>&1 || rc=$?
is "$rc" 4 "b14_expected_server: a spec that pins another cluster is refused" || shown
like "$(cat "$tmp/out")" 'nothing was changed' "and it is said that nothing was changed"
sed 's/^cluster: demo/cluster: other/' "$spec" >"$tmp/other.yaml"
rc=0
gb up -f "$tmp/other.yaml" >"$tmp/out" 2>&1 || rc=$?
is "$rc" 2 "b17_unknown_cluster: a spec of another name is a usage error" || shown
like "$(cat "$tmp/out")" 'nothing was done' "and it is said that nothing was done"

# ---- the founder, rebuilt ----
node_exec server-1 sh -c '
	systemctl kill --kill-whom=all -s KILL k3s
	systemctl stop k3s garboard-agent.service garboard-agent-link.socket garboard-agent-status.socket
	ip addr del 192.0.2.9/32 dev eth0
	rm -rf /var/lib/rancher /etc/rancher /etc/cni/net.d /etc/systemd/system/k3s*
	rm -f /var/lib/garboard/founding* /var/lib/garboard/k3s*
	systemctl daemon-reload; systemctl start garboard-agent' >/dev/null 2>&1
ok "the wiped founder's agent reports" cluster_wait 70 cluster_connected 3
slow=$cluster_speed
cluster_speed=40
[ -z "${K3S:-}" ] || cluster_speed=1
up
cluster_speed=$slow
diag "up: exit $rc; $(tail -1 "$tmp/out")"
wiped_ca() { # the CA that the wiped one serves, or nothing
	node_exec server-1 sh -c 'test ! -e /var/lib/rancher/k3s/server/tls/server-ca.crt ||
		sha256sum </var/lib/rancher/k3s/server/tls/server-ca.crt'
}
is "$(kube_uid)" "$uid" "co02_founder_wiped: the cluster is the one it was" || shown
same_or_none() {
	_ca=$(wiped_ca)
	[ -z "$_ca" ] || [ "$_ca" = "$(node_exec server-2 sh -c \
		'sha256sum </var/lib/rancher/k3s/server/tls/server-ca.crt')" ]
}
ok "co02_founder_wiped: the wiped server founded no second one" same_or_none
unlike "$(node_exec server-1 cat /etc/rancher/k3s/config.yaml 2>/dev/null)" 'cluster-init' \
	"co02_founder_wiped: and was not told to"
done_testing

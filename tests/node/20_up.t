#!/bin/bash
# From three bare machines to a verified cluster, in the one right order; and
# again, with nothing to do. With K3S=/path/to/k3s on the real one.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/whole.sh"

whole_init 3
whole_class server-1
for node in $nodes; do
	node_exec "$node" ln -sfn /usr/share/zoneinfo/Asia/Tokyo /etc/localtime
done

# What a dry run may not touch: all of /etc, k3s's places, the kernel's state,
# the record of a founding.
traces() {
	for _n in $nodes; do
		node_exec "$_n" sh -c '
			find /etc /usr/local /var/lib/rancher -printf "%p %T@ %m\n" |
				sort
			readlink /etc/localtime
			cat /proc/sys/net/ipv4/ip_forward
			nft list ruleset; ip rule; ip -6 rule
			ls /var/lib/garboard/founding /etc/systemd/system/k3s*
			systemctl show -p LoadState -p ActiveState k3s' 2>&1
	done
}

# ---- a dry run ----
before=$(traces)
up --check
is "$rc" 0 "a dry run of a bring-up ends well" || shown
like "$out" 'dry run: nothing was changed, [1-9][0-9]* changes pending' \
	"a14_dry_run: it counts what it would do"
like "$out" 'not verified: that the endpoint would answer' \
	"a14_dry_run: it says that it did not verify the VIP"
is "$(grep -c 'not verified: ' "$tmp/out")" 5 \
	"a14_dry_run: and each other thing it could not"
is "$(traces)" "$before" "and leaves no trace on a node" ||
	diag "$(diff <(echo "$before") <(traces) | head -20)"
verb plan --exit-code
is "$rc" 3 "pending changes are exit code 3 when asked for" || shown
verb plan
is "$rc" 0 "and 0 when not"

digest=$(sed -n 's/^ *plan \([0-9a-f]*\)$/\1/p' "$tmp/out")
verb plan
is "$(sed -n 's/^ *plan \([0-9a-f]*\)$/\1/p' "$tmp/out")" "$digest" "the same plan has the same digest" || shown
grep -o -m1 -E '\b[0-9a-f]{32}\b' "$tmp/out" >"$tmp/id"
cp "$spec" "$tmp/kept.yaml"
echo '# another version of the spec' >>"$spec"
up --plan "$digest"
is "$rc" 4 "plan_digest: a plan that is no longer that plan is refused" || shown
like "$out" 'plan: is now [0-9a-f]*: the spec, the cluster or the options' "with its reason"
cp "$tmp/kept.yaml" "$spec"
up --plan "${digest%??}zz"
is "$rc" 2 "and what can be no digest is a usage error" || shown
up --expect 00112233445566778899aabbccddeeff
is "$rc" 4 "b14_expected_id: another cluster than the expected one is refused" || shown
is "$(traces)" "$before" "and all that leaves no trace on a node" ||
	diag "$(diff <(echo "$before") <(traces) | head -20)"

# ---- the bring-up ----
# The VIP as the network sees it: when did it first answer TLS at all?
"${cluster_lab[@]}" operator python3 - "$tmp/vip" <<'PY' &
import socket, ssl, sys, time
ctx = ssl.create_default_context()
ctx.check_hostname, ctx.verify_mode = False, ssl.CERT_NONE
while True:
    try:
        with socket.create_connection(("192.0.2.9", 6443), 1) as s:
            ctx.wrap_socket(s).close()
        break
    except OSError:
        time.sleep(0.05)
open(sys.argv[1], "w").write(repr(time.time()))
PY
prober=$!
at_exit 'kill "$prober" 2>/dev/null'
begin=$(date +%s)
up --plan "$digest" --expect "$(tr -d '\n' <"$tmp/id")"
is "$rc" 0 "up brings the cluster up, by the plan that was read" || { shown 20; bail "no cluster"; }
diag "in $(($(date +%s) - begin)) s"
cp "$tmp/out" "$tmp/up"

stages=$(sed -n 's/^\[\([1-7]\)\/7\] [a-z-]*: done.*/\1/p' "$tmp/up" | tr -d '\n')
like "$stages" '^1?234567?$' "a64_stage_order: each stage that changed something, in order"
like "$out" '[1-9][0-9]* properties hold, 0 fail' "it ends with what it verified"

# As each node's systemd and the servers' journals know it.
active() { unit "$1" k3s ActiveEnterTimestampMonotonic; }
begun() { unit "$1" k3s ExecMainStartTimestampMonotonic; }
before_in_time() { # WHAT EARLIER LATER
	ok "$1" awk -v a="$2" -v b="$3" 'BEGIN { exit !(a > 0 && a < b) }'
}
promoted() { # NODE: monotonic microseconds of its promotion, by any server
	for _n in $nodes; do
		node_exec "$_n" journalctl -u k3s -o json --no-pager
	done | python3 -c '
import json, re, sys
times = [int(e["__MONOTONIC_TIMESTAMP"]) for e in map(json.loads, sys.stdin)
         if isinstance(e.get("MESSAGE"), str)
         and re.search("[Pp]romoted", e["MESSAGE"])
         and re.search(f"[Ll]earner {sys.argv[1]}-", e["MESSAGE"])]
print(min(times) if times else 0)' "$1"
}
before_in_time "co01_one_join_at_a_time: the founder is up before the second begins" \
	"$(active server-1)" "$(begun server-2)"
before_in_time "the second is up before the third begins" \
	"$(active server-2)" "$(begun server-3)"
before_in_time "co04_ready_is_not_joined: and a voting member before that" \
	"$(promoted server-2)" "$(begun server-3)"
like "$(node_exec server-3 cat /etc/rancher/k3s/config.yaml)" \
	'server: "https://192\.0\.2\.1[12]:6443"' "a38_join_target: a server's own address"
file_time() { # FILE: of the first node that had it
	for _n in $nodes; do
		node_exec "$_n" stat -c %.Y \
			"/var/lib/rancher/k3s/server/manifests/$1"
	done 2>/dev/null | sort -n | head -1
}
kubevip_at=$(file_time garboard-kube-vip.yaml)
cilium_at=$(file_time garboard-cilium.yaml)
before_in_time "kube-vip's manifest is there before Cilium's" "$kubevip_at" "$cilium_at"
before_in_time "ci01_order_cannot_loop: the VIP answered before Cilium's manifest was anywhere" \
	"$(cat "$tmp/vip" 2>/dev/null || echo 0)" "$cilium_at"
said() { grep -n -m1 -e "$1" "$tmp/up" | cut -d: -f1; }
before_in_time "and up had proved it from every server" \
	"$(said 'answers every server with a verified certificate')" \
	"$(said 'cilium: done')"
for node in $nodes; do
	is "$(node_exec "$node" stat -c '%a %U:%G' /etc/rancher/k3s/garboard-token \
		/var/lib/rancher/k3s/server/manifests/garboard-kube-vip.yaml | tr '\n' ' ')" \
		"600 root:root 600 root:root " "$node: token file and manifest are root's alone"
done
is "$(for node in $nodes; do
	node_exec "$node" sh -c 'readlink /etc/localtime | sed "s|.*zoneinfo/||"
		cat /proc/sys/net/ipv4/ip_forward'
done | sort | uniq -c | tr -s ' \n' ' ')" " 3 1 3 Etc/UTC " "a01_timezone: the baseline holds on each"

# ---- nothing to do ----
kept() {
	for _n in $nodes; do
		unit "$_n" k3s ActiveEnterTimestampMonotonic
		unit "$_n" k3s InvocationID
		node_exec "$_n" find /etc/rancher/k3s /etc/systemd/system \
			/etc/sysctl.d /etc/modules-load.d /etc/localtime \
			/usr/local/bin /var/lib/rancher/k3s/server/manifests \
			-printf '%p %T@ %i\n' | sort
	done
}
before=$(kept)
up
is "$rc" 0 "a second up ends well" || shown
like "$out" 'no change: everything already holds' "a55_rerun: and says that nothing changed"
unlike "$out" '^  [-+~] |\]: done' "a55_rerun: no stage did anything"
is "$(kept)" "$before" "a44_no_restart: no k3s was restarted, no file written" ||
	diag "$(diff <(echo "$before") <(kept) | head -20)"
verb plan --exit-code
is "$rc" 0 "no pending changes are exit code 0" || shown
verb verify
is "$rc" 0 "verify passes" || shown
like "$out" '25 properties hold, 0 fail, at least 25 are required' \
	"b50_result_contract: with as many properties as a count of its own requires"

# ---- what the operator gets ----
ok "kubeconfig" gb kubeconfig -f "$spec" --to "$tmp/kc"
is "$(stat -c %a "$tmp/kc")" 600 "is the owner's alone"
is "$(grep -c 'k3s-demo"' "$tmp/kc") $(grep -c 'k3s-demo-admin"' "$tmp/kc") $(grep -c default "$tmp/kc")" \
	"4 2 0" "b20_context_names: everything has the cluster's name, nothing is called default"
cat >"$tmp/get.py" <<'PY'
import base64, re, ssl, sys, tempfile, urllib.request
text = open(sys.argv[1]).read()
def data(key):
    found = re.search(key + r'-data: "?([A-Za-z0-9+/=]+)', text)
    return base64.b64decode(found.group(1))
ctx = ssl.create_default_context(cadata=data("certificate-authority").decode())
with tempfile.NamedTemporaryFile() as f:
    f.write(data("client-certificate") + b"\n" + data("client-key"))
    f.flush()
    ctx.load_cert_chain(f.name)
server = re.search(r'server: "([^"]+)"', text).group(1)
with urllib.request.urlopen(server + sys.argv[2], context=ctx, timeout=10) as r:
    sys.stdout.write(r.read().decode())
PY
kube() { "${cluster_lab[@]}" operator python3 "$tmp/get.py" "$tmp/kc" "$1"; }
is "$(kube /readyz)" ok "and works against the VIP, certificate verified"
is "$(kube /api/v1/nodes | python3 -c 'import json, sys
print(len(json.load(sys.stdin)["items"]))')" 3 "as somebody who may list nodes"
sed -n 's/.*certificate-authority-data: "\(.*\)"/\1/p' "$tmp/kc" | base64 -d >"$tmp/ca.pem"
ok "kv06_vip_in_certificate: openssl accepts it for the VIP's address" \
	"${cluster_lab[@]}" operator sh -c "openssl s_client -connect 192.0.2.9:6443 \
	-CAfile '$tmp/ca.pem' -verify_ip 192.0.2.9 -verify_return_error </dev/null"

gb manifests -f "$spec" >"$tmp/manifests" 2>/dev/null
for node in $nodes; do
	is "$(node_exec "$node" sh -c 'cd /var/lib/rancher/k3s/server/manifests &&
		cat garboard-kube-vip.yaml && echo --- &&
		cat garboard-cilium.yaml && echo --- && cat garboard-egress.yaml' |
		sha256sum)" "$(sha256sum <"$tmp/manifests")" \
		"$node: manifests prints what is in the auto-deploy directory"
done
verb status
diag "$(tail -1 "$tmp/out")"
like "$out" '3 nodes, 3 connected, .* 0 held' "status counts the nodes"

# ---- the egress policy ----
cat >"$tmp/api.py" <<'PY'
# api.py KUBECONFIG PATH EDIT: what is there with EDIT (Python, `o`) applied.
import json, sys, urllib.request
sys.argv, (kc, path, edit) = [sys.argv[0], sys.argv[1], "/readyz"], sys.argv[1:]
exec(open(sys.argv[0].replace("api.py", "get.py")).read().replace("sys.stdout.write", "str"))
def call(method, body=None):
    q = urllib.request.Request(server + path, body, {"Content-Type": "application/json"}, method=method)
    return json.load(urllib.request.urlopen(q, context=ctx, timeout=10))
for _ in range(8):
    o = call("GET")
    exec(edit)
    try:
        call("PUT", json.dumps(o).encode())
        break
    except urllib.error.HTTPError as e:
        if e.code != 409:
            raise
PY
edit() { "${cluster_lab[@]}" operator python3 "$tmp/api.py" "$tmp/kc" "$1" "$2"; }
policies=/apis/cilium.io/v2/ciliumegressgatewaypolicies
policy=$policies/vpn-egress-steering
field() { # PATH EXPRESSION over `o`
	kube "$1" | python3 -c 'import json, sys
o = json.load(sys.stdin)
print(eval(sys.argv[1]))' "$2"
}
is "$(field $policies '[p["metadata"]["name"] for p in o["items"]]')" \
	"['vpn-egress-steering']" "b83_one_policy: there is exactly one steering policy"
is "$(field $policy '[s["podSelector"]["matchLabels"] for s in o["spec"]["selectors"]]')" \
	"[{'egress-class': 'vpn'}]" "b83_one_policy: one selector, one equality"
is "$(field $policy 'o["spec"]["egressGateway"]')" \
	"{'nodeSelector': {'matchLabels': {'garboard/egress-vpn': 'true'}}, 'interface': 'wg0'}" \
	"b84_gateway_by_label: gateways by label, the interface by name"
is "$(field /api/v1/nodes '[n["metadata"]["name"] for n in o["items"]
	if n["metadata"]["labels"].get("garboard/egress-vpn") == "true"]')" \
	"['server-1']" "b84_gateway_by_label: the gateway carries it, and nobody else"
is "$(field $policy '[a for a in ("10.42.3.4", "10.43.0.1", "10.44.0.9", "192.0.2.9", "192.0.2.11", "10.64.0.3", "172.16.0.1", "192.168.9.9", "10.64.0.1", "198.51.100.7")
	if any(__import__("ipaddress").ip_address(a) in __import__("ipaddress").ip_network(n) for n in o["spec"]["excludedCIDRs"])]')" \
	"['10.42.3.4', '10.43.0.1', '10.44.0.9', '192.0.2.9', '192.0.2.11', '10.64.0.3', '172.16.0.1', '192.168.9.9']" \
	"b86_own_addresses_excluded: what is local stays so, the class's resolver does not"
is "$(field $policy 'o["metadata"]["annotations"]["garboard/tunnel-addresses"]')" \
	"server-1=10.64.0.2" "it says for which address of the tunnel it was applied"

tunnel_address() { # FROM TO
	nsenter -n -t "$("${cluster_lab[@]}" pid server-1)" sh -ec "
		ip addr add $2/32 dev wg0; ip addr del $1/32 dev wg0"
}
reports() { # ADDRESS: that server-1 told it
	[ "$(gb node describe server-1 -o json | python3 -c 'import json, sys
print(json.load(sys.stdin)["tunnels"])')" = "['wg0 $1']" ]
}
tunnel_address 10.64.0.2 10.64.0.3
ok "the node reports its tunnel's new address" wait_until 20 reports 10.64.0.3
verb verify
is "$rc" 1 "then verify fails"
like "$out" 'FAIL one egress policy .*server-1=10\.64\.0\.3, the policy was applied for server-1=10\.64\.0\.2' \
	"and names both addresses, and the remedy"
up
is "$rc" 0 "up applies it again" || shown
is "$(field $policy 'o["metadata"]["annotations"]["garboard/tunnel-addresses"]')" \
	"server-1=10.64.0.3" "for the new address"
tunnel_address 10.64.0.3 10.64.0.2
ok "and the old one comes back" wait_until 20 reports 10.64.0.2
up
is "$rc" 0 "with another run" || shown
edit $policy 'o["spec"]["egressGateway"]["interface"] = "eth0"'
verb verify
like "$out" 'FAIL one egress policy .*somebody edited the policy' \
	"b60_applied_and_is_not: an edited policy fails verify, though its Addon is applied"
up
is "$rc" 0 "up puts it right" || shown
is "$(field $policy 'o["spec"]["egressGateway"]["interface"]')" wg0 "as the spec has it"
edit /api/v1/namespaces/kube-system/configmaps/cilium-config \
	'o["data"]["enable-host-legacy-routing"] = "false"'
verb verify
is "$rc" 1 "ks13_bpf_host_routing: a mode that goes around netfilter fails verify"
like "$out" 'FAIL cilium runs in a mode .*enable-host-legacy-routing is false: .*go around netfilter .*bpf.hostLegacyRouting: true' \
	"ks13_bpf_host_routing: with the key, what follows, and the remedy"
edit /api/v1/namespaces/kube-system/configmaps/cilium-config \
	'o["data"]["enable-host-legacy-routing"] = "true"'
edit /api/v1/nodes/server-2 'o["metadata"]["labels"]["garboard/egress-vpn"] = "true"'
verb verify
like "$out" 'FAIL the class.s gateways .*node server-2 is no gateway and has the label' \
	"a node that is no gateway and has the label fails verify"
up
is "$rc" 0 "up takes it off" || shown
verb verify
is "$rc" 0 "and all of it holds again" || shown

# ---- a path that no layer sees ----
uncovered() { verb status; grep -qE "server-2 .*not covered .*vx9 \(vxlan\)" "$tmp/out"; }
if node_exec server-2 ip link add vx9 type vxlan id 9 dstport 4799 local 192.0.2.12; then
	node_exec server-2 ip link set vx9 up
	ok "mn03_not_covered: a node that wraps packets is not shown as in sync" \
		wait_until 20 uncovered || shown
	verb verify
	is "$rc" 1 "mn03_not_covered: and fails verify"
	like "$out" 'FAIL no path of the class .*server-2: vx9 \(vxlan\) wraps packets' \
		"mn03_not_covered: by name"
	node_exec server-2 ip link del vx9
	covered() { ! uncovered; }
	ok "mn03_not_covered: until it is gone" wait_until 20 covered || shown
else
	skip "this kernel has no vxlan" 4
fi

# ---- things broken by hand ----
back() { # WHAT NODE BREAK CHECK: CHECK prints the same again, soon
	_want=$(node_exec "$2" sh -c "$4" 2>&1)
	node_exec "$2" sh -c "$3" >/dev/null 2>&1
	_same() { [ "$(node_exec "$2" sh -c "$4" 2>&1)" = "$_want" ]; }
	ok "$1" wait_until 10 _same "$@" ||
		diag "$(node_exec "$2" garboard-agent status)"
}
repairs() {
	node_exec "$1" garboard-agent status | sed -n "s/^$2 .* \([0-9]*\) repairs.*/\1/p"
}
back "sy01_live_sysctl: a value changed by hand comes back" server-2 \
	'echo 0 >/proc/sys/net/ipv4/ip_forward' 'cat /proc/sys/net/ipv4/ip_forward'
like "$(repairs server-2 sysctl)" '^[1-9]' "and is counted as a repair"
back "its file too, when removed" server-2 'rm /etc/sysctl.d/90-garboard.conf' \
	'grep ip_forward /etc/sysctl.d/90-garboard.conf'
back "the time zone" server-3 'ln -sfn /usr/share/zoneinfo/Asia/Tokyo /etc/localtime' \
	'readlink /etc/localtime | sed "s|.*zoneinfo/||"'
back "ks14_table_flushed: a flushed ruleset leaves the class closed" server-2 \
	'nft flush ruleset; nft delete table inet garboard; nft delete table netdev garboard_egress_eth0' \
	'nft list ruleset'
back "rt01_rule_removed: a routing rule of the class" server-1 \
	'ip rule del pref 18200' 'ip rule | grep 18200:'
back "rt03_last_resort: the unreachable default of its table" server-1 \
	'ip route flush table 51820' 'ip route show table 51820 | grep unreachable'
back "rt03_last_resort: and the rule outlives the tunnel" server-1 \
	'ip link del wg0' 'ip rule | grep 18200:; ip route show table 51820 | grep unreachable'
whole_tunnel server-1

# ---- who can read the secrets ----
token=$(node_exec server-1 cat /etc/rancher/k3s/garboard-token | sed 's/.*://')
adminkey=$(sed -n 's/.*client-key-data: "\(.*\)"/\1/p' "$tmp/kc")
printf '%s\n' "$adminkey" | base64 -d | sed '/^-/d' | head -1 >"$tmp/needles"
printf '%s\n%s\n' "$token" "${adminkey:40:60}" >>"$tmp/needles"
ok "the token and the key to look for are there" \
	test ${#token} -ge 32 -a "$(awk 'length >= 32' "$tmp/needles" | wc -l)" = 3
# Searched for by an ordinary user, with the needles on standard input; /run/
# standin is not a node's own, it is where the stand-in's machines meet.
for node in $nodes; do
	found=$(node_exec "$node" sh -c '
		d=$(mktemp -d); chmod 755 "$d"; cat >"$d/needles"; chmod 600 "$d/needles"
		chown nobody "$d/needles"
		cd /; runuser -u nobody -- sh -c "
		grep -rlsF -D skip -f $d/needles /etc /usr/local /var /home /root /opt /tmp \
			/run/systemd /run/garboard /run/k3s /dev/shm --exclude=needles
		cat /proc/[0-9]*/cmdline 2>/dev/null | tr \"\\0\" \"\\n\" |
			grep -qF -f $d/needles && echo argv"
		for p in /proc/[0-9]*/environ; do
			grep -qsF -f "$d/needles" "$p" && echo "$p"
		done
		journalctl -o export --no-pager | grep -aqF -f "$d/needles" && echo journal
		rm -r "$d"' <"$tmp/needles")
	is "$found" "" "k3_04_token_unreadable: $node: no file, argv, environment or journal has it"
done
hidden() { ! grep -aqF -f "$tmp/needles" "$@"; }
ok "nor what up, serve and init said" hidden "$tmp/up" "$cluster_dir"/*.log
for v in "status" "node list" "node describe server-1" "plan" "verify" "events" "doctor"; do
	gb $v -f "$spec" -o json
done >"$tmp/json" 2>&1
ok "nor any verb's -o json" hidden "$tmp/json"
ok "nor the operator's state, where secrets lie sealed" \
	sh -c "! grep -raqF -f '$tmp/needles' '$cluster_dir/state'"
is "$(find "$cluster_dir/state" ! -perm 600 ! -type d ! -type l | wc -l)" 0 \
	"all of which is the owner's alone"
done_testing

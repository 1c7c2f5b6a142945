# whole.sh - what the tests of the whole bring-up have in common. Source it
# after tap.sh; it brings cluster.sh with it.
#
# whole_init N       skip or make a cluster of N enrolled machines
# whole_class NODE   give the spec an egress class, NODE its gateway, and NODE
#                    a tunnel device of a kind that every kernel has
# up, check, plan    garboard VERB -f SPEC; output in $out, status in $rc
# journal NODE UNIT  what a unit said, escapes and all
# params JSON        what the stand-in should do from now on
# serve_again        a coordinator after one was ended, listening
# need_faults N      is the stand-in there? if not, N tests are skipped

here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d /var/tmp/garboard-test.XXXXXX)
CLUSTER_DIR=$tmp/cluster
. "$here/cluster.sh"
spec=$cluster_dir/cluster.yaml

whole_end() {
	cluster_end
	rm -rf --one-file-system "$tmp"
}

whole_init() { # N
	[ "$(id -u)" = 0 ] || skip_all "needs root"
	[ -x "$cluster_build/garboard" ] || skip_all "garboard is not built"
	[ -n "${K3S:-}" ] || [ -x "$cluster_build/tests/k3s" ] ||
		skip_all "the stand-in for k3s is not built"
	at_exit whole_end
	cluster_make "$1" $$ || {
		tail -n 5 "$cluster_dir"/*.log | sed 's/^/# /'
		bail "no cluster of $1 machines"
	}
}

# A tunnel device that nobody serves: its packets go nowhere. The machine has
# no /dev/net/tun of its own, so it is made from outside.
whole_tunnel() { # NODE
	nsenter -n -t "$("${cluster_lab[@]}" pid "$1")" sh -ec '
		ip tuntap add dev wg0 mode tun
		ip addr add 10.64.0.2/32 dev wg0
		ip link set wg0 up'
}

whole_class() { # NODE
	whole_tunnel "$1"
	python3 - "$spec" "$1" <<-'PY'
	import sys
	path, gateway = sys.argv[1:]
	text = open(path).read()
	assert "egress:" not in text
	egress = f"""egress:
	  classes:
	    vpn:
	      pods: {{label: {{egress-class: vpn}}, pool: {{name: vpn, cidr: 10.44.0.0/20}}}}
	      sources: [192.0.2.128/26]
	      gateways: [{gateway}]
	      tunnel: wg0
	      dns: [10.64.0.1]
	  tunnels:
	    wg0:
	      kind: wireguard
	      endpoints: ["198.51.100.7:51820/udp"]
	      table: 51820
	      rulePriority: 18200
	  uplinks: [eth0]
	"""
	open(path, "w").write(text.replace("nodes:\n", egress + "nodes:\n", 1))
	PY
}

# The output goes to a file first: what is in it is a subject of some tests.
verb() {
	rc=0
	gb "$@" -f "$spec" >"$tmp/out" 2>&1 || rc=$?
	out=$(cat "$tmp/out")
}
up() { verb up "$@"; }
shown() { diag "$(tail -n "${1:-12}" "$tmp/out")"; }

journal() { # NODE UNIT
	node_exec "$1" journalctl -u "$2" -o cat --no-pager
}

params() {
	printf '%s\n' "$1" >"$cluster_dir/standin/params.new"
	mv "$cluster_dir/standin/params.new" "$cluster_dir/standin/params.json"
}

need_faults() { # COUNT
	[ -z "${K3S:-}" ] && return
	skip "needs a fault of the stand-in, and K3S is given" "$1"
	return 1
}

# A verb that finds no coordinator starts one: none is asked before it is up.
serve_again() {
	cluster_serve_start
	cluster_wait 20 grep -q 'listening on port' "$cluster_dir/serve.log"
}

# A number of systemd's about a unit of a node.
unit() { # NODE UNIT PROPERTY
	node_exec "$1" systemctl show -p "$3" --value "$2"
}

nodes=$(cluster_nodes 3)

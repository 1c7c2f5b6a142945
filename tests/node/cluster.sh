# cluster.sh - a lab that garboard can bring up: three machines, enrolled.
# Sourced by tests of the whole and by the demo; needs tests/lib/tap.sh only
# where a caller uses it.
#
#   BUILD            build directory (build)
#   K3S              a real k3s to use instead of the stand-in
#   CLUSTER_SPEED    factor by which the stand-in and our waits are sped up
#
# cluster_make N      boot N machines, install the programs, enrol them
# cluster_spec FILE   write the spec of such a lab
# gb ARGS...          garboard on the operator's host
# node_exec NODE CMD  a command on a machine
# cluster_end         end and remove everything

cluster_top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cluster_build=$(cd "$cluster_top" && cd "${BUILD:-build}" && pwd)
cluster_dir=${CLUSTER_DIR:-/var/tmp/garboard-cluster.$$}
cluster_speed=${CLUSTER_SPEED:-10}
cluster_lab=("$cluster_top/tests/lab/lab" --dir "$cluster_dir/lab")
cluster_serve=

gb() {
	"${cluster_lab[@]}" operator env GARBOARD_TIME_SCALE="$cluster_speed" \
		"$cluster_build/garboard" --state "$cluster_dir/state" "$@"
}

node_exec() { "${cluster_lab[@]}" exec "$@"; }

cluster_nodes() { # N
	local i
	for i in $(seq 1 "$1"); do echo "server-$i"; done
}

# Modules, iscsid and all but net.* are the host's in a lab: the first two are
# observed and waived by name, the sysctls are wanted as they are.
cluster_host_sysctls() {
	local key
	for key in fs.inotify.max_user_instances fs.inotify.max_user_watches \
		vm.overcommit_memory vm.panic_on_oom kernel.panic \
		kernel.panic_on_oops kernel.keys.root_maxkeys \
		kernel.keys.root_maxbytes; do
		echo "    $key: $(cat "/proc/sys/${key//.//}")"
	done
}

cluster_spec() { # N FILE
	local i sum
	sum=$(sha256sum "$cluster_k3s" | cut -d' ' -f1)
	{
		cat <<-X
		apiVersion: garboard/v1
		cluster: demo
		coordinator:
		  addresses: ["192.0.2.5:7643"]
		controlPlane:
		  endpoint: 192.0.2.9
		k3s:
		  version: v1.36.4+k3s1
		  sha256: {amd64: $sum}
		  source: image
		kubeVip: {version: v1.2.3}
		cilium:
		  version: 1.20.1
		  values: {hubble: {enabled: true}}
		network:
		  podCidr: 10.42.0.0/16
		  serviceCidr: 10.43.0.0/16
		  nodeCidrs: [192.0.2.0/24]
		baseline:
		  timezone: Etc/UTC
		  sysctl:
		X
		cluster_host_sysctls
		cat <<-X
		  modes: {modules: observe, iscsid: observe}
		  waivers: [modules, iscsid]
		nodes:
		X
		for i in $(seq 1 "$1"); do
			printf '  - {name: server-%s, role: server, address: 192.0.2.%s, match: {mac: "52:54:00:00:00:%s"}}\n' \
				"$i" "$((10 + i))" "$((10 + i))"
		done
	} >"$2"
}

# The image of a machine: programs, units, bundle, and k3s in its place.
cluster_image() {
	local image=$cluster_dir/image
	make -s -C "$cluster_top" BUILD="$cluster_build" DESTDIR="$image" \
		install >"$cluster_dir/install.log" 2>&1 || return 1
	rm -rf "$image/usr/bin" "$image/usr/share"
	install -D -m 755 "$cluster_k3s" "$image/usr/local/bin/k3s"
	tar -C "$image" --owner=root:0 --group=root:0 -cf "$cluster_dir/image.tar" .
}

# What `enroll bundle` writes goes into the image; here one for each machine.
cluster_bundle() { # NODE
	gb enroll bundle -f "$cluster_dir/cluster.yaml" --token --node "$1" \
		-o "$cluster_dir/bundle-$1" &&
	tar -C "$cluster_dir/bundle-$1" --owner=root:0 --group=root:0 -cf - . |
	node_exec "$1" sh -ec 'mkdir -p -m 700 /etc/garboard/bundle
		tar -C /etc/garboard/bundle -xf - --no-same-owner'
}

cluster_install() { # NODE
	cluster_bundle "$1" &&
	node_exec "$1" tar -C / -xf - --no-same-owner <"$cluster_dir/image.tar" &&
	node_exec "$1" sh -ec '
		systemd-sysusers
		systemd-tmpfiles --create
		systemctl daemon-reload
		systemctl enable --now garboard-agent garboard-link'
}

cluster_connected() { # N
	[ "$(gb node list -o json 2>/dev/null |
		python3 -c 'import json,sys
print(sum(1 for n in json.load(sys.stdin) if n["state"] == "connected"))')" = "$1" ]
}

cluster_wait() { # SECONDS CMD...
	local end=$(($(date +%s) + $1))
	shift
	until "$@"; do
		[ "$(date +%s)" -lt "$end" ] || return 1
		sleep 0.1
	done
}

# Which k3s, and what the stand-in needs to know.
cluster_prepare() {
	mkdir -p "$cluster_dir/standin"
	if [ -n "${K3S:-}" ]; then
		cluster_k3s=$K3S
		cluster_speed=1
	else
		cluster_k3s=$cluster_build/tests/k3s
		printf '{"speed": %s}\n' "$cluster_speed" \
			>"$cluster_dir/standin/params.json"
	fi
}

cluster_serve_start() {
	"${cluster_lab[@]}" operator "$cluster_build/garboard" \
		--state "$cluster_dir/state" serve \
		>"$cluster_dir/serve.log" 2>&1 &
	cluster_serve=$!
	# A verb that came first would start a coordinator of its own.
	cluster_wait 15 test -S "$cluster_dir/state/control.sock"
}

cluster_make() { # N [TIE-PID]
	local node
	cluster_prepare
	"${cluster_lab[@]}" up "$1" --standin "$cluster_dir/standin" \
		--tie "${2:-$$}" >"$cluster_dir/lab.log" 2>&1 || return 1
	cluster_spec "$1" "$cluster_dir/cluster.yaml"
	gb init -f "$cluster_dir/cluster.yaml" >"$cluster_dir/init.log" 2>&1 ||
		return 1
	cluster_serve_start
	cluster_image || return 1
	for node in $(cluster_nodes "$1"); do
		cluster_install "$node" >"$cluster_dir/$node.log" 2>&1 ||
			return 1
	done
	cluster_wait 60 cluster_connected "$1"
}

cluster_end() {
	[ -z "$cluster_serve" ] || kill "$cluster_serve" 2>/dev/null
	"${cluster_lab[@]}" down >/dev/null 2>&1
	rm -rf --one-file-system "$cluster_dir"
}

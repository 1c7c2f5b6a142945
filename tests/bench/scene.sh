#!/bin/sh
# scene.sh BUILD DIR CMD...: a node of one box, converged, in network and
# mount namespaces of its own; then CMD in it, with SPEC, STATE and AGENT
# set. Twelve sysctls, an armed class with its tunnel, modules and iscsid in
# observe (there is no systemd here). Nothing outside is touched.
set -eu
if [ "${SCENE_INSIDE:-}" != yes ]; then
	SCENE_INSIDE=yes exec unshare -nm --propagation private "$0" "$@"
fi
build=$(cd "$1" && pwd) dir=$2
shift 2
export AGENT="$build/garboard-agent" SPEC="$dir/node.yaml" STATE="$dir/state"

mkdir -p "$dir"
mount -t tmpfs scene "$dir"
mkdir "$dir/upper" "$dir/work"
mount -t overlay -o "lowerdir=/etc,upperdir=$dir/upper,workdir=$dir/work" \
	scene /etc
mkdir -p /run/dbus
mount -t tmpfs scene /run/dbus
ln -sfn /usr/share/zoneinfo/Etc/UTC /etc/localtime
echo Etc/UTC > /etc/timezone

ip link set lo up
ip link add eno1 type veth peer name far1
ip link set far1 up
ip link set eno1 up
ip addr add 192.0.2.11/24 dev eno1
ip addr add 2001:db8::11/64 dev eno1 nodad
ip route add default via 192.0.2.1
ip tuntap add dev wg0 mode tun
ip link set wg0 up
ip addr add 10.64.0.2/32 dev wg0
ip addr add fd64::2/128 dev wg0 nodad

{
	cat <<-END
	apiVersion: garboard/v1
	baseline:
	  timezone: Etc/UTC
	  modules: [iscsi_tcp, br_netfilter, overlay, wireguard]
	  storage: longhorn
	  modes: {modules: observe, iscsid: observe}
	  sysctl:
	END
	for key in net/ipv4/ip_forward net/ipv4/conf/all/forwarding \
		net/ipv4/conf/all/rp_filter net/ipv4/conf/default/rp_filter \
		fs/inotify/max_user_instances fs/inotify/max_user_watches \
		vm/overcommit_memory vm/panic_on_oom kernel/panic \
		kernel/panic_on_oops kernel/keys/root_maxkeys \
		kernel/keys/root_maxbytes; do
		printf '    %s: %s\n' "$(echo "$key" | tr / .)" \
			"$(cat /proc/sys/"$key")"
	done
	cat <<-END
	egress:
	  classes:
	    vpn:
	      sources: [198.51.100.64/28]
	      tunnel: wg0
	      dns: [10.64.0.1]
	  tunnels:
	    wg0:
	      kind: wireguard
	      endpoints: ["203.0.113.7:51820/udp"]
	      table: 51820
	      rulePriority: 18200
	  uplinks: [eno1]
	END
} > "$SPEC"
"$AGENT" converge --spec "$SPEC" --state-dir "$STATE" > "$dir/first" 2>&1 ||
	[ $? -eq 1 ] || { cat "$dir/first" >&2; exit 1; }
exec "$@"

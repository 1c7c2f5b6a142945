#!/bin/sh
# k3s as a systemd unit, from READY=1 to what a stop leaves behind. K3S: a
# real k3s to use instead of the stand-in; what needs its parameters skips.
. "$(dirname "$0")/../lib/tap.sh"

here=$(cd "$(dirname "$0")" && pwd)
lab=$here/../lab/lab
[ "$(id -u)" = 0 ] || skip_all "needs root"
[ -z "${K3S:-}" ] || skip_all "the stand-in's own behaviour"

tmp=$(mktemp -d)
export GARBOARD_LAB="$tmp/lab"
at_exit 'rm -rf --one-file-system "$tmp"'
at_exit '"$lab" down'
"$here/../standin/build.sh" "$tmp/k3s"
mkdir "$tmp/shared"
echo '{"speed": 10}' >"$tmp/shared/params.json"

"$lab" up 2 --tie $$ --standin "$tmp/shared" \
	--bind "$tmp/k3s:/usr/local/bin/k3s:ro" >"$tmp/up" 2>&1 ||
	bail "no lab: $(cat "$tmp/up")"

on() { node=$1; shift; "$lab" exec "$node" "$@"; }
install_unit() { # NODE ADDRESS, the other keys on stdin
	{
		echo "node-ip: $2"
		echo "tls-san: [192.0.2.9]"
		echo "flannel-backend: none"
		echo "disable-kube-proxy: true"
		cat
	} >"$tmp/config"
	on "$1" mkdir -p /etc/rancher/k3s
	"$lab" cp "$1" "$tmp/config" /etc/rancher/k3s/config.yaml
	"$lab" cp "$1" "$tmp/unit" /etc/systemd/system/k3s.service
	on "$1" systemctl daemon-reload
}
cat >"$tmp/unit" <<'X'
[Service]
Type=notify
KillMode=process
Delegate=yes
TimeoutStartSec=0
Restart=always
RestartSec=5s
ExecStart=/usr/local/bin/k3s server
X

echo "cluster-init: true" | install_unit server-1 192.0.2.11
like "$(on server-1 k3s --version)" '^k3s version v1\.36\.4\+k3s1 \(standin\)$' \
	"it says which k3s it stands for"
ok "the founder's unit becomes active" on server-1 timeout 60 systemctl start k3s
is "$(on server-1 stat -c %a /etc/rancher/k3s/k3s.yaml)" 600 \
	"the kubeconfig is nobody else's"

token=$(on server-1 cat /var/lib/rancher/k3s/server/token)
printf 'server: https://192.0.2.11:6443\ntoken: %s\n' "${token}x" |
	install_unit server-2 192.0.2.12
on server-2 systemctl start --no-block k3s
restarting() {
	[ "$(on server-2 systemctl show -p SubState --value k3s)" = auto-restart ]
}
ok "a wrong token ends in auto-restart" wait_until 30 restarting
like "$(on server-2 journalctl -u k3s -o cat)" 'level=fatal msg=".*not authorized' \
	"the journal has the cause"

printf 'server: https://192.0.2.11:6443\ntoken: %s\n' "$token" |
	install_unit server-2 192.0.2.12
ok "a joiner's unit becomes active" on server-2 timeout 60 systemctl restart k3s

python3 - "$here/../standin" >"$tmp/kube-vip.yaml" <<'X'
import sys
sys.path.insert(0, sys.argv.pop())
import test_standin
test_standin.VIP = "192.0.2.9"
print(test_standin.kube_vip())
X
"$lab" cp server-1 "$tmp/kube-vip.yaml" \
	/var/lib/rancher/k3s/server/manifests/kube-vip.yaml
carriers() {
	for n in server-1 server-2; do
		on "$n" ip -o addr show dev eth0 | grep -q ' 192\.0\.2\.9/32 ' &&
			echo "$n"
	done
	return 0
}
one_carrier() { [ "$(carriers | wc -l)" = 1 ]; }
ok "one server carries the VIP" wait_until 30 one_carrier
holder=$(carriers)

on "$holder" systemctl stop k3s
like "$(on "$holder" cat /sys/fs/cgroup/system.slice/k3s.service/cgroup.procs)" \
	'^[0-9]+' "a stop of k3s leaves kube-vip running (KillMode=process)"
gone() {
	addresses=$(on "$holder" ip -o addr show dev eth0) || return 1
	! echo "$addresses" | grep -q ' 192\.0\.2\.9/32 '
}
ok "kube-vip lets the VIP go without its API" wait_until 30 gone

ok "k3s starts again beside it" on "$holder" timeout 60 systemctl start k3s
ok "and the VIP is back" wait_until 30 one_carrier
done_testing

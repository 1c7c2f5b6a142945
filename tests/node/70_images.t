#!/bin/bash
# docs/images.md as it stands: the mmdebstrap image is made and booted, twice,
# the mkosi files are what mkosi takes, the cloud-init file is what cloud-init
# takes and carries out. No image has an identity, each machine gets its own.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/debian.sh"

top=$(cd "$(dirname "$0")/../.." && pwd)
lab=$top/tests/lab/lab
[ "$(id -u)" = 0 ] || skip_all "needs root"
build=$(cd "$top" && cd "${BUILD:-build}" && pwd)
ls "$build"/deb/garboard-agent_*.deb >/dev/null 2>&1 || bail "no packages: make deb"
release=$(. /etc/os-release && echo "$VERSION_CODENAME")

tmp=$(mktemp -d /var/tmp/garboard-images.XXXXXX)
export GARBOARD_LAB="$tmp/lab"
serve_pid=
at_exit 'rm -rf --one-file-system "$tmp"'
at_exit '[ -z "$serve_pid" ] || kill $serve_pid 2>/dev/null; "$lab" down'
cd "$tmp" || exit 1
cp "$build"/deb/garboard-agent_*.deb .
cp "$build"/deb/garboard_*.deb coordinator.deb
section() { # TITLE: its indented lines
	sed -n "/^## $1\$/,/^## /s/^    //p" "$top/docs/images.md"
}
part() { # TITLE FILE: the lines behind "# FILE" up to the next such
	section "$1" | awk -v f="# $2" '$0 == f { on = 1; next } /^# mkosi/ { on = 0 } on'
}
on() { "$lab" exec "$@"; }

# ---- a bundle for the image ----

init=$("$build/garboard" --state "$tmp/state" init -c img --listen 0.0.0.0:7643 \
	--address 192.0.2.5:7643 2>&1 &&
	"$build/garboard" --state "$tmp/state" enroll bundle -o bundle 2>&1) ||
	bail "no bundle: $init"

# ---- mmdebstrap ----

# Where packages come from is this machine's matter; the kernel takes a minute
# that only the disk is worth; cloud-init is for the part below; the coordinator
# comes along to see that its package installs, too.
mkdir bin
debian_sources "$release" >sources
debian_apt_conf >apt.conf
cat >bin/mmdebstrap <<X
#!/bin/bash
args=("\$@")
[ -n "\${GARBOARD_LONG:-}" ] || args=("\${args[@]/linux-image-amd64,/}")
args=("\${args[@]/#bookworm/$release}")
exec $(command -v mmdebstrap) --quiet --mode=root --aptopt=$tmp/apt.conf \
	--aptopt='Acquire::Languages "none"' --include=cloud-init,curl \\
	--customize-hook='copy-in $tmp/coordinator.deb /tmp' \\
	--customize-hook='chroot "\$1" apt-get -y install /tmp/coordinator.deb' "\${args[@]}" $tmp/sources
X
chmod 755 bin/mmdebstrap
section mmdebstrap >recipe
ok "the page's mmdebstrap image is made" \
	env PATH="$tmp/bin:$PATH" sh -e recipe || bail "no image"
ok "with its disk" test -s disk.img
rm disk.img
is "$(find root/var/lib/garboard root/var/lib/garboard-link root/etc/garboard -type f 2>/dev/null | sort | xargs)" \
	"root/etc/garboard/bundle/bundle root/etc/garboard/bundle/ca.pem" \
	"the image has the bundle and no identity"
is "$(stat -c '%a %U %s' root/etc/garboard/bundle root/etc/machine-id | sed 's/ [1-9][0-9]*$//' | xargs)" \
	"700 root 644 root 0" "the bundle is root's, machine-id is empty" ||
	diag "$(ls -la root/etc/machine-id root/etc/garboard)"
not_ok "it has no initiator name" test -e root/etc/iscsi/initiatorname.iscsi
is "$(chroot root dpkg-query -Wf '${db:Status-Status}' garboard-agent)" installed \
	"the package is installed in it"
like "$(chroot root garboard version)" '^garboard [0-9]' \
	"the coordinator's package installs in a fresh root, and runs" ||
	diag "$(chroot root garboard version 2>&1)"
not_ok "nothing was left in /tmp" ls root/tmp/*.deb

# ---- two machines of one image ----

for u in console-getty.service getty@tty1.service apt-daily.timer \
	apt-daily-upgrade.timer systemd-networkd.service systemd-udevd.service \
	systemd-udev-trigger.service systemd-udevd-control.socket \
	systemd-udevd-kernel.socket; do
	ln -sf /dev/null "root/etc/systemd/system/$u"
done
"$lab" up 2 --root "$tmp/root" --timeout 120 --tie $$ >up 2>&1 ||
	grep -q 'is degraded' up || bail "no lab: $(cat up)"
"$lab" operator "$build/garboard" --state "$tmp/state" serve >serve 2>&1 &
serve_pid=$!
# A verb that came first would start a coordinator of its own.
wait_until 30 test -S "$tmp/state/control.sock" || bail "no coordinator: $(cat serve)"
g() { "$lab" operator "$build/garboard" --state "$tmp/state" "$@" 2>>err; }
waiting() { [ "$(g enroll list -o json | grep -c '"fingerprint"')" = 2 ]; }
ok "both machines of the image ask to be let in" wait_until 60 waiting ||
	diag "$(g enroll list; on server-1 journalctl -u garboard-link -o cat -n 5)"
ids() { # COMMAND: the different answers of both
	for n in server-1 server-2; do on "$n" sh -c "$1"; done | sort -u | grep -c .
}
is "$(ids 'cat /etc/machine-id')" 2 "each has a machine-id of its own"
is "$(ids 'sha256sum </var/lib/garboard/report.key')" 2 "and keys of its own"
for n in server-1 server-2; do
	fp=$(on $n garboard-agent status -o json |
		sed -n 's/.*"fingerprint": *"\([0-9a-f]*\)".*/\1/p')
	g enroll approve "$fp" --name $n >/dev/null || diag "$n: $fp: $(tail -n 2 err)"
done
connected() { [ "$(g node list | grep -c ' connected')" = 2 ]; }
ok "approved, both are nodes" wait_until 60 connected || diag "$(g node list)"

# ---- an image of a machine that was one ----

on server-2 sh -ec "$(section 'An image taken from a machine that was enrolled' |
	sed -n '1,/machine-id/p')" >clean 2>&1
is $? 0 "the page's cleaning works" || diag "$(cat clean)"
is "$(on server-2 find /var/lib/garboard /var/lib/garboard-link -name '*.key' -o -name '*.crt' \
	-o -name identity -o -name desired | xargs)" "" "and leaves no identity"
is "$(on server-2 stat -c %s /etc/machine-id)" 0 "nor a machine-id"

# ---- mkosi ----

if mkosi --version 2>/dev/null | grep -q '^mkosi 14'; then
	mkdir -p mk/mkosi.extra/root mk/mkosi.extra/etc/garboard
	part mkosi mkosi.conf >mk/mkosi.conf
	part mkosi mkosi.postinst >mk/mkosi.postinst
	chmod 755 mk/mkosi.postinst
	cp garboard-agent_*.deb mk/mkosi.extra/root/garboard-agent.deb
	cp -r bundle mk/mkosi.extra/etc/garboard/
	out=$(cd mk && mkosi summary 2>&1)
	like "$out" 'Remove Files: /etc/iscsi/initiatorname.iscsi' \
		"mkosi takes the page's mkosi.conf" || diag "$out"
	like "$out" 'libprotobuf-c1' "with all of its packages"
	like "$(head -n 1 mk/mkosi.postinst)" '^#!/bin/sh$' "and there is its script"
	depends=$(dpkg-deb -f garboard-agent_*.deb Depends | tr ',' '\n' |
		sed 's/^ *//; s/ .*//' | grep -vE '^(libc6|libsystemd0|libssl3|libcap2|init-system-helpers|systemd.*)$')
	missing=$(for d in $depends; do
		grep -qw "$d" mk/mkosi.conf || echo "$d"; done)
	is "$missing" "" "it names what the package depends on"
else
	skip "mkosi 14 is not installed" 4
fi

# ---- cloud-init ----

{
	echo '#cloud-config'
	section cloud-init | grep -v '^#cloud-config' |
	awk -v b="bundle/bundle" -v c="bundle/ca.pem" '
		/^ *\(what / { while ((getline l <b) > 0) print "      " l; next }
		/^ *\(and into/ { while ((getline l <c) > 0) print "      " l; next }
		{ print }'
} >user-data
"$lab" cp server-1 user-data /root/user-data
out=$(on server-1 cloud-init schema --config-file /root/user-data 2>&1)
like "$out" 'Valid cloud-config' "the page's cloud-init file is valid" || diag "$out"
# Carried out for real, on a machine without a bundle; the mirror is a file.
on server-1 sh -ec 'systemctl stop garboard-link garboard-agent
	garboard-agent reset-identity --confirm
	rm -rf /etc/garboard/bundle; cat >/root/mirror.deb
	sed -i "s|https://mirror.example/[^'"'"']*|file:///root/mirror.deb|" /root/user-data
	mkdir -p /var/lib/cloud/seed/nocloud
	cp /root/user-data /var/lib/cloud/seed/nocloud/user-data
	echo "instance-id: test" >/var/lib/cloud/seed/nocloud/meta-data
	echo "datasource_list: [NoCloud]" >/etc/cloud/cloud.cfg.d/99.cfg
	dpkg -P garboard-agent' <"$(echo garboard-agent_*.deb)" >purged 2>&1 || diag "$(cat purged)"
on server-1 sh -c 'cloud-init init --local; cloud-init init
	cloud-init modules --mode=config; cloud-init modules --mode=final' >cloud 2>&1
is "$(on server-1 sh -c 'stat -c "%a %U" /etc/garboard/bundle /etc/garboard/bundle/bundle | xargs
	dpkg-query -Wf "\${db:Status-Status}" garboard-agent')" \
	"$(printf '700 root 600 root\ninstalled')" "cloud-init carries it out" || diag "$(tail -n 20 cloud)"
is "$(on server-1 cat /etc/garboard/bundle/bundle)" \
	"$(cat bundle/bundle)" "the bundle is the one of the cluster"
asks() { g enroll list | grep -q '[0-9a-f]\{16\}'; }
ok "and the machine asks to be let in" wait_until 60 asks ||
	diag "$(on server-1 systemctl status garboard-link garboard-agent; on server-1 journalctl -u garboard-link -o cat -n 5)"
done_testing

#!/bin/sh
# mkguest.sh: builds, once, the Debian guest that tests/vm boots, and prints
# the directory that holds disk.img, vmlinuz and initrd.img.
#
# The guest is of this machine's own release, with Debian's own kernel, so that
# programs built here run there, on a kernel with modules. The disk is made
# from a directory: no loop device, no mount is needed.
#
#   GARBOARD_VM_CACHE   where guests live (/var/cache/garboard-vm)
set -eu

say() { printf 'mkguest: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

here=$(dirname "$0")
. "$here/../lib/debian.sh"
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
cache=${GARBOARD_VM_CACHE:-/var/cache/garboard-vm}
packages='linux-image-amd64 systemd systemd-sysv dbus udev kmod procps iproute2
	nftables open-iscsi tgt libmnl0 libnftnl11 libprotobuf-c1 libyaml-0-2 tzdata'
case $release in
bookworm) packages="$packages libssl3" ;;
*) packages="$packages libssl3t64" ;;
esac
packages=$(echo $packages | tr ' ' ,)

# The tests travel on a second disk; this unit runs what it finds there and
# turns the machine off. Results go to the second serial line, the console to
# the first.
dress() { # ROOT
	: >"$1/etc/machine-id"
	rm -rf "$1/etc/apt" "$1/var/lib/apt/lists" "$1/var/cache/apt"
	rm -f "$1/etc/iscsi/initiatorname.iscsi"
	echo guest >"$1/etc/hostname"
	echo '/dev/vda / ext4 defaults 0 1' >"$1/etc/fstab"
	mkdir -p "$1/payload"
	cat >"$1/etc/systemd/system/payload.service" <<-'X'
	[Unit]
	Description=Test payload
	After=multi-user.target
	[Service]
	Type=oneshot
	ExecStart=/bin/sh -c 'mount -o ro /dev/vdb /payload && exec /payload/run >/dev/ttyS1 2>&1 </dev/null'
	ExecStopPost=systemctl --no-block poweroff
	TimeoutStartSec=600
	X
	mkdir -p "$1/etc/systemd/system/graphical.target.wants"
	ln -sf ../payload.service \
		"$1/etc/systemd/system/graphical.target.wants/payload.service"
	for u in apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer \
		fstrim.timer dpkg-db-backup.timer systemd-networkd.service \
		tgt.service; do
		ln -sf /dev/null "$1/etc/systemd/system/$u"
	done
	# A guest under emulation needs few drivers to find its disk.
	echo 'MODULES=list' >"$1/etc/initramfs-tools/conf.d/guest"
	printf 'virtio_pci\nvirtio_blk\next4\n' >>"$1/etc/initramfs-tools/modules"
	chroot "$1" update-initramfs -u -k all >/dev/null 2>&1
}

build() { # DIR
	command -v mmdebstrap >/dev/null || die "mmdebstrap is not installed"
	tmp=$(mktemp -d "$cache/.build.XXXXXX")
	trap 'rm -rf --one-file-system "$tmp"' EXIT
	trap 'exit 1' HUP INT TERM
	debian_sources "$release" >"$tmp/sources"
	[ -s "$tmp/sources" ] ||
		die "apt on this machine has no Debian entry for $release"
	debian_apt_conf >"$tmp/apt.conf"
	say "building the $release guest, once"
	mmdebstrap --quiet --mode=root --variant=minbase \
		--aptopt="$tmp/apt.conf" \
		--aptopt='APT::Install-Recommends "false"' \
		--aptopt='Acquire::Languages "none"' \
		--dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' \
		--include="$packages" \
		"$release" "$tmp/root" "$tmp/sources" >"$tmp/log" 2>&1 ||
		{ tail -n 20 "$tmp/log" >&2; die "mmdebstrap failed"; }
	dress "$tmp/root"
	mkdir "$tmp/guest"
	cp "$tmp"/root/boot/vmlinuz-* "$tmp/guest/vmlinuz"
	cp "$tmp"/root/boot/initrd.img-* "$tmp/guest/initrd.img"
	rm -rf "$tmp"/root/boot/*
	truncate -s 2500M "$tmp/guest/disk.img"
	mke2fs -q -t ext4 -d "$tmp/root" "$tmp/guest/disk.img"
	mv -T "$tmp/guest" "$1"
	rm -rf --one-file-system "$tmp"
	trap - EXIT
}

[ "$(id -u)" = 0 ] || die "must run as root"
mkdir -p "$cache"
key=$({ cat "$0" "$here/../lib/debian.sh"; echo "$release"; } |
	sha256sum | cut -c1-16)
guest=$cache/$release-$key
# Guests nobody asked for since yesterday.
find "$cache" -maxdepth 2 -name used -mmin +1440 | while read -r used; do
	[ "${used%/used}" = "$guest" ] || rm -rf --one-file-system "${used%/used}"
done
if [ ! -d "$guest" ]; then
	exec 9>"$cache/.lock"
	flock 9
	[ -d "$guest" ] || build "$guest"
	exec 9>&-
fi
touch "$guest/used"
echo "$guest"

#!/bin/sh
# mkguest.sh [RELEASE]: builds, once, a Debian guest that tests/vm boots, and
# prints the directory that holds disk.img, vmlinuz and initrd.img. RELEASE
# defaults to this machine's own.
#
# The guest has Debian's own kernel, with modules. The disk is made from a
# directory: no loop device, no mount is needed.
#
#   GARBOARD_VM_CACHE   where guests live (/var/cache/garboard-vm)
set -eu

say() { printf 'mkguest: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

here=$(dirname "$0")
. "$here/../lib/debian.sh"
release=${1:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
cache=${GARBOARD_VM_CACHE:-/var/cache/garboard-vm}
packages='linux-image-amd64 systemd systemd-sysv dbus udev kmod procps iproute2
	nftables open-iscsi tgt tzdata e2fsprogs libmnl0 libnftnl11 libprotobuf-c1
	libyaml-0-2 libsqlite3-0 libjansson4'
# The 64-bit time_t transition renamed these after Debian 12.
case $release in
bookworm) packages="$packages libssl3 libcurl4 libmicrohttpd12" ;;
*) packages="$packages libssl3t64 libcurl4t64 libmicrohttpd12t64" ;;
esac

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
	TimeoutStartSec=1200
	X
	mkdir -p "$1/etc/systemd/system/graphical.target.wants"
	ln -sf ../payload.service \
		"$1/etc/systemd/system/graphical.target.wants/payload.service"
	for u in apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer \
		fstrim.timer dpkg-db-backup.timer systemd-networkd.service \
		tgt.service; do
		ln -sf /dev/null "$1/etc/systemd/system/$u"
	done
	# Loading a dozen modules takes long on a host that has much else to do.
	mkdir -p "$1/etc/systemd/system/systemd-modules-load.service.d"
	printf '[Service]\nTimeoutSec=15min\n' \
		>"$1/etc/systemd/system/systemd-modules-load.service.d/slow.conf"
	# A guest under emulation needs few drivers to find its disk.
	echo 'MODULES=list' >"$1/etc/initramfs-tools/conf.d/guest"
	printf 'virtio_pci\nvirtio_blk\next4\n' >>"$1/etc/initramfs-tools/modules"
	chroot "$1" update-initramfs -u -k all >/dev/null 2>&1
}

build() { # DIR
	tmp=$(mktemp -d "$cache/.build.XXXXXX")
	trap 'rm -rf --one-file-system "$tmp"' EXIT
	trap 'exit 1' HUP INT TERM
	say "building the $release guest, once"
	debian_root "$release" minbase "$tmp" "$packages" >&2 ||
		die "no root of $release"
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
	exec 9>"$cache/.lock-$release"
	flock 9
	[ -d "$guest" ] || build "$guest"
	exec 9>&-
fi
touch "$guest/used"
echo "$guest"

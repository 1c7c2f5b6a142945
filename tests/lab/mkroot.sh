#!/bin/sh
# mkroot.sh [RELEASE [DIR]]: the Debian root that every lab node lies on.
#
# Builds the root once, keeps it in the cache and prints its path. With DIR,
# DIR becomes a symbolic link to it. RELEASE defaults to the host's own, so
# that programs built here find the same libraries there.
#
# The machine's own apt decides where packages come from: its parsed source
# entries (either file format), proxy settings and credentials are used for the
# build and are not left in the root.
#
#   GARBOARD_CACHE         where roots live (/var/cache/garboard-lab)
#   GARBOARD_LAB_EXTRA     Debian packages that this root has besides: it is
#                          then a root of its own, and the ordinary one stays
#                          small. None of their units starts at boot.
#   GARBOARD_LAB_SOURCES   a one-line-style sources file to use instead
set -eu

say() { printf 'mkroot: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

packages='
	systemd systemd-sysv dbus libnss-systemd procps kmod libcap2-bin tzdata
	iproute2 iputils-ping nftables wireguard-tools netbase
	libmnl0 libnftnl11 libprotobuf-c1 libyaml-0-2 libsqlite3-0 libjansson4
	libmicrohttpd12 python3-minimal python3-yaml python3-cryptography
	apt openssh-server'

release=${1:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
link=${2:-}
cache=${GARBOARD_CACHE:-/var/cache/garboard-lab}

# The 64-bit time_t transition renamed these after Debian 12.
case $release in
bookworm) packages="$packages libssl3 libcurl4" ;;
*)	packages="$packages libssl3t64 libcurl4t64"
	packages=$(echo "$packages" | sed 's/libmicrohttpd12/&t64/') ;;
esac
packages=$(echo $packages ${GARBOARD_LAB_EXTRA:-})

build() { # ROOT
	command -v mmdebstrap >/dev/null || die "mmdebstrap is not installed"
	tmp=$(mktemp -d "$cache/.build.XXXXXX")
	trap 'rm -rf --one-file-system "$tmp"' EXIT
	trap 'exit 1' HUP INT TERM
	if [ -n "${GARBOARD_LAB_SOURCES:-}" ]; then
		cp "$GARBOARD_LAB_SOURCES" "$tmp/sources"
	else
		debian_sources "$release" >"$tmp/sources"
	fi
	[ -s "$tmp/sources" ] ||
		die "apt on this machine has no Debian entry for $release"
	debian_apt_conf >"$tmp/apt.conf"

	say "building the $release root, once ($(wc -w <<-X
		$packages
		X
	) packages)"
	mmdebstrap --quiet --mode=root --variant=essential \
		--aptopt="$tmp/apt.conf" \
		--aptopt='APT::Install-Recommends "false"' \
		--aptopt='Acquire::Languages "none"' \
		--dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' \
		--setup-hook='for f in /etc/apt/auth.conf /etc/apt/auth.conf.d; do
			[ ! -e $f ] || cp -r $f "$1/etc/apt/"; done' \
		--include="$(echo "$packages" | tr ' ' ,)" \
		"$release" "$tmp/root" "$tmp/sources" >"$tmp/log" 2>&1 ||
		{ tail -n 20 "$tmp/log" >&2; die "mmdebstrap failed"; }
	dress "$tmp/root"
	# rename(2) onto the final name: a reader sees all of it or nothing.
	mv -T "$tmp/root" "$1"
	rm -rf --one-file-system "$tmp"
	trap - EXIT
}

# Roots nobody asked for since yesterday, and what a killed build left. Under
# the lock: no build is running.
prune() {
	find "$cache" -maxdepth 1 -name '*.used' -mmin +1440 |
	while read -r used; do
		rm -rf --one-file-system "${used%.used}" "$used"
	done
	grep -q " $cache/.build" /proc/self/mountinfo ||
		rm -rf --one-file-system "$cache"/.build.*
}

# What makes the root a node: quiet, without a console, without an identity.
dress() { # ROOT
	# Neither credentials nor a trace of where packages came from; apt
	# installs what it is given as a file, and knows nothing else.
	rm -rf "$1/etc/apt" "$1/var/lib/apt/lists" "$1/var/cache/apt"
	mkdir -p "$1/etc/apt/apt.conf.d" "$1/etc/apt/preferences.d" \
		"$1/etc/apt/sources.list.d" "$1/var/lib/apt/lists/partial" \
		"$1/var/cache/apt/archives/partial"
	# A test that wants an sshd makes its keys and starts it.
	rm -f "$1"/etc/ssh/ssh_host_* "$1"/etc/systemd/system/sshd.service \
		"$1"/etc/systemd/system/*.wants/ssh.service
	rm -f "$1/etc/hostname" "$1/etc/machine-id" "$1/etc/resolv.conf"
	rm -f "$1/var/lib/dbus/machine-id" "$1"/var/log/*.log
	: >"$1/etc/resolv.conf"
	: >"$1/etc/machine-id"
	mkdir -p "$1/build" "$1/var/log/journal"
	# Debugfs and its like are the host's, and none of a node's business.
	for u in console-getty.service getty@tty1.service getty.target \
		 systemd-firstboot.service dpkg-db-backup.timer \
		 sys-kernel-debug.mount sys-kernel-tracing.mount \
		 sys-fs-fuse-connections.mount dev-hugepages.mount \
		 e2scrub_all.timer fstrim.timer \
		 apt-daily.timer apt-daily-upgrade.timer; do
		ln -sf /dev/null "$1/etc/systemd/system/$u"
	done
	[ -z "${GARBOARD_LAB_EXTRA:-}" ] ||
		find "$1/etc/systemd/system" -path '*.wants/*' -delete
	mkdir -p "$1/etc/systemd/journald.conf.d"
	printf '[Journal]\nSystemMaxUse=32M\nSystemMaxFileSize=4M\n' \
		>"$1/etc/systemd/journald.conf.d/lab.conf"
	mkdir -p "$1/etc/systemd/system.conf.d"
	printf '[Manager]\nDefaultTimeoutStopSec=15s\n' \
		>"$1/etc/systemd/system.conf.d/lab.conf"
	# Without CAP_SYS_BOOT a reboot and a poweroff look alike from outside.
	hook=$1/usr/lib/systemd/system-shutdown/lab
	mkdir -p "${hook%/*}"
	printf '#!/bin/sh\necho "$1" >/run/host/verb\n' >"$hook"
	chmod 755 "$hook"
}

[ "$(id -u)" = 0 ] || die "must run as root"
. "$(dirname "$0")/../lib/debian.sh"

mkdir -p "$cache"
key=$({ cat "$0"; echo "$release $packages"; dpkg --print-architecture; } |
	sha256sum | cut -c1-16)
root=$cache/$release-$key
if [ ! -d "$root" ]; then
	exec 9>"$cache/.lock"
	flock 9
	prune
	[ -d "$root" ] || build "$root"
	exec 9>&-
fi
touch "$root.used"
[ -z "$link" ] || ln -sfn "$root" "$link"
echo "$root"

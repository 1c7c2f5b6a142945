#!/bin/sh
# mkbuild.sh RELEASE: makes, once, a Debian root that has what debian/control
# names as Build-Depends, and what the unit tests need; prints its path.
#
#   GARBOARD_VM_CACHE   where roots live (/var/cache/garboard-vm)
set -eu

say() { printf 'mkbuild: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

here=$(dirname "$0")
. "$here/../lib/debian.sh"
release=$1
cache=${GARBOARD_VM_CACHE:-/var/cache/garboard-vm}

# One package a line, without versions and profiles.
packages=$(sed -n '/^Build-Depends:/,/^[^ ]*: /s/^ \([a-z0-9.+-]*\).*,$/\1/p' \
	"$here/../../debian/control")
packages=$(echo $packages python3 perl openssl tzdata)

build() { # DIR
	tmp=$(mktemp -d "$cache/.build.XXXXXX")
	trap 'rm -rf --one-file-system "$tmp"' EXIT
	trap 'exit 1' HUP INT TERM
	say "making a $release root to build in, once"
	debian_root "$release" buildd "$tmp" "$packages" >&2 ||
		die "no root of $release"
	rm -rf "$tmp/root/var/lib/apt/lists" "$tmp"/root/var/cache/apt/*
	rm -rf "$tmp/root/etc/apt"
	mkdir "$tmp/root/src" "$tmp/root/obj"
	mv -T "$tmp/root" "$1"
	rm -rf --one-file-system "$tmp"
	trap - EXIT
}

[ "$(id -u)" = 0 ] || die "must run as root"
mkdir -p "$cache"
key=$({ cat "$0" "$here/../lib/debian.sh"; echo "$release $packages"; } |
	sha256sum | cut -c1-16)
root=$cache/build-$release-$key
if [ ! -d "$root" ]; then
	exec 9>"$cache/.lock-build-$release"
	flock 9
	[ -d "$root" ] || build "$root"
	exec 9>&-
fi
touch "$root/used"
echo "$root"

#!/bin/sh
# The tree on Debian 13: it builds there from what debian/control names,
# without a warning (gcc 14). Objects are kept.
. "$(dirname "$0")/../lib/tap.sh"

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
[ "$(id -u)" = 0 ] || skip_all "needs root, for a Debian root"
unshare -m true 2>/dev/null || skip_all "cannot make namespaces here"
build=$(cd "$top" && mkdir -p "${BUILD:-build}/trixie" &&
	cd "${BUILD:-build}/trixie" && pwd)
root=$("$here/mkbuild.sh" trixie) || bail "no root to build in"
log=$(mktemp)
at_exit 'rm -f "$log"'

# The tree is bound read-only: nothing is made outside of /obj.
inside() { # SHELL-WORDS
	unshare -m --propagation private sh -ec '
		mount --bind "$1" "$3/src"
		mount -o remount,bind,ro "$3/src"
		mount --bind "$2" "$3/obj"
		mount --rbind /dev "$3/dev"
		mount -t proc proc "$3/proc"
		mount -t tmpfs tmpfs "$3/tmp"
		exec chroot "$3" sh -c "cd /src && $4"' - \
		"$top" "$build" "$root" "$1" >"$log" 2>&1
}
ok "it builds with gcc 14, warnings being errors, and so do its tests" \
	inside "make -j2 BUILD=/obj all tests" || diag "$(tail -n 30 "$log")"
done_testing

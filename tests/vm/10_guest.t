#!/bin/bash
# A Debian guest with a real kernel: modules are loaded and persisted, the
# initiator name is made before iscsid, and the second look finds nothing to
# do (A07, A10, MO-02, IS-01). One boot; the guest prints TAP of its own.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$here/../.." && cd "${BUILD:-build}" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

if [ "$(id -u)" != 0 ]; then
	echo "1..0 # SKIP must run as root, to build the guest's disk"
	exit 0
fi
mkdir "$tmp/payload"
cp "$build/garboard-agent" "$build/garboard-agentd" "$tmp/payload/"
cp "$here/guest-run" "$tmp/payload/run"
cp "$here/guest-node.yaml" "$tmp/payload/node.yaml"
if ! "$here/boot" "$tmp/payload" "$tmp/out" 400 >"$tmp/boot.log" 2>&1; then
	echo "not ok 1 - the guest ran its tests and turned itself off"
	sed 's/^/# /' "$tmp/boot.log"
	tail -n 15 "$tmp/out/console" | sed 's/^/# console: /'
	sed 's/^/# results: /' "$tmp/out/results"
	echo "1..1"
	exit 1
fi
tr -d '\r' <"$tmp/out/results"

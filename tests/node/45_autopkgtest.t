#!/bin/bash
# debian/tests by autopkgtest itself, over ssh into a machine of the lab that
# has both packages; its root has dpkg-dev besides, which autopkgtest wants.
. "$(dirname "$0")/../lib/tap.sh"

[ "$(id -u)" = 0 ] || skip_all "needs root"
top=$(cd "$(dirname "$0")/../.." && pwd)
lab=$top/tests/lab/lab
build=$(cd "$top" && cd "${BUILD:-build}" && pwd)
command -v autopkgtest >/dev/null || bail "no autopkgtest: make deps"

tmp=$(mktemp -d)
export GARBOARD_LAB="$tmp/lab"
at_exit 'rm -rf --one-file-system "$tmp"'
at_exit '"$lab" down'
mkdir "$tmp/x" "$tmp/src"
cp "$build"/deb/garboard-agent_*.deb "$build"/deb/garboard_*.deb "$tmp/x" ||
	bail "no packages: make deb"
cp -r "$top/debian" "$tmp/src/"
root=$(GARBOARD_LAB_EXTRA="dpkg-dev apt-utils" "$top/tests/lab/mkroot.sh") ||
	bail "no root"
"$lab" up 1 --root "$root" --tie $$ --bind "$tmp/x:/x" >"$tmp/up" 2>&1 ||
	bail "no lab: $(cat "$tmp/up")"
ssh-keygen -q -t ed25519 -N '' -f "$tmp/key"
"$lab" exec server-1 sh -ec 'ssh-keygen -A >/dev/null; mkdir -p -m 700 /root/.ssh
	cat >/root/.ssh/authorized_keys; systemctl start ssh; dpkg -i /x/*.deb' \
	<"$tmp/key.pub" >"$tmp/made" 2>&1 || bail "no machine: $(cat "$tmp/made")"

out=$("$lab" operator timeout 600 autopkgtest -B "$tmp/src" -o "$tmp/out" -- \
	ssh -H 192.0.2.11 -l root -i "$tmp/key" --capability isolation-machine 2>&1)
is $? 0 "autopkgtest passes" || diag "$(printf '%s\n' "$out" | tail -n 40)"
like "$(cat "$tmp/out/summary" 2>/dev/null)" '^installed +PASS' "its test was really run"
done_testing

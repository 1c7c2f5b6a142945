#!/bin/sh
# build.sh OUT: the stand-in as one executable file, a zipapp.
set -eu
out=$1
here=$(dirname "$0")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$stage/standin" "$(dirname "$out")"
cp "$here/__main__.py" "$stage/"
cp "$here"/standin/*.py "$stage/standin/"
# Byte code inside: nodes start the file often, and compile it never.
python3 -m compileall -q -b --invalidation-mode unchecked-hash "$stage"
find "$stage" -exec touch -d @315532800 {} +
python3 -m zipapp -p '/usr/bin/python3' -o "$out.tmp" "$stage"
chmod 755 "$out.tmp"
mv "$out.tmp" "$out"

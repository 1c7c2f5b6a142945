#!/bin/bash
# Manual pages are clean by mandoc's own judgement.
set -u
cd "$(dirname "$0")/../.." || exit 1
shopt -s nullglob
pages=(man/*.[1-8])
[ ${#pages[@]} -gt 0 ] || { echo "no manual pages"; exit 0; }
mandoc -T lint -W warning "${pages[@]}"

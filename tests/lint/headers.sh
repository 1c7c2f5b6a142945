#!/bin/bash
# Each header compiles alone (H6). $1: compiler and flags.
set -u
cd "$(dirname "$0")/../.." || exit 1
bad=0
for h in $(find common proto spec agent coordinator -name '*.h'); do
	grep -q '^#pragma once' "$h" || { echo "$h: no #pragma once"; bad=1; }
	$1 -Wall -Wextra -Werror -x c -fsyntax-only -include "$h" /dev/null || bad=1
done
exit $bad

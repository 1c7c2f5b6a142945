#!/bin/bash
# Idioms kept by a checker rather than by review: file names of H5, exit()
# only in main.c (H16), no conditional compilation (H10), no TODO.
set -u
cd "$(dirname "$0")/../.." || exit 1
bad=0
src=$(find common proto spec agent coordinator -name '*.[ch]')
if find common proto spec agent coordinator -name 'util*' -o -name 'helper*' -o -name 'misc*' \
	-o -name 'globals*' | grep .; then echo "a helper lives with its user (H5)"; bad=1; fi
if grep -nE '(^|[^_a-z])exit\(' $src | grep -v '/main\.c:'; then echo "exit() belongs to main.c (H16)"; bad=1; fi
if grep -nE '^#\s*if' $src; then echo "no conditional compilation (H10)"; bad=1; fi
if grep -nE '\bTODO\b|\bFIXME\b|\bXXX\b' $src | grep -v 'placeholder'; then echo "no TODO without an issue (H43)"; bad=1; fi
if grep -nE '\b(strcat|sprintf|gets|system|popen)\(' $src; then echo "unbounded or shelling call"; bad=1; fi
exit $bad

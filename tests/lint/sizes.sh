#!/bin/bash
# Ceilings of the house style (H2, H3): file 700 lines, function 80, main
# 60, line 100 columns (a tab counts eight), Makefile 200 lines.
set -u
cd "$(dirname "$0")/../.." || exit 1
bad=0
while read -r file; do
	awk -v file="$file" '
	function report(what) { printf "%s:%d: %s\n", file, FNR, what; bad = 1 }
	{
		line = $0; col = 0
		for (i = 1; i <= length(line); i++)
			col += substr(line, i, 1) == "\t" ? 8 - col % 8 : 1
		if (col > 100) report("line has " col " columns, at most 100")
	}
	/^[a-zA-Z_].*\(/ && !/;$/ { head = $0 }
	/^{/ { start = FNR }
	/^}/ && start {
		n = FNR - start - 1
		max = head ~ /(^|[^a-z_])main\(/ ? 60 : 80
		if (n > max && $0 == "}") report("function has " n " lines, at most " max ": " head)
		start = 0
	}
	END { if (FNR > 700) report("file has " FNR " lines, at most 700"); exit bad }
	' "$file" || bad=1
done < <(find common proto spec agent coordinator tests -name '*.[ch]')
[ "$(wc -l < Makefile)" -le 200 ] || { echo "Makefile: more than 200 lines"; bad=1; }
exit $bad

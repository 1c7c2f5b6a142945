#!/bin/sh
# What systemd itself says of our units: its figure is held down here, and
# each point that it still counts is explained in the unit file, in a comment
# that names the setting.
. "$(dirname "$0")/../lib/tap.sh"

units=$(cd "$(dirname "$0")/../../units" && pwd)
command -v systemd-analyze >/dev/null || skip_all "no systemd-analyze"
tmp=$(mktemp -d)
at_exit 'rm -rf "$tmp"'

# The aim is 1.5 for what needs no root; root costs 0.9 by itself. A release of
# systemd that knows another setting moves a figure by a tenth.
ceiling() { # UNIT
	case $1 in
	garboard-agent) echo 2.8 ;;
	garboard-lockdown) echo 1.7 ;;
	garboard-sysctl@) echo 2.8 ;;	# all capabilities that keys ask for
	*) echo 1.5 ;;
	esac
}

for file in "$units"/garboard*.service; do
	unit=$(basename "$file" .service)
	systemd-analyze security --offline=true --no-pager "$file" \
		>"$tmp/$unit" 2>"$tmp/err"
	level=$(sed -n 's/.*exposure level.*: \([0-9.]*\).*/\1/p' "$tmp/$unit")
	max=$(ceiling "$unit")
	ok "$unit: exposure is at most $max (is $level)" \
		awk -v l="$level" -v m="$max" 'BEGIN { exit !(l != "" && l <= m) }' ||
		diag "$(cat "$tmp/err")"
	unexplained=$(sed -n 's/^✗ \([A-Za-z]*\)=.*/\1/p' "$tmp/$unit" | sort -u |
	while read -r setting; do
		grep -q "^#.*\\<$setting=" "$file" || echo "$setting="
	done)
	is "$unexplained" "" "$unit: each point that is left is explained"
done
done_testing

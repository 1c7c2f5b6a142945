# guests.sh - TAP from guests, for tests/vm/*.t. Source it.
#
#   payload RUN [FILE...]       makes $tmp/RUN: the packages, tap.sh, the FILEs
#                               of tests/vm, and the script RUN as `run`
#   guest WHAT RUN [OPTION...]  boots it (tests/vm/boot) with the OPTIONs, and
#                               prints the guest's own TAP, numbered on
#   done_testing                the plan

set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib/tap.sh"
[ "$(id -u)" = 0 ] || skip_all "needs root, to build the guest's disk"
debs=$(cd "$here/../.." && cd "${BUILD:-build}/deb" 2>/dev/null && pwd) ||
	bail "no packages: make deb"
tmp=$(mktemp -d)
at_exit 'rm -rf "$tmp"'

payload() {
	mkdir "$tmp/$1" &&
		cp "$debs"/garboard-agent_*.deb "$tmp/$1/agent.deb" &&
		cp "$here/../lib/tap.sh" "$tmp/$1/" &&
		cp "$here/$1" "$tmp/$1/run" || bail "no payload $1"
	_p=$1; shift
	for _f; do cp "$here/$_f" "$tmp/$_p/" || bail "no $_f"; done
}

# The guest's plan comes last: without it the guest did not come to its end.
number_on() { # RESULTS
	tr -d '\r' <"$1" | awk -v n="$tap_n" '
		/^(not )?ok / {
			sub(/ok [0-9]+/, "ok " ++n)
			mine++
		}
		/^1\.\./ { plan = substr($0, 4); next }
		/^churning/ { next }
		{ print }
		END { exit !(plan != "" && plan == mine) }'
	_r=$?
	tap_n=$((tap_n + $(grep -c '^\(not \)\{0,1\}ok ' "$1")))
	! grep -q '^not ok ' "$1" || tap_bad=$((tap_bad + 1))
	return $_r
}

guest() {
	_what=$1 _run=$2
	shift 2
	_out=$tmp/out.$_run
	"$here/boot" "$@" "$tmp/$_run" "$_out" "${GUEST_LIMIT:-900}" >"$tmp/log" 2>&1
	_r=$?
	number_on "$_out/results" && [ $_r = 0 ] && pass "$_what" && return
	fail "$_what"
	diag "$(cat "$tmp/log"; tail -n 15 "$_out/console")"
}

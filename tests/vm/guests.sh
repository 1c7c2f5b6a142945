# guests.sh - TAP from guests, for tests/vm/*.t. Source it.
#
#   payload RUN [FILE...]       makes $tmp/RUN: the packages, tap.sh, the FILEs
#                               of tests/vm, and the script RUN as `run`
#   side_by_side LIFE           runs `LIFE RELEASE` for each release at the same
#                               time, and prints what their boots said, numbered
#                               on; LIFE is a function that calls boot_guest
#   boot_guest RELEASE RUN [OPTION...]
#                               boots $tmp/RUN (tests/vm/boot, OPTIONs) on the
#                               disk of that life; false: it did not come to
#                               its end
#   life_dir RELEASE            where that life keeps what is its own
#   done_testing                the plan

set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib/tap.sh"
[ "$(id -u)" = 0 ] || skip_all "needs root, to build the guest's disk"
releases=${GARBOARD_GUESTS:-bookworm trixie}
debs=$(cd "$here/../.." && cd "${BUILD:-build}/deb" 2>/dev/null && pwd) ||
	bail "no packages: make deb"
tmp=$(mktemp -d)
at_exit 'rm -rf "$tmp"'

payload() {
	mkdir "$tmp/$1" &&
		cp "$debs"/garboard-agent_*.deb "$tmp/$1/agent.deb" &&
		cp "$debs"/garboard_*.deb "$tmp/$1/garboard.deb" &&
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

life_dir() { echo "$tmp/$1"; }

# The TAP of all boots of one life, in order, is in $tmp/RELEASE/said.
boot_guest() { # RELEASE RUN [OPTION...]
	_rel=$1 _run=$2 _out=$tmp/$1/$2
	shift 2
	"$here/boot" -r "$_rel" -d "$tmp/$_rel/disk" "$@" "$tmp/$_run" "$_out" \
		"${GUEST_LIMIT:-900}" >"$_out.log" 2>&1
	_r=$?
	printf '%s %s\n' "$_run" "$_r" >>"$tmp/$_rel/boots"
	return $_r
}

said_by() { # RELEASE
	while read -r _run _r; do
		echo "# ---- $1: $_run"
		number_on "$tmp/$1/$_run/results" && [ "$_r" = 0 ] &&
			pass "$1: $_run came to its end" && continue
		fail "$1: $_run came to its end"
		diag "$(cat "$tmp/$1/$_run.log"
			tail -n 15 "$tmp/$1/$_run/console")"
	done <"$tmp/$1/boots"
}

side_by_side() { # LIFE
	_pids=
	for _rel in $releases; do
		"$here/mkguest.sh" "$_rel" >/dev/null 2>"$tmp/log" ||
			bail "no guest: $(cat "$tmp/log")"
	done
	for _rel in $releases; do
		mkdir -p "$tmp/$_rel"
		: >"$tmp/$_rel/boots"
		("$1" "$_rel") >"$tmp/$_rel/life" 2>&1 &
		_pids="$_pids $!"
	done
	wait $_pids
	for _rel in $releases; do said_by "$_rel"; done
}

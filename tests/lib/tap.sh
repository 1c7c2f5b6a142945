# tap.sh: TAP for shell tests. Source it: . "$(dirname "$0")/../lib/tap.sh"
#
#   plan N | done_testing      one of the two, first or last
#   ok WHAT CMD...             passes if CMD succeeds
#   not_ok WHAT CMD...         passes if CMD fails
#   is GOT WANT WHAT           strings are equal
#   like GOT PATTERN WHAT      GOT matches the extended regular expression
#   unlike GOT PATTERN WHAT
#   pass WHAT | fail WHAT
#   skip WHY [COUNT]           COUNT tests that could not be run here
#   skip_all WHY               nothing of this file can be run here; exits
#   bail WHY                   nothing that follows means anything; exits
#   diag TEXT                  a remark
#   wait_until SECONDS CMD...  true as soon as CMD is, false after SECONDS
#   at_exit CMD                run CMD at the end, however it comes
#
# For sh, without bashisms. A failing CMD's output is shown as a remark.

tap_n=0
tap_bad=0
tap_plan=
tap_exit=:

tap_end() {
	tap_rc=$?
	trap - EXIT
	eval "$tap_exit"
	if [ -z "$tap_plan" ]; then
		# Died between the tests: prove must see it.
		echo "# ended early, status $tap_rc, after test $tap_n"
		exit 255
	fi
	[ "$tap_bad" -eq 0 ] || exit 1
	exit "$tap_rc"
}
trap tap_end EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

at_exit() { tap_exit="$1; $tap_exit"; }

diag() { printf '%s\n' "$*" | sed 's/^/# /'; }

plan() { tap_plan=$1; echo "1..$1"; }
done_testing() { tap_plan=$tap_n; echo "1..$tap_n"; }
skip_all() { tap_plan=0; echo "1..0 # SKIP $*"; exit 0; }
# Of this file alone: without a plan it fails, and the other files still run.
bail() {
	tap_n=$((tap_n + 1)) tap_bad=$((tap_bad + 1)) tap_plan=0
	echo "not ok $tap_n - cannot go on: $*" | head -n 1
	printf '%s\n' "$*" | sed 's/^/# /'
	exit 255
}

pass() { tap_n=$((tap_n + 1)); echo "ok $tap_n - $*"; }
fail() {
	tap_n=$((tap_n + 1)) tap_bad=$((tap_bad + 1))
	echo "not ok $tap_n - $*"
	return 1
}

skip() {
	tap_i=${2:-1}
	while [ "$tap_i" -gt 0 ]; do
		tap_n=$((tap_n + 1)) tap_i=$((tap_i - 1))
		echo "ok $tap_n # SKIP $1"
	done
}

ok() {
	tap_what=$1
	shift
	if tap_out=$("$@" 2>&1); then
		pass "$tap_what"
	else
		tap_rc=$?
		fail "$tap_what" || :
		diag "status $tap_rc from: $*"
		diag "$tap_out"
		return 1
	fi
}

not_ok() {
	tap_what=$1
	shift
	if tap_out=$("$@" 2>&1); then
		fail "$tap_what" || :
		diag "succeeded: $*"
		diag "$tap_out"
		return 1
	fi
	pass "$tap_what"
}

is() {
	if [ "$1" = "$2" ]; then
		pass "$3"
	else
		fail "$3" || :
		diag "got:  $1"
		diag "want: $2"
		return 1
	fi
}

like() {
	if printf '%s\n' "$1" | grep -Eq -e "$2"; then
		pass "$3"
	else
		fail "$3" || :
		diag "got:    $1"
		diag "want: /$2/"
		return 1
	fi
}

unlike() {
	if printf '%s\n' "$1" | grep -Eq -e "$2"; then
		fail "$3" || :
		diag "got:         $1"
		diag "unwanted: /$2/"
		return 1
	fi
	pass "$3"
}

# For what announces itself in no other way. The limit is on the clock, and
# CMD is asked once more when it has passed.
wait_until() {
	tap_limit=$(($(date +%s%3N) + $(echo "$1" | awk '{print int($1*1000)}')))
	shift
	while ! "$@" >/dev/null 2>&1; do
		if [ "$(date +%s%3N)" -ge "$tap_limit" ]; then
			"$@" >/dev/null 2>&1
			return
		fi
		sleep 0.02
	done
}

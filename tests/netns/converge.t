#!/bin/bash
# `garboard-agent converge` in a node of one box (tests/bench/scene.sh): a
# second one finds nothing to do and says so.
here=$(cd "$(dirname "$0")" && pwd)
if [ "${SPEC:-}" = "" ]; then
	if ! unshare -nm true 2>/dev/null; then
		echo "1..0 # SKIP no permission to make namespaces"
		exit 0
	fi
	dir=$(mktemp -d) || exit 1
	trap 'rm -rf --one-file-system "$dir"' EXIT
	"$here/../bench/scene.sh" "${BUILD:-build}" "$dir" bash "$0"
	exit
fi

n=0
check() { # NAME PATTERN
	n=$((n + 1))
	if grep -qE "$2" <<<"$out"; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		# shellcheck disable=SC2001 # every line
		sed 's/^/# /' <<<"$out"
	fi
}

converge() { # ARGS...
	out=$("$AGENT" converge --spec "$SPEC" --state-dir "$STATE" "$@" 2>&1)
}

echo 1..8
converge
check a12_second_run_changes_nothing '^[0-9]+ ok, 0 changed, '
converge --check
check a12_second_check_changes_nothing '^[0-9]+ ok, 0 would be changed, '
nft delete table netdev garboard_egress_eno1
converge --check
check a13_check_tells_what_would_change \
	'^changed +killswitch table netdev garboard_egress_eno1: '
out=$(nft list tables)
check a13_check_changed_nothing '^table inet garboard$'
converge
check a12_only_what_was_taken_away_comes_back '^[0-9]+ ok, 1 changed, '

# The front does what one look answers; for the rest it becomes garboard-agentd.
alone=$(mktemp -d)
trap 'rm -rf "$alone"' EXIT
cp "$AGENT" "$alone/"
whole=$AGENT AGENT=$alone/garboard-agent
converge
check the_front_suffices_when_nothing_is_to_do '^[0-9]+ ok, 0 changed, '
nft delete table netdev garboard_egress_eno1
converge
check the_front_changes_nothing_itself 'garboard-agentd: No such file'
AGENT=$whole
out=$("$AGENT" converge --spec /dev/stdin --state-dir "$STATE" 2>&1 < <(cat "$SPEC"))
check a_spec_from_a_pipe_is_read_once '^[0-9]+ ok, 1 changed, '

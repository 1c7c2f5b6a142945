#!/bin/bash
# Power cuts during apply, at random moments, then the next boot: each file is
# the old or the new one, and the agent's own records are whole. Guests go
# side by side. GARBOARD_SEED repeats a run's moments. Part of check-long, for
# it takes many minutes.
. "$(dirname "$0")/guests.sh"
[ -n "${GARBOARD_LONG:-}" ] || skip_all "takes long: GARBOARD_LONG=1"

seed=${GARBOARD_SEED:-$(date +%s)}
cuts=8 guests=3
echo "# GARBOARD_SEED=$seed"
RANDOM=$seed
payload run-churn run-whole churn-a.yaml churn-b.yaml
payload run-whole churn-a.yaml churn-b.yaml

# One guest: so many boots that end in a cut, then one that looks.
life() { # NUMBER MOMENT...
	local n=$1 i=0 ms
	shift
	for ms; do
		i=$((i + 1))
		"$here/boot" -d "$tmp/disk$n" -c "churning:$ms" "$tmp/run-churn" \
			"$tmp/cut$n.$i" "${GUEST_LIMIT:-900}" || return 1
	done
	"$here/boot" -d "$tmp/disk$n" "$tmp/run-whole" "$tmp/whole$n" "${GUEST_LIMIT:-900}"
}
"$here/mkguest.sh" >/dev/null || bail "no guest"
pids=()
for n in $(seq $guests); do
	moments=()
	for _ in $(seq $cuts); do moments+=($((RANDOM % 6000))); done
	echo "# guest $n: cut ${moments[*]} ms into it"
	life "$n" "${moments[@]}" >"$tmp/life$n" 2>&1 &
	pids+=($!)
done
n=0
for pid in "${pids[@]}"; do
	n=$((n + 1))
	wait "$pid"
	is $? 0 "guest $n lived through its cuts" ||
		diag "$(cat "$tmp/life$n"; tail -n 9 "$tmp/cut$n".*/console)"
	for r in "$tmp/cut$n".*/results "$tmp/whole$n/results"; do
		if number_on "$r"; then
			pass "guest $n: and said so"
		else
			fail "guest $n: did not come to its end"
		fi
	done
done
done_testing

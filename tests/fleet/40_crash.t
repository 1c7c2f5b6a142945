#!/bin/bash
# The coordinator is killed: no number is used twice, no order done twice.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/fleet.sh"

fleet_init
serve_start
g enroll bundle -o "$dir/bundle" >/dev/null
g enroll token --count 2 >"$dir/tokens"
sim_start n 2 "$dir/tokens"
is "$(ctl wait 2 20)" 2 "two nodes"
like "$(ctl facts n1 5)" "^0 " "one obeys"

# An order whose answer is lost is sent again with its own number.
sim "n2 mute"
before=$(sim_count "n2 did ReadFacts")
ctl facts n2 10 >"$dir/facts" &
asker=$!
sim "n2 drop"
sim "n2 speak"
wait $asker
like "$(cat "$dir/facts")" "^0 ReadFacts done n2" "answered after the reconnect"
is $(($(sim_count "n2 did ReadFacts") - before)) 1 "and done once"
sim "n2 mute"
like "$(ctl facts n2 1)" "^error -110 n2: no answer in time" "silence is a time-out that says so"
blocked() { grep -q '^SigBlk:.*4002$' "/proc/$asker/status"; }
"$BUILD/tests/fleet/fleetctl" "$state" facts n2 30 >"$dir/stopped" &
asker=$!
wait_until 5 blocked
kill -TERM $asker
wait $asker
like "$(cat "$dir/stopped")" "^error -4 control: interrupted" "a signal ends the wait, and is told"
sim "n2 stop"
sim "n2 drop"
like "$(ctl facts n2 1)" "^error -107 n2: is not connected; nothing was sent" "absence is told apart"

serve_stop KILL
serve_start
is "$(ctl wait 1 20)" 1 "n1 is back after kill -9"
before=$(sim_count "n1 did ReadFacts")
like "$(ctl facts n1 5)" "^0 " "and obeys"
is $(($(sim_count "n1 did ReadFacts") - before)) 1 "a number above all that it has seen"

# A second coordinator for the same state is refused (exit 4).
g serve >/dev/null
is $? 4 "one coordinator per state directory"

# A state directory older than the fleet: held, and said.
serve_stop TERM
python3 - "$state/store.db" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1]); db.execute("UPDATE sequence SET next=1"); db.commit()
PY
serve_start
held() { ctl held n1 | grep -q "state directory is older"; }
ok "a restored, older state is noticed" wait_until 10 held
serve_stop TERM

# Without a coordinator a verb brings its own, and takes it along.
is "$(g node list -o json | grep -c '"name"')" 2 "a verb starts one for itself"
not_ok "which ends with it" serve_up
done_testing

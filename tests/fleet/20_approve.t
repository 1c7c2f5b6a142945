#!/bin/bash
# Enrolment without a token: fingerprints on both sides, approve and reject.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/fleet.sh"

fleet_init
serve_start
g enroll bundle -o "$dir/bundle" >/dev/null
sim_start m 3
waiting() { [ "$(g enroll list -o json | grep -c fingerprint)" -eq "$1" ]; }
ok "three machines wait" wait_until 10 waiting 3
fp() { g enroll list -o json | python3 -c '
import json, sys
print([w["fingerprint"] for w in json.load(sys.stdin) if w["hostname"] == sys.argv[1]][0])' "$1"; }
m1=$(fp m1) m2=$(fp m2)
like "$m1" '^[0-9a-f]{16}$' "a fingerprint of 16 digits"
is "$(ctl facts m1 1 | cut -d' ' -f1-2)" "error -2" "nothing is a node before approval"
ok "approve under another name" g enroll approve "$m1" --name server-1
ok "answered at once on its open connection" wait_until 5 sim_said "server-1 enrolled"
is "$(ctl wait 1 10)" 1 "and it connects"
not_ok "a name is taken once" g enroll approve "$m2" --name server-1
like "$(tail -1 "$dir/stderr")" "is the name of another node" "and that is the reason given"
not_ok "no name that is none" g enroll approve "$m2" --name 'No_Name'
ok "reject" g enroll reject "$m2"
ok "ends its wait" wait_until 5 sim_said "m2 disconnected"
ok "and it stays refused" wait_until 5 logged "it was rejected"
not_ok "an unknown fingerprint" g enroll approve 0123456789abcdef
is "$(g enroll approve 0123456789abcdef; echo $?)" 1 "is exit 1"
serve_stop TERM
is "$serve_rc" 0 "serve ends cleanly"
serve_start
ok "who waits is remembered" waiting 2
is "$(ctl wait 1 10)" 1 "a node comes back after a restart"
done_testing

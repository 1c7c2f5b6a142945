#!/bin/bash
# Many nodes enrol by token, report, take orders; FLEET_NODES sets how many.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/fleet.sh"
N=${FLEET_NODES:-50}

fleet_init
is "$(stat -c %a "$state")" 700 "the state directory is the owner's alone"
is "$(find "$state" -type f ! -perm 600 | wc -l)" 0 "and so is every file in it"
# What a shell may allow is not what holds for keys.
ulimit -S -c "$(ulimit -H -c)"
serve_start
is "$(stat -c %a "$state/control.sock")" 600 "the control socket too"
g enroll bundle -o "$dir/bundle" >/dev/null
like "$(cat "$dir/bundle/bundle")" "^coordinator 127.0.0.1:$port\$" "the bundle says where to dial"
unlike "$(cat "$dir/bundle/bundle")" "^token" "a bundle has a token only when asked"
g enroll token --count "$N" >"$dir/tokens"
is "$(sort -u "$dir/tokens" | wc -l)" "$N" "as many tokens as asked, all different"
is "$(cat "$state"/store.db* | grep -a -c -F -f "$dir/tokens")" 0 "the store has no token's text"

begin=$(date +%s%3N)
sim_start n "$N" "$dir/tokens"
is "$(ctl wait "$N" 60)" "$N" "all enrolled, connected and reported"
diag "$N nodes in $(($(date +%s%3N) - begin)) ms"
is "$(ctl facts-all)" "$N" "each answered an order with its own name"
like "$(ctl serial n1 200)" "200 in order" "orders begun at once are done in order"
is "$(g node list -o json | python3 -c 'import json,sys; print(sum(n["state"] == "connected" and n["worst"] == "in sync" for n in json.load(sys.stdin)))')" \
	"$N" "node list says so"
g status >"$dir/status"
is $? 0 "status is 0 when all is in sync"
like "$(tail -1 "$dir/status")" "^$N nodes, $N connected, $N in sync, 0 held\$" "and counts"
is "$(ctl keep)" kept "secrets, values, the founding record and a sealed credential are kept"
is "$(cat "$state"/store.db* | grep -a -c hush)" 0 "the secret lies sealed"
is "$(ctl stream n2 5000000)" "5000000 bytes" "a stream carries bytes there and back"

rss=$(awk '/^VmRSS/ {print $2}' "/proc/$serve_pid/status")
diag "serve: $rss kB resident with $N sessions"

# A token works once.
head -1 "$dir/tokens" >"$dir/used"
mkfifo "$dir/twice.in"
"$BUILD/tests/fleet/simfleet" "$dir/bundle" twice 1 "$dir/used" <"$dir/twice.in" >"$dir/twice.log" 2>&1 &
exec 8>"$dir/twice.in"
waits() { g enroll list | grep -q "twice1.*token was used by another machine"; }
ok "a used token does not enrol another machine" wait_until 10 waits
exec 8>&-	# its end of input ends it

g node revoke n3 >/dev/null
ok "a revoked node's session ends at once" wait_until 5 sim_said "n3 disconnected"
ok "and it is refused when it comes again" wait_until 5 logged "node n3 is revoked"
like "$(ctl facts n3 1)" "^error -2 n3: no such node" "no order goes to it"
is "$(ctl wait $((N - 1)) 5)" $((N - 1)) "the others are not disturbed"
sim "n1 drop"
ok "after a drop a node comes back" wait_until 5 sim_said_times "n1 connected" 2
like "$(ctl facts n1 5)" "^0 ReadFacts done n1" "and obeys again"
is "$(sim_count 'order of another session')" 0 "no order answers an old nonce"
like "$(grep core "/proc/$serve_pid/limits")" " 0 +0 " \
	"no core file would hold its keys"
done_testing

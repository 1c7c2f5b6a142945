#!/bin/bash
# The command line: targets, exit codes, banner (B14 to B19, B123).
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/fleet.sh"
export XDG_STATE_HOME=$dir/xdg HOME=$dir GARBOARD_STATE=

port=$(free_port)
rc() { "$G" "$@" >"$dir/out" 2>"$dir/err"; echo $?; }
is "$(rc)" 2 "no verb is exit 2"
is "$(rc bogus)" 2 "an unknown verb"
is "$(rc node)" 2 "half a verb"
is "$(rc status --bogus)" 2 "an unknown option"
is "$(rc status -o xml)" 2 "an unknown form of output"
is "$(rc node revoke)" 2 "a missing argument"
is "$(rc version extra)" 2 "an argument too many"
is "$(rc --help)" 0 "help is exit 0"
is "$(rc help)" 0 "also as a word"
is "$(rc version)" 0 "version"
is "$(cat "$dir/err")" "" "which acts on no cluster, so it names none"
is "$(rc status -c nowhere --state "$dir/none")" 2 "an unknown cluster is exit 2"
like "$(cat "$dir/err")" "unknown cluster nowhere" "and named"
is "$(rc init -c 'Not_A_Name' --state "$dir/none")" 2 "no cluster without a proper name"
not_ok "nothing was made" test -e "$dir/none"
is "$(rc init -c one --state "$dir/one" --check)" 0 "init --check"
not_ok "makes nothing" test -e "$dir/one"
is "$(rc init -c one --state "$dir/one" --listen nonsense)" 1 "init with a bad address fails"
is "$(find "$dir" -maxdepth 1 -name 'one*' | wc -l)" 0 "and leaves nothing behind"
is "$(rc init -c one --state "$dir/one" --listen 127.0.0.1:$port)" 0 "init"
like "$(cat "$dir/err")" "^garboard: cluster one .*state $dir/one" "the banner names the target (B18)"
is "$(rc init -c one --state "$dir/one")" 4 "init again is refused, nothing changed"
is "$(rc status -c two --state "$dir/one")" 2 "another cluster's state is never used (B19)"
is "$(rc status --state "$dir/one" -o json)" 0 "status"
ok "prints JSON" python3 -m json.tool "$dir/out"
is "$(rc -c one --state "$dir/one" -o yaml node list)" 0 "global options may stand first"
rc enroll bundle --state "$dir/one" -o "$dir/b" --address 192.0.2.5:7643 --token >/dev/null
like "$(cat "$dir/b/bundle")" "^token gbt-[0-9a-f]{40}\$" "a bundle with a token"
is "$(stat -c %a "$dir/b/bundle")" 600 "which others cannot read"
token=$(sed -n 's/^token //p' "$dir/b/bundle")
rc events --state "$dir/one" >/dev/null
unlike "$(cat "$dir/out" "$dir/err")" "$token" "no listing shows it (B123)"
chmod 644 "$dir/one/order.key"
is "$(rc status --state "$dir/one")" 1 "a key that others can read is refused"
like "$(cat "$dir/err")" "order.key" "and named"
chmod 600 "$dir/one/order.key"
mv "$dir/one/trust-root.key" "$dir/"
is "$(rc status --state "$dir/one")" 0 "the trust root may be elsewhere"
done_testing

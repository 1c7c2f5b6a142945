#!/bin/bash
# `garboard enroll ssh`: an existing machine becomes a node through Debian's
# own sshd and ssh, with a key of this test; and all the ways in which it does
# not, each with its cause, its remedy and nothing left behind.
. "$(dirname "$0")/../lib/tap.sh"

top=$(cd "$(dirname "$0")/../.." && pwd)
lab=$top/tests/lab/lab
[ "$(id -u)" = 0 ] || skip_all "needs root"
build=$(cd "$top" && cd "${BUILD:-build}" && pwd)
debs=$build/deb
ls "$debs"/garboard-agent_*.deb >/dev/null 2>&1 || bail "no packages: make deb"
real_ssh=$(command -v ssh) || bail "no ssh: make deps"

tmp=$(mktemp -d)
export GARBOARD_LAB="$tmp/lab"
serve_pid=
at_exit 'rm -rf --one-file-system "$tmp"'
at_exit '[ -z "$serve_pid" ] || kill $serve_pid 2>/dev/null; "$lab" down'
cp "$debs"/garboard-agent_*.deb "$tmp/agent.deb"
cp "$debs"/garboard_*.deb "$tmp/other.deb"
"$lab" up 2 --tie $$ >"$tmp/up" 2>&1 || bail "no lab: $(cat "$tmp/up")"
on() { "$lab" exec "$@"; }

# ---- ssh: keys of this test only ----

ssh-keygen -q -t ed25519 -N '' -f "$tmp/key"
ssh-keygen -q -t ed25519 -N '' -f "$tmp/stranger"
for n in server-1 server-2; do
	on "$n" sh -ec 'ssh-keygen -A >/dev/null; mkdir -p -m 700 /root/.ssh
		cat >/root/.ssh/authorized_keys; chmod 600 /root/.ssh/authorized_keys
		systemctl start ssh' <"$tmp/key.pub" || bail "no sshd on $n"
done
conf() { # FILE KEY
	cat >"$1" <<-X
	Host *
	  IdentityFile $2
	  IdentitiesOnly yes
	  UserKnownHostsFile $tmp/known
	  GlobalKnownHostsFile /dev/null
	  StrictHostKeyChecking no
	X
}
conf "$tmp/ssh" "$tmp/key"
conf "$tmp/ssh-stranger" "$tmp/stranger"
: >"$tmp/known"
# What ssh is given, before the real one runs.
mkdir "$tmp/bin"
cat >"$tmp/bin/ssh" <<X
#!/bin/sh
{ printf '%s\n' "\$@"; env | grep -o gbt-; } >>$tmp/given
exec $real_ssh "\$@"
X
chmod 755 "$tmp/bin/ssh"

# ---- a coordinator ----

g() { # STATE ARGS...
	local state=$1
	shift
	"$lab" operator env PATH="$tmp/bin:$PATH" "$build/garboard" \
		--state "$tmp/$state" "$@"
}
g state init -c one --listen 0.0.0.0:7643 --address 192.0.2.5:7643 >"$tmp/init" 2>&1 &&
	g state2 init -c two --listen 127.0.0.1:7644 --address 192.0.2.5:7644 \
		>>"$tmp/init" 2>&1 || bail "init: $(cat "$tmp/init")"
"$lab" operator "$build/garboard" --state "$tmp/state" serve >"$tmp/serve" 2>&1 &
serve_pid=$!
wait_until 20 test -S "$tmp/state/control.sock" || bail "$(cat "$tmp/serve")"
enroll() { # ARGS...: status in $rc, words in $out
	out=$(g state enroll ssh --ssh-config "$tmp/ssh" "$@" 2>&1)
	rc=$?
}
refused() { # STATUS PATTERN WHAT
	is "$rc" "$1" "$3" || diag "$out"
	like "$out" "$2" "with cause and remedy"
}
untouched() { # NODE
	is "$(on "$1" sh -c 'dpkg-query -Wf "\${db:Status-Status}" garboard-agent 2>/dev/null
		ls -d /etc/garboard /var/lib/garboard /var/tmp/garboard* 2>/dev/null')" "" \
		"and nothing is on $1"
}

# ---- how it fails ----

for bad in -oProxyCommand=id 'root@-v' 'a b' 'x;id' '$(id)' 'root@h@x' ''; do
	enroll "$bad" --deb "$tmp/agent.deb"
	[ "$rc" = 2 ] || { fail "host \"$bad\": $out"; bad=; break; }
done
[ -n "$bad" ] || [ "$rc" = 2 ] && pass "what is no host is never an argument of ssh"
is "$(cat "$tmp/given" 2>/dev/null)" "" "nor is ssh run for it"
enroll root@192.0.2.11 --deb "$tmp/agent.deb"
refused 1 'Host key verification failed.*fingerprint' \
	"an unknown host key is refused, whatever the user's configuration says"
for n in 11 12; do "$lab" operator ssh-keyscan "192.0.2.$n" 2>/dev/null; done >"$tmp/known"
out=$(g state enroll ssh --ssh-config "$tmp/ssh-stranger" root@192.0.2.11 2>&1)
rc=$?
refused 1 'Permission denied.*authorized_keys' "a login that is not allowed"
enroll root@192.0.2.11 --port 2222
refused 1 'Connection refused.*does sshd run' "a port without an sshd"
enroll root@192.0.2.11
refused 1 'has no garboard-agent: give its package with --deb' "no agent and no package"
enroll root@192.0.2.11 --deb "$tmp/nowhere.deb"
is "$rc" 2 "a file that is not there" || diag "$out"
enroll root@192.0.2.11 --deb "$tmp/other.deb"
refused 1 'no package garboard-agent' "another package"
head -c 100000 "$tmp/agent.deb" >"$tmp/cut.deb"
enroll root@192.0.2.11 --deb "$tmp/cut.deb"
is "$rc" 1 "a package that is cut short" || diag "$out"
on server-1 sh -ec 'echo "joe:x:1234:1234::/home/joe:/bin/sh" >>/etc/passwd
	echo "joe:*:19000:0:99999:7:::" >>/etc/shadow
	mkdir -p -m 755 /home/joe/.ssh; cp /root/.ssh/authorized_keys /home/joe/.ssh/
	chown -R 1234:1234 /home/joe'
enroll joe@192.0.2.11 --deb "$tmp/agent.deb"
refused 1 'may not become root.*sudo -n' "a login that cannot become root"
enroll root@192.0.2.11 --deb "$tmp/agent.deb" --check
is "$rc" 0 "a dry run" || diag "$out"
like "$out" 'would write the bundle of cluster one, with a token for server-1' "says what would be"
untouched server-1
is "$(g state node list -o json 2>/dev/null)" "[]" "nor does the coordinator know of it"

# ---- how it works ----

: >"$tmp/given"
enroll root@192.0.2.11 --deb "$tmp/agent.deb"
is "$rc" 0 "a machine is enrolled" || diag "$out"
like "$out" '^server-1: seen, connected$' "and seen"
like "$out" 'garboard-agent [0-9.]+ installed$' "it says what it did"
is "$(on server-1 systemctl is-enabled garboard-agent garboard-link garboard-lockdown \
	garboard-agent-link.socket garboard-agent-status.socket | sort | uniq -c | xargs)" \
	"5 enabled" "its units are enabled"
is "$(on server-1 sh -c 'stat -c %a:%U /etc/garboard/bundle /etc/garboard/bundle/bundle; ls -A /etc/garboard/bundle
		ls -d /var/tmp/garboard-*' 2>/dev/null | xargs)" "700:root 600:root bundle ca.pem" \
	"the bundle is root's alone, and no other file stays"
like "$(on server-1 cat /etc/garboard/bundle/bundle)" '^token gbt-' "it came with a token"
unlike "$(cat "$tmp/given")" 'gbt-' "which was in no argument and no environment"
like "$(tr '\n' ' ' <"$tmp/given")" 'BatchMode=yes.*StrictHostKeyChecking=yes.*ClearAllForwardings=yes' \
	"ssh asks nothing, trusts no new key, forwards nothing"

before=$(on server-1 sh -c 'stat -c %y /etc/garboard/bundle/bundle; systemctl show -p MainPID garboard-agent garboard-link')
enroll root@192.0.2.11 --deb "$tmp/agent.deb"
is "$rc" 0 "a second time" || diag "$out"
like "$out" 'is node server-1 already' "it is a node already"
is "$(on server-1 sh -c 'stat -c %y /etc/garboard/bundle/bundle; systemctl show -p MainPID garboard-agent garboard-link')" \
	"$before" "and nothing is changed"
on server-1 systemctl disable --now garboard-link 2>/dev/null
enroll root@192.0.2.11
is "$rc:$(on server-1 systemctl is-enabled garboard-link)" 0:enabled \
	"what was disabled meanwhile is enabled" || diag "$out"
enroll root@192.0.2.11 --node other
refused 4 'is node server-1 already, not other' "another name for a node is refused"
enroll root@192.0.2.12 --deb "$tmp/agent.deb" --node server-1
refused 4 "another machine's name.*node revoke" "so is a name that is taken"
out=$(g state2 enroll ssh --ssh-config "$tmp/ssh" root@192.0.2.11 2>&1)
rc=$?
refused 4 'belongs to cluster [0-9a-f]{32}.*reset-identity' "so is a node of another cluster"

# ---- half-way ----

untouched server-2
on server-2 sh -c 'mkdir -p /etc/systemd/system/garboard-link.service.d
	printf "[Service]\nExecStartPre=/bin/false\n" >/etc/systemd/system/garboard-link.service.d/x.conf'
enroll root@192.0.2.12 --deb "$tmp/agent.deb"
is "$rc" 1 "a unit that does not start" || diag "$out"
like "$out" 'garboard-link.service' "is named"
is "$(on server-2 ls -A /etc/garboard/bundle)" "" "and the bundle is taken back"
on server-2 rm -r /etc/systemd/system/garboard-link.service.d
enroll root@192.0.2.12 --address 192.0.2.5:7999 --wait 6s
refused 1 'not seen in time.*192\.0\.2\.5:7999' "a coordinator that cannot be reached"
enroll root@192.0.2.12
is "$rc" 0 "the same command goes on from there" || diag "$out"
like "$(g state node list 2>/dev/null)" '^server-2 +connected' "and the node is there"
done_testing

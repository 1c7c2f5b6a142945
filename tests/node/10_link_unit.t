#!/bin/sh
# garboard-link as a unit of a real systemd: what it may, what it may not,
# and what it does with a coordinator it cannot trust or reach.
. "$(dirname "$0")/../lib/tap.sh"

here=$(cd "$(dirname "$0")" && pwd)
top=$here/../..
lab=$top/tests/lab/lab
build=$(cd "$top" && cd "${BUILD:-build}" && pwd)
[ "$(id -u)" = 0 ] || skip_all "needs root"
[ -x "$build/garboard-link" ] || skip_all "garboard-link is not built"

tmp=$(mktemp -d)
export GARBOARD_LAB="$tmp/lab"
at_exit 'rm -rf --one-file-system "$tmp"'
at_exit '"$lab" down'
"$lab" up 1 --tie $$ >"$tmp/up" 2>&1 || bail "no lab: $(cat "$tmp/up")"
on() { "$lab" exec server-1 "$@"; }

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
	-subj /CN=test -keyout "$tmp/ca.key" -out "$tmp/ca.pem" 2>/dev/null
cat >"$tmp/bundle" <<X
format garboard-bundle-1
cluster-id 0123456789abcdef0123456789abcdef
cluster test
trust-root 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
coordinator 192.0.2.5:7643
X
on mkdir -p /usr/lib/garboard /etc/sysusers.d /etc/tmpfiles.d /etc/garboard
on mkdir -p -m 700 /etc/garboard/bundle
"$lab" cp server-1 "$build/garboard-link" /usr/lib/garboard/garboard-link
"$lab" cp server-1 "$top/units/garboard-link.service" \
	/etc/systemd/system/garboard-link.service
"$lab" cp server-1 "$top/units/sysusers.d/garboard.conf" /etc/sysusers.d/garboard.conf
"$lab" cp server-1 "$top/units/tmpfiles.d/garboard.conf" /etc/tmpfiles.d/garboard.conf
"$lab" cp server-1 "$tmp/bundle" /etc/garboard/bundle/bundle
"$lab" cp server-1 "$tmp/ca.pem" /etc/garboard/bundle/ca.pem
on chmod 600 /etc/garboard/bundle/bundle /etc/garboard/bundle/ca.pem
on chmod 755 /usr/lib/garboard/garboard-link
ok "the user is made" on systemd-sysusers
ok "the directories are made" on systemd-tmpfiles --create
on systemctl daemon-reload

ok "it is ready without an agent, from a bundle only root can read" \
	on timeout 30 systemctl start garboard-link ||
	diag "$(on journalctl -u garboard-link -o cat -n 5)"
pid=$(on systemctl show -p MainPID --value garboard-link)
is "$(on ps -o user= -p "$pid" | tr -d ' ')" garboard "it runs as garboard"
caps=$(on sed -n 's/^Cap\(Inh\|Prm\|Eff\|Bnd\|Amb\):\t//p' "/proc/$pid/status" | sort -u)
is "$caps" 0000000000000000 "no capability is in any of its sets"
is "$(on sed -n 's/^\(NoNewPrivs\|Seccomp\):\t//p' "/proc/$pid/status" | tr '\n' ' ')" \
	"1 2 " "no new privileges, and a system call filter"
is "$(on stat -c '%U %a' /var/lib/garboard-link/tls.key)" "garboard 600" \
	"its key is its own"
like "$(on systemctl show -p StatusText --value garboard-link)" \
	'waiting for garboard-agent' "its status says what it waits for"
unlike "$(on cat "/proc/$pid/cmdline" "/proc/$pid/environ" | tr '\0' '\n')" \
	'trust-root|PRIVATE' "no secret in its arguments or environment"
kb=$(on sed -n 's/^Pss: *\([0-9]*\) kB/\1/p' "/proc/$pid/smaps_rollup")
diag "proportional memory: $kb kB"
ok "it is small: at most 2.5 MB proportional" test "$kb" -le 2500

# The agent's side of the socket, and nobody behind the address.
cat >"$tmp/agent.py" <<'X'
import socket, struct, sys
s = socket.socket(socket.AF_UNIX); s.bind("/run/garboard/link.sock")
import os; os.chmod("/run/garboard/link.sock", 0o666)
s.listen(1); s.settimeout(30)
c, _ = s.accept(); c.settimeout(30); f = c.makefile("rb")
n, t = struct.unpack("!IB", f.read(5))
print(t, f.read(n).decode())
X
"$lab" cp server-1 "$tmp/agent.py" /root/agent.py
if on sh -c 'command -v python3' >/dev/null 2>&1; then
	said=$(on timeout 40 python3 /root/agent.py)
	like "$said" '^17 192\.0\.2\.5:7643: cannot be reached: ' \
		"an agent is told why there is no session"
else
	skip "no python3 on the node"
fi
on systemctl stop garboard-link
is "$(on systemctl show -p Result --value garboard-link)" success \
	"it ends cleanly"

on sed -i 's/^cluster /clutser /' /etc/garboard/bundle/bundle
on sh -c 'systemctl start garboard-link' >/dev/null 2>&1 || :
like "$(on journalctl -u garboard-link -o cat)" 'bundle line 3: unknown key "clutser"' \
	"a bad bundle is refused with its line"
on systemctl stop garboard-link
done_testing

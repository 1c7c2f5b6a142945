#!/bin/bash
# Garbage, lies and doubles: refused, told once, and nobody else disturbed.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/fleet.sh"

fleet_init
serve_start --probe 1s
g enroll bundle -o "$dir/bundle" >/dev/null
g enroll token --count 4 >"$dir/tokens"
sim_start n 4 "$dir/tokens"
is "$(ctl wait 4 20)" 4 "four nodes"

# What is no TLS at all, many times over: told once.
python3 - "$port" <<'PY'
import os, socket, sys
for i in range(200):
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    try:
        s.sendall(os.urandom(64)); s.recv(100)
    except OSError:
        pass
    s.close()
PY
is "$(ctl facts-all)" 4 "two hundred garbage connections disturb nobody"
few() { [ "$(logged_times '127.0.0.1:[0-9]*: refused: ')" -le 20 ]; }
ok "and are not told of two hundred times" few

# As many silent connections as there are slots: others wait a moment only.
waited=$(python3 - "$port" <<'PY'
import socket, ssl, sys, time
at = ("127.0.0.1", int(sys.argv[1]))
ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
ctx.check_hostname, ctx.verify_mode = False, ssl.CERT_NONE
silent = [socket.create_connection(at) for _ in range(512)]
t = time.monotonic()
ctx.wrap_socket(socket.create_connection(at, 30))
print("soon" if time.monotonic() - t < 6 else "late")
PY
)
is "$waited" soon "silent connections keep nobody out for long"

# A stranger that asks and never listens: its answers are not kept for it.
python3 - "$port" <<'PY'
import socket, ssl, sys
ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
ctx.check_hostname, ctx.verify_mode = False, ssl.CERT_NONE
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
s.connect(("127.0.0.1", int(sys.argv[1])))
s = ctx.wrap_socket(s)
s.settimeout(10)
try:
    for i in range(3000):
        s.sendall(b"\0\0\0\x08\x0412345678" * 1000)
except OSError:
    pass
PY
ok "who asks and does not listen is closed" wait_until 5 logged "does not read what it asked for"

sim "n1 report"
sim "n1 replay"
ok "a replayed report is refused" wait_until 5 logged "n1 .*replay"
sim "n1 edit"
ok "an edited one too" wait_until 5 logged "n1 .*signature"
sim "n1 foreign"
ok "and one of another cluster" wait_until 5 logged "n1 .*cluster"
sim "n1 truncate"
ok "and a truncated one" wait_until 5 logged "n1 .*shorter\|n1 .*trunc\|n1 .*size\|n1 .*length"
for i in 1 2 3; do sim "n1 replay"; done
is "$(logged_times 'n1 .*replay')" 1 "each reason is told once"
like "$(ctl facts n1 5)" "^0 " "its good envelopes still count"
sim "n1 garbage"
ok "a broken frame ends the connection" wait_until 5 sim_said "n1 disconnected"
ok "and it comes back" wait_until 5 sim_said_times "n1 connected" 2

# TL-02: a copied identity. Both living: held, both named.
sim "n2 clone copy2"
held() { ctl held "$1" | grep -q "$2"; }
ok "tl02_copied_identity: the node is held" wait_until 10 held n2 "two machines use this identity"
like "$(ctl held n2)" "127.0.0.1:[0-9]+ and 127.0.0.1:[0-9]+" "both are named"
like "$(ctl facts n2 2)" "^error -13 n2: is held" "no order goes to it"
g status >/dev/null
is $? 1 "status is 1 with a held node"
like "$(ctl facts n3 5)" "^0 " "others are not disturbed"

# A half-open older session is no clone: silence, then replaced.
sim "n3 mute"
sim "n3 clone again3"
ok "a silent older session is replaced" wait_until 10 logged "n3.*replaced by a newer connection"
is "$(ctl held n3)" "" "and nothing is held"

# TL-01: two machines, one machine-id; the one that was first is not disturbed.
first=$(sed -n 's/^\(n[14]\) enrolled$/\1/p' "$dir/sim.log" | head -1)
other=n1; [ "$first" = n1 ] && other=n4
sim "$first machine-id 11111111111111111111111111111111"
sim "$first hello"
sim "$other machine-id 11111111111111111111111111111111"
sim "$other hello"
ok "tl01_one_machine_id: the later one is held" wait_until 5 held $other "is also that of node $first"
is "$(ctl held $first)" "" "the first is not"
sim "$other machine-id 44444444444444444444444444444444"
sim "$other hello"
free() { [ -z "$(ctl held $other)" ]; }
ok "and let go with an id of its own" wait_until 5 free

# Whoever takes on the id of another node later holds itself, not that one.
sim "$first machine-id 44444444444444444444444444444444"
sim "$first hello"
ok "tl01: a claim of the older node holds that node" wait_until 5 held $first "is also that of node $other"
sim "$other hello"
sim "$other report"
reported() { ctl facts $other 3 | grep -qv '^error'; }
ok "and not the one whose id it is" wait_until 5 reported
is "$(ctl held $other)" "" "which is not held"
sim "$first machine-id 11111111111111111111111111111111"
sim "$first hello"
released() { [ -z "$(ctl held $first)" ]; }
ok "its own id lets it go" wait_until 5 released

# IS-01: the coordinator sees the collision, and names both on each.
for n in $first $other; do
	sim "$n initiator iqn.1993-08.org.debian:01:clone"
	sim "$n hello"
done
noted() { g status | grep "^$1 " | grep -q "iSCSI initiator name .*:clone is also that of node $2"; }
ok "is01_same_initiator: status names the other one" wait_until 10 noted $first $other
ok "and on the other one the first" wait_until 10 noted $other $first

# Many connections of one stolen key: each would hold memory while judged.
sim "$first mute"
sim "$first clone copy5"
sim "$first clone copy6"
ok "one newer connection is judged at a time" wait_until 5 \
	logged "refused: .*of node $first is being judged already"
done_testing

#!/bin/bash
# A link that lies, a coordinator and peers that are not ours, on real nodes.
# What the fleet level shows with simulated nodes is not repeated here.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/whole.sh"

whole_init 3

# ---- a liar between link and agent ----
mode() { node_exec server-1 sh -c "echo $1 >/run/liar.mode"; }
lies() { node_exec server-1 cat /run/liar.count 2>/dev/null || echo 0; }
mode pass
"${cluster_lab[@]}" cp server-1 "$here/liar.py" /root/liar.py
node_exec server-1 sh -ec 'echo GARBOARD_LINK_SOCKET=/run/liar/link.sock >>/etc/garboard/link.conf
	systemd-run --quiet --unit=liar /usr/bin/python3 /root/liar.py /run/liar.mode /run/liar.count
	until test -S /run/liar/link.sock; do :; done
	systemctl restart garboard-link'
through_liar() { node_exec server-1 sh -c \
	'ss -xH src /run/liar/link.sock | grep -q ESTAB' && cluster_connected 3; }
ok "a session through the liar, while it is honest" cluster_wait 70 through_liar

# The order whose effect is looked at: a time zone. One line a done order.
zone() { node_exec server-1 readlink /etc/localtime | sed 's|.*zoneinfo/||'; }
done_count() { journal server-1 garboard-agent | grep -c '^SetDesired.*done'; }
dropped() { journal server-1 garboard-agent | grep -c "order dropped: $1"; }
order() { # ZONE: the bring-up's first stage, and no longer than it needs
	sed "s|timezone: .*|timezone: $1|" "$spec" >"$tmp/order.yaml"
	rc=0
	GARBOARD_X=1 timeout 60 "${cluster_lab[@]}" operator env \
		GARBOARD_TIME_SCALE=300 "$cluster_build/garboard" \
		--state "$cluster_dir/state" up --only baseline --limit server-1 \
		-f "$tmp/order.yaml" >"$tmp/out" 2>&1 || rc=$?
}
order Asia/Tokyo
is "$rc $(zone)" "0 Asia/Tokyo" "an honest order is obeyed" || shown
was=$(done_count)
ok "and counted" test "$was" -ge 1

for lie in drop edit-down edit-up; do
	mode $lie
	before=$(lies)
	order Europe/Oslo
	ok "$lie: up does not believe that it worked" test "$rc" -ne 0 || shown
	ok "$lie: there were lies" test "$(lies)" -gt "$before"
	[ $lie = edit-up ] || is "$(zone)" Asia/Tokyo "$lie: nothing changed on the node"
	mode pass
	ok "$lie: after it, the node is with us again" cluster_wait 70 cluster_connected 3
done
like "$(journal server-1 garboard-agent)" 'order dropped: .*signature' \
	"an edited order is dropped for its signature, and that is logged"
like "$(cat "$cluster_dir/serve.log")" 'server-1.*signature' \
	"so is an edited report, at the coordinator"

order Asia/Tokyo
is "$rc $(zone)" "0 Asia/Tokyo" "honest again, obeyed again" || shown
was=$(done_count)
sequence() { node_exec server-1 garboard-agent status |
	sed -n 's/.*sequence \([0-9]*\);.*/\1/p'; }
seq_was=$(sequence)
mode replay
before=$(lies)
gb node describe server-1 >/dev/null 2>&1
order Asia/Tokyo
mode pass
ok "replay: there were lies" test "$(lies)" -gt "$before"
is "$(zone)" Asia/Tokyo "replay: no old order was obeyed"
is "$(done_count)" "$was" "replay: none was done a second time"
ok "replay: its sequence never went back" test "$(sequence)" -ge "$seq_was"
like "$(cat "$cluster_dir/serve.log")" 'server-1.*replay' "replay: old reports are refused by name"
ok "replay: the node is with us again" cluster_wait 70 cluster_connected 3

mode swap
order America/Lima
mode pass
ok "swap: orders out of order do no harm: obeyed or not, never half" \
	sh -c 'case $1 in Asia/Tokyo|America/Lima) ;; *) exit 1 ;; esac' sh "$(zone)"
ok "swap: the node is with us again" cluster_wait 70 cluster_connected 3
order America/Lima
is "$rc $(zone)" "0 America/Lima" "and the next honest order is obeyed" || shown
is "$(unit server-1 garboard-agent NRestarts)" 0 "no lie ended the agent"

# Orders of an earlier session, in a new one: another nonce.
was=$(done_count)
node_exec server-1 systemctl restart garboard-link
ok "a new session" cluster_wait 70 through_liar
mode replay
order America/Lima
mode pass
is "$(done_count) $(zone)" "$was America/Lima" "orders of an old session are not obeyed in a new one"

# ---- a coordinator that is not ours ----
node_exec server-2 systemctl stop garboard-link
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 \
	-subj "/CN=garboard" -keyout "$tmp/foreign.key" -out "$tmp/foreign.pem" 2>/dev/null
"${cluster_lab[@]}" operator openssl s_server -accept 192.0.2.5:7644 -tls1_3 -quiet \
	-key "$tmp/foreign.key" -cert "$tmp/foreign.pem" >/dev/null 2>&1 &
false_one=$!
at_exit 'kill "$false_one" 2>/dev/null'
node_exec server-2 sh -c 'cd /etc/garboard/bundle; cp bundle good
	sed -i "s/^coordinator .*/coordinator 192.0.2.5:7644/" bundle
	systemctl restart garboard-agent; systemctl start garboard-link'
refused() { journal server-2 garboard-link | grep -q '^no session: .*certificate'; }
ok "wrong_ca: a node does not talk to a coordinator of another CA" wait_until 20 refused ||
	diag "$(journal server-2 garboard-link | tail -n 5)"
tries() { node_exec server-2 awk '/^Tcp: [0-9]/ { print $6 }' /proc/net/snmp; }
first=$(tries)
again() { [ "$(tries)" -ge $((first + 3)) ]; }
ok "wrong_ca: it goes on trying" wait_until 40 again
is "$(journal server-2 garboard-link | grep -c '^no session: .*certificate')" 1 \
	"wrong_ca: and says the reason once"
node_exec server-2 sh -c 'cd /etc/garboard/bundle; mv good bundle
	systemctl restart garboard-agent garboard-link'
ok "wrong_ca: with the right one all is well" cluster_wait 70 cluster_connected 3

# ---- peers that are not ours ----
cluster_id=$(sed -n 's/.*\([0-9a-f]\{32\}\).*/\1/p' "$cluster_dir/state/cluster" | head -1)
node_id=$(gb node describe server-2 -o json 2>/dev/null |
	python3 -c 'import json, sys; print(json.load(sys.stdin)["id"])')
leaf() { # NAME CA-CERT CA-KEY START END
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=node" \
		-keyout "$tmp/$1.key" -out "$tmp/$1.csr" 2>/dev/null
	mkdir -p "$tmp/ca-$1"
	: >"$tmp/ca-$1/index"
	printf '[ca]\ndefault_ca=d\n[d]\ndatabase=%s/index\nnew_certs_dir=%s\nrand_serial=yes\ndefault_md=sha256\npolicy=p\nx509_extensions=x\n[p]\ncommonName=supplied\n[x]\nsubjectAltName=URI:garboard://%s/%s\nextendedKeyUsage=clientAuth\n' \
		"$tmp/ca-$1" "$tmp/ca-$1" "$cluster_id" "$node_id" >"$tmp/ca-$1/conf"
	openssl ca -batch -config "$tmp/ca-$1/conf" -cert "$2" -keyfile "$3" \
		-startdate "$4" -enddate "$5" -in "$tmp/$1.csr" -out "$tmp/$1.crt" >/dev/null 2>&1
}
knock() { # NAME: as that node, five times
	for _i in 1 2 3 4 5; do
		"${cluster_lab[@]}" operator timeout 5 sh -c "sleep 0.3 | openssl s_client \
			-connect 192.0.2.5:7643 -tls1_3 -quiet -cert '$tmp/$1.crt' -key '$tmp/$1.key'" \
			>/dev/null 2>&1
	done
}
leaf foreign_node "$tmp/foreign.pem" "$tmp/foreign.key" 20200101000000Z 20491231235959Z
leaf expired "$cluster_dir/state/ca.crt" "$cluster_dir/state/ca.key" 20200101000000Z 20210101000000Z
for who in foreign_node expired; do
	ok "$who: there is such a certificate" test -s "$tmp/$who.crt"
	lines=$(wc -l <"$cluster_dir/serve.log")
	knock $who
	tail -n "+$((lines + 1))" "$cluster_dir/serve.log" >"$tmp/said"
	is "$(wc -l <"$tmp/said")" 1 "$who: five tries are told once" || diag "$(cat "$tmp/said")"
	case $who in
	foreign_node) like "$(cat "$tmp/said")" 'refused: .*(issuer|authority|signed)' "$who: with the reason" ;;
	expired) unlike "$(cat "$tmp/said")" 'server-2.* connected' "$who: and makes no session" ;;
	esac
	ok "$who: and the nodes are undisturbed" cluster_connected 3
done

# ---- an image taken after enrolment ----
node_exec server-1 tar -C / -cf - var/lib/garboard var/lib/garboard-link >"$tmp/identity.tar"
node_exec server-3 sh -c 'systemctl stop garboard-link garboard-agent.service \
	garboard-agent-link.socket garboard-agent-status.socket
	rm -rf /var/lib/garboard /var/lib/garboard-link' 2>/dev/null
node_exec server-3 tar -C / -xf - --no-same-owner --same-permissions <"$tmp/identity.tar"
node_exec server-3 sh -c 'chown -R garboard:garboard /var/lib/garboard-link
	systemctl start garboard-agent garboard-link'
held() { gb status 2>/dev/null | grep -qE '^server-1 +held'; }
ok "tl02_copied_identity: two machines with one identity are noticed" cluster_wait 70 held ||
	diag "$(gb status 2>&1)"
like "$(gb node describe server-1 2>/dev/null)" '192\.0\.2\.1[13].* and .*192\.0\.2\.1[13]' \
	"tl02_copied_identity: and both named"
done_testing

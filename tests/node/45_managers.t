#!/bin/sh
# Other managers of nftables, rules and routes, the real ones, beside an armed
# gateway: an agent under systemd, firewalld, ufw, docker, nftables.service,
# systemd-networkd and NetworkManager (KS-14, KS-15, RT-01). A sender tries to
# get class packets out all the time, and the far side counts them.
. "$(dirname "$0")/../lib/tap.sh"

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
lab=$top/tests/lab/lab
build=$(cd "$top" && cd "${BUILD:-build}" && pwd)
[ "$(id -u)" = 0 ] || skip_all "needs root"
[ -x "$build/garboard-agent" ] || bail "no $build/garboard-agent"
# From Debian 13 on docker's command is a package of its own.
docker="docker.io $(apt-cache pkgnames docker-cli | grep -x docker-cli)"
root=$(GARBOARD_LAB_EXTRA="firewalld ufw iptables $docker network-manager" \
	"$top/tests/lab/mkroot.sh") || bail "no root with the managers in it"

tmp=$(mktemp -d)
export GARBOARD_LAB="$tmp/lab"
at_exit 'rm -rf --one-file-system "$tmp"'
at_exit '"$lab" down'
"$lab" up 1 --root "$root" --tie $$ >"$tmp/up" 2>&1 ||
	bail "no lab: $(cat "$tmp/up")"
on() { "$lab" exec server-1 "$@"; }
net() { "$lab" net "$@"; }

# ---- the node ----

on mkdir -p /etc/sysusers.d /etc/tmpfiles.d /usr/sbin /usr/lib/garboard
for f in garboard-agent:/usr/sbin garboard-agentd:/usr/lib/garboard; do
	"$lab" cp server-1 "$build/${f%%:*}" "${f#*:}/${f%%:*}"
	on chmod 755 "${f#*:}/${f%%:*}"
done
for f in garboard-agent.service garboard-agent-link.socket \
	garboard-agent-status.socket; do
	"$lab" cp server-1 "$top/units/$f" "/etc/systemd/system/$f"
done
"$lab" cp server-1 "$top/units/sysusers.d/garboard.conf" /etc/sysusers.d/garboard.conf
"$lab" cp server-1 "$here/sender.py" /usr/local/sbin/sender
on systemd-sysusers
on systemctl daemon-reload
# A machine has no /dev/net/tun of its own: its tunnel is made from outside.
nsenter -n -t "$("$lab" pid server-1)" sh -ec '
	ip tuntap add dev wg0 mode tun
	ip addr add 10.64.0.2/32 dev wg0
	ip addr add fd64::2/128 dev wg0 nodad
	ip link set wg0 up
	ip addr add 198.51.100.65/32 dev lo
	ip addr add fd44::5/128 dev lo nodad'
on sh -c 'cat >/root/box.yaml' <<'Y'
apiVersion: garboard/v1
baseline: {timezone: Etc/UTC}
egress:
  classes: {vpn: {sources: [198.51.100.64/28, "fd44::/64"], tunnel: wg0}}
  tunnels:
    wg0:
      kind: wireguard
      endpoints: ["203.0.113.7:51820/udp"]
      table: 51820
      rulePriority: 18200
  uplinks: [eth0]
Y

# ---- the far side, and who sends to it ----

streams="class4 class6 raw"
net nft -f - <<'N' || bail "the far side cannot count"
table netdev tally {
	counter class4 { }
	counter class6 { }
	counter raw { }
	counter plain { }
	chain in {
		type filter hook ingress device "server-1" priority 0
		ether saddr 02:00:00:00:00:01 counter name raw return
		ip saddr 198.51.100.64/28 udp dport 9 counter name class4
		ip6 saddr fd44::/64 udp dport 9 counter name class6
		ip saddr 192.0.2.11 udp dport 9 counter name plain
	}
}
N
arrived() { # STREAM
	net nft list counter netdev tally "$1" |
		sed -n 's/.*packets \([0-9]*\).*/\1/p'
}
leaked() { for s in $streams; do echo "$s=$(arrived "$s")"; done | xargs; }
moved() { [ "$(arrived "$1")" -gt "$2" ]; }
mac=$(net ip -br link show lab0 | awk '{ print $3 }')
on sh -c 'setsid sender "$@" >/run/sent 2>&1 & echo $! >/run/sender' sh \
	198.51.100.65 fd44::5 eth0 "$mac" 203.0.113.9 2001:db8:ffff::1
for s in $streams plain; do
	ok "control: $s packets do arrive while nothing is armed" \
		wait_until 20 moved "$s" 100
done

# ---- armed ----

out=$(on garboard-agent converge --only killswitch,routing \
	--spec /root/box.yaml 2>&1) || bail "not armed: $out"
like "$out" 'changed +routing networkd settings: .*yes by default' \
	"rt01: networkd is told to leave the rules of others alone"
on systemctl start garboard-agent || bail "no agent"
# Ours as nft and ip tell it, without what changes by itself.
closed() {
	on sh -c 'nft -s list table inet garboard
		nft -s list table netdev garboard_egress_eth0
		for f in -4 -6; do ip -d $f rule | grep -E "^(0|182..|3276.):"
		ip -d $f route show table 51820; done' 2>&1 |
		sed 's/ *# progname .*//; /^\tflags/d; s/ linkdown//'
}
closed >"$tmp/before"
like "$(cat "$tmp/before")" '18201:.*198.51.100.64/28.*51820' "the class is steered"
as_before() { closed >"$tmp/now"; cmp -s "$tmp/before" "$tmp/now"; }
stands() { # WHAT
	ok "$1" wait_until 30 as_before ||
		diag "$(diff "$tmp/before" "$tmp/now")"
}
# Everything that goes, from now on.
on sh -c 'stdbuf -oL nft monitor destroy >/run/nft.log 2>&1 &
	stdbuf -oL ip -d monitor rule route >/run/ip.log 2>&1 &'
gone() { on sh -c '{ grep -E "inet garboard|garboard_egress" /run/nft.log
	grep -E "^Deleted.* proto (103|garboard)" /run/ip.log; } | wc -l'; }
logging() { on ip rule add pref 29999 from 203.0.113.1 lookup 7 &&
	on ip rule del pref 29999 && on grep -q 29999 /run/ip.log; }
wait_until 20 logging || bail "rules are not monitored"
# What belongs to nobody here, with a table of our name in another family.
bystander() {
	on sh -c 'nft -f - && ip rule add pref 30000 from 203.0.113.200 lookup 77
		ip route add unreachable default table 77' <<-'N'
	table ip bystander {
		counter c { packets 7 bytes 700 }
		chain x { ip daddr 203.0.113.77 counter packets 5 bytes 500 drop; }
	}
	table ip garboard {
		chain y { ip daddr 203.0.113.78 counter packets 3 bytes 300 accept; }
	}
	N
}
beside() { on sh -c 'nft -a list table ip bystander
	nft -a list table ip garboard
	ip -d rule show pref 30000; ip -d route show table 77' 2>&1; }
bystander
beside=$(beside)
field() { # RESOURCE FIELD
	on garboard-agent status -o json | python3 -c '
import json, sys
for r in json.load(sys.stdin)["resources"]:
    if r["name"] == sys.argv[1]: print(r[sys.argv[2]])' "$@"
}
item() { # KEY: state and reason of an item of routing
	on garboard-agent status -o json | python3 -c '
import json, sys
for r in json.load(sys.stdin)["resources"]:
    for i in r["items"]:
        if r["name"] == "routing" and i["key"] == sys.argv[1]:
            print(i["state"], i["reason"])' "$1"
}
item_is() { item "$1" | grep -qE "^$2"; }
net nft reset counters netdev tally >/dev/null 2>&1 ||
	net nft reset counters table netdev tally >/dev/null
was=$(gone)

# All that is not ours, with handles and counters, is the same before and
# after a repair of ours; the sender rests, and what the kernel itself sends
# meanwhile is no reason to fail at once.
foreign() { on nft -a list ruleset |
	awk '/^table/ { ours = /inet garboard|garboard_egress_/ } !ours'; }
repaired_beside() {
	foreign >"$tmp/foreign"
	on ip rule del pref 18200
	wait_until 20 as_before && foreign | cmp -s "$tmp/foreign" -
}
untouched() { # MANAGER
	on sh -c 'kill -STOP $(cat /run/sender)'
	ok "ks15: a repair of ours leaves all of $1 as it is, with counters" \
		wait_until 20 repaired_beside
	on sh -c 'kill -CONT $(cat /run/sender)'
	was=$(gone)
}
never_gone() { # WHAT
	is "$(gone)" "$was" "$1: nothing of ours was away for a moment"
	stands "$1: and all of it stands"
	is "$(leaked)" "class4=0 class6=0 raw=0" "$1: no class packet arrived"
	plain=$(arrived plain)
	ok "$1: the others go on" wait_until 20 moved plain "$plain"
	was=$(gone)
}

# ---- nftables ----

on nft flush ruleset
never_gone "ks14_flush_ruleset"
bystander 2>/dev/null
on grep -q '^flush ruleset' /etc/nftables.conf || bail "another nftables.conf"
ok "nftables.service restarts" on systemctl restart nftables
never_gone "ks14_nftables_service"
like "$(on nft list ruleset)" 'table inet filter' "and has its own table"
on systemctl stop nftables
never_gone "ks14_nftables_service stopped"
on sh -c 'ip rule del pref 30000; ip route flush table 77'
bystander
beside=$(beside)

# ---- firewalld ----

on systemctl start firewalld
ok "firewalld runs" wait_until 30 on nft list table inet firewalld
never_gone "ks14_firewalld"
untouched firewalld
ok "firewalld takes a rule" on firewall-cmd -q --permanent --add-port=7777/tcp
ok "and reloads" on firewall-cmd -q --reload
like "$(on nft list table inet firewalld)" 'dport 7777' "with the rule in place"
never_gone "ks14_firewalld reloaded"
ok "completely, too" on firewall-cmd -q --complete-reload
never_gone "ks14_firewalld reloaded completely"
on systemctl stop firewalld
never_gone "ks14_firewalld stopped"
is "$(beside)" "$beside" "ks15: what belongs to neither is as it was"

# ---- ufw ----

ok "ufw is enabled" on ufw --force enable
never_gone "ks14_ufw"
untouched ufw
on ufw allow 7778/tcp >/dev/null
like "$(on ufw status)" '7778/tcp +ALLOW' "ufw takes a rule"
ok "and reloads" on ufw reload
never_gone "ks14_ufw reloaded"
ok "and is disabled" on ufw disable
never_gone "ks14_ufw disabled"
is "$(beside)" "$beside" "ks15: what belongs to neither is as it was"

# ---- docker ----

if on timeout 60 systemctl start docker; then
	never_gone "ks14_docker"
	untouched docker
	ok "docker makes a network" on docker network create inner
	like "$(on iptables-save)" 'DOCKER-ISOLATION-STAGE-1.* br-' "with its rules"
	never_gone "ks14_docker with a network"
	ok "docker restarts" on systemctl restart docker
	ok "and knows its network" on docker network inspect inner
	never_gone "ks14_docker restarted"
	on systemctl stop docker docker.socket containerd
	never_gone "ks14_docker stopped"
	is "$(beside)" "$beside" "ks15: what belongs to neither is as it was"
else
	fail "dockerd does not start here"
	diag "$(on journalctl -u docker -o cat -n 9)"
fi

# ---- systemd-networkd ----

on sh -c 'cat >/etc/systemd/network/10-eth0.network' <<'N'
[Match]
Name=eth0
[Network]
Address=192.0.2.11/24
Address=2001:db8::11/64
Gateway=192.0.2.1
Gateway=2001:db8::1
IPv6AcceptRA=no
N
# An address that networkd finds and would give another broadcast makes it ask
# for its own without end; it is to begin without.
on systemctl enable -q systemd-networkd
on ip addr flush dev eth0 scope global
configured() { on networkctl status eth0 | grep -q 'State:.*(configured)'; }
ok "networkd starts" on systemctl start systemd-networkd
ok "and configures the uplink" wait_until 30 configured
never_gone "rt01_networkd"
ok "rt01: the agent sees that it started after its settings" \
	wait_until 30 item_is networkd in-sync || diag "$(item networkd)"
on systemctl restart systemd-networkd
wait_until 30 configured
never_gone "rt01_networkd restarted"
on networkctl reload
ok "networkd makes all of its link anew" on networkctl reconfigure eth0
wait_until 30 configured
never_gone "rt01_networkd reconfigured"
is "$(beside)" "$beside" "the rules of others are left alone with ours"

later=/etc/systemd/networkd.conf.d/99-x.conf
on sh -c "printf '[Network]\nManageForeignRoutingPolicyRules=yes\n' >$later"
ok "rt01: a later file that takes it back is named, with its line" \
	wait_until 30 item_is 'networkd settings' "blocked .*$later:2" ||
	diag "$(item 'networkd settings')"
repairs=$(field routing repairs)
on systemctl restart systemd-networkd
wait_until 30 configured
on networkctl reconfigure eth0
took() { [ "$(gone)" -gt "$was" ]; }
ok "rt01: networkd then takes our rules away" wait_until 30 took
stands "rt01: and they are back"
ok "rt01: counted" [ "$(field routing repairs)" -gt "$repairs" ]
is "$(field routing writer)" "perhaps systemd-networkd[$(on systemctl show \
	-p MainPID --value systemd-networkd)]" "rt01: its name is told as a guess"
is "$(leaked)" "class4=0 class6=0 raw=0" "rt01: no class packet arrived meanwhile"
on rm "$later"
ok "rt01: without that file it still runs by it, and that is said" \
	wait_until 30 item_is networkd 'pending .*systemctl restart' ||
	diag "$(item networkd)"
on systemctl restart systemd-networkd
ok "rt01: until it is restarted" wait_until 90 item_is networkd in-sync ||
	diag "$(item networkd)"
stands "rt01: nothing is missing"
on systemctl stop systemd-networkd.socket systemd-networkd
was=$(gone)
on sh -c 'ip rule del pref 30000; ip route flush table 77' 2>/dev/null
on nft 'delete table ip bystander; delete table ip garboard'
bystander
beside=$(beside)

# ---- NetworkManager ----

ok "NetworkManager starts" on systemctl start NetworkManager
ok "and sees the uplink" wait_until 30 on sh -c 'nmcli -t dev | grep -q ^eth0:'
never_gone "rt01_networkmanager"
on systemctl restart NetworkManager
ok "it restarts" wait_until 30 on sh -c 'nmcli -t dev | grep -q ^eth0:'
ok "and reloads" on nmcli general reload
ok "it takes a connection with rules of its own" on nmcli -w 20 con add \
	type bridge ifname nm0 con-name nm0 ip4 203.0.113.129/28 \
	bridge.stp no ipv6.method disabled \
	ipv4.routing-rules 'priority 31000 from 203.0.113.129 table 78'
ok "brings it up" on nmcli -w 20 con up nm0
ok "with its rule" wait_until 20 on sh -c 'ip rule | grep -q ^31000:'
untouched NetworkManager
on nmcli -w 20 con down nm0 >/dev/null
not_ok "and takes away its own rule with it" on sh -c 'ip rule | grep -q ^31000:'
never_gone "rt01_networkmanager, a connection taken down"
is "$(beside)" "$beside" "what belongs to neither is as it was"
on systemctl stop NetworkManager

# ---- ip rule flush, once and for ever ----

repairs=$(field routing repairs)
on sh -c 'ip rule flush; ip -6 rule flush'
stands "rt01_ip_rule_flush: all rules are back, the kernel's own too"
ok "rt01_ip_rule_flush: counted" [ "$(field routing repairs)" -gt "$repairs" ]
is "$(field routing writer)" "" \
	"rt01_ip_rule_flush: it deletes by a second socket, which has no name"
pid=$(on sh -c 'echo $$; exec ip rule del pref 18200')
named() { field routing writer | grep -qE "^(ip|process)\[$pid\]$"; }
ok "rt01_ip_rule_del: by its process" wait_until 20 named
stands "rt01_ip_rule_del: and it is back"
is "$(leaked)" "class4=0 class6=0 raw=0" "rt01_ip_rule_flush: no class packet arrived"
on sh -c 'i=0; while [ $i -lt 100 ]; do i=$((i + 1))
	ip rule del pref 18201 2>/dev/null; sleep 0.02; done'
contended() { [ "$(field routing contended)" = True ]; }
ok "ks14_repeat_offender: contended is said" wait_until 20 contended
like "$(on garboard-agent health)" 'routing is contended by [a-z]+\[' \
	"ks14_repeat_offender: with a name"
after=$(($(field routing repairs) - repairs))
ok "ks14_repeat_offender: 100 deletions are not 100 repairs ($after)" \
	[ "$after" -lt 60 ]
stands "ks14_repeat_offender: it is back in the end"
is "$(leaked)" "class4=0 class6=0 raw=0" "no class packet arrived in all of this"
on sh -c 'kill $(cat /run/sender)'
sent() { on grep -q class4= /run/sent; }
wait_until 10 sent
diag "sent: $(on cat /run/sent); arrived: $(leaked) plain=$(arrived plain)"
done_testing

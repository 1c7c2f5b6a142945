#!/bin/sh
# A Debian guest with a real kernel, and our package in it. First boot: what
# the resources do about modules, iSCSI, a full disk and a read-only /etc.
# Second boot, without the agent: what was persisted holds alone (MO-02).
. "$(dirname "$0")/guests.sh"

payload run-install guest-node.yaml
payload run-alone guest-node.yaml
guest "a12 a10: a guest installs the package, converges, and turns itself off" \
	run-install -d "$tmp/disk" -a modprobe.blacklist=nlmon
guest "mo02: a boot without the agent comes to its end" run-alone -d "$tmp/disk"
done_testing

#!/bin/sh
# Guests of Debian 12 and 13 with real kernels, and our package in them, side
# by side. First boot: what the resources do about modules, iSCSI, a full disk
# and a read-only /etc. Second boot, without the agent: what was persisted
# holds alone (MO-02).
. "$(dirname "$0")/guests.sh"

payload run-install guest-node.yaml
payload run-alone guest-node.yaml
life() { # RELEASE
	boot_guest "$1" run-install -a modprobe.blacklist=nlmon &&
		boot_guest "$1" run-alone
}
side_by_side life
done_testing

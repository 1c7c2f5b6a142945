#!/bin/bash
# Data disks and swap, on a real kernel with real devices. First boot: a blank
# disk gets its filesystem, one with a filesystem keeps what is on it, one with
# anything else is not touched; swap goes. Second boot, without the agent:
# what was persisted holds alone, and then all of ours is taken back.
. "$(dirname "$0")/guests.sh"

truncate -s 128M "$tmp/blank" "$tmp/mine" "$tmp/dirty"
PATH=$PATH:/usr/sbin mkfs.ext4 -q -L mine -d "$here/../lib" "$tmp/mine" || bail "no mkfs.ext4"
printf x | dd of="$tmp/dirty" bs=1 seek=$((128 * 1024 * 1024 - 5)) conv=notrunc status=none
before=$(sha256sum <"$tmp/dirty")
disks=(-e "$tmp/blank:blank" -e "$tmp/mine:mine" -e "$tmp/dirty:dirty")
payload run-disks disks.yaml
payload run-disks-alone disks-none.yaml
guest "b01 b02: disks and swap are put right, and the guest turns itself off" \
	run-disks -d "$tmp/disk" "${disks[@]}"
is "$(sha256sum <"$tmp/dirty")" "$before" "b02 not one byte of the other disk was written"
guest "b02: a boot without the agent comes to its end" \
	run-disks-alone -d "$tmp/disk" "${disks[@]}"
done_testing

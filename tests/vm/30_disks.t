#!/bin/bash
# Data disks and swap, on a real kernel with real devices. First boot: a blank
# disk gets its filesystem, one with a filesystem keeps what is on it, one with
# anything else is not touched; swap goes. Second boot, without the agent:
# what was persisted holds alone, and then all of ours is taken back.
. "$(dirname "$0")/guests.sh"

payload run-disks disks.yaml
payload run-disks-alone disks-none.yaml
disks() { # RELEASE
	(cd "$(life_dir "$1")" || exit
	truncate -s 128M blank mine dirty
	PATH=$PATH:/usr/sbin mkfs.ext4 -q -L mine -d "$here/../lib" mine
	printf x | dd of=dirty bs=1 seek=$((128 * 1024 * 1024 - 5)) conv=notrunc status=none
	sha256sum <dirty >dirty.sum)
}
life() { # RELEASE
	local d extra
	d=$(life_dir "$1")
	extra=(-e "$d/blank:blank" -e "$d/mine:mine" -e "$d/dirty:dirty")
	disks "$1" && boot_guest "$1" run-disks "${extra[@]}" &&
		boot_guest "$1" run-disks-alone "${extra[@]}"
}
side_by_side life
for rel in $releases; do
	d=$(life_dir "$rel")
	is "$(sha256sum <"$d/dirty")" "$(cat "$d/dirty.sum")" \
		"b02 $rel: not one byte of the other disk was written"
done
done_testing

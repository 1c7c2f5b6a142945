#!/bin/sh
# What only a kernel of its own shows of sysctl and modules: keys beyond the
# agent's capabilities, links and VLANs with udev, and whether a boot without
# the agent makes of our files what we say it will.
. "$(dirname "$0")/guests.sh"

payload run-depth
payload run-depth-alone
life() { boot_guest "$1" run-depth && boot_guest "$1" run-depth-alone; }
side_by_side life
done_testing

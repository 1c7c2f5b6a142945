#!/bin/bash
# What each program may link (DESIGN section 2). $1: build directory.
set -u
bad=0
needed() { readelf -d "$1" | sed -n 's/.*NEEDED.*\[\(.*\)\].*/\1/p'; }
forbid() { # program, pattern
	[ -e "$1" ] || return 0
	if needed "$1" | grep -E "$2"; then echo "$1: must not link the above"; bad=1; fi
}
# Loading these would cost a one-shot more than its work (docs/performance.md).
forbid "$1/garboard-agent" '^lib(ssl|crypto|systemd|protobuf|curl|sqlite3|blkid)'
forbid "$1/garboard-agentd" '^lib(ssl|curl|sqlite3|microhttpd|blkid)\.'
forbid "$1/garboard-link" '^lib(mnl|nftnl|curl|sqlite3|yaml)'
forbid "$1/garboard-lockdown" '^lib(ssl|crypto|systemd|protobuf|yaml|curl)'
forbid "$1/garboard-disk" '^lib(ssl|crypto|systemd|protobuf|yaml|curl|mnl|nftnl)'
forbid "$1/garboard" '^lib(mnl|nftnl)\.'
exit $bad

#!/bin/bash
# Includes go one way (DESIGN section 3): common <- proto <- spec <- agent
# parts, coordinator parts; agent and coordinator never meet; siblings in
# res/ and steps/ never include each other.
set -u
cd "$(dirname "$0")/../.." || exit 1
bad=0
complain() { echo "include direction: $1 includes $2"; bad=1; }

allowed() { # file's part, included part
	case "$1:$2" in
	common:common) ;;
	proto:common|proto:proto) ;;
	spec:common|spec:proto|spec:spec) ;;
	agent:common|agent:proto|agent:spec|agent:agent) ;;
	coordinator:common|coordinator:proto|coordinator:spec|coordinator:coordinator) ;;
	*) return 1 ;;
	esac
}

# Only files of the same base name, shared headers and the registry may be
# included inside a directory of siblings.
sibling() { # file, included
	local dir base own
	dir=$(dirname "$2")
	[ "$(dirname "$1")" = "$dir" ] || return 0
	base=$(basename "$2" .h)
	own=$(basename "$1"); own=${own%.*}
	case "$dir" in
	agent/res) case "$base" in resource) return 0 ;; esac ;;
	coordinator/steps) case "$base" in step) return 0 ;; esac ;;
	*) return 0 ;;
	esac
	[ "$(basename "$1")" = registry.c ] && return 0
	# a resource may be split: killswitch.c, killswitch_plan.c
	[ "${own%%_*}" = "${base%%_*}" ]
}

while IFS=: read -r file inc; do
	part=${file%%/*} ipart=${inc%%/*}
	case "$ipart" in common|proto|spec|agent|coordinator) ;; *) continue ;; esac
	allowed "$part" "$ipart" || complain "$file" "$inc"
	sibling "$file" "$inc" || complain "$file" "$inc"
	case "$file:$inc" in
	agent/link/*:agent/link/*) ;;
	agent/link/*:agent/*|agent/res/*:agent/link/*|agent/nl/*:agent/res/*|agent/bus/*:agent/res/*)
		complain "$file" "$inc" ;;
	esac
done < <(grep -rnoE '^#include "[^"]+"' common proto spec agent coordinator --include='*.[ch]' |
	sed -E 's/^([^:]+):[0-9]+:#include "([^"]+)"/\1:\2/')
exit $bad

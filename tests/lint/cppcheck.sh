#!/bin/bash
set -eu
cd "$(dirname "$0")/../.."
exec cppcheck --quiet -j2 --std=c11 --error-exitcode=1 --inline-suppr --library=posix \
	--enable=warning,portability --suppress=missingIncludeSystem -D_GNU_SOURCE -I. \
	common proto spec agent coordinator

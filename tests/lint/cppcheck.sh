#!/bin/bash
# cppcheck does not know the cleanup attribute, so its leak checks see leaks
# everywhere; the sanitizer variant of the tests looks for real ones.
set -eu
cd "$(dirname "$0")/../.."
exec cppcheck --quiet -j2 --std=c11 --error-exitcode=1 --inline-suppr --library=posix \
	--enable=warning,portability --suppress=missingIncludeSystem \
	--suppress=resourceLeak --suppress=memleak -D_GNU_SOURCE -I. \
	common proto spec agent coordinator

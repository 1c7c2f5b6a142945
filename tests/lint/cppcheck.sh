#!/bin/bash
# cppcheck does not know the cleanup attribute, so its leak checks see leaks
# everywhere; the sanitizer variant of the tests looks for real ones. gcc
# judges formats better, and there are no threads (H23) for readdir to mind.
# A file whose macros it cannot follow is left to clang-tidy.
set -eu
cd "$(dirname "$0")/../.."
exec cppcheck --quiet -j2 --std=c11 --error-exitcode=1 --inline-suppr --library=posix \
	--enable=warning,portability --suppress=missingIncludeSystem \
	--suppress=resourceLeak --suppress=memleak --suppress=readdirCalled --suppress=getpwnamCalled \
	--suppress=invalidPrintfArgType_uint --suppress=invalidPrintfArgType_sint \
	--suppress=normalCheckLevelMaxBranches --suppress=unknownMacro --suppress=syntaxError --suppress=internalAstError \
	--suppress=uninitvar --suppress=legacyUninitvar --include=tests/lint/cppcheck-macros.h \
	-D_GNU_SOURCE -I. common proto spec agent coordinator

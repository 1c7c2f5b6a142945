#!/bin/bash
# $1: preprocessor flags. The checks that find bugs, not tastes. The analyzer
# looks at one function at a time: across functions it does not know that
# -errno is negative, and every output parameter then looks unset. One file
# per process: in the second, this version takes every va_list for unset.
set -eu
cd "$(dirname "$0")/../.."
checks='-*,bugprone-*,clang-analyzer-*,-clang-analyzer-security.insecureAPI.*'
checks+=',-bugprone-easily-swappable-parameters,-bugprone-reserved-identifier'
checks+=',-bugprone-assignment-in-if-condition,-bugprone-narrowing-conversions'
checks+=',-bugprone-implicit-widening-of-multiplication-result,-bugprone-macro-parentheses'
checks+=',-bugprone-branch-clone,-bugprone-sizeof-expression'
# Newer than Debian 12's: what take_ptr(), qsort() and tables of offsets must
# do in C, a switch over numbers from the kernel, "skip one and look", and a
# zeroed enum that is filled in afterwards.
checks+=',-bugprone-multi-level-implicit-pointer-conversion,-bugprone-casting-through-void'
checks+=',-bugprone-switch-missing-default-case,-bugprone-inc-dec-in-conditions'
checks+=',-clang-analyzer-optin.core.EnumCastOutOfRange'
# Across functions these two need what ipa=none takes away.
checks+=',-clang-analyzer-unix.Malloc,-clang-analyzer-valist.Uninitialized'
find common proto spec agent coordinator -name '*.c' -print0 |
	xargs -0 -P2 -n1 sh -c 'clang-tidy --quiet --extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=ipa=none --warnings-as-errors="*" --checks="$0" "$@" -- -DGARBOARD_VERSION=\"0\" '"-std=c17 $1"' 2>/dev/null' "$checks"

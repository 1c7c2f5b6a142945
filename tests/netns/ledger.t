#!/bin/sh
exec "${BUILD:-build}/tests/netns/ledger"

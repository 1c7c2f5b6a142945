/*
 * placeholder.h - the one predicate that tells an undecided value from a
 * real one (B28 to B31). Every scalar of a spec passes it, once, in load.c.
 */
#pragma once

#include <stdbool.h>

/*
 * True for empty text, for TBD, TODO, FIXME, PLACEHOLDER, REPLACE-ME,
 * CHANGE-ME, FILL-ME, SET-ME, BLOCKED, NOT-A-DEVICE, XXXX in any case and
 * anywhere, and for <anything>. A word inside a longer word is not one
 * ("mastodon", "exchange-metrics"), unless it stands out in capitals.
 */
bool spec_is_placeholder(const char *text);

/* True for what some other tool was meant to fill in: ${X}, {{ x }} (B37). */
bool spec_is_template(const char *text);

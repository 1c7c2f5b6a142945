/* What garboard-lockdown leaves for the agent's log (watch.h). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/ledger/watch.h"
#include "common/parse.h"

#define LINE_MAX_BYTES 128

int ledger_stood_format(usec now, usec wall, bool all, char *buf, size_t size)
{
	int n = snprintf(buf, size, "%" PRIu64 " %" PRIu64 " %s\n", now, wall,
			 all ? "all" : "part");

	return n < 0 || (size_t)n >= size ? -E2BIG : 0;
}

int ledger_stood_parse(const char *text, usec *ret_at, usec *ret_wall,
		       bool *ret_all)
{
	char copy[LINE_MAX_BYTES], *next = copy, *at, *wall, *all;
	uint64_t a, w;

	if (strlen(text) >= sizeof(copy))
		return -EBADMSG;
	(void)memcpy(copy, text, strlen(text) + 1);
	copy[strcspn(copy, "\n")] = '\0';
	at = strsep(&next, " ");
	wall = strsep(&next, " ");
	all = strsep(&next, " ");
	if (!all || next || parse_u64(at, UINT64_MAX, &a) < 0 ||
	    parse_u64(wall, UINT64_MAX, &w) < 0 ||
	    (strcmp(all, "all") != 0 && strcmp(all, "part") != 0))
		return -EBADMSG;
	*ret_at = a;
	*ret_wall = w;
	*ret_all = strcmp(all, "all") == 0;
	return 0;
}

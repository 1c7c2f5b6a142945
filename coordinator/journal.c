#include "coordinator/journal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fault.h"
#include "common/log.h"
#include "coordinator/store.h"

#define REMEMBERED 256	/* peers and reasons; a collision only repeats */

struct journal {
	struct store *store;
	struct {
		uint64_t key;
		usec at;
	} seen[REMEMBERED];
};

struct journal *journal_new(struct store *store)
{
	struct journal *j = calloc(1, sizeof(*j));

	if (j)
		j->store = store;
	return j;
}

struct journal *journal_free(struct journal *j)
{
	free(j);
	return NULL;
}

static void copy_text(char *to, size_t size, const char *from)
{
	(void)snprintf(to, size, "%s", from ? from : "");
}

void journal_note(struct journal *j, const char *stage, const char *node,
		  const char *fmt, ...)
{
	struct store_event e = { .at = clock_realtime() };
	va_list ap;

	copy_text(e.stage, sizeof(e.stage), stage);
	copy_text(e.node, sizeof(e.node), node);
	va_start(ap, fmt);
	(void)vsnprintf(e.text, sizeof(e.text), fmt, ap);
	va_end(ap);
	fault_sanitize(e.node);
	fault_sanitize(e.text);
	log_notice("%s%s%s", e.node, e.node[0] ? ": " : "", e.text);
	/* The log line is out; a full disk must not stop the fleet. */
	if (j->store)
		(void)store_event_add(j->store, &e, NULL);
}

static uint64_t hash_text(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	return h * 31 + 1;
}

void journal_refused(struct journal *j, const char *peer, const char *reason,
		     usec now)
{
	uint64_t key = hash_text(UINT64_C(0xcbf29ce484222325), peer);
	size_t at;

	key = hash_text(key, reason);
	at = key % REMEMBERED;
	if (j->seen[at].key == key && now - j->seen[at].at < JOURNAL_REPEAT)
		return;
	j->seen[at].key = key;
	j->seen[at].at = now;
	journal_note(j, "refused", NULL, "%s: refused: %s", peer, reason);
}

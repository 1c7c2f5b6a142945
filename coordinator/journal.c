#include "coordinator/journal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/fault.h"
#include "common/log.h"
#include "coordinator/conn.h"
#include "coordinator/store.h"

#define REMEMBERED 256	/* peers and reasons; a collision only repeats */
#define WAITING_MAX 256	/* rows */
#define FLUSH_AFTER USEC_PER_SEC
#define FLUSH_ACCURACY (100 * USEC_PER_MSEC)

struct journal {
	struct store *store;
	sd_event_source *timer;
	struct store_event *waiting;
	size_t n_waiting;
	struct {
		uint64_t key;
		usec at;
	} seen[REMEMBERED];
};

static int on_timer(sd_event_source *source, uint64_t now, void *userdata)
{
	(void)source, (void)now;
	journal_flush(userdata);
	return 0;
}

struct journal *journal_new(sd_event *event, struct store *store)
{
	struct journal *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->store = store;
	if (sd_event_add_time_relative(event, &j->timer, CLOCK_MONOTONIC,
				       FLUSH_AFTER, FLUSH_ACCURACY, on_timer,
				       j) < 0) {
		free(j);
		return NULL;
	}
	(void)sd_event_source_set_enabled(j->timer, SD_EVENT_OFF);
	return j;
}

struct journal *journal_free(struct journal *j)
{
	if (!j)
		return NULL;
	journal_flush(j);
	(void)sd_event_source_disable_unref(j->timer);
	free(j);
	return NULL;
}

/* The log lines are out; a full disk must not stop the fleet. */
void journal_flush(struct journal *j)
{
	if (j->n_waiting == 0)
		return;
	if (store_begin(j->store, NULL) == 0) {
		for (size_t i = 0; i < j->n_waiting; i++)
			(void)store_event_add(j->store, &j->waiting[i], NULL);
		(void)store_end(j->store, true, NULL);
	}
	free(j->waiting);
	j->waiting = NULL;
	j->n_waiting = 0;
	(void)sd_event_source_set_enabled(j->timer, SD_EVENT_OFF);
}

/* An idle journal owns no memory for rows. */
static void keep(struct journal *j, const struct store_event *e)
{
	if (!j->waiting) {
		j->waiting = calloc(WAITING_MAX, sizeof(*j->waiting));
		if (!j->waiting)
			return;
		(void)sd_event_source_set_time_relative(j->timer, FLUSH_AFTER);
		(void)sd_event_source_set_enabled(j->timer, SD_EVENT_ONESHOT);
	}
	/* A storm: what does not fit until the timer is in the log alone. */
	if (j->n_waiting < WAITING_MAX)
		j->waiting[j->n_waiting++] = *e;
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
	keep(j, &e);
}

static uint64_t hash_text(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	return h * 31 + 1;
}

/* Without its port: each connection of one host comes from another. */
static uint64_t hash_peer(uint64_t h, const char *peer)
{
	const char *colon = strrchr(peer, ':');
	size_t n = colon ? (size_t)(colon - peer) : strlen(peer);
	char host[CONN_PEER_MAX + STORE_NAME_MAX + 8];

	(void)snprintf(host, sizeof(host), "%.*s", (int)n, peer);
	return hash_text(h, host);
}

void journal_refused(struct journal *j, const char *peer, const char *reason,
		     usec now)
{
	uint64_t key = hash_peer(UINT64_C(0xcbf29ce484222325), peer);
	size_t at;

	key = hash_text(key, reason);
	at = key % REMEMBERED;
	if (j->seen[at].key == key && now - j->seen[at].at < JOURNAL_REPEAT)
		return;
	j->seen[at].key = key;
	j->seen[at].at = now;
	journal_note(j, "refused", NULL, "%s: refused: %s", peer, reason);
}

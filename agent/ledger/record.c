#include "agent/ledger/record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/parse.h"

#define FORM "garboard-log-1"
#define SUM_BASIS UINT64_C(14695981039346656037)
#define SUM_PRIME UINT64_C(1099511628211)
#define SUM_DIGITS 16

static const char *const events[] = {
	[LEDGER_START] = "start",	[LEDGER_LOOK] = "look",
	[LEDGER_BEAT] = "beat",		[LEDGER_STOP] = "stop",
	[LEDGER_LOCKDOWN] = "lockdown", [LEDGER_LOST] = "lost",
	[LEDGER_CUT] = "cut",
};
static const char *const states[] = {
	[LEDGER_STANDS] = "stands",
	[LEDGER_MISSING] = "missing",
	[LEDGER_UNKNOWN] = "unknown",
};

_Static_assert(sizeof(events) / sizeof(events[0]) == LEDGER_EVENT_MAX,
	       "a name per event");
_Static_assert(sizeof(states) / sizeof(states[0]) == LEDGER_STATE_MAX,
	       "a name per state");

const char *ledger_event_name(enum ledger_event event)
{
	return event < LEDGER_EVENT_MAX ? events[event] : "";
}

const char *ledger_state_name(enum ledger_state state)
{
	return state < LEDGER_STATE_MAX ? states[state] : "";
}

/* Whatever would end a word is no part of one. */
static void put_word(char *to, size_t size, const char *text)
{
	size_t i;

	for (i = 0; i + 1 < size && text[i]; i++)
		to[i] = text[i] <= ' ' || text[i] == '=' || text[i] == ',' ||
				text[i] >= 0x7f ?
				'_' : text[i];
	to[i] = '\0';
}

int ledger_add_layer(struct ledger_record *r, const char *name,
		     enum ledger_state state)
{
	struct ledger_layer *l = &r->layers[r->n_layers];

	if (r->n_layers >= LEDGER_LAYERS_MAX)
		return -E2BIG;
	put_word(l->name, sizeof(l->name), name);
	l->state = state;
	r->n_layers++;
	return 0;
}

int ledger_add_class(struct ledger_record *r, const char *name)
{
	if (r->n_classes >= LEDGER_CLASSES_MAX)
		return -E2BIG;
	put_word(r->classes[r->n_classes++], LEDGER_CLASS_MAX, name);
	return 0;
}

void ledger_set_cause(struct ledger_record *r, const char *text)
{
	put_word(r->cause, sizeof(r->cause), text);
}

bool ledger_same(const struct ledger_record *a, const struct ledger_record *b)
{
	size_t i;

	if (a->n_classes != b->n_classes || a->n_layers != b->n_layers)
		return false;
	for (i = 0; i < a->n_classes; i++)
		if (strcmp(a->classes[i], b->classes[i]) != 0)
			return false;
	for (i = 0; i < a->n_layers; i++)
		if (strcmp(a->layers[i].name, b->layers[i].name) != 0 ||
		    a->layers[i].state != b->layers[i].state)
			return false;
	return true;
}

static uint64_t add_up(const char *text, size_t size)
{
	uint64_t sum = SUM_BASIS;
	size_t i;

	for (i = 0; i < size; i++)
		sum = (sum ^ (unsigned char)text[i]) * SUM_PRIME;
	return sum;
}

/* ---- to a line ---- */

int ledger_encode(const struct ledger_record *r, char line[LEDGER_LINE_MAX])
{
	size_t n, i, room = LEDGER_LINE_MAX;

	n = (size_t)snprintf(line, room, FORM " %" PRIu64 " %s %" PRIu64
			     " %" PRIu64 " %" PRIu64 " %s", r->seq, r->boot,
			     r->at, r->wall, r->known, events[r->event]);
	if (r->count && n < room)
		n += (size_t)snprintf(line + n, room - n, " count=%" PRIu64,
				      r->count);
	if (r->cause[0] && n < room)
		n += (size_t)snprintf(line + n, room - n, " cause=%s",
				      r->cause);
	for (i = 0; i < r->n_classes && n < room; i++)
		n += (size_t)snprintf(line + n, room - n, " class=%s",
				      r->classes[i]);
	for (i = 0; i < r->n_layers && n < room; i++)
		n += (size_t)snprintf(line + n, room - n, " %s=%s",
				      states[r->layers[i].state],
				      r->layers[i].name);
	if (n + 1 + SUM_DIGITS + 1 >= room)
		return -E2BIG;
	n += (size_t)snprintf(line + n, room - n, " %016" PRIx64 "\n",
			      add_up(line, n));
	return (int)n;
}

/* ---- from a line ---- */

static int parse_event(const char *word, enum ledger_event *ret_event)
{
	unsigned int i;

	for (i = 0; i < LEDGER_EVENT_MAX; i++)
		if (strcmp(word, events[i]) == 0) {
			*ret_event = (enum ledger_event)i;
			return 0;
		}
	return -EBADMSG;
}

static int parse_pair(char *word, struct ledger_record *r)
{
	char *value = strchr(word, '=');
	unsigned int i;

	if (!value)
		return -EBADMSG;
	*value++ = '\0';
	if (strcmp(word, "count") == 0)
		return parse_u64(value, UINT64_MAX, &r->count);
	if (strcmp(word, "cause") == 0) {
		put_word(r->cause, sizeof(r->cause), value);
		return 0;
	}
	if (strcmp(word, "class") == 0)
		return ledger_add_class(r, value);
	for (i = 0; i < LEDGER_STATE_MAX; i++)
		if (strcmp(word, states[i]) == 0)
			return ledger_add_layer(r, value,
						(enum ledger_state)i);
	return -EBADMSG;
}

static int parse_word(unsigned int i, char *word, struct ledger_record *r)
{
	switch (i) {
	case 0:
		return strcmp(word, FORM) == 0 ? 0 : -EPROTO;
	case 1:
		return parse_u64(word, UINT64_MAX, &r->seq);
	case 2:
		if (strlen(word) >= sizeof(r->boot))
			return -EBADMSG;
		(void)memcpy(r->boot, word, strlen(word) + 1);
		return 0;
	case 3:
		return parse_u64(word, UINT64_MAX, &r->at);
	case 4:
		return parse_u64(word, UINT64_MAX, &r->wall);
	case 5:
		return parse_u64(word, UINT64_MAX, &r->known);
	case 6:
		return parse_event(word, &r->event);
	}
	return parse_pair(word, r);
}

int ledger_decode(const char *line, size_t size, struct ledger_record *ret)
{
	struct ledger_record r = { 0 };
	char copy[LEDGER_LINE_MAX], sum[SUM_DIGITS + 1], *next = copy, *word;
	unsigned int i = 0;
	int err = 0;

	if (size <= SUM_DIGITS + 1 || size >= sizeof(copy) ||
	    memchr(line, '\0', size))
		return -EBADMSG;
	size -= SUM_DIGITS + 1;
	(void)snprintf(sum, sizeof(sum), "%016" PRIx64, add_up(line, size));
	if (line[size] != ' ' || memcmp(line + size + 1, sum, SUM_DIGITS) != 0)
		return -EBADMSG;
	(void)memcpy(copy, line, size);
	copy[size] = '\0';
	while (err == 0 && (word = strsep(&next, " ")))
		err = parse_word(i++, word, &r);
	if (err == -EPROTO)
		return err;
	if (err < 0 || i < 7 || r.known > r.at)
		return -EBADMSG;
	*ret = r;
	return 0;
}

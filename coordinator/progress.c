#include "coordinator/progress.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/fault.h"

#define PROGRESS_TEXT_MAX 400
#define WAIT_REPEAT (30 * USEC_PER_SEC)

struct progress {
	FILE *out;
	enum progress_style style;
	char stage[64];
	unsigned int number, total;
	usec stage_since;
	char wait[PROGRESS_TEXT_MAX];
	usec wait_since, wait_shown;
	bool live;		/* a live line stands on the terminal */
};

struct progress *progress_new(FILE *out, enum progress_style style)
{
	struct progress *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->out = out;
	p->style = style;
	return p;
}

enum progress_style progress_style_for(FILE *out, bool plain)
{
	const char *term = getenv("TERM");

	if (plain || !isatty(fileno(out)) || !term ||
	    strcmp(term, "dumb") == 0)
		return PROGRESS_PLAIN;
	return PROGRESS_LIVE;
}

static unsigned int seconds_since(usec since)
{
	return (unsigned int)((clock_boottime() - since) / USEC_PER_SEC);
}

static void live_clear(struct progress *p)
{
	if (p->live)
		(void)fputs("\r\033[K", p->out);
	p->live = false;
}

static unsigned int columns(FILE *out)
{
	struct winsize size;

	if (ioctl(fileno(out), TIOCGWINSZ, &size) < 0 || size.ws_col < 20)
		return 80;
	return size.ws_col;
}

/* Cut by columns, so that a narrow terminal never wraps the live line. */
static void live_draw(struct progress *p)
{
	char line[PROGRESS_TEXT_MAX + 128];

	(void)snprintf(line, sizeof(line), "  ... %s (%u s, stage %u s)",
		       p->wait, seconds_since(p->wait_since),
		       seconds_since(p->stage_since));
	live_clear(p);
	(void)fprintf(p->out, "%.*s", (int)columns(p->out) - 1, line);
	p->live = true;
	(void)fflush(p->out);
}

static void emit_json(struct progress *p, const char *kind, const char *node,
		      const char *text)
{
	json_t *o = json_pack("{ss ss ss* ss sI}", "event", kind, "stage",
			      p->stage, "node", node, "text", text, "time",
			      (json_int_t)(clock_realtime() / USEC_PER_SEC));

	if (!o)
		return;
	(void)json_dumpf(o, p->out, JSON_COMPACT);
	(void)fputc('\n', p->out);
	(void)fflush(p->out);
	json_decref(o);
}

void progress_stage(struct progress *p, unsigned int number,
		    unsigned int total, const char *stage)
{
	(void)snprintf(p->stage, sizeof(p->stage), "%s", stage);
	p->number = number;
	p->total = total;
	p->stage_since = clock_boottime();
	p->wait[0] = '\0';
	if (p->style == PROGRESS_JSON) {
		emit_json(p, "stage", NULL, "start");
		return;
	}
	live_clear(p);
	(void)fprintf(p->out, "[%u/%u] %s\n", number, total, stage);
	(void)fflush(p->out);
}

void progress_stage_end(struct progress *p, const char *outcome)
{
	if (p->style == PROGRESS_JSON) {
		emit_json(p, "stage-end", NULL, outcome);
		return;
	}
	live_clear(p);
	(void)fprintf(p->out, "[%u/%u] %s: %s (%.1f s)\n", p->number, p->total,
		      p->stage, outcome,
		      (double)(clock_boottime() - p->stage_since) /
			      (double)USEC_PER_SEC);
	(void)fflush(p->out);
}

static void compose(char *buf, const char *node, const char *fmt, va_list ap)
{
	int n = 0;

	if (node)
		n = snprintf(buf, PROGRESS_TEXT_MAX, "%s: ", node);
	if (n >= 0 && n < PROGRESS_TEXT_MAX)
		(void)vsnprintf(buf + n, PROGRESS_TEXT_MAX - (size_t)n, fmt,
				ap);
	fault_sanitize(buf);
}

void progress_fact(struct progress *p, const char *node, const char *fmt, ...)
{
	char text[PROGRESS_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	compose(text, p->style == PROGRESS_JSON ? NULL : node, fmt, ap);
	va_end(ap);
	if (p->style == PROGRESS_JSON) {
		emit_json(p, "fact", node, text);
		return;
	}
	live_clear(p);
	(void)fprintf(p->out, "  %s\n", text);
	(void)fflush(p->out);
}

void progress_wait(struct progress *p, const char *node, const char *fmt, ...)
{
	char text[PROGRESS_TEXT_MAX];
	usec now = clock_boottime();
	bool same;
	va_list ap;

	va_start(ap, fmt);
	compose(text, node, fmt, ap);
	va_end(ap);
	same = strcmp(text, p->wait) == 0;
	if (!same) {
		(void)snprintf(p->wait, sizeof(p->wait), "%s", text);
		p->wait_since = now;
	}
	if (p->style == PROGRESS_LIVE) {
		live_draw(p);
		return;
	}
	if (same && now - p->wait_shown < WAIT_REPEAT)
		return;
	p->wait_shown = now;
	if (p->style == PROGRESS_JSON)
		emit_json(p, "wait", node, text);
	else
		(void)fprintf(p->out, "  waiting: %s (%u s)\n", text,
			      seconds_since(p->wait_since));
	(void)fflush(p->out);
}

struct progress *progress_free(struct progress *p)
{
	if (p)
		live_clear(p);
	free(p);
	return NULL;
}

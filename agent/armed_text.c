/*
 * The text of the armed record. One word and its value a line; "class"
 * begins a class, and the last line is "end", so that a cut file shows.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/armed.h"
#include "common/cleanup.h"
#include "common/parse.h"

#define HEAD "garboard-armed-1"
#define WORDS_MAX 5

/* ---- writing ---- */

/* Written at every look: without printf. */
static void put_line(FILE *out, const char *word, const char *value)
{
	(void)fputs(word, out);
	(void)fputc(' ', out);
	(void)fputs(value, out);
	(void)fputc('\n', out);
}

static void put_prefixes(FILE *out, const char *word,
			 const struct prefix_list *list)
{
	char buf[IP_TEXT_MAX];
	size_t i;

	for (i = 0; i < list->n; i++)
		put_line(out, word, ip_prefix_format(&list->v[i], buf));
}

static void put_endpoints(FILE *out, const struct desired_tunnel *t)
{
	char buf[IP_TEXT_MAX];
	size_t i;

	for (i = 0; i < t->n_endpoints; i++)
		(void)fprintf(out, "endpoint %s\n",
			      ip_endpoint_format(&t->endpoints[i], buf));
}

static void put_class(FILE *out, const struct desired_egress *e,
		      const struct desired_class *c)
{
	char buf[IP_TEXT_MAX];
	size_t i;

	put_line(out, "class", c->name);
	if (c->tunnel < e->n_tunnels) {
		const struct desired_tunnel *t = &e->tunnels[c->tunnel];

		(void)fprintf(out, "tunnel %s %u %u %u\n", t->name,
			      (unsigned int)t->kind, t->table, t->priority);
		put_endpoints(out, t);
	}
	if (c->gateway)
		(void)fprintf(out, "gateway\n");
	if (c->mask)
		(void)fprintf(out, "mark 0x%x 0x%x\n", c->mark, c->mask);
	put_prefixes(out, "pods", &c->pods);
	put_prefixes(out, "source", &c->sources);
	for (i = 0; i < c->n_dns; i++)
		put_line(out, "dns", ip_addr_format(&c->dns[i], buf));
}

int armed_format(const struct armed *a, char **ret_text)
{
	const struct desired_egress *e = &a->d->egress;
	char *text = NULL;
	size_t size, i;
	FILE *out = open_memstream(&text, &size);
	bool bad;

	if (!out)
		return -ENOMEM;
	(void)fputs(HEAD "\n", out);
	put_prefixes(out, "local", &e->local);
	for (i = 0; i < e->uplinks.n; i++)
		put_line(out, "uplink", e->uplinks.v[i]);
	for (i = 0; i < a->disarmed.n; i++)
		put_line(out, "disarmed", a->disarmed.v[i]);
	for (i = 0; i < e->n_classes; i++)
		put_class(out, e, &e->classes[i]);
	(void)fputs("end\n", out);
	bad = ferror(out);
	if (fclose(out) != 0 || bad) {
		free(text);
		return -ENOMEM;
	}
	*ret_text = text;
	return 0;
}

/* ---- reading ---- */

struct reader {
	struct armed *a;
	struct desired_class *c;	/* the class being read, or NULL */
	bool ended;
};

static int on_prefix(struct prefix_list *list, const char *text)
{
	struct ip_prefix p;
	int r = ip_prefix_parse(text, &p);

	return r < 0 ? r : prefix_list_add(list, &p);
}

static int on_class(struct reader *rd, char **w)
{
	struct desired_egress *e = &rd->a->d->egress;
	struct desired_class *v;

	if (e->n_classes >= DESIRED_CLASSES_MAX || !parse_is_label(w[1]) ||
	    armed_class(e, w[1]))
		return -EINVAL;
	v = reallocarray(e->classes, e->n_classes + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	e->classes = v;
	rd->c = &v[e->n_classes];
	*rd->c = (struct desired_class){ .tunnel = SIZE_MAX };
	rd->c->name = strdup(w[1]);
	if (!rd->c->name)
		return -ENOMEM;
	e->n_classes++;
	return 0;
}

static int on_tunnel(struct reader *rd, char **w)
{
	struct desired_egress *e = &rd->a->d->egress;
	struct desired_tunnel *v, t = { 0 };
	uint32_t kind;
	size_t i;

	if (strlen(w[1]) > 15 || parse_u32(w[2], &kind) < 0 ||
	    kind >= TUNNEL_KIND_MAX || parse_u32(w[3], &t.table) < 0 ||
	    parse_u32(w[4], &t.priority) < 0)
		return -EINVAL;
	t.kind = (enum tunnel_kind)kind;
	for (i = 0; i < e->n_tunnels; i++)
		if (strcmp(e->tunnels[i].name, w[1]) == 0)
			break;
	rd->c->tunnel = i;
	if (i < e->n_tunnels)
		return 0;
	if (i >= DESIRED_TUNNELS_MAX)
		return -E2BIG;
	v = reallocarray(e->tunnels, i + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	e->tunnels = v;
	t.name = strdup(w[1]);
	if (!t.name)
		return -ENOMEM;
	v[e->n_tunnels++] = t;
	return 0;
}

static bool has_endpoint(const struct desired_tunnel *t,
			 const struct ip_endpoint *e)
{
	size_t i;

	for (i = 0; i < t->n_endpoints; i++)
		if (ip_addr_cmp(&t->endpoints[i].addr, &e->addr) == 0 &&
		    t->endpoints[i].port == e->port &&
		    t->endpoints[i].proto == e->proto)
			return true;
	return false;
}

/* Of the tunnel above it; said again for each class that uses the tunnel. */
static int on_endpoint(struct reader *rd, char **w)
{
	struct desired_egress *eg = &rd->a->d->egress;
	struct ip_endpoint *v, e;
	struct desired_tunnel *t;

	if (rd->c->tunnel >= eg->n_tunnels ||
	    ip_endpoint_parse(w[1], &e) < 0)
		return -EINVAL;
	t = &eg->tunnels[rd->c->tunnel];
	if (has_endpoint(t, &e))
		return 0;
	if (t->n_endpoints >= DESIRED_ENDPOINTS_MAX)
		return -E2BIG;
	v = reallocarray(t->endpoints, t->n_endpoints + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	t->endpoints = v;
	v[t->n_endpoints++] = e;
	return 0;
}

static int on_mark(struct reader *rd, char **w)
{
	if (parse_u32(w[1], &rd->c->mark) < 0 ||
	    parse_u32(w[2], &rd->c->mask) < 0)
		return -EINVAL;
	return 0;
}

static int on_dns(struct reader *rd, char **w)
{
	struct ip_addr *v, a;

	if (ip_addr_parse(w[1], &a) < 0 || rd->c->n_dns >= DESIRED_PREFIXES_MAX)
		return -EINVAL;
	v = reallocarray(rd->c->dns, rd->c->n_dns + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	rd->c->dns = v;
	v[rd->c->n_dns++] = a;
	return 0;
}

static int on_gateway(struct reader *rd, char **w)
{
	(void)w;
	rd->c->gateway = true;
	return 0;
}

static int on_pods(struct reader *rd, char **w)
{
	return on_prefix(&rd->c->pods, w[1]);
}

static int on_source(struct reader *rd, char **w)
{
	return on_prefix(&rd->c->sources, w[1]);
}

static int on_local(struct reader *rd, char **w)
{
	return on_prefix(&rd->a->d->egress.local, w[1]);
}

static int on_uplink(struct reader *rd, char **w)
{
	return strlist_add(&rd->a->d->egress.uplinks, w[1]);
}

static int on_disarmed(struct reader *rd, char **w)
{
	return strlist_add(&rd->a->disarmed, w[1]);
}

static int on_end(struct reader *rd, char **w)
{
	(void)w;
	rd->ended = true;
	return 0;
}

static const struct {
	const char *word;
	int words;
	bool in_class;
	int (*read)(struct reader *rd, char **w);
} lines[] = {
	{ "class", 2, false, on_class },
	{ "tunnel", 5, true, on_tunnel },
	{ "endpoint", 2, true, on_endpoint },
	{ "gateway", 1, true, on_gateway },
	{ "mark", 3, true, on_mark },
	{ "pods", 2, true, on_pods },
	{ "source", 2, true, on_source },
	{ "dns", 2, true, on_dns },
	{ "local", 2, false, on_local },
	{ "uplink", 2, false, on_uplink },
	{ "disarmed", 2, false, on_disarmed },
	{ "end", 1, false, on_end },
};

static int read_line(struct reader *rd, char *line)
{
	char *w[WORDS_MAX + 1] = { NULL }, *save = NULL, *word;
	size_t i;
	int n = 0;

	for (word = strtok_r(line, " ", &save); word && n <= WORDS_MAX;
	     word = strtok_r(NULL, " ", &save))
		w[n++] = word;
	if (n == 0 || rd->ended)
		return -EINVAL;
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		if (strcmp(lines[i].word, w[0]) != 0)
			continue;
		if (lines[i].words != n || (lines[i].in_class && !rd->c))
			return -EINVAL;
		return lines[i].read(rd, w);
	}
	return -EINVAL;
}

static int read_lines(struct reader *rd, char *text, struct fault *f)
{
	char *save = NULL, *line;
	unsigned int number = 1;
	int r;

	line = strtok_r(text, "\n", &save);
	if (!line || strcmp(line, HEAD) != 0)
		return fault_set(f, -EBADMSG, "armed record",
				 "damaged: not a record");
	while ((line = strtok_r(NULL, "\n", &save))) {
		number++;
		r = read_line(rd, line);
		if (r == -ENOMEM)
			return fault_errno(f, r, "armed record", "read");
		if (r < 0)
			return fault_set(f, -EBADMSG, "armed record",
					 "damaged: line %u", number);
	}
	if (!rd->ended)
		return fault_set(f, -EBADMSG, "armed record",
				 "damaged: it has no end");
	return 0;
}

int armed_parse(const char *text, struct armed *ret_armed, struct fault *f)
{
	_cleanup_free_ char *copy = strdup(text);
	struct armed a = ARMED_INIT;
	struct reader rd = { .a = &a };
	int r;

	a.d = desired_new();
	if (!copy || !a.d)
		r = fault_errno(f, -ENOMEM, "armed record", "read");
	else
		r = read_lines(&rd, copy, f);
	if (r < 0) {
		armed_done(&a);
		return r;
	}
	a.found = true;
	*ret_armed = a;
	return 0;
}

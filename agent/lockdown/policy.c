#include "agent/lockdown/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/lockdown_file.h"
#include "common/cleanup.h"
#include "common/file.h"

#define NAME_MAX_BYTES 64
#define WORD_MAX 64
/*
 * The marks a class may have: bits 12 and 13 while Cilium's magic (bits 8
 * to 11) is zero, which is what the spec allows (spec/reserved.c).
 */
#define MARK_MASK 0x3f00u
#define MARK_STEP 0x1000u
#define MARKS 3

void policy_done(struct policy *p)
{
	p->d = desired_free(p->d);
}

/* ---- the union ---- */

static bool same_prefixes(const struct prefix_list *a,
			  const struct prefix_list *b)
{
	size_t i;

	for (i = 0; a->n == b->n && i < a->n; i++)
		if (ip_prefix_cmp(&a->v[i], &b->v[i]) != 0)
			return false;
	return a->n == b->n;
}

static bool same_dns(const struct desired_class *a,
		     const struct desired_class *b)
{
	size_t i;

	for (i = 0; a->n_dns == b->n_dns && i < a->n_dns; i++)
		if (ip_addr_cmp(&a->dns[i], &b->dns[i]) != 0)
			return false;
	return a->n_dns == b->n_dns;
}

static const struct desired_tunnel *tunnel_of(const struct desired_egress *e,
					      const struct desired_class *c)
{
	return c->tunnel < e->n_tunnels ? &e->tunnels[c->tunnel] : NULL;
}

static bool same_tunnel(const struct desired_tunnel *a,
			const struct desired_tunnel *b)
{
	if (!a || !b)
		return a == b;
	return strcmp(a->name, b->name) == 0 && a->table == b->table &&
	       a->priority == b->priority;
}

static bool has_class(const struct desired_egress *to,
		      const struct desired_egress *from,
		      const struct desired_class *c)
{
	size_t i;

	for (i = 0; i < to->n_classes; i++) {
		const struct desired_class *o = &to->classes[i];

		if (o->mark == c->mark && o->mask == c->mask &&
		    o->gateway == c->gateway &&
		    same_tunnel(tunnel_of(to, o), tunnel_of(from, c)) &&
		    same_prefixes(&o->pods, &c->pods) &&
		    same_prefixes(&o->sources, &c->sources) &&
		    same_dns(o, c))
			return true;
	}
	return false;
}

static int copy_prefixes(const struct prefix_list *from,
			 struct prefix_list *to)
{
	size_t i;
	int r = 0;

	for (i = 0; i < from->n && r == 0; i++)
		r = prefix_list_add(to, &from->v[i]);
	return r;
}

/* One of a name with another table or priority is another tunnel here. */
static int copy_tunnel(const struct desired_tunnel *t,
		       struct desired_egress *to, size_t *ret_index)
{
	struct desired_tunnel *v;
	size_t i;

	for (i = 0; i < to->n_tunnels; i++)
		if (same_tunnel(&to->tunnels[i], t))
			break;
	*ret_index = i;
	if (i < to->n_tunnels)
		return 0;
	v = reallocarray(to->tunnels, i + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	to->tunnels = v;
	v[i] = (struct desired_tunnel){ .kind = t->kind, .table = t->table,
					.priority = t->priority };
	v[i].name = strdup(t->name);
	if (!v[i].name)
		return -ENOMEM;
	to->n_tunnels++;
	return 0;
}

static struct desired_class *new_class(struct desired_egress *to,
				       const char *name)
{
	struct desired_class *v;
	char text[NAME_MAX_BYTES];

	/* Another class of a name gets a number before it, no label has. */
	if (armed_class(to, name))
		(void)snprintf(text, sizeof(text), "%zu.%.60s", to->n_classes,
			       name);
	else
		(void)snprintf(text, sizeof(text), "%.63s", name);
	v = reallocarray(to->classes, to->n_classes + 1, sizeof(*v));
	if (!v)
		return NULL;
	to->classes = v;
	v += to->n_classes;
	*v = (struct desired_class){ .tunnel = SIZE_MAX };
	v->name = strdup(text);
	if (!v->name)
		return NULL;
	to->n_classes++;
	return v;
}

static int add_class(struct desired_egress *to,
		     const struct desired_egress *from,
		     const struct desired_class *c)
{
	const struct desired_tunnel *t = tunnel_of(from, c);
	struct desired_class *copy;
	int r = 0;

	if (has_class(to, from, c))
		return 0;
	copy = new_class(to, c->name);
	if (!copy)
		return -ENOMEM;
	copy->mark = c->mark;
	copy->mask = c->mask;
	copy->gateway = c->gateway;
	if (t)
		r = copy_tunnel(t, to, &copy->tunnel);
	if (r == 0)
		r = copy_prefixes(&c->pods, &copy->pods);
	if (r == 0)
		r = copy_prefixes(&c->sources, &copy->sources);
	if (r < 0 || c->n_dns == 0)
		return r;
	copy->dns = calloc(c->n_dns, sizeof(*copy->dns));
	if (!copy->dns)
		return -ENOMEM;
	(void)memcpy(copy->dns, c->dns, c->n_dns * sizeof(*copy->dns));
	copy->n_dns = c->n_dns;
	return 0;
}

/* What both lists have: the narrower one of each pair that overlaps. */
static int narrow_local(struct prefix_list *local,
			const struct prefix_list *other)
{
	struct prefix_list both = { NULL, 0 };
	size_t i, j;
	int r = 0;

	if (same_prefixes(local, other))
		return 0;
	for (i = 0; i < local->n && r == 0; i++)
		for (j = 0; j < other->n && r == 0; j++) {
			if (ip_prefix_covers(&local->v[i], &other->v[j]))
				r = prefix_list_add(&both, &other->v[j]);
			else if (ip_prefix_covers(&other->v[j], &local->v[i]))
				r = prefix_list_add(&both, &local->v[i]);
		}
	free(local->v);
	*local = both;
	if (r != -E2BIG)
		return r;
	/* More than a list holds: then nothing is local, the tightest. */
	local->n = 0;
	return 0;
}

int policy_add(struct policy *p, const struct armed *a)
{
	const struct desired_egress *from = &a->d->egress;
	struct desired_egress *to = &p->d->egress;
	size_t i;
	int r;

	/* One that closes nothing says nothing about what is local. */
	if (from->n_classes == 0)
		return 0;
	if (to->n_classes == 0)
		r = copy_prefixes(&from->local, &to->local);
	else
		r = narrow_local(&to->local, &from->local);
	for (i = 0; i < from->n_classes && r == 0; i++)
		r = add_class(to, from, &from->classes[i]);
	if (from->uplinks.n == 0)
		p->automatic = true;
	for (i = 0; i < from->uplinks.n && r == 0; i++)
		if (!strlist_has(&to->uplinks, from->uplinks.v[i]))
			r = strlist_add(&to->uplinks, from->uplinks.v[i]);
	return r;
}

/* ---- the built-in form ---- */

static int read_word(struct desired_class *c, const char *line, size_t size,
		     const char *word)
{
	size_t n = strlen(word);
	char text[WORD_MAX];
	struct ip_prefix p;

	if (size <= n || size - n >= sizeof(text) ||
	    memcmp(line, word, n) != 0)
		return 0;
	(void)memcpy(text, line + n, size - n);
	text[size - n] = '\0';
	/* Everybody's traffic is never a class's (A24). */
	if (ip_prefix_parse(text, &p) < 0 || p.len == 0)
		return 0;
	return prefix_list_add(&c->sources, &p);
}

static int read_prefixes(struct desired_class *c, const char *text,
			 size_t size)
{
	const char *end = text + size, *line, *stop;
	int r = 0;

	for (line = text; line < end && r == 0; line = stop + 1) {
		stop = memchr(line, '\n', (size_t)(end - line));
		if (!stop)
			stop = end;
		r = read_word(c, line, (size_t)(stop - line), "pods ");
		if (r == 0)
			r = read_word(c, line, (size_t)(stop - line),
				      "source ");
	}
	/* More than any list of ours: what was read so far is closed. */
	return r == -E2BIG ? 0 : r;
}

int policy_add_built_in(struct policy *p, const char *text, size_t size)
{
	struct desired_egress *to = &p->d->egress;
	struct desired_class *c;
	uint32_t i;
	int r = 0;

	p->automatic = true;
	for (i = 0; i < MARKS && to->n_classes < MARKS; i++) {
		c = new_class(to, "built-in");
		if (!c)
			return -ENOMEM;
		c->mask = MARK_MASK;
		c->mark = (i + 1) * MARK_STEP;
	}
	r = read_prefixes(&to->classes[0], text, size);
	return r;
}

/* ---- the files ---- */

struct copies {
	char *text[2];
	size_t size[2];
	struct lockdown_file file[2];
	int found;		/* how many there were */
	bool whole;
};

static void copies_done(struct copies *c)
{
	size_t i;

	for (i = 0; i < 2; i++) {
		free(c->text[i]);
		lockdown_file_done(&c->file[i]);
	}
}

/* A whole one makes the other superfluous. */
static int read_copies(const char *state_dir, struct copies *c,
		       struct fault *why)
{
	char path[LOCKDOWN_PATH_MAX];
	size_t i;
	int r;

	for (i = 0; i < 2 && !c->whole; i++) {
		r = file_read(lockdown_file_path(state_dir, i == 1, path),
			      LOCKDOWN_FILE_SIZE_MAX, &c->text[i],
			      &c->size[i], why);
		if (r == -ENOENT)
			continue;
		c->found++;
		if (r < 0)	/* as good as damaged, and told */
			continue;
		r = lockdown_file_parse(c->text[i], c->size[i], &c->file[i],
					why);
		if (r < 0)
			return r;
		c->whole = r == 0;
		if (c->whole && i == 1)
			lockdown_file_done(&c->file[0]);
	}
	return 0;
}

static int add_copies(struct policy *p, const struct copies *c)
{
	size_t i, k;
	int r = 0;

	for (i = 0; i < 2; i++) {
		for (k = 0; k < LOCKDOWN_POLICIES && r == 0; k++)
			if (c->file[i].policy[k].d) {
				r = policy_add(p, &c->file[i].policy[k]);
				p->source = POLICY_PARTS;
			}
		if (c->file[i].has_addresses)
			p->addresses = c->file[i].addresses;
	}
	if (r == 0 && c->whole)
		p->source = POLICY_WHOLE;
	return r;
}

/* Without a whole file the armed record is another witness. */
static int add_record(struct policy *p, const char *state_dir, int *ret_found)
{
	struct armed record = ARMED_INIT;
	int r = armed_load(state_dir, &record, &p->why);

	*ret_found = r < 0 || record.found;
	if (r == -ENOMEM)
		return r;
	r = r == 0 && record.found ? policy_add(p, &record) : 0;
	if (r == 0 && record.found && p->source == POLICY_NONE)
		p->source = POLICY_RECORD;
	armed_done(&record);
	return r;
}

static int add_damaged(struct policy *p, const char *state_dir,
		       const struct copies *c)
{
	_cleanup_free_ char *text = NULL;
	char path[LOCKDOWN_PATH_MAX];
	size_t i, size;
	int r = 0;

	p->source = POLICY_BUILT_IN;
	for (i = 0; i < 2 && r == 0; i++)
		r = policy_add_built_in(p, c->text[i] ? c->text[i] : "",
					c->text[i] ? c->size[i] : 0);
	(void)snprintf(path, sizeof(path), "%s/ours/killswitch", state_dir);
	if (r == 0 && file_read(path, LOCKDOWN_FILE_SIZE_MAX, &text, &size,
				NULL) == 0)
		r = policy_add_built_in(p, text, size);
	return r;
}

static int read_all(const char *state_dir, struct policy *p)
{
	struct copies c = { .found = 0 };
	int found = 0, r;

	r = read_copies(state_dir, &c, &p->why);
	if (r == 0)
		r = add_copies(p, &c);
	if (r == 0 && !c.whole)
		r = add_record(p, state_dir, &found);
	if (r == 0 && !c.whole && !p->addresses.n)
		(void)routing_record_load(state_dir, &p->addresses, NULL);
	if (r == 0 && p->source == POLICY_NONE && (c.found || found))
		r = add_damaged(p, state_dir, &c);
	copies_done(&c);
	return r;
}

int policy_read(const char *state_dir, struct policy *ret_policy)
{
	struct policy p = { .source = POLICY_NONE, .d = desired_new() };
	int r = p.d ? read_all(state_dir, &p) : -ENOMEM;

	if (r < 0) {
		policy_done(&p);
		return r;
	}
	*ret_policy = p;
	return 0;
}

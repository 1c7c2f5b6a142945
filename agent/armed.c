#include "agent/armed.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/record.h"
#include "common/cleanup.h"
#include "common/file.h"

#define PATH_SIZE 512
#define RECORD_SIZE_MAX (4u * 1024 * 1024)

void armed_done(struct armed *a)
{
	a->d = desired_free(a->d);
	strlist_done(&a->disarmed);
	*a = ARMED_INIT;
}

const struct desired_class *armed_class(const struct desired_egress *egress,
					const char *name)
{
	size_t i;

	for (i = 0; i < egress->n_classes; i++)
		if (strcmp(egress->classes[i].name, name) == 0)
			return &egress->classes[i];
	return NULL;
}

/* ---- copying ---- */

static int copy_prefixes(const struct prefix_list *from,
			 struct prefix_list *to)
{
	size_t i;
	int r = 0;

	for (i = 0; i < from->n && r == 0; i++)
		r = prefix_list_add(to, &from->v[i]);
	return r;
}

static int copy_names(const struct strlist *from, struct strlist *to)
{
	size_t i;
	int r = 0;

	for (i = 0; i < from->n && r == 0; i++)
		r = strlist_add(to, from->v[i]);
	return r;
}

/* Index of the tunnel in `to`, copied there if need be. */
static int copy_tunnel(const struct desired_tunnel *t,
		       struct desired_egress *to, size_t *ret_index)
{
	struct desired_tunnel *v, *copy;
	size_t i;

	for (i = 0; i < to->n_tunnels; i++)
		if (strcmp(to->tunnels[i].name, t->name) == 0)
			break;
	*ret_index = i;
	if (i < to->n_tunnels)
		return 0;
	v = reallocarray(to->tunnels, i + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	to->tunnels = v;
	copy = &v[i];
	*copy = (struct desired_tunnel){ .kind = t->kind, .table = t->table,
					 .priority = t->priority };
	copy->name = strdup(t->name);
	if (!copy->name)
		return -ENOMEM;
	to->n_tunnels++;
	if (t->n_endpoints == 0)
		return 0;
	copy->endpoints = reallocarray(NULL, t->n_endpoints,
				       sizeof(*copy->endpoints));
	if (!copy->endpoints)
		return -ENOMEM;
	(void)memcpy(copy->endpoints, t->endpoints,
		     t->n_endpoints * sizeof(*copy->endpoints));
	copy->n_endpoints = t->n_endpoints;
	return 0;
}

static int copy_dns(const struct desired_class *from,
		    struct desired_class *to)
{
	if (from->n_dns == 0)
		return 0;
	to->dns = calloc(from->n_dns, sizeof(*to->dns));
	if (!to->dns)
		return -ENOMEM;
	(void)memcpy(to->dns, from->dns, from->n_dns * sizeof(*to->dns));
	to->n_dns = from->n_dns;
	return 0;
}

static int copy_class(const struct desired_egress *from,
		      const struct desired_class *c,
		      struct desired_egress *to)
{
	struct desired_class *v, *copy;
	int r = 0;

	v = reallocarray(to->classes, to->n_classes + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	to->classes = v;
	copy = &v[to->n_classes];
	*copy = (struct desired_class){ .mark = c->mark, .mask = c->mask,
					.gateway = c->gateway };
	copy->name = strdup(c->name);
	if (!copy->name)
		return -ENOMEM;
	to->n_classes++;
	if (c->tunnel < from->n_tunnels)
		r = copy_tunnel(&from->tunnels[c->tunnel], to, &copy->tunnel);
	else
		copy->tunnel = SIZE_MAX;
	if (r == 0)
		r = copy_prefixes(&c->pods, &copy->pods);
	if (r == 0)
		r = copy_prefixes(&c->sources, &copy->sources);
	if (r == 0)
		r = copy_dns(c, copy);
	return r;
}

static int merge(const struct desired_egress *want,
		 const struct armed *record, struct armed *next)
{
	const struct desired_egress *old = &record->d->egress;
	const struct desired_egress *common = want->n_classes ? want : old;
	struct desired_egress *e = &next->d->egress;
	size_t i;
	int r;

	r = copy_prefixes(&common->local, &e->local);
	if (r == 0)
		r = copy_names(&common->uplinks, &e->uplinks);
	if (r == 0)
		r = copy_names(&record->disarmed, &next->disarmed);
	for (i = 0; i < want->n_classes && r == 0; i++)
		if (!strlist_has(&record->disarmed, want->classes[i].name))
			r = copy_class(want, &want->classes[i], e);
	for (i = 0; i < old->n_classes && r == 0; i++)
		if (!armed_class(want, old->classes[i].name) &&
		    !strlist_has(&record->disarmed, old->classes[i].name))
			r = copy_class(old, &old->classes[i], e);
	next->found = record->found || e->n_classes > 0;
	return r;
}

int armed_merge(const struct desired_egress *want, const struct armed *record,
		struct armed *ret_next)
{
	struct armed next = ARMED_INIT;
	int r;

	next.d = desired_new();
	r = next.d ? merge(want, record, &next) : -ENOMEM;
	if (r < 0) {
		armed_done(&next);
		return r;
	}
	*ret_next = next;
	return 0;
}

/* ---- file ---- */

static const char *record_path(const char *state_dir, char *buf)
{
	(void)snprintf(buf, PATH_SIZE, "%s/ours/killswitch", state_dir);
	return buf;
}

int armed_load(const char *state_dir, struct armed *ret_armed,
	       struct fault *f)
{
	struct kept once = KEPT_INIT;
	int r = armed_load_kept(&once, state_dir, ret_armed, f);

	kept_done(&once);
	return r;
}

static int take(const char *text, void *userdata, struct fault *f)
{
	return armed_parse(text, userdata, f);
}

int armed_load_kept(struct kept *kept, const char *state_dir,
		    struct armed *ret_armed, struct fault *f)
{
	char path[PATH_SIZE];
	int r;

	r = record_read(kept, record_path(state_dir, path), RECORD_SIZE_MAX,
			take, ret_armed, f);
	if (r == -ENOENT) {
		struct armed none = ARMED_INIT;

		none.d = desired_new();
		if (!none.d)
			return fault_errno(f, -ENOMEM, path, "read");
		*ret_armed = none;
		return 0;
	}
	if (r < 0)
		return r;
	ret_armed->previous = r == 1;
	return 0;
}

int armed_save(const char *state_dir, const struct armed *a, struct fault *f)
{
	_cleanup_free_ char *text = NULL;
	char path[PATH_SIZE], dir[PATH_SIZE];
	int r = armed_format(a, &text);

	if (r < 0)
		return fault_errno(f, r, "armed record", "write");
	(void)snprintf(dir, sizeof(dir), "%s/ours", state_dir);
	r = file_mkdirs(dir, 0700, f);
	if (r < 0)
		return r;
	return record_write(record_path(state_dir, path), text, strlen(text),
			    f);
}

static void remove_name(struct strlist *list, const char *name)
{
	size_t i, n = 0;

	for (i = 0; i < list->n; i++) {
		if (strcmp(list->v[i], name) == 0)
			free(list->v[i]);
		else
			list->v[n++] = list->v[i];
	}
	list->n = n;
}

int armed_disarm(const char *state_dir, const char *name, struct fault *f)
{
	struct desired_egress none = { 0 };
	struct armed a = ARMED_INIT, next = ARMED_INIT;
	int r = armed_load(state_dir, &a, f);

	if (r < 0)
		return r;
	if (strlist_has(&a.disarmed, name)) {
		armed_done(&a);
		return 0;
	}
	if (!armed_class(&a.d->egress, name))
		r = fault_set(f, -ENOENT, name, "no such class is armed here");
	if (r == 0)
		r = strlist_add(&a.disarmed, name);
	if (r == 0)
		r = armed_merge(&none, &a, &next);
	if (r == 0) {
		next.found = true;
		r = armed_save(state_dir, &next, f);
	}
	armed_done(&a);
	armed_done(&next);
	return r;
}

int armed_arm(const char *state_dir, const char *name, struct fault *f)
{
	struct armed a = ARMED_INIT;
	int r = armed_load(state_dir, &a, f);

	if (r < 0)
		return r;
	if (strlist_has(&a.disarmed, name)) {
		remove_name(&a.disarmed, name);
		r = armed_save(state_dir, &a, f);
	}
	armed_done(&a);
	return r;
}

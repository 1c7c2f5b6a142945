/*
 * The nodes of the spec are there, are the machines the spec means, and
 * can work together. Changes nothing; every finding is shown, and any one
 * stops the run before anything is touched.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "coordinator/ask.h"
#include "coordinator/control_client.h"
#include "coordinator/progress.h"
#include "coordinator/steps/step.h"
#include "proto/order.h"
#include "proto/up.h"
#include "spec/spec.h"

#define CLOCK_TOLERANCE (5 * USEC_PER_SEC)
#define FINDINGS_MAX 64

struct seen {
	size_t findings;
	char first[FAULT_TEXT_MAX];
	struct ask *facts;	/* one per node of the spec */
	size_t n;
};

static void finding(const struct step_env *env, struct seen *s,
		    const char *node, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void finding(const struct step_env *env, struct seen *s,
		    const char *node, const char *fmt, ...)
{
	char text[FAULT_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (s->findings++ == 0)
		(void)snprintf(s->first, sizeof(s->first), "%s: %.400s", node,
			       text);
	if (s->findings <= FINDINGS_MAX)
		progress_fact(env->progress, node, "%s", text);
}

static bool in_scope(const struct step_env *env, const char *name)
{
	return !env->limit || strcmp(env->limit, name) == 0;
}

/* Whether the node can be asked at all. */
static bool reachable(const struct step_env *env, struct seen *s,
		      const struct control_nodes *nodes, const char *name)
{
	const struct control_node *n = control_nodes_find(nodes, name);

	if (!n)
		finding(env, s, name, "is not enrolled; see `garboard enroll "
			"list`, then `garboard enroll approve`");
	else if (n->revoked)
		finding(env, s, name, "is revoked");
	else if (n->held[0])
		finding(env, s, name, "is held: %s", n->held);
	else if (!n->connected || n->stale)
		finding(env, s, name, "is not connected (last heard of %llu s "
			"ago); is it up, and does its agent reach this host?",
			n->seen_ago == CONTROL_NEVER ? 0ULL :
			(unsigned long long)(n->seen_ago / USEC_PER_SEC));
	else
		return true;
	return false;
}

static bool list_has_address(const struct strlist *list, const char *address)
{
	size_t i, len = strlen(address);

	for (i = 0; i < list->n; i++)
		if (strncmp(list->v[i], address, len) == 0 &&
		    (list->v[i][len] == '\0' || list->v[i][len] == '/'))
			return true;
	return false;
}

static bool list_has_mac(const struct strlist *list, const char *mac)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		if (strcasecmp(list->v[i], mac) == 0)
			return true;
	return false;
}

static void check_match(const struct step_env *env, struct seen *s,
			const struct spec_node *node, const struct identity *id)
{
	const char *name = node->name.v;
	char addr[IP_TEXT_MAX];

	(void)ip_addr_format(&node->address.v, addr);
	if (!list_has_address(&id->addresses, addr))
		finding(env, s, name, "has not the address %s that the spec "
			"gives it", addr);
	if (node->mac.v && !list_has_mac(&id->macs, node->mac.v))
		finding(env, s, name, "has no interface with the MAC %s",
			node->mac.v);
	if (node->serial.v && strcmp(node->serial.v, id->serial) != 0)
		finding(env, s, name, "has serial \"%s\", not \"%s\"",
			id->serial, node->serial.v);
	if (node->machine_id.v &&
	    strcasecmp(node->machine_id.v, id->machine_id) != 0)
		finding(env, s, name, "has machine-id %s, not %s",
			id->machine_id, node->machine_id.v);
	if (node->product_uuid.v &&
	    strcasecmp(node->product_uuid.v, id->product_uuid) != 0)
		finding(env, s, name, "has product UUID %s, not %s",
			id->product_uuid, node->product_uuid.v);
}

/* ">= 6.1" against "6.1.0-57-amd64"; only major and minor count. */
static bool kernel_suffices(const char *want, const char *have)
{
	unsigned int wa, wb = 0, ha, hb = 0;

	if (sscanf(want, ">= %u.%u", &wa, &wb) < 1 ||
	    sscanf(have, "%u.%u", &ha, &hb) < 1)
		return false;
	return ha > wa || (ha == wa && hb >= wb);
}

static void check_host(const struct step_env *env, struct seen *s,
		       const struct spec_node *node, const struct up_facts *f)
{
	const struct spec_require *req = &env->spec->baseline.require;
	usec now = clock_realtime();
	usec apart = f->clock > now ? f->clock - now : now - f->clock;
	const char *name = node->name.v;
	size_t i;

	if (req->kernel.v && !kernel_suffices(req->kernel.v,
					      f->identity.kernel))
		finding(env, s, name, "runs kernel %s, the spec requires %s",
			f->identity.kernel, req->kernel.v);
	if (apart > CLOCK_TOLERANCE)
		finding(env, s, name, "its clock says %llu, this host's %llu "
			"(seconds): set the one that is wrong",
			(unsigned long long)(f->clock / USEC_PER_SEC),
			(unsigned long long)(now / USEC_PER_SEC));
	if (req->clock_synchronised.v && !f->clock_synchronised)
		finding(env, s, name, "its clock is not synchronised, which "
			"baseline.require asks for");
	/* Before a first start, whatever lies there is another life's. */
	for (i = 0; !f->has_founding && i < f->leftovers.n; i++)
		finding(env, s, name, "has %s of an earlier life; wipe it, or "
			"take the node out of the spec", f->leftovers.v[i]);
}

static void check_twins(const struct step_env *env, struct seen *s, size_t a,
			size_t b)
{
	const struct identity *x = &s->facts[a].result->result.facts->identity;
	const struct identity *y = &s->facts[b].result->result.facts->identity;
	const char *other = env->spec->nodes[a].name.v;
	const char *name = env->spec->nodes[b].name.v;

	if (x->machine_id[0] && strcmp(x->machine_id, y->machine_id) == 0)
		finding(env, s, name, "has the machine-id of %s (%s): one is "
			"a clone", other, x->machine_id);
	if (x->initiator_name[0] &&
	    strcmp(x->initiator_name, y->initiator_name) == 0)
		finding(env, s, name, "has the iSCSI initiator name of %s "
			"(%s): one is a clone", other, x->initiator_name);
}

static bool have_facts(const struct seen *s, size_t i)
{
	return s->facts[i].result && s->facts[i].result->result.facts;
}

static void check_all(const struct step_env *env, struct seen *s)
{
	size_t a, b;

	for (b = 0; b < s->n; b++) {
		if (s->facts[b].err < 0)
			finding(env, s, env->spec->nodes[b].name.v, "%s",
				s->facts[b].fault.text);
		if (!have_facts(s, b))
			continue;
		check_match(env, s, &env->spec->nodes[b],
			    &s->facts[b].result->result.facts->identity);
		check_host(env, s, &env->spec->nodes[b],
			   s->facts[b].result->result.facts);
		for (a = 0; a < b; a++)
			if (have_facts(s, a))
				check_twins(env, s, a, b);
	}
}

/* Asks every reachable node in scope for its facts, all at once. */
static int ask_facts(const struct step_env *env, struct seen *s,
		     const struct control_nodes *nodes, struct fault *f)
{
	struct ask list[SPEC_NODES_MAX > CONTROL_ORDERS_MAX ?
			CONTROL_ORDERS_MAX : SPEC_NODES_MAX];
	size_t map[sizeof(list) / sizeof(list[0])], n = 0, i;

	for (i = 0; i < s->n; i++) {
		const char *name = env->spec->nodes[i].name.v;

		if (!in_scope(env, name) || !reachable(env, s, nodes, name))
			continue;
		if (n == sizeof(list) / sizeof(list[0]))
			return fault_set(f, -E2BIG, "nodes", "more than %zu",
					 n);
		list[n] = (struct ask){ .node = name };
		list[n].order = order_new(ORDER_READ_FACTS);
		if (!list[n].order)
			return -ENOMEM;
		map[n++] = i;
	}
	/* Each entry keeps its own failure; those become findings. */
	(void)ask_all(env->control, list, n, env->times->order, NULL);
	for (i = 0; i < n; i++)
		s->facts[map[i]] = list[i];
	return 0;
}

static void seen_free(void *seen)
{
	struct seen *s = seen;

	if (!s)
		return;
	if (s->facts)
		ask_done(s->facts, s->n);
	free(s->facts);
	free(s);
}

static int observe(const struct step_env *env, void **ret_seen,
		   struct fault *f)
{
	struct seen *s = calloc(1, sizeof(*s));
	struct control_nodes nodes = { 0 };
	int r;

	if (!s)
		return -ENOMEM;
	s->n = env->spec->n_nodes;
	s->facts = calloc(s->n + 1, sizeof(*s->facts));
	r = s->facts ? control_nodes(env->control, &nodes, f) : -ENOMEM;
	if (r == 0) {
		r = ask_facts(env, s, &nodes, f);
		control_nodes_done(&nodes);
	}
	if (r == 0)
		check_all(env, s);
	if (r < 0) {
		seen_free(s);
		return r;
	}
	*ret_seen = s;
	return 0;
}

static int plan(const struct spec *spec, const void *seen,
		struct change_list *changes, struct fault *f)
{
	const struct seen *s = seen;

	(void)spec;
	(void)changes;
	if (s->findings == 0)
		return 0;
	return fault_set(f, -EPERM, "preflight",
			 "%zu finding%s, nothing was changed; the first: %s",
			 s->findings, s->findings == 1 ? "" : "s", s->first);
}

static int apply(const struct step_env *env, const void *seen,
		 const struct change_list *changes, struct fault *f)
{
	(void)env;
	(void)seen;
	(void)changes;
	(void)f;
	return 0;	/* it never plans a change */
}

const struct step step_preflight = {
	.id = STEP_PREFLIGHT,
	.name = "preflight",
	.observe = observe,
	.plan = plan,
	.apply = apply,
	.seen_free = seen_free,
};

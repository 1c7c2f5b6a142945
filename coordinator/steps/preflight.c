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
#include "coordinator/memory_rule.h"
#include "coordinator/progress.h"
#include "coordinator/steps/step.h"
#include "coordinator/twins.h"
#include "proto/order.h"
#include "proto/up.h"
#include "spec/spec.h"

#define CLOCK_TOLERANCE (5 * USEC_PER_SEC)
#define FINDINGS_MAX 64
#define MIB(bytes) ((unsigned long long)((bytes) >> 20))

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
	const struct spec_require req = spec_requires(
		env->spec, (size_t)(node - env->spec->nodes));
	usec now = clock_realtime();
	usec apart = f->clock > now ? f->clock - now : now - f->clock;
	const char *name = node->name.v;
	size_t i;

	if (req.kernel.v && !kernel_suffices(req.kernel.v,
					      f->identity.kernel))
		finding(env, s, name, "runs kernel %s, the spec requires %s",
			f->identity.kernel, req.kernel.v);
	if (apart > CLOCK_TOLERANCE)
		finding(env, s, name, "its clock says %llu, this host's %llu "
			"(seconds): set the one that is wrong",
			(unsigned long long)(f->clock / USEC_PER_SEC),
			(unsigned long long)(now / USEC_PER_SEC));
	if (req.clock_synchronised.v && !f->clock_synchronised)
		finding(env, s, name, "its clock is not synchronised, which "
			"baseline.require asks for");
	/* Before a first start, whatever lies there is another life's. */
	for (i = 0; !f->has_founding && i < f->leftovers.n; i++)
		finding(env, s, name, "has %s of an earlier life; wipe it, or "
			"take the node out of the spec", f->leftovers.v[i]);
}

static bool have_facts(const struct seen *s, size_t i)
{
	return s->facts[i].result && s->facts[i].result->result.facts;
}

static const struct up_facts *facts_of(const struct seen *s, size_t i)
{
	return s->facts[i].result->result.facts;
}

/* Both are named; nothing is done to either until one is put right. */
static int check_twins(const struct step_env *env, struct seen *s)
{
	const struct identity **ids = calloc(s->n + 1, sizeof(*ids));
	struct twin *twins = NULL;
	size_t n = 0, i;
	int r;

	if (!ids)
		return -ENOMEM;
	for (i = 0; i < s->n; i++)
		if (have_facts(s, i))
			ids[i] = &facts_of(s, i)->identity;
	r = twins_find(ids, s->n, &twins, &n);
	free(ids);
	for (i = 0; r == 0 && i < n; i++) {
		const struct twin *t = &twins[i];
		const char *name = env->spec->nodes[t->b].name.v;
		const char *other = env->spec->nodes[t->a].name.v;

		if (t->kind == TWIN_PRODUCT_UUID)
			progress_fact(env->progress, name, "has the %s of %s "
				      "(%s): a clone, or a vendor that gives "
				      "all the same", twin_kind_name(t->kind),
				      other, t->value);
		else
			finding(env, s, name, "has the %s of %s (%s): one is "
				"a clone", twin_kind_name(t->kind), other,
				t->value);
	}
	free(twins);
	return r;
}

/* ---- memory and disk (B07, B08) ---- */

/* The most any node of that role addresses. */
static size_t largest(const struct step_env *env, const struct seen *s,
		      int role)
{
	size_t i, best = SIZE_MAX;

	for (i = 0; i < s->n; i++) {
		if (!have_facts(s, i) || env->spec->nodes[i].role.v != role)
			continue;
		if (best == SIZE_MAX ||
		    facts_of(s, i)->hardware.memory_total >
			    facts_of(s, best)->hardware.memory_total)
			best = i;
	}
	return best;
}

static void check_memory(const struct step_env *env, struct seen *s, size_t i)
{
	const struct spec_require req = spec_requires(env->spec, i);
	const struct hardware *hw = &facts_of(s, i)->hardware;
	const struct spec_node *node = &env->spec->nodes[i];
	const char *name = node->name.v;
	size_t best;

	if (!req.memory_tolerance.v)
		return;
	if (!hw->memory_total) {
		finding(env, s, name, "does not tell its memory, which "
			"baseline.require asks for: upgrade garboard-agent");
		return;
	}
	if (!hw->memory_installed)
		progress_fact(env->progress, name, "its firmware does not say "
			      "how much memory is installed; it is compared "
			      "with the other nodes only");
	else if (memory_is_short(hw->memory_total, hw->memory_installed,
			  memory_thousandths(req.memory_tolerance.v)))
		finding(env, s, name, "addresses %llu MiB of %llu MiB of "
			"memory; see the kernel log for e820 and EFI: a newer "
			"kernel may take all of it (B07)", MIB(hw->memory_total),
			MIB(hw->memory_installed));
	best = largest(env, s, node->role.v);
	if (best != SIZE_MAX && best != i &&
	    memory_is_short(hw->memory_total,
		     facts_of(s, best)->hardware.memory_total,
		     memory_thousandths(req.memory_tolerance.v)))
		finding(env, s, name, "has %llu MiB of memory, and %s has "
			"%llu", MIB(hw->memory_total),
			env->spec->nodes[best].name.v,
			MIB(facts_of(s, best)->hardware.memory_total));
}

static void tell_disk(const struct step_env *env, const struct seen *s,
		      size_t i)
{
	const struct hardware *hw = &facts_of(s, i)->hardware;

	if (hw->disk_size && hw->disk_free < hw->disk_size / 10)
		progress_fact(env->progress, env->spec->nodes[i].name.v,
			      "has %llu of %llu MiB free below /var/lib; the "
			      "kubelet evicts pods below 5 %%",
			      MIB(hw->disk_free), MIB(hw->disk_size));
}

static int check_all(const struct step_env *env, struct seen *s)
{
	size_t i;

	for (i = 0; i < s->n; i++) {
		if (s->facts[i].err < 0)
			finding(env, s, env->spec->nodes[i].name.v, "%s",
				s->facts[i].fault.text);
		if (!have_facts(s, i))
			continue;
		check_match(env, s, &env->spec->nodes[i],
			    &facts_of(s, i)->identity);
		check_host(env, s, &env->spec->nodes[i], facts_of(s, i));
		check_memory(env, s, i);
		tell_disk(env, s, i);
	}
	return check_twins(env, s);
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
		r = check_all(env, s);
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

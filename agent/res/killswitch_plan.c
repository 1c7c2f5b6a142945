#include "agent/res/killswitch_plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/res/killswitch_tables.h"
#include "common/cleanup.h"
#include "common/put.h"

struct plan {
	const struct desired *want;
	const struct killswitch_seen *seen;
	struct armed next;	/* what is enforced */
	bool unsure;		/* the record cannot be read */
	struct strlist uplinks;
	struct item_list *items;
	struct change_list *changes;
};

const char *killswitch_key(uint8_t family, const char *name, char *buf)
{
	const char *end = buf + KILLSWITCH_KEY_MAX;
	char *at = put_text(buf, end, family == NFPROTO_NETDEV ?
					      "table netdev " :
					      "table inet ");

	(void)put_text(at, end, name);
	return buf;
}

const char *killswitch_owner_key(uint8_t family, const char *name, char *buf)
{
	(void)snprintf(buf, KILLSWITCH_KEY_MAX, "owner of table %s %.64s",
		       family == NFPROTO_NETDEV ? "netdev" : "inet", name);
	return buf;
}

/* An item, and unless in sync the change that goes with it. */
static int report(struct plan *p, enum change_op op, const char *key,
		  enum item_state state, const char *have, const char *want,
		  const char *reason)
{
	int r = item_list_add(p->items, key, state, have, want, reason);

	if (r < 0 || (state != ITEM_DRIFTED && state != ITEM_ABSENT))
		return r;
	return change_list_add(p->changes, op, key, have, want);
}

/* ---- the record ---- */

/* "vpn, other (1a2b3c4d)": the classes, and a sum of all there is to them. */
static void sum_up(const struct armed *a, const char *text, char *buf,
		   size_t size)
{
	const struct desired_egress *e = &a->d->egress;
	uint32_t sum = 2166136261u;	/* FNV-1a */
	size_t used = 0, i;

	for (; *text; text++)
		sum = (sum ^ (unsigned char)*text) * 16777619u;
	for (i = 0; i < e->n_classes && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s%s",
					 i ? ", " : "", e->classes[i].name);
	if (used < size)
		(void)snprintf(buf + used, size - used, "%s(%08x)",
			       used ? " " : "no class ", sum);
}

static int plan_record(struct plan *p)
{
	_cleanup_free_ char *have = NULL, *want = NULL;
	char had[CHANGE_TEXT_MAX], wants[CHANGE_TEXT_MAX];
	bool found = p->seen->record.found;
	int r;

	had[0] = '\0';
	if (!p->next.found)
		return 0;
	r = armed_format(&p->next, &want);
	if (r < 0)
		return r;
	sum_up(&p->next, want, wants, sizeof(wants));
	/* What stands in the file is what would be written. */
	if (found && p->seen->record_text &&
	    strcmp(p->seen->record_text, want) == 0)
		return report(p, CHANGE_SET, KILLSWITCH_KEY_RECORD,
			      ITEM_IN_SYNC, wants, wants, "");
	r = armed_format(&p->seen->record, &have);
	if (r < 0)
		return r;
	if (p->seen->record.previous)
		(void)snprintf(had, sizeof(had), "damaged, the copy before "
			       "it counts");
	else if (found)
		sum_up(&p->seen->record, have, had, sizeof(had));
	if (found && !p->seen->record.previous && strcmp(have, want) == 0)
		return report(p, CHANGE_SET, KILLSWITCH_KEY_RECORD,
			      ITEM_IN_SYNC, wants, wants, "");
	return report(p, found ? CHANGE_SET : CHANGE_ADD,
		      KILLSWITCH_KEY_RECORD,
		      found ? ITEM_DRIFTED : ITEM_ABSENT, had, wants, "");
}

static int plan_class(struct plan *p, const struct desired_class *c)
{
	char key[KILLSWITCH_KEY_MAX];

	(void)snprintf(key, sizeof(key), "class %.63s", c->name);
	if (killswitch_class_empty(c))
		return report(p, CHANGE_SET, key, ITEM_BLOCKED, "", "",
			      "it names no pods, sources or mark, so no "
			      "packet can be told to be of it");
	if (!armed_class(&p->want->egress, c->name))
		return report(p, CHANGE_SET, key, ITEM_BLOCKED, "armed", "",
			      "armed class is no longer in the desired "
			      "state: disarm explicitly");
	return report(p, CHANGE_SET, key, ITEM_IN_SYNC, "armed", "armed", "");
}

static int plan_classes(struct plan *p)
{
	const struct desired_egress *want = &p->want->egress;
	char key[KILLSWITCH_KEY_MAX];
	size_t i;
	int r = 0;

	for (i = 0; i < p->next.d->egress.n_classes && r == 0; i++)
		r = plan_class(p, &p->next.d->egress.classes[i]);
	for (i = 0; i < want->n_classes && r == 0; i++) {
		if (!strlist_has(&p->next.disarmed, want->classes[i].name))
			continue;
		(void)snprintf(key, sizeof(key), "class %.63s",
			       want->classes[i].name);
		r = report(p, CHANGE_SET, key, ITEM_BLOCKED, "disarmed",
			   "armed", "it was disarmed explicitly: arm it");
	}
	return r;
}

/* ---- tables ---- */

static int plan_owner(struct plan *p, const struct nft_table *have)
{
	char key[KILLSWITCH_KEY_MAX], text[64];

	if (!p->seen->own || have->owner == p->seen->portid)
		return 0;
	(void)killswitch_owner_key(have->family, have->name, key);
	if (have->owner == 0)
		return report(p, CHANGE_SET, key, ITEM_DRIFTED, "nobody",
			      "this agent", "");
	(void)snprintf(text, sizeof(text), "netlink port %u", have->owner);
	return report(p, CHANGE_SET, key, ITEM_PENDING, text, "this agent",
		      "another process owns it, its content is right");
}

static int plan_table(struct plan *p, const char *device, bool present)
{
	char key[KILLSWITCH_KEY_MAX], text[NFT_MODEL_TEXT_MAX];
	const struct nft_table *have;
	struct nft_table want = { 0 };
	int r = killswitch_table(&p->next.d->egress, device, &want);

	text[0] = '\0';
	if (r < 0)
		return r;
	(void)killswitch_key(want.family, want.name, key);
	have = nft_tables_find(&p->seen->view->tables, want.family, want.name);
	if (!present)
		r = report(p, CHANGE_ADD, key, ITEM_PENDING,
			   have ? "kept" : "", "hooked",
			   "there is no such device now");
	else if (!have)
		r = report(p, CHANGE_ADD, key, ITEM_ABSENT, "", "closed", "");
	else if (!nft_table_same(have, &want, text) && p->unsure)
		r = report(p, CHANGE_SET, key, ITEM_BLOCKED, text, "closed",
			   "the armed record is damaged, so it is not known "
			   "what else it closes: repair or remove the record");
	else if (text[0])
		r = report(p, CHANGE_SET, key, ITEM_DRIFTED, text, "closed",
			   "");
	else
		r = report(p, CHANGE_SET, key, ITEM_IN_SYNC, "closed",
			   "closed", "");
	if (r == 0 && have && text[0] == '\0' && present)
		r = plan_owner(p, have);
	nft_table_done(&want);
	return r;
}

static const struct rtnl_link *find_link(const struct rtnl_links *links,
					 const char *name)
{
	size_t i;

	for (i = 0; i < links->n; i++)
		if (strcmp(links->v[i].name, name) == 0)
			return &links->v[i];
	return NULL;
}

/* A table of ours that nothing wants. */
static int plan_extra(struct plan *p, const struct nft_table *have)
{
	char key[KILLSWITCH_KEY_MAX];
	const char *device = have->name + strlen(KILLSWITCH_EGRESS_PREFIX);

	(void)killswitch_key(have->family, have->name, key);
	if (!p->next.found || p->unsure)
		return report(p, CHANGE_REMOVE, key, ITEM_BLOCKED, "closed",
			      "", "there is no record of who armed it: "
			      "disarm explicitly");
	/* A device that may come back finds its table (FACTS S3). */
	if (have->family == NFPROTO_NETDEV && p->next.d->egress.n_classes &&
	    !find_link(&p->seen->links, device))
		return report(p, CHANGE_REMOVE, key, ITEM_IN_SYNC, "kept",
			      "kept", "its device is away");
	return report(p, CHANGE_REMOVE, key, ITEM_DRIFTED, "closed", "", "");
}

static bool wanted(const struct plan *p, const struct nft_table *have)
{
	if (p->next.d->egress.n_classes == 0)
		return false;
	if (have->family == NFPROTO_INET)
		return true;
	return strlist_has(&p->uplinks,
			   have->name + strlen(KILLSWITCH_EGRESS_PREFIX));
}

static int plan_extras(struct plan *p)
{
	const struct nft_tables *tables = &p->seen->view->tables;
	size_t i;
	int r = 0;

	for (i = 0; i < tables->n && r == 0; i++)
		if (!wanted(p, &tables->v[i]))
			r = plan_extra(p, &tables->v[i]);
	return r;
}

static int plan_tables(struct plan *p)
{
	size_t i;
	int r;

	/* A node that nobody ever armed need not have nftables at all. */
	if (!p->seen->view && !p->next.found && !p->unsure)
		return 0;
	if (!p->seen->view)
		return report(p, CHANGE_SET, "tables", ITEM_UNOBSERVABLE, "",
			      "", p->seen->tables_fault.text);
	if (p->next.d->egress.n_classes) {
		r = plan_table(p, NULL, true);
		if (r < 0)
			return r;
	}
	if (p->seen->links_fault.err)
		return report(p, CHANGE_SET, "uplinks", ITEM_UNOBSERVABLE,
			      "", "", p->seen->links_fault.text);
	r = killswitch_uplinks(&p->next.d->egress, &p->seen->links,
			       &p->uplinks);
	for (i = 0; i < p->seen->renamed.n && r == 0; i++)
		r = strlist_add(&p->uplinks, p->seen->renamed.v[i]);
	if (r == 0 && p->next.d->egress.n_classes && p->uplinks.n == 0)
		r = report(p, CHANGE_SET, "uplinks", ITEM_BLOCKED, "", "",
			   "no hardware device is here, so raw and bridged "
			   "frames are not seen: name the uplinks");
	for (i = 0; i < p->uplinks.n && r == 0; i++)
		if (p->next.d->egress.n_classes)
			r = plan_table(p, p->uplinks.v[i],
				       find_link(&p->seen->links,
						 p->uplinks.v[i]));
	return r < 0 ? r : plan_extras(p);
}

int killswitch_plan(const struct desired *want, const void *seen,
		    struct item_list *items, struct change_list *changes,
		    struct fault *f)
{
	struct plan p = {
		.want = want,
		.seen = seen,
		.items = items,
		.changes = changes,
		.next = ARMED_INIT,
		.unsure = ((const struct killswitch_seen *)seen)
				  ->record_fault.err != 0,
	};
	struct armed none = ARMED_INIT;
	int r = 0;

	none.d = desired_new();
	if (!none.d)
		return fault_errno(f, -ENOMEM, "killswitch", "plan");
	/*
	 * Without the record it is not known what was armed. What is wanted
	 * is closed all the same; nothing is removed, nothing overwritten.
	 */
	if (p.unsure)
		r = report(&p, CHANGE_SET, KILLSWITCH_KEY_RECORD,
			   ITEM_UNOBSERVABLE, "", "",
			   p.seen->record_fault.text);
	if (r == 0)
		r = armed_merge(&want->egress,
				p.unsure ? &none : &p.seen->record,
				&p.next);
	if (r == 0 && !p.unsure)
		r = plan_record(&p);
	if (r == 0 && p.next.d->egress.n_classes + want->egress.n_classes)
		r = plan_classes(&p);
	if (r == 0)
		r = plan_tables(&p);
	armed_done(&p.next);
	armed_done(&none);
	strlist_done(&p.uplinks);
	return r < 0 ? fault_errno(f, r, "killswitch", "plan") : 0;
}

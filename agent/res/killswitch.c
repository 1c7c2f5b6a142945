#include "agent/res/killswitch.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "agent/nl/conntrack.h"
#include "agent/nl/nl_notify.h"
#include "agent/record.h"
#include "agent/res/killswitch_plan.h"
#include "agent/res/killswitch_tables.h"

#define WRITER_MAX 64
#define LOOKS_PER_READING 16

struct killswitch {
	const char *state_dir;
	sd_event *event;	/* NULL: nothing is watched */
	bool owns;		/* a one-shot owns nothing: it ends at once */
	struct nl_sock *nft, *route;
	bool plain;		/* the kernel has no owner|persist */
	struct kept record;	/* its text */
	struct nft_view *view;	/* the last one */
	unsigned int looks;	/* since all of it was read */
	bool applied;		/* not the first time any more */

	struct nl_notify *nft_events, *link_events;
	sd_event_source *nft_source, *link_source;
	resource_look_again look_again;
	void *userdata;
	struct strlist devices;	/* guarded or to be guarded */
	struct guarded {	/* uplinks by index: names change */
		int index;
		char name[IF_NAMESIZE];		/* as the spec calls it */
	} guarded[DESIRED_UPLINKS_MAX];
	size_t n_guarded;
	bool touched;		/* a foreign commit changed our tables */
	bool stale;		/* the last view is known to be over */
	bool moved;		/* a link that matters changed */
	struct killswitch_seen *last;	/* complete, without a fault */
	enum {			/* what events were about since then */
		HINT_NOTHING,
		HINT_TABLE,	/* `hinted`, and no other */
		HINT_MORE,
	} hint;
	struct nft_table hinted;	/* family and name */
	char writer[WRITER_MAX];
};

static int killswitch_open(const struct resource_host *host, void **ret_state,
			   struct fault *f)
{
	struct killswitch *k = calloc(1, sizeof(*k));

	if (!k)
		return fault_errno(f, -ENOMEM, "killswitch", "open");
	k->state_dir = host->state_dir;
	k->event = host->event;
	k->owns = host->event && !host->oneshot;
	k->plain = host->no_table_owner;
	*ret_state = k;
	return 0;
}

static void seen_free(void *seen);

static void *killswitch_free(void *state)
{
	struct killswitch *k = state;

	if (!k)
		return NULL;
	seen_free(k->last);
	k->nft_source = sd_event_source_disable_unref(k->nft_source);
	k->link_source = sd_event_source_disable_unref(k->link_source);
	k->view = nft_view_unref(k->view);
	(void)nl_notify_free(k->nft_events);
	(void)nl_notify_free(k->link_events);
	(void)nl_sock_free(k->nft);
	(void)nl_sock_free(k->route);
	strlist_done(&k->devices);
	kept_done(&k->record);
	free(k);
	return NULL;
}

static int open_sockets(struct killswitch *k, struct fault *f)
{
	int r = 0;

	if (!k->nft)
		r = nl_sock_open(NETLINK_NETFILTER, &k->nft, f);
	if (r == 0 && !k->route)
		r = nl_sock_open(NETLINK_ROUTE, &k->route, f);
	return r;
}

/* ---- observe ---- */

static void seen_free(void *seen)
{
	struct killswitch_seen *s = seen;

	if (!s || --s->refs)
		return;
	armed_done(&s->record);
	free(s->record_text);
	(void)nft_view_unref(s->view);
	free(s->links.v);
	strlist_done(&s->renamed);
	free(s);
}

static const struct guarded *find_guarded(const struct killswitch *k,
					  int index)
{
	size_t i;

	for (i = 0; i < k->n_guarded; i++)
		if (k->guarded[i].index == index)
			return &k->guarded[i];
	return NULL;
}

static bool is_named(const struct desired *want,
		     const struct killswitch_seen *s, const char *name)
{
	return strlist_has(&want->egress.uplinks, name) ||
	       (s->record.d && strlist_has(&s->record.d->egress.uplinks, name));
}

/*
 * An uplink stays one under another name, and a kernel that hooks by name
 * lets go of it (FACTS S3): its index is followed until it is gone.
 */
static int follow_renamed(struct killswitch *k, const struct desired *want,
			  struct killswitch_seen *s)
{
	struct guarded next[DESIRED_UPLINKS_MAX];
	size_t n = 0, i;
	int r = 0;

	for (i = 0; i < s->links.n && n < DESIRED_UPLINKS_MAX; i++) {
		const struct rtnl_link *l = &s->links.v[i];
		const struct guarded *old = find_guarded(k, l->index);

		if (is_named(want, s, l->name)) {
			next[n].index = l->index;
			(void)memcpy(next[n++].name, l->name, sizeof(l->name));
		} else if (old && strcmp(old->name, l->name) != 0 &&
			   is_named(want, s, old->name)) {
			next[n++] = *old;
			r = strlist_add(&s->renamed, l->name);
			if (r < 0)
				return r;
		}
	}
	(void)memcpy(k->guarded, next, n * sizeof(next[0]));
	k->n_guarded = n;
	return 0;
}

/* Remembers which devices matter, for the events to come. */
static void note_devices(struct killswitch *k, const struct desired *want,
			 const struct killswitch_seen *s)
{
	const struct strlist *lists[] = {
		&want->egress.uplinks,
		s->record.d ? &s->record.d->egress.uplinks : NULL,
	};
	size_t i, j;

	strlist_done(&k->devices);
	for (i = 0; i < 2; i++)
		for (j = 0; lists[i] && j < lists[i]->n; j++)
			(void)strlist_add(&k->devices, lists[i]->v[j]);
	/* Short of memory only makes the filter let less noise through. */
	for (i = 0; s->view && i < s->view->tables.n; i++)
		if (s->view->tables.v[i].family == NFPROTO_NETDEV)
			(void)strlist_add(&k->devices,
					  s->view->tables.v[i].name +
					  strlen(KILLSWITCH_EGRESS_PREFIX));
}

/* Now and then all of it, whatever the generation says. */
static void see_tables(struct killswitch *k, struct killswitch_seen *s)
{
	bool all = k->looks++ >= LOOKS_PER_READING || k->stale;

	if (all)
		k->looks = 0;
	k->stale = false;
	if (nft_look(k->nft, killswitch_is_ours, all ? NULL : k->view,
		     &s->view, &s->tables_fault) < 0) {
		k->view = nft_view_unref(k->view);
		return;
	}
	(void)nft_view_unref(k->view);
	k->view = nft_view_ref(s->view);
}

/* For glances: what has faults is not gone by. */
static void remember(struct killswitch *k, struct killswitch_seen *s)
{
	seen_free(k->last);
	k->last = NULL;
	k->hint = HINT_NOTHING;
	if (s->record_fault.err || s->tables_fault.err || s->links_fault.err)
		return;
	s->refs++;
	k->last = s;
}

static int killswitch_observe(void *state, const struct desired *want,
			      void **ret_seen, struct fault *f)
{
	struct killswitch *k = state;
	struct killswitch_seen *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return fault_errno(f, -ENOMEM, "killswitch", "observe");
	s->refs = 1;
	(void)armed_load_kept(&k->record, k->state_dir, &s->record,
			      &s->record_fault);
	/* Short of memory, the plan makes the text itself. */
	if (!s->record_fault.err && !s->record.previous && k->record.text)
		s->record_text = strndup(k->record.text,
					 record_body(k->record.text,
						     k->record.size));
	r = open_sockets(k, &s->tables_fault);
	if (r < 0) {
		s->links_fault = s->tables_fault;
	} else {
		see_tables(k, s);
		(void)rtnl_link_dump(k->route, &s->links, &s->links_fault);
		s->portid = nl_sock_portid(k->nft);
	}
	s->own = k->owns && !k->plain;
	r = s->links_fault.err ? 0 : follow_renamed(k, want, s);
	if (r < 0) {
		seen_free(s);
		return fault_errno(f, r, "killswitch", "observe");
	}
	note_devices(k, want, s);
	remember(k, s);
	*ret_seen = s;
	return 0;
}

/* When it was one table, that table; its like is in memory but once. */
static int killswitch_glance(void *state, const struct desired *want,
			     void **ret_seen)
{
	struct killswitch *k = state;
	struct killswitch_seen *s = k->last;
	bool one = k->hint == HINT_TABLE;

	(void)want;
	k->hint = HINT_MORE;
	if (!one || !s || s->refs != 1 || !stamps_fresh(&k->record.stamps))
		return 0;
	k->view = nft_view_unref(k->view);
	if (s->view->refs != 1 ||
	    nft_glance(k->nft, s->view, k->hinted.family,
		       k->hinted.name) < 0) {
		seen_free(s);
		k->last = NULL;
		return 0;
	}
	s->refs++;
	*ret_seen = s;
	return 1;
}

/* ---- apply ---- */

static int commit_table(struct killswitch *k, const struct nft_table *have,
			struct nft_table *want, uint32_t flags,
			struct fault *f)
{
	struct nft_batch b;
	int r;

	nft_batch_init(&b);
	want->flags = flags;
	/* An orphan is adopted first; a plain table cannot be (FACTS S1). */
	if (have && (flags & have->flags & NFT_TABLE_PERSIST))
		nft_batch_add_table(&b, want->family, want->name, flags);
	if (have)
		nft_batch_delete_table(&b, want->family, want->name);
	nft_batch_fill_table(&b, want);
	r = nft_batch_commit(&b, k->nft, f);
	nft_batch_done(&b);
	return r;
}

/*
 * With owner|persist where the kernel takes both, plain otherwise. When only
 * the owner is wrong, a kernel without owners has nothing to be put right.
 */
static int replace_table(struct killswitch *k, const struct nft_table *have,
			 struct nft_table *want, bool owner_only,
			 struct fault *f)
{
	struct fault first = FAULT_INIT;
	int r;

	if (!k->plain) {
		r = commit_table(k, have, want, NFT_TABLE_OWNED, &first);
		if (r != -EOPNOTSUPP)
			return r < 0 ? fault_set(f, r, first.object, "%s",
						 first.text) : 0;
	}
	r = owner_only ? 0 : commit_table(k, have, want, 0, f);
	if (r == 0)
		k->plain = true;
	return r;
}

static int adopt_table(struct killswitch *k, const struct nft_table *have,
		       struct fault *f)
{
	struct nft_batch b;
	int r;

	nft_batch_init(&b);
	nft_batch_add_table(&b, have->family, have->name, NFT_TABLE_OWNED);
	r = nft_batch_commit(&b, k->nft, f);
	nft_batch_done(&b);
	return r;
}

static int remove_table(struct killswitch *k, const struct nft_table *have,
			struct fault *f)
{
	struct nft_batch b;
	int r;

	nft_batch_init(&b);
	if (have->flags & NFT_TABLE_PERSIST)
		nft_batch_add_table(&b, have->family, have->name,
				    NFT_TABLE_OWNED);
	nft_batch_delete_table(&b, have->family, have->name);
	r = nft_batch_commit(&b, k->nft, f);
	nft_batch_done(&b);
	return r;
}

/* The device of an uplink's table name, NULL for the inet table. */
static const char *device_of(uint8_t family, const char *name)
{
	return family == NFPROTO_NETDEV ?
		       name + strlen(KILLSWITCH_EGRESS_PREFIX) : NULL;
}

/* What a change's key names: family and table; false for other keys. */
static bool parse_key(const char *key, const char *lead, uint8_t *ret_family,
		      const char **ret_name)
{
	size_t n = strlen(lead);

	if (strncmp(key, lead, n) != 0)
		return false;
	key += n;
	if (strncmp(key, "inet ", 5) == 0) {
		*ret_family = NFPROTO_INET;
		*ret_name = key + 5;
		return true;
	}
	if (strncmp(key, "netdev " KILLSWITCH_EGRESS_PREFIX,
		    strlen("netdev " KILLSWITCH_EGRESS_PREFIX)) != 0)
		return false;
	*ret_family = NFPROTO_NETDEV;
	*ret_name = key + strlen("netdev ");
	return true;
}

static int apply_table(struct killswitch *k, const struct armed *next,
		       const struct killswitch_seen *seen,
		       const struct change *c, struct fault *f)
{
	struct nft_table want = { 0 };
	const struct nft_table *have;
	bool owner_only = false;
	const char *name;
	uint8_t family;
	int r;

	if (parse_key(c->key, "owner of table ", &family, &name))
		owner_only = true;
	else if (!parse_key(c->key, "table ", &family, &name))
		return fault_set(f, -EINVAL, c->key, "not a change of ours");
	have = seen->view ? nft_tables_find(&seen->view->tables, family, name) :
			    NULL;
	if (c->op == CHANGE_REMOVE)
		return have ? remove_table(k, have, f) : 0;
	if (owner_only && have && (have->flags & NFT_TABLE_PERSIST))
		return adopt_table(k, have, f);
	r = killswitch_table(&next->d->egress, device_of(family, name),
			     &want);
	if (r < 0)
		return fault_errno(f, r, c->key, "build");
	r = replace_table(k, have, &want, owner_only, f);
	nft_table_done(&want);
	if (r != -EPERM || !have || have->owner == 0)
		return r;
	/* A one-shot beside the agent, which looks as soon as that ends. */
	fault_clear(f);
	return fault_set(f, -EAGAIN, c->key,
			 "held by netlink port %u: if that is the agent, it "
			 "was told, and makes it", have->owner);
}

/* Tells what will right itself from what somebody must see to. */
static void mark_failed(struct item_list *items, const char *key, int err,
			const struct fault *why)
{
	struct item *it = item_list_find(items, key);
	char *reason = strdup(why->text);

	if (!it || !reason) {
		free(reason);
		return;
	}
	free(it->reason);
	it->reason = reason;
	switch (err) {
	case -EAGAIN:
	case -ENOBUFS:
	case -ETIMEDOUT:	/* unknown or in motion: look, then decide */
	case -ENOENT:
	case -ENODEV:		/* the device or table went meanwhile */
		it->state = ITEM_PENDING;
		return;
	}
	it->state = ITEM_BLOCKED;
}

/*
 * Whether a class is armed by this, so that flows may be older than that:
 * the record changes, or there was no table when this process came. A table
 * that somebody took away meanwhile was back before anything grew old.
 */
static bool arms(const struct killswitch *k, const struct change_list *changes)
{
	char key[KILLSWITCH_KEY_MAX];
	const struct change *c;

	if (change_list_find(changes, KILLSWITCH_KEY_RECORD))
		return true;
	c = change_list_find(changes, killswitch_key(NFPROTO_INET,
						     KILLSWITCH_TABLE, key));
	return !k->applied && c && c->op == CHANGE_ADD;
}

/* FACTS S7: what conntrack knows outlives the rules it came by. */
static int forget_flows(struct killswitch *k, const struct desired_egress *e,
			struct fault *f)
{
	int first = 0, r;
	size_t i, deleted;

	for (i = 0; i < e->n_classes; i++) {
		const struct desired_class *c = &e->classes[i];
		struct conntrack_match match = {
			.pods = &c->pods,
			.sources = &c->sources,
			.local = &e->local,
			.mark = c->mark,
			.mask = c->mask,
		};

		r = conntrack_forget(k->nft, &match, &deleted,
				     first == 0 ? f : NULL);
		if (r < 0 && first == 0)
			first = r;
	}
	return first;
}

static int killswitch_apply(void *state, const struct desired *want,
			    const void *seen,
			    const struct change_list *changes,
			    struct item_list *items, struct fault *f)
{
	struct killswitch *k = state;
	const struct killswitch_seen *s = seen;
	struct armed next = ARMED_INIT;
	int first = 0, r;
	size_t i;

	r = open_sockets(k, f);
	if (r == 0) {
		struct armed none = ARMED_INIT;

		none.d = desired_new();
		r = none.d ? armed_merge(&want->egress,
					 s->record.d ? &s->record : &none,
					 &next) : -ENOMEM;
		armed_done(&none);
	}
	if (r < 0)
		return fault_errno(f, r, "killswitch", "apply");
	for (i = 0; i < changes->n; i++) {
		const struct change *c = &changes->v[i];
		struct fault own = FAULT_INIT;

		if (strcmp(c->key, KILLSWITCH_KEY_RECORD) == 0)
			r = armed_save(k->state_dir, &next, &own);
		else
			r = apply_table(k, &next, s, c, &own);
		if (r == 0)
			continue;
		mark_failed(items, c->key, r, &own);
		(void)fault_set(f, r, c->key, "%s", own.text);
		if (first == 0)
			first = r;
	}
	if (arms(k, changes)) {
		r = forget_flows(k, &next.d->egress, f);
		if (first == 0)
			first = r;
	}
	k->applied = true;
	k->stale = true;
	armed_done(&next);
	return first;
}

/* ---- watch ---- */

static int on_nft_message(const struct nlmsghdr *nlh, void *userdata)
{
	struct killswitch *k = userdata;
	struct nft_table head = { 0 };
	const struct nfgenmsg *h;
	struct nft_gen gen;
	const char *table;

	/* Never by process id: it is another namespace's (FACTS S2). */
	if (nlh->nlmsg_pid == nl_sock_portid(k->nft))
		return 0;
	table = nft_msg_table(nlh);
	if (!table) {
		if (k->touched && nft_gen_decode(nlh, &gen) == 0 && gen.pid)
			(void)snprintf(k->writer, sizeof(k->writer),
				       "%.16s[%u]", gen.name, gen.pid);
		return 0;
	}
	h = mnl_nlmsg_get_payload(nlh);
	head.family = h->nfgen_family;
	(void)snprintf(head.name, sizeof(head.name), "%s", table);
	if (!killswitch_is_ours(&head))
		return 0;
	k->touched = true;
	if (k->hint == HINT_NOTHING)
		k->hinted = head;
	k->hint = k->hint != HINT_MORE && k->hinted.family == head.family &&
				  strcmp(k->hinted.name, head.name) == 0 ?
			  HINT_TABLE : HINT_MORE;
	return 0;
}

static int on_nft(sd_event_source *source, int fd, uint32_t revents,
		  void *userdata)
{
	struct killswitch *k = userdata;
	bool lost;

	(void)source;
	(void)fd;
	(void)revents;
	lost = nl_notify_drain(k->nft_events, on_nft_message, k) != 0;
	if (lost)
		k->hint = HINT_MORE;
	if (k->touched || lost) {
		k->stale = true;
		k->look_again(k->userdata);
	}
	k->touched = false;
	return 0;
}

/* Pods come and go as veth pairs: only those that we guard matter. */
static int on_link_message(const struct nlmsghdr *nlh, void *userdata)
{
	struct killswitch *k = userdata;
	struct rtnl_link l;

	if (rtnl_link_decode(nlh, &l) < 0 || strcmp(l.kind, "veth") != 0 ||
	    strlist_has(&k->devices, l.name) || find_guarded(k, l.index))
		k->moved = true;
	return 0;
}

static int on_link(sd_event_source *source, int fd, uint32_t revents,
		   void *userdata)
{
	struct killswitch *k = userdata;
	bool lost;

	(void)source;
	(void)fd;
	(void)revents;
	lost = nl_notify_drain(k->link_events, on_link_message, k) != 0;
	/* Of this the kernel names nobody, so the last name is not theirs. */
	if (k->moved && !k->stale)
		k->writer[0] = '\0';
	if (k->moved || lost) {
		k->hint = HINT_MORE;
		k->look_again(k->userdata);
	}
	k->moved = false;
	return 0;
}

static int subscribe(struct killswitch *k, struct fault *f)
{
	static const unsigned int nft_group = NFNLGRP_NFTABLES;
	static const unsigned int link_group = RTNLGRP_LINK;
	int r = 0;

	if (!k->nft_events)
		r = nl_notify_open(NETLINK_NETFILTER, &nft_group, 1,
				   &k->nft_events, f);
	if (r == 0 && !k->link_events)
		r = nl_notify_open(NETLINK_ROUTE, &link_group, 1,
				   &k->link_events, f);
	if (r < 0)
		return r;
	if (!k->nft_source)
		r = sd_event_add_io(k->event, &k->nft_source,
				    nl_notify_fd(k->nft_events), EPOLLIN,
				    on_nft, k);
	if (r >= 0 && !k->link_source)
		r = sd_event_add_io(k->event, &k->link_source,
				    nl_notify_fd(k->link_events), EPOLLIN,
				    on_link, k);
	return r < 0 ? fault_errno(f, r, "killswitch", "watch") : 0;
}

static int killswitch_watch(void *state, const struct desired *want,
			    resource_look_again look_again, void *userdata,
			    struct fault *f)
{
	struct killswitch *k = state;
	int r;

	(void)want;
	k->look_again = look_again;
	k->userdata = userdata;
	if (!k->event)
		return 0;
	r = open_sockets(k, f);
	return r < 0 ? r : subscribe(k, f);
}

static const char *killswitch_writer(void *state)
{
	const struct killswitch *k = state;

	return k->writer;
}

const struct resource resource_killswitch = {
	.id = RESOURCE_KILLSWITCH,
	.open = killswitch_open,
	.observe = killswitch_observe,
	.plan = killswitch_plan,
	.apply = killswitch_apply,
	.watch = killswitch_watch,
	.seen_free = seen_free,
	.free = killswitch_free,
	.writer = killswitch_writer,
	.glance = killswitch_glance,
};

#include "agent/nl/tc.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define REQUEST_MAX 128
#define QDISCS_MAX 8192

/* ---- one filter ---- */

static const void *find(const struct nlattr *a, const void *what, size_t n)
{
	return memmem(mnl_attr_get_payload(a), mnl_attr_get_payload_len(a),
		      what, n);
}

/*
 * Actions stand at another depth in each kind of filter; by their own
 * attribute they are found in all of them.
 */
static bool acts(const struct nlattr *options, const char *kind)
{
	alignas(struct nlattr) unsigned char buf[NLA_HDRLEN + 16] = { 0 };
	struct nlattr *a = (void *)buf;

	a->nla_len = (uint16_t)(NLA_HDRLEN + strlen(kind) + 1);
	a->nla_type = TCA_ACT_KIND;
	(void)memcpy(buf + NLA_HDRLEN, kind, strlen(kind) + 1);
	return find(options, buf, a->nla_len) != NULL;
}

static void copy(char *to, const struct nlattr *a)
{
	size_t n = mnl_attr_get_payload_len(a);

	if (n >= TC_NAME_MAX)
		n = TC_NAME_MAX - 1;
	(void)memcpy(to, mnl_attr_get_payload(a), n);
	to[n] = '\0';
	fault_sanitize(to);
}

/* cls_bpf: only a program that decides by itself can redirect. */
static bool program(const struct nlattr *options, struct tc_redirect *t)
{
	const struct nlattr *a;
	bool direct = false;

	mnl_attr_for_each_nested(a, options) {
		uint16_t type = mnl_attr_get_type(a);

		if (type == TCA_BPF_NAME)
			copy(t->name, a);
		else if (type == TCA_BPF_FLAGS &&
			 mnl_attr_get_payload_len(a) == sizeof(uint32_t))
			direct = mnl_attr_get_u32(a) & TCA_BPF_FLAG_ACT_DIRECT;
	}
	t->program = direct;
	return direct;
}

int tc_filter_decode(const struct nlmsghdr *nlh, struct tc_redirect *ret)
{
	const struct tcmsg *m = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *a, *options = NULL;
	struct tc_redirect t = { 0 };
	bool bpf = false;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*m) ||
	    nlh->nlmsg_type != RTM_NEWTFILTER)
		return -EBADMSG;
	t.index = m->tcm_ifindex;
	mnl_attr_for_each(a, nlh, sizeof(*m)) {
		if (mnl_attr_get_type(a) == TCA_OPTIONS)
			options = a;
		else if (mnl_attr_get_type(a) == TCA_KIND)
			bpf = mnl_attr_get_payload_len(a) == 4 &&
			      memcmp(mnl_attr_get_payload(a), "bpf", 4) == 0;
	}
	if (!options)
		return 0;
	if (bpf && program(options, &t)) {
		*ret = t;
		return 1;
	}
	if (!acts(options, "mirred") && !acts(options, "bpf"))
		return 0;
	if (!t.name[0])
		(void)strcpy(t.name, acts(options, "mirred") ? "mirred" :
							      "action bpf");
	*ret = t;
	return 1;
}

/* ---- dumps ---- */

struct parents {
	struct {
		int index;
		uint32_t parent;
	} v[QDISCS_MAX];
	size_t n;
};

static void add_parent(struct parents *p, int index, uint32_t parent)
{
	if (p->n == QDISCS_MAX)
		return;
	p->v[p->n].index = index;
	p->v[p->n++].parent = parent;
}

/* Which have filters: clsact and ingress, and whatever has classes. */
static int on_qdisc(const struct nlmsghdr *nlh, void *userdata)
{
	static const char *const plain[] = { "noqueue", "pfifo_fast", "pfifo",
					     "bfifo", "mq" };
	const struct tcmsg *m = mnl_nlmsg_get_payload(nlh);
	struct parents *p = userdata;
	const char *kind = "";
	const struct nlattr *a;
	size_t i;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*m) ||
	    nlh->nlmsg_type != RTM_NEWQDISC)
		return 0;
	mnl_attr_for_each(a, nlh, sizeof(*m))
		if (mnl_attr_get_type(a) == TCA_KIND &&
		    mnl_attr_validate(a, MNL_TYPE_NUL_STRING) >= 0)
			kind = mnl_attr_get_str(a);
	if (m->tcm_parent == TC_H_CLSACT) {	/* or ingress: one number */
		add_parent(p, m->tcm_ifindex,
			   TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS));
		if (strcmp(kind, "clsact") == 0)
			add_parent(p, m->tcm_ifindex,
				   TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS));
		return 0;
	}
	for (i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (strcmp(kind, plain[i]) == 0)
			return 0;
	if (m->tcm_handle)
		add_parent(p, m->tcm_ifindex, m->tcm_handle);
	return 0;
}

static void forget_qdiscs(void *userdata)
{
	((struct parents *)userdata)->n = 0;
}

struct side {
	struct tc_redirects *list;
	size_t start;
};

static int on_filter(const struct nlmsghdr *nlh, void *userdata)
{
	struct side *s = userdata;
	struct tc_redirect t;
	int r = nlh->nlmsg_type == RTM_NEWTFILTER ?
			tc_filter_decode(nlh, &t) : 0;

	if (r > 0 && s->list->n < TC_REDIRECTS_MAX)
		s->list->v[s->list->n++] = t;
	return r < 0 ? r : 0;
}

static void forget_side(void *userdata)
{
	struct side *s = userdata;

	s->list->n = s->start;
}

static struct nlmsghdr *request(void *buf, uint16_t type, int index,
				uint32_t parent)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct tcmsg *m;

	nlh->nlmsg_type = type;
	m = mnl_nlmsg_put_extra_header(nlh, sizeof(*m));
	m->tcm_family = AF_UNSPEC;
	m->tcm_ifindex = index;
	m->tcm_parent = parent;
	return nlh;
}

int tc_redirect_dump(struct nl_sock *s, struct tc_redirects *ret,
		     struct fault *f)
{
	alignas(struct nlmsghdr) unsigned char buf[REQUEST_MAX];
	struct parents *p = calloc(1, sizeof(*p));
	size_t i;
	int r;

	if (!p)
		return -ENOMEM;
	ret->n = 0;
	r = nl_sock_dump(s, request(buf, RTM_GETQDISC, 0, 0), on_qdisc,
			 forget_qdiscs, p, f);
	for (i = 0; r == 0 && i < p->n; i++) {
		struct side side = { ret, ret->n };
		struct fault scratch = FAULT_INIT;

		r = nl_sock_dump(s, request(buf, RTM_GETTFILTER, p->v[i].index,
					    p->v[i].parent),
				 on_filter, forget_side, &side, &scratch);
		/* The device or its qdisc went meanwhile, or has no filters. */
		if (r == -ENODEV || r == -EINVAL || r == -EOPNOTSUPP)
			r = 0;
		else if (r < 0)
			(void)fault_set(f, r, scratch.object, "%s",
					scratch.text);
	}
	free(p);
	return r;
}

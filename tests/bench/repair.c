/*
 * How long what somebody takes away stays away: the real engine with the
 * kill-switch and the routing runs as a process of its own, another one
 * deletes a rule or our table over netlink and waits for the kernel to say
 * that it is back.
 *
 *   repair SPEC STATE_DIR LOOPS
 *
 * Prints "NAME min median p99 max" in microseconds for "rule" (of routing),
 * "rules" (of a chain of our table, which is replaced) and "table" (whole),
 * each also "bare": by a program that does nothing but put the object back
 * (repair_bare.h); and "flushes CPU": percent of one core while the table
 * was deleted 100 times in 2 s.
 *
 * Tables are plain here, as before Linux 6.9: owned ones cannot be deleted.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/fib_rules.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/engine.h"
#include "agent/nl/nft.h"
#include "agent/nl/nl_notify.h"
#include "agent/nl/rtnl.h"
#include "agent/res/killswitch_tables.h"
#include "common/log.h"
#include "repair_bare.h"
#include "spec/derive.h"
#include "spec/spec.h"

#define LOOPS_MAX 100000
#define DEADLINE_MS 5000
#define REST_MS 10		/* between two of them: the agent sleeps again */
#define FLUSHES 100
#define FLUSH_EVERY_MS 20

static double now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void tell(const char *name, double *t, size_t n)
{
	qsort(t, n, sizeof(*t), compare);
	(void)printf("%s %.1f %.1f %.1f %.1f\n", name, t[0], t[n / 2],
		     t[n * 99 / 100], t[n - 1]);
}

/* ---- the agent ---- */

static struct desired *load(const char *path)
{
	struct spec_problems problems = SPEC_PROBLEMS_INIT;
	struct desired *want = NULL;
	struct spec *spec = NULL;

	if (spec_load(path, SPEC_ONE_BOX, &problems, &spec, NULL) == 0)
		(void)spec_derive_node(spec, 0, &want, NULL);
	spec_problems_done(&problems);
	(void)spec_free(spec);
	return want;
}

static int agent(const char *spec, const char *state_dir, bool unlimited)
{
	struct resource_host host = { .root = state_dir, .state_dir = state_dir,
				      .no_table_owner = true };
	struct engine_params p = engine_params_default();
	struct engine *e = NULL;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	log_set_level(LOG_LEVEL_ERROR);
	if (unlimited)		/* measured is one repair, not the limit */
		p.repair.burst = UINT32_MAX;
	if (sd_event_new(&host.event) < 0 ||
	    engine_new(&host, resource_registry, &p, &e) < 0)
		return 1;
	engine_only(e, 1u << RESOURCE_KILLSWITCH | 1u << RESOURCE_ROUTING);
	engine_set_desired(e, load(spec));
	if (engine_attach(e) < 0)
		return 1;
	return sd_event_loop(host.event) < 0;
}

static pid_t start_agent(const char *spec, const char *state_dir,
			 bool unlimited)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(agent(spec, state_dir, unlimited));
	return pid;
}

static void end_agent(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

static double cpu_us(pid_t pid)
{
	struct timespec t = { 0 };
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0)
		return 0;
	(void)clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* ---- seeing it come back ---- */

struct seen {
	uint16_t type;
	uint32_t priority;	/* of a rule */
	uint32_t own;		/* port of the one who deletes */
	bool back;
};

static int on_message(const struct nlmsghdr *nlh, void *userdata)
{
	struct seen *s = userdata;
	const char *table;
	struct rtnl_rule r;

	if (nlh->nlmsg_type != s->type || nlh->nlmsg_pid == s->own)
		return 0;
	if (s->type == RTM_NEWRULE) {
		s->back |= rtnl_rule_decode(nlh, &r) == 0 &&
			   r.priority == s->priority;
		return 0;
	}
	table = nft_msg_table(nlh);
	s->back |= table && strcmp(table, KILLSWITCH_TABLE) == 0;
	return 0;
}

static int wait_back(struct nl_notify *n, struct seen *s)
{
	struct pollfd p = { .fd = nl_notify_fd(n), .events = POLLIN };

	s->back = false;
	while (!s->back) {
		if (poll(&p, 1, DEADLINE_MS) <= 0)
			return -ETIMEDOUT;
		(void)nl_notify_drain(n, on_message, s);
	}
	return 0;
}

static int rest(struct nl_notify *n, int ms, struct seen *s)
{
	(void)poll(NULL, 0, ms);
	(void)nl_notify_drain(n, on_message, s);
	return 0;
}

/* ---- rules ---- */

static int find_rule(struct nl_sock *s, struct rtnl_rule *ret_rule)
{
	struct rtnl_rules rules = { 0 };
	int i, r = -ENOENT;
	size_t k;

	for (i = 0; i < DEADLINE_MS && r == -ENOENT; i++) {
		rules.n = 0;
		if (rtnl_rule_dump(s, &rules, NULL) < 0)
			break;
		for (k = 0; k < rules.n; k++)
			if (rules.v[k].protocol == RTNL_PROTO_GARBOARD) {
				*ret_rule = rules.v[k];
				r = 0;
			}
		if (r < 0)
			(void)poll(NULL, 0, 1);
	}
	free(rules.v);
	return r;
}

static int rules(size_t loops, double *t)
{
	static const unsigned int groups[] = { RTNLGRP_IPV4_RULE,
					       RTNLGRP_IPV6_RULE };
	struct nl_notify *n = NULL;
	struct nl_sock *s = NULL;
	struct rtnl_rule rule;
	struct seen seen = { .type = RTM_NEWRULE };
	size_t i;
	int r;

	r = nl_sock_open(NETLINK_ROUTE, &s, NULL);
	if (r == 0)
		r = nl_notify_open(NETLINK_ROUTE, groups, 2, &n, NULL);
	if (r == 0)
		r = find_rule(s, &rule);
	for (i = 0; i < loops && r == 0; i++) {
		double begin;

		seen.own = nl_sock_portid(s);
		seen.priority = rule.priority;
		(void)rest(n, REST_MS, &seen);
		begin = now_us();
		r = rtnl_rule_delete(s, &rule, NULL);
		if (r == 0)
			r = wait_back(n, &seen);
		t[i] = now_us() - begin;
	}
	(void)nl_notify_free(n);
	(void)nl_sock_free(s);
	return r;
}

/* ---- tables ---- */

static int delete_table(struct nl_sock *s)
{
	struct nft_batch b;
	int r;

	nft_batch_init(&b);
	nft_batch_delete_table(&b, NFPROTO_INET, KILLSWITCH_TABLE);
	r = nft_batch_commit(&b, s, NULL);
	nft_batch_done(&b);
	return r;
}

static struct nlmsghdr *put_message(void *at, uint16_t type, uint32_t seq,
				    uint8_t family, uint16_t resource)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(at);
	struct nfgenmsg *h = mnl_nlmsg_put_extra_header(nlh, sizeof(*h));

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	nlh->nlmsg_seq = seq;
	h->nfgen_family = family;
	h->res_id = htons(resource);
	return nlh;
}

/* All rules of the chain that sends the class to its own. */
static int delete_rules(struct nl_sock *s)
{
	_Alignas(struct nlmsghdr) unsigned char buf[512];
	uint32_t seq = nl_sock_sequence(s, 3);
	struct nlmsghdr *nlh;
	size_t size;

	nlh = put_message(buf, NFNL_MSG_BATCH_BEGIN, seq, AF_UNSPEC,
			  NFNL_SUBSYS_NFTABLES);
	size = nlh->nlmsg_len;
	nlh = put_message(buf + size,
			  NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_DELRULE, seq + 1,
			  NFPROTO_INET, 0);
	nlh->nlmsg_flags |= NLM_F_ACK;
	mnl_attr_put_strz(nlh, NFTA_RULE_TABLE, KILLSWITCH_TABLE);
	mnl_attr_put_strz(nlh, NFTA_RULE_CHAIN, "output");
	size += nlh->nlmsg_len;
	nlh = put_message(buf + size, NFNL_MSG_BATCH_END, seq + 2, AF_UNSPEC,
			  NFNL_SUBSYS_NFTABLES);
	size += nlh->nlmsg_len;
	return nl_sock_batch(s, buf, size, seq, seq + 1, NULL);
}

static int tables(size_t loops, double *t, struct nl_sock *s,
		  struct nl_notify *n, int (*take_away)(struct nl_sock *s))
{
	struct seen seen = { .type = NFNL_SUBSYS_NFTABLES << 8 |
				     NFT_MSG_NEWTABLE,
			     .own = nl_sock_portid(s) };
	size_t i;
	int r = 0;

	for (i = 0; i < loops && r == 0; i++) {
		double begin;

		(void)rest(n, REST_MS, &seen);
		begin = now_us();
		r = take_away(s);
		if (r == 0)
			r = wait_back(n, &seen);
		t[i] = now_us() - begin;
	}
	return r;
}

static double flushes(pid_t pid, struct nl_sock *s)
{
	double begin = now_us(), cpu = cpu_us(pid);
	int i;

	for (i = 0; i < FLUSHES; i++) {
		/* Not back yet after the burst is over: as it shall be. */
		(void)delete_table(s);
		(void)poll(NULL, 0, FLUSH_EVERY_MS);
	}
	return (cpu_us(pid) - cpu) / (now_us() - begin) * 100;
}

static int put_table(const struct nft_table *table, struct nl_sock *s)
{
	struct nft_batch b;
	int r;

	nft_batch_init(&b);
	nft_batch_add_table(&b, table->family, table->name, 0);
	nft_batch_delete_table(&b, table->family, table->name);
	nft_batch_fill_table(&b, table);
	r = nft_batch_commit(&b, s, NULL);
	nft_batch_done(&b);
	return r;
}

/* ---- ours, then bare ---- */

struct bench {
	const char *spec, *state_dir;
	struct desired *want;
	struct nl_sock *nft;
	struct nl_notify *events;
	size_t loops;
	double *t;
};

static int ours(struct bench *b)
{
	pid_t pid = start_agent(b->spec, b->state_dir, true);
	int r = rules(b->loops, b->t);

	if (r == 0) {
		tell("rule", b->t, b->loops);
		r = tables(b->loops, b->t, b->nft, b->events, delete_rules);
	}
	if (r == 0) {
		tell("rules", b->t, b->loops);
		r = tables(b->loops, b->t, b->nft, b->events, delete_table);
	}
	end_agent(pid);
	if (r < 0)
		return r;
	tell("table", b->t, b->loops);
	pid = start_agent(b->spec, b->state_dir, false);
	(void)poll(NULL, 0, 200);
	(void)printf("flushes %.2f\n", flushes(pid, b->nft));
	end_agent(pid);
	return 0;
}

static int bare(struct bench *b)
{
	struct nft_table table = { 0 };
	pid_t pid = bare_rules();
	int r = pid < 0 ? -EINVAL : rules(b->loops, b->t);

	bare_end(pid);
	if (r == 0) {
		tell("bare_rule", b->t, b->loops);
		r = killswitch_table(&b->want->egress, NULL, &table);
	}
	if (r == 0)
		r = put_table(&table, b->nft);
	if (r < 0)
		return r;
	pid = bare_table(&table, false);
	r = tables(b->loops, b->t, b->nft, b->events, delete_rules);
	bare_end(pid);
	if (r == 0) {
		tell("bare_rules", b->t, b->loops);
		pid = bare_table(&table, true);
		r = tables(b->loops, b->t, b->nft, b->events, delete_table);
		bare_end(pid);
	}
	if (r == 0)
		tell("bare_table", b->t, b->loops);
	nft_table_done(&table);
	return r;
}

static int all(struct bench *b)
{
	static const unsigned int group = NFNLGRP_NFTABLES;
	int r;

	b->want = load(b->spec);
	if (!b->want)
		return -EINVAL;
	r = nl_sock_open(NETLINK_NETFILTER, &b->nft, NULL);
	if (r == 0)
		r = nl_notify_open(NETLINK_NETFILTER, &group, 1, &b->events,
				   NULL);
	if (r == 0)
		r = ours(b);
	return r < 0 ? r : bare(b);
}

int main(int argc, char **argv)
{
	size_t loops = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
	struct bench b = { .loops = loops };
	int r;

	if (!loops || loops > LOOPS_MAX)
		return 2;
	b.spec = argv[1];
	b.state_dir = argv[2];
	b.t = calloc(loops, sizeof(*b.t));
	if (!b.t)
		return 1;
	r = all(&b);
	free(b.t);
	(void)desired_free(b.want);
	(void)nl_notify_free(b.events);
	(void)nl_sock_free(b.nft);
	if (r < 0)
		(void)fprintf(stderr, "repair: %s\n", strerror(-r));
	return r < 0;
}

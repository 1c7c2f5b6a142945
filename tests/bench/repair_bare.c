#include "repair_bare.h"

#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/nl/nft_batch.h"
#include "agent/nl/nft_msg.h"
#include "agent/nl/nl_notify.h"
#include "agent/nl/rtnl.h"

struct bare {
	struct nl_sock *sock;
	struct nl_notify *events;
	const struct nft_table *table;
	bool whole;
	bool gone, over;	/* something of it; the transaction */
};

static int on_rule(const struct nlmsghdr *nlh, void *userdata)
{
	struct bare *b = userdata;
	struct rtnl_rule rule;

	if (nlh->nlmsg_type != RTM_DELRULE ||
	    nlh->nlmsg_pid == nl_sock_portid(b->sock) ||
	    rtnl_rule_decode(nlh, &rule) < 0)
		return 0;
	return rtnl_rule_add(b->sock, &rule, NULL);
}

static int on_nft(const struct nlmsghdr *nlh, void *userdata)
{
	struct bare *b = userdata;
	const char *table = nft_msg_table(nlh);

	if (nlh->nlmsg_pid == nl_sock_portid(b->sock))
		return 0;
	if (table)
		b->gone |= strcmp(table, b->table->name) == 0;
	else
		b->over = b->gone;
	return 0;
}

static void make(const struct bare *b, struct nft_batch *batch)
{
	nft_batch_init(batch);
	if (!b->whole) {
		nft_batch_add_table(batch, b->table->family, b->table->name,
				    0);
		nft_batch_delete_table(batch, b->table->family,
				       b->table->name);
	}
	nft_batch_fill_table(batch, b->table);
}

static void wait_for(const struct bare *b)
{
	struct pollfd p = { .fd = nl_notify_fd(b->events), .events = POLLIN };

	(void)poll(&p, 1, -1);
}

static int keep_rules(struct bare *b)
{
	for (;;) {
		wait_for(b);
		if (nl_notify_drain(b->events, on_rule, b) < 0)
			return 1;
	}
}

static int keep_table(struct bare *b)
{
	struct nft_batch batch;

	for (;;) {
		make(b, &batch);
		while (!b->over) {
			wait_for(b);
			(void)nl_notify_drain(b->events, on_nft, b);
		}
		b->gone = b->over = false;
		if (nft_batch_commit(&batch, b->sock, NULL) < 0)
			return 1;
		nft_batch_done(&batch);
	}
}

static pid_t start(int bus, const unsigned int *groups, size_t n,
		   const struct nft_table *table, bool whole)
{
	struct bare b = { .table = table, .whole = whole };
	pid_t pid;

	/* Subscribed before the caller deletes anything. */
	if (nl_sock_open(bus, &b.sock, NULL) < 0 ||
	    nl_notify_open(bus, groups, n, &b.events, NULL) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(table ? keep_table(&b) : keep_rules(&b));
	}
	(void)nl_sock_free(b.sock);
	(void)nl_notify_free(b.events);
	return pid;
}

pid_t bare_rules(void)
{
	static const unsigned int groups[] = { RTNLGRP_IPV4_RULE,
					       RTNLGRP_IPV6_RULE };

	return start(NETLINK_ROUTE, groups, 2, NULL, false);
}

pid_t bare_table(const struct nft_table *table, bool whole)
{
	static const unsigned int group = NFNLGRP_NFTABLES;

	return start(NETLINK_NETFILTER, &group, 1, table, whole);
}

void bare_end(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

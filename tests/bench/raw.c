/*
 * The least a program must do to look at a node: 12 sysctls, rules, routes
 * and the nftables ruleset, by plain system calls and libmnl, without
 * judging anything. What ours is measured against.
 *
 *   raw            one look, then exit (a one-shot)
 *   raw LOOPS      LOOPS looks in one process; prints the median in ns
 */
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const char *const sysctls[] = {
	"net/ipv4/ip_forward", "net/ipv4/conf/all/forwarding",
	"net/ipv4/conf/all/rp_filter", "net/ipv4/conf/default/rp_filter",
	"fs/inotify/max_user_instances", "fs/inotify/max_user_watches",
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic",
	"kernel/panic_on_oops", "kernel/keys/root_maxkeys",
	"kernel/keys/root_maxbytes",
};

static char buf[65536];

static int fail(const char *what)
{
	perror(what);
	return 1;
}

static int read_sysctls(void)
{
	size_t i;

	for (i = 0; i < sizeof(sysctls) / sizeof(sysctls[0]); i++) {
		char path[128];
		int fd;

		(void)snprintf(path, sizeof(path), "/proc/sys/%s", sysctls[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || read(fd, buf, 256) < 0)
			return fail(path);
		(void)close(fd);
	}
	return 0;
}

/* Sends a dump and reads its answer to the end. */
static int dump(struct mnl_socket *nl, struct nlmsghdr *h)
{
	unsigned int seq = h->nlmsg_seq;
	int r = 1;

	if (mnl_socket_sendto(nl, h, h->nlmsg_len) < 0)
		return fail("send");
	while (r > 0) {
		ssize_t n = mnl_socket_recvfrom(nl, buf, sizeof(buf));

		if (n < 0)
			return fail("receive");
		r = mnl_cb_run(buf, (size_t)n, seq,
			       mnl_socket_get_portid(nl), NULL, NULL);
	}
	return r < 0 ? fail("dump") : 0;
}

static int dump_rt(struct mnl_socket *nl, uint16_t type, uint8_t family)
{
	static unsigned int seq;
	char out[256];
	struct nlmsghdr *h = mnl_nlmsg_put_header(out);
	struct rtmsg *m;

	h->nlmsg_type = type;
	h->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	h->nlmsg_seq = ++seq;
	m = mnl_nlmsg_put_extra_header(h, sizeof(*m));
	m->rtm_family = family;
	return dump(nl, h);
}

static int dump_nft(struct mnl_socket *nl, uint16_t type)
{
	static unsigned int seq;
	char out[256];
	struct nlmsghdr *h = mnl_nlmsg_put_header(out);
	struct nfgenmsg *m;

	h->nlmsg_type = (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type);
	h->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	h->nlmsg_seq = ++seq;
	m = mnl_nlmsg_put_extra_header(h, sizeof(*m));
	m->nfgen_family = 0;
	m->version = NFNETLINK_V0;
	return dump(nl, h);
}

static int look(struct mnl_socket *rt, struct mnl_socket *nf)
{
	if (read_sysctls() || dump_rt(rt, RTM_GETRULE, AF_INET) ||
	    dump_rt(rt, RTM_GETRULE, AF_INET6) ||
	    dump_rt(rt, RTM_GETROUTE, AF_INET) ||
	    dump_rt(rt, RTM_GETROUTE, AF_INET6) ||
	    dump_rt(rt, RTM_GETLINK, AF_UNSPEC) ||
	    dump_nft(nf, NFT_MSG_GETTABLE) || dump_nft(nf, NFT_MSG_GETCHAIN) ||
	    dump_nft(nf, NFT_MSG_GETRULE))
		return 1;
	return 0;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	struct mnl_socket *rt = mnl_socket_open(NETLINK_ROUTE);
	struct mnl_socket *nf = mnl_socket_open(NETLINK_NETFILTER);
	unsigned long loops = argc > 1 ? strtoul(argv[1], NULL, 10) : 1, i;
	uint64_t *t;

	if (!rt || !nf || mnl_socket_bind(rt, 0, MNL_SOCKET_AUTOPID) < 0 ||
	    mnl_socket_bind(nf, 0, MNL_SOCKET_AUTOPID) < 0)
		return fail("netlink");
	if (loops < 1 || loops > 1000000)
		return 2;
	t = calloc(loops, sizeof(*t));
	if (!t)
		return fail("memory");
	for (i = 0; i < loops; i++) {
		uint64_t start = now_ns();

		if (look(rt, nf))
			return 1;
		t[i] = now_ns() - start;
	}
	qsort(t, loops, sizeof(*t), compare);
	if (argc > 1)
		(void)printf("%llu\n", (unsigned long long)t[loops / 2]);
	free(t);
	return 0;
}

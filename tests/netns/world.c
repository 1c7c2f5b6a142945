#include "world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define DEADLINE_MS 5000
#define MARKER_PORT 4040
#define MARKER_SOURCE "203.0.113.9"	/* of no class, ever */
#define FRAME_MAX 2048

static int ns_home = -1, ns_node = -1, ns_peer = -1, ns_pod = -1;
static int tap = -1;

static int open_ns(void)
{
	int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void enter(int ns)
{
	assert_int_equal(setns(ns, CLONE_NEWNET), 0);
}

void world_require(void)
{
	if (geteuid() == 0 && unshare(CLONE_NEWNET) == 0)
		return;
	(void)printf("1..0 # SKIP needs root and network namespaces\n");
	exit(0);
}

static int run(const char *cmd)
{
	int status;

	(void)fflush(NULL);
	status = system(cmd);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static void format(char *buf, size_t size, const char *fmt, va_list ap)
{
	int n = vsnprintf(buf, size, fmt, ap);

	assert_true(n >= 0 && (size_t)n < size);
}

void sh(const char *fmt, ...)
{
	char cmd[4096];
	va_list ap;

	va_start(ap, fmt);
	format(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	if (run(cmd) != 0)
		fail_msg("command failed: %s", cmd);
}

int sh_status(const char *fmt, ...)
{
	char cmd[4096];
	va_list ap;

	va_start(ap, fmt);
	format(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	return run(cmd);
}

static void sh_in(int ns, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void sh_in(int ns, const char *fmt, ...)
{
	char cmd[4096];
	va_list ap;

	va_start(ap, fmt);
	format(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	enter(ns);
	if (run(cmd) != 0)
		fail_msg("command failed: %s", cmd);
	enter(ns_node);
}

void sh_peer(const char *fmt, ...)
{
	char cmd[4096];
	va_list ap;

	va_start(ap, fmt);
	format(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	sh_in(ns_peer, "%s", cmd);
}

char *sh_text(const char *fmt, ...)
{
	char cmd[4096], *text = NULL;
	size_t size;
	va_list ap;
	FILE *in, *out;
	int c;

	va_start(ap, fmt);
	format(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	(void)fflush(NULL);
	in = popen(cmd, "r");
	out = open_memstream(&text, &size);
	assert_non_null(in);
	assert_non_null(out);
	while ((c = fgetc(in)) != EOF)
		(void)fputc(c, out);
	(void)fclose(out);
	assert_int_equal(pclose(in), 0);
	return text;
}

/* ---- making ---- */

static void make_up0(void)
{
	sh("ip link add up0 type veth peer name peer0 netns /proc/%d/fd/%d",
	   (int)getpid(), ns_peer);
	sh("ip addr add 192.0.2.1/24 dev up0; ip link set up0 up;"
	   "ip -6 addr add 2001:db8:1::1/64 dev up0 nodad");
	sh_in(ns_peer, "ip link set lo up;"
	      "ip link set peer0 address 02:00:00:00:00:fe up;"
	      "ip addr add 192.0.2.254/24 dev peer0;"
	      "ip -6 addr add 2001:db8:1::fe/64 dev peer0 nodad");
	/* Neighbours by hand: nothing is asked, nothing is waited for. */
	sh("ip neigh replace 192.0.2.254 lladdr 02:00:00:00:00:fe dev up0;"
	   "ip neigh replace 192.0.2.53 lladdr 02:00:00:00:00:fe dev up0;"
	   "ip -6 neigh replace 2001:db8:1::fe lladdr 02:00:00:00:00:fe "
	   "dev up0");
	sh("ip route add default via 192.0.2.254;"
	   "ip -6 route add default via 2001:db8:1::fe");
}

static void make_pod(void)
{
	sh("ip link add pod0 type veth peer name eth0 netns /proc/%d/fd/%d",
	   (int)getpid(), ns_pod);
	sh("ip link set pod0 address 02:00:00:00:00:01;"
	   "ip link set pod0 up; ip route add 10.44.0.6 dev pod0;"
	   "ip -6 route add fd44::6 dev pod0;"
	   "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1");
	sh_in(ns_pod, "ip link set lo up; ip link set eth0 up;"
	      "ip addr add 10.44.0.6/32 dev eth0;"
	      "ip -6 addr add fd44::6/128 dev eth0 nodad;"
	      "ip route add 169.254.1.1 dev eth0;"
	      "ip route add default via 169.254.1.1 dev eth0;"
	      "ip neigh replace 169.254.1.1 lladdr 02:00:00:00:00:01 dev eth0;"
	      "ip -6 neigh replace fe80::1 lladdr 02:00:00:00:00:01 dev eth0;"
	      "ip -6 route add default via fe80::1 dev eth0");
}

static void open_tap(void)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(ETH_P_ALL) };

	if (tap >= 0)
		(void)close(tap);
	enter(ns_peer);
	tap = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
		     htons(ETH_P_ALL));
	at.sll_ifindex = (int)if_nametoindex("peer0");
	assert_true(tap >= 0);
	assert_int_equal(bind(tap, (struct sockaddr *)&at, sizeof(at)), 0);
	enter(ns_node);
}

void world_make(void)
{
	if (ns_home < 0)
		ns_home = open_ns();
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	ns_peer = open_ns();
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	ns_pod = open_ns();
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	ns_node = open_ns();
	/* A pair, since not every kernel has dummy devices. */
	sh("ip link set lo up; ip link add dum0 type veth peer name dum1;"
	   "ip link set dum0 up; ip addr add 10.44.0.5/32 dev dum0;"
	   "ip addr add " MARKER_SOURCE "/32 dev dum0;"
	   "ip -6 addr add fd44::5/128 dev dum0 nodad");
	make_up0();
	make_pod();
	open_tap();
}

void world_replug(void)
{
	make_up0();
	open_tap();
}

void world_tunnel(void)
{
	sh("ip tuntap add dev wg0 mode tun; ip link set wg0 up");
}

void world_done(void)
{
	enter(ns_home);
	(void)close(tap);
	(void)close(ns_node);
	(void)close(ns_peer);
	(void)close(ns_pod);
	tap = ns_node = ns_peer = ns_pod = -1;
}

/* ---- packets ---- */

static void to_sockaddr(const char *text, int port,
			struct sockaddr_storage *ss, socklen_t *len)
{
	struct sockaddr_in *v4 = (void *)ss;
	struct sockaddr_in6 *v6 = (void *)ss;

	(void)memset(ss, 0, sizeof(*ss));
	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)port);
		*len = sizeof(*v4);
		return;
	}
	assert_int_equal(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons((uint16_t)port);
	*len = sizeof(*v6);
}

static void send_udp(const char *source, const char *device,
		     unsigned int mark, const char *dest, int port)
{
	struct sockaddr_storage to, from;
	socklen_t to_len, from_len;
	int fd;

	to_sockaddr(dest, port, &to, &to_len);
	fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	if (source[0]) {
		to_sockaddr(source, 0, &from, &from_len);
		assert_int_equal(bind(fd, (void *)&from, from_len), 0);
	}
	if (device)
		assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE,
					    device,
					    (socklen_t)strlen(device)), 0);
	if (mark)
		assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_MARK, &mark,
					    sizeof(mark)), 0);
	/* EPERM and ENETUNREACH are how a block shows to the sender. */
	(void)sendto(fd, "x", 1, 0, (void *)&to, to_len);
	(void)close(fd);
}

static size_t ip_header(unsigned char *at, const char *source,
			const char *dest)
{
	struct ip6_hdr *v6 = (void *)at;
	struct iphdr *v4 = (void *)at;

	if (strchr(dest, ':')) {
		v6->ip6_flow = htonl(6u << 28);
		v6->ip6_plen = htons(sizeof(struct udphdr) + 1);
		v6->ip6_nxt = IPPROTO_UDP;
		v6->ip6_hlim = 64;
		(void)inet_pton(AF_INET6, source, &v6->ip6_src);
		(void)inet_pton(AF_INET6, dest, &v6->ip6_dst);
		return sizeof(*v6);
	}
	v4->version = 4;
	v4->ihl = 5;
	v4->ttl = 64;
	v4->protocol = IPPROTO_UDP;
	v4->tot_len = htons(sizeof(*v4) + sizeof(struct udphdr) + 1);
	(void)inet_pton(AF_INET, source, &v4->saddr);
	(void)inet_pton(AF_INET, dest, &v4->daddr);
	return sizeof(*v4);
}

static void send_raw(const char *source, const char *dest, int port,
		     uint16_t protocol)
{
	_Alignas(4) unsigned char frame[128] = { 0 };
	unsigned char *ip = frame + 2 + ETH_HLEN;	/* aligned */
	bool v6 = strchr(dest, ':');
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(protocol),
		.sll_ifindex = (int)if_nametoindex("up0"),
	};
	struct ethhdr eth = { .h_proto = htons(v6 ? ETH_P_IPV6 : ETH_P_IP),
			      .h_dest = { 2, 0, 0, 0, 0, 0xfe } };
	struct udphdr udp = { .dest = htons((uint16_t)port),
			      .len = htons(sizeof(udp) + 1) };
	size_t n = ip_header(ip, source, dest);
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	(void)memcpy(frame + 2, &eth, sizeof(eth));
	(void)memcpy(ip + n, &udp, sizeof(udp));
	(void)sendto(fd, frame + 2, ETH_HLEN + n + sizeof(udp) + 1, 0,
		     (void *)&at, sizeof(at));
	(void)close(fd);
}

/* Destination port of a UDP frame, -1 for anything else. */
static int frame_port(const unsigned char *frame, size_t size)
{
	const unsigned char *ip = frame + ETH_HLEN;
	size_t header;

	if (size < ETH_HLEN + 28)
		return -1;
	if (frame[12] == 0x08 && frame[13] == 0x00 && ip[9] == IPPROTO_UDP)
		header = (size_t)(ip[0] & 0xf) * 4;
	else if (frame[12] == 0x86 && frame[13] == 0xdd &&
		 ip[6] == IPPROTO_UDP)
		header = sizeof(struct ip6_hdr);
	else
		return -1;
	if (size < ETH_HLEN + header + 8)
		return -1;
	return ip[header + 2] << 8 | ip[header + 3];
}

static void drain_tap(void)
{
	unsigned char frame[FRAME_MAX];

	while (recv(tap, frame, sizeof(frame), MSG_DONTWAIT) >= 0)
		;
}

/* Sends the marker and reads up to it: was `port` among what came? */
static bool seen_before_marker(int port)
{
	unsigned char frame[FRAME_MAX];
	struct pollfd p = { .fd = tap, .events = POLLIN };
	bool seen = false;

	send_udp(MARKER_SOURCE, NULL, 0, "198.51.100.99", MARKER_PORT);
	for (;;) {
		ssize_t n = recv(tap, frame, sizeof(frame), MSG_DONTWAIT);
		int got;

		if (n < 0) {
			if (poll(&p, 1, DEADLINE_MS) <= 0)
				fail_msg("the marker did not arrive: traffic "
					 "without a class is blocked");
			continue;
		}
		got = frame_port(frame, (size_t)n);
		if (got == port)
			seen = true;
		if (got == MARKER_PORT)
			return seen;
	}
}

void send_from(const char *source, const char *dest, int port)
{
	send_udp(source, NULL, 0, dest, port);
}

bool leaves(enum path path, const char *source, const char *dest, int port)
{
	drain_tap();
	switch (path) {
	case PATH_OUTPUT:
		send_udp(source, NULL, 0, dest, port);
		break;
	case PATH_BOUND:
		send_udp(source, "up0", 0, dest, port);
		break;
	case PATH_FORWARD:
		enter(ns_pod);
		send_udp(source, NULL, 0, dest, port);
		enter(ns_node);
		break;
	case PATH_RAW:
		send_raw(source, dest, port,
			 strchr(dest, ':') ? ETH_P_IPV6 : ETH_P_IP);
		break;
	case PATH_RAW_ODD:
		send_raw(source, dest, port, ETH_P_802_EX1);
		break;
	case PATH_MAX:
		break;
	}
	return seen_before_marker(port);
}

bool leaves_by(const char *cmd, int port)
{
	drain_tap();
	sh("%s", cmd);
	return seen_before_marker(port);
}

bool leaves_marked(unsigned int mark, const char *dest, int port)
{
	drain_tap();
	send_udp("", NULL, mark, dest, port);
	return seen_before_marker(port);
}

/* ---- one resource ---- */

static void open_resource(struct run *r)
{
	struct fault f = FAULT_INIT;

	if (r->res->open(&r->host, &r->state, &f) < 0)
		fail_msg("open: %s", f.text);
}

void run_open(struct run *r, const struct resource *res, bool resident)
{
	(void)memset(r, 0, sizeof(*r));
	r->res = res;
	(void)snprintf(r->dir, sizeof(r->dir), "/tmp/garboard-netns-XXXXXX");
	assert_non_null(mkdtemp(r->dir));
	if (resident)
		assert_true(sd_event_new(&r->event) >= 0);
	r->host = (struct resource_host){ .event = r->event, .root = r->dir,
					  .state_dir = r->dir };
	open_resource(r);
}

void run_reopen(struct run *r)
{
	r->state = r->res->free(r->state);
	open_resource(r);
}

void run_close(struct run *r)
{
	r->state = r->res->free(r->state);
	r->event = sd_event_unref(r->event);
	sh("rm -rf %s", r->dir);
}

static size_t plan(struct run *r, const struct desired *want, void **seen,
		   struct item_list *items, struct change_list *changes)
{
	struct fault f = FAULT_INIT;

	*items = ITEM_LIST_INIT;
	*changes = CHANGE_LIST_INIT;
	if (r->res->observe(r->state, want, seen, &f) < 0)
		fail_msg("observe: %s", f.text);
	if (r->res->plan(want, *seen, items, changes, &f) < 0)
		fail_msg("plan: %s", f.text);
	return changes->n;
}

size_t run_plan(struct run *r, const struct desired *want,
		struct item_list *items, struct change_list *changes)
{
	struct item_list own_items;
	struct change_list own_changes;
	void *seen = NULL;
	size_t n = plan(r, want, &seen, &own_items, &own_changes);

	r->res->seen_free(seen);
	if (items)
		*items = own_items;
	else
		item_list_done(&own_items);
	if (changes)
		*changes = own_changes;
	else
		change_list_done(&own_changes);
	return n;
}

int run_apply(struct run *r, const struct desired *want)
{
	struct fault f = FAULT_INIT;
	struct item_list items;
	struct change_list changes;
	void *seen = NULL;
	int err;

	(void)plan(r, want, &seen, &items, &changes);
	err = r->res->apply(r->state, want, seen, &changes, &items, &f);
	if (err < 0)
		print_message("# apply: %s: %s\n", f.object, f.text);
	r->res->seen_free(seen);
	item_list_done(&items);
	change_list_done(&changes);
	return err;
}

void run_converge(struct run *r, const struct desired *want)
{
	struct change_list changes;
	size_t n;

	assert_int_equal(run_apply(r, want), 0);
	n = run_plan(r, want, NULL, &changes);
	if (n)
		fail_msg("not converged: %s: \"%s\" -> \"%s\"",
			 changes.v[0].key, changes.v[0].have,
			 changes.v[0].want);
	change_list_done(&changes);
}

static void on_look_again(void *userdata)
{
	((struct run *)userdata)->looks++;
}

void run_watch(struct run *r, const struct desired *want)
{
	struct fault f = FAULT_INIT;

	if (r->res->watch(r->state, want, on_look_again, r, &f) < 0)
		fail_msg("watch: %s", f.text);
	r->looks = 0;
}

bool run_wait(struct run *r)
{
	unsigned int before = r->looks;

	while (r->looks == before)
		if (sd_event_run(r->event, DEADLINE_MS * 1000ull) <= 0)
			return false;
	return true;
}

enum item_state run_item(struct run *r, const struct desired *want,
			 const char *key)
{
	enum item_state state = ITEM_STATE_MAX;
	struct item_list items;
	struct item *it;

	(void)run_plan(r, want, &items, NULL);
	it = item_list_find(&items, key);
	if (it)
		state = it->state;
	item_list_done(&items);
	return state;
}

/* ---- desired states ---- */

struct ip_prefix sample_prefix(const char *text)
{
	struct ip_prefix p;

	assert_int_equal(ip_prefix_parse(text, &p), 0);
	return p;
}

static void add(struct prefix_list *list, const char *text)
{
	struct ip_prefix p = sample_prefix(text);

	assert_int_equal(prefix_list_add(list, &p), 0);
}

struct desired *sample_desired(bool gateway)
{
	struct desired *d = desired_new();
	struct desired_egress *e;
	struct desired_class *c;

	assert_non_null(d);
	e = &d->egress;
	e->tunnels = calloc(1, sizeof(*e->tunnels));
	e->n_tunnels = 1;
	e->tunnels[0] = (struct desired_tunnel){ .name = strdup("wg0"),
						 .table = 51820,
						 .priority = 18200 };
	e->classes = calloc(1, sizeof(*e->classes));
	e->n_classes = 1;
	c = &e->classes[0];
	*c = (struct desired_class){ .name = strdup("vpn"), .mark = 0x2000,
				     .mask = 0x3f00, .gateway = gateway };
	add(&c->pods, "10.44.0.0/20");
	add(&c->pods, "fd44::/64");
	c->dns = calloc(1, sizeof(*c->dns));
	c->n_dns = 1;
	assert_int_equal(ip_addr_parse("10.64.0.1", &c->dns[0]), 0);
	add(&e->local, "10.0.0.0/8");
	add(&e->local, "192.0.2.0/24");
	add(&e->local, "2001:db8:1::/64");
	assert_int_equal(strlist_add(&e->uplinks, "up0"), 0);
	return d;
}

#include "leak_traffic.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define TICK_NS 1000000L
#define TCP_EVERY 16		/* ticks; each is a socket of its own */
#define DEADLINE_MS 20000
#define FIRST_HOST 100		/* last byte of the first destination */
#define FRAME_MAX 128
#define RING_BYTES (64 * 1024 * 1024)
#define PORT 1000
#define DNS_PORT 53

#define CLASS4 "10.45.0.5"
#define CLASS6 "fd45::5"
#define MARK 0x2000u
#define UPLINK "up0"
#define BRIDGE "br0"

static const struct {
	const char *name, *source, *device;
	bool v6, marked, raw, tcp;
	int port;
} streams[STREAM_MAX] = {
	[HOST4] = { .name = "host", .source = CLASS4 },
	[HOST6] = { .name = "host6", .source = CLASS6, .v6 = true },
	[MARK4] = { .name = "mark", .marked = true },
	[MARK6] = { .name = "mark6", .marked = true, .v6 = true },
	[BOUND4] = { .name = "bound", .source = CLASS4, .device = BRIDGE },
	[BOUND6] = { .name = "bound6", .source = CLASS6, .device = BRIDGE,
		     .v6 = true },
	[RAW4] = { .name = "raw", .source = CLASS4, .raw = true },
	[RAW6] = { .name = "raw6", .source = CLASS6, .raw = true,
		   .v6 = true },
	[POD4] = { .name = "pod" },
	[POD6] = { .name = "pod6", .v6 = true },
	[BRIDGED4] = { .name = "bridged" },
	[BRIDGED6] = { .name = "bridged6", .v6 = true },
	[DNS_UDP] = { .name = "dns-udp", .source = CLASS4, .port = DNS_PORT },
	[DNS_TCP] = { .name = "dns-tcp", .source = CLASS4, .port = DNS_PORT,
		      .tcp = true },
	[NET4] = { .name = "internet" },
	[NET6] = { .name = "internet6", .v6 = true },
	[NET_POD4] = { .name = "internet-pod" },
};

/* Between the three processes. */
struct shared {
	_Atomic uint64_t ticks, idle, drops;
	_Atomic bool rest, resting, end;
	_Atomic uint64_t sent[STREAM_MAX], refused[STREAM_MAX];
	_Atomic uint64_t seen[STREAM_MAX], through[STREAM_MAX];
};

static struct shared *shared;
static pid_t sender_pid, detector_pid;

const char *stream_name(enum stream s)
{
	return streams[s].name;
}

bool stream_is_unrouted(enum stream s)
{
	return streams[s].raw || s == BRIDGED4 || s == BRIDGED6 ||
	       s == BOUND6;
}

static void nap(void)
{
	(void)poll(NULL, 0, 1);
}

static void enter(int ns)
{
	if (setns(ns, CLONE_NEWNET) < 0)
		abort();
}

/* ---- sending ---- */

struct sender {
	const struct traffic_scene *scene;
	int fd[STREAM_MAX];
	struct sockaddr_storage to[STREAM_MAX];
	socklen_t to_len[STREAM_MAX];
	_Alignas(4) unsigned char frame[STREAM_MAX][FRAME_MAX];
	size_t frame_len[STREAM_MAX];
};

static int home_of(const struct traffic_scene *scene, enum stream s)
{
	switch (s) {
	case POD4:
	case POD6:
		return scene->pod;
	case BRIDGED4:
	case BRIDGED6:
		return scene->bridged;
	case NET_POD4:
		return scene->web;
	default:
		return scene->node;
	}
}

static socklen_t address(const char *text, bool v6, int port,
			 struct sockaddr_storage *ss)
{
	struct sockaddr_in6 *a6 = (void *)ss;
	struct sockaddr_in *a4 = (void *)ss;

	(void)memset(ss, 0, sizeof(*ss));
	if (v6) {
		a6->sin6_family = AF_INET6;
		a6->sin6_port = htons((uint16_t)port);
		(void)inet_pton(AF_INET6, text, &a6->sin6_addr);
		return sizeof(*a6);
	}
	a4->sin_family = AF_INET;
	a4->sin_port = htons((uint16_t)port);
	(void)inet_pton(AF_INET, text, &a4->sin_addr);
	return sizeof(*a4);
}

static void destination(enum stream s, char *text, size_t size)
{
	(void)snprintf(text, size,
		       streams[s].v6 ? "2001:db8:ffff::%x" : "198.51.100.%u",
		       FIRST_HOST + (unsigned int)s);
}

/* A UDP frame of Ethernet, as a raw socket sends it; aligned at IP. */
static size_t build_frame(enum stream s, unsigned char *frame)
{
	struct ethhdr eth = { .h_dest = { 2, 0, 0, 0, 0, 0xfe },
			      .h_source = { 2, 0, 0, 0, 0, 0xaa } };
	struct udphdr udp = { .dest = htons(PORT),
			      .len = htons(sizeof(udp) + 1) };
	struct ip6_hdr v6 = { .ip6_plen = htons(sizeof(udp) + 1),
			      .ip6_nxt = IPPROTO_UDP, .ip6_hlim = 64 };
	struct iphdr v4 = { .version = 4, .ihl = 5, .ttl = 64,
			    .protocol = IPPROTO_UDP,
			    .tot_len = htons(sizeof(v4) + sizeof(udp) + 1) };
	char to[64];
	size_t n = ETH_HLEN;

	destination(s, to, sizeof(to));
	eth.h_proto = htons(streams[s].v6 ? ETH_P_IPV6 : ETH_P_IP);
	(void)memcpy(frame, &eth, sizeof(eth));
	if (streams[s].v6) {
		v6.ip6_flow = htonl(6u << 28);
		(void)inet_pton(AF_INET6, streams[s].source, &v6.ip6_src);
		(void)inet_pton(AF_INET6, to, &v6.ip6_dst);
		(void)memcpy(frame + n, &v6, sizeof(v6));
		n += sizeof(v6);
	} else {
		(void)inet_pton(AF_INET, streams[s].source, &v4.saddr);
		(void)inet_pton(AF_INET, to, &v4.daddr);
		(void)memcpy(frame + n, &v4, sizeof(v4));
		n += sizeof(v4);
	}
	(void)memcpy(frame + n, &udp, sizeof(udp));
	return n + sizeof(udp) + 1;
}

static void open_raw(struct sender *x, enum stream s)
{
	struct sockaddr_ll *ll = (void *)&x->to[s];

	if (x->fd[s] < 0)
		x->fd[s] = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	(void)memset(ll, 0, sizeof(*ll));
	ll->sll_family = AF_PACKET;
	ll->sll_protocol = htons(streams[s].v6 ? ETH_P_IPV6 : ETH_P_IP);
	/* Renamed, it stays the same device; made anew, it has the name. */
	ll->sll_ifindex = (int)if_nametoindex(UPLINK);
	x->to_len[s] = sizeof(*ll);
	x->frame_len[s] = build_frame(s, x->frame[s]);
}

static int open_udp(const struct sender *x, enum stream s)
{
	struct sockaddr_storage from;
	unsigned int mark = MARK;
	const char *device = streams[s].device;
	socklen_t n;
	int fd;

	enter(home_of(x->scene, s));
	fd = socket(streams[s].v6 ? AF_INET6 : AF_INET,
		    (streams[s].tcp ? SOCK_STREAM : SOCK_DGRAM) |
			    SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (streams[s].source) {
		n = address(streams[s].source, streams[s].v6, 0, &from);
		(void)bind(fd, (void *)&from, n);
	}
	if (device)
		(void)setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device,
				 (socklen_t)strlen(device));
	if (streams[s].marked)
		(void)setsockopt(fd, SOL_SOCKET, SO_MARK, &mark,
				 sizeof(mark));
	enter(x->scene->node);
	return fd;
}

static void open_stream(struct sender *x, enum stream s)
{
	char to[64];

	if (streams[s].raw) {
		open_raw(x, s);
		return;
	}
	destination(s, to, sizeof(to));
	x->to_len[s] = address(to, streams[s].v6,
			       streams[s].port ? streams[s].port : PORT,
			       &x->to[s]);
	if (!streams[s].tcp)
		x->fd[s] = open_udp(x, s);
}

static bool send_one(struct sender *x, enum stream s)
{
	ssize_t n;

	if (streams[s].tcp) {
		int fd = open_udp(x, s);

		n = connect(fd, (void *)&x->to[s], x->to_len[s]);
		if (n < 0 && errno == EINPROGRESS)
			n = 0;
		(void)close(fd);
		return n == 0;
	}
	if (streams[s].raw)
		n = sendto(x->fd[s], x->frame[s], x->frame_len[s],
			   MSG_DONTWAIT, (void *)&x->to[s], x->to_len[s]);
	else
		n = sendto(x->fd[s], "x", 1, MSG_DONTWAIT, (void *)&x->to[s],
			   x->to_len[s]);
	if (n < 0 && streams[s].raw)
		open_raw(x, s);
	return n >= 0;
}

static void send_all(struct sender *x, uint64_t tick)
{
	enum stream s;

	for (s = 0; s < STREAM_MAX; s++) {
		if (streams[s].tcp && tick % TCP_EVERY)
			continue;
		if (send_one(x, s))
			shared->sent[s]++;
		else
			shared->refused[s]++;
	}
}

static void sender(const struct traffic_scene *scene)
{
	static struct sender x;
	struct timespec next;
	enum stream s;

	x.scene = scene;
	enter(scene->node);
	for (s = 0; s < STREAM_MAX; s++) {
		x.fd[s] = -1;
		open_stream(&x, s);
	}
	(void)clock_gettime(CLOCK_MONOTONIC, &next);
	while (!shared->end) {
		shared->resting = shared->rest;
		if (!shared->resting) {
			send_all(&x, shared->ticks);
			shared->ticks++;
		}
		next.tv_nsec += TICK_NS;
		if (next.tv_nsec >= 1000000000L) {
			next.tv_nsec -= 1000000000L;
			next.tv_sec++;
		}
		(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next,
				      NULL);
	}
}

/* ---- counting ---- */

/* The stream of an IP packet by its destination; STREAM_MAX: none. */
static enum stream stream_of(const unsigned char *ip, size_t size)
{
	static const unsigned char net6[15] = { 0x20, 0x01, 0x0d, 0xb8, 0xff,
						0xff };
	static const unsigned char net4[3] = { 198, 51, 100 };
	unsigned int host;

	if (size >= sizeof(struct iphdr) && ip[0] >> 4 == 4 &&
	    memcmp(ip + 16, net4, sizeof(net4)) == 0)
		host = ip[19];
	else if (size >= sizeof(struct ip6_hdr) && ip[0] >> 4 == 6 &&
		 memcmp(ip + 24, net6, sizeof(net6)) == 0)
		host = ip[39];
	else
		return STREAM_MAX;
	if (host < FIRST_HOST || host >= FIRST_HOST + STREAM_MAX)
		return STREAM_MAX;
	return (enum stream)(host - FIRST_HOST);
}

static void count_one(int fd)
{
	unsigned char frame[2048];
	struct sockaddr_ll from = { 0 };
	socklen_t len = sizeof(from);
	ssize_t n = recvfrom(fd, frame, sizeof(frame), 0, (void *)&from,
			     &len);
	enum stream s;

	if (n < 0 || from.sll_pkttype == PACKET_OUTGOING)
		return;
	s = stream_of(frame, (size_t)n);
	if (s == STREAM_MAX)
		return;
	/* Ethernet is the wire; what has no header came by the tunnel. */
	if (from.sll_hatype == ARPHRD_ETHER)
		shared->seen[s]++;
	else
		shared->through[s]++;
}

static void detector(int fd)
{
	struct tpacket_stats stats;
	socklen_t len = sizeof(stats);
	struct pollfd p = { .fd = fd, .events = POLLIN };

	while (!shared->end) {
		if (poll(&p, 1, 1) > 0)
			count_one(fd);
		else
			shared->idle++;
	}
	if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len) == 0)
		shared->drops += stats.tp_drops;
}

/* On every device of the far side: those to come are seen as well. */
static int open_detector(int far, int back)
{
	int bytes = RING_BYTES, fd;

	enter(far);
	fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ALL));
	enter(back);
	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes,
				    sizeof(bytes)), 0);
	return fd;
}

static pid_t start_child(void)
{
	pid_t pid;

	(void)fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

void traffic_start(const struct traffic_scene *scene)
{
	int fd = open_detector(scene->far, scene->node);

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	detector_pid = start_child();
	if (detector_pid == 0) {
		detector(fd);
		_exit(0);
	}
	sender_pid = start_child();
	if (sender_pid == 0) {
		sender(scene);
		_exit(0);
	}
	(void)close(fd);
}

void traffic_stop(void)
{
	int status = 0;

	shared->end = true;
	assert_int_equal(waitpid(sender_pid, &status, 0), sender_pid);
	assert_int_equal(status, 0);
	assert_int_equal(waitpid(detector_pid, &status, 0), detector_pid);
	assert_int_equal(status, 0);
	/* A detector that lost frames has proven nothing. */
	assert_int_equal(shared->drops, 0);
	(void)munmap(shared, sizeof(*shared));
	shared = NULL;
}

static void wait_beyond(_Atomic uint64_t *counter, uint64_t target)
{
	int i;

	for (i = 0; *counter < target; i++) {
		if (i > DEADLINE_MS)
			fail_msg("the traffic stands still");
		nap();
	}
}

uint64_t traffic_ticks(void)
{
	return shared->ticks;
}

void traffic_pass(unsigned int ticks)
{
	wait_beyond(&shared->ticks, shared->ticks + ticks);
}

void traffic_rest(struct counts *ret_counts)
{
	enum stream s;
	int i;

	shared->rest = true;
	for (i = 0; !shared->resting; i++) {
		if (i > DEADLINE_MS)
			fail_msg("the sender does not rest");
		nap();
	}
	/* Idle twice: once may have been before the last frame. */
	wait_beyond(&shared->idle, shared->idle + 2);
	ret_counts->ticks = shared->ticks;
	for (s = 0; s < STREAM_MAX; s++) {
		ret_counts->sent[s] = shared->sent[s];
		ret_counts->refused[s] = shared->refused[s];
		ret_counts->seen[s] = shared->seen[s];
		ret_counts->through[s] = shared->through[s];
	}
}

void traffic_go(void)
{
	shared->rest = false;
}

void traffic_wait_through(enum stream s)
{
	wait_beyond(&shared->through[s], 1);
}

/*
 * fleetctl STATE VERB ... : what verbs and steps ask of a coordinator, one
 * call at a time, for the tests of the fleet level.
 *
 *   wait N SECONDS       until N nodes are connected and have reported
 *   facts NODE SECONDS   one order; prints the result's text
 *   facts-all            one order to each connected node at once
 *   serial NODE N        N orders begun at once, finished in order
 *   stream NODE BYTES    that many bytes there and back
 *   held NODE            why the node is held
 *   desire NODE 6443     a desired state with every resource off
 *   close NODE N SOURCE [KEY]  generation N: the class "vpn" of one source,
 *                        and the sysctl KEY 1
 *   keep                 secret, value and founding record, there and back
 *
 * Exit 0, or 1 with "error ERRNO object: text" on standard output.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "coordinator/control_client.h"
#include "proto/keys.h"
#include "proto/order.h"
#include "proto/seal.h"
#include "proto/up.h"

static usec in(long seconds)
{
	return clock_boottime() + (usec)seconds * USEC_PER_SEC;
}

static int wait_nodes(struct control *c, size_t want, long seconds,
		      struct fault *f)
{
	usec deadline = in(seconds);
	struct control_nodes nodes;
	size_t n;
	int r;

	for (;;) {
		uint64_t revision;

		r = control_nodes(c, &nodes, f);
		if (r < 0)
			return r;
		n = 0;
		for (size_t i = 0; i < nodes.n; i++)
			n += nodes.v[i].connected && nodes.v[i].report &&
			     nodes.v[i].hello;
		revision = nodes.revision;
		control_nodes_done(&nodes);
		if (n == want)
			return (void)printf("%zu\n", n), 0;
		r = control_wait(c, revision, deadline, f);
		if (r == 0)
			return fault_set(f, -ETIMEDOUT, "nodes", "%zu", n);
		if (r < 0)
			return r;
	}
}

static int one_order(struct control *c, const char *node, long seconds,
		     struct fault *f)
{
	struct order o = { .kind = ORDER_READ_FACTS };
	struct up *u = NULL;
	int r;

	r = control_order(c, node, &o, in(seconds), &u, f);
	if (r < 0)
		return r;
	(void)printf("%d %s %s\n", (int)u->result.code, u->result.text,
		     u->result.facts ? u->result.facts->identity.hostname :
				       "");
	(void)up_free(u);
	return 0;
}

static int order_all(struct control *c, struct fault *f)
{
	struct order o = { .kind = ORDER_READ_FACTS };
	struct control_nodes nodes;
	size_t done = 0;
	uint32_t *tickets;
	int r;

	r = control_nodes(c, &nodes, f);
	if (r < 0)
		return r;
	tickets = calloc(nodes.n + 1, sizeof(*tickets));
	for (size_t i = 0; r == 0 && i < nodes.n; i++)
		if (nodes.v[i].connected)
			r = control_order_begin(c, nodes.v[i].name, &o, in(20),
						&tickets[i], f);
	for (size_t i = 0; r == 0 && i < nodes.n; i++) {
		struct up *u = NULL;

		if (!nodes.v[i].connected)
			continue;
		r = control_order_finish(c, tickets[i], in(20), &u, f);
		if (r == 0 && u->result.code == RESULT_DONE &&
		    strcmp(u->result.facts->identity.hostname,
			   nodes.v[i].name) == 0)
			done++;
		(void)up_free(u);
	}
	(void)printf("%zu\n", done);
	free(tickets);
	control_nodes_done(&nodes);
	return r;
}

static int serial(struct control *c, const char *node, size_t n,
		  struct fault *f)
{
	struct order o = { .kind = ORDER_READ_FACTS };
	uint32_t tickets[1024];
	uint64_t last = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n && i < 1024; i++)
		r = control_order_begin(c, node, &o, in(20), &tickets[i], f);
	for (size_t i = 0; r == 0 && i < n && i < 1024; i++) {
		struct up *u = NULL;

		r = control_order_finish(c, tickets[i], in(20), &u, f);
		if (r == 0 && u->result.sequence <= last)
			r = fault_set(f, -EILSEQ, node, "out of order");
		if (r == 0)
			last = u->result.sequence;
		(void)up_free(u);
	}
	if (r == 0)
		(void)printf("%zu in order\n", n);
	return r;
}

static int dial(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		return -errno;
	return take_fd(&fd);
}

/* The writer is a child, so that neither side can wait for the other. */
static int there_and_back(int fd, size_t size, struct fault *f)
{
	uint8_t buf[65536];
	size_t got = 0;
	ssize_t n;
	pid_t pid = fork();

	if (pid == 0) {
		for (size_t i = 0; i < size;) {
			size_t part = size - i < sizeof(buf) ? size - i :
							       sizeof(buf);

			memset(buf, (int)(i / sizeof(buf) % 251), part);
			n = write(fd, buf, part);
			if (n <= 0)
				_exit(1);
			i += (size_t)n;
		}
		_exit(shutdown(fd, SHUT_WR) < 0);
	}
	while (got < size && (n = read(fd, buf, sizeof(buf))) > 0)
		got += (size_t)n;
	if (got != size)
		return fault_set(f, -EIO, "stream", "%zu of %zu", got, size);
	(void)printf("%zu bytes\n", got);
	return 0;
}

static int stream(struct control *c, const char *node, size_t size,
		  struct fault *f)
{
	_cleanup_free_ char *path = NULL, *again = NULL;
	_cleanup_close_ int fd = -1;
	int r;

	r = control_listen_stream(c, node, STREAM_API_LOCAL, NULL, &path, f);
	if (r == 0)
		r = control_listen_stream(c, node, STREAM_API_LOCAL, NULL,
					  &again, f);
	if (r < 0)
		return r;
	if (strcmp(path, again) != 0)
		return fault_set(f, -EINVAL, path, "not the same again");
	fd = dial(path);
	return fd < 0 ? fault_errno(f, fd, path, "dial") :
			there_and_back(fd, size, f);
}

static int desire(struct control *c, const char *node, uint16_t port,
		  struct fault *f)
{
	struct order o = { .kind = ORDER_SET_DESIRED };
	struct up *u = NULL;
	int r;

	o.desired = desired_new();
	if (!o.desired)
		return -ENOMEM;
	free(o.desired->node);
	o.desired->node = strdup(node);
	o.desired->generation = 1;
	o.desired->cluster.port = port;
	for (int i = 0; i < RESOURCE_MAX; i++)
		o.desired->modes[i] = MODE_OFF;
	(void)ip_addr_parse("127.0.0.1", &o.desired->cluster.node_address);
	r = control_order(c, node, &o, in(10), &u, f);
	(void)desired_free(o.desired);
	if (r < 0)
		return r;
	(void)printf("%d %s\n", (int)u->result.code, u->result.text);
	(void)up_free(u);
	return 0;
}

static int add_class(struct desired *d, const char *source)
{
	struct desired_egress *e = &d->egress;
	struct ip_prefix p;
	int r = ip_prefix_parse(source, &p);

	e->classes = calloc(1, sizeof(*e->classes));
	e->tunnels = calloc(1, sizeof(*e->tunnels));
	if (r < 0 || !e->classes || !e->tunnels)
		return r < 0 ? r : -ENOMEM;
	e->n_classes = e->n_tunnels = 1;
	e->classes[0].name = strdup("vpn");
	e->tunnels[0].name = strdup("wg0");
	e->tunnels[0].table = 51820;
	e->tunnels[0].priority = 18200;
	d->modes[RESOURCE_KILLSWITCH] = MODE_ENFORCE;
	d->modes[RESOURCE_ROUTING] = MODE_ENFORCE;
	return prefix_list_add(&e->classes[0].sources, &p);
}

static int close_class(struct control *c, const char *node,
		       uint64_t generation, const char *source,
		       const char *key, struct fault *f)
{
	struct order o = { .kind = ORDER_SET_DESIRED };
	struct up *u = NULL;
	int i, r;

	o.desired = desired_new();
	if (!o.desired)
		return -ENOMEM;
	free(o.desired->node);
	o.desired->node = strdup(node);
	o.desired->generation = generation;
	for (i = 0; i < RESOURCE_MAX; i++)
		o.desired->modes[i] = MODE_OFF;
	r = add_class(o.desired, source);
	if (r == 0 && key) {
		o.desired->modes[RESOURCE_SYSCTL] = MODE_ENFORCE;
		r = desired_add_sysctl(o.desired, key, "1", false);
	}
	if (r == 0)
		r = control_order(c, node, &o, in(10), &u, f);
	(void)desired_free(o.desired);
	if (r < 0)
		return r;
	(void)printf("%d %s\n", (int)u->result.code, u->result.text);
	(void)up_free(u);
	return 0;
}

static int held(struct control *c, const char *node, struct fault *f)
{
	struct control_nodes nodes;
	const struct control_node *n;
	int r;

	r = control_nodes(c, &nodes, f);
	if (r < 0)
		return r;
	n = control_nodes_find(&nodes, node);
	(void)printf("%s\n", n ? n->held : "no such node");
	control_nodes_done(&nodes);
	return 0;
}

static int keep(struct control *c, struct fault *f)
{
	struct founding_record in_ = { .intent = UINT64_MAX }, out;
	_cleanup_free_ char *value = NULL;
	struct control_info info;
	struct sealed sealed = { 0 };
	char *secret = NULL;
	size_t size = 0;
	int r;

	(void)snprintf(in_.founder, sizeof(in_.founder), "server-1");
	if ((r = control_secret_put(c, "k3s-token", "hush\0hush", 9, f)) < 0 ||
	    (r = control_secret_get(c, "k3s-token", &secret, &size, f)) < 0)
		return r;
	if (size != 9 || memcmp(secret, "hush\0hush", 9) != 0)
		return fault_set(f, -EIO, "secret", "differs");
	control_secret_free(secret, size);
	if ((r = control_value_put(c, "x", "y z", f)) < 0 ||
	    (r = control_value_get(c, "x", &value, f)) < 0 ||
	    (r = control_founding_put(c, &in_, f)) < 0 ||
	    (r = control_founding_get(c, &out, f)) < 0 ||
	    (r = control_info(c, &info, f)) < 0)
		return r;
	if (strcmp(value, "y z") != 0 || out.intent != in_.intent ||
	    strcmp(out.founder, in_.founder) != 0)
		return fault_set(f, -EIO, "values", "differ");
	r = seal_to(info.seal_key, "credential from 00", "admin", 5, &sealed,
		    f);
	if (r == 0)
		r = control_unseal(c, &sealed, "credential from 00", &secret,
				   &size, f);
	if (r == 0 && (size != 5 || memcmp(secret, "admin", 5) != 0))
		r = fault_set(f, -EIO, "unseal", "differs");
	sealed_done(&sealed);
	if (r == 0)
		(void)puts("kept");
	control_secret_free(r == 0 ? secret : NULL, size);
	return r;
}

static int run(struct control *c, int argc, char **argv, struct fault *f)
{
	const char *verb = argv[2];

	if (strcmp(verb, "keep") == 0)
		return keep(c, f);
	if (strcmp(verb, "facts-all") == 0)
		return order_all(c, f);
	if (argc > 3 && strcmp(verb, "held") == 0)
		return held(c, argv[3], f);
	if (argc < 5)
		return -EINVAL;
	if (strcmp(verb, "wait") == 0)
		return wait_nodes(c, (size_t)atol(argv[3]), atol(argv[4]), f);
	if (strcmp(verb, "facts") == 0)
		return one_order(c, argv[3], atol(argv[4]), f);
	if (strcmp(verb, "close") == 0 && argc >= 6)
		return close_class(c, argv[3], (uint64_t)atol(argv[4]),
				   argv[5], argv[6], f);
	if (strcmp(verb, "desire") == 0)
		return desire(c, argv[3], (uint16_t)atol(argv[4]), f);
	if (strcmp(verb, "serial") == 0)
		return serial(c, argv[3], (size_t)atol(argv[4]), f);
	if (strcmp(verb, "stream") == 0)
		return stream(c, argv[3], (size_t)atol(argv[4]), f);
	return -EINVAL;
}

int main(int argc, char **argv)
{
	struct control *c CLEANUP(control_freep) = NULL;
	struct fault f = FAULT_INIT;
	char text[700];
	int r;

	if (argc < 3)
		return 2;
	key_init();
	struct control_options o = { .state = argv[1], .no_spawn = true };

	r = control_open(&o, &c, &f);
	if (r == 0)
		r = run(c, argc, argv, &f);
	if (r < 0)
		(void)printf("error %d %s\n", r,
			     fault_str(&f, text, sizeof(text)));
	return r < 0;
}

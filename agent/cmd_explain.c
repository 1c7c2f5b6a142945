/* What becomes of a packet, told to a person or a program (explain.h). */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/cmd.h"
#include "agent/explain/explain.h"
#include "agent/json.h"
#include "agent/orders.h"
#include "agent/state.h"
#include "common/cleanup.h"
#include "common/parse.h"
#include "proto/keys.h"

#define NOBODY 65534

struct options {
	bool json;
	bool sender;		/* --uid was given */
	const char *state_dir;
	struct packet packet;
};

static int parse_proto(const char *text, uint8_t *ret_proto)
{
	static const struct {
		const char *name;
		uint8_t number;
	} v[] = {
		{ "tcp", IPPROTO_TCP },
		{ "udp", IPPROTO_UDP },
		{ "icmp", IPPROTO_ICMP },
	};
	size_t i;

	for (i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		if (strcmp(text, v[i].name) == 0) {
			*ret_proto = v[i].number;
			return 0;
		}
	return -EINVAL;
}

/* "kernel" sends without a socket, as WireGuard does. */
static int parse_sender(const char *text, struct packet *p)
{
	p->socket = strcmp(text, "kernel") != 0;
	return p->socket ? parse_u32(text, &p->uid) : 0;
}

static int set_option(int c, const char *arg, struct options *o)
{
	struct packet *p = &o->packet;

	switch (c) {
	case 'f':
		return ip_addr_parse(arg, &p->src);
	case 'm':
		return parse_u32(arg, &p->mark);
	case 'i':
		if (!*arg || strlen(arg) >= sizeof(p->in))
			return -EINVAL;
		(void)memcpy(p->in, arg, strlen(arg) + 1);
		return 0;
	case 'p':
		return parse_proto(arg, &p->proto);
	case 'd':
		return parse_port(arg, &p->dport);
	case 's':
		return parse_port(arg, &p->sport);
	case 'u':
		o->sender = true;
		return parse_sender(arg, p);
	case 'S':
		o->state_dir = arg;
		return 0;
	case 'j':
		o->json = true;
		return 0;
	case 'o':
		o->json = strcmp(arg, "json") == 0;
		return o->json || strcmp(arg, "text") == 0 ? 0 : -EINVAL;
	}
	return -EINVAL;
}

static int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "from", required_argument, NULL, 'f' },
		{ "mark", required_argument, NULL, 'm' },
		{ "in", required_argument, NULL, 'i' },
		{ "proto", required_argument, NULL, 'p' },
		{ "port", required_argument, NULL, 'd' },
		{ "sport", required_argument, NULL, 's' },
		{ "uid", required_argument, NULL, 'u' },
		{ "state-dir", required_argument, NULL, 'S' },
		{ "json", no_argument, NULL, 'j' },
		{ NULL, 0, NULL, 0 },
	};
	struct packet *p = &o->packet;
	int c;

	while ((c = getopt_long(argc, argv, "o:", longs, NULL)) != -1)
		if (set_option(c, optarg, o) < 0)
			return -EINVAL;
	if (optind + 1 != argc || ip_addr_parse(argv[optind], &p->dst) < 0 ||
	    (p->src.family && p->src.family != p->dst.family))
		return -EINVAL;
	if ((p->sport || p->dport) && !p->proto)
		p->proto = IPPROTO_UDP;
	if (p->proto == IPPROTO_ICMP) {
		if (p->sport || p->dport)
			return -EINVAL;
		if (p->dst.family == AF_INET6)
			p->proto = IPPROTO_ICMPV6;
	}
	if (!o->sender)
		p->uid = NOBODY;
	return 0;
}

/* The accepted state; none is no failure, the armed record is enough. */
static struct desired *stored(const char *state_dir)
{
	struct node_state state;
	struct desired *d = NULL;
	int r;

	key_init();
	if (access(state_dir, F_OK) < 0 ||
	    state_load(state_dir, clock_boottime(), &state, NULL) < 0)
		return NULL;
	r = orders_stored_desired(&state, &d, NULL);
	state_done(&state);
	return r == 0 ? d : NULL;
}

/* ---- what is printed ---- */

static const char *proto_name(uint8_t proto)
{
	switch (proto) {
	case IPPROTO_TCP:
		return "tcp";
	case IPPROTO_UDP:
		return "udp";
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return "icmp";
	}
	return "any";
}

static void print_packet(const struct packet *p)
{
	char src[IP_TEXT_MAX], dst[IP_TEXT_MAX];

	(void)printf("packet     %s -> %s, ",
		     p->src.family ? ip_addr_format(&p->src, src) : "(none)",
		     ip_addr_format(&p->dst, dst));
	if (p->in[0])
		(void)printf("came in by %s", p->in);
	else if (p->socket)
		(void)printf("sent here by uid %u", p->uid);
	else
		(void)printf("sent here by the kernel");
	if (p->mark)
		(void)printf(", mark 0x%x", p->mark);
	if (p->proto)
		(void)printf(", %s", proto_name(p->proto));
	if (p->sport)
		(void)printf(", from port %u", p->sport);
	if (p->dport)
		(void)printf(", to port %u", p->dport);
	(void)printf("\n");
}

static void print_text(const struct explanation *x, const struct packet *p)
{
	size_t i;

	(void)printf("verdict    %s\n", x->verdict_text);
	for (i = 0; i < x->n_clashes; i++)
		(void)printf("DISAGREE   %s\n", x->clashes[i]);
	print_packet(p);
	if (x->class_name[0])
		(void)printf("class      %s, %s\n", x->class_name,
			     x->class_why);
	else
		(void)printf("class      internet: no class\n");
	if (x->special[0])
		(void)printf("special    %s\n", x->special);
	(void)printf("rule       %s\n", x->rule[0] ? x->rule : "none");
	(void)printf("route      %s\n", x->route);
	(void)printf("kernel     %s\n", x->kernel);
	(void)printf("open way   %s (without our rules)\n", x->open_way);
	for (i = 0; i < x->n_layers; i++)
		(void)printf("%-10s %s\n", x->layers[i].name,
			     x->layers[i].text);
	for (i = 0; i < x->n_notes; i++)
		(void)printf("note       %s\n", x->notes[i]);
}

static void json_packet(struct json *j, const struct packet *p)
{
	char text[IP_TEXT_MAX];

	json_open(j, "packet", '{');
	json_text(j, "from",
		  p->src.family ? ip_addr_format(&p->src, text) : "");
	json_text(j, "to", ip_addr_format(&p->dst, text));
	json_number(j, "mark", p->mark);
	json_text(j, "proto", proto_name(p->proto));
	json_number(j, "sport", p->sport);
	json_number(j, "port", p->dport);
	json_text(j, "in", p->in);
	json_close(j, '}');
}

static void json_layers(struct json *j, const struct explanation *x)
{
	size_t i;

	json_open(j, "layers", '[');
	for (i = 0; i < x->n_layers; i++) {
		json_open(j, NULL, '{');
		json_text(j, "name", x->layers[i].name);
		json_bool(j, "wanted", x->layers[i].wanted);
		json_bool(j, "stands", x->layers[i].stands);
		json_text(j, "text", x->layers[i].text);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void json_lines(struct json *j, const char *key, size_t n,
		       const char (*v)[EXPLAIN_TEXT_MAX])
{
	size_t i;

	json_open(j, key, '[');
	for (i = 0; i < n; i++)
		json_text(j, NULL, v[i]);
	json_close(j, ']');
}

static int print_json(const struct explanation *x, const struct packet *p)
{
	_cleanup_free_ char *text = NULL;
	struct json j;
	size_t size;
	int r;

	json_init(&j);
	json_open(&j, NULL, '{');
	json_text(&j, "verdict", explain_verdict_name(x->verdict));
	json_text(&j, "text", x->verdict_text);
	json_bool(&j, "agree", x->n_clashes == 0);
	json_lines(&j, "disagreements", x->n_clashes, x->clashes);
	json_packet(&j, p);
	json_text(&j, "class", x->class_name);
	json_text(&j, "class_why", x->class_why);
	json_text(&j, "special", x->special);
	json_number(&j, "priority", x->priority);
	json_number(&j, "table", x->table);
	json_text(&j, "rule", x->rule);
	json_text(&j, "route", x->route);
	json_text(&j, "kernel", x->kernel);
	json_text(&j, "open_way", x->open_way);
	json_layers(&j, x);
	json_lines(&j, "notes", x->n_notes, x->notes);
	json_close(&j, '}');
	r = json_done(&j, &text, &size);
	if (r == 0)
		(void)printf("%s\n", text);
	return r;
}

static int exit_code(const struct explanation *x,
		     const struct explain_world *w)
{
	if (x->n_clashes)
		return CMD_FAILED;
	if (x->verdict == EXPLAIN_UNKNOWN || w->unsure ||
	    (!w->killswitch->view && w->policy.d->egress.n_classes))
		return CMD_INCOMPLETE;
	return CMD_OK;
}

int cmd_explain(int argc, char **argv)
{
	struct options o = { .state_dir = CMD_STATE_DIR,
			     .packet.socket = true };
	char text[FAULT_OBJECT_MAX + FAULT_TEXT_MAX + 4];
	struct fault f = FAULT_INIT;
	struct explain_world w;
	struct explanation x;
	struct desired *d;
	int r;

	if (parse_options(argc, argv, &o) < 0)
		return cmd_usage("explain");
	d = stored(o.state_dir);
	r = explain_look(o.state_dir, d, &o.packet, &w, &f);
	(void)desired_free(d);
	if (r < 0) {
		(void)fprintf(stderr, "garboard-agent: %s\n",
			      fault_str(&f, text, sizeof(text)));
		return CMD_INCOMPLETE;
	}
	r = explain_conclude(&w, &o.packet, &x);
	if (r == 0 && !o.json)
		print_text(&x, &o.packet);
	else if (r == 0)
		r = print_json(&x, &o.packet);
	r = r < 0 ? CMD_FAILED : exit_code(&x, &w);
	explain_world_done(&w);
	return r;
}

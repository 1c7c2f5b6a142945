/* The cluster as one node sees it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/build.h"

static void build_servers(struct build *b)
{
	const struct spec *s = b->spec;
	struct desired_cluster *c = &b->d->cluster;
	size_t n = spec_count(s, SPEC_ROLE_SERVER), i;

	if (n > DESIRED_SERVERS_MAX) {
		build_failed(b, -E2BIG);
		return;
	}
	c->servers = calloc(n + 1, sizeof(*c->servers));
	if (!c->servers) {
		build_failed(b, -ENOMEM);
		return;
	}
	for (i = 0; i < s->n_nodes; i++)
		if (s->nodes[i].role.v == SPEC_ROLE_SERVER)
			c->servers[c->n_servers++] = s->nodes[i].address.v;
}

static void say_node(struct build *b)
{
	const struct spec_node *n = b->node;
	char buf[IP_TEXT_MAX];
	size_t i, founder = 0;

	build_say(b, "node", "name", n->name.v, n->name.pos);
	build_say(b, "node", "role",
		  n->role.v == SPEC_ROLE_SERVER ? "server" : "worker",
		  n->role.pos);
	build_say(b, "node", "address", ip_addr_format(&n->address.v, buf),
		  n->address.pos);
	if (spec_founder(b->spec, &founder) == 0)
		build_say_derived(b, "node", "founder",
				  b->spec->nodes[founder].name.v,
				  "the first server (until one is recorded)");
	for (i = 0; i < n->labels.n; i++)
		build_say(b, "label", n->labels.v[i].key.v,
			  n->labels.v[i].value.v, n->labels.v[i].key.pos);
	for (i = 0; i < n->taints.n; i++)
		build_say(b, "taint", n->taints.v[i].v, "", n->taints.v[i].pos);
}

static void say_options(struct build *b)
{
	const struct spec_k3s *k = &b->spec->k3s;
	size_t i, v;

	for (i = 0; i < k->n_config; i++) {
		const struct spec_k3s_option *o = &k->config[i];

		if (b->node->role.v == SPEC_ROLE_WORKER && !o->worker)
			continue;
		for (v = 0; v < o->values.n; v++)
			build_say(b, "k3s.config", o->key.v, o->values.v[v].v,
				  o->values.v[v].pos);
	}
}

static void say_sans(struct build *b)
{
	struct strlist sans = STRLIST_INIT;
	int r = spec_tls_sans(b->spec, &sans);
	size_t i;

	if (r < 0) {
		build_failed(b, r);
		return;
	}
	for (i = 0; i < sans.n; i++)
		build_say_derived(b, "k3s.config", "tls-san", sans.v[i],
				  "controlPlane and the servers");
	strlist_done(&sans);
}

static void say_k3s(struct build *b)
{
	const struct spec_k3s *k = &b->spec->k3s;

	build_say(b, "k3s", "manage", k->manage.v ? "true" : "false",
		  k->manage.pos);
	if (!k->manage.v)
		return;
	if (k->version.v)
		build_say(b, "k3s", "version", k->version.v, k->version.pos);
	build_say(b, "k3s", "source",
		  k->source.v == SPEC_SOURCE_IMAGE ? "image" : "push",
		  k->source.pos);
	say_options(b);
	if (b->node->role.v == SPEC_ROLE_SERVER)
		say_sans(b);
}

void build_cluster(struct build *b)
{
	struct desired_cluster *c = &b->d->cluster;
	const struct spec_control_plane *cp = &b->spec->control_plane;
	char buf[IP_TEXT_MAX];

	if (!b->node)
		return;
	c->endpoint = cp->endpoint.v;
	c->port = (uint16_t)cp->port.v;
	c->node_address = b->node->address.v;
	build_servers(b);
	if (!b->items)
		return;
	say_node(b);
	build_say(b, "cluster", "endpoint",
		  c->endpoint.family ? ip_addr_format(&c->endpoint, buf) :
				       "none", cp->endpoint.pos);
	(void)snprintf(buf, sizeof(buf), "%u", c->port);
	build_say(b, "cluster", "port", buf, cp->port.pos);
	say_k3s(b);
}

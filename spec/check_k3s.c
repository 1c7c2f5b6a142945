/* What runs on the cluster: k3s, kube-vip, Cilium. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/order.h"
#include "spec/checks.h"
#include "spec/cilium.h"
#include "spec/k3s_config.h"
#include "spec/yaml.h"

/* "1.36.4" at the start of `s`; returns what follows, NULL if it is not. */
static const char *three_numbers(const char *s, unsigned long v[3])
{
	unsigned int i;

	for (i = 0; i < 3; i++) {
		size_t n = strspn(s, "0123456789");

		if (n == 0 || n > 6 || (n > 1 && *s == '0'))
			return NULL;
		v[i] = strtoul(s, NULL, 10);
		s += n;
		if (i < 2 && *s++ != '.')
			return NULL;
	}
	return s;
}

CHECK(k3s_version)
{
	const struct spec_str *s = &spec->k3s.version;
	unsigned long v[3];
	const char *rest;

	if (!s->v)
		return;
	rest = *s->v == 'v' ? three_numbers(s->v + 1, v) : NULL;
	if (rest && strncmp(rest, "-rc", 3) == 0)
		rest += 3 + strspn(rest + 3, "0123456789");
	if (rest && strncmp(rest, "+k3s", 4) == 0 && rest[4] &&
	    rest[4 + strspn(rest + 4, "0123456789")] == '\0')
		return;
	spec_report(r, s->pos,
		    "k3s version \"%.80s\" is not an exact release like "
		    "v1.36.4+k3s1",
		    s->v);
}

CHECK(kubevip_version)
{
	const struct spec_str *s = &spec->kube_vip.version;
	unsigned long v[3];
	const char *rest;

	if (!s->v)
		return;
	rest = *s->v == 'v' ? three_numbers(s->v + 1, v) : NULL;
	if (!rest || *rest)
		spec_report(r, s->pos,
			    "kube-vip version \"%.80s\" is not an exact "
			    "release like v1.2.3",
			    s->v);
	else if (v[0] * 1000000 + v[1] * 1000 + v[2] < 1002003)
		spec_report(r, s->pos,
			    "kube-vip %s may stall in its election; v1.2.3 is "
			    "the first that is used here",
			    s->v);
}

CHECK(cilium_version)
{
	const struct spec_str *s = &spec->cilium.version;
	unsigned long v[3];
	const char *rest;

	if (!s->v)
		return;
	rest = three_numbers(s->v, v);
	if (!rest || (*rest && (*rest != '-' ||
				!rest[1 + strspn(rest + 1, "-")])))
		spec_report(r, s->pos,
			    "cilium version \"%.80s\" is not an exact release "
			    "like 1.20.1 (no \"v\")",
			    s->v);
}

/* ---- k3s.config ---- */

CHECK(k3s_owned)
{
	size_t i;

	for (i = 0; i < spec->k3s.n_config; i++) {
		const struct spec_str *s = &spec->k3s.config[i].key;
		const struct k3s_key *key = k3s_config_find(s->v);

		if (key && key->kind == K3S_OWNED)
			spec_report(r, s->pos, "k3s.config.%s is Garboard's: "
			                       "%s",
				    key->name, key->why);
	}
}

CHECK(k3s_unknown)
{
	size_t i;

	for (i = 0; i < spec->k3s.n_config; i++) {
		const struct spec_str *s = &spec->k3s.config[i].key;

		if (!k3s_config_find(s->v))
			spec_report(r, s->pos,
				    "\"%.80s\" is not among the keys of k3s "
				    "that are passed through; k3s itself would "
				    "skip a misspelt key with a warning only",
				    s->v);
	}
}

static bool is_bool(const char *text)
{
	return strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
}

CHECK(k3s_value)
{
	size_t i, k;

	for (i = 0; i < spec->k3s.n_config; i++) {
		const struct spec_k3s_option *o = &spec->k3s.config[i];
		const struct k3s_key *key = k3s_config_find(o->key.v);

		if (!key || key->kind == K3S_OWNED || o->values.n == 0)
			continue;
		if (o->list && key->kind != K3S_LIST && key->kind != K3S_ARGS)
			spec_report(r, o->values.pos,
				    "k3s.config.%s takes one value, not a list",
				    key->name);
		if (key->kind == K3S_BOOL && !is_bool(o->values.v[0].v))
			spec_report(r, o->values.v[0].pos,
				    "k3s.config.%s is true or false, not "
				    "\"%.80s\"",
				    key->name, o->values.v[0].v);
		for (k = 0; key->kind == K3S_ARGS && k < o->values.n; k++)
			if (!strchr(o->values.v[k].v, '='))
				spec_report(r, o->values.v[k].pos,
					    "k3s.config.%s: \"%.80s\" is not "
					    "NAME=VALUE",
					    key->name, o->values.v[k].v);
	}
}

static void one_arg(const struct k3s_key *key, const struct spec_str *arg,
		    struct spec_report *r)
{
	const char *start = arg->v + strspn(arg->v, "-");
	size_t n = strcspn(start, "=");
	char name[64] = "";

	if (n < sizeof(name))
		(void)snprintf(name, sizeof(name), "%.*s", (int)n, start);
	if (k3s_arg_owned(name))
		spec_report(r, arg->pos,
			    "k3s.config.%s: %s follows from the spec or "
			    "undoes it",
			    key->name, name);
	else if (start[n] && !order_config_value_allowed(key->name, arg->v))
		spec_report(r, arg->pos,
			    "k3s.config.%s: nodes do not take \"%.80s\" (no "
			    "paths, and nothing that opens the API)",
			    key->name, arg->v);
}

CHECK(k3s_arg)
{
	size_t i, k;

	for (i = 0; i < spec->k3s.n_config; i++) {
		const struct spec_k3s_option *o = &spec->k3s.config[i];
		const struct k3s_key *key = k3s_config_find(o->key.v);

		for (k = 0; key && key->kind == K3S_ARGS && k < o->values.n;
		     k++)
			one_arg(key, &o->values.v[k], r);
	}
}

CHECK(cluster_dns)
{
	size_t i;

	for (i = 0; i < spec->k3s.n_config; i++) {
		const struct spec_k3s_option *o = &spec->k3s.config[i];
		struct ip_addr a;

		if (strcmp(o->key.v, "cluster-dns") != 0 || o->values.n == 0)
			continue;
		if (ip_addr_parse(o->values.v[0].v, &a) < 0 ||
		    !ip_prefix_contains(&spec->network.service_cidr.v, &a))
			spec_report(r, o->values.v[0].pos,
				    "cluster-dns %.64s is no address in "
				    "network.serviceCidr",
				    o->values.v[0].v);
	}
}

/* ---- B35: keys that nothing would read ---- */

CHECK(unused)
{
	const struct spec_k3s *k = &spec->k3s;

	if (!k->manage.v) {
		const struct spec_pos dead[] = { k->version.pos, k->sha256.pos,
						 k->source.pos, k->config_pos,
						 spec->kube_vip.pos };
		size_t i;

		for (i = 0; i < sizeof(dead) / sizeof(dead[0]); i++)
			if (spec_given(dead[i]))
				spec_report(r, dead[i],
					    "nothing reads this while "
					    "k3s.manage is false; remove it");
	}
	if (spec->cilium.owner.v == SPEC_OWNER_EXTERNAL &&
	    spec->cilium.values)
		spec_report(r, spec->cilium.values->pos,
			    "nothing reads cilium.values while its owner is "
			    "external; remove them");
}

/* ---- cilium.values ---- */

/*
 * The value at `path`, or the one on the way that is no map and would hide
 * it. NULL: nothing there.
 */
static const struct yaml_node *clashes(const struct yaml_node *values,
				       const char *path)
{
	const struct yaml_node *n = values;
	char part[64];

	while (n && *path) {
		size_t len = strcspn(path, ".");

		if (n->kind != YAML_MAP)
			return n;
		(void)snprintf(part, sizeof(part), "%.*s", (int)len, path);
		n = yaml_get(n, part);
		path += len + (path[len] == '.');
	}
	return n;
}

CHECK(cilium_clash)
{
	const struct cilium_own *own;
	size_t n, i;

	own = cilium_owned(&n);
	for (i = 0; i < n; i++) {
		const struct yaml_node *v = clashes(spec->cilium.values,
						    own[i].path);

		if (v && (!own[i].when || own[i].when(spec)))
			spec_report(r, v->pos,
				    "cilium.values.%s is Garboard's: %s",
				    own[i].path, own[i].why);
	}
}

static bool is_true(const struct yaml_node *n)
{
	return n && n->kind == YAML_SCALAR && strcmp(n->text, "true") == 0;
}

static bool is_false(const struct yaml_node *n)
{
	return n && n->kind == YAML_SCALAR && strcmp(n->text, "false") == 0;
}

/* K3S-CONTRACT 7.1: combinations that the chart or the operator refuses. */
CHECK(cilium_conflict)
{
	static const char *const with_classes[] = {
		"ciliumEndpointSlice.enabled", "clustermesh.useAPIServer" };
	const struct yaml_node *v = spec->cilium.values, *n;
	size_t i;

	for (i = 0; i < 2; i++) {
		n = yaml_path(v, with_classes[i]);
		if (cilium_has_classes(spec) && is_true(n))
			spec_report(r, n->pos,
				    "cilium.values.%s does not work with the "
				    "egress gateway that egress.classes needs",
				    with_classes[i]);
	}
	n = yaml_path(v, "l7Proxy");
	if (is_true(yaml_path(v, "gatewayAPI.enabled")) && is_false(n))
		spec_report(r, n->pos,
			    "cilium.values: gatewayAPI needs l7Proxy");
	n = yaml_path(v, "hubble.peerService.clusterDomain");
	for (i = 0; n && n->kind == YAML_SCALAR && i < spec->k3s.n_config; i++)
		if (strcmp(spec->k3s.config[i].key.v, "cluster-domain") == 0 &&
		    spec->k3s.config[i].values.n &&
		    strcmp(spec->k3s.config[i].values.v[0].v, n->text) != 0)
			spec_report(r, n->pos,
				    "the cluster domain is \"%.80s\" here and "
				    "\"%.80s\" in k3s.config.cluster-domain",
				    n->text, spec->k3s.config[i].values.v[0].v);
}

CHECK(cilium_ignored)
{
	static const char *const gone[] = { "externalIPs", "nodePort.enabled",
					    "hostPort" };
	size_t i;

	for (i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
		const struct yaml_node *n = yaml_path(spec->cilium.values,
						      gone[i]);

		if (n)
			spec_report(r, n->pos,
				    "cilium.values.%s is ignored silently by "
				    "this Cilium; kubeProxyReplacement covers "
				    "it",
				    gone[i]);
	}
}

#include "spec/spec.h"

#include <errno.h>
#include <string.h>

size_t spec_count(const struct spec *spec, enum spec_role role)
{
	size_t n = 0, i;

	for (i = 0; i < spec->n_nodes; i++)
		n += spec->nodes[i].role.v == (int)role;
	return n;
}

int spec_founder(const struct spec *spec, size_t *ret_node)
{
	size_t i;

	for (i = 0; i < spec->n_nodes; i++) {
		if (spec->nodes[i].role.v != SPEC_ROLE_SERVER)
			continue;
		*ret_node = i;
		return 0;
	}
	return -ENOENT;
}

int spec_find_node(const struct spec *spec, const char *name, size_t *ret_node)
{
	size_t i;

	for (i = 0; i < spec->n_nodes; i++) {
		const char *other = spec->nodes[i].name.v;

		if (!other || strcmp(other, name) != 0)
			continue;
		*ret_node = i;
		return 0;
	}
	return -ENOENT;
}

struct ip_addr spec_api_address(const struct spec *spec)
{
	size_t founder = 0;

	if (spec->control_plane.mode.v == SPEC_CP_SINGLE &&
	    spec_founder(spec, &founder) == 0)
		return spec->nodes[founder].address.v;
	return spec->control_plane.endpoint.v;
}

size_t spec_tolerance(size_t servers)
{
	return servers ? servers - (servers / 2 + 1) : 0;
}

const char *spec_k3s_sha256(const struct spec *spec, const char *arch)
{
	const struct spec_pairs *p = &spec->k3s.sha256;
	size_t i;

	for (i = 0; i < p->n; i++)
		if (strcmp(p->v[i].key.v, arch) == 0)
			return p->v[i].value.v;
	return NULL;
}

struct spec_require spec_requires(const struct spec *spec, size_t node)
{
	struct spec_require all = spec->baseline.require;
	const struct spec_require *own;

	if (node >= spec->n_nodes)
		return all;
	own = &spec->nodes[node].baseline.require;
	if (own->kernel.v)
		all.kernel = own->kernel;
	if (spec_given(own->clock_synchronised.pos))
		all.clock_synchronised = own->clock_synchronised;
	if (own->memory_tolerance.v)
		all.memory_tolerance = own->memory_tolerance;
	return all;
}

static bool waives(const struct spec_strs *list, const char *resource,
		   const char *key)
{
	size_t n = strlen(resource), i;

	for (i = 0; i < list->n; i++) {
		const char *w = list->v[i].v;

		if (strncmp(w, resource, n) != 0)
			continue;
		if (w[n] == '\0' || (w[n] == '/' && strcmp(w + n + 1, key) == 0))
			return true;
	}
	return false;
}

bool spec_waived(const struct spec *spec, size_t node, enum resource_id resource,
		 const char *key)
{
	const char *name = resource_name(resource);

	if (!name)
		return false;
	if (waives(&spec->baseline.waivers, name, key))
		return true;
	return node < spec->n_nodes &&
	       waives(&spec->nodes[node].baseline.waivers, name, key);
}

static int add_san(struct strlist *list, const char *text)
{
	if (!text || strlist_has(list, text))
		return 0;
	return strlist_add(list, text);
}

static int add_san_addr(struct strlist *list, const struct ip_addr *a)
{
	char buf[IP_TEXT_MAX];

	return a->family ? add_san(list, ip_addr_format(a, buf)) : 0;
}

/* 2001:DB8::1 and 2001:db8:0::1 are one name. */
static int add_extra(struct strlist *list, const char *text)
{
	struct ip_addr a;

	if (ip_addr_parse(text, &a) == 0)
		return add_san_addr(list, &a);
	return add_san(list, text);
}

static int add_sans(const struct spec *spec, struct strlist *list)
{
	const struct spec_strs *extra = &spec->control_plane.extra_sans;
	size_t founder = 0, i;
	int r = add_san_addr(list, &spec->control_plane.endpoint.v);

	if (r == 0 && spec_founder(spec, &founder) == 0)
		r = add_san_addr(list, &spec->nodes[founder].address.v);
	if (r == 0)
		r = add_san(list, "127.0.0.1");
	for (i = 0; r == 0 && i < spec->n_nodes; i++)
		if (spec->nodes[i].role.v == SPEC_ROLE_SERVER)
			r = add_san_addr(list, &spec->nodes[i].address.v);
	for (i = 0; r == 0 && i < extra->n; i++)
		r = add_extra(list, extra->v[i].v);
	return r;
}

int spec_tls_sans(const struct spec *spec, struct strlist *ret_sans)
{
	struct strlist list = STRLIST_INIT;
	int r = add_sans(spec, &list);

	if (r < 0) {
		strlist_done(&list);
		return r;
	}
	*ret_sans = list;
	return 0;
}

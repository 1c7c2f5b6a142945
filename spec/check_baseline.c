/* The baseline of all nodes and the overrides of single ones. */
#include <ctype.h>
#include <fnmatch.h>
#include <string.h>

#include "spec/checks.h"
#include "spec/defaults.h"

/* ---- timezone (A02) ---- */

static bool zone_char(char c, const char *extra)
{
	return isalnum((unsigned char)c) || strchr(extra, c);
}

/* ^[A-Za-z][A-Za-z0-9+_-]*(/[A-Za-z0-9+_.-]+)*$, and no "." or "..". */
static bool zone_pattern(const char *s)
{
	if (!isalpha((unsigned char)*s))
		return false;
	while (*s && *s != '/')
		if (!zone_char(*s++, "+_-"))
			return false;
	while (*s == '/') {
		const char *part = ++s;

		while (*s && *s != '/')
			if (!zone_char(*s++, "+_.-"))
				return false;
		if (s == part || *part == '.')
			return false;
	}
	return *s == '\0';
}

static void one_zone(const struct spec_str *zone, struct spec_report *r)
{
	if (!zone->v)
		return;
	if (!zone_pattern(zone->v))
		spec_report(r, zone->pos,
			    "timezone \"%.80s\" is not the name of a zone; "
			    "Etc/UTC is almost certainly wanted (others: "
			    "timedatectl list-timezones)",
			    zone->v);
	else if (strncmp(zone->v, "posix/", 6) == 0 ||
		 strncmp(zone->v, "right/", 6) == 0)
		spec_report(r, zone->pos,
			    "timezone \"%.80s\" is a second copy of a zone; "
			    "write the name without \"%.6s\"",
			    zone->v, zone->v);
}

CHECK(timezone)
{
	size_t i;

	one_zone(&spec->baseline.timezone, r);
	for (i = 0; i < spec->n_nodes; i++)
		one_zone(&spec->nodes[i].baseline.timezone, r);
}

/* A01, A05: three nodes in two zones was found from snapshot names only. */
CHECK(timezone_differs)
{
	const char *all = spec->baseline.timezone.v ?
				  spec->baseline.timezone.v :
				  SPEC_DEFAULT_TIMEZONE;
	size_t i;

	for (i = 0; i < spec->n_nodes; i++) {
		const struct spec_str *z = &spec->nodes[i].baseline.timezone;

		if (z->v && strcmp(z->v, all) != 0)
			spec_report(r, z->pos,
				    "this node would be in %s and the others "
				    "in %s; logs of one cluster are read side "
				    "by side",
				    z->v, all);
	}
}

/* ---- overrides that say nothing (A05, B36) ---- */

static const struct spec_sysctl *find_sysctl(const struct spec_baseline *b,
					     const char *key)
{
	size_t i;

	for (i = 0; i < b->n_sysctls; i++)
		if (strcmp(b->sysctls[i].key.v, key) == 0)
			return &b->sysctls[i];
	return NULL;
}

static void same_value(const struct spec_baseline *all,
		       const struct spec_baseline *own, struct spec_report *r)
{
	size_t i;

	if (own->timezone.v && all->timezone.v &&
	    strcmp(own->timezone.v, all->timezone.v) == 0)
		spec_report(r, own->timezone.pos,
			    "timezone says what the baseline says");
	if (spec_given(own->storage.pos) && own->storage.v == all->storage.v)
		spec_report(r, own->storage.pos,
			    "storage says what the baseline says");
	if (spec_given(own->swap.pos) && own->swap.v == all->swap.v)
		spec_report(r, own->swap.pos, "swap says what the baseline says");
	for (i = 0; i < RESOURCE_MAX; i++)
		if (spec_given(own->modes[i].pos) &&
		    own->modes[i].v == all->modes[i].v)
			spec_report(r, own->modes[i].pos,
				    "the mode of %s is what the baseline says",
				    resource_name((enum resource_id)i));
	for (i = 0; i < own->n_sysctls; i++) {
		const struct spec_sysctl *s = &own->sysctls[i];
		const struct spec_sysctl *b = find_sysctl(all, s->key.v);

		if (b && s->value.v && b->value.v &&
		    strcmp(s->value.v, b->value.v) == 0 &&
		    s->optional.v == b->optional.v)
			spec_report(r, s->key.pos,
				    "%s is what the baseline says", s->key.v);
	}
}

CHECK(redundant_override)
{
	size_t i;

	for (i = 0; i < spec->n_nodes; i++)
		same_value(&spec->baseline, &spec->nodes[i].baseline, r);
}

/* ---- sysctl ---- */

typedef void (*sysctl_check)(const struct spec *spec,
			     const struct spec_sysctl *s,
			     const struct spec_baseline *b,
			     struct spec_report *r);

static void each_sysctl(const struct spec *spec, struct spec_report *r,
			sysctl_check check)
{
	size_t i, k;

	for (i = 0; i <= spec->n_nodes; i++) {
		const struct spec_baseline *b =
			i ? &spec->nodes[i - 1].baseline : &spec->baseline;

		for (k = 0; k < b->n_sysctls; k++)
			if (b->sysctls[k].value.v)
				check(spec, &b->sysctls[k], b, r);
	}
}

static void slashes(const char *key, char *buf, size_t size)
{
	size_t i;
	char first = key[strcspn(key, "./")];

	for (i = 0; i < size - 1 && key[i]; i++)
		buf[i] = key[i] != '.' && key[i] != '/' ? key[i] :
			 key[i] == first ? '/' : '.';
	buf[i] = '\0';
}

/* The key itself, or a wildcard that stands for it. */
static bool is_key(const struct spec_sysctl *s, const char *key)
{
	char pattern[256], path[64];

	if (!strchr(s->key.v, '*'))
		return defaults_same_sysctl(s->key.v, key);
	slashes(s->key.v, pattern, sizeof(pattern));
	slashes(key, path, sizeof(path));
	return fnmatch(pattern, path, FNM_PATHNAME) == 0;
}

static void duplicate(const struct spec *spec, const struct spec_sysctl *s,
		      const struct spec_baseline *b, struct spec_report *r)
{
	const struct spec_sysctl *other;

	(void)spec;
	for (other = b->sysctls; other < s; other++)
		if (defaults_same_sysctl(s->key.v, other->key.v))
			spec_report(r, s->key.pos,
				    "%s is the key of line %u in another "
				    "notation",
				    s->key.v, other->key.pos.line);
}

CHECK(sysctl_duplicate)
{
	each_sysctl(spec, r, duplicate);
}

static void forward(const struct spec *spec, const struct spec_sysctl *s,
		    const struct spec_baseline *b, struct spec_report *r)
{
	(void)b;
	if (!spec->one_box && strcmp(s->value.v, "0") == 0 &&
	    (is_key(s, "net.ipv4.ip_forward") ||
	     is_key(s, "net.ipv4.conf.all.forwarding")))
		spec_report(r, s->value.pos,
			    "%s 0 would stop the traffic of every "
			    "pod", s->key.v);
}

CHECK(sysctl_forward)
{
	each_sysctl(spec, r, forward);
}

/* A31: a block made by sysctl loses addresses and opens again by itself. */
static void block(const struct spec *spec, const struct spec_sysctl *s,
		  const struct spec_baseline *b, struct spec_report *r)
{
	size_t n = strlen(s->key.v);

	(void)b;
	if (spec->egress.n_classes && n > 13 &&
	    strcmp(s->key.v + n - 12, "disable_ipv6") == 0 &&
	    strcmp(s->value.v, "1") == 0)
		spec_report(r, s->value.pos,
			    "%s is no kill-switch, and none is needed: a class "
			    "is closed in both families",
			    s->key.v);
}

CHECK(sysctl_block)
{
	each_sysctl(spec, r, block);
}

/* K3S-CONTRACT 7.4: the kernel takes the larger of all and the device. */
static void strict_rp(const struct spec *spec, const struct spec_sysctl *s,
		      const struct spec_baseline *b, struct spec_report *r)
{
	(void)b;
	if (spec->one_box && spec->egress.n_classes == 0)
		return;
	if (strcmp(s->value.v, "1") == 0 &&
	    (is_key(s, "net.ipv4.conf.all.rp_filter") ||
	     is_key(s, "net.ipv4.conf.default.rp_filter")))
		spec_report(r, s->value.pos,
			    "%s 1 drops what Cilium and marked packets return "
			    "on another interface; use 0 or 2",
			    s->key.v);
}

CHECK(rp_filter)
{
	each_sysctl(spec, r, strict_rp);
}

static void forward6(const struct spec *spec, const struct spec_sysctl *s,
		     const struct spec_baseline *b, struct spec_report *r)
{
	size_t i;

	(void)spec;
	if (!is_key(s, "net.ipv6.conf.all.forwarding") ||
	    strcmp(s->value.v, "1") != 0)
		return;
	for (i = 0; i < b->n_sysctls; i++) {
		const struct spec_sysctl *o = &b->sysctls[i];
		size_t n = strlen(o->key.v);

		if (n > 9 && strcmp(o->key.v + n - 9, "accept_ra") == 0 &&
		    o->value.v && strcmp(o->value.v, "2") == 0)
			return;
	}
	spec_report(r, s->value.pos,
		    "with %s 1 the kernel ignores router advertisements; a "
		    "node that gets its IPv6 default route by them needs "
		    "accept_ra 2",
		    s->key.v);
}

CHECK(ipv6_forwarding)
{
	each_sysctl(spec, r, forward6);
}

/* K3S-CONTRACT 9.2: a deviation is fatal to the kubelet in that mode. */
static void kernel_default(const struct spec *spec, const struct spec_sysctl *s,
			   const struct spec_baseline *b, struct spec_report *r)
{
	static const char *const keys[][2] = {
		{ "vm.overcommit_memory", "1" }, { "vm.panic_on_oom", "0" },
		{ "kernel.panic", "10" }, { "kernel.panic_on_oops", "1" },
		{ "kernel.keys.root_maxkeys", "1000000" },
		{ "kernel.keys.root_maxbytes", "25000000" },
	};
	bool protect = false;
	size_t i;

	(void)b;
	for (i = 0; i < spec->k3s.n_config; i++)
		if (strcmp(spec->k3s.config[i].key.v,
			   "protect-kernel-defaults") == 0 &&
		    spec->k3s.config[i].values.n &&
		    strcmp(spec->k3s.config[i].values.v[0].v, "true") == 0)
			protect = true;
	for (i = 0; protect && i < sizeof(keys) / sizeof(keys[0]); i++)
		if (is_key(s, keys[i][0]) &&
		    strcmp(s->value.v, keys[i][1]) != 0)
			spec_report(r, s->value.pos,
				    "with protect-kernel-defaults the kubelet "
				    "starts only with %s %s",
				    keys[i][0], keys[i][1]);
}

CHECK(kernel_defaults)
{
	each_sysctl(spec, r, kernel_default);
}

/* ---- waivers ---- */

static int waiver_resource(const char *waiver)
{
	size_t len = strcspn(waiver, "/");
	int i;

	for (i = 0; i < RESOURCE_MAX; i++) {
		const char *name = resource_name((enum resource_id)i);

		if (strlen(name) == len && strncmp(name, waiver, len) == 0)
			return i;
	}
	return -1;
}

CHECK(waiver_unknown)
{
	size_t i, k;

	for (i = 0; i <= spec->n_nodes; i++) {
		const struct spec_strs *w =
			i ? &spec->nodes[i - 1].baseline.waivers :
			    &spec->baseline.waivers;

		for (k = 0; k < w->n; k++)
			if (waiver_resource(w->v[k].v) < 0)
				spec_report(r, w->v[k].pos,
					    "\"%.80s\" names no resource "
					    "(killswitch, routing, modules, "
					    "sysctl, timezone, iscsid, swap, "
					    "mounts)",
					    w->v[k].v);
	}
}

/* A waiver that no observed item needs would hide the next one (B35). */
CHECK(waiver_unused)
{
	size_t i, k, n;

	for (i = 0; i <= spec->n_nodes; i++) {
		const struct spec_strs *w =
			i ? &spec->nodes[i - 1].baseline.waivers :
			    &spec->baseline.waivers;

		for (k = 0; k < w->n; k++) {
			int res = waiver_resource(w->v[k].v);
			bool observed =
				res < 0 ||
				spec->baseline.modes[res].v == MODE_OBSERVE;

			for (n = 0; !observed && n < spec->n_nodes; n++)
				observed = spec->nodes[n].baseline.modes[res].v ==
					   MODE_OBSERVE;
			if (!observed)
				spec_report(r, w->v[k].pos,
					    "the waiver \"%.80s\" is for a "
					    "resource in observe, and %s is "
					    "not in observe on any node",
					    w->v[k].v, resource_name(
						    (enum resource_id)res));
		}
	}
}

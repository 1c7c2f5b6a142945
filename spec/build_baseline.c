/* Baseline: default, then the spec's, then the node's own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/build.h"
#include "spec/defaults.h"

static const struct spec_baseline *own(const struct build *b)
{
	return b->node ? &b->node->baseline : NULL;
}

static void set_text(struct build *b, char **slot, const char *text)
{
	char *copy = strdup(text);

	if (!copy) {
		build_failed(b, -ENOMEM);
		return;
	}
	free(*slot);
	*slot = copy;
}

static void build_timezone(struct build *b)
{
	struct spec_str zone = b->spec->baseline.timezone;

	if (own(b) && own(b)->timezone.v)
		zone = own(b)->timezone;
	if (!zone.v)
		zone.v = SPEC_DEFAULT_TIMEZONE;
	set_text(b, &b->d->timezone, zone.v);
	build_say(b, "baseline", "timezone", zone.v, zone.pos);
}

static void build_modes(struct build *b)
{
	size_t i;

	for (i = 0; i < RESOURCE_MAX; i++) {
		struct spec_enum m = b->spec->baseline.modes[i];

		if (own(b) && spec_given(own(b)->modes[i].pos))
			m = own(b)->modes[i];
		b->d->modes[i] = (enum mode)m.v;
		build_say(b, "mode", resource_name((enum resource_id)i),
			  mode_name((enum mode)m.v), m.pos);
	}
}

static struct spec_enum storage(const struct build *b)
{
	if (own(b) && spec_given(own(b)->storage.pos))
		return own(b)->storage;
	return b->spec->baseline.storage;
}

/* ---- modules: names as the kernel shows them, with '_' ---- */

/* True when the name is new; `ret_name` has room for it. */
static bool add_module(struct build *b, const char *name, char ret_name[64])
{
	size_t i;
	int r;

	(void)snprintf(ret_name, 64, "%s", name);
	for (i = 0; ret_name[i]; i++)
		if (ret_name[i] == '-')
			ret_name[i] = '_';
	if (b->err || strlist_has(&b->d->modules, ret_name))
		return false;
	r = b->d->modules.n >= DESIRED_MODULES_MAX ?
		    -E2BIG :
		    strlist_add(&b->d->modules, ret_name);
	if (r < 0)
		build_failed(b, r);
	return r == 0;
}

static void add_modules(struct build *b, const struct spec_strs *list)
{
	char name[64];
	size_t i;

	for (i = 0; i < list->n; i++)
		if (add_module(b, list->v[i].v, name))
			build_say(b, "module", name, "loaded", list->v[i].pos);
}

static void tunnel_modules(struct build *b)
{
	const struct spec_egress *e = &b->spec->egress;
	char name[64];
	size_t i, k;

	for (i = 0; i < e->n_tunnels; i++) {
		const struct spec_tunnel *t = &e->tunnels[i];
		bool holds = false;

		for (k = 0; k < e->n_classes; k++)
			if (e->classes[k].tunnel.v &&
			    strcmp(e->classes[k].tunnel.v, t->name.v) == 0 &&
			    build_is_gateway(b, &e->classes[k]))
				holds = true;
		if (holds && add_module(b, t->kind.v == TUNNEL_WIREGUARD ?
						   "wireguard" : "tun", name))
			build_say_derived(b, "module", name, "loaded",
					  "egress.tunnels.%s", t->name.v);
	}
}

static void build_modules(struct build *b)
{
	char name[64];
	size_t i;

	for (i = 0; defaults_modules[i]; i++)
		if (add_module(b, defaults_modules[i], name))
			build_say(b, "module", name, "loaded", BUILD_DEFAULT);
	for (i = 0; storage(b).v == SPEC_STORAGE_LONGHORN &&
		    defaults_longhorn_modules[i]; i++)
		if (add_module(b, defaults_longhorn_modules[i], name))
			build_say_derived(b, "module", name, "loaded",
					  "storage: longhorn (%s:%u)",
					  b->spec->file, storage(b).pos.line);
	tunnel_modules(b);
	add_modules(b, &b->spec->baseline.modules);
	if (own(b))
		add_modules(b, &own(b)->modules);
}

/* ---- sysctls: one key, the last one wins ---- */

static char *one_blank(const char *value)
{
	char *out = strdup(value), *w = out;
	const char *r = value;

	if (!out)
		return NULL;
	while (*r) {
		if (*r == ' ' || *r == '\t') {
			*w++ = ' ';
			r += strspn(r, " \t");
		} else {
			*w++ = *r++;
		}
	}
	*w = '\0';
	return out;
}

static void put_sysctl(struct build *b, struct spec_pos *origins,
		       const struct spec_sysctl *s)
{
	const char *key = s->key.v;
	struct desired *d = b->d;
	char *text = one_blank(s->exclude.v ? "" : s->value.v);
	size_t i;
	int r = text ? 0 : -ENOMEM;

	for (i = 0; i < d->n_sysctls; i++)
		if (defaults_same_sysctl(d->sysctls[i].key, key))
			break;
	if (r == 0 && i == d->n_sysctls)
		r = desired_add_sysctl(d, key, text, false);
	else if (r == 0)
		set_text(b, &d->sysctls[i].value, text);
	free(text);
	if (r < 0) {
		build_failed(b, r);
		return;
	}
	d->sysctls[i].optional = s->optional.v;
	d->sysctls[i].exclude = s->exclude.v;
	origins[i] = s->key.pos;
}

static void put_sysctls(struct build *b, struct spec_pos *origins,
			const struct spec_baseline *from)
{
	size_t i;

	for (i = 0; i < from->n_sysctls && !b->err; i++)
		put_sysctl(b, origins, &from->sysctls[i]);
}

static void build_sysctls(struct build *b)
{
	struct spec_pos origins[DESIRED_SYSCTLS_MAX] = { 0 };
	const struct default_sysctl *def;
	size_t i;

	for (def = defaults_sysctls; def->key && !b->err; def++) {
		const struct spec_sysctl s = {
			.key = { .pos = BUILD_DEFAULT, .v = def->key },
			.value = { .v = def->value },
		};

		put_sysctl(b, origins, &s);
	}
	put_sysctls(b, origins, &b->spec->baseline);
	if (own(b))
		put_sysctls(b, origins, own(b));
	for (i = 0; i < b->d->n_sysctls; i++) {
		const struct desired_sysctl *s = &b->d->sysctls[i];
		char value[256];

		(void)snprintf(value, sizeof(value), "%s%s",
			       s->exclude ? "out of all wildcards" : s->value,
			       s->optional ? " (optional)" : "");
		build_say(b, "sysctl", s->key, value, origins[i]);
	}
}

/* ---- what gates ask, without a resource of its own ---- */

static void say_waivers(struct build *b, const struct spec_strs *list)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		build_say(b, "waiver", list->v[i].v, "may be in observe",
			  list->v[i].pos);
}

static void say_require(struct build *b)
{
	size_t node = b->node ? (size_t)(b->node - b->spec->nodes) : SIZE_MAX;
	struct spec_require req = spec_requires(b->spec, node);

	build_say(b, "require", "kernel", req.kernel.v ? req.kernel.v : "any",
		  req.kernel.pos);
	build_say(b, "require", "clockSynchronised",
		  req.clock_synchronised.v ? "true" : "false",
		  req.clock_synchronised.pos);
	build_say(b, "require", "memoryTolerance",
		  req.memory_tolerance.v ? req.memory_tolerance.v : "any",
		  req.memory_tolerance.pos);
}

/* An agent that does not know the word must refuse, not leave it on. */
static void build_swap(struct build *b)
{
	struct spec_enum s = b->spec->baseline.swap;
	int r;

	if (own(b) && spec_given(own(b)->swap.pos))
		s = own(b)->swap;
	b->d->swap_off = s.v == SPEC_SWAP_DISABLED;
	build_say(b, "baseline", "swap",
		  b->d->swap_off ? "disabled" : "ignore", s.pos);
	if (!b->d->swap_off || b->err)
		return;
	r = strlist_add(&b->d->required_features, "swap");
	if (r < 0)
		build_failed(b, r);
}

static void add_mounts(struct build *b, const struct spec_baseline *from)
{
	size_t i;
	int r = 0;

	for (i = 0; i < from->n_mounts && r == 0 && !b->err; i++) {
		const struct spec_mount *m = &from->mounts[i];
		bool format = m->format.v &&
			      strcmp(m->format.v, "if-blank") == 0;
		char text[400];

		r = desired_add_mount(b->d, m->device.v, m->path.v, m->fs.v,
				      format);
		(void)snprintf(text, sizeof(text), "%s of %s%s", m->fs.v,
			       m->device.v, format ? ", made if it is blank" :
						     "");
		build_say(b, "mount", m->path.v, text, m->pos);
	}
	if (r < 0)
		build_failed(b, r);
}

static void build_mounts(struct build *b)
{
	int r;

	add_mounts(b, &b->spec->baseline);
	if (own(b))
		add_mounts(b, own(b));
	if (b->d->n_mounts == 0 || b->err)
		return;
	r = strlist_add(&b->d->required_features, "mounts");
	if (r < 0)
		build_failed(b, r);
}

void build_baseline(struct build *b)
{
	struct spec_enum s = storage(b);

	build_timezone(b);
	build_modes(b);
	build_modules(b);
	build_sysctls(b);
	b->d->iscsid = s.v == SPEC_STORAGE_LONGHORN;
	build_say(b, "baseline", "storage",
		  b->d->iscsid ? "longhorn" : "none", s.pos);
	build_say_derived(b, "baseline", "iscsid",
			  b->d->iscsid ? "usable" : "not needed", "storage");
	build_swap(b);
	build_mounts(b);
	say_require(b);
	say_waivers(b, &b->spec->baseline.waivers);
	if (own(b))
		say_waivers(b, &own(b)->waivers);
}

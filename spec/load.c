#include "spec/spec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "spec/arena.h"
#include "spec/field.h"
#include "spec/placeholder.h"
#include "spec/rules.h"
#include "spec/yaml.h"

DEFINE_CLEANUP(loader, struct loader, loader_free)
DEFINE_CLEANUP(spec, struct spec, spec_free)

struct spec *spec_free(struct spec *spec)
{
	struct spec_arena *arena = spec ? spec->arena : NULL;

	/* The spec itself lives in its arena. */
	(void)spec_arena_free(arena);
	return NULL;
}

static struct spec *spec_new(const char *name)
{
	struct spec_arena *arena = spec_arena_new();
	struct spec *spec;

	if (!arena)
		return NULL;
	spec = spec_arena_alloc(arena, 1, sizeof(*spec));
	if (!spec) {
		(void)spec_arena_free(arena);
		return NULL;
	}
	spec->arena = arena;
	spec->file = spec_arena_text(arena, name, strlen(name));
	spec->control_plane.port.v = SPEC_DEFAULT_API_PORT;
	spec->k3s.manage.v = true;
	spec->cilium.chart.v = "repo";
	spec->rollout.parallel.v = 1;
	spec->rollout.workers_parallel.v = 1;
	(void)ip_prefix_parse("10.42.0.0/16", &spec->network.pod_cidr.v);
	(void)ip_prefix_parse("10.43.0.0/16", &spec->network.service_cidr.v);
	return spec->file ? spec : spec_free(spec);
}

/* B28 to B31, B37: every scalar of the file, keys included, once. */
static void refuse_undecided(struct spec_problems *problems,
			     const struct yaml_node *n, const char *key,
			     bool may_be_empty)
{
	size_t i;

	if (n->kind == YAML_LIST) {
		for (i = 0; i < n->n; i++)
			refuse_undecided(problems, n->items[i], key,
					 may_be_empty);
		return;
	}
	if (n->kind == YAML_MAP) {
		for (i = 0; i < n->n; i++) {
			const struct yaml_pair *p = &n->pairs[i];

			if (spec_is_placeholder(p->key))
				spec_problem_add(problems, SPEC_ERROR, p->pos,
						 "placeholder",
						 "the key \"%.80s\" is a "
						 "placeholder",
						 p->key);
			/* An empty label or chart value is a real value. */
			refuse_undecided(problems, p->value, p->key,
					 may_be_empty ||
					 strcmp(p->key, "labels") == 0 ||
					 strcmp(p->key, "values") == 0);
		}
		return;
	}
	if (may_be_empty && !n->plain && !*n->text)
		return;
	if (spec_is_placeholder(n->text))
		spec_problem_add(problems, SPEC_ERROR, n->pos, "placeholder",
				 strcmp(key, "timezone") == 0 ?
				 "%s \"%.80s\" is undecided; empty does not "
				 "mean \"leave it alone\": Etc/UTC is almost "
				 "certainly wanted (timedatectl "
				 "list-timezones)" :
				 "%s: \"%.80s\" is a placeholder, not a value",
				 key, n->text);
	else if (spec_is_template(n->text))
		spec_problem_add(problems, SPEC_ERROR, n->pos, "template",
				 "%s: \"%.80s\" was to be filled in by another "
				 "tool",
				 key, n->text);
}

/* Another version of the file makes every other finding meaningless. */
static int check_version(const struct yaml_node *root,
			 struct spec_problems *problems)
{
	const struct yaml_node *v = yaml_get(root, "apiVersion");

	if (!v || v->kind != YAML_SCALAR || spec_is_placeholder(v->text) ||
	    strcmp(v->text, SPEC_API_VERSION) == 0)
		return 0;
	spec_problem_add(problems, SPEC_ERROR, v->pos, "api-version",
			 "apiVersion \"%.80s\" is not " SPEC_API_VERSION
			 "; `garboard spec migrate` brings an older file up, "
			 "and a newer file needs a newer garboard",
			 v->text);
	return -EINVAL;
}

static int read_fields(struct spec *spec, struct spec_problems *problems)
{
	CLEANUP(cleanup_loader) struct loader *l =
		loader_new(spec->arena, problems);

	if (!l)
		return -ENOMEM;
	refuse_undecided(problems, spec->root, "the spec", false);
	field_map(l, spec->root, spec->one_box ? &keys_one_box : &keys_spec,
		  spec);
	return loader_no_memory(l) ? -ENOMEM : 0;
}

static int load(struct spec *spec, const char *text, size_t size,
		unsigned int flags, struct spec_problems *problems)
{
	struct yaml_node *root = NULL;
	int r = yaml_read(spec->arena, text, size, problems, &root);

	if (r == -ENOMEM || !root)
		return r;
	spec->root = root;
	spec->one_box = (flags & SPEC_ONE_BOX) && !yaml_get(root, "cluster") &&
			!yaml_get(root, "nodes");
	if (check_version(root, problems) < 0)
		return -EINVAL;
	r = read_fields(spec, problems);
	if (r < 0)
		return r;
	if (root->kind == YAML_MAP)
		spec_rules_run(spec, problems);
	return problems->errors ? -EINVAL : 0;
}

int spec_load_text(const char *name, const char *text, size_t size,
		   unsigned int flags, struct spec_problems *problems,
		   struct spec **ret_spec, struct fault *f)
{
	CLEANUP(cleanup_spec) struct spec *spec = spec_new(name);
	int r;

	if (!spec)
		return fault_errno(f, -ENOMEM, name, "cannot read the spec");
	spec->source = spec_arena_text(spec->arena, text, size);
	spec->source_size = size;
	r = spec->source ? load(spec, text, size, flags, problems) : -ENOMEM;
	spec_problems_sort(problems);
	if (r == -ENOMEM)
		return fault_errno(f, r, name, "cannot read the spec");
	if (r < 0)
		return fault_set(f, r, name, "%zu error%s in the spec",
				 problems->errors,
				 problems->errors == 1 ? "" : "s");
	*ret_spec = take_ptr(spec);
	return 0;
}

int spec_load(const char *path, unsigned int flags,
	      struct spec_problems *problems, struct spec **ret_spec,
	      struct fault *f)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	int r = file_read(path, YAML_SIZE_MAX, &text, &size, f);

	if (r == -E2BIG) {
		spec_problem_add(problems, SPEC_ERROR, (struct spec_pos){ 1, 1 },
				 "yaml-limit", "larger than 1 MiB");
		return -EINVAL;
	}
	if (r < 0)
		return fault_errno(f, r, path, "cannot read the spec");
	return spec_load_text(path, text, size, flags, problems, ret_spec, f);
}

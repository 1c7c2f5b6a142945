#include "spec/derive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "spec/build.h"

DEFINE_CLEANUP(desired, struct desired, desired_free)

static void build_all(struct build *b)
{
	if (b->node && b->node->name.v) {
		free(b->d->node);
		b->d->node = strdup(b->node->name.v);
		if (!b->d->node)
			build_failed(b, -ENOMEM);
	}
	build_cluster(b);
	build_baseline(b);
	build_egress(b);
}

static int build_run(const struct spec *spec, size_t node,
		     struct spec_items *items, struct desired **ret_desired,
		     struct fault *f)
{
	CLEANUP(cleanup_desired) struct desired *d = desired_new();
	struct build b = { .spec = spec, .d = d, .items = items };

	if (!d)
		return fault_errno(f, -ENOMEM, spec->file, "cannot derive");
	if (!spec->one_box) {
		if (node >= spec->n_nodes)
			return fault_set(f, -ENOENT, spec->file,
					 "there is no node %zu", node);
		b.node = &spec->nodes[node];
	}
	build_all(&b);
	if (b.err == -E2BIG)
		return fault_set(f, b.err, b.d->node,
				 "more than one node can take (modules, "
				 "sysctls, prefixes or servers)");
	if (b.err)
		return fault_errno(f, b.err, b.d->node, "cannot derive");
	*ret_desired = take_ptr(d);
	return 0;
}

int spec_derive_node(const struct spec *spec, size_t node,
		     struct desired **ret_desired, struct fault *f)
{
	return build_run(spec, node, NULL, ret_desired, f);
}

int spec_explain_node(const struct spec *spec, size_t node,
		      struct spec_items *ret_items, struct fault *f)
{
	CLEANUP(cleanup_desired) struct desired *d = NULL;
	struct spec_items items = SPEC_ITEMS_INIT;
	int r = build_run(spec, node, &items, &d, f);

	if (r < 0) {
		spec_items_done(&items);
		return r;
	}
	*ret_items = items;
	return 0;
}

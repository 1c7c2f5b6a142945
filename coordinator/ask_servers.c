#include "coordinator/ask_servers.h"

#include <errno.h>
#include <stdlib.h>

#include "spec/spec.h"

/* `list` has room for every node of the spec. */
static int write_orders(const struct spec *spec, enum order_kind kind,
			ask_fill_fn fill, const void *what, struct ask *list,
			size_t *n)
{
	size_t i;
	int r;

	for (i = 0; i < spec->n_nodes; i++) {
		struct ask *a = &list[*n];

		if (spec->nodes[i].role.v != SPEC_ROLE_SERVER)
			continue;
		a->order = order_new(kind);
		if (!a->order)
			return -ENOMEM;
		a->node = spec->nodes[i].name.v;
		(*n)++;
		r = fill ? fill(a->order, what) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

int ask_servers(const struct step_env *env, enum order_kind kind,
		ask_fill_fn fill, const void *what, struct ask **ret_list,
		size_t *ret_n, struct fault *f)
{
	struct ask *list = calloc(env->spec->n_nodes + 1, sizeof(*list));
	size_t n = 0;
	int r;

	if (!list)
		return -ENOMEM;
	r = write_orders(env->spec, kind, fill, what, list, &n);
	if (r == 0)
		r = ask_all(env->control, list, n, env->times->order, f);
	if (r < 0) {
		ask_done(list, n);
		free(list);
		return r;
	}
	*ret_list = list;
	*ret_n = n;
	return 0;
}

int tell_servers(const struct step_env *env, enum order_kind kind,
		 ask_fill_fn fill, const void *what, struct fault *f)
{
	struct ask *list = NULL;
	size_t n = 0;
	int r = ask_servers(env, kind, fill, what, &list, &n, f);

	if (r < 0)
		return r;
	ask_done(list, n);
	free(list);
	return 0;
}

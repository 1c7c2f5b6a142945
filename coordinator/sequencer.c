#include "coordinator/sequencer.h"

#include <errno.h>
#include <string.h>

#include "coordinator/progress.h"

/* One look at a stage: what it sees, and what it would change. */
static int look(const struct step *s, const struct step_env *env,
		void **ret_seen, struct change_list *changes, struct fault *f)
{
	void *seen = NULL;
	int r = s->observe(env, &seen, f);

	if (r < 0)
		return r;
	r = s->plan(env->spec, seen, changes, f);
	if (r < 0) {
		s->seen_free(seen);
		return r;
	}
	*ret_seen = seen;
	return 0;
}

static void show(const struct step_env *env, const struct change_list *changes)
{
	size_t i;

	for (i = 0; i < changes->n; i++) {
		const struct change *c = &changes->v[i];

		if (c->have[0])
			progress_fact(env->progress, NULL, "- %s: %s", c->key,
				      c->have);
		if (c->want[0])
			progress_fact(env->progress, NULL, "+ %s: %s", c->key,
				      c->want);
	}
}

/* What only the real run can tell, stage by stage (A14). */
static void show_unverified(const struct step *s, const struct step_env *env)
{
	if (s->unverified)
		progress_fact(env->progress, NULL, "not verified: %s",
			      s->unverified);
}

/* Applied changes must have worked: the stage is asked once more. */
static int confirm(const struct step *s, const struct step_env *env,
		   struct fault *f)
{
	struct change_list left = CHANGE_LIST_INIT;
	void *seen = NULL;
	int r = look(s, env, &seen, &left, f);

	if (r == 0 && left.n > 0)
		r = fault_set(f, -EREMOTEIO, left.v[0].key,
			      "was changed, but still reads \"%s\" instead "
			      "of \"%s\"", left.v[0].have, left.v[0].want);
	if (seen)
		s->seen_free(seen);
	change_list_done(&left);
	return r;
}

static int run_stage(const struct step *s, const struct step_env *env,
		     const struct sequence_options *options,
		     struct sequence_result *result, struct fault *f)
{
	struct change_list changes = CHANGE_LIST_INIT;
	void *seen = NULL;
	int r = look(s, env, &seen, &changes, f);

	if (r == 0 && changes.n > 0)
		show(env, &changes);
	if (r == 0 && changes.n > 0 && options->approve)
		r = options->approve(options->userdata, s->name, &changes, f);
	if (r == 0 && changes.n > 0) {
		result->changes += changes.n;
		if (options->check) {
			result->outcome = SEQUENCE_WOULD_CHANGE;
			progress_stage_end(env->progress, "would change");
		} else {
			r = s->apply(env, seen, &changes, f);
			if (r == 0)
				r = confirm(s, env, f);
			if (r == 0) {
				result->outcome = SEQUENCE_CHANGED;
				progress_stage_end(env->progress, "done");
			}
		}
	} else if (r == 0) {
		progress_stage_end(env->progress, "holds");
	}
	if (options->check && r == 0)
		show_unverified(s, env);
	if (seen)
		s->seen_free(seen);
	change_list_done(&changes);
	return r;
}

static bool known(const struct step *const *registry, size_t n,
		  const char *name)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (registry[i] && strcmp(registry[i]->name, name) == 0)
			return true;
	return false;
}

int sequence_run(const struct step *const *registry, size_t n,
		 const struct step_env *env,
		 const struct sequence_options *options,
		 struct sequence_result *ret_result, struct fault *f)
{
	struct sequence_result result = { .outcome = SEQUENCE_HOLDS };
	size_t i;
	int r = 0;

	*ret_result = result;
	if (options->only && !known(registry, n, options->only))
		return fault_set(f, -ENOENT, options->only,
				 "is no stage of the bring-up");
	for (i = 0; i < n; i++) {
		const struct step *s = registry[i];

		if (!s ||
		    (options->only && strcmp(s->name, options->only) != 0))
			continue;
		if (result.outcome == SEQUENCE_WOULD_CHANGE) {
			if (!result.unseen)
				result.unseen = s->name;
			show_unverified(s, env);
			continue;
		}
		result.stages++;
		progress_stage(env->progress, (unsigned int)i + 1,
			       (unsigned int)n, s->name);
		r = run_stage(s, env, options, &result, f);
		if (r < 0) {
			result.outcome = SEQUENCE_FAILED;
			result.failed = s->name;
			progress_stage_end(env->progress, r == -EINTR ?
					   "interrupted" : "FAILED");
			break;
		}
	}
	*ret_result = result;
	return r;
}

#include "coordinator/plan_digest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/parse.h"
#include "proto/keys.h"

struct plan_digest {
	char *text;
	size_t size;
	FILE *out;
};

static void field(struct plan_digest *d, const char *text, size_t size)
{
	(void)fprintf(d->out, "%zu:", size);
	(void)fwrite(text, 1, size, d->out);
}

static void text(struct plan_digest *d, const char *t)
{
	if (t)
		field(d, t, strlen(t));
	else
		(void)fputc('-', d->out);
}

struct plan_digest *plan_digest_new(const char *cluster_id, const char *spec,
				    size_t spec_size, const char *limit,
				    const char *only)
{
	struct plan_digest *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->out = open_memstream(&d->text, &d->size);
	if (!d->out)
		return plan_digest_free(d);
	text(d, "garboard plan 1");
	text(d, cluster_id);
	field(d, spec, spec_size);
	text(d, limit);
	text(d, only);
	return d;
}

struct plan_digest *plan_digest_free(struct plan_digest *d)
{
	if (!d)
		return NULL;
	if (d->out)
		(void)fclose(d->out);
	free(d->text);
	free(d);
	return NULL;
}

void plan_digest_add(struct plan_digest *d, const char *stage,
		     const struct change_list *changes)
{
	size_t i;

	text(d, stage);
	for (i = 0; i < changes->n; i++) {
		text(d, change_op_name(changes->v[i].op));
		text(d, changes->v[i].key);
		text(d, changes->v[i].have);
		text(d, changes->v[i].want);
	}
}

int plan_digest_get(struct plan_digest *d, char ret_hex[PLAN_DIGEST_SIZE])
{
	uint8_t sum[KEY_SHA256_SIZE];
	int r;

	if (fflush(d->out) != 0 || ferror(d->out))
		return -ENOMEM;
	r = key_sha256(d->text, d->size, sum);
	if (r < 0)
		return r;
	format_hex(sum, sizeof(sum), ret_hex);
	return 0;
}

int plan_digest_check(struct plan_digest *d, const char *approved,
		      struct fault *f)
{
	char now[PLAN_DIGEST_SIZE];
	int r = plan_digest_get(d, now);

	if (r < 0 || strcmp(now, approved) == 0)
		return r;
	return fault_set(f, -EPERM, "plan",
			 "is now %s: the spec, the cluster or the options are "
			 "not those of the plan given. Nothing was changed; "
			 "read `garboard plan` again", now);
}

#include "agent/lockdown_keep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/lockdown_file.h"
#include "agent/trial.h"
#include "common/cleanup.h"
#include "common/file.h"

static const struct desired_egress nothing;

/* A copy of `a` without what the record says was disarmed. */
static int without_disarmed(const struct armed *a, const struct armed *record,
			    struct armed *ret)
{
	struct armed view = { .found = a->found, .d = a->d,
			      .disarmed = record->disarmed };

	return armed_merge(&nothing, &view, ret);
}

static int same(const struct armed *a, const struct armed *b, bool *ret_same)
{
	_cleanup_free_ char *x = NULL, *y = NULL;
	int r = armed_format(a, &x);

	if (r == 0)
		r = armed_format(b, &y);
	if (r == 0)
		*ret_same = strcmp(x, y) == 0;
	return r;
}

/* What was before the trial, if there is one; else it is confirmed. */
static int put_current(const char *state_dir, const struct armed *record,
		       struct armed *next, struct lockdown_file *file)
{
	_cleanup_free_ char *text = NULL;
	struct armed before = ARMED_INIT;
	int r = trial_before(state_dir, &text);

	if (r == 0)
		r = armed_parse(text, &before, NULL);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {	/* no trial, or none that can be read */
		file->policy[LOCKDOWN_CONFIRMED] = *next;
		*next = ARMED_INIT;
		return 0;
	}
	r = without_disarmed(&before, record,
			     &file->policy[LOCKDOWN_CONFIRMED]);
	armed_done(&before);
	if (r < 0)
		return r;
	file->policy[LOCKDOWN_TRIAL] = *next;
	*next = ARMED_INIT;
	return 0;
}

/* The confirmed one that is replaced, else the previous one of before. */
static int put_previous(const struct lockdown_file *have,
			const struct armed *record,
			struct lockdown_file *file)
{
	static const enum lockdown_part parts[] = { LOCKDOWN_CONFIRMED,
						    LOCKDOWN_PREVIOUS };
	struct armed old = ARMED_INIT;
	bool equal = true;
	size_t i;
	int r = 0;

	for (i = 0; i < 2 && r == 0 && equal; i++) {
		if (!have->policy[parts[i]].d)
			continue;
		armed_done(&old);
		r = without_disarmed(&have->policy[parts[i]], record, &old);
		if (r == 0)
			r = same(&old, &file->policy[LOCKDOWN_CONFIRMED],
				 &equal);
	}
	if (r == 0 && !equal && old.d->egress.n_classes) {
		file->policy[LOCKDOWN_PREVIOUS] = old;
		return 0;
	}
	armed_done(&old);
	return r;
}

/* What the file holds now, from the copy that is whole. */
static int load_have(const char *state_dir, struct lockdown_file *have,
		     bool *ret_whole)
{
	char path[LOCKDOWN_PATH_MAX];
	struct fault f = FAULT_INIT;
	int i, r;

	*ret_whole = true;
	for (i = 0; i < 2; i++) {
		r = lockdown_file_load(lockdown_file_path(state_dir, i == 1,
							  path), have, &f);
		if (r == 0)
			return 0;
		if (r == -ENOMEM)
			return r;
		if (r == 1)
			lockdown_file_done(have);
		*ret_whole = *ret_whole && r == -ENOENT;
	}
	return r == -ENOENT ? r : -EBADMSG;
}

static bool holds(const char *state_dir, bool twin, const char *text)
{
	_cleanup_free_ char *have = NULL;
	char path[LOCKDOWN_PATH_MAX];
	size_t size;

	return file_read(lockdown_file_path(state_dir, twin, path),
			 LOCKDOWN_FILE_SIZE_MAX, &have, &size, NULL) == 0 &&
	       size == strlen(text) && memcmp(have, text, size) == 0;
}

static int save_changed(const char *state_dir,
			const struct lockdown_file *file, struct fault *f)
{
	_cleanup_free_ char *text = NULL;
	int r = lockdown_file_format(file, &text);

	if (r < 0)
		return r;
	if (holds(state_dir, false, text) && holds(state_dir, true, text))
		return 0;
	r = lockdown_file_save(state_dir, file, f);
	return r < 0 ? r : 1;
}

static bool closes_anything(const struct lockdown_file *file)
{
	size_t i;

	for (i = 0; i < LOCKDOWN_POLICIES; i++)
		if (file->policy[i].d && file->policy[i].d->egress.n_classes)
			return true;
	return false;
}

static int make_and_save(const char *state_dir, const struct desired *d,
			 const struct armed *record,
			 struct lockdown_file *file, struct fault *f)
{
	bool enforced = d && d->modes[RESOURCE_KILLSWITCH] == MODE_ENFORCE;
	struct lockdown_file have = { 0 };
	struct armed next = ARMED_INIT;
	bool none;
	int r, found;

	r = armed_merge(enforced ? &d->egress : &nothing, record, &next);
	if (r == 0)
		r = put_current(state_dir, record, &next, file);
	armed_done(&next);
	if (r < 0)
		return r;
	found = load_have(state_dir, &have, &none);
	if (found == -ENOMEM)
		return found;
	if (found == 0)
		r = put_previous(&have, record, file);
	lockdown_file_done(&have);
	file->has_addresses = routing_record_load(state_dir, &file->addresses,
						  NULL) == 0 &&
			      file->addresses.n > 0;
	if (r < 0 || (found == -ENOENT && none && !closes_anything(file)))
		return r;
	return save_changed(state_dir, file, f);
}

int lockdown_keep(const char *state_dir, const struct desired *d,
		  struct fault *f)
{
	struct lockdown_file file = { 0 };
	struct armed record = ARMED_INIT;
	int r = armed_load(state_dir, &record, f);

	if (r < 0)
		return r;
	r = make_and_save(state_dir, d, &record, &file, f);
	lockdown_file_done(&file);
	armed_done(&record);
	return r < 0 ? fault_errno(f, r, "lockdown", "not kept") : r;
}

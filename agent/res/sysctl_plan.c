#include "agent/res/sysctl_plan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/put.h"

#define EXCLUDED "out of all wildcards"

struct plan {
	const struct desired *want;
	const struct sysctl_seen *seen;
	struct item_list *items;
	struct change_list *changes;
};

/* One wanted key, or one that is ours and no longer wanted. */
struct subject {
	const char *key;	/* of the live item */
	char persisted[SYSCTL_KEY_MAX + sizeof(SYSCTL_PERSISTED)];
	char path[SYSCTL_KEY_MAX];
	const char *value;	/* NULL: no longer wanted */
	bool optional;
};

struct sysctl_seen_key *sysctl_seen_find(const struct sysctl_seen *seen,
					 const char *path)
{
	size_t i;

	for (i = 0; i < seen->n; i++)
		if (strcmp(seen->v[i].path, path) == 0)
			return &seen->v[i];
	return NULL;
}

void sysctl_seen_free(void *p)
{
	struct sysctl_seen *seen = p;
	size_t i;

	if (!seen)
		return;
	for (i = 0; i < seen->n; i++) {
		free(seen->v[i].path);
		free(seen->v[i].value);
		free(seen->v[i].refused_value);
		free(seen->v[i].refused_note);
		free(seen->v[i].before);
		free(seen->v[i].set);
	}
	free(seen->v);
	sysctl_lines_done(&seen->lines);
	free(seen);
}

bool sysctl_refuses_value(int refused)
{
	return refused && refused != -EPERM && refused != -EACCES &&
	       refused != -EROFS;
}

const char *sysctl_key_module(const char *path)
{
	static const struct {
		const char *prefix, *module;
	} t[] = {
		{ "net/bridge/", "br_netfilter" },
		{ "net/netfilter/nf_conntrack_", "nf_conntrack" },
		{ "net/nf_conntrack_max", "nf_conntrack" },
		{ "net/ipv4/vs/", "ip_vs" },
	};
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		if (strncmp(path, t[i].prefix, strlen(t[i].prefix)) == 0)
			return t[i].module;
	return NULL;
}

static bool module_equal(const char *a, const char *b)
{
	for (; *a && *b; a++, b++)
		if ((*a == '-' ? '_' : *a) != (*b == '-' ? '_' : *b))
			return false;
	return *a == *b;
}

static bool wants_module(const struct desired *want, const char *module)
{
	size_t i;

	for (i = 0; i < want->modules.n; i++)
		if (module_equal(want->modules.v[i], module))
			return true;
	return false;
}

static int item(struct plan *p, const struct subject *s, bool live,
		enum item_state state, const char *have, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));

static int item(struct plan *p, const struct subject *s, bool live,
		enum item_state state, const char *have, const char *fmt, ...)
{
	char reason[CHANGE_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	return item_list_add(p->items, live ? s->key : s->persisted, state,
			     have, s->value ? s->value : "", reason);
}

/* Without a reason: there is none to give. */
static int plain(struct plan *p, const struct subject *s, bool live,
		 enum item_state state, const char *have)
{
	return item_list_add(p->items, live ? s->key : s->persisted, state,
			     have, s->value ? s->value : "", "");
}

static int plan_missing(struct plan *p, const struct subject *s,
			const struct sysctl_seen_key *k)
{
	const char *module = sysctl_key_module(s->path);

	if (sysctl_key_splits_link(s->path))
		return item(p, s, true, ITEM_BLOCKED, "",
			    "no such key (ENOENT): write a dot in the name of "
			    "a link as a slash, net.ipv4.conf.eth0/100.KEY, or "
			    "all with slashes, net/ipv4/conf/eth0.100/KEY");
	if (k->no_link)
		return item(p, s, true, s->optional ? ITEM_IN_SYNC :
						      ITEM_PENDING, "",
			    "there is no such network link now; it is set "
			    "when the link comes");
	if (module && wants_module(p->want, module))
		return item(p, s, true, ITEM_PENDING, "",
			    "the key comes with module %s, which is not "
			    "loaded yet", module);
	if (s->optional)
		return item(p, s, true, ITEM_IN_SYNC, "",
			    "optional, and not known to this kernel");
	if (module)
		return item(p, s, true, ITEM_BLOCKED, "",
			    "no such key (ENOENT): it comes with module %s; "
			    "add it to baseline.modules", module);
	return item(p, s, true, ITEM_BLOCKED, "",
		    "no such key on this kernel (ENOENT): correct its name, "
		    "load the module that brings it, or mark it optional");
}

static int plan_live(struct plan *p, const struct subject *s,
		     const struct sysctl_seen_key *k)
{
	int r;

	if (k->err == -ENOENT)
		return plan_missing(p, s, k);
	if (k->err < 0)
		return item(p, s, true, ITEM_UNOBSERVABLE, "",
			    "cannot be read: %s", strerror(-k->err));
	if (sysctl_value_equal(k->value, s->value))
		return plain(p, s, true, ITEM_IN_SYNC, k->value);
	if (k->read_only)
		return item(p, s, true, ITEM_BLOCKED, k->value,
			    "the kernel offers this key read-only; take it "
			    "out of the spec");
	if (k->refused && sysctl_value_equal(k->refused_value, s->value))
		return item(p, s, true, ITEM_BLOCKED, k->value, "%s",
			    k->refused_note);
	/* Until it has ended it stays planned, and nothing is settled. */
	if (k->asked)
		r = item(p, s, true, ITEM_PENDING, k->value,
			 "garboard-sysctl@.service is at it");
	else
		r = plain(p, s, true, ITEM_DRIFTED, k->value);
	if (r < 0)
		return r;
	return change_list_add(p->changes, CHANGE_SET, s->key, k->value,
			       s->value);
}

static bool is_refused(const struct subject *s, const struct sysctl_seen_key *k)
{
	return sysctl_refuses_value(k->refused) &&
	       sysctl_value_equal(k->refused_value, s->value);
}

/* Another line wins at boot. `key` is the subject, or one key of a wildcard. */
static int plan_overridden(struct plan *p, const struct subject *s,
			   const char *key, const struct sysctl_line *l)
{
	if (!l->value)
		return item(p, s, false, ITEM_BLOCKED, "",
			    "%s:%u takes %s out of all wildcards; exclude it "
			    "in the spec, or remove that line", l->file,
			    l->line, key);
	if (!sysctl_is_glob(s->path))
		return item(p, s, false, ITEM_BLOCKED, l->value,
			    "%s:%u sets %s after our file and wins at the "
			    "next boot; remove that line", l->file, l->line,
			    l->value);
	return item(p, s, false, ITEM_BLOCKED, l->value,
		    "%s:%u sets %s to %s and wins at the next boot; remove "
		    "that line", l->file, l->line, key, l->value);
}

/* As sysctl_lines_override(), over all keys of the wildcard. */
static const struct sysctl_line *
glob_override(const struct plan *p, const struct subject *s, size_t index,
	      const char **ret_key)
{
	size_t i;

	for (i = 0; i < p->seen->n; i++) {
		const struct sysctl_seen_key *k = &p->seen->v[i];
		const struct sysctl_line *l;

		if (k->glob != index)
			continue;
		l = sysctl_lines_boot(&p->seen->lines, k->path);
		if (!l || (l->value && sysctl_value_equal(l->value, s->value)))
			continue;
		*ret_key = k->path;
		return l;
	}
	return NULL;
}

static int plan_persisted(struct plan *p, const struct subject *s,
			  size_t glob, bool refused)
{
	const struct sysctl_line *own, *later;
	const char *have, *key = s->path;
	int r;

	own = sysctl_lines_own(&p->seen->lines, s->path);
	have = own ? own->value : "";
	if (refused && own) {
		r = change_list_add(p->changes, CHANGE_REMOVE, s->persisted,
				    have, "");
		if (r < 0)
			return r;
	}
	/* A refused value would fail systemd-sysctl.service at each boot. */
	if (refused)
		return item(p, s, false, ITEM_BLOCKED, have,
			    "not kept for the next boot: the kernel refuses "
			    "this value");
	if (!own || !sysctl_value_equal(own->value, s->value)) {
		r = change_list_add(p->changes, own ? CHANGE_SET : CHANGE_ADD,
				    s->persisted, have, s->value);
		if (r < 0)
			return r;
		return plain(p, s, false, own ? ITEM_DRIFTED : ITEM_ABSENT,
			     have);
	}
	if (glob == SYSCTL_NOT_WANTED)
		later = sysctl_lines_override(&p->seen->lines, s->path,
					      s->value);
	else
		later = glob_override(p, s, glob, &key);
	if (later)
		return plan_overridden(p, s, key, later);
	if (p->seen->files_err)
		return item(p, s, false, ITEM_UNOBSERVABLE, have,
			    "cannot tell whether another file wins: %s",
			    p->seen->files_note);
	return plain(p, s, false, ITEM_IN_SYNC, have);
}

static int subject_init(struct subject *s, const char *key, const char *path,
			const char *value, bool optional)
{
	size_t n = strlen(key);

	s->key = key;
	s->value = value;
	s->optional = optional;
	(void)put_text(s->path, s->path + sizeof(s->path), path);
	if (n + sizeof(SYSCTL_PERSISTED) > sizeof(s->persisted))
		return -ENAMETOOLONG;
	(void)memcpy(s->persisted, key, n);
	(void)memcpy(s->persisted + n, SYSCTL_PERSISTED,
		     sizeof(SYSCTL_PERSISTED));
	return 0;
}

static int plan_exclude(struct plan *p, const struct subject *s)
{
	bool own = sysctl_lines_own_exclude(&p->seen->lines, s->path);
	int r;

	r = item_list_add(p->items, s->persisted,
			  own ? ITEM_IN_SYNC : ITEM_ABSENT,
			  own ? EXCLUDED : "", EXCLUDED, "");
	if (r < 0 || own)
		return r;
	return change_list_add(p->changes, CHANGE_ADD, s->persisted, "",
			       EXCLUDED);
}

/* One key of a wildcard: told only when it is not right. */
static int plan_glob_key(struct plan *p, const struct subject *s,
			 const struct sysctl_seen_key *k, bool *ret_right)
{
	struct subject one;
	int r;

	*ret_right = k->err == 0 && sysctl_value_equal(k->value, s->value);
	/* Gone since it was listed: there is nothing to be right. */
	if (*ret_right || k->err == -ENOENT)
		return 0;
	r = subject_init(&one, k->path, k->path, s->value, s->optional);
	return r < 0 ? r : plan_live(p, &one, k);
}

static int plan_glob(struct plan *p, const struct subject *s, size_t index)
{
	static const struct sysctl_seen_key nothing = { .err = -ENOENT };
	enum item_state worst = ITEM_IN_SYNC;
	size_t i, n = 0, n_right = 0;
	bool right, refused = false;
	char have[64];
	int r = 0;

	for (i = 0; i < p->seen->n && r == 0; i++) {
		const struct sysctl_seen_key *k = &p->seen->v[i];

		if (k->glob != index)
			continue;
		r = plan_glob_key(p, s, k, &right);
		n++;
		n_right += right;
		refused |= is_refused(s, k);
		if (r == 0 && !right && p->items->n > 0 &&
		    p->items->v[p->items->n - 1].state > worst)
			worst = p->items->v[p->items->n - 1].state;
	}
	if (r < 0)
		return r;
	if (n == 0) {
		r = plan_missing(p, s, &nothing);
	} else {
		(void)snprintf(have, sizeof(have), "%zu of %zu keys", n_right,
			       n);
		r = plain(p, s, true, worst, have);
	}
	return r < 0 ? r : plan_persisted(p, s, index, refused);
}

static int plan_bad_key(struct plan *p, const struct desired_sysctl *d,
			const char *why)
{
	return item_list_add(p->items, d->key, ITEM_BLOCKED, "", d->value,
			     why);
}

static int plan_wanted(struct plan *p, size_t i)
{
	static const struct sysctl_seen_key nothing = {
		.err = -EIO, .glob = SYSCTL_NOT_WANTED,
	};
	const struct desired_sysctl *d = &p->want->sysctls[i];
	const struct sysctl_seen_key *k;
	_cleanup_free_ char *value = NULL;
	char path[SYSCTL_KEY_MAX];
	struct subject s;
	int r;

	if (sysctl_key_path(d->key, path, sizeof(path)) < 0)
		return plan_bad_key(p, d, "not a key of sysctl.d(5), such as "
				    "net.ipv4.ip_forward");
	if (strlen(d->value) > SYSCTL_VALUE_MAX ||
	    strpbrk(d->value, "\n\r"))
		return plan_bad_key(p, d, "the value is too long or has more "
				    "than one line");
	if (sysctl_want_key(p->want, i, path) != SYSCTL_NOT_WANTED)
		return plan_bad_key(p, d, "is written twice in the spec, in "
				    "two spellings; remove one");
	value = strdup(d->value);
	if (!value)
		return -ENOMEM;
	sysctl_fold(value);
	r = subject_init(&s, d->key, path, value, d->optional);
	if (r < 0)
		return plan_bad_key(p, d, "the key is too long");
	if (d->exclude)
		return plan_exclude(p, &s);
	if (sysctl_is_glob(path))
		return plan_glob(p, &s, i);
	k = sysctl_seen_find(p->seen, path);
	if (!k)
		k = &nothing;
	r = plan_live(p, &s, k);
	return r < 0 ? r : plan_persisted(p, &s, SYSCTL_NOT_WANTED,
					  is_refused(&s, k));
}

/* Our record of a key that left the spec (SY-06). */
static int plan_restore(struct plan *p, const struct sysctl_seen_key *k)
{
	struct subject s;
	int r;

	r = subject_init(&s, k->path, k->path, NULL, false);
	if (r < 0)
		return r;
	if (k->err == 0 && strcmp(k->value, k->before) != 0 &&
	    sysctl_value_equal(k->value, k->set) && !k->refused) {
		r = item(p, &s, true, ITEM_DRIFTED, k->value,
			 "no longer in the spec; goes back to %s, the value "
			 "before us", k->before);
		return r < 0 ? r : change_list_add(p->changes, CHANGE_SET,
						   s.key, k->value, k->before);
	}
	/* Already back, changed by others since, or gone: only forget it. */
	r = item(p, &s, true, ITEM_PENDING, k->value,
		 "no longer in the spec; left as it is%s",
		 k->refused ? ", reboot to reset it" : "");
	return r < 0 ? r : change_list_add(p->changes, CHANGE_REMOVE, s.key,
					   k->value, "");
}

/* Lines of our own file that nobody wants any more. */
static int plan_leftover(struct plan *p, const struct sysctl_line *l)
{
	struct subject s;
	int r;

	r = subject_init(&s, l->path, l->path, NULL, false);
	if (r < 0)
		return r;
	if (change_list_find(p->changes, s.persisted))
		return 0;
	r = item(p, &s, false, ITEM_DRIFTED, l->value ? l->value : "",
		 "no longer in the spec");
	return r < 0 ? r : change_list_add(p->changes, CHANGE_REMOVE,
					   s.persisted, l->value, "");
}

int sysctl_plan(const struct desired *want, const void *seen_,
		struct item_list *items, struct change_list *changes,
		struct fault *f)
{
	const struct sysctl_seen *seen = seen_;
	struct plan p = { want, seen, items, changes };
	size_t i;
	int r = 0;

	for (i = 0; i < want->n_sysctls && r >= 0; i++)
		r = plan_wanted(&p, i);
	for (i = 0; i < seen->n && r >= 0; i++)
		if (seen->v[i].before && !sysctl_wants(want, seen->v[i].path))
			r = plan_restore(&p, &seen->v[i]);
	for (i = 0; i < seen->lines.n && r >= 0; i++) {
		const struct sysctl_line *l = &seen->lines.v[i];

		if (strcmp(l->file, SYSCTL_OWN_FILE) == 0 &&
		    sysctl_want_key(want, want->n_sysctls, l->path) ==
			    SYSCTL_NOT_WANTED)
			r = plan_leftover(&p, l);
	}
	return r < 0 ? fault_errno(f, r, "sysctl", "cannot be planned") : 0;
}

int sysctl_render(const struct desired *want, const struct strlist *without,
		  char **ret_text, size_t *ret_size)
{
	_cleanup_fclose_ FILE *out = NULL;
	_cleanup_free_ char *text = NULL;
	char path[SYSCTL_KEY_MAX];
	size_t size = 0, i;

	out = open_memstream(&text, &size);
	if (!out)
		return -errno;
	(void)fputs("# Written by garboard-agent from the cluster's spec; "
		    "changes here are undone.\n", out);
	for (i = 0; i < want->n_sysctls; i++) {
		const struct desired_sysctl *d = &want->sysctls[i];
		_cleanup_free_ char *value = strdup(d->value);

		if (!value)
			return -ENOMEM;
		if (sysctl_key_path(d->key, path, sizeof(path)) < 0 ||
		    strlen(value) > SYSCTL_VALUE_MAX ||
		    strpbrk(value, "\n\r") || strlist_has(without, path) ||
		    sysctl_want_key(want, i, path) != SYSCTL_NOT_WANTED)
			continue;
		if (d->exclude) {
			(void)fprintf(out, "-%s\n", path);
			continue;
		}
		sysctl_fold(value);
		/* "-": an absent optional key must not fail the boot. */
		(void)fprintf(out, "%s%s = %s\n", d->optional ? "-" : "",
			      path, value);
	}
	if (fclose(take_ptr(out)) != 0)
		return -ENOMEM;
	*ret_text = take_ptr(text);
	*ret_size = size;
	return 0;
}

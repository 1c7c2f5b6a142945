#include "agent/res/modules.h"

#include <errno.h>
#include <limits.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "agent/bus/systemd1.h"
#include "agent/confdirs.h"
#include "agent/kmod_options.h"
#include "agent/res/modules_plan.h"
#include "agent/rootpath.h"
#include "agent/stamps.h"
#include "agent/wake.h"
#include "common/cleanup.h"
#include "common/file.h"

/* A load that failed is tried again after this long. */
#define FAILURE_USEC (300 * USEC_PER_SEC)

/* Our attempt at one module; its address is the userdata of the job. */
struct load {
	struct modules_state *owner;
	char name[KMOD_NAME_MAX];
	struct systemd1_job *job;
	bool ended;		/* the job is over: is the module there? */
	char *failed;
	usec failed_at;
	struct load *next;
};

/* Index files are large: each name is looked up once per modules.dep. */
struct lookup {
	char name[KMOD_NAME_MAX], real[KMOD_NAME_MAX];
	enum kmod_index where;
	struct lookup *next;
};

struct modules_state {
	const struct resource_host *host;
	struct load *loads;
	struct lookup *lookups;
	struct timespec index_time;
	ino_t index_inode;
	struct stamps stamps;	/* of the files that `denials` came from */
	struct kmod_denials denials;
	struct kmod_options options;	/* of the same files */
	char release[sizeof(((struct modules_seen *)0)->release)];
	struct wake *wake;
	struct bus_listener *listener;
	resource_look_again look_again;
	void *userdata;
};

static int modules_open(const struct resource_host *host, void **ret_state,
			struct fault *f)
{
	struct modules_state *st = calloc(1, sizeof(*st));

	if (!st)
		return fault_set(f, -ENOMEM, "modules", "out of memory");
	st->host = host;
	*ret_state = st;
	return 0;
}

static void drop_lookups(struct modules_state *st)
{
	struct lookup *l;

	while ((l = st->lookups)) {
		st->lookups = l->next;
		free(l);
	}
}

static void *modules_free(void *state)
{
	struct modules_state *st = state;
	struct load *l;

	if (!st)
		return NULL;
	st->wake = wake_free(st->wake);
	st->listener = bus_unlisten(st->listener);
	while ((l = st->loads)) {
		st->loads = l->next;
		systemd1_cancel(l->job);
		free(l->failed);
		free(l);
	}
	drop_lookups(st);
	stamps_done(&st->stamps);
	kmod_denials_done(&st->denials);
	kmod_options_done(&st->options);
	free(st);
	return NULL;
}

static struct load *load_find(struct modules_state *st, const char *name)
{
	struct load *l;

	for (l = st->loads; l; l = l->next)
		if (kmod_name_equal(l->name, name))
			return l;
	return NULL;
}

static void load_drop(struct modules_state *st, struct load *load)
{
	struct load **at;

	for (at = &st->loads; *at != load; at = &(*at)->next)
		continue;
	*at = load->next;
	systemd1_cancel(load->job);
	free(load->failed);
	free(load);
}

/* Another modules.dep (depmod, a kernel package): look everything up anew. */
static void check_index_age(struct modules_state *st, const char *release)
{
	char path[PATH_MAX];
	struct stat sb = { 0 };

	if (rootpath(st->host->root, path, "/lib/modules/%s/modules.dep",
		     release) == 0)
		(void)stat(path, &sb);
	if (sb.st_ino == st->index_inode &&
	    sb.st_mtim.tv_sec == st->index_time.tv_sec &&
	    sb.st_mtim.tv_nsec == st->index_time.tv_nsec)
		return;
	drop_lookups(st);
	st->index_inode = sb.st_ino;
	st->index_time = sb.st_mtim;
}

static int look_up(struct modules_state *st, const char *release,
		   struct module_seen *m, struct fault *f)
{
	struct lookup *l;
	int r;

	for (l = st->lookups; l; l = l->next)
		if (strcmp(l->name, m->name) == 0)
			break;
	if (!l) {
		l = calloc(1, sizeof(*l));
		if (!l)
			return -ENOMEM;
		(void)snprintf(l->name, sizeof(l->name), "%s", m->name);
		r = kmod_index_find(st->host->root, release, m->name,
				      &l->where, l->real, f);
		if (r < 0) {
			free(l);
			return r;
		}
		l->next = st->lookups;
		st->lookups = l;
	}
	m->where = l->where;
	memcpy(m->real, l->real, sizeof(m->real));
	return 0;
}

/* Takes in how our own attempt at it ended. */
static int see_load(struct modules_state *st, struct module_seen *m)
{
	struct load *l = load_find(st, m->name);

	if (!l)
		return 0;
	if (m->live != KMOD_NOT_LOADED ||
	    (l->failed && clock_boottime() - l->failed_at > FAILURE_USEC)) {
		if (!l->job)
			load_drop(st, l);
		return 0;
	}
	if (l->ended && !l->failed) {
		l->failed_at = clock_boottime();
		if (asprintf(&l->failed, "modprobe ended, but the module is "
			     "not loaded; see \"modprobe -v %s\" and the "
			     "kernel log", l->name) < 0) {
			l->failed = NULL;
			return -ENOMEM;
		}
	}
	m->loading = l->job != NULL;
	if (l->failed && !(m->failed = strdup(l->failed)))
		return -ENOMEM;
	return 0;
}

static int see_absent(struct modules_state *st, struct modules_seen *seen,
		      struct module_seen *m, struct fault *f)
{
	int r;

	r = look_up(st, seen->release, m, f);
	if (r < 0)
		return r;
	if (*m->real)
		m->live = kmod_live(st->host->root, seen->sysfs, m->real);
	return 0;
}

static int see_module(struct modules_state *st, struct modules_seen *seen,
		      struct module_seen *m, struct fault *f)
{
	char text[CHANGE_TEXT_MAX];
	const char *cause;
	int r = 0;

	m->live = kmod_live(st->host->root, seen->sysfs, m->name);
	if (m->live == KMOD_NOT_LOADED)
		r = see_absent(st, seen, m, f);
	if (r < 0)
		return r;
	/* Also when it is loaded: the next boot would not load it (MO-02). */
	cause = kmod_denials_find(&st->denials, *m->real ? m->real : m->name);
	if (cause && !(m->denied = strdup(cause)))
		return -ENOMEM;
	if (m->live == KMOD_LOADED &&
	    kmod_options_drift(st->host->root, &st->options,
			       *m->real ? m->real : m->name, text,
			       sizeof(text)) &&
	    !(m->drift = strdup(text)))
		return -ENOMEM;
	return see_load(st, m);
}

/* modprobe.d changes by the month, the command line by the boot. */
static int see_files(struct modules_state *st, struct fault *f)
{
	int r;

	if (stamps_fresh(&st->stamps))
		return 0;
	stamps_done(&st->stamps);
	kmod_denials_done(&st->denials);
	kmod_options_done(&st->options);
	r = confdirs_note(st->host->root, "modprobe.d", &st->stamps, NULL);
	if (r == 0)
		stamps_end(&st->stamps);
	r = kmod_denials_read(st->host->root, &st->denials, f);
	if (r == 0)
		r = kmod_options_read(st->host->root, &st->options, f);
	/* Files hold aliases, too. */
	drop_lookups(st);
	if (r < 0)
		stamps_done(&st->stamps);
	return r;
}

static int see_all(struct modules_state *st, const struct desired *want,
		   struct modules_seen *seen, struct fault *f)
{
	size_t i;
	int r;

	seen->v = calloc(want->modules.n + 1, sizeof(*seen->v));
	if (!seen->v)
		return -ENOMEM;
	r = see_files(st, f);
	for (i = 0; i < want->modules.n && r == 0; i++) {
		struct module_seen *m = &seen->v[seen->n];

		if (!kmod_name_is_valid(want->modules.v[i]))
			continue;
		m->name = strdup(want->modules.v[i]);
		if (!m->name)
			return -ENOMEM;
		seen->n++;
		r = see_module(st, seen, m, f);
	}
	return r;
}

static int own_line(void *userdata, const char *file, unsigned int number,
		    char *line)
{
	size_t n;

	(void)file;
	(void)number;
	line += strspn(line, " \t");
	n = strcspn(line, " \t\r");
	line[n] = '\0';
	if (!*line || *line == '#' || *line == ';')
		return 0;
	return strlist_add(userdata, line);
}

static int own_read(const char *root, struct strlist *ret_names,
		    struct fault *f)
{
	_cleanup_free_ char *data = NULL;
	struct strlist names = STRLIST_INIT;
	char path[PATH_MAX];
	size_t size;
	int r;

	r = rootpath(root, path, "%s", MODULES_OWN_FILE);
	if (r == 0)
		r = file_read(path, CONFDIRS_FILE_SIZE_MAX, &data, &size, f);
	if (r == 0)
		r = confdirs_text(MODULES_OWN_FILE, data, own_line, &names);
	if (r < 0 && r != -ENOENT) {
		strlist_done(&names);
		return r;
	}
	*ret_names = names;
	return 0;
}

static int modules_observe(void *state, const struct desired *want,
			   void **ret_seen, struct fault *f)
{
	struct modules_state *st = state;
	struct modules_seen *seen = calloc(1, sizeof(*seen));
	int r = seen ? 0 : -ENOMEM;

	/* A kernel keeps its release; only what is below a root may not. */
	if (r == 0 && (*st->host->root || !*st->release))
		r = kmod_release(st->host->root, st->release,
				   sizeof(st->release));
	if (r == 0) {
		(void)memcpy(seen->release, st->release, sizeof(st->release));
		check_index_age(st, seen->release);
		seen->loading_disabled =
			kmod_loading_is_disabled(st->host->root);
		seen->sysfs = kmod_sysfs_is_there(st->host->root);
		seen->loading_impossible =
			kmod_loading_is_impossible(st->host->root);
		seen->own_err = own_read(st->host->root, &seen->own, f);
		r = see_all(st, want, seen, f);
	}
	if (r < 0) {
		modules_seen_free(seen);
		return fault_errno(f, r, "modules", "cannot be observed");
	}
	*ret_seen = seen;
	return 0;
}

static void on_loaded(void *userdata, int r, const char *text)
{
	struct load *l = userdata;
	struct modules_state *st = l->owner;

	l->job = NULL;
	l->ended = true;
	if (r < 0) {
		l->failed_at = clock_boottime();
		if (asprintf(&l->failed, "loading failed: %s (%s)",
			     *text ? text : "no reason given",
			     strerror(-r)) < 0)
			l->failed = NULL;
	}
	if (st->look_again)
		st->look_again(st->userdata);
}

static int load_start(struct modules_state *st, const char *name,
		      const char *real, struct fault *f)
{
	char unit[KMOD_NAME_MAX + 32], folded[KMOD_NAME_MAX];
	struct load *l = load_find(st, name);
	int r;

	if (l && l->job)
		return 1;
	if (l)
		load_drop(st, l);
	l = calloc(1, sizeof(*l));
	if (!l)
		return fault_set(f, -ENOMEM, name, "out of memory");
	l->owner = st;
	(void)snprintf(l->name, sizeof(l->name), "%s", name);
	/* An underscore needs no escaping in a name of an instance. */
	kmod_name_fold(*real ? real : name, folded);
	(void)snprintf(unit, sizeof(unit), "modprobe@%s.service", folded);
	r = systemd1_call(st->host->bus, SYSTEMD1_START, unit,
			  MODULES_LOAD_USEC, on_loaded, l, &l->job, f);
	if (r < 0) {
		free(l);
		return r;
	}
	l->next = st->loads;
	st->loads = l;
	return 1;
}

static int apply_load(struct modules_state *st,
		      const struct modules_seen *seen, const struct change *c,
		      struct item_list *items, struct fault *f)
{
	const struct module_seen *m = modules_seen_find(seen, c->key);
	struct fault own = FAULT_INIT;
	char text[FAULT_TEXT_MAX];
	int r;

	if (!m)
		return fault_set(f, -EINVAL, c->key, "was not planned");
	if (!st->host->bus || !bus_is_up(st->host->bus)) {
		item_list_mark(items, c->key, ITEM_PENDING,
			       "D-Bus is not there yet");
		return 0;
	}
	r = load_start(st, m->name, m->real, &own);
	if (r < 0) {
		item_list_mark(items, c->key, ITEM_BLOCKED, "%s",
			       fault_str(&own, text, sizeof(text)));
		return fault_set(f, r, own.object, "%s", own.text);
	}
	return 1;
}

static bool is_persisted(const char *key)
{
	size_t n = strlen(key), m = strlen(MODULES_PERSISTED);

	return n > m && strcmp(key + n - m, MODULES_PERSISTED) == 0;
}

static int write_file(struct modules_state *st, const struct desired *want,
		      const struct modules_seen *seen, struct fault *f)
{
	_cleanup_free_ char *text = NULL;
	char path[PATH_MAX];
	size_t size = 0;
	int r;

	r = modules_render(want, seen, &text, &size);
	if (r == 0)
		r = rootpath(st->host->root, path, "/etc/modules-load.d");
	if (r < 0)
		return fault_errno(f, r, MODULES_OWN_FILE, "cannot be made");
	r = file_mkdirs(path, 0755, f);
	if (r < 0)
		return r;
	r = rootpath(st->host->root, path, "%s", MODULES_OWN_FILE);
	if (r < 0)
		return fault_errno(f, r, MODULES_OWN_FILE, "cannot be made");
	return file_write(path, 0644, text, size, f);
}

static int apply_file(struct modules_state *st, const struct desired *want,
		      const struct modules_seen *seen,
		      const struct change_list *changes,
		      struct item_list *items, struct fault *f)
{
	struct fault own = FAULT_INIT;
	char text[FAULT_TEXT_MAX];
	bool needed = false;
	size_t i;
	int r;

	for (i = 0; i < changes->n; i++)
		needed |= is_persisted(changes->v[i].key);
	if (!needed)
		return 0;
	r = write_file(st, want, seen, &own);
	if (r == 0)
		return 0;
	(void)fault_str(&own, text, sizeof(text));
	for (i = 0; i < changes->n; i++)
		if (is_persisted(changes->v[i].key))
			item_list_mark(items, changes->v[i].key, ITEM_BLOCKED,
				       "%s", text);
	return fault_set(f, r, own.object, "%s", own.text);
}

static int modules_apply(void *state, const struct desired *want,
			 const void *seen, const struct change_list *changes,
			 struct item_list *items, struct fault *f)
{
	struct modules_state *st = state;
	bool started = false;
	int r, first;
	size_t i;

	first = apply_file(st, want, seen, changes, items, f);
	for (i = 0; i < changes->n; i++) {
		if (is_persisted(changes->v[i].key))
			continue;
		r = apply_load(st, seen, &changes->v[i], items, f);
		if (r < 0)
			first = first ? first : r;
		else
			started |= r > 0;
	}
	return first ? first : started;
}

static void on_wake(void *userdata)
{
	struct modules_state *st = userdata;

	st->look_again(st->userdata);
}

static void on_bus(void *userdata, bool up)
{
	if (up)
		on_wake(userdata);
}

static int watch_files(struct modules_state *st, struct fault *f)
{
	static const char *const dirs[] = { "/etc/modules-load.d",
					    "/lib/modules", NULL };
	const char *root = st->host->root;
	int r, first;

	first = wake_paths(st->wake, root, dirs, WAKE_DIR_MASK, f);
	r = confdirs_watch(root, "modprobe.d", st->wake, f);
	return first ? first : r;
}

static int modules_watch(void *state, const struct desired *want,
			 resource_look_again look_again, void *userdata,
			 struct fault *f)
{
	struct modules_state *st = state;
	int r;

	(void)want;
	st->look_again = look_again;
	st->userdata = userdata;
	if (st->wake || !st->host->event)
		return 0;
	r = wake_new(st->host->event, on_wake, st, &st->wake, f);
	if (r < 0)
		return r;
	if (st->host->bus && !st->listener) {
		r = bus_listen(st->host->bus, on_bus, st, &st->listener);
		if (r < 0)
			return fault_errno(f, r, "modules", "cannot listen");
	}
	r = watch_files(st, f);
	if (r < 0)
		return r;
	/* Group 1 is the kernel's own; udev's arrives on the host only. */
	return wake_netlink(st->wake, NETLINK_KOBJECT_UEVENT, 1, "/module/",
			    f);
}

const struct resource resource_modules = {
	.id = RESOURCE_MODULES,
	.open = modules_open,
	.observe = modules_observe,
	.plan = modules_plan,
	.apply = modules_apply,
	.watch = modules_watch,
	.seen_free = modules_seen_free,
	.free = modules_free,
};

#include "agent/disk/note.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/parse.h"

#define NOTE_MAX 4096

static const char *const states[] = {
	[DISK_ERROR] = "error",
	[DISK_ABSENT] = "absent",
	[DISK_BUSY] = "busy",
	[DISK_BLANK] = "blank",
	[DISK_FILESYSTEM] = "filesystem",
	[DISK_OTHER] = "other",
};
_Static_assert(sizeof(states) / sizeof(states[0]) == DISK_STATE_MAX,
	       "every state has a name");

const char *disk_state_name(enum disk_state state)
{
	return state < DISK_STATE_MAX ? states[state] : "unknown";
}

static int note_path(const char *dir, const char *name, const char *end,
		     char path[PATH_MAX])
{
	if (!*name || *name == '.' || strchr(name, '/'))
		return -EINVAL;
	return snprintf(path, PATH_MAX, "%s/" DISK_DIR "/%s.%s", dir, name,
			end) >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int note_write(const char *dir, const char *name, const char *end,
		      const char *text, int n, struct fault *f)
{
	char path[PATH_MAX];
	int r;

	if (n < 0 || n >= NOTE_MAX)
		return fault_set(f, -E2BIG, name, "cannot be noted");
	if (snprintf(path, sizeof(path), "%s/" DISK_DIR, dir) >=
	    (int)sizeof(path))
		return fault_set(f, -ENAMETOOLONG, name, "cannot be noted");
	r = file_mkdirs(path, 0700, f);
	if (r < 0)
		return r;
	r = note_path(dir, name, end, path);
	if (r < 0)
		return fault_errno(f, r, name, "cannot be noted");
	return file_write(path, 0600, text, (size_t)n, f);
}

/* Calls `take` with each key and value. */
static int note_read(const char *dir, const char *name, const char *end,
		     bool (*take)(void *to, const char *key,
				  const char *value),
		     void *to, struct fault *f)
{
	_cleanup_free_ char *text = NULL;
	char path[PATH_MAX], *next, *line, *key;
	size_t size;
	int r;

	r = note_path(dir, name, end, path);
	if (r < 0)
		return fault_errno(f, r, name, "no such note");
	r = file_read(path, NOTE_MAX, &text, &size, f);
	if (r < 0)
		return r;
	next = text;
	while ((line = strsep(&next, "\n"))) {
		if (!*line)
			continue;
		key = strsep(&line, " ");
		if (!line || !take(to, key, line))
			return fault_set(f, -EBADMSG, path, "is damaged");
	}
	return 0;
}

static bool copy(char *to, size_t size, const char *value)
{
	size_t n = strlen(value);

	if (n >= size)
		return false;
	(void)memcpy(to, value, n + 1);
	return true;
}

int disk_want_write(const char *dir, const char *name,
		    const struct disk_want *want, struct fault *f)
{
	char text[NOTE_MAX];
	int n = snprintf(text, sizeof(text), "device %s\nfs %s\nformat %s\n",
			 want->device, want->fs, want->format ? "yes" : "no");

	return note_write(dir, name, "want", text, n, f);
}

static bool take_want(void *to, const char *key, const char *value)
{
	struct disk_want *w = to;

	if (strcmp(key, "device") == 0)
		return copy(w->device, sizeof(w->device), value);
	if (strcmp(key, "fs") == 0)
		return copy(w->fs, sizeof(w->fs), value);
	if (strcmp(key, "format") != 0)
		return false;
	w->format = strcmp(value, "yes") == 0;
	return w->format || strcmp(value, "no") == 0;
}

int disk_want_read(const char *dir, const char *name,
		   struct disk_want *ret_want, struct fault *f)
{
	struct disk_want w = { 0 };
	int r = note_read(dir, name, "want", take_want, &w, f);

	if (r == 0)
		*ret_want = w;
	return r;
}

int disk_seen_write(const char *dir, const char *name,
		    const struct disk_seen *s, struct fault *f)
{
	char text[NOTE_MAX];
	int n = snprintf(text, sizeof(text),
			 "boot %s\ndevice %s\nmajor %u\nminor %u\nstate %s\n"
			 "fs %s\nuuid %s\ntext %s\n", s->boot, s->device,
			 s->major, s->minor, disk_state_name(s->state), s->fs,
			 s->uuid, s->text);

	return note_write(dir, name, "seen", text, n, f);
}

static bool take_state(enum disk_state *to, const char *value)
{
	size_t i;

	for (i = 0; i < DISK_STATE_MAX; i++) {
		if (strcmp(states[i], value) != 0)
			continue;
		*to = (enum disk_state)i;
		return true;
	}
	return false;
}

static bool take_seen(void *to, const char *key, const char *value)
{
	struct disk_seen *s = to;

	if (strcmp(key, "boot") == 0)
		return copy(s->boot, sizeof(s->boot), value);
	if (strcmp(key, "device") == 0)
		return copy(s->device, sizeof(s->device), value);
	if (strcmp(key, "major") == 0)
		return parse_u32(value, &s->major) == 0;
	if (strcmp(key, "minor") == 0)
		return parse_u32(value, &s->minor) == 0;
	if (strcmp(key, "state") == 0)
		return take_state(&s->state, value);
	if (strcmp(key, "fs") == 0)
		return copy(s->fs, sizeof(s->fs), value);
	if (strcmp(key, "uuid") == 0)
		return copy(s->uuid, sizeof(s->uuid), value);
	return strcmp(key, "text") == 0 &&
	       copy(s->text, sizeof(s->text), value);
}

int disk_seen_read(const char *dir, const char *name,
		   struct disk_seen *ret_seen, struct fault *f)
{
	struct disk_seen s = { 0 };
	int r = note_read(dir, name, "seen", take_seen, &s, f);

	if (r == 0)
		*ret_seen = s;
	return r;
}

void disk_forget(const char *dir, const char *name)
{
	char path[PATH_MAX];

	if (note_path(dir, name, "want", path) == 0)
		(void)unlink(path);
	if (note_path(dir, name, "seen", path) == 0)
		(void)unlink(path);
}

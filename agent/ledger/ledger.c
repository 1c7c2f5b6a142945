#include "agent/ledger/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/parse.h"

#define TAIL ((size_t)32 * LEDGER_LINE_MAX)
#define BROKEN "broken:"

const char *ledger_path(const char *state_dir, char buf[LEDGER_PATH_MAX])
{
	(void)snprintf(buf, LEDGER_PATH_MAX, "%s/killswitch.log", state_dir);
	return buf;
}

/* ---- append ---- */

/* Whether what is there ends in the middle of a line. */
static bool is_torn(int fd, off_t size)
{
	char last;

	return size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

static int write_all(int fd, const char *text, size_t size)
{
	ssize_t n;

	while (size) {
		n = write(fd, text, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		text += n;
		size -= (size_t)n;
	}
	return 0;
}

int ledger_append(const char *state_dir, const char *text, size_t size,
		  struct fault *f)
{
	char path[LEDGER_PATH_MAX];
	struct stat st;
	_cleanup_close_ int fd = open(ledger_path(state_dir, path),
				      O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC,
				      0600);
	int r = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fault_errno(f, -errno, path, "cannot be opened");
	if (is_torn(fd, st.st_size))
		r = write_all(fd, "\n", 1);
	if (r == 0)
		r = write_all(fd, text, size);
	if (r == 0 && fdatasync(fd) < 0)
		r = -errno;
	if (r == 0)
		return 0;
	/* A full disk leaves no half of it; if it does, that shows. */
	if (ftruncate(fd, st.st_size) < 0)
		(void)fault_errno(f, -errno, path, "cannot be cut back");
	return fault_errno(f, r, path, "cannot be appended to");
}

int ledger_last(const char *state_dir, struct ledger_record *ret_last)
{
	_cleanup_free_ char *tail = malloc(TAIL);
	char path[LEDGER_PATH_MAX];
	const char *line, *end;
	struct stat st;
	_cleanup_close_ int fd = open(ledger_path(state_dir, path),
				      O_RDONLY | O_CLOEXEC);
	ssize_t n = 0;
	int r = -ENOENT;

	if (!tail)
		return -ENOMEM;
	if (fd >= 0 && fstat(fd, &st) == 0)
		n = pread(fd, tail, TAIL,
			  (size_t)st.st_size > TAIL ?
				  st.st_size - (off_t)TAIL : 0);
	for (line = tail; n > 0 && line < tail + n; line = end + 1) {
		end = memchr(line, '\n', (size_t)(tail + n - line));
		if (!end)
			break;
		if (ledger_decode(line, (size_t)(end - line), ret_last) == 0)
			r = 0;
	}
	return r;
}

/* ---- prune ---- */

struct cut {
	struct ledger_record last;	/* of those that go */
	uint64_t records, broken;
	size_t bytes;
};

/* An earlier cut counts on. */
static void count_line(struct cut *c, const struct ledger_record *r, int err)
{
	uint64_t n = 0;

	if (err < 0) {
		c->broken++;
		return;
	}
	c->last = *r;
	if (r->event != LEDGER_CUT) {
		c->records++;
		return;
	}
	c->records += r->count;
	if (strncmp(r->cause, BROKEN, strlen(BROKEN)) == 0 &&
	    parse_u64(r->cause + strlen(BROKEN), UINT64_MAX, &n) == 0)
		c->broken += n;
}

/* How much of the front goes; only whole lines, never the last one. */
static struct cut find_cut(const char *text, size_t size, usec wall,
			   size_t target)
{
	struct cut c = { .bytes = 0 }, seen = { .bytes = 0 };
	const char *line, *end;
	struct ledger_record r;
	size_t upto;
	bool fresh = false;
	int err;

	for (line = text; line < text + size; line = end + 1) {
		end = memchr(line, '\n', (size_t)(text + size - line));
		upto = end ? (size_t)(end + 1 - text) : size;
		if (!end || upto == size)
			break;
		err = ledger_decode(line, (size_t)(end - line), &r);
		if (err == 0 && r.event != LEDGER_CUT &&
		    (wall == 0 || r.wall >= wall || wall - r.wall < LEDGER_KEEP))
			fresh = true;
		if (fresh && size - (size_t)(line - text) <= target)
			break;
		count_line(&seen, &r, err);
		seen.bytes = upto;
		/* Broken lines go with the sound one behind them. */
		if (err == 0 && r.event != LEDGER_CUT)
			c = seen;
	}
	return c;
}

int ledger_prune(const char *text, size_t size, usec wall, size_t limit,
		 char **ret_text, size_t *ret_size)
{
	struct cut c = find_cut(text, size, wall,
				size > limit ? limit / 4 * 3 : SIZE_MAX);
	char line[LEDGER_LINE_MAX], *left;
	int n;

	if (c.bytes == 0)
		return 0;
	c.last.event = LEDGER_CUT;
	c.last.count = c.records;
	c.last.n_classes = c.last.n_layers = 0;
	c.last.cause[0] = '\0';
	if (c.broken)
		(void)snprintf(c.last.cause, sizeof(c.last.cause),
			       BROKEN "%" PRIu64, c.broken);
	n = ledger_encode(&c.last, line);
	if (n < 0)
		return n;
	left = malloc((size_t)n + size - c.bytes + 1);
	if (!left)
		return -ENOMEM;
	(void)memcpy(left, line, (size_t)n);
	(void)memcpy(left + n, text + c.bytes, size - c.bytes);
	*ret_size = (size_t)n + size - c.bytes;
	left[*ret_size] = '\0';
	*ret_text = left;
	return 1;
}

int ledger_tidy(const char *state_dir, usec wall, size_t limit,
		struct fault *f)
{
	_cleanup_free_ char *text = NULL, *left = NULL;
	char path[LEDGER_PATH_MAX];
	size_t size, n = 0;
	int r = file_read(ledger_path(state_dir, path), 2 * LEDGER_SIZE_MAX,
			  &text, &size, f);

	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = ledger_prune(text, size, wall, limit, &left, &n);
	return r > 0 ? file_write(path, 0600, left, n, f) : r;
}

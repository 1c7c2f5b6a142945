#include "agent/res/sysctl_files.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "agent/confdirs.h"
#include "common/cleanup.h"

#define BLANKS " \t\r\n\v\f"

/* One component, of `n` characters at `at`. */
static bool is_sane(const char *at, size_t n)
{
	return n > 2 || (n > 0 && memcmp(at, "..", n) != 0);
}

int sysctl_key_path(const char *key, char *buf, size_t size)
{
	char path[SYSCTL_KEY_MAX], dot = '.', slash = '/';
	size_t n, i, start = 0;

	/* "/net/ipv4" is one of the spellings of sysctl.d(5). */
	if (*key == '/')
		key++;
	n = strlen(key);
	if (n == 0)
		return -EINVAL;
	if (n >= sizeof(path) || n >= size)
		return -ENAMETOOLONG;
	/* The separators are swapped when the first of them is a dot. */
	if (key[strcspn(key, "./")] == '.') {
		dot = '/';
		slash = '.';
	}
	for (i = 0; i < n; i++) {
		char c = key[i];

		if ((unsigned char)c <= ' ' || c == 0x7f || c == '=')
			return -EINVAL;
		path[i] = c == '.' ? dot : c == '/' ? slash : c;
		if (path[i] != '/')
			continue;
		if (!is_sane(path + start, i - start))
			return -EINVAL;
		start = i + 1;
	}
	if (start == 0 || !is_sane(path + start, n - start))
		return -EINVAL;
	memcpy(buf, path, n);
	buf[n] = '\0';
	return 0;
}

bool sysctl_is_glob(const char *path)
{
	return strpbrk(path, "*?[") != NULL;
}

/* Behind "net/ipv4/conf/" and its like: "LINK/KEY", or NULL. */
static const char *link_part(const char *path)
{
	static const char *const trees[] = {
		"net/ipv4/conf/", "net/ipv4/neigh/", "net/ipv6/conf/",
		"net/ipv6/neigh/",
	};
	size_t i;

	for (i = 0; i < sizeof(trees) / sizeof(trees[0]); i++)
		if (strncmp(path, trees[i], strlen(trees[i])) == 0)
			return path + strlen(trees[i]);
	return NULL;
}

size_t sysctl_key_link(const char *path)
{
	const char *link = link_part(path);
	size_t n = link ? strcspn(link, "/") : 0;

	if (n == 0 || !link[n] || (n == 3 && memcmp(link, "all", n) == 0) ||
	    (n == 7 && memcmp(link, "default", n) == 0))
		return 0;
	return (size_t)(link - path) + n;
}

bool sysctl_key_splits_link(const char *path)
{
	size_t n = sysctl_key_link(path);

	return n > 0 && strchr(path + n + 1, '/') != NULL;
}

void sysctl_fold(char *text)
{
	char *out = text, *p = text;

	while (*p) {
		size_t gap = strspn(p, BLANKS), n;

		p += gap;
		n = strcspn(p, BLANKS);
		if (n == 0)
			break;
		if (out != text)
			*out++ = ' ';
		memmove(out, p, n);
		out += n;
		p += n;
	}
	*out = '\0';
}

/* The kernel reads numbers with base 0, and prints them in decimal. */
static bool word_equal(const char *a, size_t na, const char *b, size_t nb)
{
	char x[64], y[64], *end_x, *end_y;
	unsigned long long u, v;

	if (na == nb && memcmp(a, b, na) == 0)
		return true;
	if (na == 0 || nb == 0 || na >= sizeof(x) || nb >= sizeof(y))
		return false;
	memcpy(x, a, na);
	memcpy(y, b, nb);
	x[na] = y[nb] = '\0';
	if ((x[0] == '-') != (y[0] == '-'))
		return false;
	u = strtoull(x + (x[0] == '-'), &end_x, 0);
	v = strtoull(y + (y[0] == '-'), &end_y, 0);
	return isdigit((unsigned char)x[x[0] == '-']) &&
	       isdigit((unsigned char)y[y[0] == '-']) && !*end_x && !*end_y &&
	       u == v;
}

bool sysctl_value_equal(const char *a, const char *b)
{
	for (;;) {
		size_t na = strcspn(a, " "), nb = strcspn(b, " ");

		if (!word_equal(a, na, b, nb))
			return false;
		a += na;
		b += nb;
		if (!*a || !*b)
			return *a == *b;
		a++;
		b++;
	}
}

bool sysctl_same_knob(const char *a, const char *b)
{
	static const char *const twins[2] = {
		"net/ipv4/ip_forward",
		"net/ipv4/conf/all/forwarding",
	};

	if (strcmp(a, b) == 0)
		return true;
	if (a[0] != 'n' || b[0] != 'n')
		return false;	/* as most: neither is one of them */
	return (strcmp(a, twins[0]) == 0 && strcmp(b, twins[1]) == 0) ||
	       (strcmp(a, twins[1]) == 0 && strcmp(b, twins[0]) == 0);
}

static void line_done(struct sysctl_line *l)
{
	free(l->file);		/* and with it path and value */
}

static int lines_add(struct sysctl_lines *lines, const char *file,
		     unsigned int number, const char *path, const char *value)
{
	struct sysctl_line l = { .line = number };
	size_t nf, np, nv;
	struct sysctl_line *v;

	if (lines->n >= SYSCTL_LINES_MAX)
		return -E2BIG;
	v = reallocarray(lines->v, lines->n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	lines->v = v;
	nf = strlen(file) + 1;
	np = strlen(path) + 1;
	nv = value ? strlen(value) + 1 : 0;
	l.file = malloc(nf + np + nv);
	if (!l.file)
		return -ENOMEM;
	l.path = l.file + nf;
	(void)memcpy(l.file, file, nf);
	(void)memcpy(l.path, path, np);
	if (value)
		l.value = memcpy(l.path + np, value, nv);
	v[lines->n++] = l;
	return 0;
}

/* What systemd-sysctl would ignore with a warning is ignored here too. */
static int parse_line(void *userdata, const char *file, unsigned int number,
		      char *line)
{
	struct sysctl_lines *lines = userdata;
	char path[SYSCTL_KEY_MAX], *value;

	line += strspn(line, BLANKS);
	if (!*line || *line == '#' || *line == ';')
		return 0;
	value = strchr(line, '=');
	if (value)
		*value++ = '\0';
	else if (*line != '-')
		return 0;
	if (*line == '-')
		line++;
	sysctl_fold(line);
	if (value)
		sysctl_fold(value);
	if (sysctl_key_path(line, path, sizeof(path)) < 0)
		return 0;
	return lines_add(lines, file, number, path, value);
}

int sysctl_lines_parse(const char *file, char *text,
		       struct sysctl_lines *lines)
{
	return confdirs_text(file, text, parse_line, lines);
}

int sysctl_lines_read(const char *root, struct sysctl_lines *lines,
		      struct fault *f)
{
	return confdirs_lines(root, "sysctl.d", parse_line, lines, f);
}

int sysctl_lines_copy(const struct sysctl_lines *lines,
		      struct sysctl_lines *ret_copy)
{
	struct sysctl_lines copy = SYSCTL_LINES_INIT;
	size_t i;
	int r = 0;

	for (i = 0; i < lines->n && r == 0; i++)
		r = lines_add(&copy, lines->v[i].file, lines->v[i].line,
			      lines->v[i].path, lines->v[i].value);
	if (r < 0) {
		sysctl_lines_done(&copy);
		return r;
	}
	*ret_copy = copy;
	return 0;
}

void sysctl_lines_done(struct sysctl_lines *lines)
{
	size_t i;

	for (i = 0; i < lines->n; i++)
		line_done(&lines->v[i]);
	free(lines->v);
	*lines = SYSCTL_LINES_INIT;
}

const struct sysctl_line *sysctl_lines_own(const struct sysctl_lines *lines,
					   const char *path)
{
	size_t i;

	for (i = lines->n; i > 0; i--) {
		const struct sysctl_line *l = &lines->v[i - 1];

		if (l->value && strcmp(l->path, path) == 0 &&
		    strcmp(l->file, SYSCTL_OWN_FILE) == 0)
			return l;
	}
	return NULL;
}

bool sysctl_lines_own_exclude(const struct sysctl_lines *lines,
			      const char *path)
{
	size_t i;

	for (i = lines->n; i > 0; i--)
		if (strcmp(lines->v[i - 1].file, SYSCTL_OWN_FILE) == 0 &&
		    strcmp(lines->v[i - 1].path, path) == 0)
			return !lines->v[i - 1].value;
	return false;
}

static bool same_value(const struct sysctl_line *a, const struct sysctl_line *b)
{
	return a->value && b->value ? strcmp(a->value, b->value) == 0 :
				      a->value == b->value;
}

/*
 * Is line `i` what systemd-sysctl keeps of its wildcard? The same text with
 * another value replaces it and moves to the end; with the same value it
 * keeps its place, which is that of the first such line in a row.
 */
static bool is_kept_glob(const struct sysctl_lines *lines, size_t i)
{
	const struct sysctl_line *l = &lines->v[i];
	size_t k;

	if (!l->value || !sysctl_is_glob(l->path))
		return false;
	for (k = i + 1; k < lines->n; k++)
		if (strcmp(lines->v[k].path, l->path) == 0 &&
		    !same_value(&lines->v[k], l))
			return false;
	for (k = i; k > 0; k--)
		if (strcmp(lines->v[k - 1].path, l->path) == 0)
			return !same_value(&lines->v[k - 1], l);
	return true;
}

const struct sysctl_line *sysctl_lines_boot(const struct sysctl_lines *lines,
					    const char *path)
{
	size_t i;

	for (i = lines->n; i > 0; i--)
		if (strcmp(lines->v[i - 1].path, path) == 0)
			return &lines->v[i - 1];
	for (i = lines->n; i > 0; i--)
		if (is_kept_glob(lines, i - 1) &&
		    fnmatch(lines->v[i - 1].path, path,
			    FNM_PATHNAME | FNM_PERIOD) == 0)
			return &lines->v[i - 1];
	return NULL;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

const struct sysctl_line *
sysctl_lines_override(const struct sysctl_lines *lines, const char *path,
		      const char *value)
{
	const char *own = base_name(SYSCTL_OWN_FILE);
	size_t i;

	/* The last explicit assignment decides; look from the end. */
	for (i = lines->n; i > 0; i--) {
		const struct sysctl_line *l = &lines->v[i - 1];

		if (strcmp(base_name(l->file), own) <= 0)
			return NULL;
		if (!l->value || !sysctl_same_knob(l->path, path))
			continue;
		return sysctl_value_equal(l->value, value) ? NULL : l;
	}
	return NULL;
}

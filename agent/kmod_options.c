#include "agent/kmod_options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/confdirs.h"
#include "agent/kmod.h"
#include "agent/rootpath.h"
#include "common/cleanup.h"
#include "common/file.h"

#define OPTIONS_MAX 4096

void kmod_options_done(struct kmod_options *o)
{
	size_t i;

	for (i = 0; i < o->n; i++) {
		free(o->v[i].module);
		free(o->v[i].param);
		free(o->v[i].value);
		free(o->v[i].cause);
	}
	free(o->v);
	*o = (struct kmod_options){ NULL, 0 };
}

static int options_add(struct kmod_options *o, const char *module,
		       const char *param, const char *value, const char *cause)
{
	struct kmod_option *v, *k;

	if (o->n >= OPTIONS_MAX)
		return -E2BIG;
	v = reallocarray(o->v, o->n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	o->v = v;
	k = &v[o->n++];
	*k = (struct kmod_option){ strdup(module), strdup(param),
				   strdup(value), strdup(cause) };
	return k->module && k->param && k->value && k->cause ? 0 : -ENOMEM;
}

/* "options NAME a=1 b": one without a value is a switch that is on. */
static int option_line(void *userdata, const char *file, unsigned int number,
		       char *line)
{
	char cause[PATH_MAX + 16], *word, *module;
	int r = 0;

	line += strspn(line, " \t");
	word = strsep(&line, " \t");
	if (!line || strcmp(word, "options") != 0)
		return 0;
	line += strspn(line, " \t");
	module = strsep(&line, " \t");
	(void)snprintf(cause, sizeof(cause), "%s:%u", file, number);
	while (r == 0 && (word = strsep(&line, " \t\r"))) {
		char *value = strchr(word, '=');

		if (value)
			*value++ = '\0';
		/* Quotes hold blanks, which cut them here: not judged. */
		if (*word && !(value && strchr(value, '"')))
			r = options_add(userdata, module, word,
					value ? value : "Y", cause);
	}
	return r;
}

int kmod_options_read(const char *root, struct kmod_options *ret_options,
		      struct fault *f)
{
	struct kmod_options o = { NULL, 0 };
	int r = confdirs_lines(root, "modprobe.d", option_line, &o, f);

	if (r < 0) {
		kmod_options_done(&o);
		return r;
	}
	*ret_options = o;
	return 0;
}

/* 1, 0, or -1: it is no switch. */
static int as_switch(const char *text)
{
	if (*text && !text[1] && strchr("1yY", *text))
		return 1;
	return *text && !text[1] && strchr("0nN", *text) ? 0 : -1;
}

static bool same_value(const char *a, const char *b)
{
	char *end_a, *end_b;
	long long x, y;

	if (strcmp(a, b) == 0 || (as_switch(a) >= 0 &&
				  as_switch(a) == as_switch(b)))
		return true;
	x = strtoll(a, &end_a, 0);
	y = strtoll(b, &end_b, 0);
	return end_a != a && end_b != b && !*end_a && !*end_b && x == y;
}

/* The last line about a parameter is the one that the module gets. */
static bool is_last(const struct kmod_options *o, size_t i)
{
	size_t k;

	for (k = i + 1; k < o->n; k++)
		if (kmod_name_equal(o->v[k].module, o->v[i].module) &&
		    kmod_name_equal(o->v[k].param, o->v[i].param))
			return false;
	return true;
}

bool kmod_options_drift(const char *root, const struct kmod_options *o,
			const char *module, char *buf, size_t size)
{
	char path[PATH_MAX], folded[KMOD_NAME_MAX], now[256];
	size_t i;

	kmod_name_fold(module, folded);
	for (i = 0; i < o->n; i++) {
		const struct kmod_option *k = &o->v[i];

		if (!kmod_name_equal(k->module, module) || !is_last(o, i) ||
		    strchr(k->param, '/') ||
		    rootpath(root, path, "/sys/module/%s/parameters/%s",
			     folded, k->param) < 0 ||
		    file_line(path, now, sizeof(now), NULL) < 0 ||
		    same_value(now, k->value))
			continue;
		(void)snprintf(buf, size, "%.200s asks for %.64s=%.128s, the "
			       "running module has %.128s: it was loaded "
			       "before, a reboot takes it", k->cause, k->param,
			       k->value, now);
		return true;
	}
	return false;
}

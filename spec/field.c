#include "spec/field.h"

#include <errno.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/placeholder.h"

#define NAME "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
#define LABEL "[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
#define LABEL_KEY "(" NAME "(\\." NAME ")*/)?" LABEL

static const struct {
	const char *pattern, *code, *want;
} texts[] = {
	[FIELD_ANY] = { "^[ -~]+$", "bad-text", "one line of printable ASCII" },
	[FIELD_NAME] = { "^" NAME "$", "bad-name",
			 "a name of a-z, 0-9 and '-', at most 63 long" },
	[FIELD_ID] = { "^[0-9a-f]{32}$", "bad-id", "32 lower-case hex digits" },
	[FIELD_UUID] = { "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$",
			 "bad-id", "a UUID" },
	[FIELD_SERIAL] = { "^[A-Za-z0-9:/._-]{1,64}$", "bad-text",
			   "letters, digits and : / . _ -" },
	[FIELD_MAC] = { "^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$", "bad-mac",
			"a MAC address like 52:54:00:00:00:11" },
	[FIELD_HOST] = { "^(" NAME "(\\." NAME ")*|[0-9a-f:]+(:[0-9.]+)?)$",
			 "bad-text", "a lower-case host name or an address" },
	[FIELD_SHA256] = { "^[0-9a-f]{64}$", "bad-hash",
			   "a sha256: 64 lower-case hex digits" },
	[FIELD_INTERFACE] = { "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}$",
			      "bad-interface",
			      "an interface name, at most 15 long" },
	[FIELD_MODULE] = { "^[A-Za-z0-9_][A-Za-z0-9_-]{0,54}$", "bad-module",
			   "the name of a kernel module" },
	[FIELD_SYSCTL] = { "^([a-z0-9_]+([./][A-Za-z0-9_:-]+)+|"
			   "net\\.ipv[46]\\.(conf|neigh)\\.[A-Za-z0-9_:*/-]+"
			   "\\.[A-Za-z0-9_-]+|"
			   "net/ipv[46]/(conf|neigh)/[A-Za-z0-9_:*.-]+"
			   "/[A-Za-z0-9_-]+)$", "bad-sysctl",
			   "a sysctl key like net.ipv4.ip_forward or "
			   "net.ipv4.conf.*.rp_filter" },
	[FIELD_LINE] = { "^[!-~]+([ \t]+[!-~]+)*$", "bad-text",
			 "one line of printable ASCII" },
	[FIELD_PATH] = { "^/[A-Za-z0-9/._+-]+$", "bad-path",
			 "an absolute path of letters, digits and / . _ + -" },
	[FIELD_KERNEL] = { "^>= ?[0-9]+\\.[0-9]+(\\.[0-9]+)?$", "bad-text",
			   "a floor like \">= 6.1\"" },
	[FIELD_PERCENT] = { "^[0-9]{1,2}(\\.[0-9]+)?%$", "bad-text",
			    "a percentage like 5%" },
	[FIELD_DURATION] = { "^[0-9]{1,6}(s|m|h)$", "bad-text",
			     "a duration like 90s, 10m or 1h" },
	[FIELD_LISTEN] = { "^(none|(loopback|node|[0-9.]+|\\[[0-9a-f:.]+\\]):"
			   "[0-9]{1,5})$", "bad-text",
			   "none, loopback:PORT, node:PORT or ADDRESS:PORT" },
	[FIELD_CHART] = { "^(repo|file:[A-Za-z0-9/._-]+|"
			  "https://[A-Za-z0-9:/._-]+)$", "bad-text",
			  "repo, file:./PATH.tgz or an https URL" },
	[FIELD_LABEL_KEY] = { "^" LABEL_KEY "$", "bad-label",
			      "a label key like example.net/disk" },
	[FIELD_LABEL_VALUE] = { "^(" LABEL ")?$", "bad-label",
				"a label value: at most 63 of A-Z a-z 0-9 _ . "
				"-" },
	[FIELD_TAINT] = { "^" LABEL_KEY "(=(" LABEL ")?)?"
			  ":(NoSchedule|PreferNoSchedule|NoExecute)$",
			  "bad-taint", "a taint like gateway=true:NoSchedule" },
	[FIELD_WAIVER] = { "^[a-z]+(/[A-Za-z0-9_./:-]+)?$", "bad-text",
			   "RESOURCE or RESOURCE/KEY" },
	[FIELD_K3S_VALUE] = { "^[A-Za-z0-9:/._,=@%+* -]+$", "bad-text",
			      "letters, digits, blanks and : / . _ , = @ % + * "
			      "-" },
};
_Static_assert(sizeof(texts) / sizeof(texts[0]) == FIELD_TEXT_KINDS,
	       "every kind of text has a pattern");

struct loader {
	struct spec_arena *arena;
	struct spec_problems *problems;
	bool no_memory;
	bool compiled[FIELD_TEXT_KINDS];
	regex_t regex[FIELD_TEXT_KINDS];
};

struct loader *loader_new(struct spec_arena *arena,
			  struct spec_problems *problems)
{
	struct loader *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->arena = arena;
	l->problems = problems;
	return l;
}

struct loader *loader_free(struct loader *l)
{
	size_t i;

	if (!l)
		return NULL;
	for (i = 0; i < FIELD_TEXT_KINDS; i++)
		if (l->compiled[i])
			regfree(&l->regex[i]);
	free(l);
	return NULL;
}

struct spec_arena *loader_arena(struct loader *l)
{
	return l->arena;
}

bool loader_no_memory(const struct loader *l)
{
	return l->no_memory;
}

void *loader_alloc(struct loader *l, size_t n, size_t size)
{
	void *p = spec_arena_alloc(l->arena, n ? n : 1, size);

	if (!p)
		l->no_memory = true;
	return p;
}

void loader_error(struct loader *l, struct spec_pos pos, const char *code,
		  const char *fmt, ...)
{
	char text[SPEC_PROBLEM_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	spec_problem_add(l->problems, SPEC_ERROR, pos, code, "%s", text);
}

static bool matches(struct loader *l, enum field_text kind, const char *text)
{
	if (!l->compiled[kind]) {
		if (regcomp(&l->regex[kind], texts[kind].pattern,
			    REG_EXTENDED | REG_NOSUB) != 0) {
			l->no_memory = true;
			return false;
		}
		l->compiled[kind] = true;
	}
	return regexec(&l->regex[kind], text, 0, NULL, 0) == 0;
}

bool field_is(struct loader *l, const struct yaml_node *node,
	      enum yaml_kind kind, const char *what)
{
	static const char *const kinds[] = {
		[YAML_SCALAR] = "a single value",
		[YAML_LIST] = "a list",
		[YAML_MAP] = "a map",
	};

	if (node->kind == kind)
		return true;
	/* An empty value was already reported as a placeholder. */
	if (node->kind != YAML_SCALAR ||
	    yaml_scalar_type(node) != YAML_NULL)
		loader_error(l, node->pos, "wrong-type",
			     "%s must be %s, not %s", what, kinds[kind],
			     yaml_describe(node));
	return false;
}

/* Scalars that the placeholder walk has already refused need no second. */
static bool undecided(const struct yaml_node *node)
{
	return spec_is_placeholder(node->text) || spec_is_template(node->text);
}

bool field_scalar(struct loader *l, const struct yaml_node *node,
		  const char *what, enum field_text kind,
		  struct spec_str *ret_str)
{
	enum yaml_type type;

	ret_str->pos = node->pos;
	if (!field_is(l, node, YAML_SCALAR, what))
		return false;
	type = yaml_scalar_type(node);
	if (type == YAML_BOOL) {
		loader_error(l, node->pos, "wrong-type",
			     "%s must be text, not a boolean; if \"%s\" is "
			     "meant, quote it",
			     what, node->text);
		return false;
	}
	if (kind == FIELD_LABEL_VALUE && !node->plain && !*node->text) {
		ret_str->v = node->text;
		return true;
	}
	if (undecided(node))
		return false;
	if (strlen(node->text) > FIELD_TEXT_MAX ||
	    !matches(l, kind, node->text)) {
		loader_error(l, node->pos, texts[kind].code,
			     "%s \"%.120s\" is not %s", what, node->text,
			     texts[kind].want);
		return false;
	}
	ret_str->v = node->text;
	return true;
}

/* ---- maps ---- */

/* Edit distance of at most 2, for "did you mean". */
static bool near(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b), i, j;
	unsigned int row[64], diagonal, up;

	if (n >= 64 || m >= 64 || n + 2 < m || m + 2 < n)
		return false;
	for (j = 0; j <= m; j++)
		row[j] = (unsigned int)j;
	for (i = 1; i <= n; i++) {
		diagonal = row[0];
		row[0] = (unsigned int)i;
		for (j = 1; j <= m; j++) {
			unsigned int best = diagonal + (a[i - 1] != b[j - 1]);

			up = row[j];
			best = up + 1 < best ? up + 1 : best;
			best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
			diagonal = up;
			row[j] = best;
		}
	}
	return row[m] <= 2;
}

static void unknown_key(struct loader *l, const struct yaml_pair *pair,
			const struct field_section *section)
{
	const struct field *f;

	for (f = section->fields; f->key; f++)
		if (near(pair->key, f->key))
			break;
	loader_error(l, pair->pos, "unknown-key",
		     "\"%.80s\" is not a key of %s%s%s%s", pair->key,
		     section->name, f->key ? "; did you mean \"" : "",
		     f->key ? f->key : "", f->key ? "\"?" : "");
}

void field_map(struct loader *l, const struct yaml_node *map,
	       const struct field_section *section, void *dest)
{
	const struct field *f;
	size_t i;

	if (!field_is(l, map, YAML_MAP, section->name))
		return;
	for (i = 0; i < map->n; i++) {
		for (f = section->fields; f->key; f++)
			if (strcmp(f->key, map->pairs[i].key) == 0)
				break;
		if (f->key)
			f->parse(l, f, &map->pairs[i],
				 (char *)dest + f->offset);
		else
			unknown_key(l, &map->pairs[i], section);
	}
	for (f = section->fields; f->key; f++)
		if ((f->flags & FIELD_REQUIRED) && !yaml_pair(map, f->key))
			loader_error(l, map->pos, "missing-key",
				     "%s needs \"%s\"", section->name, f->key);
}

void field_section(struct loader *l, const struct field *field,
		   const struct yaml_pair *pair, void *dest)
{
	*(struct spec_pos *)dest = pair->pos;
	field_map(l, pair->value, field->arg, dest);
}

void field_later(struct loader *l, const struct field *field,
		 const struct yaml_pair *pair, void *dest)
{
	(void)dest;
	loader_error(l, pair->pos, "not-yet-supported",
		     "\"%s\" is not yet supported: %s", field->key,
		     (const char *)field->arg);
}

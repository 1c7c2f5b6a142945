#include "proto/bundle.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/ip.h"
#include "common/parse.h"

enum bundle_key {
	BUNDLE_FORMAT,
	BUNDLE_CLUSTER_ID,
	BUNDLE_CLUSTER,
	BUNDLE_TRUST_ROOT,
	BUNDLE_COORDINATOR,
	BUNDLE_TOKEN,
	BUNDLE_KEY_MAX,
};

static const char *const keys[] = {
	[BUNDLE_FORMAT] = "format",
	[BUNDLE_CLUSTER_ID] = "cluster-id",
	[BUNDLE_CLUSTER] = "cluster",
	[BUNDLE_TRUST_ROOT] = "trust-root",
	[BUNDLE_COORDINATOR] = "coordinator",
	[BUNDLE_TOKEN] = "token",
};
_Static_assert(sizeof(keys) / sizeof(keys[0]) == BUNDLE_KEY_MAX,
	       "every key has a name");

static int parse_token(const char *value, struct bundle *b)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		"0123456789._~+/=-";

	if (strlen(value) >= sizeof(b->token))
		return -E2BIG;
	if (!*value || strspn(value, allowed) != strlen(value))
		return -EINVAL;
	memcpy(b->token, value, strlen(value) + 1);
	return 0;
}

static int parse_coordinator(const char *value, struct bundle *b)
{
	struct ip_endpoint e;
	int r;

	r = ip_endpoint_parse(value, &e);
	if (r < 0)
		return r;
	if (e.proto)
		return -EINVAL;
	if (b->coordinators.n >= BUNDLE_ADDRESSES_MAX)
		return -E2BIG;
	return strlist_add(&b->coordinators, value);
}

static int parse_value(enum bundle_key key, const char *value,
		       struct bundle *b)
{
	switch (key) {
	case BUNDLE_FORMAT:
		return strcmp(value, "garboard-bundle-1") == 0 ? 0 : -EINVAL;
	case BUNDLE_CLUSTER_ID:
		return parse_hex(value, b->cluster_id, sizeof(b->cluster_id));
	case BUNDLE_CLUSTER:
		if (!parse_is_label(value))
			return -EINVAL;
		memcpy(b->cluster, value, strlen(value) + 1);
		return 0;
	case BUNDLE_TRUST_ROOT:
		return parse_hex(value, b->trust_root, sizeof(b->trust_root));
	case BUNDLE_COORDINATOR:
		return parse_coordinator(value, b);
	case BUNDLE_TOKEN:
		return parse_token(value, b);
	case BUNDLE_KEY_MAX:
		break;
	}
	return -EINVAL;
}

static int parse_line(char *line, unsigned int *seen, struct bundle *b,
		      const char *where, struct fault *f)
{
	char *value = strchr(line, ' ');
	size_t k;
	int r;

	if (!value)
		return fault_set(f, -EINVAL, where, "expected \"key value\"");
	*value++ = '\0';
	for (k = 0; k < BUNDLE_KEY_MAX; k++)
		if (strcmp(line, keys[k]) == 0)
			break;
	if (k == BUNDLE_KEY_MAX)
		return fault_set(f, -EINVAL, where, "unknown key \"%s\"", line);
	if ((*seen & (1U << k)) && k != BUNDLE_COORDINATOR)
		return fault_set(f, -EINVAL, where, "\"%s\" is repeated", line);
	*seen |= 1U << k;
	r = parse_value(k, value, b);
	if (r < 0)	/* the value may be the token: it is not shown */
		return fault_set(f, r, where, "invalid value of \"%s\"", line);
	return 0;
}

static int parse(char *text, struct bundle *b, struct fault *f)
{
	unsigned int seen = 0, number = 0;
	char where[32], *line, *next = text;
	size_t k;
	int r;

	while ((line = strsep(&next, "\n"))) {
		number++;
		if (!*line || *line == '#')
			continue;
		(void)snprintf(where, sizeof(where), "bundle line %u", number);
		r = parse_line(line, &seen, b, where, f);
		if (r < 0)
			return r;
	}
	for (k = 0; k < BUNDLE_KEY_MAX; k++)
		if (k != BUNDLE_TOKEN && !(seen & (1U << k)))
			return fault_set(f, -EINVAL, "bundle",
					 "\"%s\" is missing", keys[k]);
	return 0;
}

int bundle_parse(const char *text, struct bundle *ret_bundle, struct fault *f)
{
	_cleanup_free_ char *copy = NULL;
	struct bundle b = { 0 };
	int r;

	copy = strdup(text);
	if (!copy)
		return fault_errno(f, -ENOMEM, "bundle", "cannot be read");
	r = parse(copy, &b, f);
	if (r < 0) {
		bundle_done(&b);
		return r;
	}
	*ret_bundle = b;
	return 0;
}

int bundle_read(const char *path, struct bundle *ret_bundle, struct fault *f)
{
	_cleanup_free_ char *text = NULL;
	struct stat st;
	size_t size;
	int r;

	r = file_read(path, BUNDLE_SIZE_MAX, &text, &size, f);
	if (r < 0)
		return r;
	if (stat(path, &st) < 0)
		return fault_errno(f, -errno, path, "cannot be looked at");
	if ((st.st_mode & 022) || (st.st_uid != 0 && st.st_uid != geteuid()))
		return fault_set(f, -EPERM, path,
				 "may be written by others than root; "
				 "chown root, chmod 0640");
	if (strlen(text) != size)
		return fault_set(f, -EINVAL, path, "is not text");
	return bundle_parse(text, ret_bundle, f);
}

void bundle_done(struct bundle *b)
{
	strlist_done(&b->coordinators);
	explicit_bzero(b->token, sizeof(b->token));
}

#include "agent/res/routing_record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/record.h"
#include "common/cleanup.h"
#include "common/file.h"

#define HEAD "garboard-routing-1"
#define PATH_SIZE 512
#define RECORD_FILE_MAX (ROUTING_RECORD_TEXT_MAX + 64)	/* and its sum */

int routing_record_add(struct routing_record *r, const char *tunnel,
		       const struct ip_addr *addr)
{
	struct routing_address *a;
	size_t i;

	for (i = 0; i < r->n; i++)
		if (strcmp(r->v[i].tunnel, tunnel) == 0 &&
		    ip_addr_cmp(&r->v[i].addr, addr) == 0)
			return 0;
	if (r->n >= ROUTING_ADDRESSES_MAX)
		return -E2BIG;
	if (strlen(tunnel) >= sizeof(a->tunnel))
		return -EINVAL;
	a = &r->v[r->n++];
	*a = (struct routing_address){ .addr = *addr };
	(void)memcpy(a->tunnel, tunnel, strlen(tunnel));
	return 0;
}

bool routing_record_equal(const struct routing_record *a,
			  const struct routing_record *b)
{
	size_t i;

	if (a->n != b->n)
		return false;
	for (i = 0; i < a->n; i++)
		if (strcmp(a->v[i].tunnel, b->v[i].tunnel) != 0 ||
		    ip_addr_cmp(&a->v[i].addr, &b->v[i].addr) != 0)
			return false;
	return true;
}

static int read_line(struct routing_record *r, char *line)
{
	char *save = NULL, *word = strtok_r(line, " ", &save);
	char *tunnel = strtok_r(NULL, " ", &save);
	char *text = strtok_r(NULL, " ", &save);
	char *rest = strtok_r(NULL, " ", &save);
	struct ip_addr addr;

	if (!word || strcmp(word, "address") != 0 || !tunnel || !text ||
	    rest || ip_addr_parse(text, &addr) < 0)
		return -EINVAL;
	return routing_record_add(r, tunnel, &addr);
}

int routing_record_parse(char *text, struct routing_record *ret)
{
	char *save = NULL, *line = strtok_r(text, "\n", &save);
	struct routing_record r = { .n = 0 };
	bool ended = false;

	if (!line || strcmp(line, HEAD) != 0)
		return -EBADMSG;
	while ((line = strtok_r(NULL, "\n", &save))) {
		if (ended)
			return -EBADMSG;
		ended = strcmp(line, "end") == 0;
		if (!ended && read_line(&r, line) < 0)
			return -EBADMSG;
	}
	if (!ended)
		return -EBADMSG;
	*ret = r;
	return 0;
}

int routing_record_load(const char *state_dir, struct routing_record *ret,
			struct fault *f)
{
	struct kept once = KEPT_INIT;
	int r = routing_record_load_kept(&once, state_dir, ret, f);

	kept_done(&once);
	return r;
}

static int take(const char *text, void *userdata, struct fault *f)
{
	_cleanup_free_ char *copy = strdup(text);
	int r = copy ? routing_record_parse(copy, userdata) : -ENOMEM;

	return r < 0 ? fault_set(f, r, "ours/routing", "damaged: remove it "
				 "when the tunnel is up, and it is written "
				 "anew") : 0;
}

int routing_record_load_kept(struct kept *kept, const char *state_dir,
			     struct routing_record *ret, struct fault *f)
{
	char path[PATH_SIZE];
	int r;

	(void)snprintf(path, sizeof(path), "%s/ours/routing", state_dir);
	r = record_read(kept, path, RECORD_FILE_MAX, take, ret, f);
	if (r == -ENOENT)
		*ret = (struct routing_record){ .n = 0 };
	else if (r >= 0)
		ret->previous = r == 1;
	return r == -ENOENT || r > 0 ? 0 : r;
}

size_t routing_record_format(const struct routing_record *r,
			     char text[ROUTING_RECORD_TEXT_MAX])
{
	const size_t size = ROUTING_RECORD_TEXT_MAX;
	char buf[IP_TEXT_MAX];
	size_t used, i;

	used = (size_t)snprintf(text, size, HEAD "\n");
	for (i = 0; i < r->n; i++)
		used += (size_t)snprintf(text + used, size - used,
					 "address %.15s %.45s\n",
					 r->v[i].tunnel,
					 ip_addr_format(&r->v[i].addr, buf));
	return used + (size_t)snprintf(text + used, size - used, "end\n");
}

int routing_record_save(const char *state_dir, const struct routing_record *r,
			struct fault *f)
{
	char path[PATH_SIZE], text[ROUTING_RECORD_TEXT_MAX];
	size_t used = routing_record_format(r, text);
	int err;

	(void)snprintf(path, sizeof(path), "%s/ours", state_dir);
	err = file_mkdirs(path, 0700, f);
	if (err < 0)
		return err;
	(void)snprintf(path, sizeof(path), "%s/ours/routing", state_dir);
	return record_write(path, text, used, f);
}

#include "agent/status_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include <yaml.h>

#include "agent/json.h"
#include "common/cleanup.h"
#include "common/parse.h"

#define PATH_PART_MAX 64

struct status_doc {
	yaml_document_t doc;
};

static int connect_to(const char *path, usec timeout, int *ret_fd)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct timeval tv = { .tv_sec = timeout / USEC_PER_SEC,
			      .tv_usec = timeout % USEC_PER_SEC };
	_cleanup_close_ int fd = -1;

	if (strlen(path) >= sizeof(sa.sun_path))
		return -ENAMETOOLONG;
	memcpy(sa.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) < 0 ||
	    connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0)
		return -errno;
	*ret_fd = take_fd(&fd);
	return 0;
}

static int read_all(int fd, char **ret_text, size_t *ret_size)
{
	_cleanup_free_ char *text = NULL;
	size_t n = 0, room = 0;
	ssize_t got;

	do {
		if (n + 4096 > room) {
			char *more = realloc(text, room = room * 2 + 65536);

			if (!more)
				return -ENOMEM;
			text = more;
		}
		got = recv(fd, text + n, room - n - 1, 0);
		if (got < 0 && errno != EINTR)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		n += got > 0 ? got : 0;
		if (n > JSON_SIZE_MAX)
			return -E2BIG;
	} while (got != 0);
	text[n] = '\0';
	*ret_size = n;
	*ret_text = take_ptr(text);
	return 0;
}

int status_fetch(const char *socket_path, usec timeout, char **ret_text,
		 size_t *ret_size, struct fault *f)
{
	_cleanup_close_ int fd = -1;
	int r;

	r = connect_to(socket_path, timeout, &fd);
	if (r == -ENOENT || r == -ECONNREFUSED)
		return fault_set(f, r, socket_path,
				 "garboard-agent is not running");
	if (r == 0)
		r = read_all(fd, ret_text, ret_size);
	return r < 0 ? fault_errno(f, r, socket_path, "cannot be read") : 0;
}

int status_parse(const char *text, size_t size, struct status_doc **ret_doc,
		 struct fault *f)
{
	struct status_doc *d = calloc(1, sizeof(*d));
	yaml_parser_t parser;
	int ok;

	if (!d || !yaml_parser_initialize(&parser)) {
		free(d);
		return fault_errno(f, -ENOMEM, "status", "cannot be read");
	}
	yaml_parser_set_input_string(&parser, (const unsigned char *)text,
				     size);
	ok = yaml_parser_load(&parser, &d->doc);
	yaml_parser_delete(&parser);
	if (!ok || !yaml_document_get_root_node(&d->doc)) {
		if (ok)
			yaml_document_delete(&d->doc);
		free(d);
		return fault_set(f, -EBADMSG, "status", "is not a document");
	}
	*ret_doc = d;
	return 0;
}

struct status_doc *status_doc_free(struct status_doc *d)
{
	if (!d)
		return NULL;
	yaml_document_delete(&d->doc);
	free(d);
	return NULL;
}

static yaml_node_t *child_of(yaml_document_t *doc, const yaml_node_t *node,
			     const char *part)
{
	const yaml_node_pair_t *p;
	uint64_t index;
	yaml_node_t *key;

	if (node->type == YAML_SEQUENCE_NODE) {
		const yaml_node_item_t *start = node->data.sequence.items.start;
		size_t n = node->data.sequence.items.top - start;

		if (parse_u64(part, UINT32_MAX, &index) < 0 || index >= n)
			return NULL;
		return yaml_document_get_node(doc, start[index]);
	}
	if (node->type != YAML_MAPPING_NODE)
		return NULL;
	for (p = node->data.mapping.pairs.start;
	     p < node->data.mapping.pairs.top; p++) {
		key = yaml_document_get_node(doc, p->key);
		if (key && key->type == YAML_SCALAR_NODE &&
		    strcmp((const char *)key->data.scalar.value, part) == 0)
			return yaml_document_get_node(doc, p->value);
	}
	return NULL;
}

static const yaml_node_t *walk(const struct status_doc *d, const char *path)
{
	yaml_document_t *doc = (yaml_document_t *)&d->doc;
	yaml_node_t *node = yaml_document_get_root_node(doc);
	char part[PATH_PART_MAX];

	while (node && *path) {
		size_t n = strcspn(path, ".");

		if (n >= sizeof(part))
			return NULL;
		memcpy(part, path, n);
		part[n] = '\0';
		node = child_of(doc, node, part);
		path += n + (path[n] == '.');
	}
	return node;
}

const char *status_get(const struct status_doc *d, const char *path)
{
	const yaml_node_t *node = walk(d, path);

	return node && node->type == YAML_SCALAR_NODE ?
		       (const char *)node->data.scalar.value :
		       "";
}

size_t status_count(const struct status_doc *d, const char *path)
{
	const yaml_node_t *node = walk(d, path);

	if (node && node->type == YAML_SEQUENCE_NODE)
		return node->data.sequence.items.top -
		       node->data.sequence.items.start;
	if (node && node->type == YAML_MAPPING_NODE)
		return node->data.mapping.pairs.top -
		       node->data.mapping.pairs.start;
	return 0;
}

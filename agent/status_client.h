/*
 * status_client.h - reads the status document of the running agent.
 *
 * The document is JSON, which is YAML in flow style; it is read with the
 * YAML reader that the agent links anyway. Bounded in size and time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/clock.h"
#include "common/fault.h"

/* Heap text. -ENOENT, -ECONNREFUSED: no agent is running. */
int status_fetch(const char *socket_path, usec timeout, char **ret_text,
		 size_t *ret_size, struct fault *f);

struct status_doc;

int status_parse(const char *text, size_t size, struct status_doc **ret_doc,
		 struct fault *f);
struct status_doc *status_doc_free(struct status_doc *d);

/* "health.text", "resources.0.name"; "" when absent. Borrowed. */
const char *status_get(const struct status_doc *d, const char *path);
/* Elements of a list or keys of a map; 0 when absent. */
size_t status_count(const struct status_doc *d, const char *path);

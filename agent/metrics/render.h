/*
 * render.h - the status document as metrics.
 *
 * Pure: turns a parsed document (status_client.h) into the text format of
 * Prometheus, or into OpenMetrics, which differ in the names of counters and
 * in the end. What the document does not say is left out, never given as 0;
 * without a document all that is said is that the agent does not answer.
 * Label values are escaped. Times are seconds, sizes are bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define METRICS_RESOURCES_MAX 64

struct status_doc;

/* `doc` may be NULL. Heap text. -ENOMEM. */
int metrics_render(const struct status_doc *doc, bool openmetrics,
		   char **ret_text, size_t *ret_size);

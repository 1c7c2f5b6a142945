/*
 * http.h - GET /metrics and /healthz, on a socket that is handed in.
 *
 * Each request reads the agent's status anew; nothing is remembered, so no
 * number outlives the agent it came from. What a client can take is bounded:
 * connections, memory for each, and time. Nothing a client sends is used but
 * the method, the path and whether it accepts OpenMetrics.
 */
#pragma once

#define HTTP_CLIENTS_MAX 16
#define HTTP_CLIENTS_PER_ADDRESS 8
#define HTTP_MEMORY_MAX (16 * 1024)	/* bytes, for each connection */
#define HTTP_TIMEOUT 10			/* seconds without a byte */

/* Serves until it cannot: a negative errno. `listen_fd` is borrowed. */
int http_serve(int listen_fd, const char *status_socket);

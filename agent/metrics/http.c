#include "agent/metrics/http.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/metrics/render.h"
#include "agent/status_client.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fault.h"

#define AGENT_TIMEOUT (2 * USEC_PER_SEC)
#define TYPE_PLAIN "text/plain; charset=utf-8"
#define TYPE_TEXT "text/plain; version=0.0.4; charset=utf-8"
#define TYPE_OPEN \
	"application/openmetrics-text; version=1.0.0; charset=utf-8"

/* Takes `text`. */
static enum MHD_Result answer(struct MHD_Connection *c, unsigned int code,
			      const char *type, char *text, size_t size)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(
		size, text, MHD_RESPMEM_MUST_FREE);
	enum MHD_Result done;

	if (!r) {
		free(text);
		return MHD_NO;
	}
	(void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	(void)MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL,
				      "no-store");
	if (code == MHD_HTTP_METHOD_NOT_ALLOWED)
		(void)MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW,
					      "GET, HEAD");
	done = MHD_queue_response(c, code, r);
	MHD_destroy_response(r);
	return done;
}

static enum MHD_Result answer_line(struct MHD_Connection *c, unsigned int code,
				   const char *a, const char *b)
{
	char *text = NULL;
	int n = asprintf(&text, "%s%s%s\n", a, *b ? " - " : "", b);

	return n < 0 ? MHD_NO : answer(c, code, TYPE_PLAIN, text, (size_t)n);
}

static int look(const char *socket, struct status_doc **ret_doc,
		struct fault *f)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	int r = status_fetch(socket, AGENT_TIMEOUT, &text, &size, f);

	return r < 0 ? r : status_parse(text, size, ret_doc, f);
}

static enum MHD_Result metrics(struct MHD_Connection *c, const char *socket)
{
	const char *accept = MHD_lookup_connection_value(
		c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	bool open = accept && strstr(accept, "application/openmetrics-text");
	struct status_doc *doc = NULL;
	struct fault f = FAULT_INIT;
	char *text;
	size_t size;
	int r;

	(void)look(socket, &doc, &f);	/* silence is a metric, too */
	r = metrics_render(doc, open, &text, &size);
	(void)status_doc_free(doc);
	if (r < 0)
		return MHD_NO;
	return answer(c, MHD_HTTP_OK, open ? TYPE_OPEN : TYPE_TEXT, text,
		      size);
}

/* A warning is for people: only what is critical, or unknown, is unhealthy. */
static enum MHD_Result healthz(struct MHD_Connection *c, const char *socket)
{
	struct status_doc *doc = NULL;
	struct fault f = FAULT_INIT;
	enum MHD_Result done;
	const char *code;
	bool well;

	if (look(socket, &doc, &f) < 0)
		return answer_line(c, MHD_HTTP_SERVICE_UNAVAILABLE, "UNKNOWN",
				   f.text);
	code = status_get(doc, "health.code");
	well = strcmp(code, "0") == 0 || strcmp(code, "1") == 0;
	done = answer_line(c, well ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE,
			   status_get(doc, "health.name"),
			   status_get(doc, "health.text"));
	(void)status_doc_free(doc);
	return done;
}

static enum MHD_Result handle(void *userdata, struct MHD_Connection *c,
			      const char *url, const char *method,
			      const char *version, const char *upload,
			      size_t *upload_size, void **state)
{
	static int seen;

	(void)version;
	(void)upload;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
	    strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return answer_line(c, MHD_HTTP_METHOD_NOT_ALLOWED,
				   "only GET and HEAD", "");
	if (!*state) {
		*state = &seen;	/* called again when the request is whole */
		return MHD_YES;
	}
	*upload_size = 0;
	if (strcmp(url, "/metrics") == 0)
		return metrics(c, userdata);
	if (strcmp(url, "/healthz") == 0)
		return healthz(c, userdata);
	return answer_line(c, MHD_HTTP_NOT_FOUND, "/metrics or /healthz", "");
}

static int turn(struct MHD_Daemon *d, int epoll_fd)
{
	struct pollfd p = { .fd = epoll_fd, .events = POLLIN };
	MHD_UNSIGNED_LONG_LONG ms = 0;
	int wait = -1;

	if (MHD_get_timeout(d, &ms) == MHD_YES)
		wait = ms > HTTP_TIMEOUT * 1000 ? HTTP_TIMEOUT * 1000 : (int)ms;
	if (poll(&p, 1, wait) < 0 && errno != EINTR)
		return -errno;
	return MHD_run(d) == MHD_YES ? 0 : -EIO;
}

int http_serve(int listen_fd, const char *status_socket)
{
	const union MHD_DaemonInfo *info;
	struct MHD_Daemon *d;
	int r = 0;

	d = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, handle,
			     (void *)status_socket,
			     MHD_OPTION_LISTEN_SOCKET, listen_fd,
			     MHD_OPTION_CONNECTION_LIMIT, HTTP_CLIENTS_MAX,
			     MHD_OPTION_PER_IP_CONNECTION_LIMIT,
			     HTTP_CLIENTS_PER_ADDRESS,
			     MHD_OPTION_CONNECTION_MEMORY_LIMIT,
			     (size_t)HTTP_MEMORY_MAX,
			     MHD_OPTION_CONNECTION_TIMEOUT, HTTP_TIMEOUT,
			     MHD_OPTION_END);
	if (!d)
		return -EIO;
	info = MHD_get_daemon_info(d, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info)
		r = -EIO;
	while (r == 0)
		r = turn(d, info->epoll_fd);
	MHD_stop_daemon(d);
	return r;
}

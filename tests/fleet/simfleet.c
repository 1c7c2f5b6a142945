/*
 * simfleet BUNDLE_DIR NAME_PREFIX COUNT [TOKENS_FILE]
 *
 * COUNT simulated nodes NAME_PREFIX1, NAME_PREFIX2, ... against a real
 * coordinator, with one token a line (none: they wait for approval). Reads
 * commands, one a line, until the end of standard input:
 *
 *   NAME WHAT            as simagent_order()
 *   NAME clone NEWNAME   a second machine with the same identity
 *
 * and answers "NAME ok WHAT" or "NAME error WHAT".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/ip.h"
#include "proto/bundle.h"
#include "proto/keys.h"
#include "tests/fleet/simagent.h"

#define AGENTS_MAX 20000
#define RETRY (200 * USEC_PER_MSEC)
#define LINE_MAX_ 512

static struct simagent *agents[AGENTS_MAX];
static size_t n_agents;
static struct simfleet fleet = { .retry = RETRY };

static struct simagent *find(const char *name)
{
	for (size_t i = 0; i < n_agents; i++)
		if (strcmp(simagent_name(agents[i]), name) == 0)
			return agents[i];
	return NULL;
}

static void command(char *line)
{
	char *what = strchr(line, ' ');
	struct simagent *a;
	int r = -EINVAL;

	if (!what)
		return;
	*what++ = '\0';
	a = find(line);
	if (a && strncmp(what, "clone ", 6) == 0 && n_agents < AGENTS_MAX) {
		r = simagent_clone(a, what + 6, &agents[n_agents], NULL);
		if (r == 0)
			n_agents++;
	} else if (a) {
		r = simagent_order(a, what);
	}
	(void)printf("%s %s %s\n", line, r < 0 ? "error" : "ok", what);
}

static int on_stdin(sd_event_source *source, int fd, uint32_t revents,
		    void *userdata)
{
	static char buf[LINE_MAX_];
	static size_t have;
	ssize_t n;
	char *end;

	(void)revents, (void)userdata;
	n = read(fd, buf + have, sizeof(buf) - 1 - have);
	if (n <= 0)
		return sd_event_exit(sd_event_source_get_event(source), 0);
	have += (size_t)n;
	buf[have] = '\0';
	while ((end = strchr(buf, '\n'))) {
		*end = '\0';
		command(buf);
		have -= (size_t)(end + 1 - buf);
		memmove(buf, end + 1, have + 1);
	}
	if (have == sizeof(buf) - 1)
		have = 0;
	return 0;
}

static int read_bundle(const char *dir, struct fault *f)
{
	char path[4096];
	struct bundle b;
	struct ip_endpoint e;
	char *pem = NULL;
	size_t size = 0;
	int r;

	(void)snprintf(path, sizeof(path), "%s/bundle", dir);
	r = bundle_read(path, &b, f);
	if (r < 0)
		return r;
	memcpy(fleet.cluster_id, b.cluster_id, 16);
	memcpy(fleet.trust_root, b.trust_root, 32);
	r = ip_endpoint_parse(b.coordinators.v[0], &e);
	bundle_done(&b);
	if (r < 0)
		return r;
	memcpy(&fleet.address, e.addr.bytes, 4);
	fleet.port = e.port;
	(void)snprintf(path, sizeof(path), "%s/ca.pem", dir);
	r = file_read(path, 65536, &pem, &size, f);
	fleet.ca_pem = pem;
	return r;
}

static int start_agents(const char *prefix, size_t count, const char *tokens,
			struct fault *f)
{
	_cleanup_fclose_ FILE *file = tokens ? fopen(tokens, "re") : NULL;
	char name[64], line[128];
	int r = 0;

	if (tokens && !file)
		return fault_errno(f, -errno, tokens, "cannot open");
	for (size_t i = 0; r == 0 && i < count && i < AGENTS_MAX; i++) {
		line[0] = '\0';
		if (file && !fgets(line, sizeof(line), file))
			return fault_set(f, -ENODATA, tokens, "too few");
		line[strcspn(line, "\n")] = '\0';
		(void)snprintf(name, sizeof(name), "%s%zu", prefix, i + 1);
		r = simagent_new(&fleet, name, line, &agents[n_agents], f);
		if (r == 0)
			n_agents++;
	}
	return r;
}

int main(int argc, char **argv)
{
	struct fault f = FAULT_INIT;
	struct rlimit files;
	char text[700];
	int r;

	if (argc < 4)
		return 2;
	key_init();
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	r = sd_event_default(&fleet.event);
	if (r >= 0)
		r = read_bundle(argv[1], &f);
	if (r >= 0)
		r = sd_event_add_io(fleet.event, NULL, 0, EPOLLIN, on_stdin,
				    NULL);
	if (r >= 0)
		r = start_agents(argv[2], (size_t)atol(argv[3]), argv[4], &f);
	if (r >= 0)
		r = sd_event_loop(fleet.event);
	if (r < 0)
		(void)fprintf(stderr, "simfleet: %s\n",
			      fault_str(&f, text, sizeof(text)));
	for (size_t i = 0; i < n_agents; i++)
		(void)simagent_free(agents[i]);
	return r < 0;
}

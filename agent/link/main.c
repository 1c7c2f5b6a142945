/* garboard-link: see link.h and garboard-link(8). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#include "agent/link/link.h"
#include "common/log.h"
#include "common/trim.h"
#include "proto/keys.h"

/* SIGTERM and SIGINT end the loop; a lost peer is an error code, not a
 * signal. */
static int catch_signals(sd_event *event)
{
	sigset_t set;
	int r;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -1;
	r = sd_event_add_signal(event, NULL, SIGTERM, NULL, NULL);
	return r < 0 ? r : sd_event_add_signal(event, NULL, SIGINT, NULL, NULL);
}

int main(int argc, char **argv)
{
	struct link_config config;
	struct fault f = FAULT_INIT;
	struct link *link = NULL;
	sd_event *event = NULL;
	int r;

	if (argc > 1) {
		bool version = strcmp(argv[1], "--version") == 0;

		(void)fprintf(version ? stdout : stderr, "%s\n", version ?
			      "garboard-link " GARBOARD_VERSION :
			      "usage: garboard-link [--version]");
		return version ? 0 : 2;
	}
	key_init();
	r = link_config_read(&config, &f);
	if (r >= 0)
		r = sd_event_new(&event);
	if (r >= 0)
		r = catch_signals(event);
	if (r >= 0)
		r = link_new(event, &config, &link, &f);
	if (r < 0) {
		log_error("%s: %s", f.err ? f.object : "garboard-link",
			  f.err ? f.text : strerror(-r));
	} else {
		(void)sd_notify(0, "READY=1\nSTATUS=waiting for garboard-agent");
		trim_memory();
		r = sd_event_loop(event);
	}
	(void)link_free(link);
	(void)sd_event_unref(event);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

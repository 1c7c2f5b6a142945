/*
 * garboard-lockdown: closes the armed egress classes before there is a
 * network, from one flat file, and ends. It needs no bus, no network, no
 * coordinator and no agent; a bad file makes it close more, never less.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "agent/ledger/watch.h"
#include "agent/lockdown/policy.h"
#include "agent/lockdown/stand.h"
#include "common/file.h"
#include "common/log.h"

#define STATE_DIR "/var/lib/garboard"

static int usage(void)
{
	(void)fprintf(stderr, "usage: garboard-lockdown [--state-dir DIR]\n"
			      "       garboard-lockdown --version\n");
	return 2;
}

static void tell(const struct policy *p)
{
	char text[FAULT_OBJECT_MAX + FAULT_TEXT_MAX + 4];
	const struct desired_egress *e = &p->d->egress;

	if (p->why.err)
		log_error("%s", fault_str(&p->why, text, sizeof(text)));
	switch (p->source) {
	case POLICY_NONE:
		log_info("no class was ever armed here: nothing to close");
		break;
	case POLICY_WHOLE:
		log_info("%zu class%s to close", e->n_classes,
			 e->n_classes == 1 ? "" : "es");
		break;
	case POLICY_PARTS:
		log_error("no copy of the lockdown file is whole: what still "
			  "checks is closed (classes: %zu)", e->n_classes);
		break;
	case POLICY_RECORD:
		log_warning("no lockdown file is sound: closed by the armed "
			    "record (classes: %zu)", e->n_classes);
		break;
	case POLICY_BUILT_IN:
		log_error("nothing sound is left of the lockdown file: the "
			  "built-in form closes every mark a class may have "
			  "and %zu prefixes that can still be read",
			  e->classes[0].sources.n);
		break;
	}
}

/* For the agent's log: since when what stands has stood (watch.h). */
static void leave_word(bool all)
{
	char line[128];

	/* Where it cannot be written, the log says "nobody looked". */
	if (ledger_stood_format(clock_boottime(), clock_realtime(), all, line,
				sizeof(line)) == 0)
		(void)file_write(LEDGER_STOOD, 0644, line, strlen(line), NULL);
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "state-dir", required_argument, NULL, 's' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	const char *state_dir = STATE_DIR;
	struct policy p;
	int c, r;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'V') {
			(void)printf("garboard-lockdown %s\n",
				     GARBOARD_VERSION);
			return 0;
		}
		if (c != 's')
			return usage();
		state_dir = optarg;
	}
	if (optind != argc)
		return usage();
	r = policy_read(state_dir, &p);
	if (r < 0) {
		log_error("cannot be read: %s", strerror(-r));
		return 1;
	}
	tell(&p);
	r = p.d->egress.n_classes ? stand(&p) : 0;
	leave_word(r == 0);
	policy_done(&p);
	return r < 0 ? 1 : 0;
}

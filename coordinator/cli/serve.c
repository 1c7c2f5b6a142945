#include "coordinator/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/log.h"
#include "common/parse.h"
#include "coordinator/cli/verbs.h"
#include "coordinator/server.h"

const struct cli_option serve_options_table[] = {
	{ "listen", 0, "ADDR:PORT",
	  "where to listen (may repeat; default: as init recorded)" },
	{ "stale-after", 0, "TIME", "silence after which a node is stale" },
	{ "probe", 0, "TIME", "how long a doubled session may take to answer" },
	{ "for-parent", 0, "FD", NULL },
	{ NULL, 0, NULL, NULL },
};

static int read_time(const struct cli *cli, const char *name, usec *ret_time)
{
	const char *text = cli_value(cli, name);

	if (!text)
		return CLI_DONE;
	if (cli_duration(text, ret_time) < 0 || *ret_time == 0)
		return cli_usage("--%s %s: such as 90s, 15m, 24h or 7d", name,
				 text);
	return CLI_DONE;
}

int verb_serve(struct cli *cli, struct fault *f)
{
	const char *listen_at[SERVER_LISTEN_MAX];
	struct serve_options o = {
		.state = cli->state_dir,
		.listen = listen_at,
		.parent_fd = -1,
	};
	const char *text = cli_value(cli, "for-parent");
	uint32_t fd = 0;
	size_t at = 0;
	int r;

	if ((r = read_time(cli, "stale-after", &o.fleet.stale_after)) ||
	    (r = read_time(cli, "probe", &o.fleet.probe)))
		return r;
	if (text) {
		if (parse_u32(text, &fd) < 0 || fcntl((int)fd, F_GETFD) < 0)
			return cli_usage("--for-parent is not for people");
		o.parent_fd = (int)fd;
		/* What it notes is in the store; the verb owns the screen. */
		log_set_level(LOG_LEVEL_WARNING);
	}
	while ((text = cli_next(cli, "listen", &at))) {
		if (o.n_listen == SERVER_LISTEN_MAX)
			return cli_usage("at most %d --listen",
					 SERVER_LISTEN_MAX);
		listen_at[o.n_listen++] = text;
	}
	r = serve_run(&o, f);
	return r == -EALREADY ? CLI_REFUSED : r;
}

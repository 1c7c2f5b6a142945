#include "coordinator/cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/ip.h"
#include "common/parse.h"
#include "spec/print.h"
#include "spec/spec.h"

#define TARGET_FILE "cluster"	/* "garboard-cluster-1", name, id: lines */
#define TARGET_MAGIC "garboard-cluster-1"

static void base_dir(char *buf)
{
	const char *xdg = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	if (geteuid() == 0)
		(void)snprintf(buf, CLI_PATH_MAX, "/var/lib/garboard");
	else if (xdg && xdg[0])
		(void)snprintf(buf, CLI_PATH_MAX, "%s/garboard", xdg);
	else
		(void)snprintf(buf, CLI_PATH_MAX, "%s/.local/state/garboard",
			       home && home[0] ? home : ".");
}

int cli_target_write(const char *state, const char *name,
		     const uint8_t cluster_id[16], struct fault *f)
{
	char path[CLI_PATH_MAX + 16], text[256], id[33];

	format_hex(cluster_id, 16, id);
	(void)snprintf(path, sizeof(path), "%s/%s", state, TARGET_FILE);
	(void)snprintf(text, sizeof(text), "%s\n%s\n%s\n", TARGET_MAGIC, name,
		       id);
	return file_write(path, 0600, text, strlen(text), f);
}

/* 1: there and read, 0: there is no cluster in it. */
static int target_read(const char *state, char *ret_name,
		       uint8_t ret_id[16], struct fault *f)
{
	char path[CLI_PATH_MAX + 16];
	_cleanup_free_ char *text = NULL;
	char *line[3] = { NULL }, *save = NULL;
	size_t size = 0;
	int r;

	(void)snprintf(path, sizeof(path), "%s/%s", state, TARGET_FILE);
	r = file_read(path, 1024, &text, &size, f);
	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r < 0)
		return r;
	for (int i = 0; i < 3; i++)
		line[i] = strtok_r(i ? NULL : text, "\n", &save);
	if (!line[2] || strcmp(line[0], TARGET_MAGIC) != 0 ||
	    !parse_is_label(line[1]) || parse_hex(line[2], ret_id, 16) < 0)
		return fault_set(f, -EBADMSG, path, "is not readable: restore "
						    "the state directory");
	(void)snprintf(ret_name, CLI_NAME_MAX, "%s", line[1]);
	return 1;
}

/* ---- the spec ---- */

static int load_spec(struct cli *cli, struct fault *f)
{
	struct spec_problems problems = SPEC_PROBLEMS_INIT;
	const char *file = cli->file;
	_cleanup_free_ char *text = NULL;
	int r;

	if (!file && (cli->verb->needs & CLI_NEEDS_SPEC)) {
		file = CLI_DEFAULT_SPEC;
		if (access(file, F_OK) < 0)
			return cli_usage("no spec: give one with -f FILE (no "
					 "./%s here)", file);
	}
	if (!file)
		return CLI_DONE;
	r = spec_load(file, 0, &problems, &cli->spec, f);
	if (problems.n &&
	    spec_print_problems(file, &problems, &text) == 0)
		(void)fputs(text, stderr);
	spec_problems_done(&problems);
	if (r == -EINVAL || r == -ENOENT) {
		if (f->err == 0)
			(void)fault_set(f, r, file, "is no valid spec; nothing "
						    "was started");
		return CLI_USAGE;
	}
	return r < 0 ? r : CLI_DONE;
}

/* ---- the name ---- */

static int list_known(const char *base, char *buf, size_t size,
		      char *ret_last)
{
	_cleanup_closedir_ DIR *dir = opendir(base);
	char path[CLI_PATH_MAX + 300];
	struct dirent *d;
	uint8_t id[16];
	int n = 0;

	buf[0] = '\0';
	while (dir && (d = readdir(dir))) {
		char name[CLI_NAME_MAX];
		size_t used = strlen(buf);

		if (!parse_is_label(d->d_name))
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", base, d->d_name);
		if (target_read(path, name, id, NULL) <= 0)
			continue;
		(void)snprintf(buf + used, size - used, "%s%s",
			       used ? ", " : "", d->d_name);
		(void)snprintf(ret_last, CLI_NAME_MAX, "%.63s", d->d_name);
		n++;
	}
	return n;
}

/*
 * Both may name it, and then must agree. Neither: only where one cluster
 * exists at all, which the banner then names.
 */
static int settle_name(struct cli *cli, const char *state)
{
	const char *spec = cli->spec ? cli->spec->cluster.v : NULL;
	char base[CLI_PATH_MAX], known[512], last[CLI_NAME_MAX];
	const char *name = cli->cluster ? cli->cluster : spec;

	if (cli->cluster && spec && strcmp(cli->cluster, spec) != 0)
		return cli_usage("-c %s, but %s is the spec of cluster %s; "
				 "nothing was done",
				 cli->cluster, cli->spec->file, spec);
	if (name && !parse_is_label(name))
		return cli_usage("\"%s\" is no name of a cluster", name);
	if (name) {
		(void)snprintf(cli->name, sizeof(cli->name), "%s", name);
		return CLI_DONE;
	}
	if (state)
		return CLI_DONE;	/* it says so itself */
	base_dir(base);
	switch (list_known(base, known, sizeof(known), last)) {
	case 0:
		return cli_usage("which cluster? none is known below %s: give "
				 "-c CLUSTER or -f FILE, or make one with "
				 "garboard init -c CLUSTER", base);
	case 1:
		(void)snprintf(cli->name, sizeof(cli->name), "%s", last);
		return CLI_DONE;
	}
	return cli_usage("which cluster? -c one of: %s", known);
}

/* ---- the state directory ---- */

static int check_pin(const struct cli *cli, struct fault *f)
{
	char id[33];

	if (!cli->spec || !cli->spec->cluster_id.v)
		return CLI_DONE;
	format_hex(cli->cluster_id, 16, id);
	if (strcmp(id, cli->spec->cluster_id.v) == 0)
		return CLI_DONE;
	(void)fault_set(f, -EACCES, cli->spec->file,
			"pins clusterId %s, but %s belongs to cluster %s; "
			"nothing was changed",
			cli->spec->cluster_id.v, cli->state_dir, id);
	return CLI_REFUSED;
}

static int unknown_cluster(const struct cli *cli)
{
	char base[CLI_PATH_MAX], known[512], last[CLI_NAME_MAX];
	int n;

	base_dir(base);
	n = list_known(base, known, sizeof(known), last);
	return cli_usage("unknown cluster %s: %s holds none; known: %s; "
			 "garboard init -c %s makes it",
			 cli->name[0] ? cli->name : "(unnamed)",
			 cli->state_dir, n ? known : "none",
			 cli->name[0] ? cli->name : "CLUSTER");
}

static int settle_state(struct cli *cli, const char *state, struct fault *f)
{
	char base[CLI_PATH_MAX], name[CLI_NAME_MAX] = "";
	int r;

	if (state) {
		/* Whole, so that the banner leaves nothing to guess. */
		if (state[0] == '/' || !getcwd(base, sizeof(base)))
			base[0] = '\0';
		r = snprintf(cli->state_dir, sizeof(cli->state_dir), "%s%s%s",
			     base, base[0] ? "/" : "", state);
		if (r < 0 || (size_t)r >= sizeof(cli->state_dir))
			return cli_usage("%s is too long", state);
	} else {
		base_dir(base);
		r = snprintf(cli->state_dir, sizeof(cli->state_dir), "%s/%s",
			     base, cli->name);
		if (r < 0 || (size_t)r >= sizeof(cli->state_dir))
			return cli_usage("%s is too long", base);
	}
	r = target_read(cli->state_dir, name, cli->cluster_id, f);
	if (r < 0)
		return r;
	cli->initialised = r > 0;
	if (!cli->initialised)
		return cli->verb->needs & CLI_NEEDS_CLUSTER ?
			       unknown_cluster(cli) :
			       CLI_DONE;
	if (cli->name[0] && strcmp(cli->name, name) != 0)
		return cli_usage("%s is the state of cluster %s, not of %s; "
				 "nothing was done",
				 cli->state_dir, name, cli->name);
	(void)snprintf(cli->name, sizeof(cli->name), "%s", name);
	return check_pin(cli, f);
}

int cli_target(struct cli *cli, struct fault *f)
{
	const unsigned int any = CLI_NEEDS_SPEC | CLI_NEEDS_CLUSTER |
				 CLI_NEEDS_NAME | CLI_TAKES_SPEC;
	const char *state = cli->state ? cli->state : getenv("GARBOARD_STATE");
	int r;

	if (!(cli->verb->needs & any))
		return CLI_DONE;
	if (state && !state[0])
		state = NULL;
	r = load_spec(cli, f);
	if (r != CLI_DONE)
		return r;
	/* A spec alone names a cluster; its state need not exist. */
	if (!(cli->verb->needs & (CLI_NEEDS_CLUSTER | CLI_NEEDS_NAME)) &&
	    !cli->spec)
		return CLI_DONE;
	r = settle_name(cli, state);
	return r != CLI_DONE ? r : settle_state(cli, state, f);
}

void cli_banner(const struct cli *cli)
{
	char id[33] = "not initialised", vip[IP_TEXT_MAX] = "not given";

	if (!cli->name[0])
		return;
	if (cli->initialised)
		format_hex(cli->cluster_id, 16, id);
	if (cli->spec && cli->spec->control_plane.endpoint.v.family)
		(void)ip_addr_format(&cli->spec->control_plane.endpoint.v, vip);
	(void)fprintf(stderr, "garboard: cluster %s (%s), endpoint %s, state "
			      "%s\n", cli->name, id, vip, cli->state_dir);
}

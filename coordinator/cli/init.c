#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/ip.h"
#include "common/parse.h"
#include "coordinator/cli/verbs.h"
#include "coordinator/serve.h"
#include "coordinator/signer.h"
#include "coordinator/store.h"
#include "spec/spec.h"

#define LIST_MAX 1024	/* of addresses, as one text */

const struct cli_option init_options[] = {
	{ "listen", 0, "ADDR:PORT", "where to listen (may repeat)" },
	{ "address", 0, "ADDR:PORT",
	  "where nodes dial (may repeat; default: of the spec)" },
	{ NULL, 0, NULL, NULL },
};

/* Blank-separated, each checked. */
static int join_given(const struct cli *cli, const char *option, char *buf,
		      struct fault *f)
{
	struct ip_endpoint e;
	const char *text;
	size_t at = 0;

	while ((text = cli_next(cli, option, &at))) {
		size_t used = strlen(buf);

		if (ip_endpoint_parse(text, &e) < 0 || e.proto)
			return fault_set(f, -EINVAL, text,
					 "is no address with a port, such as "
					 "192.0.2.5:7643");
		if (used + strlen(text) + 2 > LIST_MAX)
			return fault_set(f, -E2BIG, option, "too many");
		(void)snprintf(buf + used, LIST_MAX - used, "%s%s",
			       used ? " " : "", text);
	}
	return 0;
}

static void join_spec(const struct spec *spec, char *buf)
{
	char text[IP_TEXT_MAX];

	for (size_t i = 0; i < spec->coordinator.addresses.n; i++) {
		size_t used = strlen(buf);

		(void)ip_endpoint_format(&spec->coordinator.addresses.v[i].v,
					 text);
		(void)snprintf(buf + used, LIST_MAX - used, "%s%s",
			       used ? " " : "", text);
	}
}

static int fill_store(const struct cli *cli, const char *dir,
		      const uint8_t cluster_id[16], struct fault *f)
{
	char listen_at[LIST_MAX] = "", addresses[LIST_MAX] = "", id[33];
	struct store *s CLEANUP(store_freep) = NULL;
	char path[CLI_PATH_MAX + 64];
	int r;

	if ((r = join_given(cli, "listen", listen_at, f)) < 0 ||
	    (r = join_given(cli, "address", addresses, f)) < 0)
		return r;
	if (!addresses[0] && cli->spec)
		join_spec(cli->spec, addresses);
	(void)snprintf(path, sizeof(path), "%s/%s", dir, SERVE_STORE);
	format_hex(cluster_id, 16, id);
	if ((r = store_open(path, &s, f)) < 0 ||
	    (r = store_epoch_start(s, 1, f)) < 0 ||
	    (r = store_value_put(s, "cluster", cli->name, f)) < 0 ||
	    (r = store_value_put(s, "cluster-id", id, f)) < 0)
		return r;
	if (listen_at[0])
		r = store_value_put(s, "listen", listen_at, f);
	if (r == 0 && addresses[0])
		r = store_value_put(s, "addresses", addresses, f);
	return r;
}

/* Nothing is left behind of a failed init but an empty directory's name. */
static void remove_all(const char *dir)
{
	static const char *const names[] = {
		"trust-root.key", "trust-root.pub", "ca.key", "ca.crt",
		"coordinator.key", "coordinator.crt", "order.key",
		"order.statement", "seal.key", "cluster", "store.db",
		"store.db-wal", "store.db-shm",
	};
	char path[CLI_PATH_MAX + 64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		(void)unlink(path);
	}
	(void)rmdir(dir);
}

/* All is made aside and appears by one rename, or not at all. */
static int make_aside(const struct cli *cli, const char *dir,
		      uint8_t ret_id[16], struct fault *f)
{
	int r;

	if ((r = signer_init(dir, cli->name, time(NULL), ret_id, f)) < 0 ||
	    (r = fill_store(cli, dir, ret_id, f)) < 0 ||
	    (r = cli_target_write(dir, cli->name, ret_id, f)) < 0)
		return r;
	if (rename(dir, cli->state_dir) < 0)
		return fault_errno(f, -errno, cli->state_dir,
				   "cannot be made; an empty or absent "
				   "directory is needed");
	r = file_sync_parent(cli->state_dir);
	return r < 0 ? fault_errno(f, r, cli->state_dir, "is not on disk") : 0;
}

static int make_parent(const char *path, struct fault *f)
{
	_cleanup_free_ char *parent = strdup(path);
	char *slash = parent ? strrchr(parent, '/') : NULL;

	if (!slash || slash == parent)
		return 0;
	*slash = '\0';
	return file_mkdirs(parent, 0700, f);
}

static void report(const struct cli *cli, const uint8_t id[16])
{
	char hex[33];

	format_hex(id, 16, hex);
	(void)printf("cluster %s has id %s\n"
		     "state: %s\n"
		     "Move %s/trust-root.key to a safe place: only a new "
		     "epoch of orders needs it.\n"
		     "Next: garboard serve -c %s, then garboard enroll bundle "
		     "-c %s -o DIR --token\n",
		     cli->name, hex, cli->state_dir, cli->state_dir, cli->name,
		     cli->name);
}

int verb_init(struct cli *cli, struct fault *f)
{
	char dir[CLI_PATH_MAX + 32];
	uint8_t id[16];
	int r;

	if (cli->initialised)
		return fault_set(f, -EEXIST, cli->state_dir,
				 "has cluster %s already; nothing was changed",
				 cli->name),
		       CLI_REFUSED;
	if (!cli->name[0])
		return cli_usage("init needs -c CLUSTER or -f FILE");
	if (cli->check) {
		(void)printf("would make cluster %s in %s\n", cli->name,
			     cli->state_dir);
		return CLI_DONE;
	}
	r = make_parent(cli->state_dir, f);
	if (r < 0)
		return r;
	(void)snprintf(dir, sizeof(dir), "%s.init.XXXXXX", cli->state_dir);
	if (!mkdtemp(dir))	/* 0700 */
		return fault_errno(f, -errno, dir, "cannot be made");
	r = make_aside(cli, dir, id, f);
	if (r < 0) {
		remove_all(dir);
		return r;
	}
	report(cli, id);
	return CLI_DONE;
}

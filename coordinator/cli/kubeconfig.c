#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "coordinator/bringup.h"
#include "coordinator/cli/verbs.h"
#include "coordinator/control_client.h"

const struct cli_option kubeconfig_options[] = {
	{ "to", 0, "FILE", "where to write it, 0600 (- for standard output; "
			   "default: STATE/kubeconfig)" },
	{ NULL, 0, NULL, NULL },
};

/* One file per cluster (B21); the screen only when asked for by "-". */
int verb_kubeconfig(struct cli *cli, struct fault *f)
{
	struct control *c CLEANUP(control_freep) = NULL;
	const char *to = cli_value(cli, "to");
	char path[CLI_PATH_MAX + 16];
	char *text = NULL;
	size_t size;
	int r;

	(void)snprintf(path, sizeof(path), "%s/kubeconfig", cli->state_dir);
	if (!to)
		to = path;
	if (cli->check) {
		(void)printf("would write %s\n", to);
		return CLI_DONE;
	}
	if ((r = cli_control(cli, &c, f)) < 0 ||
	    (r = bringup_kubeconfig(cli->spec, c, &text, f)) < 0)
		return r;
	size = strlen(text);
	if (strcmp(to, "-") == 0) {
		(void)fputs(text, stdout);
	} else {
		r = file_write(to, 0600, text, size, f);
		if (r == 0)
			(void)printf("%s\n", to);
	}
	control_secret_free(text, size);
	return r;
}

int verb_manifests(struct cli *cli, struct fault *f)
{
	struct control *c CLEANUP(control_freep) = NULL;
	int r;

	r = cli_control(cli, &c, f);
	return r < 0 ? r : bringup_manifests(cli->spec, c, stdout, f);
}

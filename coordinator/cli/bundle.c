#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/ip.h"
#include "common/parse.h"
#include "coordinator/cli/bundle.h"
#include "coordinator/cli/verbs.h"
#include "coordinator/control_client.h"
#include "coordinator/signer.h"
#include "proto/keys.h"
#include "spec/spec.h"

#define TOKEN_LIFE (UINT64_C(30) * 86400 * USEC_PER_SEC)

const struct cli_option enroll_bundle_options[] = {
	{ "output", 'o', "DIR", "where to write it (becomes "
				"/etc/garboard/bundle of the image)" },
	{ "token", 0, NULL, "with a one-time token: one machine may use it" },
	{ "node", 0, "NODE", "the token gives this name" },
	{ "life", 0, "TIME", "of the token (default 30d)" },
	{ "address", 0, "ADDR:PORT", "where nodes dial (may repeat; default: "
				     "of the spec, or as init recorded)" },
	{ NULL, 0, NULL, NULL },
};

static void add(struct bundle_text *t, const char *key, const char *value)
{
	int n = snprintf(t->buf + t->n, sizeof(t->buf) - t->n, "%s %s\n", key,
			 value);

	if (n < 0 || (size_t)n >= sizeof(t->buf) - t->n)
		t->full = true;
	else
		t->n += (size_t)n;
}

static int add_address(struct bundle_text *t, const char *value, struct fault *f)
{
	struct ip_endpoint e;

	if (ip_endpoint_parse(value, &e) < 0 || e.proto || e.port == 0)
		return fault_set(f, -EINVAL, value,
				 "is no address with a port, such as "
				 "192.0.2.5:7643");
	add(t, "coordinator", value);
	return 1;
}

/* Given, else of the spec, else recorded. The count, or negative. */
static int add_addresses(const struct cli *cli, struct control *c,
			 struct bundle_text *t, struct fault *f)
{
	_cleanup_free_ char *recorded = NULL;
	char buf[IP_TEXT_MAX], *at, *save = NULL;
	const char *given;
	size_t next = 0;
	int n = 0, r = 1;

	while (r > 0 && (given = cli_next(cli, "address", &next)))
		n += r = add_address(t, given, f);
	if (n == 0 && r > 0 && cli->spec)
		for (size_t i = 0; i < cli->spec->coordinator.addresses.n; i++)
			n += add_address(
				t,
				ip_endpoint_format(&cli->spec->coordinator
							    .addresses.v[i].v,
						   buf),
				f);
	if (n == 0 && r > 0) {
		r = control_value_get(c, "addresses", &recorded, f);
		if (r == -ENOENT)
			return fault_clear(f), 0;
		if (r < 0)
			return r;
		for (at = strtok_r(recorded, " ", &save), r = 1; at && r > 0;
		     at = strtok_r(NULL, " ", &save))
			n += r = add_address(t, at, f);
	}
	return r < 0 ? r : n;
}

static int add_token(const struct bundle_token *token, struct control *c,
		     struct bundle_text *t, struct fault *f)
{
	json_t *reply = NULL;
	int r;

	r = cli_ask(c,
		    json_pack("{ss ss si sI}", "op", "token", "node",
			      token->node ? token->node : "", "count", 1,
			      "life", (json_int_t)token->life),
		    &reply, f);
	if (r < 0)
		return r;
	add(t, "token",
	    json_string_value(
		    json_array_get(json_object_get(reply, "tokens"), 0)));
	json_decref(reply);
	return 0;
}

int bundle_compose(const struct cli *cli, const struct signer *s,
		   struct control *c, const struct bundle_token *token,
		   struct bundle_text *t, struct fault *f)
{
	char hex[65];
	int r;

	t->n = 0;
	t->full = false;
	add(t, "format", "garboard-bundle-1");
	format_hex(signer_cluster_id(s), 16, hex);
	add(t, "cluster-id", hex);
	add(t, "cluster", cli->name);
	format_hex(signer_trust_root(s), 32, hex);
	add(t, "trust-root", hex);
	r = add_addresses(cli, c, t, f);
	if (r < 0)
		return r;
	if (r == 0)
		return fault_set(f, -EINVAL, "bundle",
				 "where do nodes dial? give -f FILE or "
				 "--address ADDR:PORT");
	r = token ? add_token(token, c, t, f) : 0;
	if (r == 0 && t->full)
		r = fault_set(f, -E2BIG, "bundle", "too many addresses");
	return r;
}

static int write_bundle(const char *dir, const struct bundle_text *t, const char *ca,
			struct fault *f)
{
	char path[CLI_PATH_MAX];
	int r;

	r = file_mkdirs(dir, 0700, f);
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "%s/ca.pem", dir);
	r = file_write(path, 0644, ca, strlen(ca), f);
	if (r < 0)
		return r;
	/* May hold a token: root's alone. */
	(void)snprintf(path, sizeof(path), "%s/bundle", dir);
	return file_write(path, 0600, t->buf, t->n, f);
}

int verb_enroll_bundle(struct cli *cli, struct fault *f)
{
	struct control *c CLEANUP(control_freep) = NULL;
	struct signer *s CLEANUP(signer_freep) = NULL;
	const char *dir = cli_value(cli, "output");
	struct bundle_token token = { cli_value(cli, "node"), TOKEN_LIFE };
	const char *life = cli_value(cli, "life");
	bool wanted = cli_value(cli, "token") != NULL;
	struct bundle_text t;
	int r;

	if (!dir)
		return cli_usage("enroll bundle needs -o DIR");
	if (token.node && !wanted)
		return cli_usage("--node goes with --token");
	if (life && cli_duration(life, &token.life) < 0)
		return cli_usage("--life %s: such as 24h or 30d", life);
	if (cli->check) {
		(void)printf("would write %s/bundle and %s/ca.pem\n", dir,
			     dir);
		return CLI_DONE;
	}
	if ((r = signer_open(cli->state_dir, &s, f)) < 0 ||
	    (r = cli_control(cli, &c, f)) < 0)
		return r;
	r = bundle_compose(cli, s, c, wanted ? &token : NULL, &t, f);
	if (r == 0)
		r = write_bundle(dir, &t, signer_ca_pem(s), f);
	key_wipe(t.buf, sizeof(t.buf));
	if (r < 0)
		return r;
	(void)printf("%s: put it into the image as /etc/garboard/bundle, "
		     "owned by root%s\n",
		     dir,
		     wanted ? "; its token works once" : "");
	return CLI_DONE;
}

/*
 * enroll ssh: an existing machine becomes a node. Each part asks first
 * whether it is done, so that running it again is how it is resumed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/ip.h"
#include "common/parse.h"
#include "coordinator/cli/bundle.h"
#include "coordinator/cli/verbs.h"
#include "coordinator/control_client.h"
#include "coordinator/machine.h"
#include "coordinator/signer.h"
#include "coordinator/ssh.h"
#include "proto/keys.h"
#include "spec/spec.h"

#define DEB_MAX (64u << 20)
#define PROBE_TIME (60 * USEC_PER_SEC)
#define START_TIME (120 * USEC_PER_SEC)
#define INSTALL_TIME (900 * USEC_PER_SEC)
#define WAIT_TIME "90s"
#define TOKEN_LIFE (3600 * USEC_PER_SEC)

const struct cli_option enroll_ssh_options[] = {
	{ "deb", 0, "FILE", "install this package garboard-agent there" },
	{ "node", 0, "NODE", "the name it gets (default: of the spec's node "
			     "with that name or address, else its hostname)" },
	{ "port", 0, "PORT", "of its sshd" },
	{ "ssh-config", 0, "FILE", "instead of your own ssh configuration" },
	{ "address", 0, "ADDR:PORT", "where it dials (as for enroll bundle)" },
	{ "wait", 0, "TIME", "until it is seen (default " WAIT_TIME ")" },
	{ NULL, 0, NULL, NULL },
};

struct job {
	const struct cli *cli;
	struct control *c;
	struct signer *s;
	struct ssh_target target;
	char *deb;		/* its bytes; NULL: none was given */
	size_t deb_size;
	usec wait;
	struct machine m;
	char name[CONTROL_NAME_MAX];
	char cluster_id[33];
};

/* As ssh_run(), but a script that fails is an error. */
static int run(struct job *j, const char *script,
	       const struct ssh_input *input, usec time, char **ret_output,
	       struct fault *f)
{
	_cleanup_free_ char *output = NULL;
	int r = ssh_run(&j->target, script, input, control_interrupt_fd(j->c),
			clock_boottime() + time, &output, f);

	if (r != 0)
		return r < 0 ? r : -EREMOTEIO;
	if (ret_output)
		*ret_output = take_ptr(output);
	return 0;
}

/* ---- what is there ---- */

static int probe(struct job *j, struct fault *f)
{
	_cleanup_free_ char *output = NULL;
	int r = run(j, machine_probe, NULL, PROBE_TIME, &output, f);

	if (r == 0)
		r = machine_parse(output, &j->m, f);
	if (r == 0)
		j->target.sudo = !j->m.root;
	return r;
}

/* The node of the spec that HOST means, by name or address; or NULL. */
static const struct spec_node *of_spec(const struct spec *spec,
				       const char *host)
{
	const char *at = strchr(host, '@');
	struct ip_addr addr;
	size_t i;

	host = at ? at + 1 : host;
	if (spec_find_node(spec, host, &i) == 0)
		return &spec->nodes[i];
	if (ip_addr_parse(host, &addr) < 0)
		return NULL;
	for (i = 0; i < spec->n_nodes; i++)
		if (memcmp(&spec->nodes[i].address.v, &addr, sizeof(addr)) == 0)
			return &spec->nodes[i];
	return NULL;
}

static int pick_name(struct job *j)
{
	const struct spec *spec = j->cli->spec;
	const struct spec_node *node =
		spec ? of_spec(spec, j->target.host) : NULL;
	const char *given = cli_value(j->cli, "node");
	const char *name = given ? given : node ? node->name.v : j->m.hostname;
	size_t i;

	(void)snprintf(j->name, sizeof(j->name), "%s", name);
	if (!given && !node)
		j->name[strcspn(j->name, ".")] = '\0';
	if (!parse_is_label(j->name))
		return cli_usage("\"%s\" is no name of a node: give --node",
				 j->name);
	if (spec && spec_find_node(spec, j->name, &i) < 0)
		return cli_usage("%s has no node %s: add it, or give the name "
				 "with --node; nothing was changed",
				 spec->file, j->name);
	return CLI_DONE;
}

static int judge(struct job *j, enum machine_verdict *ret_verdict,
		 struct fault *f)
{
	struct machine_case c = { .cluster_id = j->cluster_id,
				  .name = j->name };
	struct control_nodes nodes;
	char id[33];
	int r = control_nodes(j->c, &nodes, f);

	if (r < 0)
		return r;
	for (size_t i = 0; i < nodes.n; i++) {
		const struct control_node *n = &nodes.v[i];

		format_hex(n->id, 16, id);
		if (strcmp(id, j->m.node_id) == 0) {
			c.known = true;
			c.known_as = n->name;
			c.bad = n->revoked ? "was revoked" : n->held;
		} else if (!n->revoked && strcmp(n->name, j->name) == 0) {
			c.name_taken = true;
		}
	}
	r = machine_judge(&j->m, &c, ret_verdict, f);
	control_nodes_done(&nodes);
	return r;
}

/* ---- what is done ---- */

static int install(struct job *j, struct fault *f)
{
	_cleanup_free_ char *output = NULL;
	uint8_t digest[KEY_SHA256_SIZE];
	char head[2 * KEY_SHA256_SIZE + 2];
	struct ssh_input in = { .v = { { head, sizeof(head) - 1 },
				       { j->deb, j->deb_size } } };
	char version[64] = "";
	int r;

	if (key_sha256(j->deb, j->deb_size, digest) < 0)
		return fault_set(f, -EIO, "sha256", "cannot be made");
	format_hex(digest, sizeof(digest), head);
	head[sizeof(head) - 2] = '\n';
	r = run(j, machine_install, &in, INSTALL_TIME, &output, f);
	if (r < 0)
		return r;
	(void)sscanf(output, "%*s %63s", version);
	fault_sanitize(version);
	(void)printf("%s: garboard-agent %s %s\n", j->target.host, version,
		     strncmp(output, "same", 4) == 0 ? "is installed" :
		     strncmp(output, "up", 2) == 0 ? "installed, an upgrade" :
						     "installed");
	return 0;
}

static int write_bundle(struct job *j, struct fault *f)
{
	const struct bundle_token token = { j->name, TOKEN_LIFE };
	const char *ca = signer_ca_pem(j->s);
	struct bundle_text t;
	struct ssh_input in;
	int r;

	r = bundle_compose(j->cli, j->s, j->c, &token, &t, f);
	if (r == 0 && t.n + 3 > sizeof(t.buf))
		r = fault_set(f, -E2BIG, "bundle", "too many addresses");
	if (r == 0) {
		(void)snprintf(t.buf + t.n, 3, ".\n");
		in = (struct ssh_input){ .v = { { ca, strlen(ca) },
						{ ".\n", 2 },
						{ t.buf, t.n + 2 } } };
		r = run(j, machine_bundle, &in, START_TIME, NULL, f);
	}
	key_wipe(&t, sizeof(t));
	if (r == 0)
		(void)printf("%s: bundle of cluster %s written, units enabled "
			     "and started\n", j->target.host, j->cli->name);
	return r;
}

/* ---- until it is seen ---- */

/* 1: connected, 0: not yet; -EACCES: no orders will go to it. */
static int seen(struct job *j, uint64_t *revision, struct fault *f)
{
	struct control_nodes nodes;
	const struct control_node *n;
	int r = control_nodes(j->c, &nodes, f);

	if (r < 0)
		return r;
	*revision = nodes.revision;
	n = control_nodes_find(&nodes, j->name);
	if (n && n->held[0])
		r = fault_set(f, -EACCES, j->name, "%s", n->held);
	else
		r = n && n->connected;
	control_nodes_done(&nodes);
	return r;
}

static int not_seen(struct job *j, struct fault *f)
{
	_cleanup_free_ char *why = NULL;

	if (run(j, machine_why, NULL, PROBE_TIME, &why, NULL) < 0 || !*why)
		why = strdup("(it does not answer any more)");
	for (char *p = why; p && *p; p++)
		if (*p == '\n')
			*p = p[1] ? ' ' : '\0';
	if (why)
		fault_sanitize(why);
	return fault_set(f, -ETIMEDOUT, j->name,
			 "was set up but not seen in time; it goes on trying, "
			 "and the same command goes on from here. Can it reach "
			 "the coordinator? It says: %s", why ? why : "");
}

static int wait_seen(struct job *j, struct fault *f)
{
	usec deadline = clock_boottime() + j->wait;
	uint64_t revision = 0;
	int r = seen(j, &revision, f);

	while (r == 0 && clock_boottime() < deadline) {
		r = control_wait(j->c, revision, deadline, f);
		if (r >= 0)
			r = seen(j, &revision, f);
	}
	if (r == 0)
		return not_seen(j, f);
	if (r > 0)
		(void)printf("%s: seen, connected\n", j->name);
	return r < 0 ? r : 0;
}

/* ---- the verb ---- */

static int would(const struct job *j, enum machine_verdict verdict)
{
	if (j->deb)
		(void)printf("%s: would install the package (there: %s)\n",
			     j->target.host,
			     j->m.agent[0] ? j->m.agent : "none");
	if (verdict == MACHINE_SET_UP)
		(void)printf("%s: would write the bundle of cluster %s, with a "
			     "token for %s, and start the units\n",
			     j->target.host, j->cli->name, j->name);
	else
		(void)printf("%s: is node %s already\n", j->target.host,
			     j->name);
	return CLI_DONE;
}

static int enroll(struct job *j, struct fault *f)
{
	enum machine_verdict verdict;
	int r = probe(j, f);

	if (r == 0)
		r = machine_usable(&j->m, j->deb != NULL, f);
	if (r == 0)
		r = pick_name(j);
	if (r != 0)
		return r;
	(void)printf("%s: %s, %s, garboard-agent %s\n", j->target.host,
		     j->m.os, j->m.arch[0] ? j->m.arch : "no dpkg",
		     j->m.agent[0] ? j->m.agent : "not installed");
	r = judge(j, &verdict, f);
	if (r == -EACCES)
		return CLI_REFUSED;
	if (r < 0)
		return r;
	if (j->cli->check)
		return would(j, verdict);
	if (j->deb)
		r = install(j, f);
	if (r == 0)
		r = verdict == MACHINE_SET_UP ?
			    write_bundle(j, f) :
			    run(j, machine_start, NULL, START_TIME, NULL, f);
	if (r == 0 && verdict == MACHINE_KEEP)
		(void)printf("%s: is node %s already, its units are enabled\n",
			     j->target.host, j->name);
	return r < 0 ? r : wait_seen(j, f);
}

static int read_options(struct job *j, struct fault *f)
{
	const char *deb = cli_value(j->cli, "deb");
	const char *wait = cli_value(j->cli, "wait");
	uint16_t port;

	if (!ssh_check_host(j->target.host))
		return cli_usage("\"%s\" is no [USER@]HOST", j->target.host);
	if (j->target.port && parse_port(j->target.port, &port) < 0)
		return cli_usage("--port %s is no port", j->target.port);
	if (cli_duration(wait ? wait : WAIT_TIME, &j->wait) < 0)
		return cli_usage("--wait %s: such as 90s or 5m", wait);
	if (deb && file_read(deb, DEB_MAX, &j->deb, &j->deb_size, f) < 0)
		return cli_usage("--deb %s cannot be read", deb);
	return CLI_DONE;
}

int verb_enroll_ssh(struct cli *cli, struct fault *f)
{
	struct control *c CLEANUP(control_freep) = NULL;
	struct signer *s CLEANUP(signer_freep) = NULL;
	struct job j = { .cli = cli,
			 .target = { .host = cli->args[0],
				     .config = cli_value(cli, "ssh-config"),
				     .port = cli_value(cli, "port") } };
	int r = read_options(&j, f);

	if (r == CLI_DONE && ((r = signer_open(cli->state_dir, &s, f)) < 0 ||
			      (r = cli_control(cli, &c, f)) < 0)) {
		free(j.deb);
		return r;
	}
	j.c = c;
	j.s = s;
	format_hex(cli->cluster_id, 16, j.cluster_id);
	if (r == CLI_DONE)
		r = enroll(&j, f);
	free(j.deb);
	return r;
}

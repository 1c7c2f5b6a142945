#include "coordinator/k3s_server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/parse.h"
#include "coordinator/ask.h"
#include "coordinator/cluster.h"
#include "coordinator/control_client.h"
#include "coordinator/progress.h"
#include "proto/keys.h"
#include "proto/up.h"
#include "spec/spec.h"

#define TOKEN_BYTES 32
/* One failed start may be transient; k3s restarts every 5 s by its unit. */
#define RESTARTS_TOLERATED 3

static int set_extra(const struct spec *spec, struct order_k3s_configure *c)
{
	size_t i, n;

	if (spec->k3s.n_config == 0)
		return 0;
	c->extra = calloc(spec->k3s.n_config, sizeof(*c->extra));
	if (!c->extra)
		return -ENOMEM;
	for (i = 0; i < spec->k3s.n_config; i++) {
		const struct spec_k3s_option *o = &spec->k3s.config[i];
		struct config_entry *e = &c->extra[c->n_extra++];

		(void)snprintf(e->key, sizeof(e->key), "%s", o->key.v);
		e->list = o->list;
		for (n = 0; n < o->values.n; n++)
			if (strlist_add(&e->values, o->values.v[n].v) < 0)
				return -ENOMEM;
	}
	return 0;
}

static int set_node(const struct spec *spec, const struct spec_node *node,
		    struct order_k3s_configure *c)
{
	char text[ORDER_VALUE_MAX];
	size_t i;

	(void)snprintf(c->node_name, sizeof(c->node_name), "%s", node->name.v);
	c->node_ip = node->address.v;
	c->cluster_cidr = spec->network.pod_cidr.v;
	c->service_cidr = spec->network.service_cidr.v;
	for (i = 0; i < node->labels.n; i++) {
		(void)snprintf(text, sizeof(text), "%s=%s",
			       node->labels.v[i].key.v,
			       node->labels.v[i].value.v);
		if (strlist_add(&c->labels, text) < 0)
			return -ENOMEM;
	}
	for (i = 0; i < node->taints.n; i++)
		if (strlist_add(&c->taints, node->taints.v[i].v) < 0)
			return -ENOMEM;
	return spec_tls_sans(spec, &c->tls_sans);
}

/* Everything but the token and the way in, which differ by situation. */
static int make_configure(const struct spec *spec, size_t node,
			  struct order **ret_order)
{
	struct order *o = order_new(ORDER_K3S_CONFIGURE);
	int r = o ? set_node(spec, &spec->nodes[node], &o->configure) :
		    -ENOMEM;

	if (r == 0)
		r = set_extra(spec, &o->configure);
	if (r < 0) {
		(void)order_free(o);
		return r;
	}
	*ret_order = o;
	return 0;
}

static int config_digest(const struct spec *spec, size_t node, char ret_hex[65],
			 struct fault *f)
{
	struct order *o = NULL;
	uint8_t *bytes = NULL, digest[32];
	size_t size = 0;
	int r = make_configure(spec, node, &o);

	if (r == 0) {
		/* Any address makes it a complete order of a joiner. */
		o->configure.join_address = spec->nodes[node].address.v;
		r = order_encode(o, &bytes, &size, f);
	}
	if (r == 0)
		r = key_sha256(bytes, size, digest);
	if (r == 0)
		format_hex(digest, sizeof(digest), ret_hex);
	free(bytes);
	(void)order_free(o);
	return r;
}

static void value_name(const struct spec *spec, size_t node, char buf[128])
{
	(void)snprintf(buf, 128, "k3s-config-%s", spec->nodes[node].name.v);
}

int k3s_server_configured(const struct step_env *env, size_t node,
			  struct fault *f)
{
	struct fault scratch = FAULT_INIT;
	_cleanup_free_ char *have = NULL;
	char want[65], name[128];
	int r = config_digest(env->spec, node, want, f);

	if (r < 0)
		return r;
	value_name(env->spec, node, name);
	r = control_value_get(env->control, name, &have, &scratch);
	if (r == -ENOENT)
		return 1;
	if (r < 0)
		return fault_set(f, r, scratch.object, "%s", scratch.text);
	return strcmp(have, want) == 0;
}

/* The token is made here before founding, and only ever leaves sealed. */
static int get_token(const struct step_env *env, char **ret_token,
		     size_t *ret_size, struct fault *f)
{
	struct fault scratch = FAULT_INIT;
	uint8_t raw[TOKEN_BYTES];
	char hex[2 * TOKEN_BYTES + 1];
	int r = control_secret_get(env->control, CLUSTER_SECRET_TOKEN,
				   ret_token, ret_size, &scratch);

	if (r != -ENOENT)
		return r < 0 ? fault_set(f, r, scratch.object, "%s",
					 scratch.text) : 0;
	r = key_random(raw, sizeof(raw));
	if (r < 0)
		return fault_errno(f, r, "k3s token", "cannot be made");
	format_hex(raw, sizeof(raw), hex);
	r = control_secret_put(env->control, CLUSTER_SECRET_TOKEN, hex,
			       strlen(hex), f);
	explicit_bzero(raw, sizeof(raw));
	explicit_bzero(hex, sizeof(hex));
	if (r < 0)
		return r;
	return control_secret_get(env->control, CLUSTER_SECRET_TOKEN,
				  ret_token, ret_size, f);
}

/*
 * Joiners get the full form with the hash of the cluster CA, so that they
 * trust no other server (contract 3.1); the founder has no CA yet.
 */
static int full_token(const struct step_env *env, const char *secret,
		      char *buf, size_t size)
{
	struct cluster_credential cred = cluster_credential_get(env->cluster);
	uint8_t digest[32];
	char hex[65];
	int r;

	if (!cred.ca)
		return snprintf(buf, size, "%s", secret) < (int)size ? 0 :
								 -E2BIG;
	r = key_sha256(cred.ca, strlen(cred.ca), digest);
	if (r < 0)
		return r;
	format_hex(digest, sizeof(digest), hex);
	return snprintf(buf, size, "K10%s::server:%s", hex, secret) <
			       (int)size ? 0 : -E2BIG;
}

static int seal_token(const struct step_env *env, const char *node,
		      bool founding, struct sealed *ret_sealed,
		      struct fault *f)
{
	struct control_nodes nodes = { 0 };
	const struct control_node *n;
	char context[SEAL_CONTEXT_MAX], id[33], token[512];
	char *secret = NULL;
	size_t size = 0;
	int r = control_nodes(env->control, &nodes, f);

	if (r < 0)
		return r;
	n = control_nodes_find(&nodes, node);
	r = n ? get_token(env, &secret, &size, f) :
		fault_set(f, -ENOENT, node, "is not enrolled");
	if (r == 0) {
		if (founding)
			(void)snprintf(token, sizeof(token), "%s", secret);
		else
			r = full_token(env, secret, token, sizeof(token));
		format_hex(n->id, sizeof(n->id), id);
		(void)snprintf(context, sizeof(context), SEAL_CONTEXT_TOKEN,
			       id);
		if (r == 0)
			r = seal_to(n->seal_key, context, token,
				    strlen(token), ret_sealed, f);
		explicit_bzero(token, sizeof(token));
		control_secret_free(secret, size);
	}
	control_nodes_done(&nodes);
	return r;
}

/*
 * A node does not tell its architecture; with hashes for several, the
 * common one is sent, and a node of another refuses the binary by its hash.
 */
static const char *binary_hash(const struct spec *spec)
{
	if (spec->k3s.sha256.n == 1)
		return spec->k3s.sha256.v[0].value.v;
	return spec_k3s_sha256(spec, "amd64");
}

static int install(const struct step_env *env, const char *name,
		   struct fault *f)
{
	const char *sha256 = binary_hash(env->spec);
	struct order *o = order_new(ORDER_K3S_INSTALL);
	int r;

	if (!o)
		return -ENOMEM;
	progress_wait(env->progress, name, "verifying the k3s binary");
	o->install.from_image =
		env->spec->k3s.source.v == SPEC_SOURCE_IMAGE;
	(void)snprintf(o->install.version, sizeof(o->install.version), "%s",
		       env->spec->k3s.version.v);
	r = sha256 ? parse_hex(sha256, o->install.sha256, 32) : -EINVAL;
	if (r < 0)
		r = fault_set(f, r, name, "the spec has no sha256 of k3s for "
			      "its architecture");
	else
		r = ask(env->control, name, o, env->times->install, NULL, f);
	(void)order_free(o);
	return r;
}

static int configure(const struct step_env *env, const struct k3s_server *s,
		     const char *name, struct fault *f)
{
	char hex[65], value[128];
	struct order *o = NULL;
	int r = make_configure(env->spec, s->node, &o);

	if (r < 0)
		return r;
	o->configure.join_address = s->join_address;
	o->configure.cluster_init = s->mode == START_FOUND;
	r = seal_token(env, name, s->mode == START_FOUND, &o->configure.token,
		       f);
	if (r == 0)
		r = ask(env->control, name, o, env->times->order, NULL, f);
	(void)order_free(o);
	if (r == 0)
		r = config_digest(env->spec, s->node, hex, f);
	if (r < 0)
		return r;
	value_name(env->spec, s->node, value);
	return control_value_put(env->control, value, hex, f);
}

static bool unit_known(const struct step_env *env, const char *name)
{
	struct fault scratch = FAULT_INIT;
	struct control_nodes nodes = { 0 };
	const struct control_node *n;
	bool known;

	if (control_nodes(env->control, &nodes, &scratch) < 0)
		return false;
	n = control_nodes_find(&nodes, name);
	known = n && n->report &&
		strncmp(n->report->report.k3s.unit_state, "not-found", 9) != 0;
	control_nodes_done(&nodes);
	return known;
}

/*
 * A start job that failed is not the end: the unit tries again by itself,
 * and who waits for it tells its last lines.
 */
static int start(const struct step_env *env, const struct k3s_server *s,
		 const char *name, struct fault *f)
{
	struct order *o = order_new(ORDER_K3S_START);
	struct fault failed = FAULT_INIT;
	int r;

	if (!o)
		return -ENOMEM;
	o->start.mode = s->mode;
	if (s->intent) {
		o->start.intent = *s->intent;
		o->start.has_intent = true;
	}
	r = ask(env->control, name, o, env->times->order, NULL, &failed);
	(void)order_free(o);
	if (r == -EREMOTEIO && unit_known(env, name))
		return 0;
	return r < 0 ? fault_set(f, r, failed.object, "%s", failed.text) : 0;
}

bool k3s_server_active(const struct k3s_status *s)
{
	return strncmp(s->unit_state, "active", 6) == 0;
}

static int failed_start(const char *name, const struct k3s_status *s,
			const char *how, int err, struct fault *f)
{
	char lines[400] = "";
	size_t i, n = 0;

	for (i = 0; i < s->last_lines.n && n < sizeof(lines); i++)
		n += (size_t)snprintf(lines + n, sizeof(lines) - n, "%s%s",
				      i ? " | " : "", s->last_lines.v[i]);
	return fault_set(f, err, name, "k3s %s (unit %s, %u restarts). k3s "
			 "says: %s", how, s->unit_state, s->restarts,
			 lines[0] ? lines : "(nothing)");
}

/* 1 active, 0 not yet, or the reason why it never will be. */
static int judge_unit(const struct step_env *env, const char *name,
		      const struct k3s_status *s, uint32_t restarts_before,
		      struct fault *f)
{
	bool fatal = s->last_lines.n > 0 &&
		     k3s_line_is_cause(s->last_lines.v[0]);

	if (k3s_server_active(s))
		return 1;
	if (strncmp(s->unit_state, "failed", 6) == 0)
		return failed_start(name, s, "failed", -EREMOTEIO, f);
	if (s->restarts >= restarts_before + RESTARTS_TOLERATED && fatal)
		return failed_start(name, s, "does not come up", -EREMOTEIO,
				    f);
	progress_wait(env->progress, name, "k3s to be ready (unit %s%s%s)",
		      s->unit_state, s->last_lines.n ? "; " : "",
		      s->last_lines.n ? s->last_lines.v[0] : "");
	return 0;
}

static int wait_active(const struct step_env *env, const char *name,
		       struct fault *f)
{
	usec deadline = clock_boottime() + env->times->start;
	uint32_t before = UINT32_MAX;

	for (;;) {
		struct control_nodes nodes = { 0 };
		const struct control_node *n;
		uint64_t revision;
		usec now;
		int r = control_nodes(env->control, &nodes, f);

		if (r < 0)
			return r;
		now = clock_boottime();
		revision = nodes.revision;
		n = control_nodes_find(&nodes, name);
		if (n && n->connected && n->report) {
			const struct k3s_status *s = &n->report->report.k3s;

			if (before == UINT32_MAX)
				before = s->restarts;
			r = judge_unit(env, name, s, before, f);
			if (r == 0 && now >= deadline)
				r = failed_start(name, s, "was not ready in "
						 "time", -ETIMEDOUT, f);
		} else if (now >= deadline) {
			r = fault_set(f, -ETIMEDOUT, name,
				      "was not heard of while k3s started");
		}
		control_nodes_done(&nodes);
		if (r != 0)
			return r < 0 ? r : 0;
		r = control_wait(env->control, revision,
				 now + env->times->poll, f);
		if (r < 0)
			return r;
	}
}

int k3s_server_bring(const struct step_env *env, const struct k3s_server *s,
		     struct fault *f)
{
	const char *name = env->spec->nodes[s->node].name.v;
	int r = install(env, name, f);

	if (r == 0)
		r = configure(env, s, name, f);
	if (r == 0)
		r = start(env, s, name, f);
	if (r == 0)
		r = wait_active(env, name, f);
	if (r == 0)
		progress_fact(env->progress, name, "k3s is active");
	return r;
}

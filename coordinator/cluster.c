#include "coordinator/cluster.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/parse.h"
#include "coordinator/ask.h"
#include "coordinator/control_client.h"
#include "proto/up.h"

#define CLUSTER_CLIENTS_MAX 512
/* In the place of a credential that is of no use any more. */
#define CREDENTIAL_DROPPED "dropped"

struct client {
	char node[CONTROL_NAME_MAX];
	enum stream_target target;
	struct ip_addr address;
	struct kube *kube;
};

struct cluster {
	struct control *control;
	uint16_t port;
	usec order_timeout;
	uint8_t seal_key[32];
	char *ca, *cert, *key;
	struct client *clients;
	size_t n_clients;
};

int cluster_new(struct control *control, uint16_t port, usec order_timeout,
		struct cluster **ret_cluster, struct fault *f)
{
	struct control_info info;
	struct cluster *c;
	int r = control_info(control, &info, f);

	if (r < 0)
		return r;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->control = control;
	c->port = port;
	c->order_timeout = order_timeout;
	memcpy(c->seal_key, info.seal_key, sizeof(c->seal_key));
	*ret_cluster = c;
	return 0;
}

static void wipe(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

struct cluster *cluster_free(struct cluster *c)
{
	size_t i;

	if (!c)
		return NULL;
	for (i = 0; i < c->n_clients; i++)
		(void)kube_free(c->clients[i].kube);
	free(c->clients);
	wipe(&c->ca);
	wipe(&c->cert);
	wipe(&c->key);
	free(c);
	return NULL;
}

static char *json_text(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text && *text ? strdup(text) : NULL;
}

/* {"ca": PEM, "cert": PEM, "key": PEM}, as the agent seals it. */
static int take_credential(struct cluster *c, const char *text,
			   struct fault *f)
{
	json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

	wipe(&c->ca);
	wipe(&c->cert);
	wipe(&c->key);
	c->ca = json_text(o, "ca");
	c->cert = json_text(o, "cert");
	c->key = json_text(o, "key");
	json_decref(o);
	if (c->ca && c->cert && c->key)
		return 1;
	return fault_set(f, -EPROTO, "admin credential",
			 "is not what a server's agent seals");
}

static int node_context(struct cluster *c, const char *node, char *buf,
			size_t size, struct fault *f)
{
	struct control_nodes nodes = { 0 };
	const struct control_node *n;
	char id[33];
	int r = control_nodes(c->control, &nodes, f);

	if (r < 0)
		return r;
	n = control_nodes_find(&nodes, node);
	if (n) {
		format_hex(n->id, sizeof(n->id), id);
		(void)snprintf(buf, size, SEAL_CONTEXT_CREDENTIAL, id);
	}
	control_nodes_done(&nodes);
	return n ? 0 : fault_set(f, -ENOENT, node, "is not enrolled");
}

/* 0 while the server has no credential to give. */
static int read_from_node(struct cluster *c, const char *node,
			  struct fault *f)
{
	struct order *o = order_new(ORDER_READ_CREDENTIAL);
	struct fault scratch = FAULT_INIT;
	char context[SEAL_CONTEXT_MAX], *data = NULL;
	struct up *u = NULL;
	size_t size = 0;
	int r;

	if (!o)
		return -ENOMEM;
	o->credential.kind = CREDENTIAL_ADMIN;
	memcpy(o->credential.seal_key, c->seal_key, sizeof(c->seal_key));
	r = ask(c->control, node, o, c->order_timeout, &u, &scratch);
	(void)order_free(o);
	if (r == -EREMOTEIO)
		return 0;
	if (r < 0)
		return fault_set(f, r, scratch.object, "%s", scratch.text);
	r = node_context(c, node, context, sizeof(context), f);
	if (r == 0)
		r = control_unseal(c->control, &u->result.credential, context,
				   &data, &size, f);
	(void)up_free(u);
	if (r < 0)
		return r;
	r = take_credential(c, data, f);
	if (r > 0)
		r = control_secret_put(c->control, CLUSTER_SECRET_ADMIN, data,
				       size, f);
	control_secret_free(data, size);
	return r < 0 ? r : 1;
}

int cluster_credential(struct cluster *c, const char *node, struct fault *f)
{
	struct fault scratch = FAULT_INIT;
	char *data = NULL;
	size_t size = 0;
	int r;

	if (c->key)
		return 1;
	r = control_secret_get(c->control, CLUSTER_SECRET_ADMIN, &data, &size,
			       &scratch);
	if (r < 0 && r != -ENOENT)
		return fault_set(f, r, scratch.object, "%s", scratch.text);
	if (r == -ENOENT || strcmp(data, CREDENTIAL_DROPPED) == 0)
		r = read_from_node(c, node, f);
	else
		r = take_credential(c, data, f);
	if (data)
		control_secret_free(data, size);
	return r;
}

int cluster_credential_drop(struct cluster *c, struct fault *f)
{
	size_t i;

	for (i = 0; i < c->n_clients; i++)
		(void)kube_free(c->clients[i].kube);
	c->n_clients = 0;
	wipe(&c->ca);
	wipe(&c->cert);
	wipe(&c->key);
	return control_secret_put(c->control, CLUSTER_SECRET_ADMIN,
				  CREDENTIAL_DROPPED,
				  strlen(CREDENTIAL_DROPPED), f);
}

struct cluster_credential cluster_credential_get(const struct cluster *c)
{
	return (struct cluster_credential){ c->ca, c->cert, c->key };
}

static bool interrupted(void *userdata)
{
	return control_interrupted(userdata);
}

static struct client *find_client(struct cluster *c, const char *node,
				  enum stream_target target,
				  const struct ip_addr *address)
{
	size_t i;

	for (i = 0; i < c->n_clients; i++) {
		struct client *k = &c->clients[i];

		if (k->target == target && strcmp(k->node, node) == 0 &&
		    ip_addr_cmp(&k->address, address) == 0)
			return k;
	}
	return NULL;
}

static int open_client(struct cluster *c, const char *node,
		       enum stream_target target,
		       const struct ip_addr *address, struct client *ret,
		       struct fault *f)
{
	char server[IP_TEXT_MAX];
	_cleanup_free_ char *path = NULL;
	int r = control_listen_stream(c->control, node, (int)target,
				      target == STREAM_API_SERVER ?
					      ip_addr_format(address, server) :
					      NULL,
				      &path, f);

	if (r < 0)
		return r;
	ret->target = target;
	ret->address = *address;
	(void)snprintf(ret->node, sizeof(ret->node), "%s", node);
	return kube_open(&(struct kube_target){ .socket_path = path,
						.address = *address,
						.port = c->port,
						.ca_pem = c->ca,
						.cert_pem = c->cert,
						.key_pem = c->key,
						.cancelled = interrupted,
						.userdata = c->control },
			 &ret->kube, f);
}

int cluster_kube(struct cluster *c, const char *node,
		 enum stream_target target, const struct ip_addr *address,
		 struct kube **ret_kube, struct fault *f)
{
	struct ip_addr local;
	struct client *k, *grown;
	int r;

	if (!c->key)
		return fault_set(f, -ENOKEY, node, "no admin credential yet");
	if (target == STREAM_API_LOCAL) {
		(void)ip_addr_parse("127.0.0.1", &local);
		address = &local;
	}
	k = find_client(c, node, target, address);
	if (k) {
		*ret_kube = k->kube;
		return 0;
	}
	if (c->n_clients >= CLUSTER_CLIENTS_MAX)
		return fault_set(f, -E2BIG, node, "too many API clients");
	grown = reallocarray(c->clients, c->n_clients + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	c->clients = grown;
	r = open_client(c, node, target, address, &grown[c->n_clients], f);
	if (r < 0)
		return r;
	*ret_kube = grown[c->n_clients++].kube;
	return 0;
}

int cluster_ready(struct kube *k, struct fault *f)
{
	_cleanup_free_ char *text = NULL;
	int r = kube_get_text(k, "/readyz", &text, f);

	if (r < 0)
		return r;
	if (strcmp(text, "ok") != 0)
		return fault_set(f, -EAGAIN, "/readyz",
				 "answered 200 but \"%.60s\", not \"ok\"",
				 text);
	return 0;
}

int cluster_members(struct cluster *c, const char *node,
		    struct kube_members *ret_members, struct fault *f)
{
	_cleanup_free_ char *text = NULL;
	struct kube *k = NULL;
	int r = cluster_kube(c, node, STREAM_API_LOCAL, NULL, &k, f);

	if (r == 0)
		r = kube_get_text(k, "/db/info", &text, f);
	if (r < 0)
		return r;
	r = kube_read_members(text, ret_members);
	if (r < 0)
		return fault_set(f, r, node, "/db/info lists no members");
	return 0;
}

int cluster_nodes(struct kube *k, struct kube_nodes *ret_nodes,
		  struct fault *f)
{
	json_t *list = NULL;
	int r = kube_get(k, "/api/v1/nodes", &list, f);

	if (r < 0)
		return r;
	r = kube_read_nodes(list, ret_nodes);
	json_decref(list);
	return r < 0 ? fault_set(f, r, "/api/v1/nodes", "is no node list") : 0;
}

int cluster_uid(struct kube *k, char ret_uid[64], struct fault *f)
{
	json_t *ns = NULL;
	const char *uid;
	int r = kube_get(k, "/api/v1/namespaces/kube-system", &ns, f);

	if (r < 0)
		return r;
	uid = json_string_value(
		json_object_get(json_object_get(ns, "metadata"), "uid"));
	if (uid && *uid && strlen(uid) < 64)
		(void)snprintf(ret_uid, 64, "%s", uid);
	else
		r = fault_set(f, -EPROTO, "kube-system", "has no usable uid");
	json_decref(ns);
	return r;
}

#include "agent/k3s_config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "agent/k3s_paths.h"
#include "common/cleanup.h"

struct out {
	char *text;
	size_t n;
	int error;
};

static void put(struct out *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void put(struct out *o, const char *fmt, ...)
{
	size_t room = K3S_CONFIG_MAX - o->n;
	va_list ap;
	int n;

	if (o->error)
		return;
	va_start(ap, fmt);
	n = vsnprintf(o->text + o->n, room, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= room)
		o->error = -E2BIG;
	else
		o->n += n;
}

/* Double-quoted YAML; control characters never get this far (order.h). */
static void put_quoted(struct out *o, const char *text)
{
	put(o, "\"");
	for (; *text; text++)
		put(o, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
	put(o, "\"\n");
}

static void put_string(struct out *o, const char *key, const char *value)
{
	put(o, "%s: ", key);
	put_quoted(o, value);
}

static void put_list(struct out *o, const char *key,
		     const struct strlist *values)
{
	size_t i;

	if (!values->n)
		return;
	put(o, "%s:\n", key);
	for (i = 0; i < values->n; i++) {
		put(o, "  - ");
		put_quoted(o, values->v[i]);
	}
}

static void put_prefix(struct out *o, const char *key,
		       const struct ip_prefix *p)
{
	char text[IP_TEXT_MAX];

	if (p->addr.family)
		put_string(o, key, ip_prefix_format(p, text));
}

static void put_way_in(struct out *o, const struct order_k3s_configure *c)
{
	char text[IP_TEXT_MAX];

	if (c->cluster_init)
		put(o, "cluster-init: true\n");
	if (!c->join_address.family)
		return;
	(void)ip_addr_format(&c->join_address, text);
	put(o, strchr(text, ':') ? "server: \"https://[%s]:6443\"\n" :
				   "server: \"https://%s:6443\"\n",
	    text);
}

/* What Garboard decides for every server, whatever the spec says (A37). */
static void put_server_fixed(struct out *o,
			     const struct order_k3s_configure *c)
{
	put_list(o, "tls-san", &c->tls_sans);
	put_prefix(o, "cluster-cidr", &c->cluster_cidr);
	put_prefix(o, "service-cidr", &c->service_cidr);
	put(o, "flannel-backend: \"none\"\n"
	       "disable-network-policy: true\n"
	       "disable-kube-proxy: true\n"
	       "disable:\n"
	       "  - \"traefik\"\n"
	       "  - \"servicelb\"\n"
	       "write-kubeconfig-mode: \"0600\"\n");
}

static void put_extra(struct out *o, const struct order_k3s_configure *c)
{
	size_t i;

	for (i = 0; i < c->n_extra; i++) {
		const struct config_entry *e = &c->extra[i];

		if (e->list)
			put_list(o, e->key, &e->values);
		else
			put_string(o, e->key, e->values.v[0]);
	}
}

int k3s_config_render(const struct order_k3s_configure *c, char **ret_text,
		      struct fault *f)
{
	struct out o = { .text = malloc(K3S_CONFIG_MAX) };
	char text[IP_TEXT_MAX];

	if (!o.text)
		return fault_errno(f, -ENOMEM, K3S_CONFIG, "not rendered");
	put(&o, "%s; it is replaced as a whole. Change the spec.\n",
	    K3S_CONFIG_MARK);
	put_string(&o, "node-name", c->node_name);
	put_string(&o, "node-ip", ip_addr_format(&c->node_ip, text));
	put_string(&o, "token-file", K3S_TOKEN_FILE);
	put_way_in(&o, c);
	if (!c->agent)
		put_server_fixed(&o, c);
	put_list(&o, "node-label", &c->labels);
	put_list(&o, "node-taint", &c->taints);
	put_extra(&o, c);
	if (o.error) {
		free(o.text);
		return fault_errno(f, o.error, K3S_CONFIG, "not rendered");
	}
	*ret_text = o.text;
	return 0;
}

/* Our own text has one shape: a key starts a line and ends with a colon. */
static bool renders(const char *config, const char *key, size_t n)
{
	const char *p;

	for (p = config; p; p = strchr(p, '\n')) {
		if (*p == '\n')
			p++;
		if (strncmp(p, key, n) == 0 && p[n] == ':')
			return true;
		if (!*p)
			break;
	}
	return false;
}

static int find_conflict(yaml_document_t *doc, const char *config,
			 char **ret_key)
{
	yaml_node_t *root = yaml_document_get_root_node(doc), *key;
	yaml_node_pair_t *pair;

	if (!root)
		return 0;
	if (root->type != YAML_MAPPING_NODE)
		return -EBADMSG;
	for (pair = root->data.mapping.pairs.start;
	     pair < root->data.mapping.pairs.top; pair++) {
		const char *text;

		key = yaml_document_get_node(doc, pair->key);
		if (!key || key->type != YAML_SCALAR_NODE)
			return -EBADMSG;
		text = (const char *)key->data.scalar.value;
		if (!renders(config, text, strlen(text)))
			continue;
		*ret_key = strdup(text);
		return *ret_key ? 1 : -ENOMEM;
	}
	return 0;
}

int k3s_config_conflict(const char *config, const char *dropin, size_t size,
			char **ret_key, struct fault *f)
{
	yaml_parser_t parser;
	yaml_document_t doc;
	int r = -EBADMSG;

	if (!yaml_parser_initialize(&parser))
		return fault_errno(f, -ENOMEM, "drop-in", "cannot be read");
	yaml_parser_set_input_string(&parser, (const unsigned char *)dropin,
				     size);
	if (yaml_parser_load(&parser, &doc)) {
		r = find_conflict(&doc, config, ret_key);
		yaml_document_delete(&doc);
	}
	yaml_parser_delete(&parser);
	return r < 0 ? fault_set(f, r, "drop-in", "is not a YAML mapping") : r;
}

#define UNIT_TEXT(verb)                                                     \
	"# Written by garboard-agent; changes are refused, not merged.\n"   \
	"[Unit]\n"                                                          \
	"Description=Lightweight Kubernetes, kept by garboard-agent\n"      \
	"Wants=network-online.target\n"                                     \
	"After=network-online.target\n"                                     \
	"\n"                                                                \
	"[Service]\n"                                                       \
	"Type=notify\n"                                                     \
	"EnvironmentFile=-/etc/default/%N\n"                                \
	"EnvironmentFile=-/etc/sysconfig/%N\n"                              \
	"KillMode=process\n"                                                \
	"Delegate=yes\n"                                                    \
	"User=root\n"                                                       \
	"LimitNOFILE=1048576\n"                                             \
	"LimitNPROC=infinity\n"                                             \
	"LimitCORE=infinity\n"                                              \
	"TasksMax=infinity\n"                                               \
	"TimeoutStartSec=0\n"                                               \
	"Restart=always\n"                                                  \
	"RestartSec=5s\n"                                                   \
	"ExecStartPre=-/sbin/modprobe br_netfilter\n"                       \
	"ExecStartPre=-/sbin/modprobe overlay\n"                            \
	"ExecStart=" K3S_BINARY " " verb "\n"                               \
	"\n"                                                                \
	"[Install]\n"                                                       \
	"WantedBy=multi-user.target\n"

const char *k3s_unit_text(bool agent)
{
	return agent ? UNIT_TEXT("agent") : UNIT_TEXT("server");
}

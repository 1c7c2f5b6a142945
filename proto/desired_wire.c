#include "proto/desired_wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "garboard.pb-c.h"
#include "proto/order.h"
#include "proto/order_allow.h"
#include "proto/wire_shared.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

/* "base" is what every build knows; a new meaning gets a new word. */
const char *const desired_features[] = { "base", "swap", "mounts",
					NULL };

static const struct wire_field sysctl_fields[] = {
	{ "key", WIRE_STRING, 0, .offset = offsetof(struct desired_sysctl, key),
	  .max = 256, .check = allow_sysctl_key },
	{ "value", WIRE_STRING, WIRE_OPTIONAL,
	  .offset = offsetof(struct desired_sysctl, value), .max = 1024 },
	{ "optional", WIRE_BOOL, 0, .offset = offsetof(struct desired_sysctl, optional) },
	{ "exclude", WIRE_BOOL, 0, .offset = offsetof(struct desired_sysctl, exclude) },
};

static const struct wire_message sysctl = {
	"Sysctl", &garboard__v1__sysctl__descriptor,
	sizeof(struct desired_sysctl), sysctl_fields, N(sysctl_fields), NULL,
};

static const struct wire_field tunnel_fields[] = {
	{ "name", WIRE_STRING, 0, .offset = offsetof(struct desired_tunnel, name),
	  .max = 16, .check = allow_interface },
	{ "kind", WIRE_ENUM, 0, .offset = offsetof(struct desired_tunnel, kind),
	  .max = TUNNEL_KIND_MAX - 1 },
	{ "endpoints", WIRE_ENDPOINTS, 0,
	  .offset = offsetof(struct desired_tunnel, endpoints),
	  .aux = offsetof(struct desired_tunnel, n_endpoints),
	  .max = DESIRED_ENDPOINTS_MAX },
	{ "table", WIRE_U32, 0, .offset = offsetof(struct desired_tunnel, table),
	  .min = 1 },
	{ "priority", WIRE_U32, 0, .offset = offsetof(struct desired_tunnel, priority),
	  .min = 200, .max = 32765 },
};

/* The kernel's own tables must never hold the tunnel's default (A16). */
static int check_tunnel(const void *value, struct fault *f)
{
	const struct desired_tunnel *t = value;

	if (t->table >= 253 && t->table <= 255)
		return fault_set(f, -EINVAL, "Tunnel.table",
				 "%u is the kernel's own", t->table);
	return 0;
}

static const struct wire_message tunnel = {
	"Tunnel", &garboard__v1__tunnel__descriptor,
	sizeof(struct desired_tunnel), tunnel_fields, N(tunnel_fields),
	check_tunnel,
};

static const struct wire_field class_fields[] = {
	{ "name", WIRE_STRING, 0, .offset = offsetof(struct desired_class, name),
	  .max = 64, .check = allow_node_name },
	{ "pods", WIRE_PREFIXES, 0, .offset = offsetof(struct desired_class, pods.v),
	  .aux = offsetof(struct desired_class, pods.n),
	  .max = DESIRED_PREFIXES_MAX },
	{ "sources", WIRE_PREFIXES, 0,
	  .offset = offsetof(struct desired_class, sources.v),
	  .aux = offsetof(struct desired_class, sources.n),
	  .max = DESIRED_PREFIXES_MAX },
	{ "mark", WIRE_U32, 0, .offset = offsetof(struct desired_class, mark) },
	{ "mask", WIRE_U32, 0, .offset = offsetof(struct desired_class, mask) },
	{ "dns", WIRE_ADDRS, 0, .offset = offsetof(struct desired_class, dns),
	  .aux = offsetof(struct desired_class, n_dns), .max = 16 },
	{ "gateway", WIRE_BOOL, 0, .offset = offsetof(struct desired_class, gateway) },
	{ "tunnel", WIRE_U32, 0, .offset = offsetof(struct desired_class, tunnel),
	  .max = DESIRED_TUNNELS_MAX - 1 },
	{ "loose_pods", WIRE_BOOL, 0,
	  .offset = offsetof(struct desired_class, loose_pods) },
};

static int check_class(const void *value, struct fault *f)
{
	const struct desired_class *c = value;

	if (c->mark & ~c->mask)
		return fault_set(f, -EINVAL, "Class.mark",
				 "has bits outside of its mask");
	return 0;
}

static const struct wire_message klass = {
	"Class", &garboard__v1__class__descriptor,
	sizeof(struct desired_class), class_fields, N(class_fields),
	check_class,
};

static const struct wire_field mount_fields[] = {
	{ "device", WIRE_STRING, 0, .offset = offsetof(struct desired_mount, device),
	  .max = 256, .check = order_is_device },
	{ "path", WIRE_STRING, 0, .offset = offsetof(struct desired_mount, path),
	  .max = 128, .check = order_is_mount_point },
	{ "fs", WIRE_STRING, 0, .offset = offsetof(struct desired_mount, fs),
	  .max = 8, .check = allow_filesystem },
	{ "format", WIRE_BOOL, 0, .offset = offsetof(struct desired_mount, format) },
};

static const struct wire_message mount = {
	"Mount", &garboard__v1__mount__descriptor,
	sizeof(struct desired_mount), mount_fields, N(mount_fields), NULL,
};

static const struct wire_field desired_fields[] = {
	{ "node", WIRE_STRING, WIRE_OPTIONAL, .offset = offsetof(struct desired, node),
	  .max = 64, .check = allow_node_name },
	{ "generation", WIRE_U64, 0, .offset = offsetof(struct desired, generation) },
	{ "modes", WIRE_ENUMS, 0, .offset = offsetof(struct desired, modes),
	  .min = RESOURCE_BASE, .max = RESOURCE_MAX, .text_max = MODE_MAX },
	{ "timezone", WIRE_STRING, 0, .offset = offsetof(struct desired, timezone),
	  .max = 128, .check = allow_timezone },
	{ "modules", WIRE_TEXTS, 0, .offset = offsetof(struct desired, modules),
	  .max = DESIRED_MODULES_MAX, .text_max = 64, .check = allow_module },
	{ "sysctls", WIRE_MESSAGES, 0, .offset = offsetof(struct desired, sysctls),
	  .aux = offsetof(struct desired, n_sysctls), .max = DESIRED_SYSCTLS_MAX,
	  .sub = &sysctl },
	{ "iscsid", WIRE_BOOL, 0, .offset = offsetof(struct desired, iscsid) },
	{ "swap_off", WIRE_BOOL, 0, .offset = offsetof(struct desired, swap_off) },
	{ "mounts", WIRE_MESSAGES, 0, .offset = offsetof(struct desired, mounts),
	  .aux = offsetof(struct desired, n_mounts), .max = DESIRED_MOUNTS_MAX,
	  .sub = &mount },
	{ "classes", WIRE_MESSAGES, 0, .offset = offsetof(struct desired, egress.classes),
	  .aux = offsetof(struct desired, egress.n_classes),
	  .max = DESIRED_CLASSES_MAX, .sub = &klass },
	{ "tunnels", WIRE_MESSAGES, 0, .offset = offsetof(struct desired, egress.tunnels),
	  .aux = offsetof(struct desired, egress.n_tunnels),
	  .max = DESIRED_TUNNELS_MAX, .sub = &tunnel },
	{ "local", WIRE_PREFIXES, 0, .offset = offsetof(struct desired, egress.local.v),
	  .aux = offsetof(struct desired, egress.local.n),
	  .max = DESIRED_PREFIXES_MAX },
	{ "uplinks", WIRE_TEXTS, 0, .offset = offsetof(struct desired, egress.uplinks),
	  .max = DESIRED_UPLINKS_MAX, .text_max = 16,
	  .check = allow_interface },
	{ "endpoint", WIRE_ADDR, WIRE_OPTIONAL,
	  .offset = offsetof(struct desired, cluster.endpoint) },
	{ "port", WIRE_U16, 0, .offset = offsetof(struct desired, cluster.port),
	  .max = UINT16_MAX },
	{ "node_address", WIRE_ADDR, WIRE_OPTIONAL,
	  .offset = offsetof(struct desired, cluster.node_address) },
	{ "servers", WIRE_ADDRS, 0, .offset = offsetof(struct desired, cluster.servers),
	  .aux = offsetof(struct desired, cluster.n_servers),
	  .max = DESIRED_SERVERS_MAX },
	{ "required_features", WIRE_TEXTS, 0,
	  .offset = offsetof(struct desired, required_features), .max = 64, .text_max = 64 },
};

static int check_feature(const char *word, struct fault *f)
{
	size_t i;

	for (i = 0; desired_features[i]; i++)
		if (strcmp(desired_features[i], word) == 0)
			return 0;
	return fault_set(f, -EOPNOTSUPP, "Desired.required_features",
			 "\"%s\" is not known to this build; upgrade "
			 "garboard-agent", word);
}

/* Only a gateway needs the tunnel; the drop stands on every node (A27). */
static int check_desired(const void *value, struct fault *f)
{
	const struct desired *d = value;
	size_t i;
	int r;

	for (i = 0; i < d->egress.n_classes; i++)
		if (d->egress.classes[i].gateway &&
		    d->egress.classes[i].tunnel >= d->egress.n_tunnels)
			return fault_set(f, -EINVAL, "Class.tunnel",
					 "names no tunnel of this node");
	for (i = 0; i < d->required_features.n; i++) {
		r = check_feature(d->required_features.v[i], f);
		if (r < 0)
			return r;
	}
	return 0;
}

const struct wire_message wire_desired = {
	"Desired", &garboard__v1__desired__descriptor, sizeof(struct desired),
	desired_fields, N(desired_fields), check_desired,
};

int desired_encode(const struct desired *d, uint8_t **ret_bytes,
		   size_t *ret_size, struct fault *f)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t size = 0;
	int r;

	r = wire_encode(&wire_desired, d, &bytes, &size, f);
	if (r < 0)
		return r;
	if (size > DESIRED_WIRE_MAX)
		return fault_set(f, -E2BIG, "Desired",
				 "is larger than %d bytes", DESIRED_WIRE_MAX);
	*ret_bytes = take_ptr(bytes);
	*ret_size = size;
	return 0;
}

int desired_decode(const void *bytes, size_t size, struct desired **ret_desired,
		   struct fault *f)
{
	struct desired *d = NULL;
	int r;

	if (size > DESIRED_WIRE_MAX)
		return fault_set(f, -E2BIG, "Desired",
				 "is larger than %d bytes", DESIRED_WIRE_MAX);
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	r = wire_decode(&wire_desired, bytes, size, d, f);
	if (r < 0) {
		free(d);
		return r;
	}
	*ret_desired = d;
	return 0;
}

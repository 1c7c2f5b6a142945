/*
 * desired.h - the desired state of one node, as a plain value.
 *
 * It is what the coordinator derives from cluster.yaml for one node, what
 * the agent keeps on disk and enforces without any coordinator, and what
 * every resource plans against. It holds facts, never mechanism: tables of
 * nftables, file names and unit names are the resources' own.
 *
 * The value owns everything it points to; desired_free() accepts NULL.
 * desired_wire.h turns it into bytes and back.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/ip.h"
#include "common/strlist.h"

enum mode {
	MODE_ENFORCE,		/* repair drift */
	MODE_OBSERVE,		/* report drift, change nothing */
	MODE_OFF,		/* do not look (never opens a kill-switch) */
	MODE_MAX,
};

enum resource_id {		/* order of convergence: fail closed first */
	RESOURCE_KILLSWITCH,
	RESOURCE_ROUTING,
	RESOURCE_MODULES,	/* before sysctl: keys come with modules */
	RESOURCE_SYSCTL,
	RESOURCE_TIMEZONE,
	RESOURCE_ISCSID,
	RESOURCE_SWAP,
	RESOURCE_MOUNTS,
	RESOURCE_MAX,
};

/* What every build knows: later ones are sent only when they differ. */
#define RESOURCE_BASE (RESOURCE_ISCSID + 1)

#define DESIRED_MODULES_MAX 256
#define DESIRED_SYSCTLS_MAX 512
#define DESIRED_MOUNTS_MAX 32
#define DESIRED_CLASSES_MAX 8
#define DESIRED_TUNNELS_MAX 8
#define DESIRED_PREFIXES_MAX 2048	/* per list */
#define DESIRED_ENDPOINTS_MAX 64	/* per tunnel */
#define DESIRED_SERVERS_MAX 99
#define DESIRED_UPLINKS_MAX 32

struct desired_sysctl {
	char *key;		/* sysctl.d(5) form, as the spec wrote it */
	char *value;		/* whitespace between words is one blank */
	bool optional;		/* absent key is in sync, not blocked */
	bool exclude;		/* no value: the key is out of all wildcards */
};

struct desired_mount {
	char *device;		/* a stable name: /dev/disk/by-.../... */
	char *path;
	char *fs;		/* "ext4" or "xfs" */
	bool format;		/* make it where the device is blank */
};

struct prefix_list {
	struct ip_prefix *v;
	size_t n;
};

enum tunnel_kind {
	TUNNEL_WIREGUARD,
	TUNNEL_OPENVPN,
	TUNNEL_KIND_MAX,
};

struct desired_tunnel {
	char *name;		/* interface name, at most 15 bytes */
	enum tunnel_kind kind;
	struct ip_endpoint *endpoints;
	size_t n_endpoints;
	uint32_t table;
	uint32_t priority;	/* of our ip rules, and the next ones */
};

struct desired_class {
	char *name;
	struct prefix_list pods;	/* its own pod pool, dropped everywhere */
	struct prefix_list sources;	/* host addresses and prefixes */
	uint32_t mark, mask;		/* mask 0: no mark */
	struct ip_addr *dns;		/* resolvers through the tunnel */
	size_t n_dns;
	bool loose_pods;		/* has pods without a pool of their own */
	bool gateway;			/* this node is one of its gateways */
	size_t tunnel;			/* index into egress.tunnels */
};

struct desired_egress {
	struct desired_class *classes;
	size_t n_classes;
	struct desired_tunnel *tunnels;
	size_t n_tunnels;
	struct prefix_list local;	/* never tunnelled; both families */
	struct strlist uplinks;		/* empty: automatic */
};

struct desired_cluster {
	struct ip_addr endpoint;	/* the VIP; family 0: none */
	uint16_t port;			/* of the Kubernetes API */
	struct ip_addr node_address;	/* this node's, family 0: none */
	struct ip_addr *servers;	/* node addresses of all servers */
	size_t n_servers;
};

struct desired {
	char *node;			/* name of the node; never NULL */
	uint64_t generation;		/* rises with each change; 0: a file */
	enum mode modes[RESOURCE_MAX];
	char *timezone;			/* never NULL */
	struct strlist modules;
	struct desired_sysctl *sysctls;
	size_t n_sysctls;
	bool iscsid;			/* storage needs the initiator */
	bool swap_off;			/* no swap, now and after a boot */
	struct desired_mount *mounts;
	size_t n_mounts;
	struct desired_egress egress;
	struct desired_cluster cluster;
	struct strlist required_features;	/* words of desired_wire.h */
};

/* Both agree on RESOURCE_MAX and MODE_MAX; NULL for unknown values. */
const char *resource_name(enum resource_id id);	/* "killswitch", ... */
const char *mode_name(enum mode mode);		/* "enforce", ... */

/* Zeroed value with node "" and timezone "Etc/UTC"; NULL when no memory. */
struct desired *desired_new(void);
struct desired *desired_free(struct desired *d);	/* returns NULL */

int desired_add_sysctl(struct desired *d, const char *key, const char *value,
		       bool optional);
int desired_add_mount(struct desired *d, const char *device, const char *path,
		      const char *fs, bool format);
int prefix_list_add(struct prefix_list *list, const struct ip_prefix *p);
bool prefix_list_contains(const struct prefix_list *list,
			  const struct ip_addr *a);

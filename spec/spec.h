/*
 * spec.h - cluster.yaml as a typed value with positions.
 *
 * Owns everything it points to: texts, lists and trees live exactly as long
 * as the spec. It says what people wrote, with defaults filled in; what
 * follows from it for one node is derive.h. No file but the one named is
 * read, nothing on the machine is looked at, and nothing is logged.
 *
 * Presence: every field carries the position it was written at; line 0
 * means it was not written and `v` is the default. A field that was written
 * badly has its position, and `v` NULL, family 0 or the default; the finding
 * is in the list of problems, and no spec is returned.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/fault.h"
#include "common/ip.h"
#include "proto/desired.h"
#include "spec/problem.h"

struct yaml_node;	/* spec/yaml.h */
struct spec_arena;

#define SPEC_API_VERSION "garboard/v1"
#define SPEC_NODES_MAX 4096
#define SPEC_DEFAULT_API_PORT 6443
#define SPEC_LABEL_PREFIX "garboard/"	/* node labels of our own */
#define SPEC_CLASS_INTERNET "internet"
#define SPEC_CLASS_VPN "vpn"

/* Values with the place they were written at. */
struct spec_str { const char *v; struct spec_pos pos; };
struct spec_num { uint64_t v; struct spec_pos pos; };
struct spec_flag { bool v; struct spec_pos pos; };
struct spec_enum { int v; struct spec_pos pos; };	/* of a named enum */
struct spec_addr { struct ip_addr v; struct spec_pos pos; };
struct spec_prefix { struct ip_prefix v; struct spec_pos pos; };
struct spec_endpoint { struct ip_endpoint v; struct spec_pos pos; };

struct spec_strs { struct spec_str *v; size_t n; struct spec_pos pos; };
struct spec_addrs { struct spec_addr *v; size_t n; struct spec_pos pos; };
struct spec_prefixes { struct spec_prefix *v; size_t n; struct spec_pos pos; };
struct spec_endpoints { struct spec_endpoint *v; size_t n; struct spec_pos pos; };

struct spec_pair {
	struct spec_str key;
	struct spec_str value;
};
struct spec_pairs { struct spec_pair *v; size_t n; struct spec_pos pos; };

enum spec_cp_mode { SPEC_CP_HA, SPEC_CP_SINGLE };
enum spec_source { SPEC_SOURCE_IMAGE, SPEC_SOURCE_PUSH };
enum spec_owner { SPEC_OWNER_GARBOARD, SPEC_OWNER_EXTERNAL };
enum spec_swap { SPEC_SWAP_IGNORE, SPEC_SWAP_DISABLED };
enum spec_storage { SPEC_STORAGE_NONE, SPEC_STORAGE_LONGHORN };
enum spec_role { SPEC_ROLE_SERVER, SPEC_ROLE_WORKER };

struct spec_coordinator {
	struct spec_pos pos;
	struct spec_endpoints addresses;
};

struct spec_control_plane {
	struct spec_pos pos;
	struct spec_enum mode;		/* enum spec_cp_mode */
	struct spec_addr endpoint;	/* the VIP; family 0 when single */
	struct spec_num port;
	struct spec_strs extra_sans;
};

/* One key of k3s.config: a scalar has one value and `list` false. */
struct spec_k3s_option {
	struct spec_str key;
	struct spec_strs values;
	bool list;
	bool worker;	/* k3s agents know it too; else servers only */
};

struct spec_k3s {
	struct spec_pos pos;
	struct spec_flag manage;
	struct spec_str version;	/* "v1.36.4+k3s1" */
	struct spec_pairs sha256;	/* "amd64" -> 64 hex digits */
	struct spec_enum source;	/* enum spec_source */
	struct spec_k3s_option *config;
	size_t n_config;
	struct spec_pos config_pos;
};

struct spec_kube_vip {
	struct spec_pos pos;
	struct spec_str version;	/* "v1.2.3" */
	struct spec_str interface;	/* NULL: by the endpoint's subnet */
};

struct spec_cilium {
	struct spec_pos pos;
	struct spec_str version;	/* "1.20.1" */
	struct spec_enum owner;		/* enum spec_owner */
	struct spec_str chart;		/* "repo" */
	const struct yaml_node *values;	/* a map; NULL: none written */
};

struct spec_network {
	struct spec_pos pos;
	struct spec_prefix pod_cidr;
	struct spec_prefix service_cidr;
	struct spec_prefixes node_cidrs;
	struct spec_pos pool_pos;
	struct spec_addr pool_start, pool_stop;
	struct spec_addr gateway_vip;
};

struct spec_sysctl {
	struct spec_str key;
	struct spec_str value;
	struct spec_flag optional;
	struct spec_flag exclude;	/* then there is no value */
};

struct spec_mount {
	struct spec_pos pos;
	struct spec_str device, path, fs, format;
};

struct spec_require {
	struct spec_pos pos;
	struct spec_str kernel;		/* ">= 6.1"; NULL: any */
	struct spec_flag clock_synchronised;
	struct spec_str memory_tolerance;
};

struct spec_baseline {
	struct spec_pos pos;
	struct spec_str timezone;	/* NULL in an override: inherited */
	struct spec_strs modules;
	struct spec_sysctl *sysctls;
	size_t n_sysctls;
	struct spec_enum swap;		/* enum spec_swap */
	struct spec_enum storage;	/* enum spec_storage */
	struct spec_require require;
	struct spec_enum modes[RESOURCE_MAX];	/* enum mode */
	struct spec_strs waivers;	/* "modules", "modules/nfs" */
	struct spec_mount *mounts;
	size_t n_mounts;
};

struct spec_class {
	struct spec_str name;
	struct spec_pos pods_pos;	/* line 0: no pods */
	struct spec_pairs label;	/* exactly one */
	struct spec_str pool_name;
	struct spec_prefix pool_cidr;
	struct spec_prefixes sources;
	struct spec_pos mark_pos;	/* line 0: no mark */
	struct spec_num mark, mask;
	struct spec_strs gateways;	/* node names */
	struct spec_str tunnel;
	struct spec_addrs dns;
};

struct spec_tunnel {
	struct spec_str name;		/* the interface */
	struct spec_enum kind;		/* enum tunnel_kind */
	struct spec_endpoints endpoints;
	struct spec_num table;
	struct spec_num priority;
};

struct spec_egress {
	struct spec_pos pos;
	struct spec_class *classes;
	size_t n_classes;
	struct spec_tunnel *tunnels;
	size_t n_tunnels;
	struct spec_strs uplinks;	/* n 0: automatic */
};

struct spec_monitoring {
	struct spec_pos pos;
	struct spec_str listen;		/* NULL: none */
	struct spec_str textfile;
};

struct spec_rollout {
	struct spec_pos pos;
	struct spec_num canary, parallel;		/* baseline */
	struct spec_num workers_parallel;
	struct spec_flag drain;
	struct spec_str drain_timeout;
};

struct spec_node {
	struct spec_pos pos;
	struct spec_str name;
	struct spec_enum role;		/* enum spec_role */
	struct spec_addr address;
	struct spec_pos match_pos;
	struct spec_str mac, serial, machine_id, product_uuid;
	struct spec_pairs labels;
	struct spec_strs taints;	/* "key=value:NoSchedule" */
	struct spec_baseline baseline;	/* the override; pos.line 0: none */
};

struct spec {
	const char *file;		/* as given to spec_load() */
	const char *source;		/* its text, to name this version of it */
	size_t source_size;
	bool one_box;			/* no cluster, no nodes */
	struct spec_str cluster;
	struct spec_str cluster_id;	/* the pin; NULL: none */
	struct spec_coordinator coordinator;
	struct spec_control_plane control_plane;
	struct spec_k3s k3s;
	struct spec_kube_vip kube_vip;
	struct spec_cilium cilium;
	struct spec_network network;
	struct spec_baseline baseline;
	struct spec_egress egress;
	struct spec_monitoring monitoring;
	struct spec_rollout rollout;
	struct spec_node *nodes;
	size_t n_nodes;
	struct spec_pos nodes_pos;
	struct spec_str api_version;
	const struct yaml_node *root;
	struct spec_arena *arena;
};

/*
 * Accepts also one box, one file: apiVersion, baseline, egress, network. A
 * file with "cluster" or "nodes" is the spec of a cluster even so.
 */
#define SPEC_ONE_BOX 1u

/*
 * Reads and checks a spec. 0: *ret_spec is the caller's (spec_free), and
 * `problems` holds warnings at most. -EINVAL: `problems` says what is wrong,
 * sorted by position, all of it; *ret_spec is untouched. Other errors (the
 * file cannot be read, no memory) are in `f`. `problems` starts empty and
 * is released by the caller in either case.
 */
int spec_load(const char *path, unsigned int flags,
	      struct spec_problems *problems, struct spec **ret_spec,
	      struct fault *f);
/* As spec_load() on text already read; `name` stands in for the file. */
int spec_load_text(const char *name, const char *text, size_t size,
		   unsigned int flags, struct spec_problems *problems,
		   struct spec **ret_spec, struct fault *f);
struct spec *spec_free(struct spec *spec);	/* returns NULL */

/* ---- what is asked of a spec all the time ---- */

size_t spec_count(const struct spec *spec, enum spec_role role);
/* Index of the first server (A34); -ENOENT when there is none. */
int spec_founder(const struct spec *spec, size_t *ret_node);
int spec_find_node(const struct spec *spec, const char *name,
		   size_t *ret_node);	/* -ENOENT */
/*
 * Where the API is dialled: the endpoint, or with mode: single the server's
 * own address. Family 0 only where a spec was never checked.
 */
struct ip_addr spec_api_address(const struct spec *spec);
/* Members that may be lost with n servers: n - (n / 2 + 1). */
size_t spec_tolerance(size_t servers);
/* The pinned sha256 of that architecture ("amd64"), or NULL. */
const char *spec_k3s_sha256(const struct spec *spec, const char *arch);
/* What preflight asks of that node: the baseline's, and its own over it. */
struct spec_require spec_requires(const struct spec *spec, size_t node);
/* Whether a gate may pass `key` of a resource left in observe. */
bool spec_waived(const struct spec *spec, size_t node,
		 enum resource_id resource, const char *key);
/*
 * Names and addresses of the serving certificate (A42): the VIP, the
 * founder, 127.0.0.1, every server, the extras; each once.
 */
int spec_tls_sans(const struct spec *spec, struct strlist *ret_sans);

static inline bool spec_given(struct spec_pos pos)
{
	return pos.line != 0;
}

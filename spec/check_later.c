/*
 * Limits, mounts, and what the file may say and this version does not act on
 * yet. A warning where the cluster is as safe without it; an error where
 * leaving it out would do something else than was asked for.
 */
#include <string.h>
#include <sys/socket.h>

#include "proto/order.h"
#include "spec/checks.h"

/* Room is left for what derives: defaults, pools, ranges. */
#define MODULES_MAX (DESIRED_MODULES_MAX - 16)
#define SYSCTLS_MAX (DESIRED_SYSCTLS_MAX - 16)
#define LOCAL_MAX 1024
#define EXTRA_SANS_MAX (ORDER_LIST_MAX - DESIRED_SERVERS_MAX - 2)

/* `up` refuses these before it starts anything; the rest works today. */
static void later_workers(const struct spec *spec, struct spec_report *r)
{
	size_t i;

	for (i = 0; spec->k3s.manage.v && i < spec->n_nodes; i++) {
		if (spec->nodes[i].role.v != SPEC_ROLE_WORKER)
			continue;
		spec_report(r, spec->nodes[i].role.pos,
			    "joining workers is not yet supported: `up` "
			    "refuses a spec with any (while k3s.manage is "
			    "true)");
		return;
	}
}

CHECK(later)
{
	const struct spec_monitoring *mon = &spec->monitoring;

	later_workers(spec, r);
	if (spec_given(spec->rollout.pos))
		spec_report(r, spec->rollout.pos,
			    "rollout is not yet followed: the baseline goes to "
			    "all nodes at once and nothing is drained");
	if (mon->listen.v && strcmp(mon->listen.v, "none") != 0)
		spec_report(r, mon->listen.pos,
			    "monitoring.listen is not yet served; use "
			    "`garboard-agent health`");
	if (mon->textfile.v)
		spec_report(r, mon->textfile.pos,
			    "monitoring.textfile is not yet written");
}

CHECK(later_error)
{
	const struct spec_str *chart = &spec->cilium.chart;
	const struct spec_network *net = &spec->network;

	if (chart->v && strcmp(chart->v, "repo") != 0)
		spec_report(r, chart->pos,
			    "chart: only \"repo\" is supported yet; the chart "
			    "would be fetched from there instead");
	if (spec->k3s.source.v == SPEC_SOURCE_PUSH)
		spec_report(r, spec->k3s.source.pos,
			    "source: push is not yet supported; put the binary "
			    "into the image");
	if (net->pod_cidr.v.addr.family == AF_INET6)
		spec_report(r, net->pod_cidr.pos,
			    "podCidr: only IPv4 is supported yet");
	if (net->service_cidr.v.addr.family == AF_INET6)
		spec_report(r, net->service_cidr.pos,
			    "serviceCidr: only IPv4 is supported yet");
}

static void too_many(struct spec_report *r, struct spec_pos pos,
		     const char *what, size_t n, size_t max)
{
	if (n > max)
		spec_report(r, pos, "%zu %s are more than %zu", n, what, max);
}

/* What the order that configures k3s can hold (proto/order.h). */
static void order_limits(const struct spec *spec, struct spec_report *r)
{
	size_t i;

	too_many(r, spec->control_plane.extra_sans.pos, "names",
		 spec->control_plane.extra_sans.n, EXTRA_SANS_MAX);
	too_many(r, spec->k3s.config_pos, "keys", spec->k3s.n_config,
		 ORDER_LIST_MAX);
	for (i = 0; i < spec->k3s.n_config; i++)
		too_many(r, spec->k3s.config[i].values.pos, "values",
			 spec->k3s.config[i].values.n, ORDER_VALUES_MAX);
	for (i = 0; i < spec->n_nodes; i++) {
		too_many(r, spec->nodes[i].labels.pos, "labels",
			 spec->nodes[i].labels.n, ORDER_LIST_MAX);
		too_many(r, spec->nodes[i].taints.pos, "taints",
			 spec->nodes[i].taints.n, ORDER_LIST_MAX);
	}
}

/* What the desired state of one node can hold (proto/desired.h). */
CHECK(limits)
{
	const struct spec_egress *e = &spec->egress;
	const struct spec_baseline *all = &spec->baseline;
	size_t i;

	too_many(r, spec->nodes_pos, "servers",
		 spec_count(spec, SPEC_ROLE_SERVER), DESIRED_SERVERS_MAX);
	for (i = 0; i < e->n_tunnels; i++)
		too_many(r, e->tunnels[i].endpoints.pos, "endpoints",
			 e->tunnels[i].endpoints.n, DESIRED_ENDPOINTS_MAX);
	for (i = 0; i < e->n_classes; i++)
		too_many(r, e->classes[i].sources.pos, "sources",
			 e->classes[i].sources.n, DESIRED_PREFIXES_MAX);
	too_many(r, e->uplinks.pos, "uplinks", e->uplinks.n,
		 DESIRED_UPLINKS_MAX);
	too_many(r, spec->network.node_cidrs.pos, "prefixes of nodes",
		 spec->network.node_cidrs.n, LOCAL_MAX);
	order_limits(spec, r);
	for (i = 0; i <= spec->n_nodes; i++) {
		const struct spec_baseline *b =
			i ? &spec->nodes[i - 1].baseline : all;

		too_many(r, b->modules.pos, "modules",
			 b->modules.n + (i ? all->modules.n : 0), MODULES_MAX);
		too_many(r, b->pos, "sysctls",
			 b->n_sysctls + (i ? all->n_sysctls : 0), SYSCTLS_MAX);
	}
}

/* ---- mounts ---- */

static bool below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]);
}

static bool is_network(const char *path)
{
	return below(path, "/net") || below(path, "/nfs") ||
	       below(path, "/mnt/nfs");
}

/* B04: storage that is not on this node is no local storage. */
static void one_mount(const struct spec_mount *m, struct spec_report *r)
{
	if (m->device.v && !order_is_device(m->device.v))
		spec_report(r, m->device.pos,
			    "device \"%.80s\" is no stable name of a device "
			    "of this node: take one of ls -l /dev/disk/by-id",
			    m->device.v);
	if (m->path.v && is_network(m->path.v))
		spec_report(r, m->path.pos,
			    "path \"%.80s\" is not a local path", m->path.v);
	else if (m->path.v && !order_is_mount_point(m->path.v))
		spec_report(r, m->path.pos,
			    "path \"%.80s\" is the system's own, or not plain",
			    m->path.v);
	if (m->fs.v && strcmp(m->fs.v, "ext4") != 0 &&
	    strcmp(m->fs.v, "xfs") != 0)
		spec_report(r, m->fs.pos, "fs is ext4 or xfs");
	if (m->format.v && strcmp(m->format.v, "if-blank") != 0 &&
	    strcmp(m->format.v, "never") != 0)
		spec_report(r, m->format.pos, "format is if-blank or never");
}

static void mount_twice(const struct spec_mount *m, const struct spec_mount *o,
			struct spec_report *r)
{
	if (m->path.v && o->path.v && strcmp(m->path.v, o->path.v) == 0)
		spec_report(r, m->path.pos, "path \"%.80s\" is in line %u, too",
			    m->path.v, o->path.pos.line);
	if (m->device.v && o->device.v &&
	    strcmp(m->device.v, o->device.v) == 0)
		spec_report(r, m->device.pos,
			    "device \"%.80s\" is in line %u, too",
			    m->device.v, o->device.pos.line);
}

/* A node's own mounts are added to those of all. */
CHECK(mount)
{
	const struct spec_baseline *all = &spec->baseline;
	size_t i, k, o;

	for (i = 0; i <= spec->n_nodes; i++) {
		const struct spec_baseline *b =
			i ? &spec->nodes[i - 1].baseline : all;

		for (k = 0; k < b->n_mounts; k++) {
			one_mount(&b->mounts[k], r);
			for (o = 0; o < k; o++)
				mount_twice(&b->mounts[k], &b->mounts[o], r);
			for (o = 0; i && o < all->n_mounts; o++)
				mount_twice(&b->mounts[k], &all->mounts[o], r);
		}
		if (b->n_mounts + (i ? all->n_mounts : 0) > DESIRED_MOUNTS_MAX)
			spec_report(r, b->mounts[0].pos,
				    "more than %d mounts on one node",
				    DESIRED_MOUNTS_MAX);
	}
}

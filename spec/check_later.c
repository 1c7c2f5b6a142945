/*
 * What the file may say and this version does not act on yet. A warning
 * where the cluster is as safe without it; an error where leaving it out
 * would do something else than was asked for.
 */
#include <string.h>
#include <sys/socket.h>

#include "spec/checks.h"

CHECK(later)
{
	const struct spec_rollout *roll = &spec->rollout;
	const struct spec_monitoring *mon = &spec->monitoring;
	size_t i, k;

	for (i = 0; i <= spec->n_nodes; i++) {
		const struct spec_baseline *b =
			i ? &spec->nodes[i - 1].baseline : &spec->baseline;

		if (b->swap.v == SPEC_SWAP_DISABLED)
			spec_report(r, b->swap.pos,
				    "swap: disabled is not yet carried out; "
				    "swapoff and fstab stay yours (k3s runs "
				    "either way)");
		for (k = 0; k < b->n_mounts; k++)
			spec_report(r, b->mounts[k].pos,
				    "this mount is not yet made or checked; "
				    "mount it before storage uses the path");
		if (b->require.memory_tolerance.v)
			spec_report(r, b->require.memory_tolerance.pos,
				    "memoryTolerance is not yet checked");
	}
	if (spec_given(roll->pos))
		spec_report(r, roll->pos,
			    "rollout is not yet followed: the baseline goes to "
			    "all nodes at once, workers join one at a time, "
			    "nothing is drained");
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
	if (net->pod_cidr.v.addr.family == AF_INET6)
		spec_report(r, net->pod_cidr.pos,
			    "podCidr: only IPv4 is supported yet");
	if (net->service_cidr.v.addr.family == AF_INET6)
		spec_report(r, net->service_cidr.pos,
			    "serviceCidr: only IPv4 is supported yet");
}

static bool below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]);
}

/* B04: storage that is not on this node is no local storage. */
CHECK(mount)
{
	size_t i, k;

	for (i = 0; i <= spec->n_nodes; i++) {
		const struct spec_baseline *b =
			i ? &spec->nodes[i - 1].baseline : &spec->baseline;

		for (k = 0; k < b->n_mounts; k++) {
			const struct spec_mount *m = &b->mounts[k];

			if (m->device.v && !below(m->device.v, "/dev"))
				spec_report(r, m->device.pos,
					    "device \"%.80s\" is not a device "
					    "of this node below /dev",
					    m->device.v);
			if (m->path.v && (below(m->path.v, "/net") ||
					  below(m->path.v, "/nfs") ||
					  below(m->path.v, "/mnt/nfs") ||
					  strstr(m->path.v, "/..")))
				spec_report(r, m->path.pos,
					    "path \"%.80s\" is not a local "
					    "path",
					    m->path.v);
			if (m->fs.v && strcmp(m->fs.v, "ext4") != 0 &&
			    strcmp(m->fs.v, "xfs") != 0)
				spec_report(r, m->fs.pos, "fs is ext4 or xfs");
			if (m->format.v &&
			    strcmp(m->format.v, "if-blank") != 0 &&
			    strcmp(m->format.v, "never") != 0)
				spec_report(r, m->format.pos,
					    "format is if-blank or never");
		}
	}
}

#include <errno.h>
#include <stdlib.h>

#include "coordinator/cni.h"
#include "coordinator/egress.h"
#include "coordinator/manifests.h"
#include "spec/spec.h"
#include "spec/yaml.h"

/* The pools of all classes; Cilium then works with pools (contract 7.6). */
static size_t class_pools(const struct spec *spec, struct cilium_pool *pools,
			  char (*cidrs)[IP_TEXT_MAX])
{
	size_t i, n = 0;

	for (i = 0; i < spec->egress.n_classes && n < DESIRED_CLASSES_MAX;
	     i++) {
		const struct spec_class *c = &spec->egress.classes[i];

		if (!c->pool_name.v || !c->pool_cidr.v.addr.family)
			continue;
		pools[n].name = c->pool_name.v;
		pools[n].cidr = ip_prefix_format(&c->pool_cidr.v, cidrs[n]);
		n++;
	}
	return n;
}

int cni_manifest(const struct spec *spec, char **ret_text, struct fault *f)
{
	struct cilium_pool pools[DESIRED_CLASSES_MAX];
	char cidrs[DESIRED_CLASSES_MAX][IP_TEXT_MAX], pod_cidr[IP_TEXT_MAX];
	char *json = NULL;
	json_t *values = NULL;
	int r = 0;

	if (spec->cilium.values)
		r = yaml_write_json(spec->cilium.values, &json);
	if (r == 0 && json)
		values = json_loads(json, 0, NULL);
	free(json);
	if (r < 0 || (spec->cilium.values && !values))
		return fault_set(f, -EINVAL, "cilium.values",
				 "cannot be rendered");
	r = manifest_cilium(
		&(struct cilium_params){
			.cluster = spec->cluster.v,
			.version = spec->cilium.version.v,
			.endpoint = spec_api_address(spec),
			.port = (uint16_t)spec->control_plane.port.v,
			.pod_cidr = ip_prefix_format(
				&spec->network.pod_cidr.v, pod_cidr),
			.servers = (unsigned int)spec_count(spec,
							    SPEC_ROLE_SERVER),
			.pools = pools,
			.n_pools = class_pools(spec, pools, cidrs),
			.egress = egress_class(spec) != NULL,
			.values = values },
		ret_text, f);
	json_decref(values);
	return r;
}

struct cni_want cni_want_of(const struct spec *spec)
{
	return (struct cni_want){ .host = spec_api_address(spec),
				  .port = (uint16_t)spec->control_plane.port.v,
				  .nodes = spec_count(spec,
						      SPEC_ROLE_SERVER) };
}

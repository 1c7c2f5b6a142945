#include "spec/cilium.h"

bool cilium_has_classes(const struct spec *spec)
{
	size_t i;

	for (i = 0; i < spec->egress.n_classes; i++)
		if (spec_given(spec->egress.classes[i].pods_pos))
			return true;
	return false;
}

bool cilium_has_pool(const struct spec *spec)
{
	size_t i;

	for (i = 0; i < spec->egress.n_classes; i++)
		if (spec->egress.classes[i].pool_cidr.v.addr.family)
			return true;
	return false;
}

static const char from_endpoint[] = "it derives from controlPlane";
static const char from_network[] = "it derives from network and the classes' "
                                   "pools";
static const char from_class[] = "egress.classes needs it as it is";
static const char from_pool[] = "a class's own pod pool needs direct routing";

/* A56 to A58, A61; K3S-CONTRACT 7.1, 7.6. */
static const struct cilium_own owned[] = {
	{ "k8sServiceHost", from_endpoint, NULL },
	{ "k8sServicePort", from_endpoint, NULL },
	{ "k8sServiceHostRef", from_endpoint, NULL },
	{ "k8s.apiServerURLs", "agents would stop dialling the "
	                       "endpoint", NULL },
	{ "kubeProxyReplacement", "k3s runs without kube-proxy", NULL },
	{ "operator.replicas", "it follows the number of servers", NULL },
	{ "updateStrategy", "nodes are rolled one at a time", NULL },
	{ "ipam.mode", from_network, NULL },
	{ "ipam.operator", from_network, NULL },
	{ "bpf.masquerade", from_class, cilium_has_classes },
	{ "bpf.hostLegacyRouting", from_class, cilium_has_classes },
	{ "egressGateway.enabled", from_class, cilium_has_classes },
	{ "bpf.datapathMode", from_class, cilium_has_classes },
	{ "rollOutCiliumPods", from_class, cilium_has_classes },
	{ "routingMode", from_pool, cilium_has_pool },
	{ "tunnelProtocol", from_pool, cilium_has_pool },
	{ "autoDirectNodeRoutes", from_pool, cilium_has_pool },
	{ "ipv4NativeRoutingCIDR", from_pool, cilium_has_pool },
	{ "endpointRoutes.enabled", from_pool, cilium_has_pool },
};

const struct cilium_own *cilium_owned(size_t *ret_n)
{
	*ret_n = sizeof(owned) / sizeof(owned[0]);
	return owned;
}

/* manifests.c, yaml_out.c, kube_read.c: text in, text and values out. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/kube_read.h"
#include "coordinator/manifests.h"
#include "coordinator/yaml_out.h"

static struct cilium_params cilium_base(void)
{
	struct cilium_params p = {
		.cluster = "prod",
		.version = "1.20.1",
		.port = 6443,
		.pod_cidr = "10.42.0.0/16",
		.servers = 3,
	};

	assert_int_equal(ip_addr_parse("192.0.2.9", &p.endpoint), 0);
	return p;
}

static void yaml_is_quoted(void **state)
{
	json_t *o = json_pack("{ss si sb s[ss] s{}}", "version", "1.20", "port",
			      6443, "on", 1, "list", "no", "a\nb", "empty");
	char *text = NULL;

	(void)state;
	assert_int_equal(yaml_out(o, &text), 0);
	assert_string_equal(text, "version: \"1.20\"\n"
				  "port: 6443\n"
				  "on: true\n"
				  "list:\n- \"no\"\n- \"a\\nb\"\n"
				  "empty: {}\n");
	free(text);
	json_decref(o);
}

static void cilium_values(void **state)
{
	struct cilium_params p = cilium_base();
	struct fault f = FAULT_INIT;
	json_t *v = NULL;

	(void)state;
	assert_int_equal(manifest_cilium_values(&p, &v, &f), 0);
	assert_string_equal(json_string_value(json_object_get(
				    v, "k8sServiceHost")),
			    "192.0.2.9");
	assert_int_equal(
		json_integer_value(json_object_get(v, "k8sServicePort")),
		6443);
	assert_true(json_is_true(json_object_get(v, "kubeProxyReplacement")));
	assert_null(json_object_get(v, "bpf"));
	json_decref(v);
}

static void a57_never_an_empty_host(void **state)
{
	struct cilium_params p = cilium_base();
	struct fault f = FAULT_INIT;
	json_t *v = NULL;

	(void)state;
	p.endpoint.family = 0;
	assert_int_equal(manifest_cilium_values(&p, &v, &f), -EINVAL);
	assert_null(v);
}

static void cilium_clash_names_the_key(void **state)
{
	struct cilium_params p = cilium_base();
	struct fault f = FAULT_INIT;
	json_t *mine = json_pack("{s{si}}", "operator", "replicas", 7);
	json_t *v = NULL;

	(void)state;
	p.values = mine;
	assert_int_equal(manifest_cilium_values(&p, &v, &f), -EEXIST);
	assert_string_equal(f.object, "cilium.values.operator.replicas");
	json_decref(mine);

	/* The same value, and a neighbour, are no clash. */
	fault_clear(&f);
	mine = json_pack("{s{si sb} s{sb}}", "operator", "replicas", 2,
			 "rollOutPods", 1, "hubble", "enabled", 1);
	p.values = mine;
	assert_int_equal(manifest_cilium_values(&p, &v, &f), 0);
	assert_true(json_is_true(json_object_get(json_object_get(v, "hubble"),
						 "enabled")));
	json_decref(v);
	json_decref(mine);
}

static void cilium_pools(void **state)
{
	struct cilium_params p = cilium_base();
	const struct cilium_pool pool = { "vpn", "10.44.0.0/20" };
	struct fault f = FAULT_INIT;
	char *text = NULL;

	(void)state;
	p.pools = &pool;
	p.n_pools = 1;
	p.egress = true;
	assert_int_equal(manifest_cilium(&p, &text, &f), 0);
	assert_non_null(strstr(text, "      mode: \"multi-pool\"\n"));
	assert_non_null(strstr(text, "- \"10.44.0.0/20\"\n"));
	assert_non_null(strstr(text, "hostLegacyRouting: true\n"));
	assert_non_null(strstr(text, "  failurePolicy: abort\n"));
	assert_non_null(strstr(text, "  bootstrap: true\n"));
	free(text);
}

static void kube_vip_one_interface(void **state)
{
	struct vip_group g = { .interface = "eth0" };
	struct kube_vip_params p = {
		.cluster = "prod",
		.version = "v1.2.3",
		.port = 6443,
		.groups = &g,
		.n_groups = 1,
	};
	struct fault f = FAULT_INIT;
	char *text = NULL;

	(void)state;
	assert_int_equal(ip_addr_parse("192.0.2.9", &p.endpoint), 0);
	assert_int_equal(manifest_kube_vip(&p, &text, &f), 0);
	assert_non_null(strstr(text, "name: kube-vip\n"));
	assert_non_null(strstr(text, "{name: address, value: \"192.0.2.9\"}"));
	assert_non_null(strstr(text, "{name: vip_subnet, value: \"32\"}"));
	assert_non_null(strstr(
		text, "{name: KUBERNETES_SERVICE_HOST, value: \"127.0.0.1\"}"));
	assert_non_null(strstr(text, "{name: svc_enable, value: \"false\"}"));
	assert_non_null(strstr(text, "{operator: Exists, effect: NoSchedule}"));
	assert_null(strstr(text, "kubernetes.io/hostname"));
	free(text);
}

static void f12_interface_per_node(void **state)
{
	struct vip_group g[2] = { { .interface = "eno1" },
				  { .interface = "bond0.5" } };
	struct kube_vip_params p = {
		.cluster = "prod",
		.version = "v1.2.3",
		.port = 6443,
		.groups = g,
		.n_groups = 2,
	};
	struct fault f = FAULT_INIT;
	char *text = NULL;

	(void)state;
	assert_int_equal(ip_addr_parse("192.0.2.9", &p.endpoint), 0);
	assert_int_equal(strlist_add(&g[0].nodes, "server-1"), 0);
	assert_int_equal(strlist_add(&g[1].nodes, "server-2"), 0);
	assert_int_equal(strlist_add(&g[1].nodes, "server-3"), 0);
	assert_int_equal(manifest_kube_vip(&p, &text, &f), 0);
	assert_non_null(strstr(text, "  name: kube-vip-eno1\n"));
	assert_non_null(strstr(text, "  name: kube-vip-bond0-5\n"));
	assert_non_null(strstr(text, "values: [\"server-2\", \"server-3\"]"));
	assert_non_null(strstr(text, "{name: vip_interface, value: \"bond0.5\"}"));
	strlist_done(&g[0].nodes);
	strlist_done(&g[1].nodes);
	free(text);
}

static void members(void **state)
{
	struct kube_members m = { 0 };

	(void)state;
	assert_int_equal(
		kube_read_members("{\"members\":[{\"ID\":18446744073709551615,"
				  "\"name\":\"a-1\",\"peerURLs\":[\"https://x\"]},"
				  "{\"ID\":2,\"isLearner\":true}]}",
				  &m),
		0);
	assert_int_equal(m.n, 2);
	assert_string_equal(m.v[0].name, "a-1");
	assert_false(m.v[0].learner);
	assert_string_equal(m.v[1].name, "");
	assert_true(m.v[1].learner);
	kube_members_done(&m);
	assert_int_equal(kube_read_members("{\"members\":{}}", &m), -EPROTO);
	assert_int_equal(kube_read_members("garbage", &m), -EPROTO);
}

static void nodes(void **state)
{
	json_t *list = json_loads(
		"{\"items\":[{\"metadata\":{\"name\":\"s1\",\"labels\":{"
		"\"node-role.kubernetes.io/etcd\":\"true\"},\"annotations\":{"
		"\"etcd.k3s.cattle.io/node-name\":\"s1-ab\"}},"
		"\"spec\":{\"unschedulable\":true},"
		"\"status\":{\"conditions\":[{\"type\":\"EtcdIsVoter\","
		"\"status\":\"True\"},{\"type\":\"Ready\",\"status\":\"False\"}],"
		"\"nodeInfo\":{\"kubeletVersion\":\"v1.36.4+k3s1\"}}},"
		"{\"metadata\":5}]}",
		0, NULL);
	struct kube_nodes n = { 0 };

	(void)state;
	assert_int_equal(kube_read_nodes(list, &n), 0);
	assert_int_equal(n.n, 2);
	assert_string_equal(n.v[0].etcd_name, "s1-ab");
	assert_int_equal(n.v[0].voter, KUBE_TRUE);
	assert_int_equal(n.v[0].ready, KUBE_FALSE);
	assert_true(n.v[0].etcd);
	assert_false(n.v[0].control_plane);
	assert_true(n.v[0].unschedulable);
	assert_int_equal(n.v[1].voter, KUBE_UNKNOWN);
	kube_nodes_done(&n);
	json_decref(list);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(yaml_is_quoted),
		cmocka_unit_test(cilium_values),
		cmocka_unit_test(a57_never_an_empty_host),
		cmocka_unit_test(cilium_clash_names_the_key),
		cmocka_unit_test(cilium_pools),
		cmocka_unit_test(kube_vip_one_interface),
		cmocka_unit_test(f12_interface_per_node),
		cmocka_unit_test(members),
		cmocka_unit_test(nodes),
	};

	return cmocka_run_group_tests_name("manifests", tests, NULL, NULL);
}

/* spec/: what derives from a spec, and where it says it came from. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/desired_wire.h"
#include "spec/derive.h"
#include "spec/print.h"
#include "spec/spec.h"

#define EXAMPLE "tests/unit/data/cluster.example.yaml"

static struct spec *load_text(const char *text, unsigned int flags)
{
	struct spec_problems p = SPEC_PROBLEMS_INIT;
	struct spec *spec = NULL;
	char buf[SPEC_PROBLEM_LINE_MAX];
	struct fault f = FAULT_INIT;
	size_t i;
	int r;

	r = text ? spec_load_text("t.yaml", text, strlen(text), flags, &p,
				  &spec, &f) :
		   spec_load(EXAMPLE, flags, &p, &spec, &f);
	for (i = 0; r < 0 && i < p.n; i++)
		print_message("# %s\n", spec_problem_format("t.yaml", &p.v[i],
							    buf));
	spec_problems_done(&p);
	assert_int_equal(r, 0);
	return spec;
}

static struct desired *derive(const struct spec *spec, const char *name)
{
	struct desired *d = NULL;
	struct fault f = FAULT_INIT;
	size_t node = 0;

	if (name)
		assert_int_equal(spec_find_node(spec, name, &node), 0);
	assert_int_equal(spec_derive_node(spec, node, &d, &f), 0);
	assert_string_equal(d->node, name ? name : "");
	return d;
}

static const char *sysctl(const struct desired *d, const char *key)
{
	size_t i;

	for (i = 0; i < d->n_sysctls; i++)
		if (strcmp(d->sysctls[i].key, key) == 0)
			return d->sysctls[i].value;
	return NULL;
}

static bool is_local(const struct desired *d, const char *text)
{
	struct ip_addr a;

	assert_int_equal(ip_addr_parse(text, &a), 0);
	return prefix_list_contains(&d->egress.local, &a);
}

static void example_gateway(void **state)
{
	struct spec *spec = load_text(NULL, 0);
	struct desired *d = derive(spec, "worker-2");
	const struct desired_class *c = &d->egress.classes[0];
	const struct desired_tunnel *t = &d->egress.tunnels[0];
	char buf[IP_TEXT_MAX];

	(void)state;
	assert_string_equal(d->timezone, "Etc/UTC");
	assert_true(d->iscsid);
	assert_true(strlist_has(&d->modules, "overlay"));
	assert_true(strlist_has(&d->modules, "dm_crypt"));
	assert_true(strlist_has(&d->modules, "wireguard"));
	assert_string_equal(sysctl(d, "net.ipv4.ip_forward"), "1");
	assert_string_equal(sysctl(d, "net.netfilter.nf_conntrack_max"),
			    "1048576");
	assert_true(d->sysctls[d->n_sysctls - 1].optional);
	assert_int_equal(d->egress.n_classes, 1);
	assert_true(c->gateway);
	assert_int_equal(c->mark, 0x2000);
	assert_int_equal(c->mask, 0x3f00);
	assert_int_equal(c->pods.n, 1);
	assert_int_equal(c->n_dns, 1);
	assert_string_equal(t[c->tunnel].name, "wg0");
	assert_int_equal(t->table, 51820);
	assert_int_equal(t->priority, 18200);
	assert_int_equal(t->n_endpoints, 2);
	assert_int_equal(d->cluster.n_servers, 3);
	assert_string_equal(ip_addr_format(&d->cluster.endpoint, buf),
			    "192.0.2.9");
	assert_string_equal(ip_addr_format(&d->cluster.node_address, buf),
			    "192.0.2.22");
	(void)desired_free(d);
	(void)spec_free(spec);
}

static void a27_drops_everywhere_tunnel_on_gateways(void **state)
{
	struct spec *spec = load_text(NULL, 0);
	struct desired *d = derive(spec, "server-1");

	(void)state;
	assert_int_equal(d->egress.n_classes, 1);
	assert_int_equal(d->egress.classes[0].pods.n, 1);
	assert_false(d->egress.classes[0].gateway);
	(void)desired_free(d);
	(void)spec_free(spec);
}

/* B85, B86, A31: containment, in both families. */
static void b86_local_ranges(void **state)
{
	static const char *const in[] = {
		"10.0.0.1", "10.42.7.1", "10.43.0.10", "10.44.1.1",
		"172.31.0.1", "192.168.1.1", "192.0.2.11", "192.0.2.9",
		"192.0.2.200", "192.0.2.230", "fd00::1", "fe80::1" };
	static const char *const out[] = { "198.51.100.7", "11.0.0.1",
					   "172.32.0.1", "2001:db8::1",
					   "192.0.3.1" };
	struct spec *spec = load_text(NULL, 0);
	struct desired *d = derive(spec, "server-1");
	const struct prefix_list *l = &d->egress.local;
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof(in) / sizeof(in[0]); i++)
		assert_true(is_local(d, in[i]));
	for (i = 0; i < sizeof(out) / sizeof(out[0]); i++)
		assert_false(is_local(d, out[i]));
	/* Disjoint: it becomes one interval set. */
	for (i = 0; i < l->n; i++)
		for (k = 0; k < i; k++)
			assert_false(ip_prefix_overlaps(&l->v[i], &l->v[k]));
	(void)desired_free(d);
	(void)spec_free(spec);
}

/* A pool outside every other range becomes exact prefixes. */
static void pool_range_is_exact(void **state)
{
	struct spec *spec = load_text("apiVersion: garboard/v1\n"
		"network: {nodeCidrs: [], loadBalancerPool: "
		"{start: 198.51.100.3, stop: 198.51.100.18}}\n",
		SPEC_ONE_BOX);
	struct desired *d = derive(spec, NULL);

	(void)state;
	assert_false(is_local(d, "198.51.100.2"));
	assert_true(is_local(d, "198.51.100.3"));
	assert_true(is_local(d, "198.51.100.15"));
	assert_true(is_local(d, "198.51.100.18"));
	assert_false(is_local(d, "198.51.100.19"));
	assert_int_equal(d->egress.local.n, 5 + 5);
	(void)desired_free(d);
	(void)spec_free(spec);
}

static const char box[] =
	"apiVersion: garboard/v1\n"
	"baseline:\n"
	"  timezone: Europe/Oslo\n"
	"  modules: [sch-fq, overlay]\n"
	"  sysctl: {kernel/panic: 20, \"net.ipv4.tcp_rmem\": \"4096  "
	"87380\t1\"}\n"
	"  modes: {iscsid: off, sysctl: observe}\n"
	"egress:\n"
	"  classes: {vpn: {sources: [198.51.100.64/28, 198.51.100.0/25, "
	"198.51.100.1], tunnel: tun0}}\n"
	"  tunnels:\n"
	"    tun0: {kind: openvpn, endpoints: [\"203.0.113.7:443/tcp\"], "
	"table: 51820, rulePriority: 18200}\n"
	"  uplinks: [eno1]\n";

static void one_box(void **state)
{
	struct spec *spec = load_text(box, SPEC_ONE_BOX);
	struct desired *d = derive(spec, NULL);

	(void)state;
	assert_string_equal(d->timezone, "Europe/Oslo");
	assert_true(strlist_has(&d->modules, "sch_fq"));
	assert_true(strlist_has(&d->modules, "tun"));
	assert_int_equal(d->modules.n, 4 + 1 + 1);
	/* One key in another notation replaces the default in its place. */
	assert_string_equal(sysctl(d, "kernel.panic"), "20");
	assert_null(sysctl(d, "kernel/panic"));
	assert_string_equal(sysctl(d, "net.ipv4.tcp_rmem"), "4096 87380 1");
	assert_int_equal(d->modes[RESOURCE_ISCSID], MODE_OFF);
	assert_int_equal(d->modes[RESOURCE_SYSCTL], MODE_OBSERVE);
	assert_int_equal(d->modes[RESOURCE_KILLSWITCH], MODE_ENFORCE);
	assert_int_equal(d->egress.classes[0].sources.n, 1);
	assert_int_equal(d->egress.classes[0].sources.v[0].len, 25);
	assert_true(d->egress.classes[0].gateway);
	assert_int_equal(d->egress.tunnels[0].kind, TUNNEL_OPENVPN);
	assert_true(strlist_has(&d->egress.uplinks, "eno1"));
	assert_int_equal(d->cluster.n_servers, 0);
	assert_false(d->iscsid);
	(void)desired_free(d);
	(void)spec_free(spec);
}

static const char single[] =
	"apiVersion: garboard/v1\n"
	"cluster: edge\n"
	"coordinator: {addresses: [\"192.0.2.5:7643\"]}\n"
	"controlPlane: {mode: single, extraSans: [b, a, \"2001:db8::1\"]}\n"
	"k3s: {version: v1.36.4+k3s1, sha256: {amd64: "
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}}\n"
	"cilium: {version: 1.20.1}\n"
	"network: {nodeCidrs: [192.0.2.0/24]}\n"
	"baseline: {timezone: Etc/UTC, storage: longhorn, modules: [a], modes: "
	"{modules: observe},\n"
	"  waivers: [modules/a], sysctl: {a.b: 1, a.c: 2}}\n"
	"nodes:\n"
	"  - name: s\n"
	"    address: 192.0.2.11\n"
	"    baseline: {storage: none, modules: [b], modes: {timezone: off}, "
	"waivers: [modules],\n"
	"      sysctl: {a.c: {value: 3, optional: true}}}\n"
	"  - {name: w, role: worker, address: 192.0.2.12}\n";

static void overrides_merge(void **state)
{
	struct spec *spec = load_text(single, 0);
	struct ip_addr api = spec_api_address(spec);
	struct desired *d = derive(spec, "s");

	(void)state;
	assert_false(d->iscsid);
	assert_false(strlist_has(&d->modules, "nfs"));
	assert_true(strlist_has(&d->modules, "a"));
	assert_true(strlist_has(&d->modules, "b"));
	assert_string_equal(sysctl(d, "a.b"), "1");
	assert_string_equal(sysctl(d, "a.c"), "3");
	assert_int_equal(d->modes[RESOURCE_MODULES], MODE_OBSERVE);
	assert_int_equal(d->modes[RESOURCE_TIMEZONE], MODE_OFF);
	assert_true(spec_waived(spec, 0, RESOURCE_MODULES, "nfs"));
	assert_false(spec_waived(spec, 1, RESOURCE_MODULES, "nfs"));
	assert_true(spec_waived(spec, 1, RESOURCE_MODULES, "a"));
	assert_int_equal(ip_addr_cmp(&api, &spec->nodes[0].address.v), 0);
	(void)desired_free(d);
	d = derive(spec, "w");
	assert_true(d->iscsid);
	assert_string_equal(sysctl(d, "a.c"), "2");
	assert_false(strlist_has(&d->modules, "b"));
	assert_int_equal(d->cluster.endpoint.family, 0);
	(void)desired_free(d);
	(void)spec_free(spec);
}

/* A42: VIP, founder, loopback, every server, extras; each once. */
static void a42_sans(void **state)
{
	static const char *const want[] = { "192.0.2.9", "192.0.2.11",
					    "127.0.0.1", "192.0.2.12",
					    "192.0.2.13", "k8s.example.net" };
	struct spec *spec = load_text(NULL, 0);
	struct strlist sans = STRLIST_INIT;
	size_t i;

	(void)state;
	assert_int_equal(spec_tls_sans(spec, &sans), 0);
	assert_int_equal(sans.n, 6);
	for (i = 0; i < 6; i++)
		assert_string_equal(sans.v[i], want[i]);
	strlist_done(&sans);
	(void)spec_free(spec);
}

static void a34_founder_and_tolerance(void **state)
{
	struct spec *spec = load_text(NULL, 0);
	struct ip_addr api = spec_api_address(spec);
	size_t founder = 9;

	(void)state;
	assert_int_equal(spec_founder(spec, &founder), 0);
	assert_int_equal(founder, 0);
	assert_int_equal(spec_tolerance(0), 0);
	assert_int_equal(spec_tolerance(1), 0);
	assert_int_equal(spec_tolerance(3), 1);
	assert_int_equal(spec_tolerance(4), 1);
	assert_int_equal(spec_tolerance(5), 2);
	assert_int_equal(ip_addr_cmp(&api, &spec->control_plane.endpoint.v),
			 0);
	assert_non_null(spec_k3s_sha256(spec, "amd64"));
	assert_null(spec_k3s_sha256(spec, "arm64"));
	(void)spec_free(spec);
}

static const struct spec_item *item(const struct spec_items *items,
				    const char *group, const char *key)
{
	size_t i;

	for (i = 0; i < items->n; i++)
		if (strcmp(items->v[i].group, group) == 0 &&
		    strcmp(items->v[i].key, key) == 0)
			return &items->v[i];
	fail_msg("no %s %s", group, key);
	return NULL;
}

static void explained(void **state)
{
	struct spec *spec = load_text(NULL, 0);
	struct spec_items items = SPEC_ITEMS_INIT;
	struct fault f = FAULT_INIT;
	char *text = NULL;

	(void)state;
	assert_int_equal(spec_explain_node(spec, 4, &items, &f), 0);
	assert_string_equal(item(&items, "baseline", "timezone")->origin,
			    EXAMPLE ":43");
	assert_string_equal(item(&items, "sysctl", "kernel.panic")->origin,
			    "default");
	assert_string_equal(item(&items, "module", "wireguard")->origin,
			    "derived from egress.tunnels.wg0");
	assert_string_equal(item(&items, "module", "nfs")->origin,
			    "derived from storage: longhorn (" EXAMPLE ":49)");
	assert_string_equal(item(&items, "local", "10.42.0.0/16")->origin,
			    "derived from network.podCidr, within 10.0.0.0/8");
	assert_string_equal(item(&items, "mode", "timezone")->value, "enforce");
	assert_int_equal(spec_print_table(&items, &text), 0);
	assert_non_null(strstr(text, "fs.inotify.max_user_watches"));
	free(text);
	assert_int_equal(spec_print_json(&items, &text), 0);
	assert_non_null(strstr(text, "\n {\"group\":\"node\",\"key\":\"name\","
				     "\"value\":\"worker-2\","));
	free(text);
	spec_items_done(&items);
	assert_int_equal(spec_explain_node(spec, 5, &items, &f), -ENOENT);
	(void)spec_free(spec);
}

/* What derives is something a node accepts. */
static void derived_survives_the_wire(void **state)
{
	static const char *const texts[] = { NULL, box };
	size_t t, node;

	(void)state;
	for (t = 0; t < 2; t++) {
		struct spec *spec = load_text(texts[t],
					      texts[t] ? SPEC_ONE_BOX : 0);

		for (node = 0; node == 0 || node < spec->n_nodes; node++) {
			struct desired *d = NULL, *back = NULL;
			struct fault f = FAULT_INIT;
			uint8_t *bytes = NULL;
			size_t size = 0;

			assert_int_equal(spec_derive_node(spec, node, &d, &f),
					 0);
			assert_int_equal(desired_encode(d, &bytes, &size, &f),
					 0);
			if (spec->n_nodes)
				assert_int_equal(desired_decode(bytes, size,
								&back, &f), 0);
			free(bytes);
			(void)desired_free(d);
			(void)desired_free(back);
		}
		(void)spec_free(spec);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(example_gateway),
		cmocka_unit_test(a27_drops_everywhere_tunnel_on_gateways),
		cmocka_unit_test(b86_local_ranges),
		cmocka_unit_test(pool_range_is_exact),
		cmocka_unit_test(one_box),
		cmocka_unit_test(overrides_merge),
		cmocka_unit_test(a42_sans),
		cmocka_unit_test(a34_founder_and_tolerance),
		cmocka_unit_test(explained),
		cmocka_unit_test(derived_survives_the_wire),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* egress_policy.c: the one policy of Cilium, and the mode it runs in. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/egress.h"

struct scene {
	struct prefix_list local;
	struct strlist addresses;
	struct ip_addr dns;
};

static void add(struct prefix_list *list, const char *text)
{
	struct ip_prefix p;

	assert_int_equal(ip_prefix_parse(text, &p), 0);
	assert_int_equal(prefix_list_add(list, &p), 0);
}

static json_t *policy(struct scene *s, size_t n_dns)
{
	struct fault f = FAULT_INIT;
	json_t *o = NULL;

	assert_int_equal(
		egress_policy(&(struct egress_params){
				      .cluster = "prod",
				      .class_name = "vpn",
				      .tunnel = "wg0",
				      .local = &s->local,
				      .dns = &s->dns,
				      .n_dns = n_dns,
				      .addresses = &s->addresses },
			      &o, &f),
		0);
	return o;
}

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	add(&s->local, "10.0.0.0/8");
	add(&s->local, "fc00::/7");
	add(&s->local, "192.0.2.0/24");
	(void)strlist_add(&s->addresses, "a=10.9.0.1");
	(void)strlist_add(&s->addresses, "b=10.9.0.2");
	(void)ip_addr_parse("10.64.0.1", &s->dns);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	free(s->local.v);
	strlist_done(&s->addresses);
	free(s);
	return 0;
}

static void b83_one_selector_one_equality(void **state)
{
	json_t *o = policy(*state, 0), *want;

	want = json_loads(
		"{\"apiVersion\":\"cilium.io/v2\","
		"\"kind\":\"CiliumEgressGatewayPolicy\",\"metadata\":{"
		"\"name\":\"vpn-egress-steering\","
		"\"labels\":{\"garboard/cluster\":\"prod\"},\"annotations\":{"
		"\"garboard/tunnel-addresses\":\"a=10.9.0.1,b=10.9.0.2\"}},"
		"\"spec\":{\"selectors\":[{\"podSelector\":{\"matchLabels\":{"
		"\"egress-class\":\"vpn\"}}}],"
		"\"destinationCIDRs\":[\"0.0.0.0/0\"],"
		"\"excludedCIDRs\":[\"10.0.0.0/8\",\"192.0.2.0/24\"],"
		"\"egressGateway\":{\"nodeSelector\":{\"matchLabels\":{"
		"\"garboard/egress-vpn\":\"true\"}},\"interface\":\"wg0\"}}}",
		0, NULL);
	assert_non_null(want);
	assert_true(json_equal(o, want));
	json_decref(want);
	json_decref(o);
}

/* Every address of 10/8 but the resolver: by first, last and neighbours. */
static void class_resolver_is_carved_out(void **state)
{
	static const struct {
		const char *addr;
		bool out;
	} rows[] = {
		{ "10.0.0.0", true },	   { "10.255.255.255", true },
		{ "10.64.0.0", true },	   { "10.64.0.1", false },
		{ "10.64.0.2", true },	   { "10.64.0.3", true },
		{ "192.0.2.9", true },	   { "198.51.100.7", false },
	};
	json_t *o = policy(*state, 1), *v;
	const json_t *list = json_object_get(json_object_get(o, "spec"),
					     "excludedCIDRs");
	size_t i, k;

	assert_int_equal(json_array_size(list), 24 + 1);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ip_prefix p;
		struct ip_addr a;
		size_t hits = 0;

		assert_int_equal(ip_addr_parse(rows[i].addr, &a), 0);
		json_array_foreach(list, k, v) {
			assert_int_equal(ip_prefix_parse(json_string_value(v),
							 &p), 0);
			hits += ip_prefix_contains(&p, &a);
		}
		assert_int_equal(hits, rows[i].out);
	}
	json_decref(o);
}

static void within_is_a_subset(void **state)
{
	static const struct {
		const char *want, *have;
		bool yes;
	} rows[] = {
		{ "{\"a\":1}", "{\"a\":1,\"b\":2}", true },
		{ "{\"a\":1}", "{\"a\":2}", false },
		{ "{\"a\":1}", "{}", false },
		{ "{\"a\":{\"x\":\"y\"}}", "{\"a\":{\"x\":\"y\",\"z\":0}}", true },
		{ "{\"a\":[1,2]}", "{\"a\":[1,2]}", true },
		{ "{\"a\":[1,2]}", "{\"a\":[1,2,3]}", false },
		{ "{\"a\":[1,2]}", "{\"a\":[2,1]}", false },
		{ "{\"a\":{}}", "{\"a\":[]}", false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *w = json_loads(rows[i].want, 0, NULL);
		json_t *h = json_loads(rows[i].have, 0, NULL);

		assert_int_equal(egress_within(w, h), rows[i].yes);
		json_decref(w);
		json_decref(h);
	}
}

/* As the chart renders ours; each key in turn taken away or turned. */
static const char good[] =
	"{\"enable-host-legacy-routing\":\"true\",\"datapath-mode\":\"veth\","
	"\"enable-bpf-masquerade\":\"true\",\"enable-egress-gateway\":\"true\","
	"\"ipam\":\"multi-pool\",\"routing-mode\":\"native\"}";

static void ks13_running_mode(void **state)
{
	static const struct {
		const char *key, *value;	/* NULL: not set */
		bool pool;
		const char *says;		/* NULL: in sight */
	} rows[] = {
		{ "enable-host-legacy-routing", "true", true, NULL },
		{ "enable-host-legacy-routing", "false", true, "bpf.hostLegacyRouting: true" },
		{ "enable-host-legacy-routing", NULL, true, "is not set" },
		{ "datapath-mode", "netkit", true, "go around netfilter" },
		{ "datapath-mode", NULL, true, NULL },
		{ "enable-bpf-masquerade", "false", true, "not carried out" },
		{ "enable-egress-gateway", NULL, true, "not carried out" },
		{ "ipam", "cluster-pool", true, "ipam.mode" },
		{ "ipam", "cluster-pool", false, NULL },
		{ "routing-mode", "tunnel", true, "encapsulated" },
		{ "routing-mode", "tunnel", false, NULL },
		{ "devices", "eth0 eth1", true, "without wg0" },
		{ "devices", "eth0,wg0", true, NULL },
		{ "devices", "eth+ wg+", true, NULL },
		{ "devices", "w wg01 wg", true, "without wg0" },
		{ "devices", "", true, NULL },
	};
	char why[EGRESS_WHY_MAX];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *c = json_loads(good, 0, NULL);

		if (rows[i].value)
			(void)json_object_set_new(c, rows[i].key,
						  json_string(rows[i].value));
		else
			(void)json_object_del(c, rows[i].key);
		why[0] = '\0';
		assert_int_equal(egress_sight(c, rows[i].pool, "wg0", why,
					      sizeof(why)),
				 rows[i].says == NULL);
		if (rows[i].says) {
			assert_non_null(strstr(why, rows[i].key));
			assert_non_null(strstr(why, rows[i].says));
		}
		json_decref(c);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(b83_one_selector_one_equality,
						setup, teardown),
		cmocka_unit_test_setup_teardown(class_resolver_is_carved_out,
						setup, teardown),
		cmocka_unit_test(within_is_a_subset),
		cmocka_unit_test(ks13_running_mode),
	};

	return cmocka_run_group_tests_name("egress", tests, NULL, NULL);
}

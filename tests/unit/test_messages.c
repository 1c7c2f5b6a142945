/* proto/order, up, desired_wire: rules across fields, features, cutting. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/desired_wire.h"
#include "proto/order.h"
#include "proto/up.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static int encode(struct order *o, struct fault *f)
{
	uint8_t *out = NULL;
	size_t n = 0;
	int r = order_encode(o, &out, &n, f);

	free(out);
	return r;
}

static void fill(struct order_bytes *b, const char *text)
{
	b->v = (uint8_t *)strdup(text);
	b->n = strlen(text);
}

static void founder_never_joins(void **state)
{
	struct order *o = order_new(ORDER_K3S_CONFIGURE);
	struct fault f = FAULT_INIT;

	(void)state;
	strcpy(o->configure.node_name, "server-1");
	assert_int_equal(ip_addr_parse("192.0.2.11", &o->configure.node_ip), 0);
	o->configure.cluster_init = true;
	assert_int_equal(encode(o, &f), 0);
	assert_int_equal(ip_addr_parse("192.0.2.12",
				       &o->configure.join_address), 0);
	assert_int_equal(encode(o, &f), -EINVAL);
	assert_string_equal(f.object, "K3sConfigure.cluster_init");
	o->configure.cluster_init = false;
	assert_int_equal(encode(o, NULL), 0);
	o->configure.agent = true;
	assert_int_equal(encode(o, NULL), 0);
	o->configure.join_address.family = 0;
	assert_int_equal(encode(o, NULL), -EINVAL);
	order_free(o);
}

static void rules_across_fields(void **state)
{
	struct order *o = order_new(ORDER_BLOB);

	(void)state;
	o->blob.kind = BLOB_K3S;
	o->blob.size = 8;
	o->blob.offset = 3;
	fill(&o->blob.data, "chunk");
	assert_int_equal(encode(o, NULL), 0);
	o->blob.offset = 4;
	assert_int_equal(encode(o, NULL), -EINVAL);
	o->blob.offset = UINT64_MAX;
	assert_int_equal(encode(o, NULL), -ERANGE);
	order_free(o);
	o = order_new(ORDER_PUT_MANIFEST);
	o->manifest.slot = SLOT_CRDS;
	fill(&o->manifest.content, "kind: X");
	assert_int_equal(encode(o, NULL), -EINVAL);	/* digest of zeros */
	assert_int_equal(key_sha256("kind: X", 7, o->manifest.sha256), 0);
	assert_int_equal(encode(o, NULL), 0);
	order_free(o);
	o = order_new(ORDER_K3S_START);
	o->start.mode = START_FOUND;
	assert_int_equal(encode(o, NULL), -EINVAL);
	o->start.mode = START_RESUME;
	assert_int_equal(encode(o, NULL), 0);
	order_free(o);
	o = order_new(ORDER_OPEN_STREAM);
	o->stream.target = STREAM_API_SERVER;
	assert_int_equal(encode(o, NULL), -EINVAL);
	o->stream.target = STREAM_API_LOCAL;
	assert_int_equal(encode(o, NULL), 0);
	order_free(o);
}

static void feature_words(void **state)
{
	struct desired *d = desired_new(), *back = NULL;
	struct fault f = FAULT_INIT;
	uint8_t *out = NULL;
	size_t n = 0;

	(void)state;
	assert_int_equal(strlist_add(&d->required_features, "base"), 0);
	d->modes[RESOURCE_ISCSID] = MODE_OBSERVE;
	assert_int_equal(desired_encode(d, &out, &n, NULL), 0);
	assert_int_equal(desired_decode(out, n, &back, NULL), 0);
	assert_int_equal(back->modes[RESOURCE_ISCSID], MODE_OBSERVE);
	assert_string_equal(back->timezone, "Etc/UTC");
	desired_free(back);
	free(out);
	assert_int_equal(strlist_add(&d->required_features, "later"), 0);
	assert_int_equal(desired_encode(d, &out, &n, &f), -EOPNOTSUPP);
	assert_non_null(strstr(f.text, "upgrade garboard-agent"));
	desired_free(d);
}

/* An agent that knows fewer resources reads what it can keep, and no more. */
static void modes_beyond_the_base_are_sent_when_they_differ(void **state)
{
	struct desired *d = desired_new(), *back = NULL;
	uint8_t *out = NULL;
	size_t n = 0, more = 0;

	(void)state;
	assert_int_equal(desired_encode(d, &out, &n, NULL), 0);
	assert_int_equal(desired_decode(out, n, &back, NULL), 0);
	assert_int_equal(back->modes[RESOURCE_SWAP], MODE_ENFORCE);
	desired_free(back);
	free(out);
	d->modes[RESOURCE_SWAP] = MODE_OFF;
	assert_int_equal(desired_encode(d, &out, &more, NULL), 0);
	assert_true(more > n);
	assert_int_equal(desired_decode(out, more, &back, NULL), 0);
	assert_int_equal(back->modes[RESOURCE_SWAP], MODE_OFF);
	desired_free(back);
	free(out);
	desired_free(d);
}

/* A node in trouble must still get its report out. */
static void evidence_is_cleaned_and_cut(void **state)
{
	struct up *u = up_new(UP_REPORT), *back = NULL;
	static char big[5000];
	uint8_t *out = NULL;
	size_t n = 0;
	int i;

	(void)state;
	u->report.n_resources = 1;
	u->report.resources[0].total = 12;
	memset(big, 'x', sizeof(big) - 1);
	for (i = 0; i < 1000; i++)
		assert_int_equal(up_resource_add(&u->report.resources[0], "k",
						 3, big, "a\033b", NULL), 0);
	for (i = 0; i < 100; i++)
		assert_int_equal(strlist_add(&u->report.k3s.last_lines, big),
				 0);
	assert_int_equal(up_encode(u, &out, &n, NULL), 0);
	assert_true(n <= up_row(UP_REPORT)->limit);
	assert_int_equal(up_decode(out, n, &back, NULL), 0);
	assert_int_equal(back->report.k3s.last_lines.n, UP_LIST_MAX);
	assert_string_equal(back->report.resources[0].items[0].want, "a?b");
	assert_int_equal(back->report.resources[0].total, 12);
	free(out);
	up_free(back);
	up_free(u);
}

static void syntax_of_texts(void **state)
{
	static const struct {
		const char *text;
		bool label, taint;
	} t[] = {
		{ "disk=ssd", true, false }, { "example.org/a=b.c", true, false },
		{ "a=", true, false }, { "a", false, false },
		{ "=b", false, false }, { "a=b c", false, false },
		{ "A/b=c", false, false }, { "a/b/c=d", false, false },
		{ "a=b:NoSchedule", false, true }, { "a:NoExecute", false, true },
		{ "a=:NoSchedule", false, true }, { "a=b:Sometimes", false, false },
		{ "a=b:", false, false }, { ":NoSchedule", false, false },
		{ "", false, false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++) {
		assert_int_equal(order_is_label(t[i].text), t[i].label);
		assert_int_equal(order_is_taint(t[i].text), t[i].taint);
	}
}

static void config_keys(void **state)
{
	static const struct {
		const char *key, *value;
		enum config_key_rule rule;
		bool allowed;
	} t[] = {
		{ "secrets-encryption", "true", CONFIG_KEY_ALLOWED, true },
		{ "kubelet-arg", "max-pods=250", CONFIG_KEY_ALLOWED, true },
		{ "kubelet-arg", "max-pods", CONFIG_KEY_ALLOWED, false },
		{ "kubelet-arg", "config=/tmp/x", CONFIG_KEY_ALLOWED, false },
		{ "kube-apiserver-arg", "anonymous-auth=true",
		  CONFIG_KEY_ALLOWED, false },
		{ "kube-apiserver-arg", "authorization-mode=AlwaysAllow",
		  CONFIG_KEY_ALLOWED, false },
		{ "kube-apiserver-arg", "--x=1", CONFIG_KEY_ALLOWED, false },
		{ "tls-san", "x", CONFIG_KEY_OWNED, false },
		{ "disable-kube-proxy", "true", CONFIG_KEY_OWNED, false },
		{ "datastore-endpoint", "x", CONFIG_KEY_OWNED, false },
		{ "data-dir", "/x", CONFIG_KEY_OWNED, false },
		{ "disable-kube-prxy", "true", CONFIG_KEY_UNKNOWN, false },
		{ "", "x", CONFIG_KEY_UNKNOWN, false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < N(t); i++) {
		assert_int_equal(order_config_key(t[i].key), t[i].rule);
		assert_int_equal(order_config_value_allowed(t[i].key,
							    t[i].value),
				 t[i].allowed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(founder_never_joins),
		cmocka_unit_test(rules_across_fields),
		cmocka_unit_test(feature_words),
		cmocka_unit_test(
			modes_beyond_the_base_are_sent_when_they_differ),
		cmocka_unit_test(evidence_is_cleaned_and_cut),
		cmocka_unit_test(syntax_of_texts),
		cmocka_unit_test(config_keys),
	};

	return cmocka_run_group_tests_name("messages", tests, NULL, NULL);
}

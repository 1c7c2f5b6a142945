/* wipe.c: a server that etcd counts is never wiped. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator/wipe.h"

static void node_wipe_never_of_a_member(void **state)
{
	static const struct {
		struct kube_member m;
		int r;
	} t[] = {
		{ { "s3-0123abcd", "https://192.0.2.13:2380", false }, -EPERM },
		{ { "s3-0123abcd", "https://192.0.2.13:2380", true }, -EPERM },
		{ { "s3-0123abcd", "https://192.0.2.99:2380", false }, -EPERM },
		{ { "", "https://192.0.2.13:2380", true }, -EPERM },
		{ { "old-0123abcd", "https://192.0.2.13:2380", false }, -EPERM },
		{ { "s33-0123abcd", "https://192.0.2.133:2380", false }, 0 },
		{ { "s3-x-0123abcd", "https://192.0.2.1:2380", false }, 0 },
		{ { "", "", true }, 0 },
	};
	struct ip_addr address;
	size_t i;

	(void)state;
	assert_int_equal(ip_addr_parse("192.0.2.13", &address), 0);
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct kube_member m = t[i].m;
		struct kube_members list = { &m, 1 };
		struct fault f = FAULT_INIT;

		assert_int_equal(wipe_check(&list, "s3", &address, &f),
				 t[i].r);
		assert_int_equal(f.err, t[i].r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(node_wipe_never_of_a_member),
	};

	return cmocka_run_group_tests_name("wipe", tests, NULL, NULL);
}

/* kubeconfig.c: structure and names (B20), never "default". */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/kubeconfig.h"

static void b20_names_and_server(void **state)
{
	const struct cluster_credential cred = { "CA\n", "CERT\n", "KEY\n" };
	struct fault f = FAULT_INIT;
	struct ip_addr vip;
	char *text = NULL;

	(void)state;
	assert_int_equal(ip_addr_parse("192.0.2.9", &vip), 0);
	assert_int_equal(kubeconfig_render("prod", &vip, 6443, &cred, &text,
					   &f), 0);
	assert_string_equal(
		text, "apiVersion: \"v1\"\n"
		      "kind: \"Config\"\n"
		      "clusters:\n"
		      "- name: \"k3s-prod\"\n"
		      "  cluster:\n"
		      "    server: \"https://192.0.2.9:6443\"\n"
		      "    certificate-authority-data: \"Q0EK\"\n"
		      "users:\n"
		      "- name: \"k3s-prod-admin\"\n"
		      "  user:\n"
		      "    client-certificate-data: \"Q0VSVAo=\"\n"
		      "    client-key-data: \"S0VZCg==\"\n"
		      "contexts:\n"
		      "- name: \"k3s-prod\"\n"
		      "  context:\n"
		      "    cluster: \"k3s-prod\"\n"
		      "    user: \"k3s-prod-admin\"\n"
		      "current-context: \"k3s-prod\"\n");
	assert_null(strstr(text, "default"));
	free(text);
}

static void no_endpoint_no_file(void **state)
{
	const struct cluster_credential cred = { "CA", "CERT", "KEY" };
	struct fault f = FAULT_INIT;
	struct ip_addr none = { 0 };
	char *text = NULL;

	(void)state;
	assert_int_equal(kubeconfig_render("prod", &none, 6443, &cred, &text,
					   &f), -EINVAL);
	assert_null(text);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(b20_names_and_server),
		cmocka_unit_test(no_endpoint_no_file),
	};

	return cmocka_run_group_tests_name("kubeconfig", tests, NULL, NULL);
}

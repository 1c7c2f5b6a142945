#include "coordinator/kubeconfig.h"

#include <errno.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/yaml_out.h"

#define PEM_MAX (64 * 1024)

/* Base64 of a PEM text, as kubeconfig's *-data fields want it. */
static json_t *pem_data(const char *pem)
{
	size_t n = strlen(pem);
	unsigned char *out;
	json_t *o;

	if (n > PEM_MAX)
		return NULL;
	out = malloc(4 * ((n + 2) / 3) + 1);
	if (!out)
		return NULL;
	(void)EVP_EncodeBlock(out, (const unsigned char *)pem, (int)n);
	o = json_string((const char *)out);
	explicit_bzero(out, strlen((const char *)out));
	free(out);
	return o;
}

int kubeconfig_render(const char *cluster, const struct ip_addr *server,
		      uint16_t port, const struct cluster_credential *cred,
		      char **ret_text, struct fault *f)
{
	char url[IP_TEXT_MAX + 32], addr[IP_TEXT_MAX], name[128], user[128];
	json_t *o;
	int r;

	if (!server->family)
		return fault_set(f, -EINVAL, "kubeconfig",
				 "the spec has no endpoint to point it at");
	(void)ip_addr_format(server, addr);
	(void)snprintf(url, sizeof(url),
		       strchr(addr, ':') ? "https://[%s]:%u" :
					   "https://%s:%u", addr, port);
	(void)snprintf(name, sizeof(name), "k3s-%s", cluster);
	(void)snprintf(user, sizeof(user), "k3s-%s-admin", cluster);
	o = json_pack("{ss ss s[{ss s{ss so}}] s[{ss s{so so}}] "
		      "s[{ss s{ss ss}}] ss}",
		      "apiVersion", "v1", "kind", "Config",
		      "clusters", "name", name, "cluster", "server", url,
		      "certificate-authority-data", pem_data(cred->ca),
		      "users", "name", user, "user", "client-certificate-data",
		      pem_data(cred->cert), "client-key-data",
		      pem_data(cred->key),
		      "contexts", "name", name, "context", "cluster", name,
		      "user", user, "current-context", name);
	r = o ? yaml_out(o, ret_text) : -ENOMEM;
	json_decref(o);
	return r;
}

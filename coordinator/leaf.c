#include "coordinator/leaf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "coordinator/signer.h"
#include "proto/order.h"
#include "proto/pki.h"

static void cleanup_order(struct order **o)
{
	(void)order_free(*o);
}

/* The order owns its copies, so that order_free() releases all. */
static int fill(struct order *o, const uint8_t node_id[16], const char *name,
		uint8_t **takes_leaf, size_t leaf_size, uint8_t **takes_ca,
		size_t ca_size)
{
	struct order_trust_update *t = &o->trust;

	t->ca = calloc(1, sizeof(*t->ca));
	if (!t->ca)
		return -ENOMEM;
	t->n_ca = 1;
	t->ca[0].v = take_ptr(*takes_ca);
	t->ca[0].n = ca_size;
	t->certificate.v = take_ptr(*takes_leaf);
	t->certificate.n = leaf_size;
	memcpy(t->node_id, node_id, sizeof(t->node_id));
	t->has_node_id = true;
	(void)snprintf(t->node_name, sizeof(t->node_name), "%s", name);
	return 0;
}

int leaf_order(const struct signer *signer, const void *csr, size_t csr_size,
	       const uint8_t node_id[16], const char *name, int64_t now,
	       uint8_t ret_digest[32], uint8_t **ret_payload,
	       size_t *ret_size, struct fault *f)
{
	struct order *o CLEANUP(cleanup_order) = order_new(ORDER_TRUST_UPDATE);
	_cleanup_free_ uint8_t *leaf = NULL, *ca = NULL;
	size_t leaf_size = 0, ca_size = 0;
	uint8_t digest[32];
	int r;

	if (!o)
		return fault_set(f, -ENOMEM, name, "out of memory");
	if ((r = signer_issue(signer, csr, csr_size, node_id, now, &leaf,
			      &leaf_size, f)) < 0 ||
	    (r = pki_pem_to_der(signer_ca_pem(signer), &ca, &ca_size, f)) < 0)
		return r;
	if ((r = key_sha256(leaf, leaf_size, digest)) < 0 ||
	    (r = fill(o, node_id, name, &leaf, leaf_size, &ca, ca_size)) < 0)
		return fault_errno(f, r, name, "cannot make the certificate");
	r = order_encode(o, ret_payload, ret_size, f);
	if (r < 0)
		return r;
	memcpy(ret_digest, digest, sizeof(digest));
	return 0;
}

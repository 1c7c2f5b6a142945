/*
 * kube.h - a client of one Kubernetes API address, through a stream.
 *
 * The coordinator needs no route to the cluster: `socket_path` is a Unix
 * socket behind which the fleet server opens a stream to the node (FACTS
 * S6: libcurl 7.88 keeps that working and reuses the connection). TLS runs
 * end to end inside: the server certificate is verified against the
 * cluster's own CA for the address that was dialled (B77, A68); there is no
 * way to switch that off. Responses are bounded.
 *
 * Calls block, at most `timeout`; `cancelled` is asked meanwhile, so that
 * Ctrl-C ends one within a second (-EINTR).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fault.h"
#include "common/ip.h"

#define KUBE_BODY_MAX (8u * 1024 * 1024)
#define KUBE_TIMEOUT (15 * USEC_PER_SEC)	/* B77 */

struct kube;

struct kube_target {
	const char *socket_path;
	struct ip_addr address;		/* dialled and verified */
	uint16_t port;
	const char *ca_pem;
	const char *cert_pem, *key_pem;	/* NULL: anonymous */
	usec timeout;			/* 0: KUBE_TIMEOUT */
	bool (*cancelled)(void *userdata);	/* may be NULL */
	void *userdata;
};

/* Copies everything; no traffic yet. */
int kube_open(const struct kube_target *target, struct kube **ret_kube,
	      struct fault *f);
struct kube *kube_free(struct kube *k);		/* returns NULL */
DEFINE_CLEANUP(kube, struct kube, kube_free)

/*
 * All calls: 0 for 2xx, -ENOENT for 404, -EEXIST or -ESTALE for 409
 * (AlreadyExists or Conflict), -EACCES for 401 and 403, -EAGAIN for 429,
 * 500, 502, 503, 504 and for a connection that broke (try again later),
 * -ECONNREFUSED where nothing listens, -EKEYREJECTED where the certificate
 * does not verify (never retried silently), -E2BIG, -EPROTO. The fault
 * names the address, the path and the server's own message.
 */
int kube_get(struct kube *k, const char *path, json_t **ret_object,
	     struct fault *f);
int kube_get_text(struct kube *k, const char *path, char **ret_text,
		  struct fault *f);
int kube_post(struct kube *k, const char *path, json_t *object,
	      json_t **ret_object, struct fault *f);
/* Replace: `object` must carry metadata.resourceVersion (contract 10). */
int kube_put(struct kube *k, const char *path, json_t *object,
	     json_t **ret_object, struct fault *f);

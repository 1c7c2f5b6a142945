/*
 * vip.h - the endpoint (VIP): where it can live, who carries it, and the
 * proof that it answers, from every server, with a verified certificate
 * (A53, B77, contract 4.2 and 6).
 */
#pragma once

#include <stddef.h>

#include "common/fault.h"
#include "coordinator/kube.h"
#include "coordinator/steps/step.h"

#define VIP_WHY_MAX 300

/*
 * Renders the manifest for the interfaces that the servers report. An
 * interface named in the spec wins. *ret_text is owned by the caller.
 */
int vip_manifest(const struct step_env *env, char **ret_text,
		 struct fault *f);

/* Number of nodes whose agent reports the address on an interface. */
int vip_carriers(const struct step_env *env, size_t *ret_n, char *names,
		 size_t size, struct fault *f);

/*
 * /readyz through the endpoint, once per server. 1: all answered; 0: `why`
 * names the first that did not; an error where it will never work, such as
 * a certificate that does not verify.
 */
int vip_answers(const struct step_env *env, char *why, size_t size,
		struct fault *f);

/*
 * Before the first announcement: a printer on the address would make two
 * owners of it (contract 6.4, B76). Asked by ARP on `node`, unless one of
 * our own nodes carries it. -EADDRINUSE with what answered.
 */
int vip_check_free(const struct step_env *env, const char *node,
		   struct fault *f);

/*
 * k3s_files.h - the files Garboard keeps for k3s: unit, configuration,
 * token, manifests; and what can be read of k3s's own.
 *
 * Every file is replaced whole by temporary name and rename, and only when
 * its content differs: 1 means changed, 0 that it was so already (A44).
 * What is not ours (a unit or configuration without our mark, a drop-in
 * that would replace our keys) is refused with -EPERM and its name.
 */
#pragma once

#include <stdbool.h>

#include "common/fault.h"
#include "proto/order.h"
#include "proto/up.h"

int k3s_files_write_unit(const char *root, bool agent, struct fault *f);
/* -ENOENT: there is none. */
int k3s_files_unit_is_ours(const char *root, bool *ret_ours);
int k3s_files_write_config(const char *root,
			   const struct order_k3s_configure *c,
			   struct fault *f);
/* `token` is checked (B124) and never shown. */
int k3s_files_write_token(const char *root, const char *token,
			  struct fault *f);
int k3s_files_write_manifest(const char *root, enum manifest_slot slot,
			     const void *content, size_t size,
			     struct fault *f);

/* What of struct k3s_status is in files; the rest is left alone. */
void k3s_files_status(const char *root, struct k3s_status *s);
bool k3s_files_has_data(const char *root);
/* Our configuration has a line that starts with `text`. */
bool k3s_files_config_says(const char *root, const char *text);

/*
 * {"ca": PEM, "cert": PEM, "key": PEM} of the admin, or the server's token.
 * Heap; wipe it. -ENOENT: k3s has not made it yet.
 */
int k3s_files_credential(const char *root, enum credential_kind kind,
			 char **ret_text, size_t *ret_size, struct fault *f);

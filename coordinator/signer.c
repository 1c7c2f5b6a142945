#include "coordinator/signer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/parse.h"
#include "proto/envelope.h"
#include "proto/pki.h"
#include "proto/tls.h"

#define PATH_ROOM 4096

enum signer_file {
	FILE_TRUST_ROOT,	/* private; may be moved away */
	FILE_TRUST_PUBLIC,
	FILE_CA_KEY,
	FILE_CA,
	FILE_COORDINATOR_KEY,
	FILE_COORDINATOR,
	FILE_ORDER_KEY,
	FILE_STATEMENT,
	FILE_SEAL_KEY,
	FILE_MAX,
};

static const char *const file_names[FILE_MAX] = {
	[FILE_TRUST_ROOT] = "trust-root.key",
	[FILE_TRUST_PUBLIC] = "trust-root.pub",
	[FILE_CA_KEY] = "ca.key",
	[FILE_CA] = "ca.crt",
	[FILE_COORDINATOR_KEY] = "coordinator.key",
	[FILE_COORDINATOR] = "coordinator.crt",
	[FILE_ORDER_KEY] = "order.key",
	[FILE_STATEMENT] = "order.statement",
	[FILE_SEAL_KEY] = "seal.key",
};

struct signer {
	char *state;
	struct key *ca_key, *coordinator_key, *order_key, *seal_key;
	char *ca_pem, *coordinator_pem;
	uint8_t trust_root[KEY_PUBLIC_SIZE];
	uint8_t seal_public[KEY_PUBLIC_SIZE];
	uint8_t statement_bytes[STATEMENT_SIZE];
	struct statement statement;
};

static void cleanup_key(struct key **k)
{
	(void)key_free(*k);
}
#define _cleanup_key_ CLEANUP(cleanup_key)

static void file_path(const char *state, enum signer_file file, char *buf)
{
	(void)snprintf(buf, PATH_ROOM, "%s/%s", state, file_names[file]);
}

struct signer *signer_free(struct signer *s)
{
	if (!s)
		return NULL;
	(void)key_free(s->ca_key);
	(void)key_free(s->coordinator_key);
	(void)key_free(s->order_key);
	(void)key_free(s->seal_key);
	free(s->ca_pem);
	free(s->coordinator_pem);
	free(s->state);
	free(s);
	return NULL;
}

/* ---- init ---- */

static int refuse_existing(const char *state, struct fault *f)
{
	char path[PATH_ROOM];
	struct stat st;

	for (int i = 0; i < FILE_MAX; i++) {
		file_path(state, (enum signer_file)i, path);
		if (lstat(path, &st) == 0)
			return fault_set(f, -EEXIST, path,
					 "exists already: this state directory "
					 "has a cluster; name another one");
		if (errno != ENOENT)
			return fault_errno(f, -errno, path, "cannot look");
	}
	return 0;
}

static int make_statement(const uint8_t cluster_id[16],
			  const struct key *order_key, uint64_t epoch,
			  const struct key *root,
			  uint8_t ret_bytes[STATEMENT_SIZE], struct fault *f)
{
	struct statement st = { .epoch = epoch };

	memcpy(st.cluster_id, cluster_id, sizeof(st.cluster_id));
	key_public(order_key, st.order_key);
	return statement_sign(&st, root, ret_bytes, f);
}

static int save_text(const char *state, enum signer_file file,
		     const void *data, size_t size, struct fault *f)
{
	char path[PATH_ROOM];

	file_path(state, file, path);
	return file_write(path, 0600, data, size, f);
}

static int save_key(const char *state, enum signer_file file,
		    const struct key *key, struct fault *f)
{
	char path[PATH_ROOM];

	file_path(state, file, path);
	return key_save(key, path, f);
}

/* Keys first, then what they signed; the statement says "complete". */
static int save_all(const struct signer *s, const struct key *root,
		    struct fault *f)
{
	char hex[2 * KEY_PUBLIC_SIZE + 2];
	int r;

	format_hex(s->trust_root, KEY_PUBLIC_SIZE, hex);
	hex[sizeof(hex) - 2] = '\n';
	hex[sizeof(hex) - 1] = '\0';
	if ((r = save_key(s->state, FILE_TRUST_ROOT, root, f)) < 0 ||
	    (r = save_key(s->state, FILE_CA_KEY, s->ca_key, f)) < 0 ||
	    (r = save_key(s->state, FILE_COORDINATOR_KEY, s->coordinator_key,
			  f)) < 0 ||
	    (r = save_key(s->state, FILE_ORDER_KEY, s->order_key, f)) < 0 ||
	    (r = save_key(s->state, FILE_SEAL_KEY, s->seal_key, f)) < 0 ||
	    (r = save_text(s->state, FILE_TRUST_PUBLIC, hex, sizeof(hex) - 1,
			   f)) < 0 ||
	    (r = save_text(s->state, FILE_CA, s->ca_pem, strlen(s->ca_pem),
			   f)) < 0 ||
	    (r = save_text(s->state, FILE_COORDINATOR, s->coordinator_pem,
			   strlen(s->coordinator_pem), f)) < 0)
		return r;
	return save_text(s->state, FILE_STATEMENT, s->statement_bytes,
			 STATEMENT_SIZE, f);
}

static int make_keys(struct signer *s, struct key **ret_root, struct fault *f)
{
	int r;

	if ((r = key_generate(KEY_P256, &s->ca_key, f)) < 0 ||
	    (r = key_generate(KEY_P256, &s->coordinator_key, f)) < 0 ||
	    (r = key_generate(KEY_ED25519, &s->order_key, f)) < 0 ||
	    (r = key_generate(KEY_X25519, &s->seal_key, f)) < 0)
		return r;
	return key_generate(KEY_ED25519, ret_root, f);
}

int signer_init(const char *state, const char *cluster, int64_t now,
		uint8_t ret_cluster_id[16], struct fault *f)
{
	struct signer *s CLEANUP(signer_freep) = calloc(1, sizeof(*s));
	_cleanup_key_ struct key *root = NULL;
	uint8_t id[16];
	int r;

	if (!s || !(s->state = strdup(state)))
		return fault_set(f, -ENOMEM, state, "out of memory");
	if ((r = refuse_existing(state, f)) < 0 ||
	    (r = make_keys(s, &root, f)) < 0)
		return r;
	r = key_random(id, sizeof(id));
	if (r < 0)
		return fault_errno(f, r, state, "no random bytes");
	key_public(root, s->trust_root);
	if ((r = pki_make_ca(s->ca_key, cluster, id, now, &s->ca_pem, f)) < 0 ||
	    (r = pki_make_coordinator(s->ca_key, s->ca_pem, s->coordinator_key,
				      id, now, &s->coordinator_pem, f)) < 0 ||
	    (r = make_statement(id, s->order_key, 1, root, s->statement_bytes,
				f)) < 0 ||
	    (r = save_all(s, root, f)) < 0)
		return r;
	memcpy(ret_cluster_id, id, sizeof(id));
	return 0;
}

/* ---- open ---- */

static int load_text(const char *state, enum signer_file file, size_t limit,
		     char **ret_text, size_t *ret_size, struct fault *f)
{
	char path[PATH_ROOM];
	int r;

	file_path(state, file, path);
	r = file_read(path, limit, ret_text, ret_size, f);
	if (r == -ENOENT)
		return fault_set(f, r, path,
				 "is missing: garboard init makes it, or this "
				 "is not the state directory of a cluster");
	return r;
}

static int load_key(const char *state, enum signer_file file,
		    enum key_type type, struct key **ret_key, struct fault *f)
{
	char path[PATH_ROOM];
	int r;

	file_path(state, file, path);
	r = key_load(path, type, ret_key, f);
	if (r == -ENOENT)
		return fault_set(f, r, path,
				 "is missing: restore it, or run garboard init "
				 "for a new cluster");
	return r;
}

static int load_trust_root(struct signer *s, struct fault *f)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	int r;

	r = load_text(s->state, FILE_TRUST_PUBLIC, 256, &text, &size, f);
	if (r < 0)
		return r;
	text[strcspn(text, "\n")] = '\0';
	if (parse_hex(text, s->trust_root, KEY_PUBLIC_SIZE) < 0)
		return fault_set(f, -EBADMSG, "trust-root.pub",
				 "is not 64 hex digits");
	return 0;
}

/* The statement names the cluster; its signature says the files belong. */
static int load_statement(struct signer *s, struct fault *f)
{
	uint8_t public[KEY_PUBLIC_SIZE];
	_cleanup_free_ char *bytes = NULL;
	struct pki_identity me;
	size_t size = 0;
	int r;

	r = load_text(s->state, FILE_STATEMENT, STATEMENT_SIZE, &bytes, &size,
		      f);
	if (r < 0)
		return r;
	r = pki_read_pem(s->coordinator_pem, &me, f);
	if (r < 0)
		return r;
	r = statement_verify(bytes, size, me.cluster_id, s->trust_root,
			     &s->statement, f);
	if (r < 0)
		return r;
	key_public(s->order_key, public);
	if (!key_equal(public, s->statement.order_key, sizeof(public)))
		return fault_set(f, -EBADMSG, "order.key",
				 "is not the key of order.statement: restore "
				 "both from one backup");
	memcpy(s->statement_bytes, bytes, STATEMENT_SIZE);
	return 0;
}

/* At two thirds of its life, as every leaf: else all nodes go dark at once. */
static int renew_own(struct signer *s, int64_t now, struct fault *f)
{
	_cleanup_free_ char *pem = NULL;
	struct pki_identity me;
	int r;

	r = pki_read_pem(s->coordinator_pem, &me, f);
	if (r < 0 || now < pki_renew_at(&me))
		return r;
	if ((r = pki_make_coordinator(s->ca_key, s->ca_pem, s->coordinator_key,
				      s->statement.cluster_id, now, &pem,
				      f)) < 0 ||
	    (r = save_text(s->state, FILE_COORDINATOR, pem, strlen(pem),
			   f)) < 0)
		return r;
	free(s->coordinator_pem);
	s->coordinator_pem = take_ptr(pem);
	return 0;
}

int signer_open(const char *state, struct signer **ret_signer, struct fault *f)
{
	struct signer *s CLEANUP(signer_freep) = calloc(1, sizeof(*s));
	size_t n = 0;
	int r;

	if (!s || !(s->state = strdup(state)))
		return fault_set(f, -ENOMEM, state, "out of memory");
	if ((r = load_trust_root(s, f)) < 0 ||
	    (r = load_key(state, FILE_CA_KEY, KEY_P256, &s->ca_key, f)) < 0 ||
	    (r = load_key(state, FILE_COORDINATOR_KEY, KEY_P256,
			  &s->coordinator_key, f)) < 0 ||
	    (r = load_key(state, FILE_ORDER_KEY, KEY_ED25519, &s->order_key,
			  f)) < 0 ||
	    (r = load_key(state, FILE_SEAL_KEY, KEY_X25519, &s->seal_key,
			  f)) < 0 ||
	    (r = load_text(state, FILE_CA, PKI_PEM_MAX, &s->ca_pem, &n,
			   f)) < 0 ||
	    (r = load_text(state, FILE_COORDINATOR, PKI_PEM_MAX,
			   &s->coordinator_pem, &n, f)) < 0 ||
	    (r = load_statement(s, f)) < 0 ||
	    (r = renew_own(s, time(NULL), f)) < 0)
		return r;
	key_public(s->seal_key, s->seal_public);
	*ret_signer = take_ptr(s);
	return 0;
}

/* ---- use ---- */

const uint8_t *signer_cluster_id(const struct signer *s)
{
	return s->statement.cluster_id;
}

const uint8_t *signer_trust_root(const struct signer *s)
{
	return s->trust_root;
}

const uint8_t *signer_seal_key(const struct signer *s)
{
	return s->seal_public;
}

const uint8_t *signer_statement(const struct signer *s)
{
	return s->statement_bytes;
}

uint64_t signer_epoch(const struct signer *s)
{
	return s->statement.epoch;
}

const char *signer_ca_pem(const struct signer *s)
{
	return s->ca_pem;
}

int signer_order(const struct signer *s, const uint8_t node_id[16],
		 uint64_t epoch, uint64_t sequence, const uint8_t *binding,
		 const void *payload, size_t size, uint8_t **ret_bytes,
		 size_t *ret_size, struct fault *f)
{
	struct envelope_header h = {
		.direction = ENVELOPE_DOWN,
		.epoch = epoch,
		.sequence = sequence,
	};

	memcpy(h.cluster_id, s->statement.cluster_id, sizeof(h.cluster_id));
	memcpy(h.node_id, node_id, sizeof(h.node_id));
	memcpy(h.binding, binding, sizeof(h.binding));
	return envelope_sign(&h, s->order_key, payload, size, ret_bytes,
			     ret_size, f);
}

int signer_issue(const struct signer *s, const void *csr, size_t csr_size,
		 const uint8_t node_id[16], int64_t now, uint8_t **ret_der,
		 size_t *ret_size, struct fault *f)
{
	struct pki_identity ca;
	int r;

	r = pki_read_pem(s->coordinator_pem, &ca, f);
	if (r < 0)
		return r;
	/* A clock before our own certificate mints for the wrong decade. */
	if (now < ca.not_before)
		return fault_set(f, -ETIME, "clock",
				 "of this host is before its own certificate "
				 "(%lld < %lld): set the clock, nothing was "
				 "issued",
				 (long long)now, (long long)ca.not_before);
	return pki_issue_leaf(s->ca_key, s->ca_pem, csr, csr_size,
			      s->statement.cluster_id, node_id, now, ret_der,
			      ret_size, f);
}

int signer_tls(const struct signer *s, struct tls_ctx **ret_ctx,
	       struct fault *f)
{
	struct tls_config config = {
		.server = true,
		.ca_pem = s->ca_pem,
		.cert_pem = s->coordinator_pem,
		.key = s->coordinator_key,
		.peer_optional = true,
		.accept_expired = true,
	};

	memcpy(config.cluster_id, s->statement.cluster_id,
	       sizeof(config.cluster_id));
	return tls_ctx_new(&config, ret_ctx, f);
}

int signer_seal(const struct signer *s, const char *context, const void *plain,
		size_t size, struct sealed *ret_sealed, struct fault *f)
{
	return seal_to(s->seal_public, context, plain, size, ret_sealed, f);
}

int signer_unseal(const struct signer *s, const char *context,
		  const struct sealed *sealed, uint8_t **ret_plain,
		  size_t *ret_size, struct fault *f)
{
	return seal_open(s->seal_key, context, sealed, ret_plain, ret_size, f);
}

int signer_new_epoch(struct signer *s, uint64_t epoch, struct fault *f)
{
	_cleanup_key_ struct key *root = NULL, *order_key = NULL;
	uint8_t bytes[STATEMENT_SIZE], public[KEY_PUBLIC_SIZE];
	char path[PATH_ROOM];
	int r;

	if (epoch <= s->statement.epoch)
		return fault_set(f, -EINVAL, "epoch", "must rise above %llu",
				 (unsigned long long)s->statement.epoch);
	file_path(s->state, FILE_TRUST_ROOT, path);
	r = key_load(path, KEY_ED25519, &root, f);
	if (r == -ENOENT)
		return fault_set(f, -ENOKEY, path,
				 "the trust root is not here: bring the file "
				 "back for this one command");
	if (r < 0)
		return r;
	key_public(root, public);
	if (!key_equal(public, s->trust_root, sizeof(public)))
		return fault_set(f, -EBADMSG, path,
				 "is the trust root of another cluster");
	if ((r = key_generate(KEY_ED25519, &order_key, f)) < 0 ||
	    (r = make_statement(s->statement.cluster_id, order_key, epoch,
				root, bytes, f)) < 0 ||
	    (r = save_key(s->state, FILE_ORDER_KEY, order_key, f)) < 0 ||
	    (r = save_text(s->state, FILE_STATEMENT, bytes, sizeof(bytes),
			   f)) < 0)
		return r;
	(void)key_free(s->order_key);
	s->order_key = take_ptr(order_key);
	memcpy(s->statement_bytes, bytes, sizeof(bytes));
	key_public(s->order_key, s->statement.order_key);
	s->statement.epoch = epoch;
	return 0;
}

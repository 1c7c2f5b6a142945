#include "agent/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state_fields.h"
#include "agent/statefile.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/parse.h"

#define STATE_FORMAT 1

/* ---- reading: one function per file, from text into the struct ---- */

static int read_identity(const char *text, struct node_state *s)
{
	char line[IP_TEXT_MAX];
	size_t i;
	int r;

	r = fields_get_hex(text, "node-id", s->node_id, sizeof(s->node_id));
	if (r < 0)
		return r;
	r = fields_get(text, "name", 0, s->node_name, sizeof(s->node_name));
	if (r < 0)
		return r;
	s->enrolled = true;
	s->revoked = fields_get(text, "revoked", 0, line, sizeof(line)) == 0;
	for (i = 0; fields_get(text, "address", i, line, sizeof(line)) == 0;
	     i++) {
		r = strlist_add(&s->addresses, line);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_orders(const char *text, struct node_state *s)
{
	int r;

	r = fields_get_u64(text, "epoch", &s->epoch);
	if (r == 0)
		r = fields_get_u64(text, "sequence", &s->sequence);
	if (r < 0)
		return r;
	r = fields_get_hex(text, "statement", s->statement, STATEMENT_SIZE);
	s->has_statement = r == 0;
	return r == -ENOENT ? 0 : r;
}

static int read_starts(const char *text, struct node_state *s)
{
	return fields_get_u64(text, "starts", &s->starts);
}

static int read_founding(const char *text, struct node_state *s)
{
	struct founding_record *rec = &s->founding;
	int r;

	r = fields_get(text, "founder", 0, rec->founder, sizeof(rec->founder));
	if (r == 0)
		r = fields_get_u64(text, "intent", &rec->intent);
	if (r < 0)
		return r;
	r = fields_get(text, "cluster-uid", 0, rec->cluster_uid,
		       sizeof(rec->cluster_uid));
	if (r < 0 && r != -ENOENT)
		return r;
	r = fields_get_hex(text, "ca", rec->ca_sha256, sizeof(rec->ca_sha256));
	if (r < 0 && r != -ENOENT)
		return r;
	rec->has_ca = r == 0;
	s->has_founding = true;
	return 0;
}

static int read_lease(const char *text, struct node_state *s)
{
	struct state_lease *l = &s->lease;
	char boot[64];
	int r;

	r = fields_get_u64(text, "term", &l->term);
	if (r == 0)
		r = fields_get_u64(text, "duration", &l->duration);
	if (r == 0)
		r = fields_get_u64(text, "expires", &l->expires);
	if (r == 0)
		r = fields_get(text, "boot", 0, boot, sizeof(boot));
	if (r < 0)
		return r;
	r = fields_get(text, "holder", 0, l->holder, sizeof(l->holder));
	/* The clock began anew: the holder gets its whole time once more. */
	if (strcmp(boot, s->boot_id) != 0)
		l->expires = 0;
	return r == -ENOENT ? 0 : r;
}

static int read_install(const char *text, struct node_state *s)
{
	int r;

	r = fields_get_hex(text, "sha256", s->install.sha256,
			   sizeof(s->install.sha256));
	return r < 0 ? r :
		       fields_get(text, "version", 0, s->install.version,
				  sizeof(s->install.version));
}

static const struct state_file {
	const char *name;
	int (*read)(const char *text, struct node_state *s);
} files[] = {
	{ "identity", read_identity }, { "orders", read_orders },
	{ "boots", read_starts },      { "founding", read_founding },
	{ "lease", read_lease },       { "k3s", read_install },
};

static int load_file(struct node_state *s, const struct state_file *file,
		     struct fault *f)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	int r, parsed;

	r = statefile_read(s->dir, file->name, STATE_FORMAT, FIELDS_MAX, &text,
		       &size, f);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	parsed = file->read(text, s);
	if (parsed < 0)
		return fault_set(f, -EBADMSG, file->name,
				 "state file lacks a field or has a bad one");
	return r;
}

static void read_boot_id(struct node_state *s)
{
	char compact[33];
	size_t i, n = 0;

	if (file_line("/proc/sys/kernel/random/boot_id", s->boot_id,
		      sizeof(s->boot_id), NULL) < 0)
		return;
	for (i = 0; s->boot_id[i] && n < 32; i++)
		if (s->boot_id[i] != '-')
			compact[n++] = s->boot_id[i];
	compact[n] = '\0';
	(void)parse_hex(compact, s->boot, sizeof(s->boot));
}

int state_load(const char *dir, usec now, struct node_state *ret_state,
	       struct fault *f)
{
	struct node_state s = { 0 };
	bool broken = false;
	size_t i;
	int r;

	s.dir = strdup(dir);
	if (!s.dir)
		return fault_errno(f, -ENOMEM, dir, "cannot be read");
	r = file_mkdirs(dir, 0700, f);
	if (r < 0) {
		state_done(&s);
		return r;
	}
	read_boot_id(&s);
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (load_file(&s, &files[i], f) != 0)
			broken = true;
	if (s.lease.holder[0] && !s.lease.expires)
		s.lease.expires = now + s.lease.duration;
	*ret_state = s;
	return broken;
}

void state_done(struct node_state *s)
{
	strlist_done(&s->addresses);
	free(s->dir);
	s->dir = NULL;
}

/* ---- writing ---- */

static int save(const struct node_state *s, const char *name,
		const struct fields *out, struct fault *f)
{
	if (out->error)
		return fault_errno(f, out->error, name, "cannot be stored");
	return statefile_write(s->dir, name, STATE_FORMAT, out->text, out->n, f);
}

int state_count_start(struct node_state *s, struct fault *f)
{
	struct fields out = { .n = 0 };
	int r;

	fields_put_u64(&out, "starts", s->starts + 1);
	r = save(s, "boots", &out, f);
	if (r == 0)
		s->starts++;
	return r;
}

static int save_identity(const struct node_state *s, const uint8_t id[16],
			 const char *name, const struct strlist *addresses,
			 bool revoked, struct fault *f)
{
	struct fields out = { .n = 0 };
	size_t i;

	fields_put_hex(&out, "node-id", id, 16);
	fields_put(&out, "name", name);
	if (revoked)
		fields_put(&out, "revoked", "yes");
	for (i = 0; i < addresses->n; i++)
		fields_put(&out, "address", addresses->v[i]);
	return save(s, "identity", &out, f);
}

int state_set_identity(struct node_state *s, const uint8_t node_id[16],
		       const char *name, struct fault *f)
{
	size_t n = strlen(name);
	int r;

	if (n >= sizeof(s->node_name))
		return fault_set(f, -E2BIG, "identity", "name is too long");
	r = save_identity(s, node_id, name, &s->addresses, false, f);
	if (r < 0)
		return r;
	memcpy(s->node_id, node_id, 16);
	memcpy(s->node_name, name, n + 1);
	s->enrolled = true;
	s->revoked = false;
	return 0;
}

int state_set_revoked(struct node_state *s, struct fault *f)
{
	int r = save_identity(s, s->node_id, s->node_name, &s->addresses, true,
			      f);

	if (r == 0)
		s->revoked = true;
	return r;
}

int state_set_addresses(struct node_state *s, const struct strlist *addresses,
			struct fault *f)
{
	struct strlist copy = STRLIST_INIT;
	int r;

	r = strlist_copy(addresses, &copy);
	if (r < 0)
		return fault_errno(f, r, "identity", "addresses not kept");
	r = save_identity(s, s->node_id, s->node_name, &copy, s->revoked, f);
	if (r < 0) {
		strlist_done(&copy);
		return r;
	}
	strlist_done(&s->addresses);
	s->addresses = copy;
	return 0;
}

static int save_orders(const struct node_state *s, uint64_t epoch,
		       uint64_t sequence, const uint8_t *statement,
		       struct fault *f)
{
	struct fields out = { .n = 0 };

	fields_put_u64(&out, "epoch", epoch);
	fields_put_u64(&out, "sequence", sequence);
	if (statement)
		fields_put_hex(&out, "statement", statement, STATEMENT_SIZE);
	return save(s, "orders", &out, f);
}

int state_set_statement(struct node_state *s,
			const uint8_t bytes[STATEMENT_SIZE],
			const struct statement *st, struct fault *f)
{
	uint64_t sequence = st->epoch > s->epoch ? 0 : s->sequence;
	int r;

	r = save_orders(s, st->epoch, sequence, bytes, f);
	if (r < 0)
		return r;
	memcpy(s->statement, bytes, STATEMENT_SIZE);
	s->has_statement = true;
	s->epoch = st->epoch;
	s->sequence = sequence;
	return 0;
}

int state_set_order(struct node_state *s, uint64_t epoch, uint64_t sequence,
		    struct fault *f)
{
	int r = save_orders(s, epoch, sequence,
			    s->has_statement ? s->statement : NULL, f);

	if (r < 0)
		return r;
	s->epoch = epoch;
	s->sequence = sequence;
	return 0;
}

int state_set_founding(struct node_state *s, const struct founding_record *r,
		       struct fault *f)
{
	struct fields out = { .n = 0 };
	int err;

	fields_put(&out, "founder", r->founder);
	fields_put_u64(&out, "intent", r->intent);
	if (r->cluster_uid[0])
		fields_put(&out, "cluster-uid", r->cluster_uid);
	if (r->has_ca)
		fields_put_hex(&out, "ca", r->ca_sha256, sizeof(r->ca_sha256));
	err = save(s, "founding", &out, f);
	if (err < 0)
		return err;
	s->founding = *r;
	s->has_founding = true;
	return 0;
}

int state_set_lease(struct node_state *s, const struct state_lease *lease,
		    struct fault *f)
{
	struct fields out = { .n = 0 };
	int r;

	fields_put_u64(&out, "term", lease->term);
	fields_put_u64(&out, "duration", lease->duration);
	fields_put_u64(&out, "expires", lease->expires);
	fields_put(&out, "boot", s->boot_id);
	if (lease->holder[0])
		fields_put(&out, "holder", lease->holder);
	r = save(s, "lease", &out, f);
	if (r == 0)
		s->lease = *lease;
	return r;
}

int state_set_install(struct node_state *s, const struct state_install *i,
		      struct fault *f)
{
	struct fields out = { .n = 0 };
	int r;

	fields_put_hex(&out, "sha256", i->sha256, sizeof(i->sha256));
	fields_put(&out, "version", i->version);
	r = save(s, "k3s", &out, f);
	if (r == 0)
		s->install = *i;
	return r;
}

int state_put_desired(struct node_state *s, const void *bytes, size_t size,
		      struct fault *f)
{
	return statefile_write(s->dir, "desired", STATE_FORMAT, bytes, size, f);
}

int state_get_desired(const struct node_state *s, char **ret_bytes,
		      size_t *ret_size, struct fault *f)
{
	return statefile_read(s->dir, "desired", STATE_FORMAT, ENVELOPE_MAX,
			  ret_bytes, ret_size, f);
}

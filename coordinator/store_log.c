#include "coordinator/store_internal.h"

#include <errno.h>
#include <string.h>

int store_founding_get(struct store *s, struct store_founding *ret_record,
		       struct fault *f)
{
	_cleanup_stmt_ sqlite3_stmt *stmt = NULL;
	struct store_founding rec = { 0 };
	int r;

	r = store_prepare(s,
			  "SELECT cluster_uid,ca,founder,intent FROM founding",
			  &stmt, f);
	if (r < 0)
		return r;
	r = store_step(s, stmt, f);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	store_column_text(stmt, 0, rec.cluster_uid, sizeof(rec.cluster_uid));
	rec.has_ca = sqlite3_column_bytes(stmt, 1) == sizeof(rec.ca_sha256);
	store_column_bytes(stmt, 1, rec.ca_sha256, sizeof(rec.ca_sha256));
	store_column_text(stmt, 2, rec.founder, sizeof(rec.founder));
	rec.intent = store_column_u64(stmt, 3);
	*ret_record = rec;
	return 0;
}

int store_founding_put(struct store *s, const struct store_founding *r_,
		       struct fault *f)
{
	_cleanup_stmt_ sqlite3_stmt *stmt = NULL;
	int r;

	r = store_prepare(s,
			  "INSERT INTO founding(one,cluster_uid,ca,founder,"
			  "intent) VALUES(1,?1,?2,?3,?4) ON CONFLICT(one)"
			  " DO UPDATE SET cluster_uid=?1,ca=?2,founder=?3,"
			  "intent=?4",
			  &stmt, f);
	if (r < 0)
		return r;
	store_bind_text(stmt, 1, r_->cluster_uid);
	store_bind_blob(stmt, 2, r_->ca_sha256,
			r_->has_ca ? sizeof(r_->ca_sha256) : 0);
	store_bind_text(stmt, 3, r_->founder);
	store_bind_u64(stmt, 4, r_->intent);
	return store_write(s, stmt, f);
}

int store_secret_put(struct store *s, const char *name,
		     const uint8_t ephemeral[32], const void *box, size_t size,
		     struct fault *f)
{
	_cleanup_stmt_ sqlite3_stmt *stmt = NULL;
	int r;

	if (size > STORE_BLOB_MAX)
		return fault_set(f, -E2BIG, name, "secret is too large");
	r = store_prepare(s,
			  "INSERT INTO secret(name,ephemeral,box)"
			  " VALUES(?1,?2,?3) ON CONFLICT(name) DO UPDATE"
			  " SET ephemeral=?2,box=?3",
			  &stmt, f);
	if (r < 0)
		return r;
	store_bind_text(stmt, 1, name);
	store_bind_blob(stmt, 2, ephemeral, 32);
	store_bind_blob(stmt, 3, box, size);
	return store_write(s, stmt, f);
}

int store_secret_get(struct store *s, const char *name, uint8_t *ret_ephemeral,
		     struct store_blob *ret_box, struct fault *f)
{
	_cleanup_stmt_ sqlite3_stmt *stmt = NULL;
	int r;

	r = store_prepare(s, "SELECT ephemeral,box FROM secret WHERE name=?",
			  &stmt, f);
	if (r < 0)
		return r;
	store_bind_text(stmt, 1, name);
	r = store_step(s, stmt, f);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	r = store_column_blob(stmt, 1, ret_box);
	if (r < 0)
		return fault_errno(f, r, name, "cannot read the secret");
	store_column_bytes(stmt, 0, ret_ephemeral, 32);
	return 0;
}

int store_event_add(struct store *s, const struct store_event *e,
		    struct fault *f)
{
	_cleanup_stmt_ sqlite3_stmt *stmt = NULL, *trim = NULL;
	int r;

	r = store_prepare(s,
			  "INSERT INTO event(at,stage,node,text)"
			  " VALUES(?,?,?,?)",
			  &stmt, f);
	if (r < 0)
		return r;
	store_bind_u64(stmt, 1, e->at);
	store_bind_text(stmt, 2, e->stage);
	store_bind_text(stmt, 3, e->node);
	store_bind_text(stmt, 4, e->text);
	r = store_write(s, stmt, f);
	if (r < 0)
		return r;
	r = store_prepare(s, "DELETE FROM event WHERE id<=?", &trim, f);
	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(trim, 1, sqlite3_last_insert_rowid(s->db) -
						  STORE_EVENTS_MAX);
	return store_step(s, trim, f);
}

int store_events(struct store *s, size_t limit, store_event_fn fn, void *arg,
		 struct fault *f)
{
	_cleanup_stmt_ sqlite3_stmt *stmt = NULL;
	int r;

	r = store_prepare(s,
			  "SELECT id,at,stage,node,text FROM (SELECT * FROM"
			  " event ORDER BY id DESC LIMIT ?) ORDER BY id",
			  &stmt, f);
	if (r < 0)
		return r;
	store_bind_u64(stmt, 1,
		       limit < STORE_EVENTS_MAX ? limit : STORE_EVENTS_MAX);
	while ((r = store_step(s, stmt, f)) > 0) {
		struct store_event e = { 0 };

		e.id = store_column_u64(stmt, 0);
		e.at = store_column_u64(stmt, 1);
		store_column_text(stmt, 2, e.stage, sizeof(e.stage));
		store_column_text(stmt, 3, e.node, sizeof(e.node));
		store_column_text(stmt, 4, e.text, sizeof(e.text));
		r = fn(&e, arg);
		if (r != 0)
			return r;
	}
	return r;
}

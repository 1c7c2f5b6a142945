#include "coordinator/store_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int count_rows(struct store *s, const char *sql, uint64_t arg,
		      size_t *ret_count, struct fault *f)
{
	_cleanup_stmt_ sqlite3_stmt *stmt = NULL;
	int r;

	r = store_prepare(s, sql, &stmt, f);
	if (r < 0)
		return r;
	store_bind_u64(stmt, 1, arg);
	r = store_step(s, stmt, f);
	if (r < 0)
		return r;
	*ret_count = (size_t)store_column_u64(stmt, 0);
	return 0;
}

int store_tokens_open(struct store *s, usec now, size_t *ret_count,
		      struct fault *f)
{
	return count_rows(s,
			  "SELECT count(*) FROM token"
			  " WHERE used=0 AND expires_at>?",
			  now, ret_count, f);
}

int store_token_add(struct store *s, const struct store_token *t,
		    struct fault *f)
{
	_cleanup_stmt_ sqlite3_stmt *stmt = NULL;
	size_t n = 0;
	int r;

	r = store_tokens_open(s, t->created_at, &n, f);
	if (r < 0)
		return r;
	if (n >= STORE_TOKENS_MAX)
		return fault_set(f, -E2BIG, "token",
				 "%zu tokens are open already", n);
	r = store_prepare(s,
			  "INSERT INTO token(hash,node,created_at,expires_at,"
			  "used,used_by) VALUES(?,?,?,?,0,x'')",
			  &stmt, f);
	if (r < 0)
		return r;
	store_bind_blob(stmt, 1, t->hash, sizeof(t->hash));
	store_bind_text(stmt, 2, t->node);
	store_bind_u64(stmt, 3, t->created_at);
	store_bind_u64(stmt, 4, t->expires_at);
	return store_write(s, stmt, f);
}

int store_token_get(struct store *s, const uint8_t hash[32],
		    struct store_token *ret_token, struct fault *f)
{
	_cleanup_stmt_ sqlite3_stmt *stmt = NULL;
	struct store_token t = { 0 };
	int r;

	r = store_prepare(s,
			  "SELECT hash,node,created_at,expires_at,used,used_by"
			  " FROM token WHERE hash=?",
			  &stmt, f);
	if (r < 0)
		return r;
	store_bind_blob(stmt, 1, hash, sizeof(t.hash));
	r = store_step(s, stmt, f);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	store_column_bytes(stmt, 0, t.hash, sizeof(t.hash));
	store_column_text(stmt, 1, t.node, sizeof(t.node));
	t.created_at = store_column_u64(stmt, 2);
	t.expires_at = store_column_u64(stmt, 3);
	t.used = store_column_u64(stmt, 4) != 0;
	store_column_bytes(stmt, 5, t.used_by, sizeof(t.used_by));
	*ret_token = t;
	return 0;
}

int store_token_use(struct store *s, const uint8_t hash[32],
		    const uint8_t report_key[32], struct fault *f)
{
	_cleanup_stmt_ sqlite3_stmt *stmt = NULL;
	int r;

	/* Atomic: of two users of one token, one changes no row. */
	r = store_prepare(s,
			  "UPDATE token SET used=1, used_by=?2"
			  " WHERE hash=?1 AND used=0",
			  &stmt, f);
	if (r < 0)
		return r;
	store_bind_blob(stmt, 1, hash, 32);
	store_bind_blob(stmt, 2, report_key, 32);
	r = store_write(s, stmt, f);
	return r == -ENOENT ? -EEXIST : r;
}

/*
 * Anybody can ask, so a full table must empty itself: of what was rejected,
 * then of what nobody decided for long. Who still waits asks again; what was
 * approved stays. -ENOENT: nothing may go.
 */
static int drop_pending(struct store *s, usec now, struct fault *f)
{
	_cleanup_stmt_ sqlite3_stmt *stmt = NULL;
	int r;

	r = store_prepare(s,
			  "DELETE FROM pending WHERE report_key=("
			  "SELECT report_key FROM pending"
			  " WHERE approved_name='' AND (rejected=1 OR"
			  " last_at<?) ORDER BY rejected DESC,last_at LIMIT 1)",
			  &stmt, f);
	if (r < 0)
		return r;
	store_bind_u64(stmt, 1,
		       now > STORE_PENDING_LIFE ? now - STORE_PENDING_LIFE : 0);
	return store_write(s, stmt, f);
}

static int room_for_pending(struct store *s, usec now, struct fault *f)
{
	size_t n = 0;
	int r;

	r = count_rows(s, "SELECT count(*) FROM pending WHERE ?=0", 0, &n, f);
	if (r == 0 && n >= STORE_PENDING_MAX)
		r = drop_pending(s, now, f);
	if (r == -ENOENT)
		return fault_set(f, -E2BIG, "enrolment",
				 "%zu requests wait already: approve or reject "
				 "some", n);
	return r;
}

int store_pending_put(struct store *s, const struct store_pending *p,
		      struct fault *f)
{
	_cleanup_stmt_ sqlite3_stmt *stmt = NULL;
	struct store_pending known;
	int r;

	r = store_pending_get(s, p->report_key, &known, f);
	if (r == -ENOENT)
		r = room_for_pending(s, p->last_at, f);
	if (r < 0)
		return r;
	r = store_prepare(s,
			  "INSERT INTO pending(report_key,hostname,machine_id,"
			  "address,reason,approved_name,rejected,first_at,"
			  "last_at) VALUES(?1,?2,?3,?4,?5,'',0,?6,?7)"
			  " ON CONFLICT(report_key) DO UPDATE SET hostname=?2,"
			  "machine_id=?3,address=?4,reason=?5,last_at=?7",
			  &stmt, f);
	if (r < 0)
		return r;
	store_bind_blob(stmt, 1, p->report_key, sizeof(p->report_key));
	store_bind_text(stmt, 2, p->hostname);
	store_bind_text(stmt, 3, p->machine_id);
	store_bind_text(stmt, 4, p->address);
	store_bind_text(stmt, 5, p->reason);
	store_bind_u64(stmt, 6, p->first_at);
	store_bind_u64(stmt, 7, p->last_at);
	return store_write(s, stmt, f);
}

#define PENDING_COLUMNS                                                       \
	"report_key,hostname,machine_id,address,reason,approved_name,"        \
	"rejected,first_at,last_at"

static void read_pending(sqlite3_stmt *stmt, struct store_pending *p)
{
	store_column_bytes(stmt, 0, p->report_key, sizeof(p->report_key));
	store_column_text(stmt, 1, p->hostname, sizeof(p->hostname));
	store_column_text(stmt, 2, p->machine_id, sizeof(p->machine_id));
	store_column_text(stmt, 3, p->address, sizeof(p->address));
	store_column_text(stmt, 4, p->reason, sizeof(p->reason));
	store_column_text(stmt, 5, p->approved_name, sizeof(p->approved_name));
	p->rejected = store_column_u64(stmt, 6) != 0;
	p->first_at = store_column_u64(stmt, 7);
	p->last_at = store_column_u64(stmt, 8);
}

int store_pending_get(struct store *s, const uint8_t report_key[32],
		      struct store_pending *ret_pending, struct fault *f)
{
	_cleanup_stmt_ sqlite3_stmt *stmt = NULL;
	int r;

	r = store_prepare(s,
			  "SELECT " PENDING_COLUMNS
			  " FROM pending WHERE report_key=?",
			  &stmt, f);
	if (r < 0)
		return r;
	store_bind_blob(stmt, 1, report_key, 32);
	r = store_step(s, stmt, f);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	memset(ret_pending, 0, sizeof(*ret_pending));
	read_pending(stmt, ret_pending);
	return 0;
}

int store_pending_decide(struct store *s, const uint8_t report_key[32],
			 const char *approved_name, bool rejected,
			 struct fault *f)
{
	_cleanup_stmt_ sqlite3_stmt *stmt = NULL;
	int r;

	r = store_prepare(s,
			  "UPDATE pending SET approved_name=?2,rejected=?3"
			  " WHERE report_key=?1",
			  &stmt, f);
	if (r < 0)
		return r;
	store_bind_blob(stmt, 1, report_key, 32);
	store_bind_text(stmt, 2, approved_name);
	store_bind_u64(stmt, 3, rejected);
	return store_write(s, stmt, f);
}

int store_pending_remove(struct store *s, const uint8_t report_key[32],
			 struct fault *f)
{
	_cleanup_stmt_ sqlite3_stmt *stmt = NULL;
	int r;

	r = store_prepare(s, "DELETE FROM pending WHERE report_key=?", &stmt,
			  f);
	if (r < 0)
		return r;
	store_bind_blob(stmt, 1, report_key, 32);
	return store_write(s, stmt, f);
}

int store_pendings(struct store *s, store_pending_fn fn, void *arg,
		   struct fault *f)
{
	_cleanup_stmt_ sqlite3_stmt *stmt = NULL;
	int r;

	r = store_prepare(s,
			  "SELECT " PENDING_COLUMNS
			  " FROM pending ORDER BY first_at LIMIT ?",
			  &stmt, f);
	if (r < 0)
		return r;
	store_bind_u64(stmt, 1, STORE_PENDING_MAX);
	while ((r = store_step(s, stmt, f)) > 0) {
		struct store_pending p = { 0 };

		read_pending(stmt, &p);
		r = fn(&p, arg);
		if (r != 0)
			return r;
	}
	return r;
}

#include "coordinator/store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"

#define BUSY_TIMEOUT_MS 5000

int store_fault(const struct store *s, int code, const char *what,
		struct fault *f)
{
	const char *words = s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(code);
	int err = -EIO;

	switch (code & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		err = -EBUSY;
		break;
	case SQLITE_NOMEM:
		err = -ENOMEM;
		break;
	case SQLITE_CONSTRAINT:
		err = -EEXIST;
		break;
	case SQLITE_FULL:
		err = -ENOSPC;
		break;
	case SQLITE_READONLY:
		err = -EROFS;
		break;
	case SQLITE_TOOBIG:
		err = -E2BIG;
		break;
	}
	return fault_set(f, err, s->path, "%s: %s", what, words);
}

int store_exec(struct store *s, const char *sql, struct fault *f)
{
	int code = sqlite3_exec(s->db, sql, NULL, NULL, NULL);

	return code == SQLITE_OK ? 0 : store_fault(s, code, "store", f);
}

int store_prepare(struct store *s, const char *sql, sqlite3_stmt **ret_stmt,
		  struct fault *f)
{
	sqlite3_stmt *stmt = NULL;
	int code = sqlite3_prepare_v2(s->db, sql, -1, &stmt, NULL);

	if (code != SQLITE_OK)
		return store_fault(s, code, "prepare", f);
	*ret_stmt = stmt;
	return 0;
}

int store_step(struct store *s, sqlite3_stmt *stmt, struct fault *f)
{
	int code = sqlite3_step(stmt);

	if (code == SQLITE_ROW)
		return 1;
	return code == SQLITE_DONE ? 0 : store_fault(s, code, "step", f);
}

int store_write(struct store *s, sqlite3_stmt *stmt, struct fault *f)
{
	int r = store_step(s, stmt, f);

	if (r < 0)
		return r;
	return sqlite3_changes(s->db) > 0 ? 0 : -ENOENT;
}

void store_bind_text(sqlite3_stmt *stmt, int at, const char *text)
{
	(void)sqlite3_bind_text(stmt, at, text ? text : "", -1,
				SQLITE_TRANSIENT);
}

void store_bind_blob(sqlite3_stmt *stmt, int at, const void *data, size_t size)
{
	if (data && size)
		(void)sqlite3_bind_blob64(stmt, at, data, size,
					  SQLITE_TRANSIENT);
	else
		(void)sqlite3_bind_zeroblob(stmt, at, 0);
}

void store_bind_u64(sqlite3_stmt *stmt, int at, uint64_t value)
{
	(void)sqlite3_bind_int64(stmt, at, (sqlite3_int64)value);
}

void store_column_text(sqlite3_stmt *stmt, int at, char *buf, size_t size)
{
	const unsigned char *text = sqlite3_column_text(stmt, at);
	size_t n = text ? strnlen((const char *)text, size - 1) : 0;

	if (n)
		memcpy(buf, text, n);
	buf[n] = '\0';
}

void store_column_bytes(sqlite3_stmt *stmt, int at, uint8_t *buf, size_t size)
{
	const void *data = sqlite3_column_blob(stmt, at);

	if (data && (size_t)sqlite3_column_bytes(stmt, at) == size)
		memcpy(buf, data, size);
	else
		memset(buf, 0, size);
}

uint64_t store_column_u64(sqlite3_stmt *stmt, int at)
{
	return (uint64_t)sqlite3_column_int64(stmt, at);
}

int store_column_blob(sqlite3_stmt *stmt, int at, struct store_blob *ret_blob)
{
	const void *data = sqlite3_column_blob(stmt, at);
	size_t size = (size_t)sqlite3_column_bytes(stmt, at);
	uint8_t *copy;

	if (!data || !size) {
		*ret_blob = (struct store_blob){ NULL, 0 };
		return 0;
	}
	if (size > STORE_BLOB_MAX)
		return -E2BIG;
	copy = malloc(size + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, data, size);
	copy[size] = '\0';
	*ret_blob = (struct store_blob){ copy, size };
	return 0;
}

/* SQLite follows the umask; a file of keys' seals is the owner's alone. */
static int make_private(const char *path, struct fault *f)
{
	_cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return fault_errno(f, -errno, path, "cannot open the store");
	if (fchmod(fd, 0600) < 0)
		return fault_errno(f, -errno, path, "cannot protect the store");
	return 0;
}

int store_open(const char *path, struct store **ret_store, struct fault *f)
{
	struct store *s CLEANUP(store_freep) = calloc(1, sizeof(*s));
	int code, r;

	if (!s || !(s->path = strdup(path)))
		return fault_set(f, -ENOMEM, path, "out of memory");
	r = make_private(path, f);
	if (r < 0)
		return r;
	code = sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE, NULL);
	if (code != SQLITE_OK)
		return store_fault(s, code, "open", f);
	(void)sqlite3_extended_result_codes(s->db, 1);
	(void)sqlite3_busy_timeout(s->db, BUSY_TIMEOUT_MS);
	/* FULL: a reserved sequence must outlive a power cut (DESIGN 7). */
	r = store_exec(s, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
			  "PRAGMA foreign_keys=ON; PRAGMA trusted_schema=OFF;"
			  "PRAGMA secure_delete=ON;", f);
	if (r < 0)
		return r;
	r = store_migrate(s, f);
	if (r < 0)
		return r;
	*ret_store = take_ptr(s);
	return 0;
}

struct store *store_free(struct store *s)
{
	if (!s)
		return NULL;
	(void)sqlite3_close(s->db);
	free(s->path);
	free(s);
	return NULL;
}

int store_begin(struct store *s, struct fault *f)
{
	return store_exec(s, "BEGIN IMMEDIATE", f);
}

int store_end(struct store *s, bool commit, struct fault *f)
{
	return store_exec(s, commit ? "COMMIT" : "ROLLBACK", f);
}

int store_part_begin(struct store *s, struct fault *f)
{
	return store_exec(s, "SAVEPOINT part", f);
}

int store_part_end(struct store *s, bool commit, struct fault *f)
{
	return store_exec(s, commit ? "RELEASE part" :
				      "ROLLBACK TO part; RELEASE part", f);
}

int store_value_get(struct store *s, const char *name, char **ret_text,
		    struct fault *f)
{
	_cleanup_stmt_ sqlite3_stmt *stmt = NULL;
	char *copy;
	int r;

	r = store_prepare(s, "SELECT text FROM value WHERE name=?", &stmt, f);
	if (r < 0)
		return r;
	store_bind_text(stmt, 1, name);
	r = store_step(s, stmt, f);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	copy = malloc(STORE_VALUE_MAX + 1);
	if (!copy)
		return fault_set(f, -ENOMEM, s->path, "out of memory");
	store_column_text(stmt, 0, copy, STORE_VALUE_MAX + 1);
	*ret_text = copy;
	return 0;
}

int store_value_put(struct store *s, const char *name, const char *text,
		    struct fault *f)
{
	_cleanup_stmt_ sqlite3_stmt *stmt = NULL;
	int r;

	if (strlen(text) > STORE_VALUE_MAX)
		return fault_set(f, -E2BIG, name, "more than %d bytes",
				 STORE_VALUE_MAX);
	r = store_prepare(s,
			  "INSERT INTO value(name,text) VALUES(?1,?2)"
			  " ON CONFLICT(name) DO UPDATE SET text=?2",
			  &stmt, f);
	if (r < 0)
		return r;
	store_bind_text(stmt, 1, name);
	store_bind_text(stmt, 2, text);
	return store_write(s, stmt, f);
}

int store_sequence_reserve(struct store *s, uint64_t count,
			   uint64_t *ret_epoch, uint64_t *ret_first,
			   struct fault *f)
{
	_cleanup_stmt_ sqlite3_stmt *stmt = NULL;
	int r;

	r = store_prepare(s,
			  "UPDATE sequence SET next=next+?"
			  " RETURNING epoch, next",
			  &stmt, f);
	if (r < 0)
		return r;
	store_bind_u64(stmt, 1, count);
	r = store_step(s, stmt, f);
	if (r < 0)
		return r;
	if (r == 0)
		return fault_set(f, -ENOENT, s->path,
				 "no epoch of orders: run garboard init");
	uint64_t epoch = store_column_u64(stmt, 0);
	uint64_t next = store_column_u64(stmt, 1);

	/* The row is committed only when the statement has run to its end. */
	r = store_step(s, stmt, f);
	if (r < 0)
		return r;
	*ret_epoch = epoch;
	*ret_first = next - count;
	return 0;
}

int store_epoch_start(struct store *s, uint64_t epoch, struct fault *f)
{
	_cleanup_stmt_ sqlite3_stmt *stmt = NULL;
	int r;

	r = store_prepare(s,
			  "INSERT INTO sequence(one,epoch,next) VALUES(1,?1,1)"
			  " ON CONFLICT(one) DO UPDATE SET epoch=?1, next=1"
			  " WHERE epoch<?1",
			  &stmt, f);
	if (r < 0)
		return r;
	store_bind_u64(stmt, 1, epoch);
	r = store_write(s, stmt, f);
	if (r == -ENOENT)
		return fault_set(f, -EINVAL, s->path,
				 "epoch %llu is not later than the current one",
				 (unsigned long long)epoch);
	return r;
}

#include "coordinator/store_internal.h"

#include <errno.h>
#include <stdio.h>

#include "common/clock.h"

/*
 * One text per version, applied in order, each in its own transaction with
 * its row of the migration table. A text never changes once released.
 */
static const char *const migrations[] = {
	/* 1: the first shape */
	"CREATE TABLE value(name TEXT PRIMARY KEY, text TEXT NOT NULL);"
	"CREATE TABLE sequence(one INTEGER PRIMARY KEY CHECK(one=1),"
	" epoch INTEGER NOT NULL, next INTEGER NOT NULL);"
	"CREATE TABLE node(id BLOB PRIMARY KEY CHECK(length(id)=16),"
	" name TEXT NOT NULL, report_key BLOB NOT NULL,"
	" seal_key BLOB NOT NULL, machine_id TEXT NOT NULL,"
	" certificate BLOB NOT NULL, state INTEGER NOT NULL,"
	" enrolled_at INTEGER NOT NULL, seen_at INTEGER NOT NULL,"
	" reported_at INTEGER NOT NULL, up_boot BLOB NOT NULL,"
	" up_epoch INTEGER NOT NULL, up_sequence INTEGER NOT NULL,"
	" hello BLOB NOT NULL, report BLOB NOT NULL);"
	"CREATE UNIQUE INDEX node_name ON node(name) WHERE state=0;"
	"CREATE UNIQUE INDEX node_key ON node(report_key) WHERE state=0;"
	"CREATE TABLE token(hash BLOB PRIMARY KEY CHECK(length(hash)=32),"
	" node TEXT NOT NULL, created_at INTEGER NOT NULL,"
	" expires_at INTEGER NOT NULL, used INTEGER NOT NULL,"
	" used_by BLOB NOT NULL);"
	"CREATE TABLE pending(report_key BLOB PRIMARY KEY"
	" CHECK(length(report_key)=32), hostname TEXT NOT NULL,"
	" machine_id TEXT NOT NULL, address TEXT NOT NULL,"
	" reason TEXT NOT NULL, approved_name TEXT NOT NULL,"
	" rejected INTEGER NOT NULL, first_at INTEGER NOT NULL,"
	" last_at INTEGER NOT NULL);"
	"CREATE TABLE founding(one INTEGER PRIMARY KEY CHECK(one=1),"
	" cluster_uid TEXT NOT NULL, ca BLOB NOT NULL,"
	" founder TEXT NOT NULL, intent INTEGER NOT NULL);"
	"CREATE TABLE secret(name TEXT PRIMARY KEY,"
	" ephemeral BLOB NOT NULL, box BLOB NOT NULL);",
	/* 2: the run log */
	"CREATE TABLE event(id INTEGER PRIMARY KEY AUTOINCREMENT,"
	" at INTEGER NOT NULL, stage TEXT NOT NULL, node TEXT NOT NULL,"
	" text TEXT NOT NULL);",
};

_Static_assert(sizeof(migrations) / sizeof(migrations[0]) == STORE_SCHEMA,
	       "a migration per schema version");

static int schema_version(struct store *s, unsigned int *ret_version,
			  struct fault *f)
{
	_cleanup_stmt_ sqlite3_stmt *stmt = NULL;
	int r;

	r = store_prepare(s, "SELECT coalesce(max(version),0) FROM migration",
			  &stmt, f);
	if (r < 0)
		return r;
	r = store_step(s, stmt, f);
	if (r < 0)
		return r;
	*ret_version = (unsigned int)sqlite3_column_int(stmt, 0);
	return 0;
}

static int migrate_one(struct store *s, unsigned int version, struct fault *f)
{
	_cleanup_stmt_ sqlite3_stmt *stmt = NULL;
	int r;

	r = store_exec(s, migrations[version - 1], f);
	if (r < 0)
		return r;
	r = store_prepare(s, "INSERT INTO migration(version,at) VALUES(?,?)",
			  &stmt, f);
	if (r < 0)
		return r;
	store_bind_u64(stmt, 1, version);
	store_bind_u64(stmt, 2, clock_realtime());
	return store_write(s, stmt, f);
}

/* Under the write lock, so that two programs starting at once agree. */
static int migrate_locked(struct store *s, struct fault *f)
{
	unsigned int version = 0;
	int r;

	r = store_exec(s, "CREATE TABLE IF NOT EXISTS migration("
			  "version INTEGER PRIMARY KEY, at INTEGER NOT NULL)",
		       f);
	if (r < 0)
		return r;
	r = schema_version(s, &version, f);
	if (r < 0)
		return r;
	if (version > STORE_SCHEMA)
		return fault_set(f, -EOPNOTSUPP, s->path,
				 "schema %u is of a newer garboard (this one "
				 "knows %d): use that program", version,
				 STORE_SCHEMA);
	while (version < STORE_SCHEMA) {
		r = migrate_one(s, ++version, f);
		if (r < 0)
			return r;
	}
	return 0;
}

int store_migrate(struct store *s, struct fault *f)
{
	int r, end;

	r = store_begin(s, f);
	if (r < 0)
		return r;
	r = migrate_locked(s, f);
	end = store_end(s, r == 0, r == 0 ? f : NULL);
	return r < 0 ? r : end;
}

int store_schema(struct store *s, unsigned int *ret_version)
{
	return schema_version(s, ret_version, NULL);
}

#include "coordinator/store_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"

#define NODE_COLUMNS                                                          \
	"id,name,report_key,seal_key,machine_id,certificate,state,"           \
	"enrolled_at,seen_at,reported_at,up_boot,up_epoch,up_sequence,"       \
	"hello,report"

void store_node_done(struct store_node *n)
{
	free(n->hello.data);
	free(n->report.data);
	n->hello = n->report = (struct store_blob){ NULL, 0 };
}

static void bind_node(sqlite3_stmt *stmt, const struct store_node *n)
{
	store_bind_blob(stmt, 1, n->id, sizeof(n->id));
	store_bind_text(stmt, 2, n->name);
	store_bind_blob(stmt, 3, n->report_key, sizeof(n->report_key));
	store_bind_blob(stmt, 4, n->seal_key, sizeof(n->seal_key));
	store_bind_text(stmt, 5, n->machine_id);
	store_bind_blob(stmt, 6, n->certificate, sizeof(n->certificate));
	store_bind_u64(stmt, 7, n->state);
	store_bind_u64(stmt, 8, n->enrolled_at);
	store_bind_u64(stmt, 9, n->seen_at);
	store_bind_u64(stmt, 10, n->reported_at);
	store_bind_blob(stmt, 11, n->up_boot, sizeof(n->up_boot));
	store_bind_u64(stmt, 12, n->up_epoch);
	store_bind_u64(stmt, 13, n->up_sequence);
	store_bind_blob(stmt, 14, n->hello.data, n->hello.size);
	store_bind_blob(stmt, 15, n->report.data, n->report.size);
}

int store_node_add(struct store *s, const struct store_node *n,
		   struct fault *f)
{
	_cleanup_stmt_ sqlite3_stmt *stmt = NULL;
	int r;

	r = store_prepare(s,
			  "INSERT INTO node(" NODE_COLUMNS ")"
			  " VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
			  &stmt, f);
	if (r < 0)
		return r;
	bind_node(stmt, n);
	return store_write(s, stmt, f);
}

int store_node_update(struct store *s, const struct store_node *n,
		      struct fault *f)
{
	_cleanup_stmt_ sqlite3_stmt *stmt = NULL;
	int r;

	r = store_prepare(s,
			  "UPDATE node SET name=?2,report_key=?3,seal_key=?4,"
			  "machine_id=?5,certificate=?6,state=?7,seen_at=?9,"
			  "reported_at=?10,up_boot=?11,up_epoch=?12,"
			  "up_sequence=?13,hello=?14,report=?15"
			  " WHERE id=?1 AND ?8 IS NOT NULL",
			  &stmt, f);
	if (r < 0)
		return r;
	bind_node(stmt, n);
	return store_write(s, stmt, f);
}

static int read_node(sqlite3_stmt *stmt, struct store_node *n)
{
	uint64_t state = store_column_u64(stmt, 6);
	int r;

	store_column_bytes(stmt, 0, n->id, sizeof(n->id));
	store_column_text(stmt, 1, n->name, sizeof(n->name));
	store_column_bytes(stmt, 2, n->report_key, sizeof(n->report_key));
	store_column_bytes(stmt, 3, n->seal_key, sizeof(n->seal_key));
	store_column_text(stmt, 4, n->machine_id, sizeof(n->machine_id));
	store_column_bytes(stmt, 5, n->certificate, sizeof(n->certificate));
	/* An unknown state is the one that may do nothing. */
	n->state = state < STORE_NODE_STATE_MAX ? (enum store_node_state)state :
						  STORE_NODE_REVOKED;
	n->enrolled_at = store_column_u64(stmt, 7);
	n->seen_at = store_column_u64(stmt, 8);
	n->reported_at = store_column_u64(stmt, 9);
	store_column_bytes(stmt, 10, n->up_boot, sizeof(n->up_boot));
	n->up_epoch = store_column_u64(stmt, 11);
	n->up_sequence = store_column_u64(stmt, 12);
	r = store_column_blob(stmt, 13, &n->hello);
	return r < 0 ? r : store_column_blob(stmt, 14, &n->report);
}

int store_nodes(struct store *s, store_node_fn fn, void *arg, struct fault *f)
{
	_cleanup_stmt_ sqlite3_stmt *stmt = NULL;
	int r;

	r = store_prepare(s,
			  "SELECT " NODE_COLUMNS " FROM node"
			  " ORDER BY name, enrolled_at LIMIT ?",
			  &stmt, f);
	if (r < 0)
		return r;
	store_bind_u64(stmt, 1, STORE_NODES_MAX);
	while ((r = store_step(s, stmt, f)) > 0) {
		struct store_node n = { 0 };

		r = read_node(stmt, &n);
		if (r < 0) {
			store_node_done(&n);
			return fault_errno(f, r, s->path, "cannot read a node");
		}
		r = fn(&n, arg);
		if (r != 0)
			return r;
	}
	return r;
}

/*
 * store_internal.h - the SQLite side of store.h, for store*.c alone.
 *
 * Statements are made, bound by position, stepped and finalised within one
 * function. Nothing is cached: the hot paths of a session do not come here.
 */
#pragma once

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "coordinator/store.h"

struct store {
	sqlite3 *db;
	char *path;
};

static inline void cleanup_stmt(sqlite3_stmt **s)
{
	(void)sqlite3_finalize(*s);
}
#define _cleanup_stmt_ __attribute__((cleanup(cleanup_stmt)))

/* Records SQLite's words; returns the negative errno of its code. */
int store_fault(const struct store *s, int code, const char *what,
		struct fault *f);
int store_prepare(struct store *s, const char *sql, sqlite3_stmt **ret_stmt,
		  struct fault *f);
/* 1: a row, 0: done. */
int store_step(struct store *s, sqlite3_stmt *stmt, struct fault *f);
/* For writes: -ENOENT when no row was changed. */
int store_write(struct store *s, sqlite3_stmt *stmt, struct fault *f);
int store_exec(struct store *s, const char *sql, struct fault *f);

/* SQLite copies. A NULL or empty value is stored as an empty one. */
void store_bind_text(sqlite3_stmt *stmt, int at, const char *text);
void store_bind_blob(sqlite3_stmt *stmt, int at, const void *data,
		     size_t size);
void store_bind_u64(sqlite3_stmt *stmt, int at, uint64_t value);

/* Columns, bounded: text is cut, a blob of another size reads as zeroes. */
void store_column_text(sqlite3_stmt *stmt, int at, char *buf, size_t size);
void store_column_bytes(sqlite3_stmt *stmt, int at, uint8_t *buf, size_t size);
uint64_t store_column_u64(sqlite3_stmt *stmt, int at);
int store_column_blob(sqlite3_stmt *stmt, int at, struct store_blob *ret_blob);

/* Brings an opened file to STORE_SCHEMA (store_schema.c). */
int store_migrate(struct store *s, struct fault *f);

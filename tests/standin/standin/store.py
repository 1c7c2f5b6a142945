"""The replicated store, simulated: one SQLite file that all nodes share.

What etcd replicates over the network is here one file on a directory that
the lab mounts into every node. Who may use it is decided by etcd.py, which
looks at heartbeats and at the real network.
"""

import contextlib
import json
import os
import sqlite3
import threading

SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS member (
  id TEXT PRIMARY KEY, name TEXT, peer TEXT, client TEXT,
  learner INTEGER, started REAL, added REAL, heartbeat REAL, progress REAL);
CREATE TABLE IF NOT EXISTS object (
  kind TEXT, namespace TEXT, name TEXT, revision INTEGER, body TEXT,
  PRIMARY KEY (kind, namespace, name));
"""


class Store:
    """Objects, members and small values; safe for threads and processes."""

    def __init__(self, path):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        self.path = path
        self._lock = threading.RLock()
        self._depth = 0
        self._db = sqlite3.connect(path, timeout=15, isolation_level=None,
                                   check_same_thread=False)
        self._db.execute("PRAGMA journal_mode=WAL")
        # A power cut is not simulated at this level: no fsync.
        self._db.execute("PRAGMA synchronous=OFF")
        self._db.executescript(SCHEMA)

    @contextlib.contextmanager
    def transaction(self):
        """One writer at a time over all nodes; nests within a thread."""
        with self._lock:
            if self._depth:
                yield self
                return
            self._db.execute("BEGIN IMMEDIATE")
            self._depth = 1
            try:
                yield self
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            else:
                self._db.execute("COMMIT")
            finally:
                self._depth = 0

    def query(self, sql, *values):
        with self._lock:
            return self._db.execute(sql, values).fetchall()

    # small values

    def get_meta(self, key, default=None):
        rows = self.query("SELECT value FROM meta WHERE key=?", key)
        return json.loads(rows[0][0]) if rows else default

    def set_meta(self, key, value):
        self.query("INSERT OR REPLACE INTO meta VALUES (?,?)", key,
                   json.dumps(value))

    def revision(self):
        return self.get_meta("revision", 0)

    def next_revision(self):
        """Only inside a transaction."""
        revision = self.revision() + 1
        self.set_meta("revision", revision)
        return revision

    # objects; `kind` is "resource.group"

    def get(self, kind, namespace, name):
        rows = self.query("SELECT body FROM object WHERE kind=? AND "
                          "namespace=? AND name=?", kind, namespace, name)
        return json.loads(rows[0][0]) if rows else None

    def list(self, kind, namespace=None):
        sql = "SELECT body FROM object WHERE kind=?"
        values = [kind]
        if namespace is not None:
            sql += " AND namespace=?"
            values.append(namespace)
        rows = self.query(sql + " ORDER BY namespace, name", *values)
        return [json.loads(row[0]) for row in rows]

    def put(self, kind, namespace, name, body):
        """Only inside a transaction; sets the new resourceVersion."""
        revision = self.next_revision()
        body["metadata"]["resourceVersion"] = str(revision)
        self.query("INSERT OR REPLACE INTO object VALUES (?,?,?,?,?)", kind,
                   namespace, name, revision, json.dumps(body))
        return body

    def delete(self, kind, namespace, name):
        self.next_revision()
        self.query("DELETE FROM object WHERE kind=? AND namespace=? AND "
                   "name=?", kind, namespace, name)

    def delete_namespace(self, namespace):
        self.next_revision()
        self.query("DELETE FROM object WHERE namespace=?", namespace)

    def copy_objects_from(self, other):
        """The SQLite datastore taken into etcd (1.3)."""
        with self.transaction():
            for row in other.query("SELECT * FROM object"):
                self.query("INSERT OR REPLACE INTO object VALUES "
                           "(?,?,?,?,?)", *row)
            self.set_meta("revision", other.revision())

    def close(self):
        with self._lock:
            self._db.close()

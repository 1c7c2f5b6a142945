"""Embedded etcd's membership, simulated (contract 3.2, 3.3, 4.5).

A member is alive for this node if its heartbeat in the shared store is
fresh AND its peer port answers a TCP connect from here: cutting the network
between two nodes therefore counts. Quorum is more than half of the voters.
"""

import json
import os
import random
import selectors
import socket
import threading

from . import log
from .params import now


class Unavailable(Exception):
    """No leader or no quorum as seen from this node."""


class TooManyLearners(Exception):
    pass


class UnhealthyCluster(Exception):
    pass


class Member:
    FIELDS = ("id", "name", "peer", "client", "learner", "started", "added",
              "heartbeat", "progress")

    def __init__(self, row):
        for field, value in zip(self.FIELDS, row):
            setattr(self, field, value)

    @property
    def address(self):
        return self.peer.rsplit(":", 1)[0].removeprefix("https://")

    def as_json(self):
        """etcd's JSON tags: false and empty fields are left out (4.5)."""
        out = {"ID": int(self.id), "peerURLs": [self.peer]}
        if self.started:
            out["name"] = self.name
            out["clientURLs"] = [self.client]
        if self.learner:
            out["isLearner"] = True
        return out


def members(store):
    rows = store.query("SELECT %s FROM member ORDER BY added, id"
                       % ",".join(Member.FIELDS))
    return [Member(row) for row in rows]


def connect_all(addresses, timeout):
    """The (host, port) pairs that accept a TCP connection; parallel."""
    good, waiting = set(), selectors.DefaultSelector()
    for address in addresses:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setblocking(False)
        try:
            sock.connect(address)
        except BlockingIOError:
            waiting.register(sock, selectors.EVENT_WRITE, address)
        except OSError:
            sock.close()
        else:
            good.add(address)
            sock.close()
    deadline = now() + timeout
    while waiting.get_map() and now() < deadline:
        for key, _ in waiting.select(deadline - now()):
            if key.fileobj.getsockopt(socket.SOL_SOCKET,
                                      socket.SO_ERROR) == 0:
                good.add(key.data)
            waiting.unregister(key.fileobj)
            key.fileobj.close()
    for key in list(waiting.get_map().values()):
        key.fileobj.close()
    waiting.close()
    return good


class Etcd:
    """This server's member."""

    def __init__(self, store, params, node_name, node_ip, db_dir):
        self.store, self.params = store, params
        self.node_name, self.node_ip = node_name, node_ip
        self.db_dir = db_dir
        self.id = None
        self.name = ""
        self.leader = None          # id, as last seen
        self.quorum = False
        self.removed = threading.Event()
        self._answered = {}         # member id -> last time its port answered
        self._changed = threading.Condition()

    # identity on disk

    def load(self):
        with open(os.path.join(self.db_dir, "standin.json"),
                  encoding="utf-8") as file:
            self.id = json.load(file)["member"]
        with open(os.path.join(self.db_dir, "name"),
                  encoding="utf-8") as file:
            self.name = file.read().strip()

    def save(self, cluster_id):
        os.makedirs(os.path.join(self.db_dir, "member", "wal"), mode=0o700,
                    exist_ok=True)
        os.chmod(self.db_dir, 0o700)
        for name, text in (("name", self.name), ("standin.json", json.dumps(
                {"member": self.id, "cluster": cluster_id}))):
            with open(os.path.join(self.db_dir, name), "w",
                      encoding="utf-8") as file:
                file.write(text)

    def choose_name(self):
        if not self.name:
            self.name = f"{self.node_name}-{random.getrandbits(32):08x}"

    def _insert(self, learner, started):
        self.id = str(random.getrandbits(63) | 1 << 62)  # beyond 2^53
        self.choose_name()
        time = now()
        self.store.query(
            "INSERT INTO member VALUES (?,?,?,?,?,?,?,?,?)", self.id,
            self.name, f"https://{self.node_ip}:2380",
            f"https://{self.node_ip}:2379", int(learner),
            time if started else 0, time, time if started else 0, time)

    def found(self):
        with self.store.transaction():
            self._insert(learner=False, started=True)

    def add_learner(self):
        """MemberAddAsLearner: strict, every member must be healthy."""
        with self.store.transaction():
            current = members(self.store)
            if any(m.learner for m in current):
                raise TooManyLearners()
            leader = self.store.get_meta("leader") or {}
            settled = now() - self.params.seconds("peer_settled")
            if not all(self._fresh(m) and (m.started < settled or m.id ==
                                           leader.get("id"))
                       for m in current):
                raise UnhealthyCluster()
            if not self._leads(leader, current):
                raise Unavailable()
            self._insert(learner=True, started=False)

    def mark_started(self):
        with self.store.transaction():
            self.store.query("UPDATE member SET started=?, heartbeat=? "
                             "WHERE id=?", now(), now(), self.id)

    # the state of the cluster as this node sees it

    def me(self):
        return next((m for m in members(self.store) if m.id == self.id),
                    None)

    def _fresh(self, member):
        age = now() - member.heartbeat
        return 0 <= age < self.params.seconds("peer_timeout")

    def _alive(self, member):
        if member.id == self.id:
            return True
        age = now() - self._answered.get(member.id, float("-inf"))
        return (self._fresh(member)
                and age < self.params.seconds("peer_timeout"))

    def _leads(self, leader, current):
        age = now() - leader.get("renewed", float("-inf"))
        return (0 <= age < self.params.seconds("peer_timeout")
                and any(m.id == leader.get("id") for m in current))

    def tick(self):
        """Heartbeat, probe the peers, keep or take the leadership."""
        current = members(self.store)
        mine = next((m for m in current if m.id == self.id), None)
        if mine is None:
            self._set_view(None, False)
            self.removed.set()
            return
        time = now()
        stuck = mine.learner and self.params.held("learner")
        self.store.query(
            "UPDATE member SET heartbeat=?, progress=? WHERE id=?", time,
            mine.progress if stuck else time, self.id)
        others = {(m.address, 2380): m for m in current if m.id != self.id
                  and m.started}
        for address in connect_all(others, self._probe_timeout()):
            self._answered[others[address].id] = now()
        self._elect()

    def _probe_timeout(self):
        return self.params.seconds("peer_timeout") / 2

    def _elect(self):
        with self.store.transaction():
            current = members(self.store)
            voters = [m for m in current if not m.learner]
            alive = [m for m in voters if self._alive(m)]
            quorum = 2 * len(alive) > len(voters)
            voting = any(m.id == self.id for m in voters)
            leader = self.store.get_meta("leader") or {}
            if voting and quorum and (leader.get("id") == self.id
                                      or not self._leads(leader, current)):
                if leader.get("id") != self.id:
                    log.info(f"{self.name} elected leader of the etcd "
                             f"cluster, {len(alive)} of {len(voters)} voters")
                leader = {"id": self.id, "renewed": now()}
                self.store.set_meta("leader", leader)
            holder = next((m for m in alive if m.id == leader.get("id")),
                          None)
            known = holder and self._leads(leader, current)
        self._set_view(holder.id if known else None, quorum)

    def _set_view(self, leader, quorum):
        with self._changed:
            self.leader, self.quorum = leader, quorum
            self._changed.notify_all()

    def resign(self):
        """A clean stop hands the leadership over at once."""
        with self.store.transaction():
            leader = self.store.get_meta("leader") or {}
            if leader.get("id") == self.id:
                self.store.set_meta("leader", {})
            self.store.query("UPDATE member SET heartbeat=0 WHERE id=?",
                             self.id)

    def is_leader(self):
        return self.leader is not None and self.leader == self.id

    def healthy(self):
        return self.leader is not None and self.quorum

    def require(self, timeout):
        """Wait for a leader and quorum; Unavailable after `timeout`."""
        with self._changed:
            if not self._changed.wait_for(self.healthy, timeout):
                raise Unavailable()

    def test(self):
        """k3s's own question: am I a voter of a led cluster (2.1)."""
        mine = self.me()
        if mine is None:
            return "not a member"
        expect = f"https://{self.node_ip}:2380"
        if mine.peer != expect:
            found = ", ".join(f"{m.name}={m.peer}"
                              for m in members(self.store))
            return ("this server is not a member of the etcd cluster. "
                    f"Found [{found}], expect: {self.name}={expect}")
        if mine.learner:
            return ("this server has not yet been promoted from learner to "
                    "voting member")
        return "" if self.healthy() else "etcd cluster has no leader"

    # what the leader does on its 15 s tick

    def manage_learners(self):
        stall = self.params.seconds("learner_stall")
        for member in members(self.store):
            if not member.learner:
                continue
            if now() - member.progress > stall:
                self.remove(member.id)
                log.warning(f"Removed learner {member.name} from etcd "
                            "cluster")
            elif (member.started and self._alive(member)
                  and not self.params.held("promotion")
                  and now() - member.progress
                  < self.params.seconds("peer_timeout")):
                self.store.query("UPDATE member SET learner=0 WHERE id=?",
                                 member.id)
                log.info(f"Promoted learner {member.name}")

    def condition(self, node_name, member_name):
        """(status, reason, message) of EtcdIsVoter for one node."""
        member = next((m for m in members(self.store)
                       if m.name == member_name), None)
        if member is None:
            return "False", "NotAMember", ("Node is not a member of the "
                                         "etcd cluster")
        if member.learner:
            return ("False", "MemberIsLearner",
                    "Node has not been promoted to voting member of the "
                    "etcd cluster")
        if not self._alive(member):
            return "False", "Unhealthy", "Node is unhealthy"
        return ("True", "MemberNotLearner",
                "Node is a voting member of the etcd cluster")

    def remove(self, member_id):
        with self.store.transaction():
            self.store.query("DELETE FROM member WHERE id=?", member_id)

"""A lab as its directory describes it, and the nodes in it.

lab.json says what the lab is made of and who its processes are; what changes
with each boot lies in nodes/NAME. Nothing here ends a lab: see warden.py.
"""
import json
import os
import select
import signal
import socket
import subprocess
import time

import enter

HERE = os.path.dirname(os.path.realpath(__file__))
DEADLINE = 60.0         # a node that is not up or off by then never will be
SIGRTMIN_POWEROFF = signal.SIGRTMIN + 4
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Fail(Exception):
    pass


# Processes are remembered by pid and start time, so that a number the kernel
# gave away again is never taken for ours.

def start_time(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            field = f.read().rpartition(")")[2].split()
        return None if field[0] in "ZX" else field[19]
    except (FileNotFoundError, ProcessLookupError):
        return None


def read_text(path):
    try:
        with open(path) as f:
            return f.read().strip()
    except FileNotFoundError:
        return ""


def write_text(path, text):
    with open(path + ".new", "w") as f:
        f.write(text)
    os.rename(path + ".new", path)


def wait_exit(pid, seconds):
    """True once the process has ended; the caller owns the pid's meaning."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], seconds)[0])
    finally:
        os.close(fd)


class Lab:
    def __init__(self, top):
        self.top = os.path.realpath(top)
        self.conf = {}

    def load(self):
        text = read_text(self.top + "/lab.json")
        self.conf = json.loads(text) if text else {}
        return self

    def save(self):
        write_text(self.top + "/lab.json", json.dumps(self.conf, indent=1))

    def alive(self, who="keeper"):
        pid, start = self.conf.get(who) or (0, "")
        return bool(pid) and start_time(pid) == start

    def need(self):
        if not self.load().alive():
            raise Fail(f"no lab is up in {self.top}")
        return self

    @property
    def base(self):
        """The lab's directory as the keeper sees it, with its mounts."""
        return f"/proc/{self.conf['keeper'][0]}/root{self.top}"

    @property
    def cgroup(self):
        return f"{self.base}/cg{self.conf['cgroup']}"

    def node(self, name):
        if name not in self.conf["nodes"]:
            raise Fail(f"no node {name}: there are "
                       + ", ".join(self.conf["nodes"]))
        return Node(self, name, self.conf["nodes"][name])

    def nodes(self):
        return [self.node(n) for n in self.conf["nodes"]]

    def enter_cgroup(self, sub):
        path = f"{self.cgroup}/{sub}"
        os.makedirs(path, exist_ok=True)
        with open(path + "/cgroup.procs", "w") as f:
            f.write("0")


class Node:
    def __init__(self, lab, name, address):
        self.lab, self.name, self.address = lab, name, address
        self.dir = f"{lab.base}/nodes/{name}"

    def pid(self):
        """The node's PID 1, or 0 while it is off."""
        pid = int(read_text(self.dir + "/host/pid") or 0)
        if not pid or not self.power():
            return 0
        return pid if start_time(pid) else 0

    def power(self):
        """The process that is the node's power supply, or 0."""
        pid, _, start = read_text(self.dir + "/power").partition(" ")
        return int(pid) if pid and start_time(pid) == start else 0

    def make_disk(self):
        for sub in ("upper/etc", "work", "root", "host"):
            os.makedirs(f"{self.dir}/{sub}", exist_ok=True)
            os.chmod(f"{self.dir}/{sub}", 0o755)
        etc = self.dir + "/upper/etc"
        hosts = ["127.0.0.1 localhost", "::1 localhost ip6-localhost",
                 "192.0.2.5 operator"]
        hosts += [f"{a} {n}" for n, a in self.lab.conf["nodes"].items()]
        write_text(etc + "/hostname", self.name + "\n")
        write_text(etc + "/hosts", "\n".join(hosts) + "\n")
        # An identity of its own that survives power-off.
        write_text(etc + "/machine-id", os.urandom(16).hex() + "\n")

    def power_on(self):
        """Start the node; returns what announces its end and its READY."""
        if self.power():
            raise Fail(f"{self.name} is already on")
        conf = self.lab.conf
        cg = f"{self.lab.top}/cg{conf['cgroup']}/node-{self.name}"
        write_text(self.dir + "/cgroup", cg)
        ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            os.unlink(self.dir + "/host/notify")
        except FileNotFoundError:
            pass
        here = os.getcwd()
        os.chdir(self.dir + "/host")    # a socket's path is short
        ready.bind("notify")
        os.chdir(here)
        alive, theirs = os.pipe()
        log = open(self.dir + "/console.log", "a")
        keeper = str(conf["keeper"][0])
        # The shell in between ends at once: the lab's own init, not this
        # command, is the parent of the node's power supply.
        subprocess.run(
            ["nsenter", "-t", keeper, "-m", "-n", "-p", "-r", "-w", "--",
             "setsid", "-f", "sh", HERE + "/node-run", self.lab.top,
             self.name, self.address, conf["root"]],
            check=True, stdin=theirs, stdout=log, stderr=log,
            env={"PATH": PATH},
            preexec_fn=lambda: self.lab.enter_cgroup("lab"))
        log.close()
        os.close(theirs)
        return Booting(self, ready, alive)

    def enter(self, cmd, env=None):
        """Become cmd in the node, without what its PID 1 lacks."""
        pid = self.pid()
        if not pid:
            raise Fail(f"{self.name} is off")
        self.lab.enter_cgroup(f"node-{self.name}/lab-exec")
        enter.enter(pid, cmd, {
            "PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8",
            "TERM": os.environ.get("TERM", "dumb"), **(env or {})})

    def run(self, cmd):
        """Run cmd in the node; returns its status and what it printed."""
        hear, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.dup2(tell, 1)
                self.enter(cmd)
            except (Fail, OSError) as e:
                os.write(2, f"lab: {e}\n".encode())
            os._exit(125)
        os.close(tell)
        with open(hear) as f:
            said = f.read()
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.strip()

    def must_run(self, cmd):
        status, said = self.run(cmd)
        if status:
            raise Fail(f"{cmd[0]} in {self.name}: status {status}\n{said}")


class Booting:
    """A node between power-on and READY=1 (boot finished)."""

    def __init__(self, node, ready, alive):
        self.node, self.ready, self.alive = node, ready, alive

    def is_ready(self):
        return b"READY=1" in self.ready.recv(4096).split(b"\n")

    def close(self):
        self.ready.close()
        os.close(self.alive)


def wait_boot(booting, seconds):
    """Wait until all are up; says which is not, and why."""
    end = time.monotonic() + seconds
    left = {b.ready.fileno(): b for b in booting}
    left.update({b.alive: b for b in booting})
    pending = set(booting)
    while pending:
        fds = [f for f, b in left.items() if b in pending]
        got = select.select(fds, [], [], max(0, end - time.monotonic()))[0]
        if not got:
            names = ", ".join(sorted(b.node.name for b in pending))
            raise Fail(f"not up after {seconds:.0f} s: {names}")
        for fd in got:
            b = left[fd]
            if fd == b.alive:
                tail = read_text(b.node.dir + "/console.log")[-1500:]
                raise Fail(f"{b.node.name} went off while booting:\n{tail}")
            if b.is_ready():
                pending.discard(b)
    for b in booting:
        must_be_running(b.node)
        b.close()


def switch_off(nodes, signum):
    power = {n: n.power() for n in nodes}
    for node in nodes:
        if node.pid():
            os.kill(node.pid(), signum)
    for node in nodes:
        if power[node] and not wait_exit(power[node], DEADLINE):
            raise Fail(f"{node.name} is still on after {DEADLINE:.0f} s")


def must_be_running(node):
    state = node.run(["systemctl", "is-system-running"])[1]
    if state != "running":
        bad = node.run(["systemctl", "--failed", "--plain", "--no-legend"])[1]
        raise Fail(f"{node.name} is {state}:\n{bad}")

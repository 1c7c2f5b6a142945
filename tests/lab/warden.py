"""The processes that hold a lab together, and its end.

warden (in the host's namespaces) -> keeper (PID 1 of the lab's process
namespace) -> power supplies -> nodes. When the warden or the keeper dies, by
whatever means, the kernel kills all that is below. The warden then clears away
what is not a process; if it could not, `lab down` does.
"""
import ctypes
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

from machines import HERE, Fail, Lab, read_text, start_time

CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x20000000, 0x40000000
MS_REC, MS_SLAVE, PR_SET_PDEATHSIG = 0x4000, 0x80000, 1


def libc_call(name, *args):
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*args) != 0:
        e = ctypes.get_errno()
        raise OSError(e, f"{name}: {os.strerror(e)}")


def private_mounts():
    """A mount namespace whose mounts never reach the host's.

    In a chroot, / is no mount point and cannot be made a slave. Joining the
    namespace we are already in puts us at its real root, where it can be.
    """
    libc_call("unshare", CLONE_NEWNS)
    root = os.open("/", os.O_PATH | os.O_DIRECTORY)
    ns = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    libc_call("setns", ns, CLONE_NEWNS)
    libc_call("mount", None, b"/", None, MS_REC | MS_SLAVE, None)
    os.fchdir(root)
    os.chroot(".")
    os.chdir("/")
    os.close(ns)
    os.close(root)


def keeper(lab, tell):
    """PID 1 of the lab: sets it up, then only has to be there."""
    libc_call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    r = subprocess.run(["sh", HERE + "/lab-setup", lab.top,
                        lab.conf["cgroup"]], stdin=subprocess.DEVNULL)
    if r.returncode == 0:
        with open(f"{lab.top}/cg{lab.conf['cgroup']}/lab/cgroup.procs",
                  "w") as f:
            f.write("0")
    os.write(tell, b"ok" if r.returncode == 0 else b"no")
    if r.returncode:
        os._exit(1)
    # Ignoring SIGCHLD makes the kernel reap orphans without our help.
    os.execvp("env", ["env", "-i", "--ignore-signal=CHLD", "sleep",
                      "infinity"])


def fork_keeper(lab):
    """Returns the keeper's pid, once the lab is set up."""
    hear, tell = os.pipe()
    os.set_inheritable(tell, False)
    parent = os.getpid()
    child = os.fork()
    if child:
        os.close(tell)
        said = os.read(hear, 2)
        os.close(hear)
        pids = read_text(f"/proc/{child}/task/{child}/children").split()
        if said != b"ok" or len(pids) != 1:
            raise Fail("the lab's namespaces could not be set up")
        return child, int(pids[0])
    # A process in between, because the warden itself stays in the host's
    # namespaces. It dies with the warden, and the keeper with it.
    os.close(hear)
    libc_call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    private_mounts()
    libc_call("unshare", CLONE_NEWNET | CLONE_NEWPID)
    pid = os.fork()
    if pid == 0:
        keeper(lab, tell)
    os.close(tell)
    os.waitpid(pid, 0)
    os._exit(0)


def hold(top, link, tie):
    """Lives as long as the lab. link: the `lab up` that started it."""
    lab = Lab(top).load()
    own = [x[3:] for x in read_text("/proc/self/cgroup").split("\n")
           if x.startswith("0::")]
    lab.conf["cgroup"] = ((own[0] if own else "/").rstrip("/")
                          + f"/garboard-lab-{os.getpid()}")
    lab.conf["warden"] = [os.getpid(), start_time(os.getpid())]
    lab.save()
    try:
        child, pid = fork_keeper(lab)
        lab.conf["keeper"] = [pid, start_time(pid)]
        lab.save()
        os.write(link, b"up")
        watch = [os.pidfd_open(child), link] + ([tie] if tie >= 0 else [])
        while True:
            got = select.select(watch, [], [])[0]
            if link in got and os.read(link, 2) == b"ok":
                watch.remove(link)      # from here on it stands by itself
                os.close(link)
                continue
            break
        if lab.alive():
            os.kill(pid, signal.SIGKILL)
        os.waitpid(child, 0)
    finally:
        remove(lab)


def remove(lab):
    """What the kernel does not take back by itself."""
    child = os.fork()
    if child == 0:
        try:
            clear_cgroups(lab)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    with open("/proc/self/mountinfo") as f:
        if any(x.split()[4].startswith(lab.top + "/") for x in f):
            raise Fail(f"{lab.top} has mounts under it: left alone")
    shutil.rmtree(lab.top)


def clear_cgroups(lab):
    if "cgroup" not in lab.conf:
        return
    private_mounts()
    at = lab.top + "/cg"
    os.makedirs(at, exist_ok=True)
    subprocess.run(["mount", "-t", "cgroup2", "cgroup2", at], check=True)
    top = at + lab.conf["cgroup"]
    if not os.path.isdir(top):
        return
    # Only the operator's leftovers can still be alive, and they are ours:
    # nothing gets into this cgroup but through `lab`.
    with open(top + "/cgroup.kill", "w") as f:
        f.write("1")
    events = open(top + "/cgroup.events")
    poll = select.poll()
    poll.register(events, select.POLLPRI)
    end = time.monotonic() + 10
    while "populated 1" in events.read() and time.monotonic() < end:
        poll.poll(1000)
        events.seek(0)
    events.close()
    for path, _, _ in os.walk(top, topdown=False):
        os.rmdir(path)


def start(lab, tie):
    ours, theirs = socket.socketpair()
    fds = [theirs.fileno()]
    if tie:
        fds.append(os.pidfd_open(tie))
    cmd = [sys.executable, "-IS", HERE + "/lab", "_warden",
           lab.top, *map(str, fds)]
    if os.path.isdir("/run/systemd/system"):
        cmd = ["systemd-run", "--scope", "--quiet", "-p", "Delegate=yes",
               "--", *cmd]
    with open(lab.top + "/warden.log", "w") as log:
        subprocess.Popen(cmd, pass_fds=fds, start_new_session=True,
                         stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                         cwd="/")
    theirs.close()
    log = lab.top + "/warden.log"
    opened = open(log)      # it may be gone when it is needed
    if ours.recv(2) != b"up":
        raise Fail("the lab did not start:\n" + opened.read())
    lab.load()
    return ours

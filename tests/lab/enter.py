"""Getting into a node.

Not nsenter: it stops itself when what it started is stopped, which the end of
every node does to all of its processes, and nobody outside would continue it.
The node could then not end either, for want of somebody to reap its process.
"""
import ctypes
import os
import signal

LIBC = ctypes.CDLL(None, use_errno=True)
PR_CAPBSET_DROP = 24
# CAP_SYS_MODULE, CAP_SYS_BOOT, CAP_SYS_TIME: as in node-init.
DROPPED = (16, 22, 25)
# mount, cgroup, UTS, IPC, process and network namespace
CLONE_ALL = (0x20000 | 0x2000000 | 0x4000000 | 0x8000000 | 0x20000000
             | 0x40000000)


def check(result, what):
    if result != 0:
        e = ctypes.get_errno()
        raise OSError(e, f"{what}: {os.strerror(e)}")


def enter(pid, cmd, env):
    """Run cmd where pid lives, and end as it ends. Does not return."""
    node = os.pidfd_open(pid)
    root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_DIRECTORY)
    check(LIBC.setns(node, CLONE_ALL), "setns")
    os.fchdir(root)
    os.chroot(".")
    os.close(root)
    os.close(node)
    for cap in DROPPED:
        check(LIBC.prctl(PR_CAPBSET_DROP, cap, 0, 0, 0), "prctl")
    child = os.fork()       # only a child is in the process namespace
    if child == 0:
        become(cmd, env)
    for sig in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(sig, lambda s, _: os.kill(child, s))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os._exit(code if code >= 0 else 128 - code)


def become(cmd, env):
    # Python ignores this one, and what it ignores a program inherits.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execvpe(cmd[0], cmd, env)
    except OSError as e:
        os.write(2, f"lab: {cmd[0]}: {e.strerror}\n".encode())
    os._exit(127)

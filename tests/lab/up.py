"""lab up: what the command line asks for, checked, and set going."""
import argparse
import fcntl
import os
import re
import subprocess

import warden
from machines import (DEADLINE, HERE, Fail, Lab, wait_boot, wait_exit,
                      write_text)


def parse_nodes(count, extra):
    nodes = {f"server-{i}": f"192.0.2.{10 + i}" for i in range(1, count + 1)}
    for item in extra:
        name, _, addr = item.partition("=")
        nodes[name] = addr
    for name, addr in nodes.items():
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,13}[a-z0-9]", name) or \
           name in ("operator", "lab0"):
            raise Fail(f"bad node name {name!r} (2 to 15 of a-z, 0-9, -)")
        m = re.fullmatch(r"192\.0\.2\.(\d{1,3})", addr)
        if not m or int(m[1]) in (0, 1, 5) or int(m[1]) > 254:
            raise Fail(f"bad address {addr!r} for {name}: 192.0.2.2 to .254, "
                       "not .5")
    if len(set(nodes.values())) != len(nodes):
        raise Fail("two nodes with one address")
    if not nodes:
        raise Fail("no nodes: say how many, or --node NAME=ADDRESS")
    return nodes


def parse_binds(lab, args):
    standin = os.path.abspath(args.standin or lab.top + "/standin")
    os.makedirs(standin, exist_ok=True)
    binds = [(standin, "/run/standin", "rw")]
    if args.build:
        binds.append((os.path.abspath(args.build), "/build", "ro"))
    for item in args.bind:
        src, dst, *mode = item.split(":")
        binds.append((os.path.abspath(src), dst, mode[0] if mode else "rw"))
    for src, dst, mode in binds:
        if not os.path.exists(src) or not dst.startswith("/") or \
           mode not in ("ro", "rw") or re.search(r"\s", src + dst):
            raise Fail(f"bad bind {src}:{dst}:{mode}")
    return binds


def up(top, argv):
    p = argparse.ArgumentParser(prog="lab up")
    p.add_argument("count", nargs="?", type=int, default=0)
    p.add_argument("--dir", default=top)
    p.add_argument("--node", action="append", default=[])
    p.add_argument("--build")
    p.add_argument("--standin")
    p.add_argument("--bind", action="append", default=[])
    p.add_argument("--root", default=os.environ.get("GARBOARD_LAB_ROOT"))
    p.add_argument("--tie", type=int, default=0)
    p.add_argument("--off", action="store_true")
    p.add_argument("--timeout", type=float, default=DEADLINE)
    args = p.parse_args(argv)
    if os.geteuid() != 0:
        raise Fail("must run as root")
    nodes = parse_nodes(args.count, args.node)
    root = args.root or subprocess.run(
        [HERE + "/mkroot.sh"], check=True, stdout=subprocess.PIPE,
        text=True).stdout.strip()
    lab = Lab(args.dir)
    claim(lab)
    lab.conf = {"nodes": nodes, "root": root}
    binds = parse_binds(lab, args)
    write_text(lab.top + "/binds", "".join(f"{' '.join(b)}\n" for b in binds))
    lab.save()
    link = warden.start(lab, args.tie)
    try:
        boot(lab, args)
    except BaseException:
        link.close()        # the warden takes it all down again
        wait_exit(lab.conf["warden"][0], DEADLINE)
        raise
    link.send(b"ok")


def boot(lab, args):
    booting = []
    for node in lab.nodes():
        os.makedirs(node.dir, exist_ok=True)
        node.make_disk()
        if not args.off:
            booting.append(node.power_on())
    wait_boot(booting, args.timeout)


def claim(lab):
    """The directory is ours, empty, and no other `lab up` is in it."""
    while True:
        os.makedirs(lab.top, exist_ok=True)
        fd = os.open(lab.top, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(fd, fcntl.LOCK_EX)
        if os.path.exists(lab.top) and os.path.samestat(
                os.fstat(fd), os.stat(lab.top)):
            break
        os.close(fd)        # removed by its last owner while we waited
    lab.load()
    if lab.alive() or lab.alive("warden"):
        raise Fail(f"a lab is already up in {lab.top} (lab down ends it)")
    if lab.conf:
        warden.remove(lab)
        return claim(lab)
    if os.listdir(lab.top):
        raise Fail(f"{lab.top} is not empty and not a lab's")
    # The lock ends with this process; by then lab.json says who is here.
    return None

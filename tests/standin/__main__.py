"""Entry point of the zipapp: one executable, several verbs, as k3s has."""

import faulthandler
import sys

from standin import COMMIT, VERSION, log

USAGE = """usage: k3s server|agent [--key=value ...]
       k3s --version
"""


def main(argv):
    verb = argv[0] if argv else ""
    if verb in ("--version", "-v"):
        print(f"k3s version {VERSION} ({COMMIT})")
        return 0
    if verb not in ("server", "agent", "kube-vip"):
        sys.stderr.write(USAGE)
        return 0 if verb in ("--help", "-h", "help") else 1
    # Each verb imports only what it needs: kube-vip stays small.
    if verb == "server":
        from standin.server import run
    elif verb == "agent":
        from standin.agent import run
    else:
        from standin.kubevip import run
    try:
        return run(argv[1:])
    except log.Shutdown as error:
        log.shutdown(str(error))
        return 0
    except log.Fatal as error:
        log.fatal(f"Error: {error}" if verb != "kube-vip" else str(error))
        return 1


if __name__ == "__main__":
    faulthandler.enable()   # SIGABRT: where each thread is
    sys.exit(main(sys.argv[1:]))

"""Log lines in logrus' text form on stderr, as k3s writes them."""

import sys
import threading
import time

_lock = threading.Lock()


class Fatal(Exception):
    """Ends the process with level=fatal and a non-zero status."""


class Shutdown(Fatal):
    """Ends it in order: level=error, status 0. What fails after :6443 is
    open ends so; systemd calls it Result=protocol before READY=1."""


def _quote(text):
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + text.replace("\n", "\\n") + '"'


def _emit(level, message):
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with _lock:
        sys.stderr.write(
            f'time="{stamp}" level={level} msg={_quote(message)}\n')
        sys.stderr.flush()


def info(message):
    _emit("info", message)


def warning(message):
    _emit("warning", message)


def error(message):
    _emit("error", message)


def fatal(message):
    _emit("fatal", message)


def shutdown(message):
    _emit("error", "Shutdown request received: " + _quote(message))

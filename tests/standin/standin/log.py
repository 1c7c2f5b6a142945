"""Log lines in logrus' text form on stderr, as k3s writes them."""

import sys
import threading
import time

_lock = threading.Lock()


class Fatal(Exception):
    """Ends the process with level=fatal and a non-zero status."""


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

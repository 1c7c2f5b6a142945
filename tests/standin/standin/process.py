"""Process plumbing: sd_notify, periodic loops, plain listening ports."""

import os
import selectors
import signal
import socket
import threading

from . import log
from .client import RemoteError
from .apicore import ApiError
from .etcd import Unavailable


def sd_notify(text):
    """Tell systemd; silently nothing without NOTIFY_SOCKET."""
    path = os.environ.get("NOTIFY_SOCKET")
    if not path:
        return
    if path.startswith("@"):
        path = "\0" + path[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(path)
            sock.send(text.encode())
        except OSError as error:
            log.warning(f"sd_notify: {error}")


def stop_on_signals(event):
    """SIGTERM and SIGINT set the event.

    From a thread: the handler runs in the main thread, and where that is just
    inside event.wait(), event.set() would wait for a lock it holds itself.
    """
    def handler(_number, _frame):
        threading.Thread(target=event.set, daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handler)


class Loops:
    """Periodic work in threads. A failing turn is logged once per text."""

    def __init__(self, params):
        self.params = params
        self.stop = threading.Event()
        self.failure = None
        self._threads = []

    def start(self, interval, function):
        """Call function() now and then every params.seconds(interval)."""
        thread = threading.Thread(target=self._run, daemon=True,
                                  args=(interval, function),
                                  name=interval)
        self._threads.append(thread)
        thread.start()

    def _run(self, interval, function):
        last = None
        while not self.stop.is_set():
            try:
                function()
                last = None
            except log.Fatal as error:
                self.fail(error)
                return
            except (ApiError, RemoteError, Unavailable, OSError) as error:
                if str(error) != last:
                    log.error(f"{function.__qualname__}: {error}")
                last = str(error)
            except Exception as error:      # a bug of ours: say it, go on
                text = f"{type(error).__name__}: {error}"
                if text != last:
                    import traceback
                    log.error(traceback.format_exc())
                last = text
            self.stop.wait(self.params.seconds(interval))

    def fail(self, error):
        """The process is to end with this error."""
        self.failure = error
        self.stop.set()

    def wait(self):
        """Until the process is to end.

        With a timeout: a signal that another thread took does not interrupt
        the main thread, whose turn it is to run the handler.
        """
        while not self.stop.wait(0.5):
            pass

    def pause(self, seconds):
        """Sleep; raises Stopped if the process is to end."""
        if self.stop.wait(seconds):
            raise Stopped()


class Stopped(Exception):
    pass


class Ports:
    """Ports that only have to answer a TCP connect: etcd, kubelet."""

    def __init__(self):
        self._selector = selectors.DefaultSelector()
        self._thread = None

    def listen(self, host, port, greeting=b""):
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, port))
            sock.listen(16)
        except OSError as error:
            sock.close()
            raise log.Fatal(f"listen tcp {host}:{port}: bind: "
                            f"{os.strerror(error.errno)}")
        sock.setblocking(False)
        self._selector.register(sock, selectors.EVENT_READ, greeting)
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, daemon=True,
                                            name="ports")
            self._thread.start()

    def _serve(self):
        while True:
            for key, _ in self._selector.select(5):
                try:
                    peer, _ = key.fileobj.accept()
                    if key.data:
                        peer.settimeout(1)
                        peer.recv(4096)
                        peer.sendall(key.data)
                    peer.close()
                except OSError:
                    pass


def http_greeting(text):
    """A whole HTTP reply for Ports.listen."""
    return (f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
            f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n"
            f"{text}").encode()

#!/usr/bin/python3
"""liar.py MODE-FILE COUNT-FILE: sits between garboard-link and garboard-agent.

The link is pointed at its socket, and it is a peer like any link for the
agent: what it can do, a stolen link can. The word in MODE-FILE says what it
does to the envelopes (nothing else is touched):

    pass        hands everything on, and remembers every envelope it saw
    drop        hands no envelope on
    edit-down   changes one bit of each order
    edit-up     changes one bit of each report
    swap        holds each order back until the next one has passed
    replay      each envelope that comes is preceded by all that it remembers

COUNT-FILE gets the number of envelopes that it lied about.
"""
import os
import select
import socket
import struct
import sys

ENVELOPE = 18
PAYLOAD = 84
MODE, COUNT = sys.argv[1:]
HERE = "/run/liar/link.sock"
AGENT = "/run/garboard/link.sock"
KEEP = 200


class Liar:
    def __init__(self):
        self.seen = {"down": [], "up": []}
        self.held = None
        self.lies = 0

    def lied(self, n=1):
        self.lies += n
        with open(COUNT + ".new", "w") as f:
            f.write(f"{self.lies}\n")
        os.rename(COUNT + ".new", COUNT)

    def frames(self, way, kind, body):
        """What goes on instead of this frame."""
        mode = open(MODE).read().strip()
        if kind != ENVELOPE:
            return [(kind, body)]
        old = self.seen[way]
        out = [(kind, body)]
        if mode == "drop":
            self.lied()
            out = []
        elif mode == f"edit-{way}":
            self.lied()
            at = PAYLOAD + (len(body) - PAYLOAD - 64) // 2
            out = [(kind, body[:at] + bytes([body[at] ^ 1]) + body[at + 1:])]
        elif mode == "replay":
            self.lied(len(old))
            out = [(kind, b) for b in old] + out
        elif mode == "swap" and way == "down":
            self.lied()
            if self.held is None:
                self.held, out = body, []
            else:
                out, self.held = out + [(kind, self.held)], None
        if len(old) < KEEP:
            old.append(body)
        return out

    def serve(self, link, agent):
        links = {link: ("down", agent, bytearray()),
                 agent: ("up", link, bytearray())}
        while True:
            for s in select.select(list(links), [], [])[0]:
                way, other, data = links[s]
                more = s.recv(65536)
                if not more:
                    return
                data += more
                while len(data) >= 5:
                    size, kind = struct.unpack(">IB", data[:5])
                    if len(data) < 5 + size:
                        break
                    body = bytes(data[5:5 + size])
                    del data[:5 + size]
                    for k, b in self.frames(way, kind, body):
                        other.sendall(struct.pack(">IB", len(b), k) + b)


def main():
    os.makedirs("/run/liar", mode=0o755, exist_ok=True)
    if os.path.exists(HERE):
        os.unlink(HERE)
    door = socket.socket(socket.AF_UNIX)
    door.bind(HERE)
    os.chmod(HERE, 0o666)
    door.listen(1)
    liar = Liar()
    while True:
        link = door.accept()[0]
        agent = socket.socket(socket.AF_UNIX)
        try:
            agent.connect(AGENT)
            liar.serve(link, agent)
        except OSError as e:
            print(e, file=sys.stderr, flush=True)
        link.close()
        agent.close()


main()

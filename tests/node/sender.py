#!/usr/bin/python3 -IS
"""sender.py CLASS4 CLASS6 DEVICE GATEWAY-MAC DEST4 DEST6

One packet a millisecond on each of four streams: of the class by an ordinary
socket, IPv4 and IPv6, and as raw frames; and one without a class. Whoever
stands at the other end of DEVICE counts what arrives. On SIGTERM it prints
how many of each were handed to the kernel.
"""
import signal
import socket
import struct
import sys
import time

PORT = 9


def udp(family, source):
    s = socket.socket(family, socket.SOCK_DGRAM)
    if source:
        s.setsockopt(socket.SOL_IP, 15, 1)      # IP_FREEBIND
        s.bind((source, 0))
    s.setblocking(False)
    return s


def checksum(head):
    total = sum(struct.unpack(f"!{len(head) // 2}H", head))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def frame(mac, source, dest):
    body = struct.pack("!HHHH4s", PORT, PORT, 12, 0, b"leak")
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 0, 0, 64, 17,
                       0, socket.inet_aton(source), socket.inet_aton(dest))
    head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
    return (bytes.fromhex(mac.replace(":", "")) + b"\x02\0\0\0\0\x01" +
            b"\x08\0" + head + body)


def main(class4, class6, device, mac, dest4, dest6):
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    raw.bind((device, 0x800))
    raw.setblocking(False)
    four, six = udp(socket.AF_INET, class4), udp(socket.AF_INET6, class6)
    plain = udp(socket.AF_INET, "")
    bytes_of_class = frame(mac, class4, dest4)
    streams = {
        "class4": lambda: four.sendto(b"leak", (dest4, PORT)),
        "class6": lambda: six.sendto(b"leak", (dest6, PORT)),
        "raw": lambda: raw.send(bytes_of_class),
        "plain": lambda: plain.sendto(b"fine", (dest4, PORT)),
    }
    sent = dict.fromkeys(streams, 0)
    end = []
    signal.signal(signal.SIGTERM, lambda *_: end.append(1))
    while not end:
        for name, send in streams.items():
            try:
                send()
            except OSError:
                pass        # refused here is as good as not sent
            sent[name] += 1
        time.sleep(0.001)
    print(*(f"{k}={v}" for k, v in sent.items()), flush=True)


main(*sys.argv[1:])

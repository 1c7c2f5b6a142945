#!/usr/bin/python3
"""garboard-metrics over HTTP, in a network namespace of its own.

A status document stands behind a real socket; promtool judges the text.
"""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

if "METRICS_NETNS" not in os.environ:
    os.environ["METRICS_NETNS"] = "1"
    os.environ["PROMTOOL"] = subprocess.check_output(
        ["tests/lib/promtool"], text=True).strip()
    os.execvp("unshare", ["unshare", "-n", sys.executable, *sys.argv])
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)

PROGRAM = os.path.join(os.environ.get("BUILD", "build"), "garboard-metrics")
UNIT = "agent/metrics/garboard-metrics.service"
DOC = {
    "version": "1", "node": "n1", "cluster": 'a"b\\c', "enrolled": True,
    "revoked": False, "session": "down", "epoch": 2, "sequence": 41,
    "starts": 3, "settled": False, "generation": 7, "state_fault": "",
    "carries_endpoint": True, "trial": {"state": "none"}, "uncovered": [],
    "health": {"code": 1, "name": "WARNING", "text": "no session"},
    "resources": [
        {"name": "killswitch", "mode": "enforce", "state": "in-sync",
         "settled": True, "contended": False, "writer": "", "repairs": 5,
         "proof_age_usec": 2500000, "fault": "", "items": [], "pending": []},
        {"name": "sysctl", "mode": "observe", "state": "drifted",
         "settled": False, "contended": True, "writer": "tuned",
         "repairs": 0, "proof_age_usec": 2**64 - 1, "fault": "x",
         "items": [], "pending": []}],
}
count = 0
failed = 0


def ok(passed, what):
    global count, failed
    count += 1
    failed += not passed
    print(f"{'ok' if passed else 'not ok'} {count} - {what}", flush=True)


def agent(listener, doc):
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        with client:
            client.sendall(json.dumps(doc).encode() + b"\n")


def get(path, method="GET", **headers):
    c = http.client.HTTPConnection("127.0.0.1", 9477, timeout=30)
    c.request(method, path, headers=headers)
    r = c.getresponse()
    return r.status, r.getheader("Content-Type"), r.read().decode()


def wait_for_server():
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", 9477)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError("nobody listens")


def promtool(text):
    p = subprocess.run([os.environ["PROMTOOL"], "check", "metrics"], input=text,
                       capture_output=True, text=True)
    for line in (p.stdout + p.stderr).splitlines():
        print("#", line)
    return p.returncode == 0


def with_agent():
    code, kind, text = get("/metrics")
    ok(code == 200 and "version=0.0.4" in kind, "/metrics is text for all")
    ok(promtool(text), "promtool finds nothing to say")
    for line in (
            "garboard_agent_up 1",
            'garboard_node_info{node="n1",cluster="a\\"b\\\\c",version="1"} 1',
            "garboard_health_status 1", "garboard_session_up 0",
            "garboard_order_sequence 41", "garboard_carries_endpoint 1",
            'garboard_resource_repairs_total{resource="killswitch"} 5',
            'garboard_resource_in_sync{resource="sysctl"} 0',
            'garboard_resource_contended{resource="sysctl"} 1',
            'garboard_resource_enforced{resource="sysctl"} 0',
            'garboard_resource_proof_age_seconds{resource="killswitch"} '
            "2.500000"):
        ok(line in text.splitlines(), line)
    ok('proof_age_seconds{resource="sysctl"}' not in text,
       "an age that is not known is not given")
    ok("garboard_k3s_active" not in text, "nothing of k3s where there is none")
    code, kind, text = get("/metrics",
                           Accept="application/openmetrics-text;version=1.0.0")
    ok("openmetrics" in kind and text.endswith("\n# EOF\n"),
       "OpenMetrics is asked for and ends")
    ok("# TYPE garboard_resource_repairs counter" in text,
       "OpenMetrics names the family of a counter without _total")
    code, _, text = get("/healthz")
    ok((code, text) == (200, "WARNING - no session\n"),
       "a warning is healthy, and says why")
    DOC["health"] = {"code": 2, "name": "CRITICAL", "text": "open"}
    ok(get("/healthz")[0] == 503, "critical is not healthy")
    ok(get("/")[0] == 404, "another path is not there")
    ok(get("/metrics", "POST")[0] == 405, "nothing is taken")
    try:
        code = get("/metrics", X="a" * 100000)[0]
    except (OSError, http.client.HTTPException):
        code = 431  # closed before it was all sent
    ok(code in (413, 431), "a header is bounded")
    ok(get("/healthz")[0] == 503, "and the next is served")


def without_agent():
    code, _, text = get("/metrics")
    ok(code == 200 and "garboard_agent_up 0\n" in text, "a dead agent is told")
    ok("garboard_resource" not in text, "and no number outlives it")
    ok(promtool(text), "which is text for promtool, too")
    ok(get("/healthz")[0] == 503, "a dead agent is not healthy")


def unit():
    p = subprocess.run(["systemd-analyze", "security", "--offline=true",
                        UNIT], capture_output=True, text=True)
    m = re.search(r"Overall exposure level.*?: ([0-9.]+)", p.stdout)
    ok(m and float(m[1]) <= 1.5, f"exposure of the unit is {m and m[1]}")


with tempfile.TemporaryDirectory() as tmp:
    path = os.path.join(tmp, "status.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(8)
    threading.Thread(target=agent, args=(listener, DOC), daemon=True).start()
    server = subprocess.Popen(
        ["systemd-socket-activate", "-l", "127.0.0.1:9477", PROGRAM,
         "--socket", path], stderr=subprocess.DEVNULL)
    try:
        wait_for_server()
        with_agent()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        os.unlink(path)
        without_agent()
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()
unit()
print(f"1..{count}")
sys.exit(failed != 0)

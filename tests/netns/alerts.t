#!/usr/bin/python3
"""Each alert rule fires on its case and is silent on a healthy node."""
import json
import os
import subprocess
import sys
import tempfile

import yaml

RULES = os.path.abspath("agent/metrics/alerts.yaml")
PROMTOOL = subprocess.check_output(["tests/lib/promtool"], text=True).strip()
R = '{resource="sysctl"}'
KS = '{resource="killswitch"}'
CARRY = {f'garboard_node_info{{instance="n{i}",cluster="c"}}': (1, 1)
         for i in (1, 2)}
# Of each series, its value where the alert fires and where it does not.
CASES = {
    "GarboardNodeSilent": {'up{job="garboard"}': (0, 1)},
    "GarboardAgentDown": {"garboard_agent_up": (0, 1)},
    "GarboardKillSwitchBroken": {"garboard_resource_in_sync" + KS: (0, 1)},
    "GarboardProofStale": {
        "garboard_resource_proof_age_seconds" + R: (181, 180)},
    "GarboardResourceDrifted": {"garboard_resource_in_sync" + R: (0, 1)},
    "GarboardResourceContended": {"garboard_resource_contended" + R: (1, 0)},
    "GarboardResourceNotEnforced": {
        "garboard_resource_enforced" + R: (0, 1)},
    "GarboardSessionDown": {"garboard_session_up": (0, 0),
                            "garboard_node_enrolled": (1, 0)},
    "GarboardTwoCarriers": {
        **CARRY, 'garboard_carries_endpoint{instance="n1"}': (1, 1),
        'garboard_carries_endpoint{instance="n2"}': (1, 0)},
    "GarboardPathUncovered": {"garboard_uncovered_paths": (1, 0)},
    "GarboardTrialTakenBack": {"garboard_trial_taken_back": (1, 0)},
}


def promtool(*args):
    p = subprocess.run([PROMTOOL, *args], capture_output=True, text=True)
    if p.returncode:
        for line in (p.stdout + p.stderr).splitlines():
            print("#", line)
    return p.returncode == 0


def judge(tmp, alert, series, which):
    """All of ALERTS that fires: this one alone, or none."""
    fires = which == 0
    case = {
        "rule_files": [RULES], "evaluation_interval": "1m",
        "tests": [{
            "interval": "1m",
            "input_series": [{"series": s, "values": f"{v[which]}+0x100"}
                             for s, v in series.items()],
            "promql_expr_test": [{
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": "90m",
                "exp_samples": [{"labels": f'{{alertname="{alert}"}}',
                                 "value": 1}] if fires else []}]}]}
    path = os.path.join(tmp, "case.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(case, f)
    return promtool("test", "rules", path)


with open(RULES, encoding="utf-8") as f:
    rules = yaml.safe_load(f)["groups"][0]["rules"]
results = [(promtool("check", "rules", RULES), "promtool reads the rules"),
           ({r["alert"] for r in rules} == set(CASES) and
            len(rules) == len(CASES), "every alert has its case"),
           (all(r["annotations"].get("runbook") for r in rules),
            "every alert says what to do")]
with tempfile.TemporaryDirectory() as scratch:
    for name, inputs in CASES.items():
        results.append((judge(scratch, name, inputs, 0), f"{name} fires"))
        results.append((judge(scratch, name, inputs, 1), f"{name} is silent"))
for n, (passed, what) in enumerate(results, 1):
    print(f"{'ok' if passed else 'not ok'} {n} - {what}")
print(f"1..{len(results)}")
sys.exit(not all(passed for passed, _ in results))

"""helm-controller and the helm job's pod (5.2)."""

import base64
import binascii
import hashlib
import json
import os
import re

import yaml

from . import cilium
from .apicore import utc_now
from .apply import ApplyError, apply
from .controllers import is_ready, new_pod, owned_by
from .params import now
from .pods import Plain

CHARTS = "/apis/helm.cattle.io/v1/helmcharts"
CHART_LABEL = "helmcharts.helm.cattle.io/chart"
HASH = "helmcharts.helm.cattle.io/configHash"
BOOTSTRAP_TOLERATIONS = [
    {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule",
     "operator": "Exists"},
    {"key": "node.kubernetes.io/network-unavailable", "operator": "Exists",
     "effect": "NoSchedule"},
    {"key": "node.cloudprovider.kubernetes.io/uninitialized",
     "operator": "Equal", "value": "true", "effect": "NoSchedule"},
    {"key": "CriticalAddonsOnly", "operator": "Exists"},
    {"key": "node-role.kubernetes.io/etcd", "operator": "Exists",
     "effect": "NoExecute"},
    {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists",
     "effect": "NoSchedule"},
]
DEFAULT_BACKOFF = 1000


def _merge(low, high):
    """Helm's merge of values: maps merge, the rest is replaced."""
    if not isinstance(low, dict) or not isinstance(high, dict):
        return high
    out = dict(low)
    for key, value in high.items():
        out[key] = _merge(out.get(key), value) if key in out else value
    return out


def _values_of(spec):
    content = spec.get("valuesContent") or ""
    try:
        low = yaml.safe_load(content) or {}
    except yaml.YAMLError as error:
        raise cilium.RenderError(f"failed to parse valuesContent: {error}")
    if not isinstance(low, dict):
        raise cilium.RenderError("valuesContent is not a map")
    high = spec.get("values") or {}
    if isinstance(high, str):
        high = json.loads(high)
    values = _merge(low, high)
    for path, value in (spec.get("set") or {}).items():
        branch = value
        for step in reversed(path.split(".")):
            branch = {step: branch}
        values = _merge(values, branch)
    return values


def chart_values(client, chart):
    """set > values > valuesContent; HelmChartConfig over all of them."""
    meta = chart["metadata"]
    override = client.get(
        f"/apis/helm.cattle.io/v1/namespaces/{meta['namespace']}/"
        f"helmchartconfigs/{meta['name']}")
    values = _values_of(chart["spec"])
    return _merge(values, _values_of(override["spec"])) if override \
        else values


def config_hash(client, chart):
    meta = chart["metadata"]
    override = client.get(
        f"/apis/helm.cattle.io/v1/namespaces/{meta['namespace']}/"
        f"helmchartconfigs/{meta['name']}") or {}
    text = json.dumps([chart.get("spec"), override.get("spec")],
                      sort_keys=True)
    return "SHA256=" + hashlib.sha256(text.encode()).hexdigest().upper()


class HelmController:
    """Runs beside the other controllers, on etcd's leader."""

    def __init__(self, client, etcd, params, config):
        self.client, self.etcd = client, etcd
        self.params, self.config = params, config
        self._suspended = {}        # job uid -> since when

    def turn(self):
        if self.etcd is not None and not self.etcd.is_leader():
            return
        if not self.config["disable-helm-controller"]:
            for chart in self.client.items(CHARTS):
                self._chart(chart)
        for job in self.client.items("/apis/batch/v1/jobs"):
            self._job(job)

    def _event(self, chart, reason, text):
        meta = chart["metadata"]
        self.client.create(
            f"/api/v1/namespaces/{meta['namespace']}/events", {
                "metadata": {"generateName": meta["name"] + ".",
                             "namespace": meta["namespace"]},
                "involvedObject": {"kind": "HelmChart",
                                   "apiVersion": chart["apiVersion"],
                                   "name": meta["name"], "uid": meta["uid"],
                                   "namespace": meta["namespace"]},
                "reason": reason, "message": text, "type": "Normal",
                "firstTimestamp": utc_now(), "lastTimestamp": utc_now()})

    def _chart(self, chart):
        meta = chart["metadata"]
        name, space = meta["name"], meta["namespace"]
        jobs = f"/apis/batch/v1/namespaces/{space}/jobs"
        job_name = f"helm-install-{name}"
        current = config_hash(self.client, chart)
        job = self.client.get(f"{jobs}/{job_name}")
        if job is not None:
            if job["metadata"]["annotations"].get(HASH) == current:
                self._resume(chart, job, f"{jobs}/{job_name}")
                return
            self.client.delete(f"{jobs}/{job_name}")
        self._accounts(name, space)
        self.client.create(jobs, self._new_job(chart, job_name, current))
        self._event(chart, "ApplyJob",
                    f"Applying HelmChart using Job {space}/{job_name}")
        self.client.merge(
            f"/apis/helm.cattle.io/v1/namespaces/{space}/helmcharts/{name}"
            "/status", {"status": {"jobName": job_name, "conditions": [
                {"type": "JobCreated", "status": "True"},
                {"type": "Failed", "status": "False"}]}})

    def _accounts(self, name, space):
        self.client.ensure(f"/api/v1/namespaces/{space}/serviceaccounts", {
            "metadata": {"name": f"helm-{name}"}})
        self.client.ensure(
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
                "metadata": {"name": f"helm-{space}-{name}"},
                "roleRef": {"kind": "ClusterRole", "name": "cluster-admin",
                            "apiGroup": "rbac.authorization.k8s.io"},
                "subjects": [{"kind": "ServiceAccount",
                              "name": f"helm-{name}", "namespace": space}]})

    def _new_job(self, chart, job_name, current):
        name, spec = chart["metadata"]["name"], chart["spec"]
        env = [{"name": "NAME", "value": name},
               {"name": "CHART", "value": spec.get("chart", "")}]
        pod_spec = {"serviceAccountName": f"helm-{name}",
                    "restartPolicy": "OnFailure",
                    "containers": [{"name": "helm", "env": env,
                                    "image": "rancher/klipper-helm"}]}
        if spec.get("bootstrap"):
            pod_spec.update(
                hostNetwork=True, tolerations=BOOTSTRAP_TOLERATIONS,
                nodeSelector={
                    "node-role.kubernetes.io/control-plane": "true"})
            env += [{"name": "KUBERNETES_SERVICE_HOST",
                     "value": "127.0.0.1"},
                    {"name": "KUBERNETES_SERVICE_PORT",
                     "value": str(self.config.port)},
                    {"name": "BOOTSTRAP", "value": "true"}]
        return {"apiVersion": "batch/v1", "kind": "Job",
                "metadata": {"name": job_name, "labels": {CHART_LABEL: name},
                             "annotations": {HASH: current}},
                "spec": {"suspend": True, "backoffLimit": spec.get(
                    "backOffLimit", DEFAULT_BACKOFF), "template": {
                        "metadata": {"labels": {CHART_LABEL: name},
                                     "annotations": {HASH: current}},
                        "spec": pod_spec}}}

    def _resume(self, chart, job, path):
        if not job["spec"].get("suspend"):
            self._report_failure(chart, job)
            return
        since = self._suspended.setdefault(job["metadata"]["uid"], now())
        if now() - since >= self.params.seconds("helm_resume"):
            self.client.merge(path, {"spec": {"suspend": False}})
            self._event(chart, "ResumeJob", "Resuming suspended Job "
                        f"{job['metadata']['name']}")

    def _report_failure(self, chart, job):
        """Failed shows only when the job has given up (5.2)."""
        conditions = job.get("status", {}).get("conditions") or ()
        if not any(c["type"] == "Failed" for c in conditions):
            return
        meta = chart["metadata"]
        self.client.merge(
            f"/apis/helm.cattle.io/v1/namespaces/{meta['namespace']}/"
            f"helmcharts/{meta['name']}/status", {"status": {
                "conditions": [{"type": "JobCreated", "status": "True"},
                               {"type": "Failed", "status": "True",
                                "reason": "BackoffLimitExceeded"}]}})

    # the Job controller, for jobs with one pod

    def _job(self, job):
        meta, status = job["metadata"], job.get("status") or {}
        if job["spec"].get("suspend") or status.get("conditions"):
            return
        pods = [p for p in self.client.items(
            f"/api/v1/namespaces/{meta['namespace']}/pods")
            if owned_by(p, job)]
        if not pods:
            self.client.create(
                f"/api/v1/namespaces/{meta['namespace']}/pods",
                new_pod(job, job["spec"]["template"],
                        {"job-name": meta["name"],
                         "batch.kubernetes.io/job-name": meta["name"]}))
        self._job_status(job, pods)

    def _job_status(self, job, pods):
        meta = job["metadata"]
        done = any(p["status"].get("phase") == "Succeeded" for p in pods)
        failures = sum(c.get("restartCount", 0) for p in pods
                       for c in p["status"].get("containerStatuses") or ())
        # Restarts count when the job gives up, not in status.failed.
        status = {"active": int(not done), "ready": sum(map(is_ready, pods)),
                  "startTime": meta["creationTimestamp"]}
        if done:
            status.update(active=0, succeeded=1, completionTime=utc_now(),
                          conditions=[{"type": "Complete",
                                       "status": "True"}])
        elif failures > job["spec"]["backoffLimit"]:
            status.update(active=0, failed=1, conditions=[{
                "type": "Failed", "status": "True",
                "reason": "BackoffLimitExceeded", "message":
                "Job has reached the specified backoff limit"}])
        if status != job.get("status"):
            self.client.merge(
                f"/apis/batch/v1/namespaces/{meta['namespace']}/jobs/"
                f"{meta['name']}/status", {"status": status})


class HelmPod(Plain):
    """klipper-helm: fetch, render, apply; helm without --wait."""

    start_parameter = "helm_run"

    def __init__(self, context, pod, record):
        super().__init__(context, pod, record)
        self.done = bool(record.get("done"))

    def record(self):
        return {**super().record(), "done": self.done}

    def turn(self):
        if self.done or not self.due() \
                or self.context.params.held("helm"):
            return
        if not self.pod["spec"].get("hostNetwork") \
                and not self.context.cni_ready():
            return
        try:
            self._install()
        except (cilium.RenderError, ApplyError) as error:
            self.crashed(f"INSTALLATION FAILED: {error}")
        else:
            self.done, self.running = True, False

    def _install(self):
        context, meta = self.context, self.pod["metadata"]
        forced = context.params.flag("helm_fail")
        if forced:
            raise cilium.RenderError(forced)
        name, space = meta["labels"][CHART_LABEL], meta["namespace"]
        chart = context.client.get(
            f"/apis/helm.cattle.io/v1/namespaces/{space}/helmcharts/{name}")
        if chart is None:
            return
        spec = chart["spec"]
        target = spec.get("targetNamespace") or space
        if spec.get("createNamespace"):
            context.client.ensure("/api/v1/namespaces",
                                  {"metadata": {"name": target}})
        values = chart_values(context.client, chart)
        source = self._fetch(spec)
        if "cilium" in (name, os.path.basename(source).split("-")[0]):
            version = str(spec.get("version") or _version_in(source))
            for body in cilium.render(values, version.lstrip("v"), target,
                                      context.client.get):
                apply(context.client, context.store, body,
                      f"release-{name}", target)
        self._release(name, target, meta["annotations"].get(HASH, ""))

    def _fetch(self, spec):
        """The chart's name, if this node could have fetched it."""
        if spec.get("chartContent"):
            try:
                base64.b64decode(spec["chartContent"], validate=True)
            except binascii.Error as error:
                raise cilium.RenderError(f"chartContent: {error}")
            return spec.get("chart", "")
        chart = spec.get("chart", "")
        match = re.match(r"https://%\{KUBERNETES_API\}%/static/(.*)", chart)
        if match and not os.path.isfile(self.context.config.path(
                "static", match[1])):
            raise cilium.RenderError(f"failed to fetch {chart}: "
                                     "404 Not Found")
        return chart

    def _release(self, name, space, current):
        secrets = f"/api/v1/namespaces/{space}/secrets"
        selector = f"?labelSelector=owner%3Dhelm,name%3D{name}"
        old = self.context.client.items(secrets + selector)
        version = 1 + max([int(s["metadata"]["labels"]["version"])
                           for s in old], default=0)
        for secret in old:
            self.context.client.merge(
                f"{secrets}/{secret['metadata']['name']}",
                {"metadata": {"labels": {"status": "superseded"}}})
        self.context.client.create(secrets, {
            "metadata": {"name": f"sh.helm.release.v1.{name}.v{version}",
                         "labels": {
                             "owner": "helm", "name": name,
                             "status": "deployed", "version": str(version),
                             HASH: current}},
            "type": "helm.sh/release.v1", "data": {}})

    def status(self):
        status = super().status()
        if self.done:
            status["phase"] = "Succeeded"
            for container in status["containerStatuses"]:
                container["state"] = {"terminated": {
                    "exitCode": 0, "reason": "Completed"}}
        elif not self.message:
            status["phase"] = "Running"
        else:
            for container in status["containerStatuses"]:
                container["lastState"] = {"terminated": {
                    "exitCode": 1, "reason": "Error",
                    "message": self.message}}
        return status


def _version_in(source):
    match = re.search(r"-v?(\d+\.\d+\.\d+)", source)
    return match[1] if match else "0.0.0"

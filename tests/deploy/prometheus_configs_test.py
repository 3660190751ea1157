#!/usr/bin/env python3
"""What Prometheus makes of its three configurations: which targets, with which labels.

What only a cluster could tell, its pods, is put in by a file with the labels that pods have.

usage: prometheus_configs_test.py DEPLOY_PROMETHEUS
"""

import json
import pathlib
import re
import sys
import tempfile

from prometheus_process import Prometheus, copy_rules, wait_for

STAGES = [{"job": "stage", "instance": f"stage-{i}:9700", "stage": str(i)} for i in range(4)]


def pod(name, component, address, port, phase="Running", scrape="true"):
    """A target as Kubernetes' discovery describes one port of a pod."""
    return {"targets": [address], "labels": {
        "__meta_kubernetes_namespace": "thinwire", "__meta_kubernetes_pod_name": name,
        "__meta_kubernetes_pod_phase": phase, "__meta_kubernetes_pod_container_port_name": port,
        "__meta_kubernetes_pod_label_app_kubernetes_io_component": component,
        "__meta_kubernetes_pod_annotation_prometheus_io_scrape": scrape}}


PODS = [
    pod("stage-0", "stage", "10.0.0.1:4700", "grpc"),
    pod("stage-0", "stage", "10.0.0.1:9700", "metrics"),
    pod("stage-11", "stage", "10.0.0.2:9700", "metrics"),
    pod("coordinator-x7k2p", "coordinator", "10.0.0.3:9700", "metrics"),
    pod("coordinator-a1b2c", "coordinator", "10.0.0.4:9700", "metrics", phase="Succeeded"),
    pod("coordinator-d3e4f", "coordinator", "10.0.0.5:9700", "metrics", phase="Failed"),
    pod("grafana-0", "dashboards", "10.0.0.6:3000", "metrics", scrape="false"),
]
OF_PODS = [
    {"job": "stage", "instance": "10.0.0.1:9700", "stage": "0", "pod": "stage-0"},
    {"job": "stage", "instance": "10.0.0.2:9700", "stage": "11", "pod": "stage-11"},
    {"job": "coordinator", "instance": "10.0.0.3:9700", "pod": "coordinator-x7k2p"},
]
FILES = [
    {"targets": ["127.0.0.1:1"], "labels": {"job": "coordinator"}},
    {"targets": ["127.0.0.1:2"], "labels": {"job": "stage", "stage": "0"}},
]


def targets(config, deploy, folder, files):
    """The labels of the targets that Prometheus has by `config`; `files` are put beside it."""
    folder.mkdir()
    copy_rules(deploy / "rules", folder / "rules", shortened=False)
    config = config.replace("/etc/prometheus/rules/", "rules/")
    (folder / "prometheus.yml").write_text(config, encoding="utf-8")
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    prometheus = Prometheus(folder)
    try:
        wait_for("target", lambda: prometheus.get("targets")["activeTargets"])
        if len(prometheus.get("rules")["groups"]) != 2:
            raise SystemExit("FAILED: the rules are not loaded")
        active = prometheus.get("targets")["activeTargets"]
        return sorted((target["labels"] for target in active), key=lambda it: it["instance"])
    finally:
        prometheus.stop()


def main():
    """Compares all three."""
    deploy = pathlib.Path(sys.argv[1])
    failures = 0

    def check(name, want, files, config=None):
        nonlocal failures
        text = config or (deploy / f"{name}.yml").read_text(encoding="utf-8")
        got = targets(text, deploy, pathlib.Path(work) / name, files)
        if got == want:
            print(f"ok: {name}.yml has {len(got)} targets")
        else:
            print(f"FAILED: {name}.yml has the targets\n  {got}\nwant\n  {want}")
            failures += 1

    with tempfile.TemporaryDirectory() as work:
        check("compose", STAGES, {})
        check("files", [{**t["labels"], "instance": t["targets"][0], "targets": "quickstart"}
                        for t in FILES], {"targets/quickstart.json": FILES})
        # Debian's Prometheus is built without Kubernetes' discovery.
        text, replaced = re.subn(
            r"kubernetes_sd_configs:\n +- role: pod\n +namespaces: \{names: \[thinwire\]\}\n",
            "file_sd_configs: [{files: [pods/*.json]}]\n",
            (deploy / "kubernetes.yml").read_text(encoding="utf-8"))
        if replaced != 1:
            raise SystemExit("FAILED: kubernetes.yml does not discover the pods of thinwire")
        check("kubernetes", [{**want, "namespace": "thinwire"} for want in OF_PODS],
              {"pods/pods.json": PODS}, text)
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The manifests of deploy/k8s keep their promises, and each promise notices when it is broken.

usage: kubernetes_test.py THINWIRE STAGE_SERVER DEPLOY_KUSTOMIZATION EXPERIMENT [KUBECTL]...
THINWIRE and STAGE_SERVER tell their flags; DEPLOY_KUSTOMIZATION is deploy/k8s/base's and leads to
the rest; EXPERIMENT is experiments/quickstart.yaml. All KUBECTLs (default: kubectl) must make the
same objects. Wants Debian's kubernetes-client, openssl and python3-yaml.
"""
import base64
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

from kubernetes_objects import (
    ABSENT, CONTAINER, COORDINATOR, POD, SERVER, STAGE, changed, containers, of_kind, pod_templates, render)
from kubernetes_flows import selects
from kubernetes_promises import complaints

PROGRAMS, DEPLOY, EXPERIMENT, KUBECTLS = {}, None, None, ["kubectl"]
# The most that `kubectl apply` stores of an object in an annotation.
APPLY_BYTES = 262144
LABELS = ("metadata", "labels")
PORTS = CONTAINER + ("ports",)
POLICY = "NetworkPolicy"
RULES = ("spec", "podFailurePolicy", "rules")
DISRUPTED = {"type": "DisruptionTarget", "status": "True"}

# A change of the rendered objects and what must be complained of: whose field, its value, words.
BREAKS = [
    (STAGE, CONTAINER + ("readinessProbe", "httpGet", "port"), "metric", "no port has the name"),
    (STAGE, CONTAINER + ("livenessProbe", "httpGet", "path"), "/health", "livenessProbe asks"),
    (STAGE, CONTAINER + ("readinessProbe", "httpGet", "host"), "stage-0.stages", "the pod itself"),
    (STAGE, CONTAINER + ("startupProbe",), ABSENT, "no startupProbe"),
    (STAGE, PORTS + (0, "containerPort"), 4701, "--listen 0.0.0.0:4700, want 0.0.0.0:4701"),
    (STAGE, PORTS + (1, "containerPort"), 9701, "--metrics_listen 0.0.0.0:9700"),
    (COORDINATOR, PORTS, ABSENT, "Job coordinator, container coordinator: --metrics_listen"),
    (("Service", "stages"), ("spec", "ports", 0, "port"), 47, "Service stages: port"),
    (STAGE, POD + ("volumes",), [], "'tmp' is not both mounted and a volume"),
    (STAGE, ("spec", "volumeClaimTemplates"), [], "'data' is not both mounted and a volume"),
    (COORDINATOR, POD + ("volumes", 1, "persistentVolumeClaim", "claimName"), "run", "no Pers"),
    (COORDINATOR, POD + ("volumes", 0, "configMap", "name"), "other", "no ConfigMap other"),
    (COORDINATOR, CONTAINER + ("args", 2), "/experiment/my.yaml", "my.yaml is not in a ConfigMap"),
    (COORDINATOR, CONTAINER + ("workingDir",), "/tmp", "is not in a volume"),
    (STAGE, CONTAINER + ("args", 1), "--insecure", "--insecure"),
    (STAGE, CONTAINER + ("args", 10), "/certs/stage.pem", "--tls_cert /certs/stage.pem is not"),
    (STAGE, CONTAINER + ("volumeMounts", 2, "mountPath"), "/tls", "--tls_ca /certs/ca.crt is not"),
    (COORDINATOR, CONTAINER + ("volumeMounts", 3, "readOnly"), False, "--tls_key /certs/tls.key"),
    (STAGE, POD + ("volumes", 1, "secret", "secretName"), "stage-certs", "is not tls.crt"),
    (STAGE, POD + ("volumes", 1, "secret", "secretName"), "coordinator-tls", "want that of its"),
    (("Deployment", "results"), POD + ("volumes", 0),
     {"name": "runs", "secret": {"secretName": "stage-tls"}}, "results: Secrets ['stage-tls']"),
    (("Secret", "stage-tls"), ("data", "ca.key"), "", "Secret stage-tls: ['ca.crt', 'ca.key'"),
    (STAGE, ("spec", "serviceName"), "stage", "no headless service stage"),
    (("Service", "stages"), ("spec", "clusterIP"), "10.0.0.1", "no headless service stages"),
    (("Service", "stages"), ("spec", "publishNotReadyAddresses"), ABSENT, "publishNotReady"),
    (STAGE, ("spec", "podManagementPolicy"), ABSENT, "one after the other"),
    (COORDINATOR, CONTAINER + ("args", 5), "stage-{0..}.stage:4700", "want stage-{0..}.stages:47"),
    (COORDINATOR, CONTAINER + ("args", 5), "stage-0.stages:4700", "in another place than replicas"),
    (STAGE, ("spec", "replicas"), 3, "3 replicas, the experiment has 4 stages in each of 1 pipe"),
    (STAGE, ("spec", "template") + LABELS + ("app.kubernetes.io/component",), "x", "not select"),
    (("Service", "stages"), ("spec", "selector"), {"app": "stage"}, "Service stages:"),
    (("PodDisruptionBudget", "stage"), ("spec", "selector"), {}, "not select one kind of pod"),
    (("Namespace", "thinwire"), LABELS, {}, "does not enforce"),
    (STAGE, POD + ("securityContext", "runAsNonRoot"), ABSENT, "want runAsNonRoot"),
    (STAGE, POD + ("securityContext", "runAsUser"), 0, "the number of a user"),
    (STAGE, POD + ("securityContext", "seccompProfile"), ABSENT, "want seccompProfile"),
    (STAGE, POD + ("hostNetwork",), True, "hostNetwork"),
    (STAGE, POD + ("volumes", 0), {"name": "tmp", "hostPath": {"path": "/tmp"}}, "forbids"),
    (COORDINATOR, CONTAINER + ("securityContext", "allowPrivilegeEscalation"), True, "want allow"),
    (COORDINATOR, CONTAINER + ("securityContext", "capabilities"), {}, "want capabilities dropped"),
    (COORDINATOR, CONTAINER + ("securityContext", "readOnlyRootFilesystem"), False, "readOnly"),
    (STAGE, CONTAINER + ("securityContext", "runAsUser"), 0, "runAsUser overrides"),
    (STAGE, PORTS + (0, "hostPort"), 4700, "hostPort"),
    (STAGE, POD + ("automountServiceAccountToken",), ABSENT, "want automountServiceAccountToken"),
    (("ServiceAccount", "stage"), ("automountServiceAccountToken",), True, "and its account"),
    (STAGE, POD + ("enableServiceLinks",), ABSENT, "enableServiceLinks"),
    (STAGE, CONTAINER + ("image",), "ghcr.io/thinwire/thinwire:latest", "want a registry and"),
    (STAGE, CONTAINER + ("image",), "ghcr.io/thinwire/thinwire:0", "want one build"),
    (STAGE, CONTAINER + ("resources", "limits"), {}, "a limit of memory"),
    (COORDINATOR, CONTAINER + ("args", 3), "--quiet", "a second pod would be refused"),
    (COORDINATOR, ("spec", "backoffLimit"), 0, "backoffLimit 0, want another try"),
    (COORDINATOR, ("spec", "backoffLimit"), ABSENT, "backoffLimit None, want at most"),
    (COORDINATOR, ("spec", "backoffLimit"), 1000, "backoffLimit 1000, want at most"),
    (COORDINATOR, ("spec", "podFailurePolicy"), ABSENT, "exit 1 is tried again: Count"),
    (COORDINATOR, RULES + (0,), {"action": "Count", "onPodConditions": [DISRUPTED]},
     "exit 130, disrupted: Count, want Ignore"),
    (COORDINATOR, RULES + (0, "onPodConditions", 0, "status"), "False", "exit 137, disrupted"),
    (COORDINATOR, RULES + (1, "onExitCodes", "values"), [1], "exit 2 is tried again"),
    (COORDINATOR, RULES + (1, "onExitCodes", "values"), [1, 2, 137], "exit 137, by itself: FailJob"),
    (COORDINATOR, RULES + (1, "onExitCodes", "operator"), "NotIn", "exit 1 is tried again"),
    (COORDINATOR, RULES + (1, "onExitCodes", "containerName"), "run", "the container run, which is"),
    (COORDINATOR, POD + ("restartPolicy",), "OnFailure", "want restartPolicy: Never"),
    (COORDINATOR, ("spec", "ttlSecondsAfterFinished"), 60, "lets a deleted Job be applied"),
    (("PodDisruptionBudget", "stage"), ("spec", "maxUnavailable"), 1, "want maxUnavailable: 0"),
    (("PodDisruptionBudget", "coordinator"), ("spec", "minAvailable"), 0, "want minAvailable: 1"),
    ((POLICY, "nothing-else"), ("spec", "policyTypes"), ["Ingress"], "('results', 'dns'"),
    ((POLICY, "to-stages"), ("spec", "ingress", 0, "ports", 0, "port"), 4701, "does not pass"),
    ((POLICY, "to-stages"), ("spec", "ingress", 0, "from"), [{"namespaceSelector": {}}],
     "('coordinator elsewhere', 'stage', 'TCP', 4700)"),
    ((POLICY, "prometheus-to-metrics"), ("spec", "ingress", 0, "from", 0, "podSelector"), {},
     "('stranger in monitoring', 'coordinator', 'TCP', 9700)"),
    ((POLICY, "from-coordinator-and-stages"), ("spec", "egress", 1), {}, "'dns', 'TCP', 443)"),
]

# The same of the overlay with a server.
SERVER_BREAKS = [
    (SERVER, ("spec", "replicas"), 2, "want one replica"),
    (SERVER, ("spec", "strategy"), {"type": "RollingUpdate"}, "strategy Recreate"),
    (SERVER, CONTAINER + ("args", 5), "/tmp/queue", "--out /tmp/queue is not below a claim"),
    (SERVER, CONTAINER + ("args", 7), "stage-0.stages:4700", "--stages is not stage-{0..}.stages:4"),
    (SERVER, CONTAINER + ("args", 3), "0.0.0.0:4601", "--listen 0.0.0.0:4601, want 0.0.0.0:4600"),
    (("Service", "server"), ("spec", "ports", 0, "port"), 46, "Service server: port"),
    (SERVER, CONTAINER + ("readinessProbe", "httpGet", "path"), "/", "readinessProbe asks"),
    (SERVER, POD + ("volumes", 2, "secret", "secretName"), "stage-tls", "want that of its role"),
    (SERVER, POD + ("securityContext", "runAsNonRoot"), ABSENT, "want runAsNonRoot"),
    ((POLICY, "prometheus-to-metrics"), ("spec", "ingress", 0, "ports", 0, "port"), 4600,
     "('prometheus', 'coordinator', 'TCP', 4600)"),
]


# How a user's folder makes two pipelines of an experiment's replicas (docs/cluster.md).
CARRIERS = [{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": value}
            for value in ("--carriers", "2")]


def own_folder(folder, experiment, servers):
    """Writes folder/mine, as users have it beside a copy of deploy/k8s: an experiment, an image and
    a number of servers of their own. What its kustomization.yaml has."""
    shutil.copytree(DEPLOY / "k8s", folder / "k8s")
    (folder / "mine").mkdir()
    (folder / "mine/my.yaml").write_text(experiment, encoding="utf-8")
    (folder / "mine/stages.yaml").write_text(yaml.dump({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "stage"},
        "spec": {"replicas": servers}}), encoding="utf-8")
    made = {
        "bases": ["../k8s/overlays/cpu", "../k8s/certificates"],
        "images": [{"name": "ghcr.io/thinwire/thinwire", "newName": "example/own", "newTag": "1"}],
        "patchesStrategicMerge": ["stages.yaml"],
        "configMapGenerator": [{"name": "experiment", "behavior": "replace",
                                "files": ["experiment.yaml=my.yaml"]}],
    }
    (folder / "mine/kustomization.yaml").write_text(yaml.dump(made), encoding="utf-8")
    return made


class Overlays(unittest.TestCase):
    """Each overlay, as it is rendered."""

    @classmethod
    def setUpClass(cls):
        cls.overlays = {overlay: render(KUBECTLS[0], DEPLOY / "k8s/overlays" / overlay)
                        for overlay in ("cpu", "gpu", "serve", "monitoring", "cert-manager")}
        cls.certificates = render(KUBECTLS[0], DEPLOY / "k8s/certificates")
        cls.cpu = cls.overlays["cpu"] | cls.certificates

    def test_every_kubectl_makes_the_same_objects(self):
        for kubectl in KUBECTLS[1:]:
            for overlay, objects in self.overlays.items():
                again = render(kubectl, DEPLOY / "k8s/overlays" / overlay)
                self.assertEqual(again, objects, f"{kubectl}, {overlay}")

    def test_promises_are_kept(self):
        for overlay in ("cpu", "gpu", "serve"):
            for certificates in (self.certificates, self.overlays["cert-manager"]):
                objects = self.overlays[overlay] | certificates
                self.assertEqual(complaints(objects), [], overlay)

    def test_certificates_say_the_role_of_their_holder(self):
        issued = self.overlays["cert-manager"]
        for role in ("stage", "coordinator"):
            pem = base64.b64decode(self.certificates["Secret", f"{role}-tls"]["data"]["tls.crt"])
            names = subprocess.run(["openssl", "x509", "-noout", "-ext", "subjectAltName"],
                                   input=pem, capture_output=True, check=True).stdout.decode()
            self.assertEqual(re.findall(r"\w+:\S+", names), [f"DNS:{role}.thinwire"])
            spec = issued["Certificate", role]["spec"]
            self.assertEqual(spec["dnsNames"], [f"{role}.thinwire"])
            self.assertLessEqual({"server auth", "client auth"}, set(spec["usages"]))
            issuer = issued["Issuer", spec["issuerRef"]["name"]]["spec"]["ca"]["secretName"]
            self.assertEqual(issuer, issued["Certificate", "authority"]["spec"]["secretName"])
        self.assertTrue(issued["Certificate", "authority"]["spec"]["isCA"])

    def test_everything_is_in_the_namespace(self):
        for objects in (*self.overlays.values(), self.certificates):
            for (kind, name), made in objects.items():
                wanted = None if kind == "Namespace" else "thinwire"
                self.assertEqual(made["metadata"].get("namespace"), wanted, f"{kind} {name}")

    def test_each_broken_promise_is_noticed(self):
        for whose, path, value, words in BREAKS:
            said = complaints(changed(self.cpu, whose, path, value))
            self.assertIn(words, "\n".join(said), f"{whose} {path}: {value}")

    def test_each_broken_promise_of_a_server_is_noticed(self):
        objects = self.overlays["serve"] | self.certificates
        job = self.cpu[COORDINATOR]
        for whose, path, value, words in SERVER_BREAKS:
            said = complaints(changed(objects, whose, path, value))
            self.assertIn(words, "\n".join(said), f"{whose} {path}: {value}")
        self.assertIn("would take the server's stages",
                      "\n".join(complaints(objects | {COORDINATOR: job})))

    def test_programs_have_the_flags(self):
        for where, _, container in [*containers(self.overlays["cpu"]),
                                    *containers(self.overlays["serve"])]:
            program = container["args"][0]
            if program == "sleep":
                continue
            known = PROGRAMS["serve" if "serve" in container["args"] else program]
            for argument in container["args"]:
                if argument.startswith("--"):
                    self.assertIn(argument, known, where)

    def test_the_experiment_is_the_quickstart(self):
        given = self.overlays["cpu"]["ConfigMap", "experiment"]["data"]["experiment.yaml"]
        self.assertEqual(given, EXPERIMENT.read_text(encoding="utf-8"))

    def test_gpu_overlay_differs_where_it_says(self):
        gpu = self.overlays["gpu"][STAGE]["spec"]["template"]["spec"]
        self.assertEqual(gpu["containers"][0]["resources"]["limits"]["nvidia.com/gpu"], "1")
        self.assertEqual(gpu["nodeSelector"], {"nvidia.com/gpu.present": "true"})
        term = gpu["affinity"]["podAntiAffinity"][
            "preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"]
        labels = self.overlays["gpu"][STAGE]["spec"]["template"]["metadata"]["labels"]
        self.assertTrue(selects(term["labelSelector"], labels))
        images = {overlay: self.overlays[overlay][STAGE]["spec"]["template"]["spec"]["containers"][
            0]["image"] for overlay in ("cpu", "gpu")}
        self.assertEqual(images["gpu"], images["cpu"] + "-cuda")

    def test_own_experiment_image_and_number_of_stages(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            own_folder(folder, "{pipeline: {cuts: [stem]}}", servers=2)
            for kubectl in KUBECTLS:
                objects = render(kubectl, folder / "mine")
                self.assertEqual(complaints(objects), [])
                self.assertEqual(objects[STAGE]["spec"]["replicas"], 2)
                self.assertEqual({container["image"] for _, _, container in containers(objects)},
                                 {"example/own:1"})

    def test_several_pipelines_carry_replicas(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            made = own_folder(folder, "{pipeline: {cuts: [stem]}, replicas: {count: 2}}", servers=4)
            made["patchesJson6902"] = [{"path": "carriers.yaml", "target": {
                "group": "batch", "version": "v1", "kind": "Job", "name": "coordinator"}}]
            (folder / "mine/kustomization.yaml").write_text(yaml.dump(made), encoding="utf-8")
            (folder / "mine/carriers.yaml").write_text(yaml.dump(CARRIERS), encoding="utf-8")
            for kubectl in KUBECTLS:
                objects = render(kubectl, folder / "mine")
                self.assertEqual(complaints(objects), [])
                args = objects[COORDINATOR]["spec"]["template"]["spec"]["containers"][0]["args"]
                self.assertEqual(args[-2:], ["--carriers", "2"])
                self.assertIn("--carriers", PROGRAMS["thinwire"])
                for whose, path, value, words in (
                        (STAGE, ("spec", "replicas"), 3, "2 stages in each of 2 pipelines"),
                        (COORDINATOR, CONTAINER + ("args", -1), "3", "has fewer replicas")):
                    self.assertIn(words, "\n".join(complaints(changed(objects, whose, path, value))))


class Monitoring(unittest.TestCase):
    """What the overlay `monitoring` gives the Prometheus operator and Grafana."""

    @classmethod
    def setUpClass(cls):
        cls.objects = render(KUBECTLS[0], DEPLOY / "k8s/overlays/monitoring")
        cls.cpu = render(KUBECTLS[0], DEPLOY / "k8s/overlays/cpu")

    def test_monitor_takes_the_metrics_of_stages_and_coordinator(self):
        spec = self.objects["PodMonitor", "thinwire"]["spec"]
        jobs = {}
        for where, template in pod_templates(self.cpu):
            labels = template["metadata"]["labels"]
            if selects(spec["selector"], labels):
                jobs[where] = labels[spec["jobLabel"]]
                ports = [port["name"] for port in template["spec"]["containers"][0]["ports"]]
                self.assertIn(spec["podMetricsEndpoints"][0]["port"], ports)
                scrape = template["metadata"]["annotations"]["prometheus.io/scrape"]
                self.assertEqual(scrape, "true")
        self.assertEqual(jobs, {"StatefulSet stage": "stage", "Job coordinator": "coordinator"})
        relabeling = spec["podMetricsEndpoints"][0]["relabelings"][0]
        self.assertEqual(re.fullmatch(relabeling["regex"], "stage-12")[1], "12")

    def test_rules_are_those_of_the_rule_files(self):
        rules = DEPLOY / "prometheus/rules"
        groups = [group for path in sorted(rules.glob("*.yml"))
                  for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]]
        self.assertEqual(self.objects["PrometheusRule", "thinwire"]["spec"]["groups"], groups)
        folder = DEPLOY / "k8s/overlays/monitoring"
        spec = importlib.util.spec_from_file_location("writer", folder / "prometheus_rule.py")
        writer = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(writer)
        committed = (folder / "prometheus_rule.yaml").read_text(encoding="utf-8")
        self.assertEqual(committed, writer.prometheus_rule(rules), "run prometheus_rule.py")

    def test_each_dashboard_is_a_config_map_for_the_sidecar(self):
        given = {}
        for made in of_kind(self.objects, "ConfigMap"):
            self.assertEqual(made["metadata"]["labels"]["grafana_dashboard"], "1")
            self.assertLess(len(json.dumps(made)), APPLY_BYTES, made["metadata"]["name"])
            given.update(made["data"])
        wanted = {path.name: path.read_text(encoding="utf-8")
                  for path in (DEPLOY / "grafana/dashboards").glob("*.json")}
        self.assertEqual(given, wanted)


def flags_of(program, *arguments):
    """The flags that a program's --help names."""
    page = subprocess.run(
        [program, *arguments, "--help"], capture_output=True, text=True, check=True)
    return set(re.findall(r"--\w+", page.stdout))


def main():
    """Copies deploy/, of which a test may have links only, which kustomize does not follow."""
    global DEPLOY, EXPERIMENT, KUBECTLS
    thinwire, stage_server, kustomization, experiment = sys.argv[1:5]
    KUBECTLS = sys.argv[5:] or KUBECTLS
    PROGRAMS.update(thinwire=flags_of(thinwire, "run"), serve=flags_of(thinwire, "serve"),
                    stage_server=flags_of(stage_server))
    EXPERIMENT = pathlib.Path(experiment)
    with tempfile.TemporaryDirectory() as folder:
        DEPLOY = pathlib.Path(folder) / "deploy"
        shutil.copytree(pathlib.Path(kustomization).parents[2], DEPLOY)
        subprocess.run([DEPLOY / "certs.sh", DEPLOY / "k8s/certificates"], check=True)
        return not unittest.main(argv=sys.argv[:1], exit=False).result.wasSuccessful()


if __name__ == "__main__":
    sys.exit(main())

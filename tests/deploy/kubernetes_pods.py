#!/usr/bin/env python3
"""Starts the pods of deploy/k8s from its rendered manifests, trains, and breaks each promise once.

usage: kubernetes_pods.py BUNDLE.tar.xz|IMAGE.tar
of deploy/bundle.sh, or an image as deploy/docker makes it that `podman save` wrote; it takes three
to six minutes. The pods' containers run under podman as kubernetes_kubelet.py says. A healthy
cluster must train the quickstart to the numbers of a run on one machine, to the last bit; each
broken one must end with an error that names the cause. Wants root and Debian's kubernetes-client
openssl podman runc netavark aardvark-dns iptables debootstrap python3-yaml. Everything is in a folder of
its own and goes with it.
"""
import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from kubernetes_kubelet import Node, PodError
from kubernetes_objects import ABSENT, CONTAINER, COORDINATOR, POD, STAGE, changed, render

HERE = pathlib.Path(__file__).resolve().parent
DEPLOY = HERE.parents[1] / "deploy"
ARGS = CONTAINER + ("args",)
TIMES = {"time", "seconds", "samples_per_second", "evaluation_seconds"}
MOUNTED = "/experiment/experiment.yaml"
EXPERIMENT = ("data", "experiment.yaml")
RUN_SECONDS = 120
FAILURE_SECONDS = 40

# What the Job's container must say, with exit code 1 or 2, when a field of the manifests differs.
JOB_BREAKS = [
    ("an experiment that is not mounted", COORDINATOR, CONTAINER + ("volumeMounts", 0, "mountPath"),
     "/elsewhere", MOUNTED),
    ("a wrong key of the ConfigMap", COORDINATOR, ARGS + (2,), "/experiment/my.yaml", "my.yaml"),
    ("a wrong name of the stages", COORDINATOR, ARGS + (4,), "stage-{0..}.stagez:4700",
     r"stage 0.*stage-0\.stagez:4700"),
    ("a wrong port of the stages", COORDINATOR, ARGS + (4,), "stage-{0..}.stages:4701",
     r"stage 0.*stage-0\.stages:4701.*refused"),
    ("no certificates", COORDINATOR, ARGS + (slice(11, None),), [], r"does it want a certificate"),
    ("a certificate of a stage", COORDINATOR, POD + ("volumes", 3, "secret", "secretName"),
     "stage-tls", "certificate is for stage.thinwire, this call wants coordinator.thinwire"),
    ("no data on a stage", ("ConfigMap", "experiment"), EXPERIMENT,
     "{model: {name: resnet8}, data: {name: cifar10, dir: /data/cifar10}, epochs: 1,\n"
     " optimizer: {lr: 0.1}, pipeline: {cuts: [layer1, layer2, layer3], threads: 1}}",
     r"stage 0.*/data/cifar10"),
    ("a wrong field of the experiment", ("ConfigMap", "experiment"), EXPERIMENT,
     "{model: {name: resnet8}, epoch: 1}", "epoch"),
    ("results that are not on a volume", COORDINATOR, CONTAINER + ("volumeMounts", 1, "mountPath"),
     "/run", "/?runs.*[Rr]ead-only"),
    ("results on a volume that is read only", COORDINATOR,
     CONTAINER + ("volumeMounts", 1, "readOnly"), True, "/?runs.*[Rr]ead-only"),
    ("results on a volume that is full", COORDINATOR,
     POD + ("volumes", 1, "persistentVolumeClaim", "claimName"), "small", "[Nn]o space"),
]

# What is refused, or what a probe says, when one field of a stage is another.
STAGE_BREAKS = [
    ("a probe on a wrong path", CONTAINER + ("startupProbe", "httpGet", "path"), "/health",
     "startupProbe: .*:9700/health: HTTP 404"),
    ("a readiness probe on a wrong path", CONTAINER + ("readinessProbe", "httpGet", "path"),
     "/ready", "readinessProbe: .*/ready: HTTP 404"),
    ("a liveness probe on a wrong path", CONTAINER + ("livenessProbe", "httpGet", "path"), "/live",
     "livenessProbe: .*/live: HTTP 404"),
    ("a probe on a port without a name", CONTAINER + ("startupProbe", "httpGet", "port"), "health",
     "couldn't find port \"health\""),
    ("metrics at another port", ARGS + (4,), "0.0.0.0:9701", "startupProbe: .*refused"),
    ("metrics for the pod itself", ARGS + (4,), "127.0.0.1:9700", "startupProbe: .*refused"),
    ("a mount without a volume", POD + ("volumes",), [], 'volumeMounts: Not found: "tmp"'),
    ("a claim that no template makes", ("spec", "volumeClaimTemplates"), [], 'Not found: "data"'),
    ("a Secret that is not there", POD + ("volumes", 1, "secret", "secretName"), "stage-certs",
     'secret "stage-certs" not found'),
    ("no certificates", ARGS + (slice(9, None),), [], "startupProbe|is not running"),
    ("a user who is root", POD + ("securityContext", "runAsUser"), 0, "runAsNonRoot"),
    ("a flag that the program does not know", ARGS + (1,), "--listn",
     "startupProbe|is not running"),
]

# What shows in a stage's process when a field of its security context is not there.
SECURITY_BREAKS = [
    ("a root file system that is written to",
     CONTAINER + ("securityContext", "readOnlyRootFilesystem"), "root is rw"),
    ("new privileges", CONTAINER + ("securityContext", "allowPrivilegeEscalation"), "NoNewPrivs 0"),
    ("no seccomp profile", POD + ("securityContext", "seccompProfile"), "Seccomp 0"),
    ("capabilities", CONTAINER + ("securityContext", "capabilities"), "CapBnd"),
]

failures = 0


def check(what, wrong=None):
    """Prints and counts one check; `wrong` is what was seen instead, None or empty if it passed."""
    global failures
    failures += bool(wrong)
    print(f"FAILED: {what}\n  {wrong}" if wrong else f"ok: {what}", flush=True)


def missing(pattern, text):
    """None where the text has the pattern, else what it has."""
    return None if re.search(pattern, text, re.DOTALL) else f"'{pattern}' is not in: {text.strip()}"


@contextlib.contextmanager
def stages(node, objects):
    """The pods of the StatefulSet, all started at once, then each through its startup probe."""
    owner = objects[STAGE]
    pods = []
    try:
        for ordinal in range(owner["spec"]["replicas"]):
            pods.append(node.start(objects, owner, f"stage-{ordinal}", ordinal))
        for pod in pods:
            pod.await_start()
        yield pods
    finally:
        for pod in pods:
            pod.remove()


def run_job(node, objects, seconds):
    """The exit code and the log of the Job's container."""
    pod = node.start(objects, objects[COORDINATOR], "coordinator")
    try:
        return pod.wait(seconds), pod.log()
    finally:
        pod.remove()


def hurried(objects):
    """The objects with a coordinator that neither waits nor lingers for long."""
    args = list(objects[COORDINATOR]["spec"]["template"]["spec"]["containers"][0]["args"])
    args[args.index("--stages_wait") + 1] = "5"
    args[args.index("--metrics_linger") + 1] = "0"
    return changed(objects, COORDINATOR, ARGS, args)


def _untimed(entry):
    """A record without what a clock gave it."""
    if isinstance(entry, dict):
        return {key: _untimed(value) for key, value in entry.items() if key not in TIMES}
    return [_untimed(value) for value in entry] if isinstance(entry, list) else entry


def numbers(run):
    """All that a run computed: each step, each epoch, and the bits of the parameters."""
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    tensors = {}
    for path in sorted((run / "model").glob("*.safetensors")):
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        for name, about in json.loads(data[8:8 + length]).items():
            if name != "__metadata__":
                begin, end = about["data_offsets"]
                tensors[name] = data[8 + length + begin:8 + length + end]
    return [_untimed(json.loads(line)) for line in lines], tensors


def check_keys(node, pods):
    """A stage's process finds its own key where its flags say, and no other."""
    seen = node.podman("exec", pods[0].name, "find", "/certs", "-type", "f", "-readable")
    wanted = ["/certs/ca.crt", "/certs/tls.crt", "/certs/tls.key"]
    check("a stage sees its own key alone", None if sorted(seen.split()) == wanted else seen)


def security(pod):
    """What the pod's process lacks of its security context, by the kernel's word."""
    fields, mounts = pod.status()
    wrong = []
    if fields["Uid"].split()[0] != "65532" or fields["Gid"].split()[0] != "65532":
        wrong.append(f"Uid {fields['Uid']}, Gid {fields['Gid']}")
    for name in ("CapEff", "CapPrm", "CapBnd"):
        if int(fields[name], 16):
            wrong.append(f"{name} {fields[name]}")
    for name, wanted in (("NoNewPrivs", "1"), ("Seccomp", "2")):
        if fields[name] != wanted:
            wrong.append(f"{name} {fields[name]}")
    if "ro" not in mounts["/"]:
        wrong.append("root is rw")
    return ", ".join(wrong)


def check_healthy(node, objects):
    """Four stages and the Job train; all is as on one machine."""
    started = time.monotonic()
    code, log = run_job(node, hurried(objects), RUN_SECONDS)
    check("the Job's container trains and exits with 0", code and f"exit {code}: {log}")
    print(f"  {time.monotonic() - started:.1f} s; " + "".join(
        line for line in log.splitlines(keepends=True) if line.startswith("epoch 12/12")), end="")
    alone = changed(
        objects, COORDINATOR, ARGS, ["thinwire", "run", MOUNTED, "--out", "/runs/alone"])
    code, log = run_job(node, alone, RUN_SECONDS)
    check("one container trains by itself", code and f"exit {code}: {log}")
    runs = node.claim("runs", None)
    check("results in the volume are those of one container, to the last bit",
          None if numbers(runs / "quickstart") == numbers(runs / "alone") else "they differ")
    kept = numbers(runs / "alone")
    check("which has steps, epochs and parameters",
          None if kept[0] and kept[1] else str(kept)[:200])
    code, log = run_job(node, hurried(objects), FAILURE_SECONDS)
    check(f"a second run of that name: exit {code}",
          missing("--overwrite", log if code == 2 else ""))


def forget_results(node):
    """Empties the claim of the results."""
    for run in node.claim("runs", None).iterdir():
        shutil.rmtree(run)


def check_job_breaks(node, objects):
    """Each broken field ends the Job's container with an error that names it."""
    node.small_claim("small", objects[COORDINATOR]["spec"]["template"]["spec"], "16k")
    for what, whose, path, value, words in JOB_BREAKS:
        forget_results(node)
        code, log = run_job(node, changed(hurried(objects), whose, path, value), FAILURE_SECONDS)
        check(f"{what}: exit {code}",
              missing(words, log) if code in (1, 2) else f"exit {code}: {log}")


def check_fewer_pods(node, objects):
    """A stage that is missing is named, with its address."""
    forget_results(node)
    with stages(node, changed(objects, STAGE, ("spec", "replicas"), 3)):
        code, log = run_job(node, hurried(objects), FAILURE_SECONDS)
    check(f"fewer pods than stages: exit {code}",
          missing(r"stage 3.*stage-3\.stages:4700", log) if code == 1 else f"exit {code}: {log}")


def check_late_stage(node, objects):
    """A coordinator that is there first waits for its stages."""
    job = node.start(objects, patient_job(objects), "coordinator")
    try:
        time.sleep(3)
        with stages(node, objects):
            code = job.wait(RUN_SECONDS)
        check("a Job that starts before its stages waits for them, and says so",
              missing(r"stage-0\.stages:4700.*epoch 1/1", job.log()) if code == 0 else job.log())
    finally:
        job.remove()


def patient_job(objects):
    """The Job for one epoch under another name, that waits as long as the manifest says."""
    args = list(objects[COORDINATOR]["spec"]["template"]["spec"]["containers"][0]["args"])
    args[args.index("--metrics_linger") + 1] = "0"
    args += ["--set", "epochs=1", "--out", "/runs/late"]
    return changed(objects, COORDINATOR, ARGS, args)[COORDINATOR]


def check_stage_breaks(node, objects):
    """Each broken field of a stage is refused, or fails a probe."""
    objects = changed(objects, STAGE, CONTAINER + ("startupProbe", "failureThreshold"), 4)
    objects = changed(objects, STAGE, CONTAINER + ("startupProbe", "periodSeconds"), 1)
    objects = changed(objects, STAGE, ("spec", "replicas"), 1)
    for what, path, value, words in STAGE_BREAKS:
        said = "the pod is healthy"
        try:
            with stages(node, changed(objects, STAGE, path, value)):
                pass
        except PodError as error:
            said = str(error)
        check(what, missing(words, said))
    for what, path, words in SECURITY_BREAKS:
        with stages(node, changed(objects, STAGE, path, ABSENT)) as pods:
            check(what, missing(words, security(pods[0]) or "the process is as it should be"))


def check_end(pods, objects):
    """SIGTERM ends a stage in time and in order."""
    grace = objects[STAGE]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    started = time.monotonic()
    code = pods[0].stop(grace)
    seconds = time.monotonic() - started
    check(f"SIGTERM ends a stage: exit {code} after {seconds:.1f} s",
          None if code == 0 and seconds < grace / 2 else pods[0].log())


def load_image(node, archive):
    """Makes the manifests' image from a bundle, or takes the one of an archive for it."""
    if not archive.endswith(".tar"):
        subprocess.run([HERE / "kubernetes_image.sh", archive, node.image],
                       env=node.environment, check=True)
        return
    loaded = node.podman("load", "--quiet", "--input", archive)
    node.podman("tag", loaded.split()[-1], node.image)


def with_certificates(folder):
    """The overlay `cpu`, and the Secrets of an authority of its own."""
    shutil.copytree(DEPLOY / "k8s/certificates", folder, dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("*.pem", "*.key"))
    subprocess.run([DEPLOY / "certs.sh", folder], check=True)
    return render("kubectl", DEPLOY / "k8s/overlays/cpu") | render("kubectl", folder)


def main():
    """All checks on one node."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        objects = with_certificates(folder)
    with tempfile.TemporaryDirectory(prefix="thinwire-pods-") as folder, Node(folder) as node:
        node.image = objects[STAGE]["spec"]["template"]["spec"]["containers"][0]["image"]
        load_image(node, sys.argv[1])
        print(f"image: {time.monotonic() - started:.0f} s", flush=True)
        with stages(node, objects) as pods:
            check("all stages pass their probes")
            for pod in pods:
                check(f"{pod.name}: user, capabilities, seccomp, read-only root", security(pod))
            check_keys(node, pods)
            check_healthy(node, objects)
            for pod in pods:
                pod.probe("livenessProbe")
            check_job_breaks(node, objects)
            check_end(pods, objects)
        check_fewer_pods(node, objects)
        check_late_stage(node, objects)
        check_stage_breaks(node, objects)
    print(f"{failures} failed; {(time.monotonic() - started) / 60:.1f} minutes")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())

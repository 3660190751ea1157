#!/usr/bin/env python3
"""Starts the pods of deploy/k8s from its rendered manifests, trains, and breaks each promise once.

usage: kubernetes_pods.py BUNDLE.tar.xz|IMAGE.tar
of deploy/bundle.sh, or an image as deploy/docker makes it that `podman save` wrote; it takes three
to fifteen minutes. The pods' containers run under podman as kubernetes_kubelet.py says. A healthy
cluster must train the quickstart to the numbers of a run on one machine, to the last bit, and so
must one that loses containers, all of them at once too; a server of experiments keeps its queue; each
broken one must end with an error that names the cause. Wants root and Debian's kubernetes-client
openssl podman runc netavark aardvark-dns iptables debootstrap python3-yaml. Everything is in a folder of
its own and goes with it.
"""
import contextlib
import datetime
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from kubernetes_kubelet import Node, PodError
from kubernetes_objects import (
    ABSENT, CONTAINER, COORDINATOR, POD, STAGE, changed, job_answer, render)
from kubernetes_server import check_server

HERE = pathlib.Path(__file__).resolve().parent
DEPLOY = HERE.parents[1] / "deploy"
ARGS = CONTAINER + ("args",)
TIMES = {"time", "seconds", "samples_per_second", "evaluation_seconds"}
MOUNTED = "/experiment/experiment.yaml"
EXPERIMENT = ("data", "experiment.yaml")
RUN_SECONDS = 120
FAILURE_SECONDS = 40
# Of the run whose containers are lost: it must last until the last one is.
LOST_EPOCHS = 40

# What the Job's container must say, with exit code 1 or 2, when a field of the manifests differs.
JOB_BREAKS = [
    ("an experiment that is not mounted", COORDINATOR, CONTAINER + ("volumeMounts", 0, "mountPath"),
     "/elsewhere", MOUNTED),
    ("a wrong key of the ConfigMap", COORDINATOR, ARGS + (2,), "/experiment/my.yaml", "my.yaml"),
    ("a wrong name of the stages", COORDINATOR, ARGS + (5,), "stage-{0..}.stagez:4700",
     r"stage 0.*stage-0\.stagez:4700"),
    ("a wrong port of the stages", COORDINATOR, ARGS + (5,), "stage-{0..}.stages:4701",
     r"stage 0.*stage-0\.stages:4701.*refused"),
    ("no certificates", COORDINATOR, ARGS + (slice(12, None),), [], r"does it want a certificate"),
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
    check_second_job(node, objects)


def check_second_job(node, objects):
    """A Job of the same name goes on with the run, which has ended; that of another experiment is
    refused and leaves the results."""
    runs = node.claim("runs", None)
    code, log = run_job(node, hurried(objects), RUN_SECONDS)
    check("a second Job leaves the run as it is, and says so",
          missing("all 12 epochs are trained", log) if code == 0 else f"exit {code}: {log}")
    check("with the same numbers",
          None if numbers(runs / "quickstart") == numbers(runs / "alone") else "they differ")
    given = objects["ConfigMap", "experiment"]["data"]["experiment.yaml"]
    other = changed(hurried(objects), ("ConfigMap", "experiment"), EXPERIMENT,
                    given.replace("seed: 1", "seed: 2"))
    code, log = run_job(node, other, FAILURE_SECONDS)
    check(f"a Job of another experiment of that name: exit {code}",
          missing("cannot go on as another: .*seed: 1 -> 2", log) if code == 2 else log)
    check("is not tried again", ends_the_job(objects, code))
    check("and leaves the results",
          None if numbers(runs / "quickstart") == numbers(runs / "alone") else "they differ")


def ends_the_job(objects, code):
    """What the Job does about a pod that ended with this exit code, None if it fails for good."""
    answer = job_answer(objects[COORDINATOR]["spec"], code)
    return None if answer == "FailJob" else f"exit {code}: {answer}, want FailJob"


def starts_another_pod(objects, code):
    """The same, None if it starts another pod."""
    answer = job_answer(objects[COORDINATOR]["spec"], code)
    tries = objects[COORDINATOR]["spec"]["backoffLimit"]
    return None if answer == "Count" and tries > 0 else f"exit {code}: {answer} of {tries}"


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
        check("  which fails the Job", ends_the_job(objects, code))


def lines_of(run):
    """The lines of a run's metrics.jsonl so far, but one that is not whole yet."""
    path = run / "metrics.jsonl"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.split("\n")[:-1] if line.endswith("}")]


def await_epoch(run, epoch, pod):
    """Waits until that epoch is over; an error where the coordinator's pod ends before it."""
    end = time.monotonic() + RUN_SECONDS
    while not any(line["type"] == "epoch" and line["epoch"] >= epoch for line in lines_of(run)):
        if time.monotonic() > end or not pod.running():
            raise PodError(f"epoch {epoch} does not come: {pod.log()}")
        time.sleep(0.05)


def seconds_to_go_on(run, since, pod):
    """From a loss of the coordinator at `since` to the first step that is recorded behind it."""
    await_line = time.monotonic() + RUN_SECONDS
    while time.monotonic() < await_line and pod.running():
        for line in lines_of(run):
            at = datetime.datetime.fromisoformat(line["time"].replace("Z", "+00:00")).timestamp()
            if line["type"] == "step" and at > since:
                return at - since
        time.sleep(0.05)
    raise PodError(f"no step behind the loss: {pod.log()}")


def losing_job(objects):
    """The Job as the manifest has it, with an experiment that lasts longer, under another name."""
    given = objects["ConfigMap", "experiment"]["data"]["experiment.yaml"]
    longer = re.sub(r"(?m)^epochs: .*", f"epochs: {LOST_EPOCHS}", given)
    longer = re.sub(r"(?m)^name: .*", "name: lost", longer)
    return changed(objects, ("ConfigMap", "experiment"), EXPERIMENT, longer)


def check_losses(node, objects):
    """A run loses a stage's container, its coordinator's, and all at once: it ends like another."""
    objects = losing_job(hurried(objects))
    run, quiet = node.claim("runs", None) / "lost", node.claim("runs", None) / "lost_nothing"
    alone = changed(objects, COORDINATOR, ARGS,
                    ["thinwire", "run", MOUNTED, "--out", f"/runs/{quiet.name}"])
    code, log = run_job(node, alone, RUN_SECONDS)
    check("a run that loses nothing ends", code and f"exit {code}: {log}")
    started = time.monotonic()
    with stages(node, objects) as pods:
        job = node.start(objects, objects[COORDINATOR], "coordinator")
        try:
            await_epoch(run, 4, job)
            node.kill(pods[2])
            pods[2].restart()  # as the kubelet does, in the same pod
            await_epoch(run, 9, job)
            check("a stage's container is killed: the run goes on")
            since = node.kill(job)
            check("the coordinator's is killed: the Job starts another pod",
                  starts_another_pod(objects, job.wait(5)))
        finally:
            job.remove()
        job = node.start(objects, objects[COORDINATOR], "coordinator")
        try:
            print(f"  {seconds_to_go_on(run, since, job):.1f} s from its loss to the first step")
            await_epoch(run, 14, job)
            since = node.kill(job, *pods)
            check("all are killed at once: the Job starts another pod",
                  starts_another_pod(objects, job.wait(5)))
            epochs = [line["epoch"] for line in lines_of(run) if line["type"] == "epoch"]
            check("before the end", f"epochs {epochs}" if LOST_EPOCHS in epochs else None)
        finally:
            job.remove()
    with stages(node, objects):  # other pods, of which the claims alone are the same
        job = node.start(objects, objects[COORDINATOR], "coordinator")
        try:
            seconds = seconds_to_go_on(run, since, job)
            print(f"  {seconds:.1f} s from the loss of all to the first step")
            code = job.wait(RUN_SECONDS)
            check("the run ends with 0", code and f"exit {code}: {job.log()}")
        finally:
            job.remove()
    minutes = (time.monotonic() - started) / 60
    print(f"  {minutes:.1f} minutes for {LOST_EPOCHS} epochs and three losses")
    check_same_end(run, quiet)


def check_same_end(run, quiet):
    """A run that lost containers left what another did, and tells of the losses."""
    (lines, tensors), (wanted_lines, wanted_tensors) = numbers(run), numbers(quiet)
    check("steps, losses, accuracies, bytes are those of a run that lost nothing",
          None if lines and equal_but_means(lines, wanted_lines) else "they differ")
    check("and the parameters, to the last bit",
          None if tensors and tensors == wanted_tensors else "they differ")
    ended, wanted = (json.loads((folder / "summary.json").read_text(encoding="utf-8"))
                     for folder in (run, quiet))
    check("and what crossed the cuts",
          None if sent(ended) and sent(ended) == sent(wanted) else f"{sent(ended)}, {sent(wanted)}")
    told = [(event["type"], event["stage"]) for event in ended["events"]]
    check("which tells what happened",
          None if told == [("restarted", 2), ("resumed", None), ("resumed", None)] else told)
    print("  " + ", ".join(f"{event['seconds']:.1f} s to go on without stage {event['stage']}"
                           for event in ended["events"] if event["type"] == "restarted"))


def sent(summary):
    """Messages and bytes of each cut's directions."""
    return [(boundary["name"], end, *(boundary[end][field] for field in (
        "messages", "raw_bytes", "payload_bytes", "wire_bytes")))
            for boundary in summary["boundaries"] for end in ("activations", "gradients")]


def equal_but_means(one, other, field=None):
    """Whether records are equal, but for the last digits of means, which a run that goes on sums up
    in parts."""
    if field == "relative_error" and one is not None and other is not None:
        return math.isclose(one, other, rel_tol=1e-9)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            equal_but_means(one[name], other[name], name) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal_but_means, one, other))
    return one == other


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
    args += ["--set", "epochs=1", "--set", "name=late"]
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
    """The overlays `cpu` and `serve`, each with the Secrets of one authority of their own."""
    shutil.copytree(DEPLOY / "k8s/certificates", folder, dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("*.pem", "*.key"))
    subprocess.run([DEPLOY / "certs.sh", folder], check=True)
    secrets = render("kubectl", folder)
    return [render("kubectl", DEPLOY / f"k8s/overlays/{name}") | secrets for name in ("cpu", "serve")]


def main():
    """All checks on one node."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        objects, of_server = with_certificates(folder)
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
            with tempfile.TemporaryDirectory() as folder_of_caller:
                check_server(node, objects | of_server, folder_of_caller, check)
            check_end(pods, objects)
        forget_results(node)
        check_losses(node, objects)
        check_fewer_pods(node, objects)
        check_late_stage(node, objects)
        check_stage_breaks(node, objects)
    print(f"{failures} failed; {(time.monotonic() - started) / 60:.1f} minutes")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())

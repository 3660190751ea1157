"""`thinwire serve` as the overlay `serve` starts it: asked from another machine, lost, and back."""
import base64
import json
import pathlib
import time

from kubernetes_kubelet import PodError
from kubernetes_objects import SERVER

PATIENCE_SECONDS = 120
EPOCHS = {"first": 150, "second": 5, "third": 5}


class Caller:
    """Another machine, which has an experiment and the coordinator's certificate."""

    def __init__(self, node, objects, folder):
        self._node, self._folder = node, pathlib.Path(folder)
        given = objects["Secret", "coordinator-tls"]["data"]
        files = {name: base64.b64decode(text) for name, text in given.items()}
        files["experiment.yaml"] = objects["ConfigMap", "experiment"]["data"]["experiment.yaml"].encode()
        for name, content in files.items():
            (self._folder / name).write_bytes(content)
            (self._folder / name).chmod(0o644)
        self._folder.chmod(0o755)
        self.pod = None

    def ask(self, command, *arguments):
        """What the command says; PodError if it fails."""
        return self._node.podman(
            "run", "--rm", "--no-healthcheck", "--network", "host", "--volume", f"{self._folder}:/mine:ro", self._node.image,
            "thinwire", command, *arguments, "--server", f"{self.pod.address()}:4600",
            "--tls_cert", "/mine/tls.crt", "--tls_key", "/mine/tls.key", "--tls_ca", "/mine/ca.crt")

    def submit(self, name):
        """The name that the server gives an experiment."""
        return self.ask("submit", "/mine/experiment.yaml", "--set", f"name={name}",
                        "--set", f"epochs={EPOCHS[name]}").strip()

    def states(self):
        """Run -> state, in the order of the list."""
        return {run["run"]: run["state"] for run in json.loads(self.ask("list", "--format", "json"))["runs"]}


def _wait_for(what, is_so):
    """Asks until it is so; PodError when it does not come."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > end:
            raise PodError(f"{what} does not come")
        time.sleep(0.2)


def _is_ready(pod):
    try:
        pod.probe("readinessProbe")
        return True
    except PodError:
        return False


def _start(node, objects):
    pod = node.start(objects, objects[SERVER], "server")
    _wait_for("a server that is ready", lambda: _is_ready(pod))
    return pod


def check_server(node, objects, folder, check):
    """With stages that serve: three experiments, the server's pod lost in the first, one cancelled."""
    queue = node.claim("runs", None) / "queue"
    caller = Caller(node, objects, folder)
    caller.pod = _start(node, objects)
    try:
        names = [caller.submit(name) for name in EPOCHS]
        check("a server takes experiments from another machine",
              None if names == ["first-1", "second-2", "third-3"] else names)
        checkpoints = queue / "runs/first-1/checkpoints"
        _wait_for("a checkpoint of the first", lambda: list(checkpoints.glob("step-*[0-9]/manifest.json")))
        caller.ask("cancel", "third-3")
        wanted = {"first-1": "runs", "second-2": "waits", "third-3": "cancelled"}
        states = caller.states()
        check("  lists what runs, waits and was cancelled", None if states == wanted else states)
        node.kill(caller.pod)
        caller.pod.remove()
        caller.pod = _start(node, objects)  # as the Deployment does, with the same claim
        watched = caller.ask("watch", "first-1")
        check("another pod goes on with the queue, and the first is watched to its end",
              None if "epoch 150/150" in watched else watched)
        summary = json.loads((queue / "runs/first-1/summary.json").read_text(encoding="utf-8"))
        told = [event["type"] for event in summary["events"]]
        check("  which went on from its checkpoint", None if told == ["resumed"] else told)
        caller.ask("watch", "second-2")
        wanted = {"first-1": "done", "second-2": "done", "third-3": "cancelled"}
        states = caller.states()
        check("  and none is lost", None if states == wanted else states)
        code = caller.pod.stop(objects[SERVER]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"])
        check("SIGTERM ends it", code and f"exit {code}: {caller.pod.log()}")
    finally:
        caller.pod.remove()

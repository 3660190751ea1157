"""What the parts of run.py work with: the programs, commands with a time limit and a log, training
runs and what they leave."""
import collections
import hashlib
import json
import os
import shlex
import signal
import threading
import time

import commands

# Where Bazel puts them; in a bundle they lie in its root.
PROGRAMS = {
    "thinwire": "coordinator",
    "stage_server": "stage_server",
    "step_bench": "tests",
    "message_bench": "tests",
    "twins": "tests/gpu",
    "device_tests": "tests/gpu",
    "kernel_probe": "tests/gpu",
    "codec_bench": "compress/cuda",
    "libgpu_timeline.so": "tests/gpu",
    "libthinwire_cuda.so": "backend/cuda",
}
# Linked with CUDA itself; on the emulator they are programs of their own.
LINKED_WITH_CUDA = ("device_tests", "kernel_probe", "codec_bench")
LOGGED_CHARACTERS = 20000  # of each command's output

# A command that failed, and its variables of the environment, to be run once more (diagnosis.py).
Again = collections.namedtuple("Again", "command env")


class Failed(Exception):
    """What a part found wrong; its text ends up in the table. `details`: what was said, the first
    message first."""

    def __init__(self, text, details=(), again=()):
        super().__init__(text)
        self.details, self.again = list(details), list(again)


class Unusable(Failed):
    """Why no part can pass on this machine."""


class Skipped(Exception):
    """Why a part cannot run here."""


class Session:
    """One call of run.py. `root`: of the bundle or of the sources."""

    def __init__(self, root, work, log_path, plugin="", rehearse=False, data=""):
        self.root, self.work, self.log_path = root, work, log_path
        self.rehearse, self.data = rehearse, data
        self.plugin = plugin or self.program("libthinwire_cuda.so")
        self.cores = len(os.sched_getaffinity(0))
        self._end = time.monotonic()
        self._lock, self._commands = threading.Lock(), 0

    def begin(self, seconds):
        """The part that begins now has so many."""
        self._end = time.monotonic() + seconds

    def left(self):
        return self._end - time.monotonic()

    def log(self, text):
        with self._lock, open(self.log_path, "a", encoding="utf-8") as file:
            file.write(text.rstrip("\n") + "\n")

    def program(self, name):
        """Its path. Failed, naming the places, if there is none."""
        built = name + "_emulated" if self.rehearse and name in LINKED_WITH_CUDA else name
        folders = ["", os.path.join("bazel-bin", PROGRAMS[name]), PROGRAMS[name]]
        paths = [os.path.join(self.root, folder, built) for folder in folders]
        for path in paths:
            if os.path.isfile(path):
                return path
        raise Failed(f"no program {built}: looked for " + ", ".join(paths))

    def file(self, *parts):
        return os.path.join(self.root, *parts)

    def run(self, command, env=None, limit=None, interrupts=False, may_fail=False):
        """Runs it in `root`; returns how it was done (commands.Done). Failed for a status other
        than 0, unless it `may_fail`, and when the time is up, unless that `interrupts` it (Ctrl-C)
        and is no failure."""
        limit = min(limit or self.left(), self.left())
        with self._lock:
            self._commands += 1
            number = self._commands
        variables = [f"{name}={value}" for name, value in (env or {}).items()]
        self.log(f"[{number}] $ {shlex.join(variables + [str(part) for part in command])}")
        try:
            done = commands.run(command, self.root, env, limit,
                                    signal.SIGINT if interrupts else signal.SIGKILL)
        except OSError as error:
            raise Failed(f"{command[0]} cannot be started: {error.strerror}") from error
        text = commands.shown(done.out, LOGGED_CHARACTERS)
        self.log(f"[{number}] said:\n{text}[{number}] {done.ending()}, {done.seconds:.1f} s\n")
        if done.status == 0 or may_fail or done.timed_out and interrupts:
            return done
        raise Failed(done.reason(), [text] if done.says_more() else [],
                     [Again(done.command, env or {})])

    def train(self, name, experiment, settings, flags=(), **kwargs):
        """`thinwire run` with --set of `settings`, and `flags`; kwargs as run()'s. Returns a Run."""
        folder = os.path.join(self.work, name)
        command = [self.program("thinwire"), "run", self.file(*experiment.split("/")), "--quiet",
                   "--overwrite", "--out", folder, "--stage_server", self.program("stage_server"),
                   "--cuda_plugin", self.plugin, *flags]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        self.run(command, **kwargs)
        return Run(folder)


class Run:
    """A run's folder."""

    def __init__(self, folder):
        self.folder = folder
        self.steps, self.epochs = [], []
        path = os.path.join(folder, "metrics.jsonl")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                for line in file:
                    entry = json.loads(line)
                    (self.steps if entry["type"] == "step" else self.epochs).append(entry)

    def summary(self):
        with open(os.path.join(self.folder, "summary.json"), encoding="utf-8") as file:
            return json.load(file)

    def losses(self):
        return [step["loss"] for step in self.steps]

    def tests(self):
        return [epoch["test"] for epoch in self.epochs]

    def wire_bytes(self):
        return {f"{boundary['name']}/{direction}": boundary[direction]["wire_bytes"]
                for boundary in self.summary()["boundaries"]
                for direction in ("activations", "gradients")}

    def parameters(self):
        """A digest of each tensor of the trained model."""
        digests, folder = {}, os.path.join(self.folder, "model")
        for name in sorted(os.listdir(folder)):
            if not name.endswith(".safetensors"):
                continue
            with open(os.path.join(folder, name), "rb") as file:
                content = file.read()
            start = 8 + int.from_bytes(content[:8], "little")
            for tensor, entry in json.loads(content[8:start]).items():
                if tensor != "__metadata__":
                    begin, end = entry["data_offsets"]
                    part = content[start + begin:start + end]
                    digests[tensor] = hashlib.sha256(part).hexdigest()
        return digests

    def speed(self):
        """Samples a second: the median of the epochs but the first."""
        speeds = sorted(epoch["samples_per_second"] for epoch in self.epochs[1:] or self.epochs)
        return speeds[len(speeds) // 2]

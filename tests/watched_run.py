"""A run whose members come and go, looked at from outside: its steps, when they came, and how it was laid out."""
import json
import re
import threading
import time

LOOK_SECONDS = 0.005


def steps_of(run):
    """The losses of the steps in the record, by step."""
    path = run / "metrics.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return {event["step"]: event["loss"] for event in map(json.loads, lines) if event["type"] == "step"}


def layouts_of(log):
    """The step and the replicas of each pipeline for each time that the run has gone on; of a single one that is None."""
    found = re.findall(r"going on from step (\d+), .*as (?:one pipeline|\d+ pipelines of ([\d, ]+) replicas)", log.read_text())
    return [(int(step), [int(one) for one in replicas.split(", ")] if replicas else [None]) for step, replicas in found]


class Steps(threading.Thread):
    """The steps of a run as their records come, until end(): when each came, and the seconds that it says."""

    def __init__(self, run):
        super().__init__(daemon=True)
        self.path, self.came, self.seconds, self.is_over = run / "metrics.jsonl", {}, {}, threading.Event()
        self.start()

    def run(self):
        rest, size = b"", 0
        while not self.is_over.wait(LOOK_SECONDS):
            if not self.path.exists() or self.path.stat().st_size == size:
                continue
            with self.path.open("rb") as file:
                file.seek(size)
                data = file.read()
            size += len(data)
            *lines, rest = (rest + data).split(b"\n")
            for event in map(json.loads, lines):
                if event["type"] == "step":
                    self.seconds[event["step"]] = event["seconds"]
                    self.came[event["step"]] = time.monotonic()

    def end(self):
        self.is_over.set()
        self.join()

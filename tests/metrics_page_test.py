#!/usr/bin/env python3
"""Holds the tables of docs/metrics.md to the series of a run: names, types and labels, both ways.

usage: metrics_page_test.py THINWIRE STAGE_SERVER METRICS_MD
"""
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

EXPERIMENT = """
name: page
model: {name: llama, layers: 3, heads: 2, width: 16}
data: {name: shakespeare, context: 16, windows: 100, batch_size: 50, test_limit: 50}
pipeline: {cuts: [layers.0, layers.1], threads: 1, swap: disk}
tensor: {parts: 2}
compression: {activations: {codec: topk, ratio: 0.2, feedback: ef}, gradients: {codec: uniform, bits: 8}}
replicas: {count: 2, sync: local, every: 1, contributions: {codec: fp16}}
optimizer: {name: sgd, lr: 0.05}
epochs: 1000000
metrics: {error_every: 1}
device: cpu
"""
# Series of GPUs, of a stash, of open membership, and of tasks with measures of their own.
NOT_OF_THIS_RUN = {"thinwire_members", "thinwire_member_changes_total", "thinwire_repeated_steps_total",
                   "thinwire_members_lost_seconds_total",
                   "thinwire_stage_device_utilization_ratio", "thinwire_stash_raw_bytes_total",
                   "thinwire_stash_bytes_total", "thinwire_stash_relative_error", "thinwire_test_f1",
                   "thinwire_test_matthews", "thinwire_test_pearson", "thinwire_test_spearman"}
# Absent until there is something to show.
LATE = ("thinwire_test_loss", "thinwire_run_relative_error", "thinwire_last_checkpoint_timestamp_seconds")
PATIENCE_SECONDS = 60


def documented(page):
    """Section -> name -> (type, labels), of the page's tables."""
    sections, rows, labels = {}, None, None
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            rows = sections.setdefault(line[3:], {})
        row = re.match(r"\| `([a-z_]+)` \| (\w+) \| ([^|]*)\|", line)
        if row is None:
            continue
        if row[3].strip() != "likewise":  # as in the row above
            labels = frozenset(re.findall(r"`(\w+)`", row[3]))
        rows[row[1]] = (row[2], labels)
    return sections


def expected(sections, program):
    """What the page says that this program serves."""
    rows = {}
    for name, (kind, labels) in {**sections["Both"], **sections[program]}.items():
        of_run = program == "Coordinator" and name.startswith("thinwire_")
        rows[name] = (kind, labels | {"run"} if of_run or "stage" in labels else labels)
    return rows


def samples(text):
    """(name, labels, value) of every line of Prometheus' text."""
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, labels, value = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line).groups()
            yield name, dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or "")), float(value)


def served(text):
    """Name -> (type, labels) of Prometheus' text."""
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
    rows = {}
    for name, labels, _ in samples(text):
        family = name if name in kinds else re.sub(r"_(bucket|sum|count)$", "", name)
        rows.setdefault(family, (kinds[family], set()))[1].update(set(labels) - {"le"})
    return {name: (kind, frozenset(labels)) for name, (kind, labels) in rows.items()}


def get(address, path):
    """The body of an answer with status 200."""
    with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer:
        return answer.read().decode("utf-8")


def pages(folder):
    """Address -> text of every page of the run, once there is all that a run has to show."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        time.sleep(0.2)
        if not (folder / "targets.json").exists():
            continue
        targets = json.loads((folder / "targets.json").read_text(encoding="utf-8"))
        texts = {target["targets"][0]: get(target["targets"][0], "/metrics") for target in targets}
        coordinator = next(iter(texts.values()))
        if all(name + "{" in coordinator for name in LATE):
            return texts
    raise SystemExit(f"FAILED: not all of {', '.join(LATE)} within {PATIENCE_SECONDS} s")


def differences(want, got):
    """A line for each difference between two name -> (type, labels)."""
    for name in sorted(want.keys() | got.keys()):
        if name not in got:
            if name not in NOT_OF_THIS_RUN:
                yield f"{name} stands in metrics.md and is not served"
        elif name not in want:
            yield f"{name} is served and does not stand in metrics.md"
        elif want[name] != got[name]:
            yield f"{name} is {got[name]}, metrics.md says {want[name]}"


def wait_differences(text):
    """A line for each activity that is not the sum of the waits at the boundaries."""
    sums = {"send": 0.0, "receive": 0.0}
    activities = {}
    for name, labels, value in samples(text):
        if name == "thinwire_boundary_wait_seconds_total":
            sums[labels["end"]] += value
        elif name == "thinwire_stage_seconds_total":
            activities[labels["activity"]] = value
    for end, total in sums.items():
        if abs(total - activities[end + "_wait"]) > 1e-6 * (1 + total):
            yield f"waits to {end} are {total} s, activity {end}_wait {activities[end + '_wait']} s"


def check(folder, sections, banner):
    """A line for everything that is not as it should be."""
    for i, (address, text) in enumerate(pages(folder).items()):
        program = "Stage" if i else "Coordinator"
        faults = list(differences(expected(sections, program), served(text)))
        if i:
            faults += wait_differences(text)
        elif f"metrics at http://{address}/metrics" not in banner:
            faults.append(f"the first line is {banner!r}")
        runs = {labels["run"] for _, labels, _ in samples(text) if "run" in labels}
        if len(runs) != 1 or f"run {runs.pop()} in" not in banner:
            faults.append(f"`run` is not the one of the first line, {banner!r}")
        if get(address, "/healthz") != "ok\n":
            faults.append("/healthz is not ok")
        yield from (f"{program} at {address}: {fault}" for fault in faults)
    if i != 3:
        yield f"targets.json has {i} stages, want 3"


def main():
    """Runs an experiment and compares."""
    thinwire, stage_server, page = sys.argv[1:]
    with tempfile.TemporaryDirectory() as work:
        experiment = pathlib.Path(work) / "page.yaml"
        experiment.write_text(EXPERIMENT, encoding="utf-8")
        folder = pathlib.Path(work) / "run"
        command = [thinwire, "run", str(experiment), "--out", str(folder), "--stage_server", stage_server]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
            try:
                banner = run.stdout.readline()
                faults = list(check(folder, documented(pathlib.Path(page)), banner))
            finally:
                run.send_signal(signal.SIGINT)
                run.communicate()
    for fault in faults:
        print("FAILED:", fault)
    print(f"{len(faults)} failures")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

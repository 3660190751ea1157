#!/usr/bin/env python3
"""Steps of an adapter of a published model over slow lines, measured, beside those that `thinwire plan` promises. Wants root.

usage: adapter_over_links.py THINWIRE STAGE_SERVER MODEL [--rates MBIT,...] [--microbatches N,...] [--steps N]

The experiment is experiments/pretrained/smollm2 with the model of that folder (tests/parity/smollm2.sh), in the rows of its
sweep and in four stages of one thread. Each stage stands in a network namespace whose line has that rate in each
direction, and reads its own copy of the model; the trained one is fetched over lines without a limit. Of each run the median of
its steps counts, without the first two, and the bytes that crossed the cuts in a step. The plan has the compute of a run on this
machine without namespaces (--from), and this machine's cores.
"""
import argparse
import itertools
import json
import math
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import yaml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from network import Network, address, inside, slow  # noqa: E402

SUITE = ROOT / "experiments/pretrained/smollm2"
EXPERIMENT, SWEEP = SUITE / "experiment.yaml", SUITE / "sweep.yaml"
STAGES, PORT, SKIPPED_STEPS, PATIENCE_SECONDS = 4, 4700, 2, 600
NAMES = ["c", *(str(i) for i in range(STAGES))]


def settings(args, row, microbatches):
    """The --set words of a run with a row of the sweep."""
    words = [f"init={args.model}", f"data.vocabulary={args.model}", "init_at=stages", f"pipeline.stages={STAGES}",
             f"pipeline.microbatches={microbatches}", f"steps={args.steps}", "data.test_limit=4", "evaluation.compressed=false",
             "evaluation.uncompressed=false", "metrics.error_every=0",
             *(f"{field}={json.dumps(value)}" for field, value in args.rows[row].items())]
    return [part for word in words for part in ("--set", word)]


def steps_of(folder):
    """The lines of a run's steps so far."""
    file = folder / "metrics.jsonl"
    lines = file.read_text().split("\n")[:-1] if file.exists() else []
    return [line for line in map(json.loads, lines) if line["type"] == "step"]


def run(args, folder, place, *words):
    """Runs the experiment; once its steps are done, lines have no limit. Returns its steps' seconds."""
    shutil.rmtree(folder, ignore_errors=True)
    command = place(args.thinwire, "run", EXPERIMENT, "--quiet", "--out", folder, "--allow_other_build", *words)
    running = subprocess.Popen([str(word) for word in command])
    ended = threading.Event()

    def release():
        while len(steps_of(folder)) < args.steps:
            if ended.wait(0.2):
                return
        for name in NAMES:
            slow(name, None)

    watcher = threading.Thread(target=release)
    watcher.start()
    try:
        code = running.wait(timeout=PATIENCE_SECONDS)
    finally:
        running.kill()
        ended.set()
        watcher.join()
    if code != 0:
        sys.exit(f"a run ended with {code}, want 0")
    return [step["seconds"] for step in steps_of(folder)]


def over_links(args, rate, *choice):
    """The seconds of the steps over lines of that rate, and the bytes that crossed the cuts in a step."""
    for name in NAMES:
        slow(name, rate)
    servers = []
    try:
        for i in range(STAGES):
            words = [args.stage_server, "--listen", f"{address(i)}:{PORT}", "--insecure", "--data", args.model.parent]
            servers.append(subprocess.Popen(inside(i, *words), stderr=subprocess.DEVNULL))
        stages = ",".join(f"{address(i)}:{PORT}" for i in range(STAGES))
        folder = args.work / "links"
        seconds = run(args, folder, lambda *words: inside("c", *words), "--stages", stages, *settings(args, *choice))
        return seconds, bytes_of_a_step(folder, args.steps)
    finally:
        for server in servers:
            server.terminate()
            server.wait(timeout=60)


def bytes_of_a_step(folder, steps):
    """The mean bytes over all cuts and both directions."""
    summary = json.loads((folder / "summary.json").read_text())
    return sum(cut[way]["wire_bytes"] for cut in summary["boundaries"] for way in ("activations", "gradients")) / steps


def planned(args, here, rate, row, microbatches):
    """The step that the plan promises."""
    words = [args.thinwire, "plan", EXPERIMENT, *settings(args, row, microbatches), "--link_mbit", rate, "--cores", os.cpu_count(),
             "--from", here, "--microbatches", microbatches, "--schedule", "1f1b", "--format", "json"]
    report = json.loads(subprocess.run([str(w) for w in words], check=True, capture_output=True).stdout)
    return next(choice["step_seconds"] for choice in report["choices"] if choice["own"])


def main():
    """A line for each row of the sweep, number of microbatches and rate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("thinwire", type=pathlib.Path)
    parser.add_argument("stage_server", type=pathlib.Path)
    parser.add_argument("model", type=lambda folder: pathlib.Path(folder).resolve())
    parser.add_argument("--rates", type=lambda text: [float(rate) for rate in text.split(",")], default=[100, 20],
                        help="of every line in each direction, Mbit/s; inf: as fast as it goes")
    parser.add_argument("--microbatches", type=lambda text: [int(count) for count in text.split(",")], default=[1])
    parser.add_argument("--steps", type=int, default=8)
    args = parser.parse_args()
    args.rows = yaml.safe_load(SWEEP.read_text())["rows"]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # the namespaces are removed
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "tc"))):
        parser.error("wants root, ip and tc (Debian's iproute2)")
    print(f"{os.cpu_count()} cores, {time.strftime('%F')}, load {os.getloadavg()[0]:.1f}\n")
    print("| line | row | microbatches | MB a step | measured, s | planned, s | planned / measured |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as work, Network(NAMES):
        args.work = pathlib.Path(work)
        for choice in itertools.product(args.rows, args.microbatches):
            here = args.work / "here"
            run(args, here, lambda *words: list(words), "--stage_server", args.stage_server, *settings(args, *choice))
            for rate in args.rates:
                seconds, sent = over_links(args, rate, *choice)
                measured, promised = statistics.median(seconds[SKIPPED_STEPS:]), planned(args, here, rate, *choice)
                line = f"{rate:g} Mbit/s" if math.isfinite(rate) else "as fast as it goes"
                print(f"| {line} | {choice[0]} | {choice[1]} | {sent / 1e6:.2f} | {measured:.2f} | {promised:.2f} | "
                      f"{promised / measured:.2f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())

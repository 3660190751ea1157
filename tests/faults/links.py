#!/usr/bin/env python3
"""Cuts and slows the links of runs, and sets the clock, and compares how the runs end. Wants root.

usage: links.py THINWIRE STAGE_SERVER [--only REGEX] [--set_clock] [--out TABLE.md]

The coordinator and each stage server stand in a network namespace of their own, joined by a bridge.
While a run trains, one fault befalls it; it must end with the parameters, losses and counts of bytes
of a run that nothing befell, and go on from a checkpoint as often as the fault says: never on a link
that is merely slow, nor where membership is open, of which bytes are not compared. With --set_clock this machine's time of day is an hour off for a while, too.
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import typing

import kills

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from network import Network, address, call, connect, inside, slow  # noqa: E402

EXPERIMENT = """
name: links
model: {name: resnet8, width: 8}
data: {name: digits, batch_size: 50, limit: 1000, test_limit: 100}
pipeline: {cuts: [stem, layer1], threads: 1, microbatches: 2, deadline_seconds: 20}
compression: {activations: {codec: topk, ratio: 0.2, feedback: ef21}, gradients: {codec: topk, ratio: 0.2, feedback: ef21}}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
checkpoint: {every_steps: 5}
epochs: 60
"""
# A step of it takes a line of 1 Mbit/s longer than a stage waits for a run that stands still.
LARGE = """
name: large
model: {name: resnet8, width: 32}
data: {name: digits, batch_size: 400, limit: 400, test_limit: 100}
pipeline: {cuts: [stem, layer1], threads: 1, deadline_seconds: 40}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
checkpoint: {every_epochs: 50}
epochs: 100
"""
# Four carriers of two stages, whose others go on without a checkpoint.
OPEN = kills.EXPERIMENTS["open"].replace("epochs: 4", "epochs: 100")
PATIENCE_SECONDS = 400


class Case(typing.NamedTuple):
    """An experiment, a fault that befalls it, and the restarts that it may cost."""

    fault: typing.Callable
    allowed: list = [0]
    experiment: str = EXPERIMENT
    stages: int = 3
    carriers: int = 1
    spares: int = 0

    def is_open(self):
        return self.experiment == OPEN

    def servers(self):
        return self.stages * self.carriers + self.spares


class Cluster:
    """Stage servers and one run of an experiment."""

    def __init__(self, args, case, folder):
        self.args, self.folder = args, folder
        folder.mkdir()
        (folder / "experiment.yaml").write_text(case.experiment)
        self.servers = [self.serve(i) for i in range(case.servers())]
        stages = ",".join(f"{address(i)}:4700" for i in range(case.servers()))
        self.log = (folder / "run.log").open("w")
        self.run = subprocess.Popen(
            inside("c", args.thinwire, "run", folder / "experiment.yaml", "--stages", stages, "--stages_wait", "30",
                   "--carriers", case.carriers,
                   "--out", folder / "run", "--set", f"pipeline.stages={case.stages}"),
            stdout=self.log, stderr=self.log)

    def serve(self, i):
        """A stage server in its namespace."""
        log = (self.folder / f"stage{i}.log").open("a")
        return subprocess.Popen(inside(i, self.args.stage_server, "--listen", f"{address(i)}:4700", "--insecure"),
                                stdout=log, stderr=log)

    def has_trained(self, steps):
        """Waits until the run has done that many steps."""
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end and self.run.poll() is None:
            lines = self.folder / "run" / "metrics.jsonl"
            if lines.exists() and lines.read_text().count('"type":"step"') >= steps:
                return
            time.sleep(0.05)

    def finish(self):
        """The run's exit code; the servers are ended."""
        try:
            return self.run.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.run.send_signal(signal.SIGKILL)
            self.run.wait()
            return "hangs"
        finally:
            for server in self.servers:
                server.send_signal(signal.SIGCONT)
                server.kill()
                server.wait()
            self.log.close()


def slow_line(_, seconds=20):
    """Stage 1's line at 1 Mbit/s for a while."""
    slow("1", 1)
    time.sleep(seconds)
    slow("1", None)


def cut_line(_, seconds):
    """Stage 1's line unplugged for a while."""
    connect("1", False)
    time.sleep(seconds)
    connect("1", True)


def stopped(cluster):
    """Stage 1 stops for longer than it may be silent."""
    cluster.servers[1].send_signal(signal.SIGSTOP)
    time.sleep(20)
    cluster.servers[1].send_signal(signal.SIGCONT)


def set_clock(seconds):
    """Sets this machine's time of day forward, or back where negative."""
    time.clock_settime(time.CLOCK_REALTIME, time.time() + seconds)


def jump(cluster, seconds, fault=lambda _: time.sleep(10)):
    """The time of day jumps, a fault comes, by default nothing for some time, and it jumps back."""
    set_clock(seconds)
    try:
        time.sleep(1)
        fault(cluster)
    finally:
        set_clock(-seconds)


def cut_lines(cluster, count, seconds):
    """Lines of random servers unplugged one after the other."""
    chance = random.Random(count)
    for _ in range(count):
        name = str(chance.randrange(len(cluster.servers)))
        connect(name, False)
        time.sleep(seconds)
        connect(name, True)
        time.sleep(5)


FAULTS = {
    "a line of 1 Mbit/s for 20 s": Case(slow_line),
    "a line of 1 Mbit/s for 150 s, messages of 3.3 MB": Case(lambda c: slow_line(c, 150), experiment=LARGE),
    "a line unplugged for 3 s": Case(lambda c: cut_line(c, 3), [0, 1]),
    "a line unplugged for 40 s": Case(lambda c: cut_line(c, 40), [1, 2]),
    "a line unplugged for good, a spare is there": Case(lambda c: connect("1", False), [1], spares=1),
    "a stage stopped for 20 s": Case(stopped, [1]),
    "open, a line unplugged for 40 s": Case(lambda c: cut_line(c, 40), experiment=OPEN, stages=2, carriers=4),
    "open, a line unplugged for good": Case(lambda c: connect("1", False), experiment=OPEN, stages=2, carriers=4),
    "open, five lines unplugged for 20 s each": Case(lambda c: cut_lines(c, 5, 20), experiment=OPEN, stages=2, carriers=4),
}
CLOCK_FAULTS = {
    "the clock an hour ahead": Case(lambda c: jump(c, 3600)),
    "the clock an hour behind": Case(lambda c: jump(c, -3600)),
    "the clock an hour ahead, a stage stopped for 20 s": Case(lambda c: jump(c, 3600, stopped), [1]),
    "the clock an hour behind, a stage stopped for 20 s": Case(lambda c: jump(c, -3600, stopped), [1]),
}


def befall(args, case, folder):
    """A run with that fault: (exit code, seconds that it took, events that it survived, its folder)."""
    folder.mkdir()
    with Network(["c", *(str(i) for i in range(case.servers()))]):
        cluster = Cluster(args, case, folder / "cluster")
        begin = time.monotonic()
        cluster.has_trained(7)
        case.fault(cluster)
        code = cluster.finish()
    run = cluster.folder / "run"
    events = json.loads((run / "summary.json").read_text())["events"] if code == 0 else []
    return code, time.monotonic() - begin, events, run


def undisturbed(args, case, folder):
    """The result of a run that nothing befalls, in processes of its own."""
    folder.mkdir()
    (folder / "experiment.yaml").write_text(case.experiment)
    call(args.thinwire, "run", folder / "experiment.yaml", "--stage_server", args.stage_server, "--quiet",
         "--out", folder / "run")
    return kills.result(folder / "run", case.is_open())


def main():
    """Every fault once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("thinwire")
    parser.add_argument("stage_server")
    parser.add_argument("--only", default=".*", help="faults whose name matches (default: all)")
    parser.add_argument("--set_clock", action="store_true", help="also those that set this machine's time of day")
    parser.add_argument("--out", type=pathlib.Path, help="where the table is written, too")
    args = parser.parse_args()
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "tc"))):
        parser.error("wants root, ip and tc (Debian's iproute2)")
    lines = ["| fault | ended | went on from a checkpoint | seconds to go on | seconds in all |", "|---|---|---|---|---|"]
    faults = FAULTS | (CLOCK_FAULTS if args.set_clock else {})
    failures, wanted = 0, {}
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        for number, (name, case) in enumerate(faults.items()):
            if not re.search(args.only, name):
                continue
            if case.experiment not in wanted:
                wanted[case.experiment] = undisturbed(args, case, work / f"undisturbed{len(wanted)}")
            code, seconds, events, run = befall(args, case, work / f"{number}")
            restarts = [event for event in events if event["type"] == "restarted"]
            is_equal = code == 0 and kills.result(run, case.is_open()) == wanted[case.experiment]
            is_good = is_equal and len(restarts) in case.allowed
            failures += not is_good
            reasons = ", ".join(f"stage {event['stage']} {event['reason']}" for event in restarts)
            lost = [event for event in events if event["type"] in ("restarted", "went_on")]
            took = ", ".join(f"{event['seconds']:.1f}" for event in lost if event["seconds"] is not None)
            ended = "equal" if is_equal else f"DIFFERS, exit code {code}"
            lines.append(f"| {name} | {ended} | {len(restarts)} {reasons} | {took or '–'} | {seconds:.0f} |")
            print(lines[-1], flush=True)
            if not is_good:
                for log in sorted((run / "..").glob("*.log")):
                    print(f"--- {log.name}\n{log.read_text()[-1500:]}", flush=True)
    print("\n".join(lines))
    if args.out:
        args.out.write_text("\n".join(lines) + "\n")
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

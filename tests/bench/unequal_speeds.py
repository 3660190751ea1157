#!/usr/bin/env python3
"""Machines of unequal speed: how near a run comes to what they could do together.

usage: unequal_speeds.py THINWIRE STAGE_SERVER [--speeds 1,1,2,4] [--stages 1] [--cores 0.8] [--replicas 8]
                         [--seconds 40] [--leave 2] [--samples 64]

Starts a stage server for each speed, each in a control group that has its share of so many cores (cgroup v1 or v2; wants
root). With --stages 2 the first two are the first pipeline, and so on. Measured are the steps a second of a run on each
pipeline by itself, all at the same time, which add up to what they could do together: of each server, or with several
stages of the fastest of all, and so on. Then those of all with equal numbers of replicas; and of all with replicas dealt by speed, behind the first deal. Then so many of the last pipelines leave (0: none), and the
rest has 30 seconds until it is measured again. Each run has the losses of the first steps that the others have.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

EXPERIMENT = """
name: unequal
model: {{name: gpt2, layers: 2, heads: 2, width: 64}}
data: {{name: shakespeare, context: 64, windows: 12000, batch_size: {batch}, test_limit: 4}}
pipeline: {{cuts: [h.0], stages: {stages}, threads: 1, microbatches: 4}}
replicas: {{count: {replicas}, contributions: {{codec: ecsq, rate: 2}}, average: {{codec: uniform, bits: 8}}}}
membership: {{open: {is_open}}}
optimizer: {{name: adamw, lr: 0.001}}
checkpoint: {{every_epochs: 0}}
evaluation: {{every: 1000000}}
epochs: 1000000
"""
PERIOD_MICROSECONDS, LEAST_QUOTA_MICROSECONDS = 5000, 1000  # the kernel takes no smaller quota
PATIENCE_SECONDS = 120


def within(seconds, is_so, what):
    """Waits until something is so; fails otherwise."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, f"it did not come: {what}"
        time.sleep(0.05)


class Group:
    """A control group that has part of a core."""

    def __init__(self, name, share):
        first = pathlib.Path("/sys/fs/cgroup/cpu")
        self.path = (first if first.exists() else pathlib.Path("/sys/fs/cgroup")) / name
        self.path.mkdir(exist_ok=True)
        quota = int(share * PERIOD_MICROSECONDS)
        assert quota >= LEAST_QUOTA_MICROSECONDS, (
            f"{share:.3f} of a core, want at least {LEAST_QUOTA_MICROSECONDS / PERIOD_MICROSECONDS}: more --cores")
        if first.exists():
            (self.path / "cpu.cfs_period_us").write_text(str(PERIOD_MICROSECONDS))
            (self.path / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (self.path / "cpu.max").write_text(f"{quota} {PERIOD_MICROSECONDS}")

    def enter(self):
        (self.path / "cgroup.procs").write_text(str(os.getpid()))


class Server:
    """A stage server with so much of a core."""

    def __init__(self, args, work, number, share):
        self.log, self.group, self.share = work / f"server{number}.log", Group(f"unequal{number}", share), share
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([args.stage_server, "--listen", "127.0.0.1:0", "--metrics_listen", "", "--data", "/"],
                                            stderr=log, preexec_fn=self.group.enter)
        within(PATIENCE_SECONDS, lambda: "serving on " in self.log.read_text(), "the server")
        self.address = re.search(r"serving on ([^,]*),", self.log.read_text())[1]

    def end(self):
        self.process.kill()
        self.process.wait()
        self.group.path.rmdir()


class Run:
    """A run on some of the servers."""

    def __init__(self, args, work, name, servers, is_open):
        self.out, log = work / name, work / f"{name}.log"
        (work / f"{name}.yaml").write_text(EXPERIMENT.format(
            replicas=args.replicas, stages=args.stages, batch=args.samples * args.replicas, is_open="true" if is_open else "false"))
        with log.open("wb") as to:
            self.process = subprocess.Popen(
                [args.thinwire, "run", str(work / f"{name}.yaml"), "--out", str(self.out), "--carriers", str(len(servers) // args.stages),
                 "--stages", ",".join(server.address for server in servers)], stdout=to, stderr=to)
        self.log = log
        within(PATIENCE_SECONDS, lambda: len(self.losses()) > 3, f"steps of {name}")

    def losses(self):
        path = self.out / "metrics.jsonl"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [entry["loss"] for entry in map(json.loads, lines) if entry["type"] == "step"]

    def rate(self, seconds):
        """Steps a second from now on, over whole steps."""
        begin = len(self.losses())
        within(PATIENCE_SECONDS, lambda: len(self.losses()) > begin, "a step")
        start, first = time.monotonic(), len(self.losses())
        time.sleep(seconds)
        last = len(self.losses())
        within(PATIENCE_SECONDS, lambda: len(self.losses()) > last, "a step")
        return (len(self.losses()) - first) / (time.monotonic() - start)

    def end(self):
        """Interrupts it; returns the losses and the events."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE_SECONDS)
        return self.losses(), json.loads((self.out / "summary.json").read_text())["events"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("thinwire")
    parser.add_argument("stage_server")
    parser.add_argument("--speeds", default="1,1,2,4")
    parser.add_argument("--stages", type=int, default=1)
    parser.add_argument("--cores", type=float, default=0.8)
    parser.add_argument("--replicas", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--leave", type=int, default=2)
    parser.add_argument("--samples", type=int, default=64, help="of each replica (%(default)s)")
    args = parser.parse_args()
    speeds = [float(speed) for speed in args.speeds.split(",")]
    servers, runs = [], []
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)

        def rates_alone():
            """The rates of runs on one pipeline each, of servers of like speed, side by side."""
            ordered = servers if args.stages == 1 else sorted(servers, key=lambda server: -server.share)
            pipelines = [ordered[first:first + args.stages] for first in range(0, len(ordered), args.stages)]
            alone = [Run(args, work, f"alone{number}", pipeline, False) for number, pipeline in enumerate(pipelines)]
            runs.extend(alone)
            with concurrent.futures.ThreadPoolExecutor() as threads:
                return list(threads.map(lambda run: run.rate(args.seconds), alone))

        def rate_of_equals():
            """The rate with equal numbers of replicas."""
            runs.append(Run(args, work, "equal", servers, False))
            return runs[-1].rate(args.seconds)

        def dealt_by_speed(name):
            """The rate behind the first deal by speed."""
            run = Run(args, work, name, servers, True)
            runs.append(run)
            within(PATIENCE_SECONDS, lambda: "unequal speed" in run.log.read_text(), "a deal by speed")
            return run.rate(args.seconds)
        try:
            for number, speed in enumerate(speeds):
                servers.append(Server(args, work, number, speed / sum(speeds) * args.cores))
            alone = rates_alone()
            losses = [run.end()[0] for run in runs]
            print("steps a second of each pipeline by itself: " + ", ".join(f"{rate:.3f}" for rate in alone), flush=True)
            equal = rate_of_equals()
            losses.append(runs[-1].end()[0])
            dealt = dealt_by_speed("dealt")
            run, before = runs[-1], len(runs[-1].losses())
            for server in servers[len(servers) - args.leave * args.stages:]:
                server.process.terminate()
            time.sleep(30 if args.leave else 0)
            left = run.rate(args.seconds) if args.leave else 0
            all_losses, events = run.end()
            losses.append(all_losses)
            shortest = min(len(some) for some in losses)
            assert all(some[:shortest] == losses[0][:shortest] for some in losses), "losses differ"
            rest = sum(alone[:len(alone) - args.leave])
            for event in events:
                print(f"step {event['step']}: {event['type']}, {event['carriers']} pipelines, replicas {event['deal']}")
            print(f"together they could do {sum(alone):.3f} steps a second; equal numbers of replicas: {equal:.3f} "
                  f"({100 * equal / sum(alone):.1f} %), by speed: {dealt:.3f} ({100 * dealt / sum(alone):.1f} %)")
            if args.leave:
                print(f"without the last {args.leave}, which left behind step {before}: {rest:.3f}; {left:.3f} "
                      f"({100 * left / rest:.1f} %)")
            print(f"the first {shortest} losses of all runs: equal")
        finally:
            for run in runs:
                if run.process.poll() is None:
                    run.process.kill()
                    run.process.wait()
            for server in servers:
                server.end()


if __name__ == "__main__":
    sys.exit(main())

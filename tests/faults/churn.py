#!/usr/bin/env python3
"""Machines that go and come back all the time: how many steps a run does, of those that the living machines could do.

usage: churn.py THINWIRE STAGE_SERVER [--machines 8] [--every 29] [--minutes 30] [--back 10] [--stop 20] [--seed 1]
                [--kinds kill,stop,term] [--width 16]

Starts so many stage servers, all with --join, and a run of pipelines of two stages on them, as many as there are pairs.
Every so many seconds something befalls a machine: kill -9, SIGTERM, each followed by a new start after `--back` seconds,
or SIGSTOP for `--stop` seconds (`--kinds`). After the minutes the run is interrupted, which leaves its model of some step. Then the
same steps are trained by one pipeline that nothing befalls: parameters and losses must be equal, to the bit.

What the living machines could do is measured first: steps a second of one pipeline, of two, and so on, for a while each.
At every moment they could have done as many as the pipelines that they make then. Prints both and their ratio. It does the same with
the rates that the run had itself, in all the minutes, between its changes: machines that are shared get faster and slower.
"""
import argparse
import collections
import json
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from kills import tensors

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from watched_run import Steps, layouts_of, steps_of  # noqa: E402

EXPERIMENT = """
name: churn
model: {{name: resnet8, width: {width}}}
data: {{name: digits, batch_size: {batch}, test_limit: 60}}
pipeline: {{cuts: [stem, layer2], stages: 2, threads: 1, microbatches: 2}}
compression: {{activations: {{codec: uniform, bits: 8}}, gradients: {{codec: uniform, bits: 8}}}}
replicas: {{count: {replicas}, contributions: {{codec: ecsq, rate: 2}}, average: {{codec: uniform, bits: 8}}}}
membership: {{open: true}}
optimizer: {{name: sgd, lr: 0.02, momentum: 0.9}}
checkpoint: {{every_epochs: 0}}
evaluation: {{every: 1000000}}
"""
MEASURED_SECONDS = 20
PATIENCE_SECONDS = 60


def within(seconds, is_so):
    """Waits until something is so; fails otherwise."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)


class Machine:
    """A stage server at an address of its own, with the times at which it was there."""

    def __init__(self, args, work, number):
        self.args, self.log = args, work / f"server{number}.log"
        self.address, self.process, self.join = "127.0.0.1:0", None, None
        self.spans = []  # [from, to] in which it lived; to is None now

    def start(self):
        """Returns once it serves."""
        command = [self.args.stage_server, "--listen", self.address, "--metrics_listen", "", "--data", "/"]
        command += ["--join", self.join] if self.join else []
        begin = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stderr=log)

        def serves():
            found = re.search(r"serving on ([^,]*),", self.log.read_bytes()[begin:].decode())
            if found:
                self.address = found[1]
            return found
        within(PATIENCE_SECONDS, serves)
        self.spans.append([time.monotonic(), None])

    def is_there(self):
        return bool(self.spans) and self.spans[-1][1] is None

    def lost(self):
        self.spans[-1][1] = time.monotonic()

    def lived(self, moment):
        return any(begin <= moment and (end is None or moment < end) for begin, end in self.spans)


RUNS = []  # all that were started


def train(args, work, name, arguments):
    """Starts a run."""
    with (work / f"{name}.log").open("ab") as log:
        RUNS.append(subprocess.Popen([args.thinwire, "run", str(work / "churn.yaml"), "--out", str(work / name),
                                      "--overwrite", *arguments], stdout=log, stderr=log))
    return RUNS[-1]


def end_runs():
    """Ends those that still go on; what they have started ends with them."""
    for run in RUNS:
        if run.poll() is None:
            run.kill()
            run.wait()


def measure(args, work, machines, pipelines):
    """Steps a second of so many pipelines that nothing befalls."""
    name = f"measured{pipelines}"
    stages = ",".join(machine.address for machine in machines[:2 * pipelines])
    run = train(args, work, name, ["--set", "steps=100000000", "--stages", stages, "--carriers", str(pipelines)])
    within(PATIENCE_SECONDS, lambda: len(steps_of(work / name)) > 20)
    begin, before = time.monotonic(), len(steps_of(work / name))
    time.sleep(MEASURED_SECONDS)
    rate = (len(steps_of(work / name)) - before) / (time.monotonic() - begin)
    run.send_signal(signal.SIGINT)
    run.wait(PATIENCE_SECONDS)
    return rate


def befall(args, machine, kind):
    """Something happens to a machine; returns when it is to be undone."""
    machine.lost()
    if kind == "stop":
        machine.process.send_signal(signal.SIGSTOP)
        return time.monotonic() + args.stop
    machine.process.send_signal(signal.SIGKILL if kind == "kill" else signal.SIGTERM)
    return time.monotonic() + args.back


def undo(machine, kind):
    """Brings it back."""
    if kind == "stop":
        machine.process.send_signal(signal.SIGCONT)
        machine.spans.append([time.monotonic(), None])
        return
    machine.process.wait(PATIENCE_SECONDS)
    machine.start()


def churn(args, machines):
    """Lets things happen until the minutes are over; returns their number by kind."""
    chance = random.Random(args.seed)
    counts, pending = dict.fromkeys(args.kinds.split(","), 0), []
    end = time.monotonic() + 60 * args.minutes
    fault = time.monotonic() + args.every
    while time.monotonic() < end:
        time.sleep(0.05)
        for entry in [entry for entry in pending if entry[0] <= time.monotonic()]:
            pending.remove(entry)
            undo(entry[1], entry[2])
        if time.monotonic() < fault:
            continue
        fault += args.every
        there = [machine for machine in machines if machine.is_there()]
        if len(there) < 3:
            continue
        machine, kind = chance.choice(there), chance.choice(sorted(counts))
        counts[kind] += 1
        print(f"{kind} {machine.address}", flush=True)
        pending.append((befall(args, machine, kind), machine, kind))
    for _, machine, kind in pending:
        if kind == "stop":
            undo(machine, kind)
    return counts


def rates_meanwhile(came, layouts, pipelines):
    """Steps a second of each number of pipelines while a run went on with so many, without the steps before which it was laid out."""
    steps, seconds = collections.Counter(), collections.Counter()
    laid_out = dict(layouts)
    for step in sorted(came)[:-1]:
        if step in laid_out:
            pipelines = sum(replicas != 0 for replicas in laid_out[step])
        else:
            steps[pipelines] += 1
            seconds[pipelines] += came[step + 1] - came[step]
    return {pipelines: steps[pipelines] / seconds[pipelines] for pipelines in steps}


def possible(machines, rates, begin, end):
    """Steps that the living machines could have done."""
    steps, moment, slice_seconds = 0.0, begin, 0.01
    while moment < end:
        pipelines = min(sum(machine.lived(moment) for machine in machines) // 2, max(rates))
        steps += slice_seconds * rates[pipelines] if pipelines > 0 else 0
        moment += slice_seconds
    return steps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("thinwire")
    parser.add_argument("stage_server")
    parser.add_argument("--machines", type=int, default=8)
    parser.add_argument("--every", type=float, default=29)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--back", type=float, default=10)
    parser.add_argument("--stop", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default="kill,stop,term")
    parser.add_argument("--width", type=int, default=16, help="of the ResNet; from 96 on a stage's state is large")
    parser.add_argument("--keep", type=pathlib.Path, help="new folder for the runs and their logs")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        replicas = args.machines // 2
        (work / "churn.yaml").write_text(EXPERIMENT.format(width=args.width, replicas=replicas, batch=12 * replicas))
        machines = [Machine(args, work, number) for number in range(args.machines)]
        try:
            for machine in machines:
                machine.start()
            rates = {pipelines: measure(args, work, machines, pipelines) for pipelines in range(1, replicas + 1)}
            print("steps a second of 1, 2, … pipelines: " + ", ".join(f"{rate:.1f}" for rate in rates.values()), flush=True)
            # A server leases itself out to one run at a time, so what joins waits until this one listens.
            stages = ",".join(machine.address for machine in machines)
            run = train(args, work, "run", ["--set", "steps=100000000", "--stages", stages, "--carriers", str(replicas),
                                            "--listen", "127.0.0.1:0"])
            steps, log = Steps(work / "run"), work / "run.log"
            within(PATIENCE_SECONDS, lambda: "stage_server --join" in log.read_text() and len(steps_of(work / "run")) > 20)
            for machine in machines:
                machine.join = re.search(r"stage_server --join (\S+)", log.read_text())[1]
            begin, before = time.monotonic(), len(steps_of(work / "run"))
            counts = churn(args, machines)
            end, done = time.monotonic(), len(steps_of(work / "run")) - before
            steps.end()
            run.send_signal(signal.SIGINT)
            code = run.wait(PATIENCE_SECONDS)
        finally:
            end_runs()
            for machine in machines:
                if machine.process is not None:
                    machine.process.kill()
        assert code == 130, log.read_text()[-3000:]
        losses = steps_of(work / "run")
        try:
            reference = train(args, work, "alone",
                              ["--set", f"steps={len(losses)}", "--stage_server", args.stage_server])
            assert reference.wait() == 0, (work / "alone.log").read_text()
        finally:
            end_runs()
        are_equal = {"losses": steps_of(work / "alone") == losses, "parameters": tensors(work / "run") == tensors(work / "alone")}
        summary = json.loads((work / "run" / "summary.json").read_text())
        could = possible(machines, rates, begin, end)
        print(f"{end - begin:.0f} s, {sum(counts.values())} faults ({counts}): {done} steps of {could:.0f} that the living "
              f"machines could do: {100 * done / could:.1f} %")
        meanwhile = {**rates, **rates_meanwhile(steps.came, layouts_of(log), replicas)}
        could = possible(machines, meanwhile, begin, end)
        print("steps a second of 1, 2, … pipelines meanwhile: " + ", ".join(f"{meanwhile[one]:.1f}" for one in sorted(meanwhile)))
        print(f"of {could:.0f} that they could do at these rates: {100 * done / could:.1f} %")
        print(f"members: {summary['members']}")
        print(f"checkpoints read: {sum(e['type'] == 'restarted' for e in summary['events'])}")
        if args.keep:
            shutil.copytree(work, args.keep)
        print(f"after {len(losses)} steps: " + ", ".join(f"{what} {'equal' if are else 'DIFFER'}" for what, are in are_equal.items()))
        return 0 if all(are_equal.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

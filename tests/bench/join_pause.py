#!/usr/bin/env python3
"""How long a run pauses when empty machines join it. Wants root.

usage: join_pause.py THINWIRE STAGE_SERVER [--rate 1000] [--coordinator_rate 1000] [--width 64] [--layers 4] [--joins 2] [--set FIELD=VALUE]

Coordinator and stage servers stand in network namespaces of their own, behind lines of so many Mbit/s in each direction. A GPT-2 with
AdamW, two stages and as many replicas as there will be pipelines, trains on one pipeline. Then two servers more come with --join,
and again. Where the state is large they follow first, while they fetch it, and carry replicas behind another pause. Prints for each
pause the seconds from the record of the last step before it to that of the first one behind it, without a step's own time; for how
long servers followed, and what a step took meanwhile; and the time in which one line carries the state of a stage.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from network import Network, address, inside, slow  # noqa: E402
from watched_run import Steps, layouts_of, steps_of  # noqa: E402

EXPERIMENT = """
name: joins
model: {{name: gpt2, layers: {layers}, heads: 4, width: {width}}}
data: {{name: shakespeare, context: 64, batch_size: {batch}}}
pipeline: {{stages: 2, cuts: auto, threads: 1}}
replicas: {{count: {replicas}, contributions: {{codec: ecsq, rate: 1}}, average: {{codec: uniform, bits: 2, scope: sample}}}}
membership: {{open: true}}
optimizer: {{name: adamw, lr: 0.001}}
checkpoint: {{every_epochs: 0}}
evaluation: {{every: 1000000}}
epochs: 1000
"""
STATE_BYTES = 12  # of a parameter: itself and AdamW's means
PORT, JOIN_PORT = 4700, 4600
PATIENCE_SECONDS = 300
STEPS_BETWEEN = 10


def are_all_at_work(log, pipelines):
    """Whether so many pipelines carry replicas."""
    layouts = layouts_of(log)
    return bool(layouts) and len(layouts[-1][1]) == pipelines and 0 not in layouts[-1][1]


def report(layouts, steps):
    """A line for each pause."""
    came, seconds = steps.came, steps.seconds
    for i, (step, replicas) in enumerate(layouts):
        pause = came[step + 1] - came[step] - seconds[step + 1]
        line = f"{len(replicas)} pipelines of {', '.join(map(str, replicas))} replicas: paused {pause:.2f} s"
        if 0 in replicas:
            until = layouts[i + 1][0]
            line += (f"; followed for {came[until] - came[step]:.1f} s and {until - step} steps, of {seconds_of(seconds, step, until):.2f} s,"
                     f" before it of {seconds_of(seconds, max(0, step - STEPS_BETWEEN), step):.2f} s")
        print(line)


def seconds_of(seconds, begin, end):
    """What a step behind `begin` up to `end` took in the middle."""
    return statistics.median(seconds[step] for step in range(begin + 1, end + 1))


def within(process, is_so):
    """Waits until something is so; fails otherwise."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < end and process.poll() is None, "it did not come"
        time.sleep(0.1)


def serve(args, folder, i, *words):
    """A stage server in its namespace."""
    log = (folder / f"stage{i}.log").open("w")
    command = [args.stage_server, "--listen", f"{address(i)}:{PORT}", "--insecure", "--data", "/", *words]
    return subprocess.Popen(inside(i, *command), stdout=log, stderr=log)


def main():
    """A line for each join."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("thinwire", type=pathlib.Path)
    parser.add_argument("stage_server", type=pathlib.Path)
    parser.add_argument("--rate", type=float, default=1000, help="of every server's line in each direction, Mbit/s")
    parser.add_argument("--coordinator_rate", type=float, default=1000, help="of the coordinator's line")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--joins", type=int, default=2)
    parser.add_argument("--set", action="append", default=[], help="a field of the experiment; may stand often")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # the namespaces are removed
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "tc"))):
        parser.error("wants root, ip and tc (Debian's iproute2)")
    args.thinwire, args.stage_server = args.thinwire.resolve(), args.stage_server.resolve()
    pipelines = 1 + args.joins
    names = ["c", *(str(i) for i in range(2 * pipelines))]
    processes = []
    with tempfile.TemporaryDirectory() as work, Network(names):
        work = pathlib.Path(work)
        for name in names:
            slow(name, args.coordinator_rate if name == "c" else args.rate)
        (work / "joins.yaml").write_text(EXPERIMENT.format(layers=args.layers, width=args.width, batch=2 * pipelines, replicas=pipelines))
        try:
            processes += [serve(args, work, i) for i in range(2)]
            words = [args.thinwire, "run", work / "joins.yaml", "--stages", ",".join(f"{address(i)}:{PORT}" for i in range(2)),
                     "--listen", f"{address('c')}:{JOIN_PORT}", "--insecure", "--out", work / "run"]
            words += [word for setting in args.set for word in ("--set", setting)]
            with (work / "run.log").open("w") as log:
                run = subprocess.Popen(inside("c", *words), stdout=log, stderr=log)
            processes.append(run)
            steps = Steps(work / "run")
            within(run, lambda: len(steps_of(work / "run")) >= STEPS_BETWEEN)
            for join in range(args.joins):
                for i in (2 * join + 2, 2 * join + 3):
                    processes.append(serve(args, work, i, "--join", f"{address('c')}:{JOIN_PORT}"))
                within(run, lambda join=join: are_all_at_work(work / "run.log", join + 2))
                before = len(steps_of(work / "run"))
                within(run, lambda before=before: len(steps_of(work / "run")) >= before + STEPS_BETWEEN)
            run.send_signal(signal.SIGINT)
            run.wait(60)
            summary = json.loads((work / "run/summary.json").read_text())
            steps.end()
        except AssertionError:
            print((work / "run.log").read_text()[-3000:])
            raise
        finally:
            for process in processes:
                process.kill()
                process.wait()
        megabytes = summary["parameters"] * STATE_BYTES / 2e6
        print(f"{summary['parameters'] / 1e6:.1f} million parameters, {megabytes:.0f} MB of state a stage, lines of {args.rate:g} Mbit/s, "
              f"the coordinator's of {args.coordinator_rate:g}: {megabytes * 8 / args.rate:.2f} s on a line")
        report(layouts_of(work / "run.log"), steps)
        print(f"load {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

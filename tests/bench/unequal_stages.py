#!/usr/bin/env python3
"""Stages on different numbers of machines, beside whole pipelines on as many machines.

usage: unequal_stages.py THINWIRE STAGE_SERVER [--carriers 4,2] [--replicas 4] [--cores 1.8] [--seconds 30] [--samples 16]

Starts as many stage servers as the numbers add up to, each in a control group with its share of so many cores (wants root). A GPT-2 of
as many blocks trains on pipelines of two servers, cut in the middle: one fewer than there can be, and all. Then blocks and machines are
divided as --carriers says. Prints steps a second, and that losses are equal.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

from unequal_speeds import PATIENCE_SECONDS, Run, Server, within

EXPERIMENT = """
name: stages
model: {{name: gpt2, layers: {layers}, heads: 2, width: 64}}
data: {{name: shakespeare, context: 64, windows: 12000, batch_size: {batch}, test_limit: 4}}
pipeline: {{cuts: [{cut}], stages: 2, threads: 1, microbatches: 4}}
replicas: {{count: {replicas}, contributions: {{codec: ecsq, rate: 2}}, average: {{codec: uniform, bits: 8}}}}
optimizer: {{name: adamw, lr: 0.001}}
checkpoint: {{every_epochs: 0}}
evaluation: {{every: 1000000}}
epochs: 1000000
"""


class RunOn(Run):
    """A run on servers that are named as --carriers wants them."""

    def __init__(self, args, work, name, cut, carriers, servers):
        self.out, self.log = work / name, work / f"{name}.log"
        (work / f"{name}.yaml").write_text(EXPERIMENT.format(
            cut=cut, layers=args.machines, replicas=args.replicas, batch=args.replicas * args.samples))
        with self.log.open("wb") as to:
            self.process = subprocess.Popen(
                [args.thinwire, "run", str(work / f"{name}.yaml"), "--out", str(self.out), "--carriers", carriers,
                 "--stages", ",".join(server.address for server in servers)], stdout=to, stderr=to)
        within(PATIENCE_SECONDS, lambda: len(self.losses()) > 3, f"steps of {name}")


def measure(args, work, name, cut, carriers, servers):
    """The steps a second and the losses of one run."""
    run = RunOn(args, work, name, cut, carriers, servers)
    try:
        rate = run.rate(args.seconds)
        losses, _ = run.end()
        return rate, losses
    finally:
        if run.process.poll() is None:
            run.process.kill()
            run.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("thinwire")
    parser.add_argument("stage_server")
    parser.add_argument("--carriers", default="4,2")
    parser.add_argument("--replicas", type=int, default=4)
    parser.add_argument("--cores", type=float, default=1.8)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--samples", type=int, default=16, help="of each replica (%(default)s)")
    args = parser.parse_args()
    of_stages = [int(number) for number in args.carriers.split(",")]
    args.machines = sum(of_stages)
    servers, losses = [], []
    most = args.machines // 2
    layouts = {f"{count} pipelines": (f"h.{most - 1}", str(count), 2 * count) for count in (most - 1, most)}
    layouts[f"stages on {args.carriers} machines"] = (f"h.{of_stages[0] - 1}", args.carriers, args.machines)
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        try:
            for number in range(args.machines):
                servers.append(Server(args, work, number, args.cores / args.machines))
            for number, (name, (cut, carriers, machines)) in enumerate(layouts.items()):
                rate, some = measure(args, work, f"run{number}", cut, carriers, servers[:machines])
                losses.append(some)
                print(f"{name}, {machines} machines: {rate:.3f} steps a second", flush=True)
        finally:
            for server in servers:
                server.end()
    shortest = min(map(len, losses))
    assert all(some[:shortest] == losses[0][:shortest] for some in losses), "losses differ"
    print(f"the first {shortest} losses of all runs: equal")


if __name__ == "__main__":
    sys.exit(main())

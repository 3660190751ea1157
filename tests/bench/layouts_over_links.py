#!/usr/bin/env python3
"""Layouts of replicas, stages and parts over slow links: each measured beside what `thinwire plan --machines` promises. Wants root.

usage: layouts_over_links.py THINWIRE STAGE_SERVER [--machines N] [--rate MBIT] [--every N,...] [--codec CODEC]... [--steps N]
       [--parts P,...] [--most N] [--experiment FILE [--batch N] [--carriers N]]

Each machine, of one thread, stands in a network namespace of its own, whose line has that rate in each direction. The plan takes
the compute and the codecs of runs on this machine, whose carriers keep all cores busy, as the machines will. A table for each number
of steps between exchanges, as what is learned depends on it: all layouts of that number with one of the codecs, in the plan's order.
Of steps the mean counts, from the first whole round of local steps on. The last column is how much longer the plan's first layout
takes than this one: at most 1.05 is wanted.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from replicas_over_links import EXPERIMENT, Network, entry, mean_step, over_links, run, slow

SHORT = [word for field in ("data.test_limit=10", "epochs=1", "pipeline.threads=1", "evaluation.compressed=false",
                            "evaluation.uncompressed=false", "metrics.error_every=0", "checkpoint.every_epochs=0")
         for word in ("--set", field)]

# With the scope and the rounding, which files have by default otherwise than the plan's texts.
CODECS = ["ecsq(rate=2, scope=tensor, rounding=nearest)", "uniform(bits=8, scope=tensor, rounding=nearest)"]


def rows(args):
    """The plan's layouts with one of the codecs, best first. Each codec's speed is that of a run here with it."""
    found = []
    for codec in args.codec:
        here = args.work / "here"
        fields = [f"compression.{direction}={entry(codec)}" for direction in ("activations", "gradients")]
        if "\ntensor:" in args.experiment.read_text():
            fields += [f"compression.sums.{direction}={entry(codec)}" for direction in ("activations", "gradients")]
        if args.carriers > 1:
            fields += [f"replicas.{direction}={entry(codec)}" for direction in ("contributions", "average")]
        run(args, lambda *words: list(words), here, args.experiment, "--stage_server", args.stage_server, "--carriers", args.carriers, *SHORT,
            *(word for field in [*fields, f"data.windows={30 * args.batch}"] for word in ("--set", field)))
        words = [args.thinwire, "plan", args.experiment, "--machines", args.machines, "--link_mbit", args.rate, "--cores", os.cpu_count(),
                 "--from", here, "--format", "json", "--codec", codec, *(("--parts", args.parts) if args.parts else ())]
        report = json.loads(subprocess.run([str(w) for w in words], check=True, capture_output=True).stdout)
        found += [row for row in report["layouts"] if row["codec"] == codec]
    return sorted(found, key=lambda row: row["step_seconds"])


def measured(args, row):
    """The mean step of a layout."""
    rounds = row["every"] or 1
    file = args.work / "layout.yaml"
    file.write_text(row["experiment"])
    steps = max(2, -(-args.steps // rounds)) * rounds
    seconds = over_links(args, file, args.machines, "--carriers", row["replicas"] * row["parts"], *SHORT, "--set", f"data.windows={steps * args.batch}")
    return mean_step(seconds, rounds)


def table(args, layouts):
    """A row for each layout."""
    print("| layout | microbatches | codec | measured, ms | planned, ms | planned / measured | the first / this |\n|---|---|---|---|---|---|---|",
          flush=True)
    first = None
    for row in layouts:
        seconds = measured(args, row)
        first = first or seconds
        print(f"| {row['replicas']} x {row['stages']} x {row['parts']} | {row['microbatches']} | {row['codec']} | {1e3 * seconds:.1f} | "
              f"{1e3 * row['step_seconds']:.1f} | {row['step_seconds'] / seconds:.2f} | {first / seconds:.2f} |", flush=True)


def main():
    """A table for each number of steps between exchanges."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("thinwire", type=pathlib.Path)
    parser.add_argument("stage_server", type=pathlib.Path)
    parser.add_argument("--machines", type=int, default=8)
    parser.add_argument("--rate", type=float, default=100, help="of every line in each direction, Mbit/s")
    parser.add_argument("--every", type=lambda text: [int(n) for n in text.split(",")], default=[1, 64])
    parser.add_argument("--codec", action="append", help="of cuts and exchanges, as the plan has them; may stand often")
    parser.add_argument("--parts", help="numbers of tensor-parallel parts, as `thinwire plan --parts` has them")
    parser.add_argument("--most", type=int, default=1000, help="layouts to measure in a table, from the first on")
    parser.add_argument("--steps", type=int, default=24, help="at least; of local steps two rounds or more")
    parser.add_argument("--experiment", type=pathlib.Path, default=EXPERIMENT)
    parser.add_argument("--carriers", type=int, default=4, help="of the run on this machine, at most the experiment's replicas")
    parser.add_argument("--batch", type=int, default=48, help="the experiment's batch size")
    args = parser.parse_args()
    args.codec, args.rtt_ms = args.codec or CODECS, 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # the namespaces are removed
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "tc"))):
        parser.error("wants root, ip and tc (Debian's iproute2)")
    args.thinwire, args.stage_server = args.thinwire.resolve(), args.stage_server.resolve()
    names = ["c", *(str(i) for i in range(args.machines))]
    with tempfile.TemporaryDirectory() as work, Network(names):
        args.work = pathlib.Path(work)
        for name in names:
            slow(name, args.rate)
        layouts = rows(args)
        for every in args.every:
            print(f"\n{args.machines} machines, lines of {args.rate:g} Mbit/s, an exchange every {every} steps, {os.cpu_count()} cores, "
                  f"{time.strftime('%F')}, load {os.getloadavg()[0]:.1f}\n")
            table(args, [row for row in layouts if row["every"] in (every, None)][:args.most])
    return 0


if __name__ == "__main__":
    sys.exit(main())

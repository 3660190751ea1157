#!/usr/bin/env python3
"""The largest Llama that trains in a machine's memory: with all kept, with recompute, and with the planner, whose blocks may also swap.

usage: largest_llama.py THINWIRE STAGE_SERVER [--memory GIB] [--sequences N] [--context N] [--layers N] [--check]

One stage, AdamW, one microbatch. Widths are multiples of 64, the largest whose plan takes 85 % of the memory, as `memory: auto` has
it. With --check each trains two steps in a control group of that memory (cgroup v1 or v2; wants root), beyond which the kernel
ends it; the most that the group took is in the table.
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

SHARE = 0.85  # as memory: auto has it
STEP = 64
MOST = 128 * STEP
EXPERIMENT = """
name: largest
model: {{name: llama, layers: {layers}, heads: {heads}, width: {width}, tied: false}}
data: {{name: shakespeare, context: {context}, batch_size: {sequences}, windows: {windows}, test_limit: 1}}
pipeline: {{cuts: none, microbatches: 1, threads: {threads}}}
optimizer: {{name: adamw, lr: 0.0001}}
evaluation: {{every: 0}}
checkpoint: {{every_epochs: 0}}
steps: 2
"""
RECOMPUTE, SWAP = {"pipeline.recompute": "blocks"}, {"pipeline.swap": "disk"}
WAYS = {"all kept": {}, "recompute: blocks": RECOMPUTE, "planner, swap: disk": SWAP,
        "the same, moments: int8": {**SWAP, "optimizer.moments": "int8"}}


class Group:
    """A control group of so many bytes."""

    def __init__(self, memory):
        first = pathlib.Path("/sys/fs/cgroup/memory")
        self.is_first = first.exists()
        self.path = (first if self.is_first else pathlib.Path("/sys/fs/cgroup")) / f"thinwire-{os.getpid()}"
        self.memory = memory

    def __enter__(self):
        self.path.mkdir()
        (self.path / ("memory.limit_in_bytes" if self.is_first else "memory.max")).write_text(str(self.memory))
        return self

    def __exit__(self, *_):
        self.path.rmdir()

    def join(self):
        """Moves this process into the group."""
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def most(self):
        """Bytes that it took at most."""
        return int((self.path / ("memory.max_usage_in_bytes" if self.is_first else "memory.peak")).read_text())


def is_planned(way):
    """Whether the planner decides what blocks do."""
    return "pipeline.swap" in WAYS[way]


def experiment(args, width):
    """The file of a width."""
    path = args.work / f"{width}.yaml"
    path.write_text(EXPERIMENT.format(layers=args.layers, heads=width // 64, width=width, context=args.context, sequences=args.sequences,
                                      windows=2 * args.sequences, threads=os.cpu_count()))
    return path


def plan(args, way, width):
    """The plan's report, or nothing if it does not fit."""
    planned = is_planned(way)
    words = [args.thinwire, "plan", experiment(args, width), "--gflops", "50", "--codec_gbps", "1", "--format", "json",
             *(part for field, value in WAYS[way].items() for part in ("--set", f"{field}={value}")),
             *(["--memory", f"{int(SHARE * args.bytes)}B"] if planned else [])]
    ran = subprocess.run([str(word) for word in words], check=False, capture_output=True, text=True)
    if ran.returncode != 0:
        if planned and "needs at least" in ran.stderr:
            return None
        sys.exit(ran.stderr)
    report = json.loads(ran.stdout)
    return report if int(report["stages"][0]["memory_bytes"]) <= SHARE * args.bytes else None


def largest(args, way):
    """The largest width that fits, and its plan."""
    fits, too_wide, report = 0, MOST, None
    while too_wide - fits > STEP:
        width = (fits + too_wide) // 2 // STEP * STEP
        found = plan(args, way, width)
        if found:
            fits, report = width, found
        else:
            too_wide = width
    return fits, report


def checked(args, way, width):
    """Trains in the group: seconds of the second step, or none if the kernel ended it, and the most that the group took."""
    fields = {**WAYS[way], **({"pipeline.memory": f"{int(SHARE * args.bytes)}B"} if is_planned(way) else {})}
    with Group(args.bytes) as group:
        folder, socket = args.work / "run", args.work / "stage.sock"
        server = subprocess.Popen([str(args.stage_server), "--listen", f"unix:{socket}", "--insecure", "--swap_dir", str(args.swap_dir)],
                                  preexec_fn=group.join, stderr=subprocess.DEVNULL)
        try:
            words = [args.thinwire, "run", experiment(args, width), "--stages", f"unix:{socket}", "--out", folder, "--overwrite", "--quiet",
                     *(part for field, value in fields.items() for part in ("--set", f"{field}={value}"))]
            ran = subprocess.run([str(word) for word in words], check=False, capture_output=True, text=True)
        finally:
            server.terminate()
            server.wait(timeout=60)
        if server.returncode == -signal.SIGKILL:
            return None, group.most()
        if ran.returncode != 0:
            sys.exit(ran.stderr)
        lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
        return [line["seconds"] for line in lines if line["type"] == "step"][-1], group.most()


def main():
    """A row for each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("thinwire", type=pathlib.Path)
    parser.add_argument("stage_server", type=pathlib.Path)
    parser.add_argument("--memory", type=float, default=24, help="of the machine, GiB")
    parser.add_argument("--sequences", type=int, default=16)
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--swap_dir", type=pathlib.Path, default=pathlib.Path("/var/tmp"), help="on a disk")
    parser.add_argument("--check", action="store_true", help="train two steps of each")
    args = parser.parse_args()
    args.bytes = int(args.memory * 2**30)
    print(f"| {args.layers} blocks, {args.sequences} x {args.context} tokens, {args.memory:g} GiB | width | parameters | of all kept | "
          "planned GB | took GB | s a step |\n|---|---|---|---|---|---|---|")
    first = None
    with tempfile.TemporaryDirectory() as work:
        args.work = pathlib.Path(work)
        for way in WAYS:
            width, report = largest(args, way)
            if not report:
                sys.exit(f"{way}: not even a width of {STEP} fits into {args.memory:g} GiB")
            stage = report["stages"][0]
            first = first or int(stage["parameters"])
            seconds, most = checked(args, way, width) if args.check else (None, None)
            took = f"{most / 1e9:.2f}" if most else ""
            step = f"{seconds:.1f}" if seconds else "ended by the kernel" if args.check else ""
            print(f"| {way} | {width} | {int(stage['parameters']) / 1e6:.1f} M | {int(stage['parameters']) / first:.2f} | "
                  f"{int(stage['memory_bytes']) / 1e9:.2f} | {took} | {step} |", flush=True)


main()

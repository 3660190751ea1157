#!/usr/bin/env python3
"""What a stage takes whose tensors wait on disk: seconds a step and memory, beside the same with all kept and recomputed.

usage: swap.py THINWIRE STAGE_SERVER [--steps N] [--rounds N] [--folder DIR]

The stage has three blocks of GPT-2 124M with 16 microbatches of a sequence of 512 in flight, as `gpipe` has them. Ways take
turns in each round; a step is the median of all but each run's first, memory the most that the process had resident.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

MICROBATCHES = 16
EXPERIMENT = """
model: {{name: gpt2, layers: 3, heads: 12, width: 768}}
data: {{name: shakespeare, tokens: characters, context: 512, batch_size: {batch}, windows: {windows}, test_limit: 1}}
pipeline: {{cuts: none, microbatches: {batch}, schedule: gpipe}}
optimizer: {{name: adamw, lr: 0.0001}}
evaluation: {{every: 0}}
epochs: 1
"""
WAYS = {"all kept": [], "swap: disk": ["pipeline.swap=disk"], "recompute: blocks": ["pipeline.recompute=blocks"]}


def most_resident(address_space):
    """Bytes that a process has had resident at most; 0 once it is gone."""
    try:
        for line in (address_space / "status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    except (FileNotFoundError, ProcessLookupError):
        pass
    return 0


def children(pid):
    """The processes that a process has started."""
    try:
        return [pathlib.Path("/proc", child)
                for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
                for child in (task / "children").read_text(encoding="utf-8").split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def measured(args, path, overrides, folder):
    """Seconds of all steps but the first, the most bytes resident, losses, and what the summary says of swap."""
    command = [args.thinwire, "run", str(path), "--stage_server", args.stage_server, "--out", str(folder), "--quiet"]
    for override in overrides:
        command += ["--set", override]
    most = 0
    with subprocess.Popen(command) as run:
        while run.poll() is None:
            most = max([most] + [most_resident(child) for child in children(run.pid)])
            time.sleep(0.05)
    if run.returncode != 0:
        sys.exit(f"swap.py: {command} failed")
    entries = list(map(json.loads, (folder / "metrics.jsonl").open(encoding="utf-8")))
    steps = [entry for entry in entries if entry["type"] == "step"]
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    return [step["seconds"] for step in steps[1:]], most, [step["loss"] for step in steps], summary["swap"]


def main():
    """A table with a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("thinwire")
    parser.add_argument("stage_server")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--folder", default=None, help="where runs, and so swap files, lie (default: the temporary one)")
    args = parser.parse_args()
    seconds, memory, losses, swaps = {}, {}, {}, {}
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        path = pathlib.Path(folder, "stage.yaml")
        path.write_text(EXPERIMENT.format(batch=MICROBATCHES, windows=MICROBATCHES * args.steps), encoding="utf-8")
        for turn in range(args.rounds):
            for number, (way, overrides) in enumerate(WAYS.items()):
                took, most, losses[way], swaps[way] = measured(args, path, overrides,
                                                               pathlib.Path(folder, f"{turn}-{number}"))
                seconds.setdefault(way, []).extend(took)
                memory[way] = max(memory.get(way, 0), most)
    print("| way | s a step | of plain | MB resident | of plain | GB out | s waited |\n|---|---|---|---|---|---|---|")
    plain = next(iter(WAYS))
    for way, took in seconds.items():
        step, first, swap = statistics.median(took), statistics.median(seconds[plain]), swaps[way] or {}
        print(f"| {way} | {step:.2f} | {step / first:.2f} | {memory[way] / 1e6:.0f} | {memory[way] / memory[plain]:.2f} | "
              f"{int(swap.get('bytes_out', 0)) / 1e9:.1f} | {swap.get('wait_seconds', 0):.1f} |")
    if any(loss != losses[plain] for loss in losses.values()):
        sys.exit("swap.py: losses differ")


if __name__ == "__main__":
    main()

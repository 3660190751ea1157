#!/usr/bin/env python3
"""What checkpoints cost a run: its time with many of them against its time with none, in pairs.

usage: checkpoint_cost.py THINWIRE STAGE_SERVER [--pairs N]

Each pair trains the same steps twice, once with a checkpoint every few steps. The difference over the
number of checkpoints is what one takes, copy, fetch and writing to the disk included; a run that writes
one a minute loses that share of a minute.
"""
import argparse
import datetime
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

EXPERIMENTS = {
    "ResNet-18, width 64, SGD, TopK with EF21 in both directions": ("""
model: {name: resnet18, width: 64}
data: {name: digits, batch_size: 50, limit: 1400, test_limit: 10}
pipeline: {cuts: [layer1, layer2, layer3], microbatches: 2}
compression: {activations: {codec: topk, ratio: 0.1, feedback: ef21}, gradients: {codec: topk, ratio: 0.1, feedback: ef21}}
optimizer: {name: sgd, lr: 0.01, momentum: 0.9}
evaluation: {every: 0}
epochs: 1
""", 28, 7),
    "GPT-2, 6 layers of 384, AdamW": ("""
model: {name: gpt2, width: 384, layers: 6, heads: 6}
data: {name: shakespeare, tokens: characters, batch_size: 8, context: 128, windows: 224, test_limit: 1}
pipeline: {cuts: [h.1, h.3], microbatches: 2}
optimizer: {name: adamw, lr: 0.001}
evaluation: {every: 0}
epochs: 1
""", 28, 7),
}


def seconds(args, text, every, folder):
    """From the first step's end to the last's; and the bytes of the newest checkpoint."""
    path = folder.with_suffix(".yaml")
    path.write_text(text + f"checkpoint: {{every_steps: {every}, every_epochs: 0}}\n")
    subprocess.run([args.thinwire, "run", str(path), "--stage_server", args.stage_server, "--out", str(folder),
                    "--quiet", "--overwrite"], check=True)
    times = [datetime.datetime.fromisoformat(entry["time"].replace("Z", "+00:00"))
             for entry in map(json.loads, (folder / "metrics.jsonl").open()) if entry["type"] == "step"]
    newest = max((folder / "checkpoints").glob("step-*"), key=lambda p: int(p.name[5:]), default=None)
    size = sum(f.stat().st_size for f in newest.iterdir()) if newest else 0
    return (times[-1] - times[0]).total_seconds(), len(times), size


def main():
    """A table of medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("thinwire")
    parser.add_argument("stage_server")
    parser.add_argument("--pairs", type=int, default=3)
    args = parser.parse_args()
    print("| run | checkpoint | ms a step without | s a checkpoint takes | of a minute |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as work:
        for name, (text, steps, every) in EXPERIMENTS.items():
            costs, plain = [], []
            for _ in range(args.pairs):
                without, count, _ = seconds(args, text, 0, pathlib.Path(work) / "without")
                with_them, _, size = seconds(args, text, every, pathlib.Path(work) / "with")
                assert count == steps, count
                # The last one is written behind the last step.
                costs.append((with_them - without) / (steps // every - 1))
                plain.append(without / (count - 1))
            cost = statistics.median(costs)
            print(f"| {name} | {size / 1e6:.1f} MB | {1e3 * statistics.median(plain):.0f} | {cost:.2f} "
                  f"({min(costs):.2f} to {max(costs):.2f}) | {cost / 60:.2%} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

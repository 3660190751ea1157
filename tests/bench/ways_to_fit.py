#!/usr/bin/env python3
"""What a step takes, by plans, if a model has to fit into a share of its memory: our planner beside simpler rules.

usage: ways_to_fit.py THINWIRE [--only REGEX]

`pipeline.memory` chooses for each block among keeping, running again and swapping, and in a last row among stashing in four
bits, too. Beside it all blocks run again, or all are swapped, or a rule as KARMA's decides (arXiv 2008.11421). That swaps the
most blocks whose copies hide behind the computation, spread evenly. Others run again, the earliest first, until it fits; more
is not swapped. Each number is searched by plans. Blocks that keep 4 KiB or less are left as they are. All figures are plans
with the speeds of a machine that the table names, so they are the same on any machine. A cell is seconds of a step / seconds
with all kept.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

TEXT = "{{name: shakespeare, tokens: characters, context: {context}, batch_size: 16, windows: 64, test_limit: 1}}"
MODELS = {
    "GPT-2 124M, one stage": ("{name: gpt2, layers: 12, heads: 12, width: 768}", TEXT.format(context=512),
                              "cuts: none, microbatches: 16, schedule: gpipe"),
    "GPT-2 124M, four stages": ("{name: gpt2, layers: 12, heads: 12, width: 768}", TEXT.format(context=512),
                                "cuts: [h.2, h.5, h.8], microbatches: 16, schedule: gpipe"),
    "ResNet-34, one stage": ("{name: resnet34}", "{name: cifar10, batch_size: 256}",
                             "cuts: none, microbatches: 4, schedule: gpipe"),
    "ResNet-34, three stages": ("{name: resnet34}", "{name: cifar10, batch_size: 256}",
                                "cuts: [layer2, layer3], microbatches: 4, schedule: gpipe"),
}
EXPERIMENT = """
model: {model}
data: {data}
pipeline: {{{pipeline}, swap: disk{keep}}}
optimizer: {{name: adamw, lr: 0.0001}}
evaluation: {{every: 0}}
epochs: 1
"""
STASH = ", stash: {codec: uniform, bits: 4, scope: group, group: 64, rounding: stochastic}"
# Names, GFLOP/s of computation, GB/s that swaps share, GB/s of codecs.
MACHINES = {"20 TFLOP/s, 50 GB/s": (20000, 50, 200), "20 TFLOP/s, 12 GB/s": (20000, 12, 200),
            "50 GFLOP/s, 0.5 GB/s": (50, 0.5, 1)}
SHARES = (0.6, 0.4)
HIDDEN = 1 + 1e-6  # A step that takes no longer than this many times that with all kept.


class Planner:
    """Plans of one model on one machine."""

    def __init__(self, thinwire, folder, model, machine):
        self.thinwire, self.path, self.model = thinwire, pathlib.Path(folder, "experiment.yaml"), MODELS[model]
        self.gflops, self.swap, self.codecs = MACHINES[machine]
        self.blocks = [(block["block"], block["stage"], block["kept_bytes"])
                       for block in self.called(["--memory", "1000GiB"])["memory"]["blocks"]]
        self.again = {block for block, _, _ in self.blocks if self.called([], {block: "recompute"})}
        self.plain = self.plan({})

    def called(self, options, keep=None, more=""):
        """What `thinwire plan` says of blocks that do as told; None: they do not fit, or one cannot do that."""
        does = ", ".join(f"{block}: {way}" for block, way in (keep or {}).items())
        model, data, pipeline = self.model
        self.path.write_text(EXPERIMENT.format(model=model, data=data, pipeline=pipeline + more,
                                               keep=f", keep: {{{does}}}" if does else ""), encoding="utf-8")
        done = subprocess.run([self.thinwire, "plan", str(self.path), "--format", "json", "--gflops", str(self.gflops),
                               "--swap_gbps", str(self.swap), "--codec_gbps", str(self.codecs), *options],
                              check=False, capture_output=True, text=True)
        if "needs at least" in done.stderr or "keeps no more than its input" in done.stderr:
            return None
        if done.returncode != 0:
            sys.exit(f"ways_to_fit.py: {done.stderr}")
        return json.loads(done.stdout)

    def plan(self, keep):
        """Seconds of a step without messages, and bytes of each stage, if blocks that are not named keep all."""
        told = self.called([], {**{block: "keep" for block, _, _ in self.blocks}, **keep})
        return told["steps"][-1]["seconds"], [stage["memory_bytes"] for stage in told["stages"]]

    def all_do(self, way, share):
        """The step if all blocks that keep anything do the same; None: a stage does not fit."""
        seconds, taken = self.plan({block: way for block, _, kept in self.blocks
                                    if kept > 4096 and (way == "swap" or block in self.again)})
        return seconds if max(taken) <= share * max(self.plain[1]) else None

    def ours(self, share, more=""):
        """The step that the planner finds; None: it finds none."""
        told = self.called(["--memory", str(int(share * max(self.plain[1])))], more=more)
        return told and told["memory"]["step_seconds"]

    def karma(self, share):
        """The step by KARMA's rule, stage by stage."""
        limit, keep = share * max(self.plain[1]), {}
        for stage, taken in enumerate(self.plain[1]):
            names = [block for block, of, kept in self.blocks if of == stage and kept > 4096]
            if taken <= limit:
                continue
            chosen = []
            for swapped in range(1, len(names) + 1):
                chosen = spread(names, swapped)
                seconds, taken = self.plan(dict.fromkeys(chosen, "swap"))
                if seconds > HIDDEN * self.plain[0]:
                    chosen = spread(names, swapped - 1)
                    break
                if taken[stage] <= limit:
                    break
            mine = dict.fromkeys(chosen, "swap")
            for block in names:
                if self.plan(mine)[1][stage] <= limit:
                    break
                if block in self.again:
                    mine.setdefault(block, "recompute")
            keep.update(mine)
        seconds, taken = self.plan(keep)
        return seconds if max(taken) <= limit else None


def spread(names, number):
    """So many of the names, at equal distances."""
    return [names[index * len(names) // number] for index in range(number)]


def main():
    """A table for each machine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("thinwire")
    parser.add_argument("--only", default="", help="a regular expression of models and machines")
    args = parser.parse_args()
    print("| model | machine | memory | all again | all swapped | KARMA's rule | ours | with a stash |\n|" + "---|" * 8)
    with tempfile.TemporaryDirectory() as folder:
        for model in MODELS:
            for machine in MACHINES:
                if not re.search(args.only, f"{model} {machine}"):
                    continue
                planner = Planner(args.thinwire, folder, model, machine)
                for share in SHARES:
                    steps = [planner.all_do("recompute", share), planner.all_do("swap", share), planner.karma(share),
                             planner.ours(share), planner.ours(share, STASH)]
                    cells = [f"{step / planner.plain[0]:.3f}" if step else "does not fit" for step in steps]
                    print(f"| {model} | {machine} | {share:.0%} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()

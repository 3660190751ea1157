#!/usr/bin/env python3
"""The most memory that stages take in training, beside what `thinwire plan` says: of a ResNet-18, a GPT-2 and a Llama,
with each schedule. A stage measures itself behind each pass, from the moment before it builds its layers
(thinwire_stage_memory_peak_bytes). Prints a line for each stage; fails if the most that any case takes is further from its plan
than --most-percent.

On a GPU, or on an emulated one: --cuda_plugin PATH --set device=cuda, with smaller batches by --set.

usage: memory_vs_plan.py THINWIRE [--stage-server PATH] [--cuda_plugin PATH] [--only WORD] [--set PATH=VALUE ...]
                         [--most-percent 10]"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "gpu"))
from memory import peaks  # noqa: E402

COMMON = """
pipeline: {{cuts: {cuts}, microbatches: 8, threads: 1, {schedule}}}
optimizer: {optimizer}
steps: 3
evaluation: {{every: 0}}
checkpoint: {{every_epochs: 0}}
"""
ADAMW = "{name: adamw, lr: 0.001}"
MODELS = {
    "resnet18": ("model: {name: resnet18, width: 64}\ndata: {name: digits, batch_size: 512, augment: none, test_limit: 10}",
                 "[layer1, layer2, layer3]", "{name: sgd, lr: 0.01, momentum: 0.9}"),
    "gpt2": ("model: {name: gpt2, layers: 4, heads: 4, width: 256, dropout: 0, tied: false}\n"
             "data: {name: shakespeare, context: 128, batch_size: 192, test_limit: 1}", "[h.0, h.1, h.2]", ADAMW),
    "llama": ("model: {name: llama, layers: 4, heads: 4, width: 320, tied: false}\n"
              "data: {name: shakespeare, context: 128, batch_size: 192, test_limit: 1}", "[layers.0, layers.1, layers.2]", ADAMW),
}
SCHEDULES = {
    "1f1b": "schedule: 1f1b, stages: 2",
    "gpipe": "schedule: gpipe, stages: 2",
    "zero_bubble": "schedule: zero_bubble, stages: 2",
    "interleaved": "schedule: interleaved, stages: 2",
    "terapipe": "schedule: terapipe, slices: 4, stages: 2",
}


def planned(thinwire, experiment, overrides):
    """Bytes that each stage takes by the plan."""
    command = [thinwire, "plan", experiment, "--gflops", "50", "--codec_gbps", "1", "--format", "json", *overrides]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return [int(stage["memory_bytes"]) + int(stage["state_bytes"]) for stage in report["stages"]]


def measured(thinwire, experiment, folder, options):
    """The most bytes that each stage said it took."""
    command = [thinwire, "run", experiment, "--out", folder, *options]
    log = folder.with_suffix(".log")
    with log.open("w") as stderr:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr)
    most = {}
    while process.poll() is None:
        for stage, taken in peaks(folder).items():
            most[stage] = max(taken, most.get(stage, 0))
        time.sleep(0.05)
    if process.returncode != 0:
        sys.exit(f"{experiment.name}: {log.read_text()}")
    return most


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("thinwire", type=pathlib.Path)
    parser.add_argument("--stage-server", type=pathlib.Path)
    parser.add_argument("--cuda_plugin", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--most-percent", type=float, default=10)
    arguments = parser.parse_args()
    overrides = [part for assignment in arguments.set for part in ("--set", assignment)]
    options = [*overrides]
    for option, value in (("--stage_server", arguments.stage_server), ("--cuda_plugin", arguments.cuda_plugin)):
        options += [option, value] if value else []
    worst = 0
    print(f"{'model':9} {'schedule':12} {'stage':5} {'planned MB':>10} {'taken MB':>10} {'taken / planned':>15}")
    with tempfile.TemporaryDirectory() as work:
        for model, (text, cuts, optimizer) in MODELS.items():
            for schedule, fields in SCHEDULES.items():
                name = f"{model}-{schedule}"
                if arguments.only not in name or name == "resnet18-terapipe":
                    continue
                experiment = pathlib.Path(work) / f"{name}.yaml"
                experiment.write_text(f"name: {name}\n{text}" + COMMON.format(cuts=cuts, schedule=fields, optimizer=optimizer))
                plan = planned(arguments.thinwire, experiment, overrides)
                taken = measured(arguments.thinwire, experiment, pathlib.Path(work) / name, options)
                if set(taken) != set(range(len(plan))):
                    sys.exit(f"{name}: pages of stages {sorted(taken)} were read, want all {len(plan)}")
                for stage, wanted in enumerate(plan):
                    got = taken[stage]
                    print(f"{model:9} {schedule:12} {stage:5} {wanted / 1e6:10.1f} {got / 1e6:10.1f} {got / wanted:15.2f}", flush=True)
                worst = max(worst, abs(max(taken.values()) / max(plan) - 1))
    print(f"furthest from its plan: {100 * worst:.0f} %")
    if 100 * worst > arguments.most_percent:
        sys.exit(1)


main()

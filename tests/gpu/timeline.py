#!/usr/bin/env python3
"""Where the time of a training step goes on a GPU, by what gpu_timeline.cc wrote of step_bench: its
kernels by time, and how long nothing ran.

  THINWIRE_TIMELINE=t.txt CUDA_INJECTION64_PATH=$PWD/libgpu_timeline.so step_bench --device cuda ...
  tests/gpu/timeline.py t.txt
"""
import collections
import json
import os
import re
import sys

from results import figure
from session import Failed, Skipped

# A step's last kernel but those of its backward pass and update.
OF_EACH_STEP = "AddUpLosses"
SHOWN = 15  # kernels
CLOCKS = 200  # microseconds by which the GPU's clock may seem to differ from the host's

Record = collections.namedtuple("Record", "start end name")  # nanoseconds
# Milliseconds: from step to step, in which something ran; name -> (calls, milliseconds).
Step = collections.namedtuple("Step", "total busy kernels")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        words = [line.rstrip("\n").split(" ", 5) for line in file]
    return sorted(Record(int(w[1]), int(w[2]), w[5]) for w in words
                  if len(w) == 6 and w[0] in ("K", "C", "S"))


def last_step(records):
    """Of the one before the last, which nothing behind the steps has a share in."""
    marks = [i for i, record in enumerate(records) if OF_EACH_STEP in record.name]
    if len(marks) < 3:
        raise ValueError(f"{len(marks)} steps, want 3 or more")
    begin, end = marks[-3], marks[-2]
    kernels, busy, last = {}, 0, records[begin].end
    for record in records[begin + 1:end + 1]:
        calls, spent = kernels.get(record.name, (0, 0))
        kernels[record.name] = (calls + 1, spent + (record.end - record.start) / 1e6)
        busy += max(0, record.end - max(record.start, last))
        last = max(last, record.end)
    return Step((last - records[begin].end) / 1e6, busy / 1e6, kernels)


def table(step):
    kernels = sorted(step.kernels.items(), key=lambda kernel: -kernel[1][1])[:SHOWN]
    lines = ["| kernel | calls | ms | of the step |", "|---" * 4 + "|"]
    for name, (calls, spent) in kernels:
        lines.append(f"| `{name}` | {calls} | {spent:.3f} | {100 * spent / step.total:.1f} % |")
    return "\n".join(lines)


def timeline(models):
    """A part: `models` are names and options of step_bench."""

    def run(session, _):
        library = session.program("libgpu_timeline.so")
        figures, tables, numbers = [], [], {}
        for name, options in models.items():
            path = os.path.join(session.work, f"timeline-{name}.txt")
            session.run([session.program("step_bench"), "--device", "cuda:0", "--cuda_plugin",
                         session.plugin, "--precision", "bf16", "--steps", 10, "--warmup", 8,
                         *options], env={"CUDA_INJECTION64_PATH": library,
                                         "THINWIRE_TIMELINE": path})
            if not os.path.exists(path):
                raise Skipped("CUPTI is not found")
            try:
                step = last_step(read(path))
            except ValueError as error:
                raise Failed(f"{name}: {error}") from error
            figures += [figure(f"{name}: a step", step.total, "ms"),
                        figure(f"{name}: the GPU is idle", 100 * (1 - step.busy / step.total), "%")]
            tables += [f"{name}, a step of {step.total:.2f} ms:", "", table(step), ""]
            numbers[name] = step._asdict()
        return {"figures": figures, "tables": "\n".join(tables), "numbers": numbers}

    return run


def check_slices(events, steps):
    """Of a trace: that each of `steps` has kernels, and each kernel its step around it. Returns how
    many kernels a step has."""
    around = {event["args"]["step"]: event for event in events
              if event.get("ph") == "X" and event["name"] == "step"}
    kernels = [event for event in events if event.get("ph") == "X" and event["cat"] == "kernel"]
    for step in steps:
        if not any(kernel["args"]["step"] == step for kernel in kernels):
            raise Failed(f"step {step} has no kernel, the trace has {len(kernels)}")
    for kernel in kernels:
        step = around[kernel["args"]["step"]]
        begin, end = kernel["ts"] - step["ts"], kernel["ts"] + kernel["dur"] - step["ts"]
        if begin < -CLOCKS or end > step["dur"] + CLOCKS:
            raise Failed(f"{kernel['name']} ran from {begin:.0f} to {end:.0f} us of step "
                         f"{step['args']['step']}, which took {step['dur']:.0f} us")
    return len(kernels) / len(steps)


def traced(experiment, settings):
    """A part: what `thinwire run --trace` has of the GPU, in its third step and the fourth."""

    def run(session, _):
        sizes = {"model.width": 4} if session.rehearse else {}
        done = session.train("trace", experiment, {**settings, **sizes}, flags=["--trace", "steps=3..4"])
        with open(os.path.join(done.folder, "logs", "stage-0.log"), encoding="utf-8") as file:
            why = re.search(r"the trace (goes without|lacks) the GPU's work: .*", file.read())
        if why:
            raise Skipped(why.group())
        with open(os.path.join(done.folder, "trace.json"), encoding="utf-8") as file:
            kernels = check_slices(json.load(file)["traceEvents"], (3, 4))
        said = session.run([session.program("thinwire"), "trace", done.folder, "--format", "json"])
        gpu = json.loads(said.out)["stages"][0]["gpu"]
        return {"figures": [figure("kernels a step", kernels),
                            figure("the GPU is idle", 100 * gpu["idle_ratio"], "%")],
                "numbers": gpu}

    return run


if __name__ == "__main__":
    print(table(last_step(read(sys.argv[1]))))

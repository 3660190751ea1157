#!/usr/bin/env python3
"""One stage on a GPU beside PyTorch on the same GPU: forward, backward and update of a CIFAR ResNet-18
or a GPT-2.

Runs of ours, of eager PyTorch and of torch.compile alternate, so that what else the machine does
meets all of them; PyTorch runs channels-last, with cudnn.benchmark and fused SGD. Ratios are medians
over rounds of PyTorch's step to ours: above 1 we are faster. Prints a table; --json keeps every run.

  tests/gpu/vs_pytorch.py --bench DIR/step_bench --cuda_plugin DIR/libthinwire_cuda.so
  tests/gpu/vs_pytorch.py --batches 100 --precisions bf16 --rounds 5 --json vs_pytorch.json
  tests/gpu/vs_pytorch.py --batches 8 --precisions bf16 --model gpt2 --layers 12 --heads 12 \
    --width 768 --context 1024 --vocabulary 50257
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TORCH_STEP = os.path.join(HERE, "..", "bench", "torch_step.py")
# Further options of torch_step.py. The last two record CUDA graphs, as we do; the last one first
# times many kernels for each layer, for minutes.
YARDSTICKS = {"eager": [], "compile": ["--compile", "default"],
              "compile, graphs": ["--compile", "reduce-overhead"],
              "compile, autotuned": ["--compile", "max-autotune"]}


OF_GPT2 = ("layers", "heads", "context", "vocabulary")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default="bazel-bin/tests/step_bench")
    parser.add_argument("--cuda_plugin", default="", help="default: where step_bench looks")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--model", choices=["resnet18", "gpt2"], default="resnet18")
    parser.add_argument("--width", type=int, default=64)
    for name in OF_GPT2:
        parser.add_argument("--" + name, type=int, help="gpt2; default: as step_bench's")
    parser.add_argument("--batches", type=int, nargs="+", default=[100, 512])
    parser.add_argument("--precisions", nargs="+", default=["bf16", "tf32"])
    parser.add_argument("--yardsticks", nargs="+", choices=YARDSTICKS,
                        default=["eager", "compile", "compile, graphs"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=240, help="no new round after this time")
    parser.add_argument("--json", help="file that gets every run")
    return parser.parse_args()


def measure(command):
    """The line of JSON that a benchmark prints, or what it failed with: the first line that it said
    and the last, of which one is the reason."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        lines = done.stdout.strip().splitlines() or ["no reason given"]
        reason = " / ".join(dict.fromkeys([lines[0], lines[-1]]))
        return {"failed": f"exit {done.returncode}: {reason}"}
    try:
        return json.loads([line for line in done.stdout.splitlines() if line.startswith("{")][-1])
    except (IndexError, ValueError):
        return {"failed": "printed no line of JSON"}


def one_round(args, batch, precision, turn):
    """Each name with what was measured, ours first in the first round; then in an order that
    changes with `turn`, so that coming first helps nobody."""
    common = ["--model", args.model, "--width", str(args.width), "--batch", str(batch),
              "--precision", precision, "--device", args.device, "--steps", str(args.steps),
              "--warmup", "15"]
    for name in OF_GPT2:
        if getattr(args, name) is not None:
            common += ["--" + name, str(getattr(args, name))]
    plugin = ["--cuda_plugin", args.cuda_plugin] if args.cuda_plugin else []
    commands = {"thinwire": [args.bench, *common, *plugin],
                "thinwire, deterministic": [args.bench, *common, *plugin, "--deterministic"]}
    for name in args.yardsticks:
        commands[name] = [sys.executable, "-B", TORCH_STEP, *common, *YARDSTICKS[name]]
    names = list(commands)
    first = 2 * turn % len(names)  # past both of ours
    for name in names[first:] + names[:first]:
        yield name, measure(commands[name])


def write(path, groups):
    """After every measurement: who waits may lose patience. Never half a file."""
    if path:
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump([one for rounds in groups.values() for one in rounds], file, indent=1)
        os.replace(path + ".new", path)


def speed(rounds, name, unit):
    steps = [r["runs"][name][unit + "_per_second"] for r in rounds
             if "failed" not in r["runs"][name]]
    return statistics.median(steps) if steps else None


def ratio(rounds, name):
    pairs = [(r["runs"][name], r["runs"]["thinwire"]) for r in rounds]
    ratios = sorted(theirs["step_seconds"] / ours["step_seconds"] for theirs, ours in pairs
                    if "failed" not in theirs and "failed" not in ours)
    if not ratios:
        return "failed"
    return f"**{statistics.median(ratios):.2f}** ({ratios[0]:.2f} to {ratios[-1]:.2f})"


def print_table(groups, yardsticks, unit):
    names = ["thinwire", "thinwire, deterministic"] + yardsticks
    print("| batch | type | rounds | " + " | ".join(f"{n}, {unit}/s" for n in names) + " | " +
          " | ".join(f"ours / {name}" for name in yardsticks) + " |")
    print("|---" * (3 + len(names) + len(yardsticks)) + "|")
    for (batch, precision), rounds in groups.items():
        speeds = [speed(rounds, name, unit) for name in names]
        print(f"| {batch} | {precision} | {len(rounds)} | " +
              " | ".join("failed" if s is None else f"{s:.0f}" for s in speeds) + " | " +
              " | ".join(ratio(rounds, name) for name in yardsticks) + " |")


def main():
    args = parse_arguments()
    groups, failures = {}, set()
    start = time.monotonic()
    for turn in range(args.rounds):
        for batch in args.batches:
            for precision in args.precisions:
                if groups and time.monotonic() - start > args.seconds:
                    continue
                runs = {}
                groups.setdefault((batch, precision), []).append(
                    {"batch": batch, "precision": precision, "runs": runs})
                for name, run in one_round(args, batch, precision, turn):
                    runs[name] = run
                    write(args.json, groups)
                failures |= {f"{n}, batch {batch}, {precision}: {run['failed']}"
                             for n, run in runs.items() if "failed" in run}
    print_table(groups, args.yardsticks, "tokens" if args.model == "gpt2" else "images")
    for failure in sorted(failures):
        print(f"failed: {failure}", file=sys.stderr)
    sys.exit(1 if any(f.startswith("thinwire") for f in failures) else 0)


if __name__ == "__main__":
    main()

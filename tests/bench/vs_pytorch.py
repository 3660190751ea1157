#!/usr/bin/python3
"""A training step on this machine's CPU beside PyTorch's: forward, backward and update, of CIFAR
ResNet-18 (batch 100, channels-last) and of GPT-2.

Runs of ours and of each yardstick alternate, so that what else the machine does meets all of them. A
yardstick is a Python with torch, eager or compiled (from 2.0 on). In each round the fastest yardstick
counts; the ratio is the median over rounds of its step to ours, above 1 we are faster: of wall time,
and of the processor time of all threads, which a busy machine disturbs less.

  deploy/setup.sh --bench && bazel build --config=opt //tests:step_bench && tests/bench/vs_pytorch.py
  tests/bench/vs_pytorch.py --python /usr/bin/python3 ~/torch/bin/python --models nano gpt2 --rounds 3

OMP_WAIT_POLICY=passive in the environment helps all where other processes use the cores too.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = {  # options of both sides, and steps to time
    "resnet18-w16": "--model resnet18 --width 16 --batch 100 --steps 15",
    "resnet18-w64": "--model resnet18 --width 64 --batch 100 --steps 3",
    "nano": "--model gpt2 --layers 4 --heads 4 --width 128 --context 64 --vocabulary 65 --batch 12 "
            "--steps 40 --warmup 5",
    "gpt2-384": "--model gpt2 --layers 6 --heads 6 --width 384 --context 256 --vocabulary 65 --batch 8 "
                "--steps 6",
    "gpt2": "--model gpt2 --layers 12 --heads 12 --width 768 --context 1024 --vocabulary 50257 --batch 1 "
            "--steps 3",
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default="bazel-bin/tests/step_bench")
    parser.add_argument("--python", nargs="+", default=["/usr/bin/python3"], help="each with torch")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--precisions", nargs="+", choices=["fp32", "bf16"], default=["fp32", "bf16"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--deadline", type=float, default=120,
                        help="seconds after which a yardstick is given up")
    return parser.parse_args()


def version_of(python):
    done = subprocess.run([python, "-c", "import torch; print(torch.__version__)"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"vs_pytorch.py: {python} has no torch: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout.strip()


def yardsticks(pythons):
    """Names, and the commands' beginnings."""
    found = {}
    for python in pythons:
        version = version_of(python)
        command = [python, "-B", os.path.join(HERE, "torch_step.py")]
        found[f"{version} eager"] = command
        if int(version.split(".")[0]) >= 2:
            found[f"{version} compiled"] = command + ["--compile", "default"]
    return found


def measure(command, deadline):
    """The line of JSON that a benchmark prints; None for one that takes longer."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=deadline)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode != 0:
        sys.exit(f"vs_pytorch.py: {' '.join(command)}: {done.stderr.strip()[-500:]}")
    return json.loads([line for line in done.stdout.splitlines() if line.startswith("{")][-1])


def one_round(args, options, others):
    """Ours, and by name what the yardsticks took that are not given up."""
    ours = measure([args.bench, *options], None)
    theirs = {}
    for name, command in list(others.items()):
        theirs[name] = measure(command + options, args.deadline)
        if theirs[name] is None:
            del others[name], theirs[name]
            print(f"{name}: more than {args.deadline:.0f} s, given up", file=sys.stderr)
    if not others:
        sys.exit("vs_pytorch.py: no yardstick is left")
    return ours, theirs


def row(model, precision, rounds):
    best = [min(theirs, key=lambda name, runs=theirs: runs[name]["step_seconds"])
            for _, theirs in rounds]
    wall, cpu = (sorted(theirs[name][key] / ours[key] for (ours, theirs), name in zip(rounds, best))
                 for key in ("step_seconds", "step_cpu_seconds"))
    unit = "images" if model.startswith("resnet") else "tokens"
    speed = {"ours": statistics.median(ours[f"{unit}_per_second"] for ours, _ in rounds),
             "theirs": statistics.median(theirs[name][f"{unit}_per_second"]
                                         for (_, theirs), name in zip(rounds, best))}
    memory = [min(ours["host_bytes"] for ours, _ in rounds),
              min(theirs[name]["host_bytes"] for (_, theirs), name in zip(rounds, best))]
    share = statistics.median(ours["share_of_peak"] for ours, _ in rounds)
    fastest = max(set(best), key=best.count)
    return (f"| {model} | {precision} | {speed['ours']:.0f} {unit}/s | {speed['theirs']:.0f} ({fastest}) "
            f"| **{statistics.median(wall):.2f}** ({wall[0]:.2f} to {wall[-1]:.2f}) "
            f"| {statistics.median(cpu):.2f} | {100 * share:.0f} % "
            f"| {memory[0] / 2**20:.0f} / {memory[1] / 2**20:.0f} |")


def main():
    args = parse_arguments()
    if not os.access(args.bench, os.X_OK):
        sys.exit(f"vs_pytorch.py: no {args.bench}: bazel build --config=opt //tests:step_bench")
    known = yardsticks(args.python)
    print(f"{args.threads} threads, {args.rounds} rounds; PyTorch {', '.join(known)}\n")
    print("| model | type | ours | PyTorch, the fastest | ratio (least to greatest) "
          "| of processor time | of the products' peak | memory, MiB |")
    print("|---|---|---|---|---|---|---|---|")
    for model in args.models:
        for precision in args.precisions:
            options = MODELS[model].split() + ["--precision", precision, "--threads", str(args.threads)]
            others = dict(known)
            rounds = [one_round(args, options, others) for _ in range(args.rounds)]
            print(row(model, precision, rounds), flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Steps over slow links, measured, beside those that `thinwire plan` promises. Wants root.

usage: slow_network.py THINWIRE STAGE_SERVER CIFAR10_DIR|shakespeare [--rate MBIT] [--rtt_ms MS] [--codec C]...
       [--microbatches 1,4,8] [--schedules 1f1b,zero_bubble,terapipe:4] [--init MODEL] [--torch PYTHON]
       [--epochs N [--seed N]]

The experiments of experiments/slow_network: ResNet-18 of width 16 on CIFAR-10, or a GPT-2 of four blocks on Tiny Shakespeare
(terapipe:N has N slices of its sequences), in four stages of one thread, each in a network namespace whose line has
that rate in each direction. Each choice runs on this machine without namespaces, too, whose compute and codec the plan takes
(--from). All namespaces are on this machine, so the plan is made for its cores. Of each run the median of its steps counts,
without the first three.

--epochs: trains whole epochs in place of some steps, evaluation after each included, and tells how long they had trained
when each ended, and how well.

--rtt_ms: what reaches a stage server, and what it answers, comes by a proxy that keeps it for half of that time
(delay_proxy.py). --torch: the same network beside it, written by hand over PyTorch and gloo (gloo_pipeline.py),
with codecs none and uniform4; it takes no delay.
"""
import argparse
import itertools
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from network import Network, address, inside, slow  # noqa: E402

STAGES = 4
PORT, PROXY_PORT, STORE_PORT = 4700, 4800, 4900
SKIPPED_STEPS = 3
HERE_STEPS = 60  # of which the first, which fills caches and makes code, is no great part
PATIENCE_SECONDS = 900
EPOCH_PATIENCE_SECONDS = 3 * 3600


def samples(args, steps):
    """The assignment that makes an epoch so many steps long."""
    return f"data.windows={12 * steps}" if args.is_text else f"data.limit={100 * steps}"


def assignments(args):
    """What the experiment has besides its file."""
    words = [] if args.is_text else [f"data.dir={args.data}", "data.verify=false"]
    if args.init:
        words.append(f"init={args.init}")
    if args.epochs:
        return [*words, f"epochs={args.epochs}", f"seed={args.seed}"]
    return [*words, "epochs=1", samples(args, args.steps), "data.test_limit=10", "evaluation.compressed=false",
            "evaluation.uncompressed=false", "metrics.error_every=0", "checkpoint.every_epochs=0"]


def entry(codec):
    """The experiment's fields of a codec, whose text the plan knows."""
    name, _, parameters = codec.strip().partition("(")
    fields = [p.strip().replace("=", ": ") for p in parameters.rstrip(")").split(",") if p]
    return "{" + ", ".join([f"codec: {name}", *fields]) + "}"


def settings(args, codec, microbatches, schedule):
    """The --set words of one run. `codec`: of activations and gradients, "A | G", or one of both."""
    activations, _, gradients = codec.partition("|")
    schedule, _, slices = schedule.partition(":")
    words = [*assignments(args), f"pipeline.microbatches={microbatches}", f"pipeline.schedule={schedule}",
             *([f"pipeline.slices={slices}"] if slices else []), f"compression.activations={entry(activations)}",
             f"compression.gradients={entry(gradients or activations)}"]
    return [part for word in words for part in ("--set", word)]


def run(args, place, folder, *words):
    """A run: the lines of its metrics."""
    subprocess.run([str(w) for w in place(args.thinwire, "run", args.experiment, "--quiet", "--overwrite", "--out", folder,
                                          "--allow_other_build", *words)],
                   check=True, timeout=args.epochs * EPOCH_PATIENCE_SECONDS or PATIENCE_SECONDS)
    return [json.loads(line) for line in (pathlib.Path(folder) / "metrics.jsonl").read_text().splitlines()]


def on_this_machine(args, *choice):
    """The folder of a run without namespaces and at normal priority, which the plan is made from."""
    folder = args.work / "here"
    run(args, lambda *words: ["chrt", "--other", "0", *words], folder, "--stage_server", args.stage_server,
        *settings(args, *choice), "--set", samples(args, HERE_STEPS))
    return folder


def over_links(args, *choice):
    """A run over the namespaces' links: the lines of its metrics."""
    servers = []
    try:
        for i in range(STAGES):
            words = [args.stage_server, "--listen", f"{address(i)}:{PORT}", "--insecure",
                     *([] if args.is_text else ["--data", args.data])]
            servers.append(subprocess.Popen(inside(i, *words), stderr=subprocess.DEVNULL))
            if args.rtt_ms:
                words = [sys.executable, HERE / "delay_proxy.py", f"{address(i)}:{PROXY_PORT}", f"{address(i)}:{PORT}",
                         args.rtt_ms / 2]
                servers.append(subprocess.Popen(inside(i, *words)))
        stages = ",".join(f"{address(i)}:{PROXY_PORT if args.rtt_ms else PORT}" for i in range(STAGES))
        return run(args, lambda *words: inside("c", *words), args.work / "links", "--stages", stages,
                   *settings(args, *choice))
    finally:
        for server in servers:
            server.terminate()
            server.wait(timeout=60)


def by_torch(args, codec, microbatches):
    """The same over PyTorch and gloo: its version and its median step."""
    ranks = []
    for i in range(STAGES):
        words = ["env", "GLOO_SOCKET_IFNAME=eth0", args.torch, HERE / "gloo_pipeline.py", "--rank", i, "--store",
                 f"{address(0)}:{STORE_PORT}", "--codec", codec, "--microbatches", microbatches, "--steps", args.steps]
        ranks.append(subprocess.Popen(inside(i, *words), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
    try:
        report = json.loads(ranks[0].communicate(timeout=PATIENCE_SECONDS)[0])
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    return report["torch"], statistics.median(report["seconds"][SKIPPED_STEPS:])


def planned(args, codec, microbatches, schedule):
    """The step that the plan promises, with the compute of a run on this machine."""
    words = [args.thinwire, "plan", args.experiment, *settings(args, codec, microbatches, schedule), "--link_mbit", args.rate,
             "--rtt_ms", args.rtt_ms, "--cores", args.cores, "--from", on_this_machine(args, codec, microbatches, schedule),
             "--microbatches", microbatches, "--schedule", schedule, "--format", "json"]
    report = json.loads(subprocess.run([str(w) for w in words], check=True, capture_output=True).stdout)
    return next(choice["step_seconds"] for choice in report["choices"] if choice["own"])


def cell(codec):
    """A codec's text without further columns of a table."""
    return codec.replace("|", "&#124;")


def measure_steps(args, choices):
    """A row for each choice: its step as measured and as planned."""
    print("| codec | schedule | microbatches | measured, s | planned, s | planned / measured |\n|---|---|---|---|---|---|", flush=True)
    results = {}
    for choice in choices:
        steps = [line["seconds"] for line in over_links(args, *choice) if line["type"] == "step"]
        measured = statistics.median(steps[SKIPPED_STEPS:])
        promised = planned(args, *choice)
        results[choice] = (measured, promised)
        codec, count, schedule = choice
        print(f"| {cell(codec)} | {schedule} | {count} | {measured:.3f} | {promised:.3f} | {promised / measured:.2f} |", flush=True)
        print(f"load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
    first, best = (min(results, key=lambda choice: results[choice][k]) for k in (1, 0))
    print(f"the plan's first choice, {first}, takes {results[first][0]:.3f} s; the best, {best}, {results[best][0]:.3f} s")


def train_epochs(args, choices):
    """A row for each epoch of each choice: when it ended, and how well the network did with its codecs."""
    print("| codec | schedule | microbatches | epoch | trained, s | accuracy | loss |\n|---|---|---|---|---|---|---|", flush=True)
    for choice in choices:
        trained = 0
        for line in over_links(args, *choice):
            if line["type"] != "epoch":
                continue
            trained += line["seconds"]
            test = line["test"]["compressed"]
            accuracy = "" if args.is_text else f"{test['accuracy']:.2%}"
            codec, count, schedule = choice
            print(f"| {cell(codec)} | {schedule} | {count} | {line['epoch']} | {trained:.0f} | {accuracy} | {test['loss']:.4f} |",
                  flush=True)


def main():
    """Every codec with every number of microbatches."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("thinwire", type=pathlib.Path)
    parser.add_argument("stage_server", type=pathlib.Path)
    parser.add_argument("data", help="folder of CIFAR-10's binary version, or shakespeare")
    parser.add_argument("--rate", type=float, default=100, help="of every line in each direction, Mbit/s; inf: as fast as it goes")
    parser.add_argument("--rtt_ms", type=float, default=0, help="what a round trip takes besides")
    parser.add_argument("--torch", help="an interpreter that has PyTorch")
    parser.add_argument("--codec", action="append",
                        help="as thinwire has it, or one of activations and one of gradients, 'A | G'; may stand often")
    parser.add_argument("--init", type=lambda folder: pathlib.Path(folder).resolve(),
                        help="model to go on from: what an entropy-coded message takes changes as a network learns")
    parser.add_argument("--microbatches", default="1,4,8")
    parser.add_argument("--schedules", default="1f1b")
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--epochs", type=int, default=0, help="whole epochs in place of steps")
    parser.add_argument("--seed", type=int, default=1, help="of --epochs")
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # the namespaces are removed
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "tc"))):
        parser.error("wants root, ip and tc (Debian's iproute2)")
    args.is_text = args.data == "shakespeare"
    if args.is_text and args.torch:
        parser.error("--torch wants CIFAR-10")
    if args.epochs and args.torch:
        parser.error("--torch is measured in steps, not with --epochs")
    args.data = pathlib.Path(args.data).resolve()
    names = ["c", *(str(i) for i in range(STAGES))]
    args.experiment = ROOT / "experiments/slow_network" / ("text.yaml" if args.is_text else "images.yaml")
    print(f"lines of {args.rate:g} Mbit/s, round trips of {args.rtt_ms:g} ms, {args.cores} cores, {time.strftime('%F')}")
    with tempfile.TemporaryDirectory() as work, Network(names):
        args.work = pathlib.Path(work)
        for name in names:
            slow(name, args.rate)
        counts = [int(count) for count in args.microbatches.split(",")]
        choices = itertools.product(args.codec or ["none", "uniform(bits=4)"], counts, args.schedules.split(","))
        (train_epochs if args.epochs else measure_steps)(args, choices)
        for codec in ("none", "uniform4") if args.torch else ():
            for count in counts:
                version, measured = by_torch(args, codec, count)
                print(f"| PyTorch {version} and gloo, {codec} | 1f1b | {count} | {measured:.3f} | | |", flush=True)


if __name__ == "__main__":
    sys.exit(main())

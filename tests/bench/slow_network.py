#!/usr/bin/env python3
"""Steps over slow links, measured, beside those that `thinwire plan` promises. Wants root.

usage: slow_network.py THINWIRE STAGE_SERVER CIFAR10_DIR|shakespeare [--rate MBIT] [--rtt_ms MS] [--codec C]...
       [--microbatches 1,4,8] [--schedules 1f1b,zero_bubble,terapipe:4] [--init MODEL] [--torch PYTHON]

ResNet-18 of width 16 on CIFAR-10, or a GPT-2 of four blocks on Tiny Shakespeare (terapipe:N has N slices of its
sequences), in four stages of one thread, each in a network namespace whose line has
that rate in each direction. Each choice runs on this machine without namespaces, too, whose compute and codec the plan takes
(--from). All namespaces are on this machine, so the plan is made for its cores. Of each run the median of its steps counts,
without the first three.

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
TORCH_STEPS = 8
PATIENCE_SECONDS = 900
OPTIMIZERS = ("{name: sgd, lr: 0.01, momentum: 0.9, weight_decay: 0.0005}", "{name: adamw, lr: 0.001, clip_norm: 1}")


def text(args):
    """The experiment."""
    common = (f"optimizer: {OPTIMIZERS[args.is_text]}\nevaluation: {{compressed: false, uncompressed: false}}\n"
              "metrics: {error_every: 0}\ncheckpoint: {every_epochs: 0}\nepochs: 1\n" +
              (f"init: {args.init}\n" if args.init else ""))
    if args.is_text:
        return (f"name: slow\nmodel: {{name: gpt2, layers: 4, heads: 4, width: 128}}\n"
                f"data: {{name: shakespeare, context: 64, batch_size: 12, windows: {12 * args.steps}, test_limit: 10}}\n"
                f"pipeline: {{cuts: [h.0, h.1, h.2], stages: {STAGES}, threads: 1}}\n" + common)
    return (f"name: slow\nmodel: {{name: resnet18, width: 16}}\n"
            f"data: {{name: cifar10, dir: {args.data}, verify: false, batch_size: 100, limit: {100 * args.steps}, "
            f"test_limit: 10}}\n"
            f"pipeline: {{cuts: [layer1, layer2, layer3], stages: {STAGES}, threads: 1}}\n" + common)


def entry(codec):
    """The experiment's fields of a codec, whose text the plan knows."""
    name, _, parameters = codec.strip().partition("(")
    fields = [p.strip().replace("=", ": ") for p in parameters.rstrip(")").split(",") if p]
    return "{" + ", ".join([f"codec: {name}", *fields]) + "}"


def settings(codec, microbatches, schedule):
    """The --set words of one run. `codec`: of activations and gradients, "A | G", or one of both."""
    activations, _, gradients = codec.partition("|")
    schedule, _, slices = schedule.partition(":")
    return ["--set", f"pipeline.microbatches={microbatches}", "--set", f"pipeline.schedule={schedule}",
            *(["--set", f"pipeline.slices={slices}"] if slices else []), "--set", f"compression.activations={entry(activations)}", "--set",
            f"compression.gradients={entry(gradients or activations)}"]


def run(args, place, folder, *words):
    """A run's median step, seconds."""
    subprocess.run([str(w) for w in place(args.thinwire, "run", args.work / "slow.yaml", "--quiet", "--overwrite",
                                          "--out", folder, "--allow_other_build", *words)],
                   check=True, timeout=PATIENCE_SECONDS)
    lines = [json.loads(line) for line in (pathlib.Path(folder) / "metrics.jsonl").read_text().splitlines()]
    steps = [line["seconds"] for line in lines if line["type"] == "step"]
    return statistics.median(steps[SKIPPED_STEPS:])


def on_this_machine(args, *choice):
    """The folder of a run without namespaces and at normal priority, which the plan is made from."""
    folder = args.work / "here"
    samples = f"data.{'windows' if args.is_text else 'limit'}={HERE_STEPS * (12 if args.is_text else 100)}"
    run(args, lambda *words: ["chrt", "--other", "0", *words], folder, "--stage_server", args.stage_server, "--set", samples,
        *settings(*choice))
    return folder


def over_links(args, *choice):
    """A run over the namespaces' links: its median step."""
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
                   *settings(*choice))
    finally:
        for server in servers:
            server.terminate()
            server.wait(timeout=60)


def by_torch(args, codec, microbatches):
    """The same over PyTorch and gloo: its version and its median step."""
    ranks = []
    for i in range(STAGES):
        words = ["env", "GLOO_SOCKET_IFNAME=eth0", args.torch, HERE / "gloo_pipeline.py", "--rank", i, "--store",
                 f"{address(0)}:{STORE_PORT}", "--codec", codec, "--microbatches", microbatches, "--steps", TORCH_STEPS]
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
    words = [args.thinwire, "plan", args.work / "slow.yaml", *settings(codec, microbatches, schedule), "--link_mbit", args.rate,
             "--rtt_ms", args.rtt_ms, "--cores", args.cores, "--from", on_this_machine(args, codec, microbatches, schedule),
             "--microbatches", microbatches, "--schedule", schedule, "--format", "json"]
    report = json.loads(subprocess.run([str(w) for w in words], check=True, capture_output=True).stdout)
    return next(choice["step_seconds"] for choice in report["choices"] if choice["own"])


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
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    args = parser.parse_args()
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "tc"))):
        parser.error("wants root, ip and tc (Debian's iproute2)")
    args.is_text = args.data == "shakespeare"
    if args.is_text and args.torch:
        parser.error("--torch wants CIFAR-10")
    args.data = pathlib.Path(args.data).resolve()
    names = ["c", *(str(i) for i in range(STAGES))]
    print(f"lines of {args.rate:g} Mbit/s, round trips of {args.rtt_ms:g} ms, {args.cores} cores, {time.strftime('%F')}")
    print("| codec | schedule | microbatches | measured, s | planned, s | planned / measured |\n|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as work, Network(names):
        args.work = pathlib.Path(work)
        (args.work / "slow.yaml").write_text(text(args))
        for name in names:
            slow(name, args.rate)
        counts = [int(count) for count in args.microbatches.split(",")]
        results = {}
        for choice in itertools.product(args.codec or ["none", "uniform(bits=4)"], counts, args.schedules.split(",")):
            codec, count, schedule = choice
            measured = over_links(args, *choice)
            promised = planned(args, *choice)
            results[choice] = (measured, promised)
            cell = codec.replace("|", "&#124;")  # no further column of the table
            print(f"| {cell} | {schedule} | {count} | {measured:.3f} | {promised:.3f} | {promised / measured:.2f} |",
                  flush=True)
            print(f"load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
        first, best = (min(results, key=lambda choice: results[choice][k]) for k in (1, 0))
        print(f"the plan's first choice, {first}, takes {results[first][0]:.3f} s; the best, {best}, {results[best][0]:.3f} s")
        for codec in ("none", "uniform4") if args.torch else ():
            for count in counts:
                version, measured = by_torch(args, codec, count)
                print(f"| PyTorch {version} and gloo, {codec} | 1f1b | {count} | {measured:.3f} | | |", flush=True)


if __name__ == "__main__":
    sys.exit(main())

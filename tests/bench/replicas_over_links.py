#!/usr/bin/env python3
"""Replicas over slow links: steps measured beside those that `thinwire plan` promises. Wants root.

usage: replicas_over_links.py THINWIRE STAGE_SERVER [--rate MBIT] [--rtt_ms MS] [--replicas R] [--stages S] [--steps N]
       [--set FIELD=VALUE]... [--mode MODE]...

R carriers of S stages, of one thread each, in a network namespace each whose line has that rate in each direction, train the
character GPT of experiments/replicas/shakespeare.yaml. MODE is "step | CONTRIBUTIONS | AVERAGE" or "local:EVERY | ... | ...", with
codecs as `thinwire plan` has them: "step | none | none", "local:64 | ecsq(rate=1) | uniform(bits=8)". A run on this machine
without namespaces gives the compute and codec that the plan takes. Of steps the mean counts, from the first whole round of local
steps on, as a round's last step has its exchange.
"""
import argparse
import json
import math
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from slow_network import HERE, PATIENCE_SECONDS, PORT, PROXY_PORT, ROOT, entry

sys.path.insert(0, str(ROOT / "tests"))
from network import Network, address, inside, slow  # noqa: E402

SKIPPED_STEPS = 3
EXPERIMENT = ROOT / "experiments/replicas/shakespeare.yaml"
MODES = ["step | none | none", "step | ecsq(rate=2, rounding=dither) | uniform(bits=8, scope=sample)",
         "local:16 | ecsq(rate=2, rounding=dither) | uniform(bits=8, scope=sample)"]


def every(mode):
    """Steps between two exchanges."""
    return int(mode.split("|")[0].strip().partition(":")[2] or 1)


def steps_of(args, mode):
    """--steps, in whole rounds of local steps, and at least the round that is skipped and another."""
    return max(2, math.ceil(args.steps / every(mode))) * every(mode)


def settings(args, mode, steps):
    """The --set words of one run."""
    sync, contributions, average = (part.strip() for part in mode.split("|"))
    local = f", sync: local, every: {every(mode)}" if sync.startswith("local") else ""
    words = [f"data.windows={48 * steps}", "data.test_limit=10", "epochs=1", "pipeline.threads=1", f"pipeline.stages={args.stages}",
             f"replicas={{count: {args.replicas}, contributions: {entry(contributions)}, average: {entry(average)}{local}}}",
             "evaluation.compressed=false", "evaluation.uncompressed=false", "metrics.error_every=0", "checkpoint.every_epochs=0",
             *args.set]
    return [part for word in words for part in ("--set", word)]


def run(args, place, folder, experiment, *words):
    """A run: the seconds of its steps."""
    subprocess.run([str(w) for w in place(args.thinwire, "run", experiment, "--quiet", "--overwrite", "--out", folder,
                                          "--allow_other_build", *words)],
                   check=True, timeout=PATIENCE_SECONDS)
    lines = map(json.loads, (pathlib.Path(folder) / "metrics.jsonl").read_text().splitlines())
    return [line["seconds"] for line in lines if line["type"] == "step"]


def over_links(args, experiment, machines, *words):
    """The seconds of a run's steps over the namespaces' links, on the first `machines` of them."""
    servers = []
    try:
        for i in range(machines):
            listening = [args.stage_server, "--listen", f"{address(i)}:{PORT}", "--insecure"]
            servers.append(subprocess.Popen(inside(i, *listening), stderr=subprocess.DEVNULL))
            if args.rtt_ms:
                proxy = [sys.executable, HERE / "delay_proxy.py", f"{address(i)}:{PROXY_PORT}", f"{address(i)}:{PORT}", args.rtt_ms / 2]
                servers.append(subprocess.Popen(inside(i, *proxy)))
        stages = ",".join(f"{address(i)}:{PROXY_PORT if args.rtt_ms else PORT}" for i in range(machines))
        return run(args, lambda *command: inside("c", *command), args.work / "links", experiment, "--stages", stages, *words)
    finally:
        for server in servers:
            server.terminate()
            server.wait(timeout=60)


def mean_step(steps, rounds):
    """The mean of steps without the first ones, where `rounds` steps go from one exchange to the next."""
    skipped = max(SKIPPED_STEPS, rounds) if rounds > 1 else SKIPPED_STEPS
    return sum(steps[skipped:]) / len(steps[skipped:])


def measured(args, mode):
    """The mean step over the namespaces' links."""
    steps = over_links(args, EXPERIMENT, args.replicas * args.stages, "--carriers", args.replicas,
                       *settings(args, mode, steps_of(args, mode)))
    return mean_step(steps, every(mode))


def planned(args, mode):
    """The step that the plan promises, with the compute of a run on this machine."""
    here = args.work / "here"
    run(args, lambda *words: ["chrt", "--other", "0", *words], here, EXPERIMENT, "--stage_server", args.stage_server, "--carriers",
        args.replicas, *settings(args, mode, 30))
    words = [args.thinwire, "plan", EXPERIMENT, *settings(args, mode, steps_of(args, mode)), "--link_mbit", args.rate, "--rtt_ms", args.rtt_ms,
             "--cores", os.cpu_count(), "--from", here, "--format", "json"]
    report = json.loads(subprocess.run([str(w) for w in words], check=True, capture_output=True).stdout)
    return next(choice["step_seconds"] for choice in report["choices"] if choice["own"])


def main():
    """A row for each mode."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("thinwire", type=pathlib.Path)
    parser.add_argument("stage_server", type=pathlib.Path)
    parser.add_argument("--rate", type=float, default=100, help="of every line in each direction, Mbit/s")
    parser.add_argument("--rtt_ms", type=float, default=0, help="what a round trip takes besides")
    parser.add_argument("--replicas", type=int, default=4)
    parser.add_argument("--stages", type=int, default=2)
    parser.add_argument("--steps", type=int, default=48, help="at least; of local steps two rounds or more")
    parser.add_argument("--set", action="append", default=[], help="a field of the experiment; may stand often")
    parser.add_argument("--mode", action="append", help="may stand often")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # the namespaces are removed
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "tc"))):
        parser.error("wants root, ip and tc (Debian's iproute2)")
    args.thinwire, args.stage_server = args.thinwire.resolve(), args.stage_server.resolve()
    names = ["c", *(str(i) for i in range(args.replicas * args.stages))]
    print(f"{args.replicas} x {args.stages} machines, lines of {args.rate:g} Mbit/s, round trips of {args.rtt_ms:g} ms, "
          f"{os.cpu_count()} cores, {time.strftime('%F')}")
    print("| exchange | measured, s | planned, s | planned / measured | first / this |\n|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as work, Network(names):
        args.work = pathlib.Path(work)
        for name in names:
            slow(name, args.rate)
        first = None
        for mode in args.mode or MODES:
            seconds, promised = measured(args, mode), planned(args, mode)
            first = first or seconds
            print(f"| {mode.replace('|', '&#124;')} | {seconds:.3f} | {promised:.3f} | {promised / seconds:.2f} | {first / seconds:.2f} |",
                  flush=True)
    print(f"load {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

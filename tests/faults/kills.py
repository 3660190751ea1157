#!/usr/bin/env python3
"""Kills processes of runs at random moments and compares how the runs end.

usage: kills.py THINWIRE STAGE_SERVER [--kills N] [--seed N] [--experiments images,text,replicas,local,open] [--stop SECONDS]
                [--out TABLE.md]

Each round runs an experiment and kills one process of it, -9, at a moment that is uniform over the
time that the run takes when nothing befalls it and half as long again, so that begin, checkpoints,
evaluation, recovery and end are met, too. A coordinator is followed by `thinwire run --resume`. Every
run must end with the parameters, losses and counts of bytes of a run that nothing befell, in which one pipeline carries
all replicas; where membership is open, the counts of bytes are left out. Every fourth round kills a second process.
With --stop every third process is not killed but stopped (SIGSTOP) for so long. Prints a table; fails if any run ended otherwise.
"""
import argparse
import collections
import json
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

EXPERIMENTS = {
    "images": """
name: images
model: {name: resnet8, width: 8}
data: {name: digits, batch_size: 50, test_limit: 400}
pipeline: {cuts: [stem, layer1, layer2], threads: 1, microbatches: 2}
compression: {activations: {codec: topk, ratio: 0.2, feedback: ef21}, gradients: {codec: topk, ratio: 0.2, feedback: ef21}}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
checkpoint: {every_steps: 10}
restarts: {max: 100}
epochs: 4
""",
    "text": """
name: text
model: {name: gpt2, width: 32, layers: 4, heads: 2, dropout: 0.1}
data: {name: shakespeare, batch_size: 10, context: 32, windows: 400, test_limit: 60}
pipeline: {cuts: [h.0, h.1, h.2], threads: 1, microbatches: 2}
compression: {activations: {codec: topk, ratio: 0.3, feedback: ef21}, gradients: {codec: topk, ratio: 0.3, feedback: ef21}}
optimizer: {name: adamw, lr: 0.003, clip_norm: 1}
checkpoint: {every_steps: 8}
restarts: {max: 100}
epochs: 3
""",
    "replicas": """
name: replicas
model: {name: resnet8, width: 16}
data: {name: digits, batch_size: 48, test_limit: 400}
pipeline: {cuts: [stem, layer2], stages: 2, threads: 1, microbatches: 2}
compression: {activations: {codec: topk, ratio: 0.2, feedback: ef21}, gradients: {codec: topk, ratio: 0.2, feedback: ef21}}
replicas: {count: 4, contributions: {codec: ecsq, rate: 2, feedback: ef}, average: {codec: uniform, bits: 8}}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
checkpoint: {every_steps: 10}
restarts: {max: 100}
epochs: 4
""",
    # Without state in codecs: the others go on with what they have.
    "open": """
name: open
model: {name: resnet8, width: 16}
data: {name: digits, batch_size: 48, test_limit: 400}
pipeline: {cuts: [stem, layer2], stages: 2, threads: 1, microbatches: 2}
compression: {activations: {codec: uniform, bits: 8}, gradients: {codec: uniform, bits: 8}}
replicas: {count: 4, contributions: {codec: ecsq, rate: 2}, average: {codec: uniform, bits: 8}}
membership: {open: true}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
checkpoint: {every_steps: 10}
restarts: {max: 100}
epochs: 4
""",
    "local": """
name: local
model: {name: gpt2, width: 64, layers: 2, heads: 2, dropout: 0.1}
data: {name: shakespeare, batch_size: 12, context: 32, windows: 400, test_limit: 60}
pipeline: {cuts: [h.0], stages: 2, threads: 1, microbatches: 1}
replicas: {count: 4, sync: local, every: 6, contributions: {codec: topk, ratio: 0.1, feedback: ef21}}
optimizer: {name: adamw, lr: 0.003, clip_norm: 1}
checkpoint: {every_steps: 8}
restarts: {max: 100}
epochs: 3
""",
}
# Carriers of an experiment's replicas.
CARRIERS = {"replicas": 2, "local": 2, "open": 4}
TARGETS = {"first stage": [0], "middle stage": [1, 2], "last stage": [3], "coordinator": [None]}
PATIENCE_SECONDS = 120


def tensors(run):
    """Name -> bytes of every parameter that the run left."""
    found = {}
    for path in (run / "model").glob("*.safetensors"):
        data = path.read_bytes()
        size = int.from_bytes(data[:8], "little")
        for name, tensor in json.loads(data[8:8 + size]).items():
            if name != "__metadata__":
                begin, end = tensor["data_offsets"]
                found[name] = data[8 + size + begin:8 + size + end]
    return found


def result(run, is_open=False):
    """What must be equal: everything of a run but times, which steps' errors were measured and, where membership is open, bytes."""
    summary = json.loads((run / "summary.json").read_text())
    epochs = [(e["epoch"], e["lr"], e["train"], e["test"]) for e in summary["epochs"]]
    sent = [(b["name"], b[d]["messages"], b[d]["wire_bytes"])
            for b in summary["boundaries"] for d in ("activations", "gradients")]
    sent += [(d, r["messages"], r["wire_bytes"]) for d, r in (summary.get("replicas") or {}).items() if isinstance(r, dict)]
    if is_open:
        sent = []
    lines = [json.loads(line) for line in (run / "metrics.jsonl").open()]
    steps = [(e["step"], e["loss"], e["accuracy"]) for e in lines if e["type"] == "step"]
    return summary["status"], epochs, sent, steps, tensors(run)


class Run:
    """One run of an experiment, with its processes."""

    def __init__(self, args, experiment, folder, carriers=1):
        self.folder = folder
        self.log = folder.with_suffix(".log").open("ab")
        path = folder.with_suffix(".yaml")
        path.write_text(EXPERIMENTS[experiment])
        self.command = [args.thinwire, "run", str(path), "--stage_server", args.stage_server, "--carriers", str(carriers)]
        self.process = None
        self.resumed = 0

    def start(self):
        """From the begin, or from where it was killed."""
        where = ["--resume" if (self.folder / "experiment.yaml").exists() else "--out", str(self.folder)]
        if not (self.folder / "experiment.yaml").exists():
            where.append("--overwrite")
        self.process = subprocess.Popen(self.command + where, stdout=self.log, stderr=self.log)

    def stages(self):
        """Process ids of the stage servers, in order of stages; fewer while they start."""
        found = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True)
        return sorted(int(line) for line in found.stdout.split())

    def kill(self, stage, stop_seconds=0):
        """Kills a stage, or the coordinator for None, or stops a stage for a while. False: it was not there."""
        if self.process.poll() is not None:
            return False
        if stage is None:
            self.process.kill()
            self.process.wait()
            self.resumed += 1
            self.start()
            return True
        stages = self.stages()
        if stage >= len(stages):
            return False
        signals = f"kill -STOP {stages[stage]} && (sleep {stop_seconds}; kill -CONT {stages[stage]}) &" if stop_seconds else f"kill -9 {stages[stage]}"
        return subprocess.run(["bash", "-c", signals], stderr=subprocess.DEVNULL).returncode == 0

    def finish(self):
        """The exit code."""
        try:
            return self.process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            return "hangs"


def main():
    """Rounds until enough processes were killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("thinwire")
    parser.add_argument("stage_server")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--experiments", default="images,text,replicas,local")
    parser.add_argument("--stop", type=float, default=0)
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()
    chance = random.Random(args.seed)
    wanted, length = {}, {}
    rows = collections.defaultdict(lambda: {"kills": 0, "missed": 0, "equal": 0, "other": 0, "read": 0, "seconds": []})
    bad = []
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        experiments = args.experiments.split(",")
        for experiment in experiments:
            run = Run(args, experiment, work / experiment)
            begin = time.monotonic()
            run.start()
            assert run.finish() == 0, (work / f"{experiment}.log").read_text()
            length[experiment] = time.monotonic() - begin
            wanted[experiment] = result(run.folder, experiment == "open")
        kills = number = 0
        names = list(TARGETS)
        while kills < args.kills:
            experiment = experiments[number % len(experiments)]
            target = names[number // len(experiments) % len(names)]
            number += 1
            run = Run(args, experiment, work / f"{number}", CARRIERS.get(experiment, 1))
            moments = sorted(chance.uniform(0, 1.5 * length[experiment]) for _ in range(2 if number % 4 == 0 else 1))
            begin = time.monotonic()
            run.start()
            done = 0
            for moment in moments:
                time.sleep(max(0.0, begin + moment - time.monotonic()))
                is_stopped = args.stop > 0 and number % 3 == 0
                done += run.kill(chance.choice(TARGETS[target]), args.stop if is_stopped else 0)
            row = rows[experiment, target]
            row["kills"] += done
            row["missed"] += len(moments) - done
            kills += done
            code = run.finish()
            is_equal = code == 0 and result(run.folder, experiment == "open") == wanted[experiment]
            if done:
                row["equal" if is_equal else "other"] += 1
            if code == 0:
                events = json.loads((run.folder / "summary.json").read_text())["events"]
                row["seconds"] += [e["seconds"] for e in events if e["seconds"] is not None and e["type"] in ("restarted", "went_on", "joined", "left", "dealt")]
                row["read"] += sum(e["type"] == "restarted" and e["step"] > 0 for e in events)
            text = f"round {number}: {experiment}, {target} killed at {', '.join(f'{m:.2f} s' for m in moments)}"
            print(f"{text}: {'equal' if is_equal else f'DIFFERS, exit code {code}'}", flush=True)
            if not is_equal:
                bad.append(text)
                print((work / f"{number}.log").read_text()[-2000:], flush=True)
    lines = [f"{kills} kills in {number} runs, seed {args.seed}; a run that nothing befalls takes "
             + ", ".join(f"{length[e]:.1f} s ({e})" for e in experiments), "",
             "| experiment | killed | kills | runs that ended equal | otherwise | came too early or late | checkpoints read "
             "| median s to go on | most |",
             "|---|---|---|---|---|---|---|---|---|"]
    for (experiment, target), row in sorted(rows.items()):
        seconds = row["seconds"]
        times = f"{statistics.median(seconds):.2f} | {max(seconds):.2f}" if seconds else "– | –"
        lines.append(f"| {experiment} | {target} | {row['kills']} | {row['equal']} | {row['other']} | {row['missed']} | {row['read']} | {times} |")
    print("\n".join(lines))
    if args.out:
        args.out.write_text("\n".join(lines) + "\n")
    print(f"{len(bad)} failures")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

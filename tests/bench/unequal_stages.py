#!/usr/bin/env python3
"""Five machines for two stages: three and two of them, beside two pipelines on four.

usage: unequal_stages.py THINWIRE STAGE_SERVER [--cores 1.5] [--seconds 40] [--samples 16]

Starts five stage servers, each in a control group with a fifth of so many cores (wants root). A GPT-2 of five blocks trains with six
replicas: on two pipelines of two servers, cut behind the second block and behind the third, whichever is faster; then with its first three
blocks on three servers and the last two on two. Prints steps a second and the losses' equality.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

from unequal_speeds import PATIENCE_SECONDS, Run, Server, within

EXPERIMENT = """
name: stages
model: {{name: gpt2, layers: 5, heads: 2, width: 64}}
data: {{name: shakespeare, context: 64, windows: 12000, batch_size: {batch}, test_limit: 4}}
pipeline: {{cuts: [{cut}], stages: 2, threads: 1, microbatches: 4}}
replicas: {{count: 6, contributions: {{codec: ecsq, rate: 2}}, average: {{codec: uniform, bits: 8}}}}
optimizer: {{name: adamw, lr: 0.001}}
checkpoint: {{every_epochs: 0}}
evaluation: {{every: 1000000}}
epochs: 1000000
"""
MACHINES = 5


class RunOn(Run):
    """A run on servers that are named as --carriers wants them."""

    def __init__(self, args, work, name, cut, carriers, servers):
        self.out, self.log = work / name, work / f"{name}.log"
        (work / f"{name}.yaml").write_text(EXPERIMENT.format(cut=cut, batch=6 * args.samples))
        with self.log.open("wb") as to:
            self.process = subprocess.Popen(
                [args.thinwire, "run", str(work / f"{name}.yaml"), "--out", str(self.out), "--carriers", carriers,
                 "--stages", ",".join(server.address for server in servers)], stdout=to, stderr=to)
        within(PATIENCE_SECONDS, lambda: len(self.losses()) > 3, f"steps of {name}")


def measure(args, work, name, cut, carriers, servers):
    """The steps a second and the losses of one run."""
    run = RunOn(args, work, name, cut, carriers, servers)
    try:
        rate = run.rate(args.seconds)
        losses, _ = run.end()
        return rate, losses
    finally:
        if run.process.poll() is None:
            run.process.kill()
            run.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("thinwire")
    parser.add_argument("stage_server")
    parser.add_argument("--cores", type=float, default=1.5)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--samples", type=int, default=16, help="of each replica (%(default)s)")
    args = parser.parse_args()
    servers = []
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        try:
            for number in range(MACHINES):
                servers.append(Server(args, work, number, args.cores / MACHINES))
            two, _ = measure(args, work, "two", "h.1", "2", servers[:4])
            three, losses_of_three = measure(args, work, "three", "h.2", "2", servers[:4])
            pools, losses = measure(args, work, "pools", "h.2", "3,2", servers)
        finally:
            for server in servers:
                server.end()
    most = max(two, three)
    shortest = min(len(losses_of_three), len(losses))
    assert losses[:shortest] == losses_of_three[:shortest], "losses differ"
    print(f"two pipelines on four machines: {two:.3f} steps a second cut behind two blocks, {three:.3f} behind three")
    print(f"three and two machines: {pools:.3f}, {pools / most:.2f} of the faster, with a quarter more machines")
    print(f"the first {shortest} losses with the same cut: equal")


if __name__ == "__main__":
    sys.exit(main())

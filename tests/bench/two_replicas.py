#!/usr/bin/env python3
"""Two replicas on this machine, of one thread each, beside PyTorch's DistributedDataParallel over gloo: samples a second.

usage: two_replicas.py THINWIRE CIFAR10_DIR --torch PYTHON [--width W] [--batch N] [--pairs P] [--steps S]

A ResNet-18 on CIFAR-10, uncut, batch N in all, SGD with momentum, nothing compressed. Both exchange fp32 gradients over
loopback TCP. Runs alternate; of each the median step counts, without the first five. --rank and --store are for the
processes that this script starts by itself.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
REPLICAS = 2
SKIPPED_STEPS = 5
PATIENCE_SECONDS = 900


def torch_rank(args):
    """The steps of one process of PyTorch; images are random, as time is what counts."""
    sys.path.insert(0, str(HERE))
    import torch  # pylint: disable=import-outside-toplevel
    import torch.distributed as dist  # pylint: disable=import-outside-toplevel
    from resnet import CifarResNet18  # pylint: disable=import-outside-toplevel
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo", init_method=f"tcp://{args.store}", rank=args.rank, world_size=REPLICAS)
    network = CifarResNet18(args.width).to(memory_format=torch.channels_last)
    network = torch.nn.parallel.DistributedDataParallel(network, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(network.parameters(), 0.01, 0.9, weight_decay=5e-4)
    samples = args.batch // REPLICAS
    images = (torch.rand(samples, 3, 32, 32) * 2 - 1).contiguous(memory_format=torch.channels_last)
    labels = torch.arange(samples) % 10
    seconds = []
    for _ in range(args.steps):
        since = time.monotonic()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(images), labels).backward()
        optimizer.step()
        seconds.append(time.monotonic() - since)
    dist.barrier()
    if args.rank == 0:
        print(json.dumps({"torch": torch.__version__, "seconds": seconds}))


def by_torch(args):
    """PyTorch's version and its median step."""
    store = f"127.0.0.1:{20000 + os.getpid() % 10000}"
    ranks = [subprocess.Popen([args.torch, __file__, args.thinwire, args.cifar10, "--torch", args.torch, "--width", str(args.width),
                               "--batch", str(args.batch), "--steps", str(args.steps), "--rank", str(rank), "--store", store],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for rank in range(REPLICAS)]
    try:
        report = json.loads(ranks[0].communicate(timeout=PATIENCE_SECONDS)[0])
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    return report["torch"], statistics.median(report["seconds"][SKIPPED_STEPS:])


def by_thinwire(args):
    """The median step of two carriers of one stage."""
    settings = {"data.dir": args.cifar10, "data.verify": "false", "data.limit": args.batch * args.steps, "data.batch_size": args.batch,
                "data.test_limit": 10, "data.augment": "none", "model.width": args.width, "pipeline.cuts": "[]", "pipeline.stages": 1,
                "pipeline.threads": 1, "pipeline.microbatches": 1, "pipeline.transport": "tcp",
                "replicas": "{count: 2, digest_every: 0}", "epochs": 1,
                "evaluation.compressed": "false", "evaluation.uncompressed": "false", "metrics.error_every": 0,
                "checkpoint.every_epochs": 0}
    words = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([args.thinwire, "run", ROOT / "experiments/cifar10/resnet18-w16.yaml", "--carriers", str(REPLICAS), "--quiet",
                        "--overwrite", "--out", folder, *words], check=True, timeout=PATIENCE_SECONDS)
        lines = [json.loads(line) for line in pathlib.Path(folder, "metrics.jsonl").read_text().splitlines()]
    return statistics.median([line["seconds"] for line in lines if line["type"] == "step"][SKIPPED_STEPS:])


def main():
    """Pairs of runs, and the median of their ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("thinwire")
    parser.add_argument("cifar10")
    parser.add_argument("--torch", required=True, help="an interpreter that has PyTorch")
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--batch", type=int, default=100, help="of both replicas, even")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--rank", type=int)
    parser.add_argument("--store")
    args = parser.parse_args()
    if args.rank is not None:
        return torch_rank(args)
    if args.batch % REPLICAS:
        parser.error(f"--batch {args.batch}, want an even number")
    args.thinwire, args.cifar10 = (str(pathlib.Path(path).resolve()) for path in (args.thinwire, args.cifar10))
    print("| pair | DistributedDataParallel, samples/s | two carriers, samples/s | ratio |\n|---|---|---|---|", flush=True)
    ratios = []
    for pair in range(args.pairs):
        version, theirs = by_torch(args)
        ours = by_thinwire(args)
        ratios.append(theirs / ours)
        print(f"| {pair + 1} | {args.batch / theirs:.0f} | {args.batch / ours:.0f} | {ratios[-1]:.2f} |", flush=True)
    print(f"PyTorch {version}; median ratio {statistics.median(ratios):.2f}; load {os.getloadavg()[0]:.1f}; {time.strftime('%F')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
"""Training speed of CIFAR ResNet-18 in PyTorch: forward, backward, SGD. The counterpart of
tests/bench/step_bench.cc, with the same options and the same line of JSON."""
import argparse
import contextlib
import json
import os
import statistics
import sys
import time

import torch
from torch.nn import functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from resnet import CifarResNet18  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warmup", type=int, default=2)
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    model = CifarResNet18(args.width).to(memory_format=torch.channels_last).train()
    images = torch.rand(args.batch, 3, 32, 32).mul_(2).sub_(1)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.arange(args.batch) % 10
    optimizer = torch.optim.SGD(model.parameters(), 0.01, 0.9, weight_decay=5e-4)
    bf16 = args.precision == "bf16"

    seconds, cpu_seconds = [], []
    for _ in range(args.warmup + args.steps):
        start, cpu_start = time.perf_counter(), time.process_time()
        with torch.autocast("cpu", torch.bfloat16) if bf16 else contextlib.nullcontext():
            loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
        cpu_seconds.append(time.process_time() - cpu_start)
    median = statistics.median(seconds[args.warmup:])
    print(json.dumps({"width": args.width, "batch": args.batch, "precision": args.precision,
                      "threads": torch.get_num_threads(), "torch": torch.__version__,
                      "step_seconds": median,
                      "step_cpu_seconds": statistics.median(cpu_seconds[args.warmup:]),
                      "images_per_second": args.batch / median}))


if __name__ == "__main__":
    main()

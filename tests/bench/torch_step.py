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


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--precision", choices=["fp32", "tf32", "bf16"], default="fp32")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    parser.add_argument("--compile", default="", help="a mode of torch.compile, e.g. max-autotune")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warmup", type=int, default=2)
    return parser.parse_args()


def new_step(args):
    """A function that runs one training step; what it submits to a GPU may still run."""
    device = torch.device(args.device)
    torch.backends.cuda.matmul.allow_tf32 = args.precision == "tf32"
    torch.backends.cudnn.allow_tf32 = args.precision == "tf32"
    torch.backends.cudnn.benchmark = True
    model = CifarResNet18(args.width).to(device, memory_format=torch.channels_last).train()
    images = torch.rand(args.batch, 3, 32, 32, device=device).mul_(2).sub_(1)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.arange(args.batch, device=device) % 10
    fused = {"fused": True} if device.type == "cuda" else {}  # unknown to old versions
    optimizer = torch.optim.SGD(model.parameters(), 0.01, 0.9, weight_decay=5e-4, **fused)
    forward = torch.compile(model, mode=args.compile) if args.compile else model
    bf16 = args.precision == "bf16"

    def step():
        with torch.autocast(device.type, torch.bfloat16) if bf16 else contextlib.nullcontext():
            loss = F.cross_entropy(forward(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step


def main():
    args = parse_arguments()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    wait = torch.cuda.synchronize if args.device.startswith("cuda") else lambda: None
    step = new_step(args)
    seconds, cpu_seconds = [], []
    for _ in range(args.warmup + args.steps):
        start, cpu_start = time.perf_counter(), time.process_time()
        step()
        wait()
        seconds.append(time.perf_counter() - start)
        cpu_seconds.append(time.process_time() - cpu_start)
    median = statistics.median(seconds[args.warmup:])
    print(json.dumps({"width": args.width, "batch": args.batch, "precision": args.precision,
                      "device": args.device, "compile": args.compile,
                      "threads": torch.get_num_threads(), "torch": torch.__version__,
                      "step_seconds": median,
                      "step_cpu_seconds": statistics.median(cpu_seconds[args.warmup:]),
                      "images_per_second": args.batch / median}))


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""Training speed of a CIFAR ResNet-18 or a GPT-2 in PyTorch: forward, backward, update. The
counterpart of tests/bench/step_bench.cc, with the same options and the same line of JSON."""
import argparse
import contextlib
import json
import os
import resource
import statistics
import sys
import time

import torch
from torch.nn import functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpt2 import Gpt2  # noqa: E402
from resnet import CifarResNet18  # noqa: E402


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=["resnet18", "gpt2"], default="resnet18")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--vocabulary", type=int, default=65)
    parser.add_argument("--precision", choices=["fp32", "tf32", "bf16"], default="fp32")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    parser.add_argument("--compile", default="", help="a mode of torch.compile, e.g. max-autotune")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warmup", type=int, default=2)
    return parser.parse_args()


def resnet18(args, device):
    """Network, input, labels and optimizer of image classification; channels-last."""
    model = CifarResNet18(args.width).to(device, memory_format=torch.channels_last)
    images = torch.rand(args.batch, 3, 32, 32, device=device).mul_(2).sub_(1)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.arange(args.batch, device=device) % 10
    optimizer = torch.optim.SGD(model.parameters(), 0.01, 0.9, weight_decay=5e-4, **fused(device))
    return model, images, labels, optimizer


def gpt2(args, device):
    """The same of a language model, its labels row by row."""
    model = Gpt2(args.layers, args.heads, args.width, args.context, args.vocabulary).to(device)
    ids = torch.randint(args.vocabulary, (args.batch, args.context), device=device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.1, **fused(device))
    return model, ids, ids.roll(1, 1).flatten(), optimizer


def fused(device):
    """One kernel for all parameters, where this version has it for the device."""
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    return {"fused": True} if version >= ((2, 0) if device.type == "cuda" else (2, 4)) else {}


def new_step(args):
    """A function that runs one training step; what it submits to a GPU may still run."""
    device = torch.device(args.device)
    torch.backends.cuda.matmul.allow_tf32 = args.precision == "tf32"
    torch.backends.cudnn.allow_tf32 = args.precision == "tf32"
    torch.backends.cudnn.benchmark = True
    model, inputs, labels, optimizer = {"resnet18": resnet18, "gpt2": gpt2}[args.model](args, device)
    model.train()
    bf16 = args.precision == "bf16"

    def loss_of(inputs, labels):
        logits = model(inputs)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), labels)

    forward = torch.compile(loss_of, mode=args.compile) if args.compile else loss_of

    def step():
        with torch.autocast(device.type, torch.bfloat16) if bf16 else contextlib.nullcontext():
            loss = forward(inputs, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if args.model == "gpt2":
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
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
    unit, rows = ("tokens", args.context) if args.model == "gpt2" else ("images", 1)
    print(json.dumps({"model": args.model, "width": args.width, "batch": args.batch, "precision": args.precision,
                      "device": args.device, "compile": args.compile,
                      "threads": torch.get_num_threads(), "torch": torch.__version__,
                      "step_seconds": median,
                      "step_cpu_seconds": statistics.median(cpu_seconds[args.warmup:]),
                      f"{unit}_per_second": args.batch * rows / median,
                      "host_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


if __name__ == "__main__":
    main()

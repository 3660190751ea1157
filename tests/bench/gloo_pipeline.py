#!/usr/bin/python3
"""One stage of the pipeline that people write by hand today: a CIFAR ResNet-18 in four processes of PyTorch
with gloo, 1F1B, cut behind layer1, layer2 and layer3, and a codec as a hook around what is sent.

usage: gloo_pipeline.py --rank R --store HOST:PORT [--codec none|uniform4] [--microbatches M] [--steps N] [--width W]

All receives of a step are posted at its begin and all sends are asynchronous, so that links and computation
overlap. Images are random, the same in each step: time is what counts. Rank 0 prints a line of JSON with the
seconds of each step, rank 3 one with the losses.
"""
import argparse
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from resnet import CifarResNet18  # noqa: E402

STAGES = 4
BATCH = 100
LEVELS = 15  # of four bits


class Whole:
    """No codec: fp32."""

    @staticmethod
    def buffer(shape):
        return torch.empty(shape)

    @staticmethod
    def encode(x):
        return x.contiguous()

    @staticmethod
    def decode(message, shape):
        return message


class Uniform4:
    """Codes of four bits between the minimum and the maximum, two in a byte, behind minimum and step."""

    @staticmethod
    def buffer(shape):
        return torch.empty(8 + torch.Size(shape).numel() // 2, dtype=torch.uint8)

    @staticmethod
    def encode(x):
        low, high = torch.aminmax(x)
        step = torch.clamp((high - low) / LEVELS, min=1e-30)
        codes = ((x.contiguous().flatten() - low) / step).round_().to(torch.uint8)
        return torch.cat([torch.stack([low, step]).view(torch.uint8), codes[0::2] | (codes[1::2] << 4)])

    @staticmethod
    def decode(message, shape):
        low, step = message[:8].view(torch.float32)
        codes = torch.stack([message[8:] & 15, message[8:] >> 4], dim=1).flatten()
        return (codes.float() * step + low).view(shape)


class Head(nn.Module):
    """What is before the first cut."""

    def __init__(self, network):
        super().__init__()
        self.conv1, self.bn1, self.layer1 = network.conv1, network.bn1, network.layer1

    def forward(self, x):
        return self.layer1(F.relu(self.bn1(self.conv1(x)), inplace=True))


class Tail(nn.Module):
    """What is behind the last cut."""

    def __init__(self, network):
        super().__init__()
        self.layer4, self.fc = network.layer4, network.fc

    def forward(self, x):
        return self.fc(F.adaptive_avg_pool2d(self.layer4(x), 1).flatten(1))


def part_of(network, rank):
    """The layers of a stage."""
    return [Head(network), network.layer2, network.layer3, Tail(network)][rank].to(memory_format=torch.channels_last)


class Stage:
    """A rank's layers and its messages. Tensors cross cuts as (samples, height, width, channels)."""

    def __init__(self, args):
        self.rank, self.microbatches = args.rank, args.microbatches
        self.codec = {"none": Whole, "uniform4": Uniform4}[args.codec]
        self.layers = part_of(CifarResNet18(args.width), args.rank)
        self.optimizer = torch.optim.SGD(self.layers.parameters(), 0.01, 0.9, weight_decay=5e-4)
        samples = BATCH // args.microbatches
        self.images = (torch.rand(samples, 3, 32, 32) * 2 - 1).contiguous(memory_format=torch.channels_last)
        self.labels = torch.arange(samples) % 10
        # Of what crosses cut c, c = 0, 1, 2.
        self.shapes = [(samples, 32 >> c, 32 >> c, args.width << c) for c in range(STAGES - 1)]

    def receive(self, source, shape):
        """Posts one receive for each microbatch."""
        buffers = [self.codec.buffer(shape) for _ in range(self.microbatches)]
        return [(buffer, dist.irecv(buffer, source, tag=m)) for m, buffer in enumerate(buffers)]

    def send(self, x, to, m):
        message = self.codec.encode(x.detach().permute(0, 2, 3, 1))
        self.sent.append((message, dist.isend(message, to, tag=m)))

    def take(self, received, shape):
        message, work = received
        work.wait()
        return self.codec.decode(message, shape).permute(0, 3, 1, 2)

    def forward(self, m):
        x = self.images
        if self.rank > 0:
            x = self.take(self.activations[m], self.shapes[self.rank - 1]).requires_grad_()
        y = self.layers(x)
        if self.rank < STAGES - 1:
            self.send(y, self.rank + 1, m)
        else:
            y = F.cross_entropy(y, self.labels) / self.microbatches
            self.loss += y.item()
        self.made[m] = (x, y)

    def backward(self, m):
        x, y = self.made.pop(m)
        y.backward(self.take(self.gradients[m], self.shapes[self.rank]) if self.rank < STAGES - 1 else None)
        if self.rank > 0:
            self.send(x.grad, self.rank - 1, m)

    def step(self):
        """One batch by 1F1B; the loss on the last rank."""
        self.sent, self.made, self.loss = [], {}, 0.0
        self.activations = self.receive(self.rank - 1, self.shapes[self.rank - 1]) if self.rank > 0 else []
        self.gradients = self.receive(self.rank + 1, self.shapes[self.rank]) if self.rank < STAGES - 1 else []
        self.optimizer.zero_grad()
        ahead = min(STAGES - 1 - self.rank, self.microbatches)
        for m in range(ahead):
            self.forward(m)
        for m in range(self.microbatches):
            if m + ahead < self.microbatches:
                self.forward(m + ahead)
            self.backward(m)
        for _, work in self.sent:
            work.wait()
        self.optimizer.step()
        return self.loss


def main():
    """All steps of one rank."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--store", required=True, help="where rank 0 listens, HOST:PORT")
    parser.add_argument("--codec", choices=["none", "uniform4"], default="none")
    parser.add_argument("--microbatches", type=int, default=1, help="a divisor of the batch of 100")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--width", type=int, default=16)
    args = parser.parse_args()
    if BATCH % args.microbatches:
        parser.error(f"--microbatches {args.microbatches}, want a divisor of {BATCH}")
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo", init_method=f"tcp://{args.store}", rank=args.rank, world_size=STAGES)
    stage = Stage(args)
    seconds, losses = [], []
    for _ in range(args.steps):
        since = time.monotonic()
        losses.append(stage.step())
        seconds.append(time.monotonic() - since)
    dist.barrier()
    if args.rank == 0:
        print(json.dumps({"torch": torch.__version__, "seconds": seconds}))
    if args.rank == STAGES - 1:
        print(json.dumps({"losses": losses}), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())

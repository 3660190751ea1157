#!/usr/bin/env python3
"""Why compressed activations disturb a gradient more than compressed gradients do: PyTorch's word.

An untrained residual network of CIFAR shape on random images, cut behind three groups of blocks.
Prints ||g - g0|| / ||g0|| of its parameter gradient when what crosses the cuts is rounded forward or
backward, with ReLU and with two smooth activations. Needs PyTorch alone; half a minute on one core.

usage: probe_in_pytorch.py
"""
import torch
import torch.nn.functional as functional
from torch import nn

WIDTH, BATCH, CUTS = 16, 50, (1, 3, 5)


class Block(nn.Module):
    def __init__(self, channels_in, channels, stride, activation):
        super().__init__()
        self.activation = activation
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.shortcut = nn.Identity()
        if stride > 1:
            self.shortcut = nn.Sequential(nn.Conv2d(channels_in, channels, 1, stride, bias=False),
                                          nn.BatchNorm2d(channels))

    def forward(self, x):
        y = self.activation(self.bn1(self.conv1(x)))
        return self.activation(self.bn2(self.conv2(y)) + self.shortcut(x))


class Cut(torch.autograd.Function):
    """What crosses: activations through `forward_codec`, gradients through `backward_codec`."""

    @staticmethod
    def forward(context, x, forward_codec, backward_codec):
        context.codec = backward_codec
        return forward_codec(x)

    @staticmethod
    def backward(context, dy):
        return context.codec(dy), None, None


class Network(nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.activation = activation
        self.stem = nn.Sequential(nn.Conv2d(3, WIDTH, 3, 1, 1, bias=False), nn.BatchNorm2d(WIDTH))
        self.blocks = nn.ModuleList()
        channels_in = WIDTH
        for group in range(4):
            for stride in (2 if group else 1, 1):
                channels = WIDTH << group
                self.blocks.append(Block(channels_in, channels, stride, activation))
                channels_in = channels
        self.head = nn.Linear(channels_in, 10)

    def gradient(self, images, labels, forward_codec, backward_codec):
        self.zero_grad()
        x = self.activation(self.stem(images))
        for i, block in enumerate(self.blocks):
            x = block(x)
            if i in CUTS:
                x = Cut.apply(x, forward_codec, backward_codec)
        functional.cross_entropy(self.head(x.mean((2, 3))), labels).backward()
        return torch.cat([p.grad.flatten() for p in self.parameters()])


def exact(x):
    return x.view_as(x)


def fp16(x):
    return x.half().float()


def uniform(bits):
    def codec(x):
        low, high, levels = x.min(), x.max(), 2**bits - 1
        return torch.round((x - low) / (high - low) * levels) / levels * (high - low) + low
    return codec


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    images, labels = torch.randn(BATCH, 3, 32, 32), torch.randint(0, 10, (BATCH,))
    codecs = {"fp16": fp16} | {f"uniform {bits}": uniform(bits) for bits in (8, 6, 4, 2)}
    print(f"{'activation':12} {'codec':10} {'forward':>9} {'backward':>9}")
    for name, activation in (("relu", functional.relu), ("gelu", functional.gelu),
                             ("softplus", lambda x: functional.softplus(x, beta=10))):
        network = Network(activation)
        reference = network.gradient(images, labels, exact, exact)
        for codec_name, codec in codecs.items():
            errors = [((network.gradient(images, labels, *pair) - reference).norm()
                       / reference.norm()).item() for pair in ((codec, exact), (exact, codec))]
            print(f"{name:12} {codec_name:10} {errors[0]:9.5f} {errors[1]:9.5f}", flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""Writes llama3_tiny, qwen3_tiny and mistral_tiny.safetensors (transformer_parity_test.cc).

What PyTorch makes of three tiny models that are Llamas but for what newer ones have, with Hugging
Face's names and layouts. llama3: rotary frequencies scaled as Llama 3.1's, heads wider than
width / heads, biases of all linear layers. qwen3: a norm of each head, and a tied head. mistral: a
window of attention. Tensors as in make_language_fixtures.py, which has the rest of a Llama; without
Muon. Run once, with PyTorch 2.15; the results are committed.
"""
import math
import os

import torch
from torch import nn
from torch.nn import functional

import make_language_fixtures as plain
from make_fixtures import save

HEAD_SIZE = 12  # the width has 32 / 4
THETA = 10000.0
FACTOR, LOW, HIGH, ORIGINAL = 8.0, 1.0, 4.0, 64
WINDOW = 5  # positions that one sees in mistral, itself included


def scaled(frequencies):
    """Llama 3.1's: planes of long waves are slowed down, those of short waves are not."""
    waves = 2 * math.pi / frequencies
    kept = ((ORIGINAL / waves - LOW) / (HIGH - LOW)).clamp(0, 1)
    return (1 - kept) * frequencies / FACTOR + kept * frequencies


def rotate(x, is_scaled):
    half = HEAD_SIZE // 2
    frequencies = THETA ** (-torch.arange(half, dtype=torch.float32) / half)
    if is_scaled:
        frequencies = scaled(frequencies)
    angles = torch.outer(torch.arange(plain.POSITIONS, dtype=torch.float32), frequencies)
    cos, sin = torch.cat([angles.cos()] * 2, -1), torch.cat([angles.sin()] * 2, -1)
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


def split_heads(x, heads):
    return x.view(plain.BATCH, plain.POSITIONS, heads, HEAD_SIZE).transpose(1, 2)


class HeadNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HEAD_SIZE))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Attention(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.name, bias = name, name == "llama3"
        queries, keys = plain.HEADS * HEAD_SIZE, plain.KV_HEADS * HEAD_SIZE
        self.q_proj = nn.Linear(plain.WIDTH, queries, bias=bias)
        self.k_proj = nn.Linear(plain.WIDTH, keys, bias=bias)
        self.v_proj = nn.Linear(plain.WIDTH, keys, bias=bias)
        self.o_proj = nn.Linear(queries, plain.WIDTH, bias=bias)
        if name == "qwen3":
            self.q_norm, self.k_norm = HeadNorm(), HeadNorm()

    def forward(self, x):
        q, k = split_heads(self.q_proj(x), plain.HEADS), split_heads(self.k_proj(x), plain.KV_HEADS)
        if self.name == "qwen3":
            q, k = self.q_norm(q), self.k_norm(k)
        q, k = (rotate(part, self.name == "llama3") for part in (q, k))
        v = split_heads(self.v_proj(x), plain.KV_HEADS)
        k, v = (part.repeat_interleave(plain.HEADS // plain.KV_HEADS, dim=1) for part in (k, v))
        scores = q @ k.transpose(2, 3) / math.sqrt(HEAD_SIZE)
        mask = torch.ones(plain.POSITIONS, plain.POSITIONS, dtype=torch.bool).tril()
        if self.name == "mistral":
            mask = mask.triu(1 - WINDOW)
        y = scores.masked_fill(~mask, -math.inf).softmax(dim=-1) @ v
        return self.o_proj(y.transpose(1, 2).reshape(plain.BATCH, plain.POSITIONS, -1))


class Mlp(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.gate_proj = nn.Linear(plain.WIDTH, plain.HIDDEN, bias=bias)
        self.up_proj = nn.Linear(plain.WIDTH, plain.HIDDEN, bias=bias)
        self.down_proj = nn.Linear(plain.HIDDEN, plain.WIDTH, bias=bias)

    def forward(self, x):
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(plain.LlamaBlock):
    def __init__(self, name):
        super().__init__()
        self.self_attn, self.mlp = Attention(name), Mlp(bias=name == "llama3")


class Model(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.model = nn.ModuleDict({
            "embed_tokens": nn.Embedding(plain.VOCABULARY, plain.WIDTH),
            "layers": nn.ModuleList(Block(name) for _ in range(plain.LAYERS)),
            "norm": plain.RmsNorm()})
        if name != "qwen3":
            self.lm_head = nn.Linear(plain.WIDTH, plain.VOCABULARY, bias=False)

    def forward(self, ids):
        x = self.model["embed_tokens"](ids)
        for block in self.model["layers"]:
            x = block(x)
        x = self.model["norm"](x)
        return self.lm_head(x) if hasattr(self, "lm_head") else x @ self.model["embed_tokens"].weight.T


if __name__ == "__main__":
    for name in ("llama3", "qwen3", "mistral"):
        torch.manual_seed(1)
        tensors = plain.make(Model(name))
        print(name, tensors["losses"].tolist(), tensors["norms"].tolist())
        save(tensors, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                   name + "_tiny.safetensors"))

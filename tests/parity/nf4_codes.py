"""Holds the rule by which nn/weight_codes.cc chooses NF4 codes to bitsandbytes, and prints the numbers of
nn/weight_codes_test.cc.

usage: nf4_codes.py        with numpy, torch and bitsandbytes (0.50.2) installed, as from PyPI; no GPU
"""

import bitsandbytes.functional as bnb
import numpy as np
import torch

BLOCK = 64
LEVELS = bnb.get_4bit_type("nf4", device="cpu").numpy()
MIDDLES = (LEVELS[:-1] + LEVELS[1:]) / np.float32(2)


def fixture():
    """Values of the test: a block of middles between levels, one of zeros, one of small numbers, and others."""
    ties = np.concatenate([MIDDLES, np.nextafter(MIDDLES, np.float32(2)), np.nextafter(MIDDLES, np.float32(-2)), [1]])
    ties = np.concatenate([ties, np.zeros(BLOCK - ties.size)]).astype(np.float32)
    spread = (np.arange(5 * BLOCK, dtype=np.uint64) * 2654435761 % 2**32).astype(np.float32) / np.float32(2**31) - 1
    return np.concatenate([ties, 0 * ties, np.float32(2e-38) * ties, np.float32(0.37) * spread.astype(np.float32)])


def codes_by_rule(values):
    """Codes, one a value, and scales of whole blocks of fp32 values."""
    blocks = values.reshape(-1, BLOCK)
    scales = np.abs(blocks).max(axis=1)
    factors = np.float32(1) / np.maximum(scales, np.float32(1e-38))
    scaled = np.clip(blocks * factors[:, None], -1, 1)
    return np.searchsorted(MIDDLES, scaled.reshape(-1), side="left").astype(np.uint8), scales


def codes_of_bitsandbytes(values):
    packed, state = bnb.quantize_4bit(torch.from_numpy(values), quant_type="nf4", blocksize=BLOCK)
    packed = packed.numpy().reshape(-1)
    return np.stack([packed >> 4, packed & 15], axis=1).reshape(-1), state, packed


def check(name, values):
    codes, state, packed = codes_of_bitsandbytes(values)
    own, scales = codes_by_rule(values)
    expanded = LEVELS[own].reshape(-1, BLOCK) * scales[:, None]
    theirs = bnb.dequantize_4bit(torch.from_numpy(packed).reshape(-1, 1), state).numpy().reshape(-1, BLOCK)
    again, _ = codes_by_rule(expanded.reshape(-1))
    for what, differ in (
        ("codes", codes != own),
        ("scales", state.absmax.numpy() != scales),
        ("expanded values", theirs != expanded),
        ("codes of expanded values", again != own),
    ):
        print(f"{name}: {values.size} values, {what}: {int(differ.sum())} differ")


values = fixture()
check("fixture", values)
random = np.random.default_rng(1)
check("normal", random.normal(size=1 << 22).astype(np.float32))
scales = np.repeat(np.exp(random.normal(scale=15, size=1 << 14)), BLOCK)
check("of all sizes", (random.normal(size=scales.size) * scales).astype(np.float32))
near = np.tile(np.concatenate([MIDDLES, [1]]), (1 << 14, 4)).astype(np.float32)
near *= random.uniform(0.5, 2, size=(1 << 14, 1)).astype(np.float32)
check("near ties", near.reshape(-1))
_, state, packed = codes_of_bitsandbytes(values)
print("codes:", packed.tobytes().hex())
print("scales:", ", ".join(float(scale).hex() for scale in state.absmax))

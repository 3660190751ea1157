"""Holds the codes of nn/moment_codes.h to bitsandbytes' tables, trains with them by numpy, and prints the numbers of
nn/moment_codes_test.cc and nn/cpu/coded_adamw_test.cc.

usage: moment_codes.py        with numpy, torch and bitsandbytes (0.50.2) installed, as from PyPI; no GPU
"""

import bitsandbytes.functional as bnb
import numpy as np

BLOCK = 256
ELEMENTS = 2 * BLOCK + 89
F = np.float32


def numbers_of(signed):
    """The numbers of all codes: evenly spaced in each decade, twice as many as in the one below."""
    numbers = [0.0, 1.0]
    for decade in range(7):
        count = (1 if signed else 2) << decade
        middles = 10.0 ** (decade - 6) * (0.1 + 0.9 * (np.arange(count) + 0.5) / count)
        numbers += list(middles) + (list(-middles) if signed else [])
    return np.sort(np.array(numbers)).astype(F)


def middles_of(numbers, signed):
    middles = (numbers[:-1] + numbers[1:]) / F(2)
    if not signed:
        middles[0] = 0
    return middles


TABLES = [(numbers_of(signed), middles_of(numbers_of(signed), signed)) for signed in (True, False)]


def quantized(values, table):
    """Codes and scales: of each block the value of the largest magnitude, of two alike the positive one."""
    numbers, middles = table
    codes, scales = [], []
    for first in range(0, values.size, BLOCK):
        block = values[first : first + BLOCK]
        scale = block.max() if block.max() >= -block.min() else block.min()
        scale = F(0) if abs(scale) < 2.0**-100 else scale
        scales.append(scale)
        codes.append(np.searchsorted(middles, block / scale, side="left") if scale != 0 else np.zeros(block.size, int))
    return np.concatenate(codes), np.array(scales, F)


def expanded(codes, scales, table):
    return table[0][codes] * np.repeat(scales, BLOCK)[: codes.size]


def spread(first):
    """Numbers in [-1, 1) that any program can make."""
    at = np.arange(first, first + ELEMENTS, dtype=np.uint64)
    return (at * np.uint64(2654435761) % np.uint64(2**32) >> np.uint64(8)).astype(F) / F(2**23) - F(1)


def digest(words):
    total = 0
    for word in words:
        total = (total * 31 + int(word)) % 2**32
    return total


def train():
    """Ten steps, each operation rounded by itself."""
    lr, beta1, beta2, epsilon, decay = 0.01, 0.9, 0.999, 1e-8, float(F(0.1))
    value = spread(0)
    states = [quantized(0 * value, table) for table in TABLES]
    for step in range(1, 11):
        gradient = spread(ELEMENTS * step) * np.exp2(-(np.arange(ELEMENTS) % 20)).astype(F)
        mean, square = (expanded(*state, table) for state, table in zip(states, TABLES))
        mean = F(beta1) * mean + F(1 - beta1) * gradient
        square = F(beta2) * square + F(1 - beta2) * (gradient * gradient)
        deviation = np.sqrt(square) * F(1 / np.sqrt(1 - beta2**step))
        update = F(lr / (1 - beta1**step)) * mean / (deviation + F(epsilon))
        value = F(1 - lr * decay) * value - update
        states = [quantized(new, table) for new, table in zip((mean, square), TABLES)]
    print("values:", digest(value.view(np.uint32)))
    for name, (codes, scales) in zip(("mean", "square"), states):
        print(f"{name}: codes {digest(codes)}, scales {digest(scales.view(np.uint32))}")


for signed, (numbers, middles) in zip((True, False), TABLES):
    theirs = bnb.create_dynamic_map(signed=signed).numpy()
    apart = np.abs(numbers.view(np.int32).astype(np.int64) - theirs.view(np.int32)).max()
    print(f"signed {signed}: the numbers are at most {apart} units in the last place from bitsandbytes'")
    print("every 17th:", ", ".join(float(number).hex() for number in theirs[::17]))
    values = np.random.default_rng(1).normal(size=1 << 16).astype(F) ** (1 if signed else 2)
    codes, scales = quantized(values, (numbers, middles))
    again, scales_again = quantized(expanded(codes, scales, (numbers, middles)), (numbers, middles))
    print(f"codes of expanded values: {(codes != again).sum()} differ, scales: {(scales != scales_again).sum()}")
train()

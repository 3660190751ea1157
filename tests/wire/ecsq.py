"""The codec ecsq: whole steps of a multiple of each scope's root mean square."""

import math

import numpy as np

import scopes
import squares
import streams
from floats import F32, bf16_bits, bf16_values

ESCAPE = 255
MEANS = 4
LARGEST = F32(float.fromhex("0x1.FEp127"))


def _has_means(spec):
    return spec.rounding in ("nearest", "nearest_nonzero", "dead_zone", "rate_distortion") and spec.reconstruction == "mean"


def _step(x, spec):
    """bf16 bits of the step of one scope."""
    total = squares.total(x)
    if total == 0:
        return 0
    step = min(spec.step * math.sqrt(total / x.size), float(LARGEST))
    return max(int(bf16_bits(np.array([step], dtype=F32))[0]), 0x0080)


def _codes(y, spec, key):
    if spec.rounding == "nearest":
        return np.rint(y)
    if spec.rounding == "nearest_nonzero":
        return np.copysign(np.where(y == 0, F32(0), np.maximum(np.rint(np.abs(y)), F32(1))), y)
    if spec.rounding == "dead_zone":
        return np.copysign(np.floor(np.abs(y) + F32(1 / 3)), y)
    chance = streams.uniforms(key, y.size)
    if spec.rounding == "stochastic":
        return np.floor(y) + (chance < y - np.floor(y))
    return np.rint(y + (chance - F32(0.5)))


def _means(y, codes):
    """i8 of the magnitudes 1 to 4."""
    result = []
    for magnitude in range(1, MEANS + 1):
        there = np.abs(codes) == magnitude
        count = int(there.sum())
        parts = np.rint((np.abs(y[there]) - F32(magnitude)) * F32(2.0**16))
        total = int(parts.astype(np.int64).sum())
        rounded = (2 * abs(total) + 512 * count) // (1024 * count) if count else 0
        result.append(-rounded if total < 0 else rounded)
    return np.array(result, dtype=np.int8)


def encode(x, shape, spec, key):
    """Steps, key, means, bytes, escapes."""
    ids = scopes.of_elements(spec.scope, shape, spec.group)
    steps = np.array([_step(x[ids == s], spec) for s in range(scopes.number(ids))], dtype="<u2")
    step = bf16_values(steps)[ids]
    y = np.divide(x, step, out=np.zeros_like(x), where=step > 0)
    codes = np.where(step > 0, _codes(y, spec, key), 0).astype(np.int64)
    payload = steps.tobytes()
    if spec.rounding == "dither":
        payload += key.to_bytes(8, "little")
    if _has_means(spec):
        payload += _means(y, codes).tobytes()
    zigzag = np.where(codes < 0, -2 * codes - 1, 2 * codes)
    escaped = codes[zigzag >= ESCAPE].astype("<i4")
    return payload + np.minimum(zigzag, ESCAPE).astype(np.uint8).tobytes() + escaped.tobytes()


def decode(payload, shape, spec):
    """The inverse of encode."""
    ids = scopes.of_elements(spec.scope, shape, spec.group)
    count = scopes.number(ids)
    steps, payload = np.frombuffer(payload[: 2 * count], dtype="<u2"), payload[2 * count :]
    assert all(bits == 0 or 0x0080 <= bits < 0x7F80 for bits in steps), steps
    noise = np.zeros(ids.size, dtype=F32)
    if spec.rounding == "dither":
        noise = streams.uniforms(int.from_bytes(payload[:8], "little"), ids.size) - F32(0.5)
        payload = payload[8:]
    means = np.zeros(MEANS, dtype=F32)
    if _has_means(spec):
        means = np.frombuffer(payload[:MEANS], dtype=np.int8) * F32(2.0**-7)
        payload = payload[MEANS:]
    zigzag = np.frombuffer(payload[: ids.size], dtype=np.uint8).astype(np.int64)
    codes = np.where(zigzag % 2, -(zigzag + 1) // 2, zigzag // 2)
    codes[zigzag == ESCAPE] = np.frombuffer(payload[ids.size :], dtype="<i4")
    magnitude = np.abs(codes)
    table = np.concatenate([[F32(0)], means, [F32(0)]]).astype(F32)
    parts = magnitude.astype(F32) + table[np.minimum(magnitude, MEANS + 1)]
    with np.errstate(over="ignore"):
        x = (np.where(codes < 0, -parts, parts) - noise) * bf16_values(steps)[ids]
    return np.clip(x, -LARGEST, LARGEST)

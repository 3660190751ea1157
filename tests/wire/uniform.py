"""The codec uniform: evenly spaced levels over the range of each scope, perhaps rotated first."""

import math
import struct

import numpy as np

import fields
import scopes
import streams
from floats import F32, LARGEST_F16, f16_bits, f16_values, prescale_exponent

CONSTANT = -32768  # the exponent that announces a constant tensor


def _zero_and_divisor(spec):
    """Zero code, divisor, and the largest code."""
    half = 2 ** (spec.bits - 1)
    if spec.range == "min_max":
        return 0, 2**spec.bits - 1, 2**spec.bits - 1
    if spec.range == "max_abs":
        return half - 1, half - 1, 2 * half - 2
    return half, half, 2 * half - 1


def _min_max(values, spec):
    """Offset and range of one scope."""
    low, high = values.min() + F32(0), values.max() + F32(0)
    if spec.zero != "on_grid" or low == high:
        return low, high - low
    low, high = min(low, F32(0)), max(high, F32(0))
    divisor = 2**spec.bits - 1
    steps = F32(np.rint(float(-low) / float(high - low) * divisor))
    return F32(0) - steps * (F32(1) / F32(divisor)) * (high - low), high - low


def _lay_grid(x, ids, spec):
    """The bytes of the ranges, then offset and range of each scope as the decoder sees them."""
    parts = [x[ids == s] for s in range(scopes.number(ids))]
    if spec.range == "min_max":
        pairs = np.array([_min_max(p, spec) for p in parts], dtype="<f4").reshape(-1, 2)
        return pairs.tobytes(), pairs[:, 0], pairs[:, 1]
    largest = np.array([np.abs(p).max() for p in parts], dtype="<f4")
    offset = np.zeros_like(largest)
    if spec.range == "max_abs":
        return largest.tobytes(), offset, largest
    exponent = prescale_exponent(float(largest.max()) if parts else 0.0, LARGEST_F16)
    bits = f16_bits(largest, exponent)
    return struct.pack("<h", exponent) + bits.tobytes(), offset, f16_values(bits, exponent)


def _codes(x, offset, extent, spec, key):
    zero, divisor, largest = _zero_and_divisor(spec)
    lift = np.where(extent < F32(2.0**-60), F32(2.0**64), F32(1))
    inverse = np.divide(F32(divisor), extent * lift, out=np.zeros_like(extent), where=extent > 0)
    y = np.clip((x - offset) * lift * inverse, F32(-zero), F32(largest - zero))
    if spec.rounding == "nearest":
        rounded = np.rint(y)
    else:
        rounded = np.floor(y) + (streams.uniforms(key, x.size) < y - np.floor(y))
    return zero + rounded.astype(np.int64)


def _encode_plain(x, shape, spec, key):
    if spec.range == "fixed_point" and x.size and (x == x[0]).all():
        return struct.pack("<hf", CONSTANT, x[0] + F32(0))
    ids = scopes.of_elements(spec.scope, shape, spec.group)
    ranges, offset, extent = _lay_grid(x, ids, spec)
    return ranges + fields.pack(_codes(x, offset[ids], extent[ids], spec, key), spec.bits)


def _read_grid(payload, count, spec):
    """Offset and range of each of `count` scopes, and the bytes behind them."""
    if spec.range == "min_max":
        pairs = np.frombuffer(payload[: 8 * count], dtype="<f4").reshape(count, 2)
        return pairs[:, 0], pairs[:, 1], payload[8 * count :]
    if spec.range == "max_abs":
        extent = np.frombuffer(payload[: 4 * count], dtype="<f4")
        return np.zeros_like(extent), extent, payload[4 * count :]
    exponent = int.from_bytes(payload[:2], "little", signed=True)
    assert -113 <= exponent <= 126, f"exponent {exponent}"
    extent = f16_values(np.frombuffer(payload[2 : 2 + 2 * count], dtype="<u2"), exponent)
    return np.zeros_like(extent), extent, payload[2 + 2 * count :]


def _decode_plain(payload, shape, spec):
    count = int(np.prod(shape))
    if spec.range == "fixed_point" and payload[:2] == struct.pack("<h", CONSTANT):
        assert len(payload) == 6, f"a constant tensor of {len(payload)} bytes"
        return np.full(count, struct.unpack_from("<f", payload, 2)[0], dtype=F32)
    ids = scopes.of_elements(spec.scope, shape, spec.group)
    offset, extent, rest = _read_grid(payload, scopes.number(ids), spec)
    assert (extent >= 0).all() and np.isfinite(offset + extent).all()
    zero, divisor, largest = _zero_and_divisor(spec)
    codes = fields.unpack(rest, count, spec.bits)
    assert (codes <= largest).all(), f"code {codes.max()}, at most {largest}"
    step = F32(1) / F32(divisor)
    return (codes - zero).astype(F32) * step * extent[ids] + offset[ids]


def _hadamard(x, block):
    x, start = x.copy(), 0
    while start < x.size:
        run = block if x.size - start >= block else 1 << ((x.size - start).bit_length() - 1)
        half = 1
        while half < run:
            pairs = x[start : start + run].reshape(-1, 2, half)
            a, b = pairs[:, 0].copy(), pairs[:, 1].copy()
            pairs[:, 0], pairs[:, 1] = a + b, a - b
            half *= 2
        x[start : start + run] *= F32(1 / math.sqrt(run))
        start += run
    return x


def _signs(key, count):
    words = streams.numbers(key, (count + 31) // 32).astype("<u4")
    negative = np.unpackbits(words.view(np.uint8), bitorder="little")[:count]
    return np.where(negative, F32(-1), F32(1))


def encode(x, shape, spec, key):
    """The payload of x; `key` is the message's random key, None where no number is drawn."""
    if spec.rotation == "none":
        return _encode_plain(x, shape, spec, key)
    rotated = _hadamard(x * _signs(key, x.size), spec.rotation_block)
    plain = _encode_plain(rotated, shape, spec, ~key & streams.MASK)
    return struct.pack("<Q", key) + plain


def decode(payload, shape, spec):
    """The inverse of encode."""
    if spec.rotation == "none":
        return _decode_plain(payload, shape, spec)
    key = int.from_bytes(payload[:8], "little")
    rotated = _decode_plain(payload[8:], shape, spec)
    return _hadamard(rotated, spec.rotation_block) * _signs(key, rotated.size)

"""The codecs that round each element: none, bf16, fp16, fp8."""

import functools
import math

import numpy as np

from floats import (
    F32,
    LARGEST_BF16,
    LARGEST_F16,
    bf16_bits,
    bf16_values,
    f16_bits,
    f16_values,
    largest_finite,
    prescale_exponent,
    scaled,
)


def encode_none(x, dtype):
    """The elements in the tensor's own type."""
    return (x.astype("<f4") if dtype == "fp32" else bf16_bits(x).astype("<u2")).tobytes()


def decode_none(payload, count, dtype):
    """The inverse of encode_none."""
    if dtype == "fp32":
        return _exactly(np.frombuffer(payload, dtype="<f4"), count)
    return decode_bf16(payload, count)


def encode_bf16(x):
    """The upper half of each fp32, to nearest even."""
    return bf16_bits(x).astype("<u2").tobytes()


def encode_finite_bf16(x):
    """The same of kept values: what would round to infinity is the largest bf16."""
    bits = bf16_bits(x)
    infinite = (bits & np.uint16(0x7FFF)) > LARGEST_BF16
    return np.where(infinite, (bits & 0x8000) | LARGEST_BF16, bits).astype("<u2").tobytes()


def decode_bf16(payload, count):
    """The inverse of both."""
    return bf16_values(_exactly(np.frombuffer(payload, dtype="<u2"), count))


def encode_fp16(x):
    """The exponent and the scaled elements."""
    exponent = prescale_exponent(largest_finite(x), LARGEST_F16)
    return exponent, f16_bits(x, exponent).tobytes()


def decode_fp16(payload, count, exponent):
    """The elements behind the exponent."""
    assert -113 <= exponent <= 126, f"exponent {exponent}"
    return f16_values(_exactly(np.frombuffer(payload, dtype="<u2"), count), exponent)


@functools.lru_cache(maxsize=None)
def _fp8_values(fmt):
    """The finite values of the codes without a sign, ascending."""
    fraction_bits, bias, largest = {"e4m3": (3, 7, 0x7E), "e5m2": (2, 15, 0x7B)}[fmt]
    values = []
    for code in range(largest + 1):
        exponent, fraction = code >> fraction_bits, code & ((1 << fraction_bits) - 1)
        if exponent > 0:
            fraction += 1 << fraction_bits
        values.append(math.ldexp(fraction, max(exponent, 1) - bias - fraction_bits))
    return np.array(values)


def encode_fp8(x, fmt):
    """The exponent and the nearest codes, ties to the even one."""
    values = _fp8_values(fmt)
    exponent = prescale_exponent(largest_finite(x), values[-1])
    magnitude = np.abs(scaled(x, exponent))
    upper = np.clip(np.searchsorted(values, magnitude), 1, len(values) - 1)
    below, above = magnitude - values[upper - 1], values[upper] - magnitude
    code = np.where((above < below) | ((above == below) & (upper % 2 == 0)), upper, upper - 1)
    with np.errstate(over="ignore"):
        overflows = ~np.isfinite(scaled(values[code], -exponent).astype(F32))
    code = np.where(overflows, 0x77, code) | np.where(np.signbit(x), 0x80, 0)
    return exponent.to_bytes(2, "little", signed=True) + code.astype(np.uint8).tobytes()


def decode_fp8(payload, count, fmt):
    """The inverse of encode_fp8."""
    exponent = int.from_bytes(payload[:2], "little", signed=True)
    assert {"e4m3": -120, "e5m2": -113}[fmt] <= exponent <= 126, f"exponent {exponent}"
    codes = _exactly(np.frombuffer(payload[2:], dtype=np.uint8), count)
    values = _fp8_values(fmt)[codes & 0x7F]
    return scaled(np.where(codes & 0x80, -values, values), -exponent).astype(F32)


def _exactly(elements, count):
    assert len(elements) == count, f"{len(elements)} elements, want {count}"
    return elements

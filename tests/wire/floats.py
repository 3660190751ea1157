"""Roundings between fp32, bf16 and fp16, and the pre-scale exponent of a message."""

import math

import numpy as np

F32 = np.float32
LARGEST_F16 = 65504.0
LARGEST_BF16 = 0x7F7F


def bf16_bits(x):
    """fp32 rounded to bf16, to nearest even, as uint16. NaN stays NaN."""
    bits = x.astype(F32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))) >> np.uint64(16)
    quiet = (bits >> np.uint64(16)) | np.uint64(0x40)
    return np.where(np.isnan(x), quiet, rounded).astype(np.uint16)


def bf16_values(bits):
    """What bf16 numbers are in fp32."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(F32)


def round_to_bf16(x):
    """fp32 rounded to bf16 and back."""
    return bf16_values(bf16_bits(x))


def prescale_exponent(largest, limit, highest=126):
    """The largest e up to `highest` with largest 2^e <= limit; 0 if `largest` is 0."""
    if largest == 0:
        return 0
    exponent = math.frexp(limit)[1] - math.frexp(float(largest))[1]
    if math.ldexp(float(largest), exponent) > limit:
        exponent -= 1
    return min(exponent, highest)


def largest_finite(x):
    """The largest finite magnitude, 0 if there is none."""
    magnitudes = np.abs(x[np.isfinite(x)])
    return float(magnitudes.max()) if magnitudes.size else 0.0


def scaled(x, exponent):
    """x 2^exponent without rounding: every fp32 number times such a power is an fp64 number."""
    return np.ldexp(x.astype(np.float64), exponent)


def f16_bits(x, exponent):
    """fp16 of x 2^exponent, to nearest even; none that is finite decodes to infinity."""
    with np.errstate(over="ignore", invalid="ignore"):
        bits = scaled(x, exponent).astype(np.float16).view(np.uint16)
    overflowed = np.isfinite(x) & ~np.isfinite(f16_values(bits, exponent))
    bits = np.where(overflowed, (bits & np.uint16(0x8000)) | np.uint16(0x77FF), bits)
    sign = np.where(np.signbit(x), np.uint16(0x8000), np.uint16(0))
    return np.where(np.isnan(x), sign | np.uint16(0x7E00), bits).astype("<u2")


def f16_values(bits, exponent):
    """What fp16 numbers times 2^-exponent are in fp32."""
    with np.errstate(over="ignore", invalid="ignore"):
        return scaled(bits.view(np.float16), -exponent).astype(F32)

"""The codec blockwise8: an absolute maximum per block and a codebook of dynamic trees."""

import numpy as np

from floats import F32


def _codebook():
    positive = [
        F32(2 ** (i + 1) + 9 * (2 * j + 1)) / F32(2 ** (i + 1) * 10 ** (7 - i))
        for i in range(7)
        for j in range(2**i)
    ]
    positive = np.sort(np.array(positive, dtype=F32))
    return np.concatenate([-positive[::-1], [F32(0)], positive, [F32(1)]]).astype(F32)


CODEBOOK = _codebook()
_MIDDLES = (CODEBOOK[:-1].astype(np.float64) + CODEBOOK[1:].astype(np.float64)) / 2


def encode(x, block):
    """The maxima, then the nearest entries, the lower one in a tie."""
    starts = range(0, x.size, block)
    maxima = np.array([np.abs(x[s : s + block]).max() for s in starts], dtype="<f4")
    a = np.repeat(maxima, block)[: x.size]
    quotient = np.divide(x, a, out=np.zeros_like(x), where=a > 0)
    codes = np.where(a > 0, np.searchsorted(_MIDDLES, quotient.astype(np.float64)), 127)
    return maxima.tobytes() + codes.astype(np.uint8).tobytes()


def decode(payload, count, block):
    """Entry times maximum."""
    num_blocks = -(-count // block)
    maxima = np.frombuffer(payload[: 4 * num_blocks], dtype="<f4")
    assert np.isfinite(maxima).all() and not np.signbit(maxima).any()
    codes = np.frombuffer(payload[4 * num_blocks :], dtype=np.uint8)
    assert len(codes) == count, f"{len(codes)} codes, want {count}"
    return CODEBOOK[codes] * np.repeat(maxima, block)[:count]

"""Keys and random streams, as docs/wire.md defines them."""

import numpy as np

MASK = (1 << 64) - 1


def mix(word):
    """Spreads every bit of a 64-bit word over the word."""
    word = (word + 0x9E3779B97F4A7C15) & MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def named_key(seed, name):
    """The key of a seed and a name."""
    digest = 0xCBF29CE484222325
    for byte in name.encode():
        digest = ((digest ^ byte) * 0x100000001B3) & MASK
    return mix(mix(seed) ^ digest)


def event_key(key, first, second=0):
    """The key of one event of a key."""
    return mix((mix(key ^ mix(first)) + second) & MASK)


def blocks(key, counters):
    """Philox4x32-10: the four numbers of each counter, as the rows of an array."""
    counters = np.asarray(counters, dtype=np.uint64)
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    x0, x1 = counters & low, counters >> half
    x2, x3 = np.zeros_like(counters), np.zeros_like(counters)
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * x0
        p1 = np.uint64(0xCD9E8D57) * x2
        x0, x1, x2, x3 = (
            (p1 >> half) ^ x1 ^ np.uint64(k0),
            p1 & low,
            (p0 >> half) ^ x3 ^ np.uint64(k1),
            p0 & low,
        )
        k0 = (k0 + 0x9E3779B9) & 0xFFFFFFFF
        k1 = (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack([x0, x1, x2, x3], axis=-1).astype(np.uint32)


def numbers(key, count):
    """The first `count` 32-bit numbers of a key's stream."""
    return blocks(key, np.arange((count + 3) // 4)).reshape(-1)[:count]


def uniforms(key, count):
    """The upper 24 bits of the first `count` numbers, as fp32 in [0, 1)."""
    return (numbers(key, count) >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)

"""Fields of less than a byte, from the lowest bit of each byte on."""

import numpy as np


def byte_count(count, bits):
    """Bytes of `count` fields of `bits` bits."""
    return (count * bits + 7) // 8


def pack(numbers, bits):
    """The bytes of fields of `bits` bits; unused bits at the end are zero."""
    numbers = np.asarray(numbers, dtype=np.uint64)
    if bits == 0 or numbers.size == 0:
        return b""
    spread = (numbers[:, None] >> np.arange(bits, dtype=np.uint64)) & np.uint64(1)
    return np.packbits(spread.astype(np.uint8).reshape(-1), bitorder="little").tobytes()


def unpack(data, count, bits):
    """`count` fields of `bits` bits; what follows them in the last byte must be zero."""
    assert len(data) == byte_count(count, bits), f"{len(data)} bytes of {count} fields"
    if bits == 0 or count == 0:
        return np.zeros(count, dtype=np.int64)
    ones = np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little")
    assert not ones[count * bits :].any(), "unused bits are not zero"
    spread = ones[: count * bits].reshape(count, bits).astype(np.int64)
    return (spread << np.arange(bits)).sum(axis=1)

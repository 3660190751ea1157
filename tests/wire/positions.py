"""Where entries stand: ascending positions as a bitmap, packed, or as Rice-coded gaps."""

import numpy as np

import fields

BITMAP, PACKED, RICE = 0, 1, 2


def _width(count):
    """Bits of a position among `count`."""
    return (count - 1).bit_length() if count > 1 else 0


def _rice(positions, k):
    gaps = np.diff(positions, prepend=-1) - 1
    quotients = gaps >> k
    ones = np.cumsum(quotients + 1) - 1
    unary = np.zeros(int(ones[-1]) + 1 if len(ones) else 0, dtype=np.uint8)
    unary[ones] = 1
    remainders = fields.pack(gaps & ((1 << k) - 1), k)
    return remainders + np.packbits(unary, bitorder="little").tobytes()


def encode(positions, count):
    """The coding's number, its k, and its bytes: the shortest, the first of them in a tie."""
    bitmap = np.zeros(count, dtype=np.uint8)
    bitmap[positions] = 1
    choices = [
        (BITMAP, 0, np.packbits(bitmap, bitorder="little").tobytes()),
        (PACKED, 0, fields.pack(positions, _width(count))),
    ]
    if len(positions):
        highest = (count // len(positions)).bit_length()
        for k in range(max(0, highest - 4), highest + 1):
            choices.append((RICE, k, _rice(positions, k)))
    return min(choices, key=lambda choice: len(choice[2]))


def decode(coding, k, data, entries, count):
    """The positions of so many entries among `count`."""
    assert coding == RICE or k == 0, f"k {k} under coding {coding}"
    if coding == BITMAP:
        assert len(data) == fields.byte_count(count, 1)
        ones = np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little")
        positions = np.flatnonzero(ones)
    elif coding == PACKED:
        positions = fields.unpack(data, entries, _width(count))
    else:
        size = fields.byte_count(entries, k)
        remainders = fields.unpack(data[:size], entries, k)
        unary = np.unpackbits(np.frombuffer(data[size:], dtype=np.uint8), bitorder="little")
        ones = np.flatnonzero(unary)
        assert not data[size:] or data[-1] != 0, "the last byte is zero"
        assert len(ones) == entries, f"{len(ones)} quotients of {entries} entries"
        index = np.arange(entries)
        positions = ((ones - index) << k) + np.cumsum(remainders) + index
    assert len(positions) == entries, f"{len(positions)} positions of {entries} entries"
    assert (np.diff(positions) > 0).all() and (not entries or positions[-1] < count)
    return positions

"""Kept values as a sign and a cell of magnitudes, which is decoded at its mean."""

import math

import numpy as np

import fields
from floats import F32


def _groups(count, group):
    """Slices of the values that share means."""
    step = group or max(count, 1)
    return [slice(begin, min(begin + step, count)) for begin in range(0, count, step)]


def _cells(units, bits):
    """The cell of each magnitude: those above the mean of a cell go to its upper half."""
    cells = np.zeros(len(units), dtype=np.int64)
    for _ in range(1, bits):
        above = np.zeros(len(units), dtype=bool)
        for cell in np.unique(cells):
            members = cells == cell
            total, count = int(units[members].sum()), int(members.sum())
            above[members] = [int(unit) * count > total for unit in units[members]]
        cells = 2 * cells + above
    return cells


def _encode_group(x, bits):
    exponent = 0
    if np.abs(x).max() > 0:
        exponent = 31 - math.frexp(float(np.abs(x).max()))[1]
    units = np.rint(np.abs(x).astype(np.float64) * 2.0**exponent).astype(np.uint64)
    cells = _cells(units, bits)
    means = np.zeros(2 ** (bits - 1), dtype="<f4")
    for cell in np.unique(cells):
        members = units[cells == cell]
        means[cell] = F32(float(int(members.sum())) / len(members) * 2.0**-exponent)
    return means.tobytes(), cells + np.where(x < 0, 2 ** (bits - 1), 0)


def byte_count(count, bits, group):
    """How many bytes encode makes of `count` values."""
    return len(_groups(count, group)) * 4 * 2 ** (bits - 1) + fields.byte_count(count, bits)


def encode(x, bits, group):
    """The means of each group, then a code for each value: the sign above the cell."""
    parts = [_encode_group(x[group_slice], bits) for group_slice in _groups(x.size, group)]
    codes = np.concatenate([codes for _, codes in parts]) if parts else np.zeros(0, dtype=int)
    return b"".join(means for means, _ in parts) + fields.pack(codes, bits)


def decode(payload, count, bits, group):
    """The inverse of encode."""
    cells = 2 ** (bits - 1)
    groups = _groups(count, group)
    header = 4 * cells * len(groups)
    means = np.frombuffer(payload[:header], dtype="<f4").reshape(len(groups), cells)
    codes = fields.unpack(payload[header:], count, bits)
    values = np.zeros(count, dtype=F32)
    for index, members in enumerate(groups):
        magnitudes = means[index][codes[members] % cells]
        values[members] = np.where(codes[members] < cells, magnitudes, -magnitudes)
    return values

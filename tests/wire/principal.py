"""Rotation principal: a tensor in the principal axes of its channels."""

import numpy as np

from floats import F32

PLAIN, KEPT_AXES, NEW_AXES = range(3)
_SCALE_BYTES = 4


def _multiply(x, factor):
    """Each sum from left to right, from +0 on."""
    result = np.zeros((len(x), factor.shape[1]), dtype=F32)
    for column, row in zip(x.T, factor):
        result += column[:, None] * row
    return result


def _axes_bytes(channels):
    return channels * (_SCALE_BYTES + channels)


def axes_of(payload, channels):
    """What the payload has of axes, in bytes; None if it has none."""
    return payload[1 : 1 + _axes_bytes(channels)] if payload[0] == NEW_AXES else None


def content(payload, channels):
    """The inner codec's payload."""
    return payload[1 + (_axes_bytes(channels) if payload[0] == NEW_AXES else 0) :]


def _matrix(axes, channels):
    """[channels, channels]: an axis a row."""
    rows = np.frombuffer(axes, dtype=np.uint8).reshape(channels, -1)
    scales = rows[:, :_SCALE_BYTES].copy().view("<f4")
    assert (scales >= 0).all() and (scales <= F32(1.01) / F32(127)).all()
    return rows[:, _SCALE_BYTES:].view(np.int8).astype(F32) * scales


def rotate(x, axes, channels):
    """The flat x in these axes."""
    there = _matrix(axes, channels)
    product = F32(2) * np.eye(channels, dtype=F32) - _multiply(there, there.T)
    return _multiply(x.reshape(-1, channels), _multiply(there.T, product)).reshape(-1)


def rotate_back(x, axes, channels):
    """The flat tensor of which x are the coordinates."""
    return _multiply(x.reshape(-1, channels), _matrix(axes, channels)).reshape(-1)

"""Outliers and first positions: elements that go beside what the codec gets."""

import dataclasses

import numpy as np

import casts
from floats import F32

_CHANNEL_BYTES = 4
_NONE, _KEPT, _NEW = range(3)
_FIRST_ROWS = ["", "fp32", "bf16"]
_BYTES = {"": 0, "fp32": 4, "bf16": 2}
_LARGEST_BF16 = F32(float.fromhex("0x1.FEp127"))


@dataclasses.dataclass(frozen=True)
class Division:
    """What of a tensor goes where."""

    shape: tuple
    channels: tuple  # the outliers, ascending
    is_new: bool  # whether the message has their numbers
    first_rows: str = ""  # the type in which they cross; "" if the codec gets them
    rows: tuple = ()  # the numbers of first rows, where they cross

    @property
    def _row_elements(self):
        return self.shape[-1] if len(self.shape) > 1 else 1

    @property
    def _count_of_rows(self):
        return int(np.prod(self.shape)) // self._row_elements

    @property
    def _first_elements(self):
        return len(self.rows) * self._row_elements

    @property
    def _outlier_elements(self):
        return (self._count_of_rows - len(self.rows)) * len(self.channels)

    @property
    def of_documents(self):
        """True where positions of samples are later ones."""
        return bool(self.rows) and self.rows[0] > 0

    def masks(self):
        """Flat: of the first rows, and of the outliers in others."""
        first = np.zeros((self._count_of_rows, self._row_elements), dtype=bool)
        outliers = first.copy()
        outliers[:, list(self.channels)] = True
        first[list(self.rows)] = True
        return first.reshape(-1), (outliers & ~first).reshape(-1)

    def coded(self, x):
        """What the codec gets of the flat x."""
        first, outliers = self.masks()
        return np.where(first | outliers, F32(0), x)

    @property
    def head_bytes(self):
        """Bytes before the codec's payload."""
        numbers = _CHANNEL_BYTES * len(self.channels) if self.is_new else 0
        return 1 + numbers + _BYTES[self.first_rows] * self._first_elements + 2 * self._outlier_elements

    def head(self, x):
        """What stands before the codec's payload of the flat x."""
        first, outliers = self.masks()
        form = (_NEW if self.is_new else _KEPT) if self.channels else _NONE
        result = bytes([form | _FIRST_ROWS.index(self.first_rows) << 2 | self.of_documents << 4])
        if self.is_new:
            result += np.array(self.channels, dtype="<u4").tobytes()
        if self.first_rows:
            result += casts.encode_none(x[first], self.first_rows)
        return result + casts.encode_bf16(np.clip(x[outliers], -_LARGEST_BF16, _LARGEST_BF16))

    def put_together(self, payload, rest):
        """The flat tensor, of which the codec has decoded `rest`."""
        first, outliers = self.masks()
        result = np.where(first | outliers, F32(0), rest)
        at = self.head_bytes - 2 * self._outlier_elements
        result[outliers] = casts.decode_bf16(payload[at : self.head_bytes], self._outlier_elements)
        if self.first_rows:
            at -= _BYTES[self.first_rows] * self._first_elements
            numbers = payload[at : at + _BYTES[self.first_rows] * self._first_elements]
            result[first] = casts.decode_none(numbers, self._first_elements, self.first_rows)
        return result + F32(0) if first.any() or outliers.any() else result


def _count(spec, shape):
    """How many channels are outliers: one is always left."""
    return min(spec.outliers, shape[-1] - 1) if len(shape) > 1 else 0


def _first_rows(shape, documents, of_documents=False):
    """The numbers of first rows, where documents begin with those of `documents`, too."""
    of_sample = int(np.prod(shape[1:-1]))
    samples = [] if of_documents else range(0, shape[0] * of_sample, of_sample)
    return tuple(sorted({*samples, *documents}))


def of_payload(payload, spec, shape, kept=None, documents=()):
    """How a payload is divided; `kept` are the channels of a message before, `documents` rows with which
    documents begin. Without kept channels its own are not known, only how many they are."""
    outliers, first_rows, of_documents = payload[0] & 3, _FIRST_ROWS[payload[0] >> 2 & 3], payload[0] >> 4
    count = _count(spec, shape)
    assert (outliers != _NONE) == (count > 0), f"form {payload[0]}"
    assert not first_rows or spec.first_position == "exact" and len(shape) > 2, f"form {payload[0]}"
    assert not of_documents or of_documents == 1 and first_rows and documents, f"form {payload[0]}"
    rows = _first_rows(shape, documents, of_documents == 1) if first_rows else ()
    channels = tuple(kept or range(count)) if count else ()
    if outliers == _NEW:
        channels = tuple(np.frombuffer(payload[1 : 1 + _CHANNEL_BYTES * count], dtype="<u4").tolist())
    return Division(shape, channels, outliers == _NEW, first_rows, rows)


def choose(x, spec, shape, dtype, kept=None, documents=()):
    """How the sender divides the flat x, of that type. `kept` are the channels of a message before,
    `documents` rows with which documents begin."""
    has_first_rows = spec.first_position == "exact" and len(shape) > 2
    first_rows = dtype if has_first_rows else ""
    rows = _first_rows(shape, documents) if has_first_rows else ()
    count = _count(spec, shape)
    if kept or not count:
        return Division(shape, tuple(kept or ()), False, first_rows, rows)
    sums = np.zeros(shape[-1])
    for row in np.delete(x.reshape(-1, shape[-1]), list(rows), axis=0).astype(np.float64):
        sums += row * row
    largest = np.argsort(-sums, kind="stable")[:count]
    return Division(shape, tuple(sorted(largest.tolist())), True, first_rows, rows)

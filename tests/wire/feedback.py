"""What compensation remembers at the two ends of one direction of a cut (docs/compression.md)."""

import dataclasses

import numpy as np

import codec
import digests
import sparse
from floats import F32

MODULUS = 2**32 - 5

_STORES = {
    "fp32": codec.Spec(),
    "fp16": codec.Spec(kind="fp16"),
    "q8": codec.Spec(kind="uniform", bits=8, range="max_abs", scope="group", group=256),
    "q4": codec.Spec(kind="uniform", bits=4, range="max_abs", scope="group", group=256),
}


@dataclasses.dataclass(frozen=True)
class Kind:
    """The compensation of one direction of one cut."""

    kind: str = "none"
    key: str = "slot"
    init: str = "zero"
    store: str = "fp32"
    decay: float = 1.0
    limit_bytes: int = 0
    digest_every: int = 0


def _finite_or_zero(x):
    return np.where(np.isfinite(x), x, F32(0))


class Rows:
    """Rows of state by their keys, stored as the store has them."""

    def __init__(self, store, limit_bytes):
        self._spec = _STORES[store]
        self._limit_bytes = limit_bytes
        self._rows = {}

    def __contains__(self, key):
        return key in self._rows

    def read(self, key, elements):
        """One row as fp32; zeros if there is none."""
        if self._rows.get(key) is None:
            return np.zeros(elements, dtype=F32)
        return codec.decode(self._rows[key], (elements,), "fp32", self._spec)

    def admit(self, keys, elements):
        """Makes room for new rows, in the order of the keys. Returns the keys that have a row only
        now."""
        size = len(self._encode(np.zeros(elements, dtype=F32)))
        admitted = []
        for key in keys:
            if key in self._rows:
                continue
            if not self._limit_bytes or (len(self._rows) + 1) * size <= self._limit_bytes:
                self._rows[key] = None
                admitted.append(key)
        return admitted

    def write(self, key, row):
        """Stores one row, if it has room."""
        if key in self._rows:
            self._rows[key] = self._encode(row)

    def digest(self, keys):
        """The state_digest of a message that touched these rows."""
        total = weighted = 0
        for number, key in enumerate(keys, start=1):
            if self._rows.get(key) is None:
                continue
            of_row = digests.add_bytes(digests.add_word(digests.START, key), self._rows[key])
            total += of_row % MODULUS
            weighted += number * (of_row % MODULUS)
        return (total % MODULUS) << 32 | weighted % MODULUS

    def _encode(self, row):
        return codec.encode(row, (row.size,), "fp32", self._spec)


def halves(spec, elements):
    """The codecs for x and for e under ef_mixed_b, of scopes of so many elements."""
    kept = sparse.budget(spec, elements)
    return [
        dataclasses.replace(spec, ratio=0.0, k=k, count="ceil")
        for k in (kept - kept // 2, kept // 2)
    ]


class Sender:
    """What a sender sends, and what it remembers."""

    def __init__(self, kind):
        self.kind = kind
        self._rows = Rows(kind.store, kind.limit_bytes)

    def state(self, keys, elements):
        """The rows of a message's samples, one after another."""
        return np.concatenate([self._rows.read(key, elements) for key in keys])

    def is_first_visit(self, keys, elements):
        """Whether the message goes exact because a row is new. Makes room for the new rows that a
        coded message or an exact one of ef21 stores."""
        if self.kind.kind != "ef21":
            return False
        new = self._rows.admit(keys, elements)
        return self.kind.init == "exact" and bool(new)

    def message(self, x, keys):
        """What the codec is given for x, and the state it is made with."""
        elements = x.size // len(keys)
        self._rows.admit(keys, elements)
        state = self.state(keys, elements)
        return (x - state if self.kind.kind == "ef21" else x + state), state

    def exact(self, x, keys):
        """What is sent instead of x where a message goes exact; it leaves nothing to pay back."""
        if self.kind.kind == "ef21":
            self._store(keys, _zero_where_not_finite(x, len(keys)))
            return x
        sent = x + self.state(keys, x.size // len(keys))
        self._store(keys, np.zeros_like(x))
        return sent

    def sent(self, m, decoded, keys):
        """Updates the state by what the receiver makes of C(m)."""
        if self.kind.kind == "ef21":
            state = self.state(keys, m.size // len(keys))
            self._store(keys, _finite_or_zero(state + decoded))
        else:
            decay = F32(self.kind.decay)
            with np.errstate(over="ignore", invalid="ignore"):
                self._store(keys, _finite_or_zero(decay * m - decay * decoded))

    def digest(self, keys):
        """The state_digest after the message."""
        return self._rows.digest(keys)

    def _store(self, keys, state):
        for key, row in zip(keys, state.reshape(len(keys), -1)):
            self._rows.write(key, row)


class Receiver:
    """The receiver's A under ef21."""

    def __init__(self, kind):
        self._rows = Rows(kind.store, kind.limit_bytes)

    def exact(self, x, keys):
        """Takes over what came exactly."""
        self._rows.admit(keys, x.size // len(keys))
        for key, row in zip(keys, _zero_where_not_finite(x, len(keys)).reshape(len(keys), -1)):
            self._rows.write(key, row)
        return x

    def received(self, decoded, keys):
        """A after the message: what the receiver uses, before it is stored."""
        elements = decoded.size // len(keys)
        self._rows.admit(keys, elements)
        state = np.concatenate([self._rows.read(key, elements) for key in keys])
        used = state + decoded
        for key, row in zip(keys, _finite_or_zero(used).reshape(len(keys), -1)):
            self._rows.write(key, row)
        return used

    def digest(self, keys):
        """The state_digest after the message."""
        return self._rows.digest(keys)


def _zero_where_not_finite(x, rows):
    by_row = x.reshape(rows, -1)
    finite = np.isfinite(by_row).all(axis=1, keepdims=True)
    return np.where(finite, by_row, F32(0)).reshape(-1)

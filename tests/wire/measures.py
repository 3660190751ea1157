"""The errors and counts that senders report (docs/metrics.md)."""

import math

import numpy as np


def _square(x):
    return float(np.square(x.astype(np.float64)).sum())


def relative_error(x, y):
    """norm(x - y) / norm(x): 0 of two zeros, infinite where x alone is zero, NaN of NaN."""
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return math.nan
    difference = _square(x.astype(np.float64) - y.astype(np.float64))
    if _square(x) > 0:
        return math.sqrt(difference / _square(x))
    return math.inf if difference > 0 else 0.0


def relative_norm(x, to):
    """norm(x) / norm(to), 0 of two zeros."""
    if _square(x) == 0:
        return 0.0
    return math.sqrt(_square(x) / _square(to)) if _square(to) > 0 else math.inf


class Errors:
    """Sums over the measured messages of one sender."""

    def __init__(self):
        self.messages = self.coded_messages = 0
        self.relative_error = 0.0
        self.codec = {"relative_error": 0.0, "residual": 0.0}
        self.last_codec = dict(self.codec)

    def add(self, received, codec=None):
        """The error of what the receiver uses; of the codec and the residual, unless the message
        went exact."""
        both = codec or {"relative_error": 0.0, "residual": 0.0}
        if not math.isfinite(received + both["relative_error"] + both["residual"]):
            return
        self.messages += 1
        self.relative_error += received
        if codec is None:
            return
        self.coded_messages += 1
        self.codec = {name: self.codec[name] + codec[name] for name in codec}
        self.last_codec = codec

    def check(self, reported):
        """Compares with what the sender says."""
        assert reported["messages"] == self.messages
        assert reported["coded_messages"] == self.coded_messages
        pairs = [(reported["relative_error"], self.relative_error)]
        for name in ("codec", "last_codec"):
            pairs += [(reported[name][key], met) for key, met in getattr(self, name).items()]
        for said, met in pairs:
            assert math.isclose(said, met, rel_tol=1e-9, abs_tol=1e-15), f"{said}, {met} here"


class Traffic:
    """What one sender counts, in training and in evaluation."""

    def __init__(self):
        self._counts = {"train": {}, "evaluate": {}}
        for counts in self._counts.values():
            counts.update(messages=0, elements=0, raw_bytes=0, payload_bytes=0, wire_bytes=0)

    def add(self, is_training, message, elements, element_bytes):
        """One message of a tensor of so many elements."""
        counts = self._counts["train" if is_training else "evaluate"]
        counts["messages"] += 1
        counts["elements"] += elements
        counts["raw_bytes"] += elements * element_bytes
        counts["payload_bytes"] += len(message.payload)
        counts["wire_bytes"] += message.wire_bytes

    @property
    def wire_bytes(self):
        """All of them."""
        return sum(counts["wire_bytes"] for counts in self._counts.values())

    def check(self, reported):
        """Compares with what the sender says."""
        for name, counts in self._counts.items():
            assert reported[name] == counts, f"{name}: {reported[name]}, {counts} here"

"""The examples of docs/compression.md, decoded and encoded again."""

import re

import numpy as np

import codec
import division
import principal


def _lines(block):
    """The words of each kind of line, those of repeated ones one after another."""
    result = {}
    for line in block.splitlines():
        word, _, rest = line.split("#")[0].strip().partition(" ")
        if word:
            result.setdefault(word, []).append(rest.strip())
    return {word: " ".join(rests) for word, rests in result.items()}


def _floats(text):
    return np.array([float(word) for word in text.split()], dtype=np.float32)


def check(page):
    """Checks every example of the page and returns how many there are."""
    blocks = re.findall(r"```example\n(.*?)```", page, re.DOTALL)
    for block in blocks:
        lines = _lines(block)
        spec = codec.spec_from_text(lines["codec"])
        shape = tuple(int(extent) for extent in lines["shape"].split())
        payload = bytes.fromhex(lines["bytes"])
        supported = _floats(lines["support"]) != 0 if "support" in lines else None
        axes = principal.axes_of(payload, shape[-1]) if spec.is_principal else None
        documents = [int(row) for row in lines.get("documents", "").split()]
        parts = division.of_payload(payload, spec, shape, None, documents) if spec.divides else None
        decoded = codec.decode(payload, shape, "fp32", spec, supported, axes, parts)
        assert decoded.tobytes() == _floats(lines["decoded"]).tobytes(), f"{block}{decoded}"
        if "values" not in lines:
            codec.content(payload, spec, shape)  # the frame is the only one with these parts
        elif spec.kind != "low_rank":
            drawn = spec.kind == "randomk" or spec.rotation == "hadamard"
            key = int.from_bytes(payload[:8], "little") if drawn else None
            values = _floats(lines["values"])
            chosen = division.choose(values, spec, shape, "fp32", None, documents) if spec.divides else None
            met = codec.encode(values, shape, "fp32", spec, key, supported, axes, chosen)
            assert met == codec.content(payload, spec, shape, documents), f"{block}{met.hex(' ')}"
    return len(blocks)

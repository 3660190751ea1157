"""Every codec of docs/compression.md, by its name in a frame's header."""

import dataclasses
import struct

import numpy as np
import zstandard

import blockwise8
import casts
import division
import ecsq
import entropy
import low_rank
import principal
import scopes
import sparse
import uniform

@dataclasses.dataclass(frozen=True)
class Spec:
    """A codec and its parameters; enums by their names in experiment files."""

    kind: str = "none"
    scope: str = "tensor"
    group: int = 0
    bits: int = 0
    range: str = "min_max"
    rounding: str = "nearest"
    zero: str = "free"
    ratio: float = 0.0
    k: int = 0
    count: str = "ceil"
    pad: str = "none"
    values: str = "fp32"
    rotation: str = "none"
    rotation_block: int = 0
    rotation_every: int = 0
    unbiased: bool = False
    indices: str = "own"
    support: str = "all"
    threshold: float = 0.0
    relative_to: str = "absolute"
    rate: float = 0.0
    step: float = 0.0
    reconstruction: str = "mean"
    outliers: int = 0
    first_position: str = "coded"
    format: str = "e4m3"
    block: int = 0
    rank: int = 0
    per_sample: bool = False
    lossless: str = "none"

    @property
    def needs_support(self):
        """True where both ends need the non-zeros of the received activation."""
        return self.indices == "shared" or self.support == "received_nonzero"

    @property
    def is_exact(self):
        """True for the tensor's own bytes."""
        return self == Spec()

    @property
    def is_principal(self):
        """True where tensors cross in the principal axes of their channels."""
        return self.rotation == "principal"

    @property
    def unrotated(self):
        """The codec of what is rotated."""
        return dataclasses.replace(self, rotation="none", rotation_every=0)

    @property
    def divides(self):
        """True where some elements go beside what the codec gets."""
        return self.outliers > 0 or self.first_position == "exact"

    @property
    def undivided(self):
        """The codec of the other elements."""
        return dataclasses.replace(self, outliers=0, first_position="coded")


def spec_of(parameters):
    """The Spec of a header's CodecParameters; an absent field keeps its default."""
    fields = {}
    for field, value in parameters.ListFields():
        if field.enum_type is not None:
            name = field.enum_type.values_by_number[value].name
            value = name[len(field.name) + 1 :].lower()
        fields[field.name] = value
    return Spec(**fields)


def _value(text):
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            pass
    return {"true": True, "false": False}.get(text, text)


def spec_from_text(text):
    """The Spec of "topk(k=1, scope=tensor, values=fp32)"."""
    kind, _, parameters = text.rstrip(")").partition("(")
    pairs = [pair.split("=") for pair in parameters.split(", ")] if parameters else []
    defaults = {"lossless": "entropy"} if kind == "ecsq" else {}
    return Spec(kind=kind, **{**defaults, **{name: _value(value) for name, value in pairs}})


def at_level(spec, level):
    """The codec with another ratio, rate or number of bits."""
    if spec.kind == "uniform":
        return dataclasses.replace(spec, bits=int(level))
    if spec.kind == "ecsq":
        return dataclasses.replace(spec, rate=level)
    return dataclasses.replace(spec, ratio=level)


def scope_elements(spec, shape):
    """Elements of one of the codec's scopes."""
    ids = scopes.of_elements(spec.scope, shape, spec.group)
    return int((ids == 0).sum())


def channels_of(shape):
    """Numbers of a row."""
    return shape[-1] if len(shape) > 1 else 1


def content(payload, spec, shape=None, documents=()):
    """What stands behind the lossless stage, and behind axes: the codec's payload. Which frame zstd
    makes of it is its library's affair, but it must be shorter. `documents` are rows with which
    documents begin."""
    if spec.divides:
        parts = division.of_payload(payload, spec, shape, None, documents)
        head = parts.head_bytes
        return payload[:head] + content(payload[head:], spec.undivided, shape)
    if spec.is_principal:
        return content(principal.content(payload, channels_of(shape)), spec.unrotated)
    if spec.lossless == "none":
        return payload
    if spec.lossless == "entropy":
        whole, choice = payload[1:], entropy.Choice()
        if payload[0] != 0:
            whole, choice = entropy.decode(payload[1:])
        frame = entropy.encode(whole, choice)
        wanted = b"\0" + whole if frame is None else b"\2" + frame
        assert payload == wanted, f"{len(whole)} bytes: not the frame that the page says"
        return whole
    if payload[0] == 0:
        return payload[1:]
    assert payload[0] == 1, f"form {payload[0]}, want 0 or 1"
    whole = zstandard.ZstdDecompressor().decompress(payload[1:], max_output_size=1 << 28)
    assert len(payload) - 1 < len(whole), f"{len(whole)} bytes compressed to {len(payload) - 1}"
    return whole


def _encode_dense(x, shape, dtype, spec, key):
    if spec.kind == "none":
        return casts.encode_none(x, dtype)
    if spec.kind == "bf16":
        return casts.encode_bf16(x)
    if spec.kind == "fp16":
        exponent, values = casts.encode_fp16(x)
        return struct.pack("<h", exponent) + values
    if spec.kind == "fp8":
        return casts.encode_fp8(x, spec.format)
    if spec.kind == "blockwise8":
        return blockwise8.encode(x, spec.block)
    if spec.kind == "ecsq":
        return ecsq.encode(x, shape, spec, key)
    return uniform.encode(x, shape, spec, key)


def _decode_dense(payload, shape, dtype, spec):
    count = int(np.prod(shape))
    if spec.kind == "none":
        return casts.decode_none(payload, count, dtype)
    if spec.kind == "bf16":
        return casts.decode_bf16(payload, count)
    if spec.kind == "fp16":
        exponent = int.from_bytes(payload[:2], "little", signed=True)
        return casts.decode_fp16(payload[2:], count, exponent)
    if spec.kind == "fp8":
        return casts.decode_fp8(payload, count, spec.format)
    if spec.kind == "blockwise8":
        return blockwise8.decode(payload, count, spec.block)
    if spec.kind == "ecsq":
        return ecsq.decode(payload, shape, spec)
    return uniform.decode(payload, shape, spec)


def _shared(spec):
    """The codec of the values that `indices: shared` sends."""
    kind = {"fp32": "none"}.get(spec.values, spec.values)
    scope = "group" if kind == "uniform" and spec.group else "tensor"
    return dataclasses.replace(spec, kind=kind, scope=scope)


def encode(x, shape, dtype, spec, key=None, supported=None, axes=None, parts=None):
    """The content of the flat fp32 array x. `key` is the message's random key, `supported` where
    the received activation is not zero, `axes` those that it goes in, if any, `parts` how it is divided,
    if it is. Not for low_rank and plugins."""
    if parts is not None:
        return parts.head(x) + encode(parts.coded(x), shape, dtype, spec.undivided, key, supported, axes)
    if axes is not None:
        rotated = principal.rotate(x, axes, channels_of(shape))
        return encode(rotated, shape, "fp32", spec.unrotated, key)
    everything = np.ones(x.size, dtype=bool) if supported is None else supported
    if spec.kind == "topk" and spec.indices == "shared":
        part = x[everything]
        return _encode_dense(part, (part.size,), "fp32", _shared(spec), key)
    if spec.kind in ("topk", "threshold"):
        return sparse.encode(x, shape, spec, key, everything)
    if spec.kind == "randomk":
        return sparse.encode_random(x, shape, spec, key, everything)
    if supported is None:
        return _encode_dense(x, shape, dtype, spec, key)
    part = x[supported]
    return _encode_dense(part, (part.size,), dtype, spec, key)


def decode(payload, shape, dtype, spec, supported=None, axes=None, parts=None):
    """The flat fp32 array of a payload, before it is rounded to the tensor's type. `axes`: those
    that it is in, `parts`: how it is divided, if so."""
    if parts is not None:
        coded = payload[parts.head_bytes :]
        return parts.put_together(payload, decode(coded, shape, dtype, spec.undivided, supported, axes))
    payload = content(payload, spec, shape)
    if axes is not None:
        rotated = _decode_dense(payload, shape, "fp32", spec)
        return principal.rotate_back(rotated, axes, channels_of(shape))
    count = int(np.prod(shape))
    everything = np.ones(count, dtype=bool) if supported is None else supported
    shared = spec.kind == "topk" and spec.indices == "shared"
    if spec.kind == "low_rank":
        return low_rank.decode(payload, shape, spec)
    if spec.kind == "randomk":
        return sparse.decode_random(payload, shape, spec, everything)
    if spec.kind in ("topk", "threshold") and not shared:
        return sparse.decode(payload, shape, spec, everything)
    if supported is None:
        return _decode_dense(payload, shape, dtype, spec)
    result = np.zeros(count, dtype=np.float32)
    part = (int(supported.sum()),)
    if shared:
        result[supported] = _decode_dense(payload, part, "fp32", _shared(spec))
    else:
        result[supported] = _decode_dense(payload, part, dtype, spec)
    return result

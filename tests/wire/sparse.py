"""The codecs that send some elements: topk, threshold, randomk, and how kept values travel."""

import dataclasses
import math
import struct

import numpy as np

import casts
import means
import positions
import scopes
import squares
import streams
import uniform
from floats import F32


def budget(spec, count):
    """K of a scope of `count` elements."""
    if spec.k:
        kept = spec.k
    elif spec.count == "paper1":
        kept = count - int(count * (1 - spec.ratio))
    else:
        product = spec.ratio * count
        whole = math.floor(product)
        kept = whole if product - whole <= product * 2.0**-50 else whole + 1
    return min(max(kept, 1), count)


def _values_spec(spec):
    scope = "group" if spec.group else "tensor"
    return dataclasses.replace(spec, kind="uniform", scope=scope, rotation="none")


def encode_values(x, spec, key):
    """The pre-scale exponent, 0 but for fp16, and the bytes of kept values."""
    if spec.values == "fp32":
        return 0, x.astype("<f4").tobytes()
    if spec.values == "bf16":
        return 0, casts.encode_finite_bf16(x)
    if spec.values == "fp16":
        return casts.encode_fp16(x)
    if spec.values == "means":
        return 0, means.encode(x, spec.bits, spec.group)
    return 0, uniform.encode(x, (x.size,), _values_spec(spec), key)


def value_bytes(count, spec):
    """How many bytes encode_values makes of `count` values."""
    if spec.values == "means":
        return means.byte_count(count, spec.bits, spec.group)
    if spec.values != "uniform":
        return count * {"fp32": 4, "fp16": 2, "bf16": 2}[spec.values]
    ranges = -(-count // spec.group) if spec.group else min(count, 1)
    return ranges * (8 if spec.range == "min_max" else 4) + (count * spec.bits + 7) // 8


def decode_values(payload, count, spec, exponent):
    """The inverse of encode_values."""
    if spec.values == "fp32":
        values = np.frombuffer(payload, dtype="<f4")
    elif spec.values == "bf16":
        values = casts.decode_bf16(payload, count)
    elif spec.values == "fp16":
        values = casts.decode_fp16(payload, count, exponent)
    elif spec.values == "means":
        values = means.decode(payload, count, spec.bits, spec.group)
    else:
        values = uniform.decode(payload, (count,), _values_spec(spec))
    assert len(values) == count and np.isfinite(values).all()
    return values


def _largest(x, ids, supported, spec):
    """Positions of the K largest magnitudes of each scope."""
    kept = []
    for scope in range(scopes.number(ids)):
        members = np.flatnonzero(ids == scope)
        k = budget(spec, len(members))
        magnitude = np.where(supported[members], np.abs(x[members]), F32(0))
        order = members[np.argsort(-magnitude, kind="stable")][:k]
        kept.append(order if spec.pad == "exact_k" else order[np.sort(-magnitude)[:k] < 0])
    return np.sort(np.concatenate(kept)) if kept else np.zeros(0, dtype=np.int64)


def _above_threshold(x, supported, spec):
    members = np.where(supported, x, F32(0))
    unit = 1.0
    if spec.relative_to == "max":
        unit = float(np.abs(members).max()) if members.size else 0.0
    elif spec.relative_to == "rms":
        count = int(supported.sum())
        unit = math.sqrt(squares.total(members) / count) if count else 0.0
    limit = spec.threshold * unit
    return np.flatnonzero((np.abs(members).astype(np.float64) >= limit) & (members != 0))


def encode(x, shape, spec, key, supported):
    """topk and threshold: values, then positions."""
    if spec.kind == "threshold":
        kept = _above_threshold(x, supported, spec)
    else:
        kept = _largest(x, scopes.of_elements(spec.scope, shape, spec.group), supported, spec)
    exponent, values = encode_values(x[kept], spec, key)
    ranks = np.cumsum(supported) - 1
    coding, k, where = positions.encode(ranks[kept], int(supported.sum()))
    return struct.pack("<BBhI", coding, k, exponent, len(kept)) + values + where


def decode(payload, shape, spec, supported):
    """The inverse of encode."""
    coding, k, exponent, entries = struct.unpack_from("<BBhI", payload)
    assert spec.values == "fp16" or exponent == 0, f"exponent {exponent}"
    end = 8 + value_bytes(entries, spec)
    places = np.flatnonzero(supported)
    ranks = positions.decode(coding, k, payload[end:], entries, len(places))
    if spec.kind == "topk":
        ids = scopes.of_elements(spec.scope, shape, spec.group)
        for scope, count in enumerate(np.bincount(ids[places[ranks]])):
            assert count <= budget(spec, int((ids == scope).sum())), f"{count} in scope {scope}"
    result = np.zeros(int(np.prod(shape)), dtype=F32)
    result[places[ranks]] = decode_values(payload[8:end], entries, spec, exponent)
    return result


def _drawn(seed, ids, supported, spec):
    """Where randomk's elements stand, and the factor of an unbiased one at each."""
    draws = (streams.numbers(seed, len(ids)) >> np.uint32(2)).astype(np.int64)
    kept, factors = [], []
    for scope in range(scopes.number(ids)):
        members = np.flatnonzero(ids == scope)
        k = budget(spec, len(members))
        members = members[supported[members]]
        chosen = members[np.argsort(-draws[members], kind="stable")][:k]
        kept.append(chosen)
        factor = F32(len(members) / len(chosen)) if len(chosen) else F32(1)
        factors.append(np.full(len(chosen), factor if spec.unbiased else F32(1), dtype=F32))
    kept, factors = np.concatenate(kept), np.concatenate(factors)
    order = np.argsort(kept)
    return kept[order], factors[order]


def encode_random(x, shape, spec, key, supported):
    """randomk: the seed, then values."""
    kept, factors = _drawn(key, scopes.of_elements(spec.scope, shape), supported, spec)
    exponent, values = encode_values(x[kept] * factors, spec, ~key & streams.MASK)
    scale = struct.pack("<h", exponent) if spec.values == "fp16" else b""
    return struct.pack("<Q", key) + scale + values


def decode_random(payload, shape, spec, supported):
    """The inverse of encode_random, but for the factor."""
    seed, at, exponent = int.from_bytes(payload[:8], "little"), 8, 0
    if spec.values == "fp16":
        exponent, at = struct.unpack_from("<h", payload, 8)[0], 10
    kept, _ = _drawn(seed, scopes.of_elements(spec.scope, shape), supported, spec)
    result = np.zeros(int(np.prod(shape)), dtype=F32)
    result[kept] = decode_values(payload[at:], len(kept), spec, exponent)
    return result

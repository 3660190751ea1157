#!/usr/bin/env python3
"""Fails, and says where, unless two runs trained the same to the last bit.

usage: same_run.py DIR DIR

Compares parameters, losses, learning rates, accuracies, evaluations and what each step sent; not times, nor means over
messages.
"""
import json
import pathlib
import sys


def tensors(run):
    """Bytes of the parameters, by name."""
    found = {}
    for path in pathlib.Path(run, "model").glob("*.safetensors"):
        data = path.read_bytes()
        size = int.from_bytes(data[:8], "little")
        for name, tensor in json.loads(data[8:8 + size]).items():
            if name == "__metadata__":
                continue
            begin, end = tensor["data_offsets"]
            found[name] = data[8 + size + begin:8 + size + end]
    return found


def numbers(run):
    summary = json.load(open(run + "/summary.json"))
    assert summary["status"] == "completed", summary["error"]
    epochs = [(e["epoch"], e["lr"], e["train"], e["test"], [(v["step"], v["test"]) for v in e["evaluations"]], [
        {k: v for k, v in b[d].items() if k != "relative_error"} for b in e["boundaries"]
        for d in ("activations", "gradients")]) for e in summary["epochs"]]
    sent = [(b["name"], d, b[d]["messages"], b[d]["wire_bytes"], b[d]["wire_bits_per_element"])
            for b in summary["boundaries"] for d in ("activations", "gradients")]
    exchanged = [(d, r["messages"], r["wire_bytes"]) for d, r in (summary.get("replicas") or {}).items() if isinstance(r, dict)]
    return epochs, sent, exchanged


def steps(run):
    return [(e["step"], e["loss"], e["accuracy"], e["lr"])
            for e in map(json.loads, open(run + "/metrics.jsonl")) if e["type"] == "step"]


def evaluations(run):
    return [(e["epoch"], e["step"], e["test"])
            for e in map(json.loads, open(run + "/metrics.jsonl")) if e["type"] == "evaluation"]


def traffic(run):
    lines = map(json.loads, open(run + "/traffic.jsonl"))
    # The error of an exchange among carriers is a mean over all servers' messages.
    exchanged = ("replicas", "sums")
    return sorted((tuple((k, v) for k, v in line.items() if k != "relative_error" or line["boundary"] not in exchanged)
                   for line in lines), key=lambda line: line[:3])


a, b = sys.argv[1:]
assert steps(a) == steps(b), "steps differ"
assert evaluations(a) == evaluations(b), "evaluations after steps differ"
assert traffic(a) == traffic(b), "what steps sent differs"
assert tensors(a) == tensors(b), "parameters differ"
assert numbers(a) == numbers(b), (numbers(a), numbers(b))

#!/usr/bin/env python3
"""The result of one run in a few lines of JSON, from its summary.json.

usage: compact.py SUMMARY --suite SUITE --configuration NAME --output FILE

`measure` says what is kept: the accuracy, a fraction of all test images, or of a language model the
loss, the mean over all test tokens in nats. `best` is each inference's own over the evaluated epochs,
and so may come from different ones. Sums and means of the boundaries are of
training, as docs/metrics.md defines them.
"""

import argparse
import json
import os
import pathlib

INFERENCES = ("compressed", "uncompressed", "uncompressed_recalibrated")


def measure_of(epoch):
    is_text = epoch["test"]["compressed"].get("perplexity") is not None
    return "loss" if is_text else "accuracy"


def measured(epoch, measure):
    row = {"epoch": epoch["epoch"], "train": epoch["train"][measure]}
    for inference in INFERENCES:
        tested = epoch["test"][inference]
        row[inference] = tested[measure] if tested else None
    return row


def best(rows, inference, measure):
    values = [row[inference] for row in rows if row[inference] is not None]
    return (max if measure == "accuracy" else min)(values) if values else None


def direction(record):
    error = record["relative_error"]
    return {
        "codec": record["parameters"],
        "raw_bytes": record["raw_bytes"],
        "wire_bytes": record["wire_bytes"],
        "wire_bits_per_element": round(record["wire_bits_per_element"], 4),
        "relative_error": None if error is None else round(error, 4),  # none was measured
    }


def compact(summary, suite, configuration):
    if summary["status"] != "completed":
        raise ValueError(f"status is {summary['status']}, want completed")
    tested = [epoch for epoch in summary["epochs"] if epoch["test"]]
    measure = measure_of(tested[-1])
    rows = [measured(epoch, measure) for epoch in tested]
    provenance = summary["provenance"]
    return {
        "suite": suite,
        "configuration": configuration,
        "seed": summary["seed"],
        "epochs": len(summary["epochs"]),
        "measure": measure,
        "final": {inference: rows[-1][inference] for inference in INFERENCES},
        "best": {inference: best(rows, inference, measure) for inference in INFERENCES},
        "evaluated": rows,
        "boundaries": [
            {
                "name": boundary["name"],
                "activations": direction(boundary["activations"]),
                "gradients": direction(boundary["gradients"]),
            }
            for boundary in summary["boundaries"]
        ],
        "stages": summary["stages"],
        "provenance": {
            key: provenance[key]
            for key in ("commit", "cpu_model", "simd_target", "onednn_isa", "threads",
                        "microbatches", "train_samples", "test_samples", "started", "finished")
        },
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("summary", type=pathlib.Path)
    parser.add_argument("--suite", required=True)
    parser.add_argument("--configuration", required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    options = parser.parse_args()
    summary = json.loads(options.summary.read_text())
    text = json.dumps(compact(summary, options.suite, options.configuration), indent=1) + "\n"
    partial = options.output.with_suffix(".partial")
    partial.write_text(text)
    os.replace(partial, options.output)  # a result is there as a whole or not at all


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""What is kept of a suite's runs: a few lines of JSON of each, from its summary.json.

usage: compact.py SWEEP SUITE [--results DIR]

SWEEP is the folder of a sweep, SUITE "paper1/narrow"; of each completed run DIR/SUITE/ROW-seedN.json is written
that is not there yet.

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


def replicas(record):
    """What replicas exchanged: contributions and sums, of all segments together."""
    return {"count": record["count"],
            **{kind: direction(record[kind]) for kind in ("contributions", "average") if record[kind] and record[kind]["raw_bytes"]}}


def compact(summary, suite, configuration):
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
        **({"replicas": replicas(summary["replicas"])} if summary.get("replicas") else {}),
        **({"stash": direction(summary["stash"])} if summary.get("stash") else {}),
        "stages": summary["stages"],
        "provenance": {
            key: provenance[key]
            for key in ("commit", "cpu_model", "simd_target", "onednn_isa", "threads",
                        "microbatches", "train_samples", "test_samples", "started", "finished")
        },
    }


def keep(run, suite, output):
    """Writes the result of a run's folder; says why there is none, or None."""
    name = run.name.rpartition("-seed")[0]
    try:
        summary = json.loads((run / "summary.json").read_text())
    except FileNotFoundError:
        return "has not ended"
    if summary["status"] != "completed":
        return f"is {summary['status']}, want completed"
    output.parent.mkdir(parents=True, exist_ok=True)
    partial = output.with_suffix(".partial")
    partial.write_text(json.dumps(compact(summary, suite.rpartition("/")[2], name), indent=1) + "\n")
    os.replace(partial, output)  # a result is there as a whole or not at all
    return None


def main():
    results = pathlib.Path(__file__).resolve().parent.parent / "docs" / "results"
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sweep", type=pathlib.Path, help="folder of a sweep")
    parser.add_argument("suite", help="as paper1/narrow")
    parser.add_argument("--results", type=pathlib.Path, default=results)
    options = parser.parse_args()
    runs = sorted((options.sweep / "runs").glob("*-seed*"))
    if not runs:
        parser.error(f"no run stands in {options.sweep / 'runs'}")
    for run in runs:
        output = options.results / options.suite / f"{run.name}.json"
        why = "was there" if output.exists() else keep(run, options.suite, output)
        print(f"{run.name}: {why or output}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""What crosses the cuts of a run, in figures: how much of it few channels and positions hold.

usage: pretrained_cuts.py CAPTURE.safetensors    of sequences; see docs/experiment_file.md, `capture`

Prints a table with a line for each cut and direction. Of mean squares it has the ratio of position 0 to the other
positions, of the largest channel to the median one without position 0, and the shares of the four largest channels and
of the hundredth of positions that are largest. Kurtosis is that of all elements; 3 for normal values."""

import json
import struct
import sys

import numpy as np

CHANNELS, POSITIONS = 4, 0.01


def tensors_of(path):
    """The fp32 tensors of a file, by name."""
    with open(path, "rb") as file:
        data = file.read()
    (size,) = struct.unpack_from("<Q", data)
    result = {}
    for name, about in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            assert about["dtype"] == "F32", f"{name}: {about['dtype']}, want F32"
            begin, end = about["data_offsets"]
            values = np.frombuffer(data[8 + size + begin : 8 + size + end], dtype="<f4")
            result[name] = values.reshape(about["shape"]).astype(np.float64)
    return result


def share_of_largest(values, count):
    """What the largest values hold of the sum."""
    return np.sort(values)[-count:].sum() / values.sum()


def figures_of(x):
    """The figures of a line, of [samples, positions, channels]."""
    squares = x * x
    first, others = squares[:, 0].mean(), squares[:, 1:]
    channels = others.mean((0, 1))
    positions = others.mean(2).reshape(-1)
    return [
        f"{np.sqrt(squares.mean()):.3g}",
        f"{first / others.mean():.3g}",
        f"{channels.max() / np.median(channels):.3g}",
        f"{100 * share_of_largest(channels, CHANNELS):.1f} %",
        f"{100 * share_of_largest(positions, max(1, round(POSITIONS * positions.size))):.1f} %",
        f"{(squares * squares).mean() / squares.mean() ** 2:.3g}",
        f"{(others * others).mean() / others.mean() ** 2:.3g}",
    ]


def main():
    """Prints the table of the file that the arguments name."""
    (path,) = sys.argv[1:]
    tensors = {}
    for name, x in tensors_of(path).items():
        cut, direction = name.split("/")[:2]
        tensors.setdefault((cut, direction), []).append(x)
    print(
        "| cut | direction | rms | position 0 | largest channel | four channels | 1 % of positions | kurtosis "
        "| without position 0 |\n|---|---|---|---|---|---|---|---|---|"
    )
    for (cut, direction), parts in sorted(tensors.items(), key=lambda entry: (entry[0][1], entry[0][0])):
        print(f"| {cut} | {direction} | " + " | ".join(figures_of(np.concatenate(parts))) + " |")


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""Writes tensors of 2^20 values with tails of three kinds, as contributions of replicas have them, for
`thinwire codecs --measure`; with --bins also what bins evenly spaced over six standard deviations
lose at two bits, decoded at their means, of the 64 largest of each 4096.
usage: tails.py [--bins] OUT.safetensors"""
import argparse
import json
import pathlib

import numpy as np

VALUES, GROUP, KEPT = 1 << 20, 4096, 64


def tensors():
    """Name and values of each."""
    random = np.random.default_rng(1)
    yield "normal", random.standard_normal(VALUES)
    yield "laplace", random.laplace(size=VALUES)
    yield "student, 3 degrees of freedom", random.standard_t(3, size=VALUES)


def error_of_bins(x):
    """The relative error of the 64 largest of each group in four bins over six deviations."""
    groups = x.reshape(-1, GROUP)
    places = np.argpartition(-np.abs(groups), KEPT, axis=1)[:, :KEPT]
    kept = np.take_along_axis(groups, places, axis=1).reshape(-1)
    codes = np.clip(np.round((kept - kept.mean()) / (6 / 4 * kept.std(ddof=1)) + 2), 0, 3).astype(int)
    means = np.bincount(codes, kept, 4) / np.maximum(np.bincount(codes, minlength=4), 1)
    lost = np.square(x).sum() - np.square(kept).sum() + np.square(kept - means[codes]).sum()
    return np.sqrt(lost / np.square(x).sum())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bins", action="store_true")
    parser.add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()
    header, data = {}, b""
    for name, values in tensors():
        if arguments.bins:
            print(f"{name}: {error_of_bins(values):.4f}")
        offsets = [len(data), len(data) + 4 * VALUES]
        header[name] = {"dtype": "F32", "shape": [VALUES], "data_offsets": offsets}
        data += values.astype("<f4").tobytes()
    text = json.dumps(header).encode()
    arguments.out.write_bytes(len(text).to_bytes(8, "little") + text + data)


if __name__ == "__main__":
    main()

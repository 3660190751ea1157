#!/usr/bin/env python3
"""Decodes what a training puts on the wire, with nothing but the pages and stock protobuf.

usage: decoder_test.py RECORD COMPRESSION.MD WIRE.MD"""

import pathlib
import subprocess
import sys
import tempfile

import entropy
import frame_examples
import recording
import worked_examples
from boundary_pb2 import PHASE_TRAIN
from direction import DirectionCheck


def _activations(recorded, cut):
    """What the receiver used of each training activation of a cut, by step and microbatch."""
    for direction in recorded.directions:
        if direction.about["cut"] == cut and direction.about["direction"] == "activation":
            entries = direction.about["messages"]
            return {
                (entry["step"], entry["microbatch"]): used
                for entry, used in zip(entries, direction.used)
                if entry["phase"] == PHASE_TRAIN
            }
    raise AssertionError(f"no activations of cut {cut}")


def _check_run(folder):
    """Checks one recorded run and returns the number of its messages."""
    recorded = recording.read(folder)
    for direction in recorded.directions:
        activations = _activations(recorded, direction.about["cut"])
        DirectionCheck(recorded.about, direction, activations).check()
    return sum(len(direction.messages) for direction in recorded.directions)


def main():
    """Records, decodes and tells of each run."""
    record, compression, wire = sys.argv[1:]
    frame_examples.check(pathlib.Path(wire).read_text(encoding="utf-8"))
    examples = worked_examples.check(pathlib.Path(compression).read_text(encoding="utf-8"))
    assert examples > 20, f"{examples} examples in {compression}"
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([record, folder], check=True)
        for run in sorted(pathlib.Path(folder).iterdir()):
            try:
                print(f"{run.name}: {_check_run(run)} messages")
            except AssertionError as error:
                print(f"{run.name}: {error}")
                failed += 1
    assert entropy.frames_with_neighbours > 0, "no message has codes with neighbours"
    assert entropy.frames_of_pairs > 0, "no message has codes in pairs"
    assert entropy.frames_in_parts > 0, "no message has codes with neighbours in parts"
    assert entropy.plain_frames_in_parts > 0, "no message has bytes without neighbours in parts"
    print(f"{failed} runs are not what the pages say")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())

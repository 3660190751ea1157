"""A recorded run as `record` writes it (tests/wire/README.md)."""

import dataclasses
import json
import pathlib
import struct

import numpy as np

import floats
import frames


@dataclasses.dataclass
class Direction:
    """What crossed one direction of one cut. Tensors are flat and fp32."""

    about: dict  # its entry in run.json
    messages: list  # frames.Message
    given: list
    used: list
    shapes: list
    wire_bytes: int

    @property
    def name(self):
        """CUT/DIRECTION."""
        return f"{self.about['name']}/{self.about['direction']}"


@dataclasses.dataclass
class Recording:
    """One run."""

    about: dict
    directions: list


def _safetensors(path):
    """Shape and flat fp32 values of each tensor by name."""
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        part = data[8 + size + begin : 8 + size + end]
        if entry["dtype"] == "F32":
            values = np.frombuffer(part, dtype="<f4")
        else:
            values = floats.bf16_values(np.frombuffer(part, dtype="<u2"))
        tensors[name] = tuple(entry["shape"]), values
    return tensors


def read(folder):
    """The Recording in a folder."""
    folder = pathlib.Path(folder)
    about = json.loads((folder / "run.json").read_text())
    tensors = _safetensors(folder / "tensors.safetensors")
    directions = []
    for entry in about["directions"]:
        name = f"{entry['name']}/{entry['direction']}"
        recorded = (folder / f"{entry['name']}.{entry['direction']}.frames").read_bytes()
        count = range(len(entry["messages"]))
        given = [tensors[f"{name}/{i}/given"] for i in count]
        directions.append(
            Direction(
                entry,
                frames.messages(recorded),
                [values for _, values in given],
                [tensors[f"{name}/{i}/used"][1] for i in count],
                [shape for shape, _ in given],
                len(recorded),
            )
        )
    return Recording(about, directions)

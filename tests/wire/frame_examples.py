"""The examples of docs/wire.md: a frame, keys, a random stream and digests."""

import re

import boundary_pb2
import digests
import frames
import streams


def _check_frame(page):
    lines = page.split("```hex\n")[1].split("```")[0].splitlines()
    frame = frames.parse(bytes.fromhex("".join(line.split("#")[0] for line in lines)))
    header = frame.header
    assert header.run == 0x0123456789ABCDEF and header.sample_digest == 0x1122334455667788
    assert (header.generation, header.epoch, header.step, header.microbatch) == (3, 1, 7, 2)
    assert header.phase == boundary_pb2.PHASE_TRAIN and header.cut == 1
    assert header.codec.kind == boundary_pb2.CodecParameters.KIND_UNIFORM and header.codec.bits == 8
    assert list(header.shape) == [2, 3] and header.payload_bytes == len(frame.payload) == 6


def check(page):
    """Checks all examples of the page."""
    _check_frame(page)
    told = dict(re.findall(r"^\| ([^|]*[^ |]) +\| `([0-9A-F ]+)` \|$", page, re.MULTILINE))
    met = {
        "mix of 1": streams.mix(1),
        "key of seed 7 and name `codec`": streams.named_key(7, "codec"),
        "key of 7, 8, 9": streams.event_key(7, 8, 9),
        "digest of the words 1, 2, 3": digests.of_words([1, 2, 3]),
        "digest of the bytes `a run of thirty-five bytes, or more`": digests.of_bytes(
            b"a run of thirty-five bytes, or more"
        ),
    }
    met = {name: f"{value:016X}" for name, value in met.items()}
    numbers = streams.numbers(1, 5)
    met["first numbers of the stream of key 1"] = " ".join(f"{number:08X}" for number in numbers)
    assert told == met, f"{told}, here {met}"

"""Recorded frames, read with stock protobuf and put together to messages (docs/wire.md)."""

import dataclasses
import struct

import boundary_pb2

CHUNK_BYTES = 4 << 20
ON_ALL_CHUNKS = ("run", "generation", "cut", "direction", "phase", "epoch", "step", "microbatch")


def _crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _crc32c_table()


def crc32c(data):
    """CRC-32C (Castagnoli) of RFC 3720."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


@dataclasses.dataclass
class Message:
    """One encoded tensor: the header of its first chunk and its whole payload."""

    header: boundary_pb2.FrameHeader
    payload: bytes
    wire_bytes: int


def _varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def _header_bytes(frame):
    """Part b of a frame: the header as it stands there."""
    assert frame[0] == 0x0A, f"a frame begins with {frame[0]:02X}, want 0A"
    size, at = _varint(frame, 1)
    return frame[at : at + size]


def parse(data):
    """One frame, parsed; its checksums are those of its bytes."""
    frame = boundary_pb2.Frame.FromString(data)
    header = _header_bytes(data)
    assert frame.header == boundary_pb2.FrameHeader.FromString(header)
    assert crc32c(header) == frame.header_crc32c, "header_crc32c differs"
    assert crc32c(frame.payload) == frame.header.payload_crc32c, "payload_crc32c differs"
    return frame


def _split(recorded):
    """The frames of one direction, each behind gRPC's prefix: a byte 0 and a big-endian length."""
    at = 0
    while at < len(recorded):
        flags, size = struct.unpack_from(">BI", recorded, at)
        assert flags == 0, f"flags {flags} at byte {at}, want 0"
        yield recorded[at + 5 : at + 5 + size]
        at += 5 + size
    assert at == len(recorded), "the last frame is cut short"


def messages(recorded):
    """The messages of one direction of one cut, in the order in which they were sent."""
    result, first, payload, wire_bytes = [], None, b"", 0
    for data in _split(recorded):
        frame = parse(data)
        header = frame.header
        if first is None:
            first, payload, wire_bytes, expected = header, b"", 0, 0
        for field in ON_ALL_CHUNKS:
            met, wanted = getattr(header, field), getattr(first, field)
            assert met == wanted, f"{field} {met} on chunk {header.chunk}, want {wanted}"
        assert header.chunk == expected, f"chunk {header.chunk}, want {expected}"
        left = first.payload_bytes - len(payload)
        assert len(frame.payload) == min(left, CHUNK_BYTES), f"chunk of {len(frame.payload)} bytes"
        assert first.chunks == max(1, -(-first.payload_bytes // CHUNK_BYTES)), first.chunks
        payload += frame.payload
        wire_bytes += len(data) + 5
        expected += 1
        if expected == first.chunks:
            result.append(Message(first, payload, wire_bytes))
            first = None
    assert first is None, "the last message is cut short"
    return result

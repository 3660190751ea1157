"""The entropy coder of docs/compression.md: frames of byte strings, with one table of frequencies."""
import struct

SCALE_BITS, LANES, LEAST_STATE = 12, 8, 1 << 16
SCALE = 1 << SCALE_BITS


def _scaled(data):
    """Frequencies that add up to 2^12, of every byte."""
    counts = [0] * 256
    for byte in data:
        counts[byte] += 1
    scaled = [max(1, (2 * c * SCALE + len(data)) // (2 * len(data))) if c else 0 for c in counts]
    while sum(scaled) < SCALE:
        scaled[max(range(256), key=lambda s: (counts[s] << 16) // (2 * scaled[s] + 1))] += 1
    while sum(scaled) > SCALE:
        several = [s for s in range(256) if scaled[s] > 1]
        scaled[min(several, key=lambda s: (counts[s] << 16) // (2 * scaled[s] - 1))] -= 1
    return scaled


def _table(scaled):
    """The frequencies as bytes."""
    out, s = bytearray(), 0
    while s < 256:
        if scaled[s] == 0:
            end = s
            while end < 256 and scaled[end] == 0:
                end += 1
            out += bytes([0, end - s - 1])
            s = end
            continue
        out += bytes([scaled[s]]) if scaled[s] < 128 else bytes([128 | scaled[s] >> 8, scaled[s] & 255])
        s += 1
    return bytes(out)


def _starts(scaled):
    """The sum of the frequencies before each byte's."""
    starts = [0]
    for frequency in scaled:
        starts.append(starts[-1] + frequency)
    return starts


def encode(data):
    """The frame, or None where it would not be shorter."""
    if not data:
        return None
    scaled = _scaled(data)
    starts = _starts(scaled)
    states, words = [LEAST_STATE] * LANES, []
    for i in reversed(range(len(data))):
        frequency, x = scaled[data[i]], states[i % LANES]
        if x >= frequency << 20:
            words.append(x & 0xFFFF)
            x >>= 16
        states[i % LANES] = (x // frequency << SCALE_BITS) + x % frequency + starts[data[i]]
    frame = struct.pack("<I", len(data)) + _table(scaled) + struct.pack("<8I", *states)
    frame += struct.pack(f"<{len(words)}H", *reversed(words))
    return frame if len(frame) < len(data) else None


def decode(frame):
    """What a frame holds."""
    (length,) = struct.unpack_from("<I", frame)
    at, scaled = 4, []
    while len(scaled) < 256:
        first, second = frame[at], frame[at + 1]
        if first == 0:
            scaled += [0] * (second + 1)
        else:
            scaled.append(first if first < 128 else (first - 128) * 256 + second)
        at += 1 if 0 < first < 128 else 2
    assert len(scaled) == 256 and sum(scaled) == SCALE, (len(scaled), sum(scaled))
    starts = _starts(scaled)
    byte_of = [s for s in range(256) for _ in range(scaled[s])]
    states = list(struct.unpack_from("<8I", frame, at))
    words = iter(struct.unpack(f"<{(len(frame) - at - 32) // 2}H", frame[at + 32 :]))
    out = bytearray()
    for i in range(length):
        x = states[i % LANES]
        byte = byte_of[x % SCALE]
        x = scaled[byte] * (x >> SCALE_BITS) + x % SCALE - starts[byte]
        states[i % LANES] = x if x >= LEAST_STATE else x << 16 | next(words)
        out.append(byte)
    assert states == [LEAST_STATE] * LANES and next(words, None) is None
    return bytes(out)

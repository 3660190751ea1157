"""The entropy coder of docs/compression.md: frames of byte strings."""
import struct

SCALE_BITS, STATES, LEAST_STATE, SUMS = 12, 32, 1 << 15, 16
SCALE = 1 << SCALE_BITS

PAIRS_FORM, PARTS_FORM, LARGE = 16, 17, 15

# Of those that were decoded.
frames_with_neighbours = frames_of_pairs = frames_in_parts = plain_frames_in_parts = 0


class Choice:
    """What an encoder chooses: which bytes have neighbours, where these stand, and which of their sums
    share a table, in how many parts whose rows have so many stretches; or which bytes are coded in pairs,
    in how many parts."""

    def __init__(self, neighbours=(), begin=0, count=0, boundaries=0, parts=0, stretches=0):
        self.neighbours, self.begin, self.count, self.boundaries = tuple(neighbours), begin, count, boundaries
        self.parts, self.stretches = parts, stretches

    @property
    def num_contexts(self):
        return 1 + bin(self.boundaries).count("1")

    def head(self):
        """What a frame says of it."""
        head = bytes([len(self.neighbours)])
        if self.stretches and not self.neighbours:
            head = struct.pack("<BBH", PARTS_FORM, 0, self.parts)
        elif self.stretches:
            head = bytes([PARTS_FORM, len(self.neighbours), self.stretches.bit_length() - 1])
            head += struct.pack("<IIHH", self.begin, self.count, self.parts, self.boundaries)
            head += struct.pack(f"<{len(self.neighbours)}I", *self.neighbours)
        elif self.neighbours:
            head += struct.pack("<IIH", self.begin, self.count, self.boundaries)
            head += struct.pack(f"<{len(self.neighbours)}I", *self.neighbours)
        return head

    def context(self, rows, row, state):
        """That of the code of a state in a row, of which only earlier rows are looked at."""
        if not self.neighbours:
            return 0
        total = sum((rows[(row - n) * STATES + state] + 1) // 2 for n in self.neighbours if n <= row)
        return bin(self.boundaries & ((2 << min(total, SUMS - 1)) - 1)).count("1")


def _scaled(counts):
    """Frequencies that add up to 2^12."""
    total = sum(counts)
    if total == 0:
        return [SCALE] + 255 * [0]
    scaled = [max(1, (2 * c * SCALE + total) // (2 * total)) if c else 0 for c in counts]
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


def _turns(count):
    """Bytes in the order in which they are decoded: row by row, in each the last one first."""
    rows = [range(first, min(first + STATES, count)) for first in range(0, count, STATES)]
    return [i for row in rows for i in reversed(row)]


def _num_rows(count):
    return (count + STATES - 1) // STATES


def _to_rows(codes):
    """Stretches side by side, one for each state."""
    length = _num_rows(len(codes))
    padded = codes + bytes(length * STATES - len(codes))
    return bytes(padded[s * length + j] for j in range(length) for s in range(STATES))


def _from_rows(rows, count):
    length = _num_rows(count)
    return bytes(rows[j * STATES + s] for s in range(STATES) for j in range(length))[:count]


def _arranged(choice):
    """For each part the places of its codes in the order of its rows; None behind the last code. Without
    neighbours the last row may be incomplete instead."""
    count, parts = choice.count, choice.parts
    rows, width = _num_rows(count), STATES // choice.stretches
    bounds = [part * rows // parts for part in range(parts + 1)]
    places = []
    for first, end in zip(bounds, bounds[1:]):
        if not choice.neighbours:
            places.append(range(first * STATES, min(end * STATES, count)))
            continue
        of_part = [first * STATES + (t * (end - first) + j) * width + i
                   for j in range(end - first) for t in range(choice.stretches) for i in range(width)]
        places.append([place if place < count else None for place in of_part])
    return places


def _coded(data, tables, contexts):
    """States and words of a string whose bytes have these contexts."""
    starts = [_starts(table) for table in tables]
    states, words = [LEAST_STATE] * STATES, []
    for i in reversed(_turns(len(data))):
        context, byte = contexts[i], data[i]
        frequency, x = tables[context][byte], states[i % STATES]
        if x >= frequency << 19:
            words.append(x & 0xFFFF)
            x >>= 16
        states[i % STATES] = (x // frequency << SCALE_BITS) + x % frequency + starts[context][byte]
    return struct.pack(f"<{STATES}I", *states) + struct.pack(f"<{len(words)}H", *reversed(words))


def _part_bounds(pairs, parts):
    """The first byte of each part, and the end."""
    rows = len(pairs) // STATES
    return [part * rows // parts * STATES for part in range(parts + 1)]


def _encode_pairs(data, choice):
    """The frame of codes in pairs."""
    end = choice.begin + choice.count
    codes = data[choice.begin : end]
    small = bytes(min(code, LARGE) for code in codes)
    small += bytes(-len(small) % (2 * STATES))
    pairs = bytes(small[i] | small[i + 1] << 4 for i in range(0, len(small), 2))
    large = bytes(code for code in codes if code >= LARGE)
    table = _scaled([pairs.count(byte) for byte in range(256)])
    bounds = _part_bounds(pairs, choice.parts)
    parts = [_coded(pairs[a:b], [table], [0] * (b - a)) for a, b in zip(bounds, bounds[1:])]
    frame = struct.pack("<IB", len(data), PAIRS_FORM)
    frame += struct.pack("<IIIH", choice.begin, choice.count, len(large), choice.parts)
    frame += data[: choice.begin] + data[end:] + large + _table(table)
    return frame + struct.pack(f"<{len(parts)}I", *map(len, parts)) + b"".join(parts)


def _encode_parts(data, choice):
    """The frame in parts, of codes with neighbours or of all bytes."""
    end = choice.begin + choice.count
    codes = data[choice.begin : end]
    parts = [bytes(0 if place is None else codes[place] for place in places)
             for places in _arranged(choice)]
    contexts = [[choice.context(part, *divmod(i, STATES)) for i in range(len(part))] for part in parts]
    counts = [256 * [0] for _ in range(choice.num_contexts)]
    for part, of_part in zip(parts, contexts):
        for byte, context in zip(part, of_part):
            counts[context][byte] += 1
    tables = [_scaled(of_context) for of_context in counts]
    strings = [_coded(part, tables, of_part) for part, of_part in zip(parts, contexts)]
    frame = struct.pack("<I", len(data)) + choice.head() + data[: choice.begin] + data[end:]
    frame += b"".join(map(_table, tables))
    return frame + struct.pack(f"<{len(strings)}I", *map(len, strings)) + b"".join(strings)


def encode(data, choice):
    """The frame, or None where it would not be shorter."""
    if not data:
        return None
    if choice.stretches:
        return _encode_parts(data, choice)
    if choice.parts:
        return _encode_pairs(data, choice)
    end = choice.begin + choice.count
    coded, uncoded = data, b""
    if choice.neighbours:
        coded, uncoded = _to_rows(data[choice.begin : end]), data[: choice.begin] + data[end:]
    contexts = [choice.context(coded, *divmod(i, STATES)) for i in range(len(coded))]
    counts = [256 * [0] for _ in range(choice.num_contexts)]
    for context, byte in zip(contexts, coded):
        counts[context][byte] += 1
    tables = [_scaled(of_context) for of_context in counts]
    frame = struct.pack("<I", len(data)) + choice.head() + uncoded
    frame += b"".join(map(_table, tables)) + _coded(coded, tables, contexts)
    return frame if len(frame) < len(data) else None


class _Reader:
    def __init__(self, frame):
        self.frame, self.at = frame, 0

    def next(self, layout):
        """The numbers of a layout of struct."""
        values = struct.unpack_from("<" + layout, self.frame, self.at)
        self.at += struct.calcsize("<" + layout)
        return values

    def table(self):
        """The frequencies of the bytes 0 to 255."""
        scaled = []
        while len(scaled) < 256:
            (first,) = self.next("B")
            if first == 0:
                scaled += [0] * (self.next("B")[0] + 1)
            else:
                scaled.append(first if first < 128 else (first - 128) * 256 + self.next("B")[0])
        assert len(scaled) == 256 and sum(scaled) == SCALE, (len(scaled), sum(scaled))
        return scaled


def _decoded(string, count, tables, choice):
    """So many bytes of states and words."""
    starts = [_starts(table) for table in tables]
    byte_of = [[s for s in range(256) for _ in range(table[s])] for table in tables]
    states = list(struct.unpack_from(f"<{STATES}I", string))
    words = iter(struct.unpack(f"<{len(string) // 2 - 2 * STATES}H", string[4 * STATES :]))
    out = bytearray(count)
    for i in _turns(count):
        context, x = choice.context(out, *divmod(i, STATES)), states[i % STATES]
        byte = byte_of[context][x % SCALE]
        x = tables[context][byte] * (x >> SCALE_BITS) + x % SCALE - starts[context][byte]
        states[i % STATES] = x if x >= LEAST_STATE else x << 16 | next(words)
        out[i] = byte
    assert states == [LEAST_STATE] * STATES and next(words, None) is None
    return out


def _decode_pairs(reader, length):
    """What a frame of pairs holds behind its form."""
    global frames_of_pairs
    frames_of_pairs += 1
    begin, count, num_large, num_parts = reader.next("IIIH")
    uncoded = bytes(reader.next(f"{length - count}B"))
    large = iter(reader.next(f"{num_large}B"))
    table = reader.table()
    pairs = bytearray(_num_rows((count + 1) // 2) * STATES)
    bounds = _part_bounds(pairs, num_parts)
    for part, size in enumerate(reader.next(f"{num_parts}I")):
        string, (a, b) = bytes(reader.next(f"{size}B")), bounds[part : part + 2]
        pairs[a:b] = _decoded(string, b - a, [table], Choice())
    assert reader.at == len(reader.frame)
    small = [half for pair in pairs for half in (pair & 15, pair >> 4)][:count]
    codes = bytes(next(large) if code == LARGE else code for code in small)
    assert next(large, None) is None
    return uncoded[:begin] + codes + uncoded[begin:], Choice((), begin, count, 0, num_parts)


def _decode_parts(reader, length):
    """What a frame of parts holds behind its form."""
    global frames_in_parts, plain_frames_in_parts
    (num_neighbours,) = reader.next("B")
    begin, count = 0, length
    if num_neighbours:
        frames_in_parts += 1
        stretches_log2, begin, count, num_parts, boundaries = reader.next("BIIHH")
        neighbours = reader.next(f"{num_neighbours}I")
        choice = Choice(neighbours, begin, count, boundaries, num_parts, 1 << stretches_log2)
    else:
        plain_frames_in_parts += 1
        (num_parts,) = reader.next("H")
        choice = Choice((), begin, count, 0, num_parts, stretches=1)
    uncoded = bytes(reader.next(f"{length - count}B"))
    tables = [reader.table() for _ in range(choice.num_contexts)]
    codes = bytearray(count)
    for size, places in zip(reader.next(f"{num_parts}I"), _arranged(choice)):
        part = _decoded(bytes(reader.next(f"{size}B")), len(places), tables, choice)
        for place, code in zip(places, part):
            if place is not None:
                codes[place] = code
    assert reader.at == len(reader.frame)
    return uncoded[:begin] + bytes(codes) + uncoded[begin:], choice


def decode(frame):
    """What a frame holds, and its encoder's choice."""
    global frames_with_neighbours
    reader = _Reader(frame)
    length, num_neighbours = reader.next("IB")
    if num_neighbours == PAIRS_FORM:
        return _decode_pairs(reader, length)
    if num_neighbours == PARTS_FORM:
        return _decode_parts(reader, length)
    choice, num_coded = Choice(), length
    frames_with_neighbours += num_neighbours > 0
    if num_neighbours:
        begin, count, boundaries = reader.next("IIH")
        choice = Choice(reader.next(f"{num_neighbours}I"), begin, count, boundaries)
        num_coded = _num_rows(count) * STATES
        uncoded = bytes(reader.next(f"{length - count}B"))
    tables = [reader.table() for _ in range(choice.num_contexts)]
    out = _decoded(frame[reader.at :], num_coded, tables, choice)
    if num_neighbours:
        out = uncoded[:begin] + _from_rows(out, count) + uncoded[begin:]
    return bytes(out), choice

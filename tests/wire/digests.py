"""The 64-bit digests that travel in frames, as docs/wire.md defines them."""

import struct

from streams import MASK, event_key

START = 0x243F6A8885A308D3


def add_word(state, word):
    """The digest `state` after one more word."""
    return event_key(state, word)


def add_bytes(state, data):
    """The digest `state` after one more string of bytes."""
    lanes = [state, state ^ 0x9E3779B97F4A7C15, ~state & MASK, (state + len(data)) & MASK]
    whole = len(data) // 32 * 32
    for start in range(0, whole, 32):
        words = struct.unpack_from("<4Q", data, start)
        lanes = [((lane ^ word) * 0x9FB21C651E98DF25) & MASK for lane, word in zip(lanes, words)]
        lanes = [lane ^ (lane >> 32) for lane in lanes]
    for lane in lanes:
        state = add_word(state, lane)
    for start in range(whole, len(data), 8):
        state = add_word(state, int.from_bytes(data[start : start + 8], "little"))
    return add_word(state, len(data))


def of_words(words):
    """The digest of a sequence of words."""
    state = START
    for word in words:
        state = add_word(state, word)
    return state


def of_bytes(data):
    """The digest of one string of bytes."""
    return add_bytes(START, data)

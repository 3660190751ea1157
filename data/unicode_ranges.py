#!/usr/bin/env python3
"""Writes what the patterns of tokenizers take characters for, as tiktoken's regular expressions have it:
unicode_ranges.inc, letters (\\p{L}), numbers (\\p{N}) and white space (\\s), or unicode_cases.inc, capital
(\\p{Lu}, \\p{Lt}) and small letters (\\p{Ll}) and marks (\\p{M}).
usage: unicode_ranges.py [cases] > unicode_ranges.inc | unicode_cases.inc       with tiktoken from PyPI"""

import sys

import tiktoken

CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
CLASSES = {r"\p{L}": "kLetter", r"\p{N}": "kNumber", r"\s": "kSpace"}
CASES = {r"[\p{Lu}\p{Lt}]": "kCapital", r"\p{Ll}": "kSmall", r"\p{M}": "kMark"}


def members(pattern):
    """All characters that the pattern matches: what it does not match, tiktoken leaves out."""
    bytes_alone = {bytes([b]): b for b in range(256)}
    encoding = tiktoken.Encoding("bytes", pat_str=pattern, mergeable_ranks=bytes_alone, special_tokens={})
    return sorted(map(ord, bytes(encoding.encode_ordinary("".join(CHARACTERS))).decode()))


def ranges(pattern, name):
    found = []
    for code in members(pattern):
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code, name])
    return found


rows = [row for pattern, name in (CASES if "cases" in sys.argv else CLASSES).items() for row in ranges(pattern, name)]
print(f"// Made by unicode_ranges.py with tiktoken {tiktoken.__version__}: first, last, class; ascending.")
line = ""
for first, last, name in sorted(rows):
    row = f"{{0x{first:x}, 0x{last:x}, {name}}},"
    if len(line) + 1 + len(row) > 100:
        print(line)
        line = ""
    line += (" " if line else "") + row
print(line)

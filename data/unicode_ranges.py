#!/usr/bin/env python3
"""Writes unicode_ranges.inc: which characters the pattern of GPT-2's tokenizer takes for letters
(\\p{L}), numbers (\\p{N}) and white space (\\s), as tiktoken's regular expressions have them.
usage: unicode_ranges.py > unicode_ranges.inc        with tiktoken from PyPI"""

import tiktoken

CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]


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


rows = ranges(r"\p{L}", "kLetter") + ranges(r"\p{N}", "kNumber") + ranges(r"\s", "kSpace")
print(f"// Made by unicode_ranges.py with tiktoken {tiktoken.__version__}: first, last, class; ascending.")
line = ""
for first, last, name in sorted(rows):
    row = f"{{0x{first:x}, 0x{last:x}, {name}}},"
    if len(line) + 1 + len(row) > 100:
        print(line)
        line = ""
    line += (" " if line else "") + row
print(line)

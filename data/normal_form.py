#!/usr/bin/env python3
"""Writes normal_form.inc: Unicode's canonical decompositions, combining classes and compositions, as the normalizers
of Hugging Face's tokenizers have them.
usage: normal_form.py > normal_form.inc        with tokenizers from PyPI"""

import unicodedata

import tokenizers
from tokenizers import normalizers

CODES = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF and not 0xAC00 <= c <= 0xD7A3]  # Hangul is arithmetic
decomposed = normalizers.NFD().normalize_str
composed = normalizers.NFC().normalize_str


def class_samples():
    """A mark of each combining class, ascending, of those that the normalizers know; the last class is U+0345's own."""
    last = "\u0345"
    samples = {unicodedata.combining(last): last}
    for mark in map(chr, CODES):
        if unicodedata.combining(mark) and decomposed(last + mark) == mark + last:
            samples.setdefault(unicodedata.combining(mark), mark)
    return sorted(samples.items())


def combining_class(code, samples):
    """The class by which marks are put in order: the greatest whose mark stays in front, 0 if none ever moves."""
    character = chr(code)
    least, most = samples[0][1], samples[-1][1]
    if decomposed(character) != character:
        return 0  # its parts have classes
    moves_left = decomposed(most + character) != most + character
    moves_right = decomposed(character + least) != character + least
    if not moves_left and not moves_right:
        return 0
    return max(number for number, mark in samples if decomposed(mark + character) == mark + character)


def braced(item):
    """The initializer of a number, or of a list of them."""
    return "{" + ", ".join(map(braced, item)) + "}" if isinstance(item, list) else hex(item)


def rows(name, items):
    print(f"constexpr {name}[] = {{")
    line = ""
    for item in items:
        row = braced(item) + ","
        if len(line) + 1 + len(row) > 98:
            print("    " + line.strip())
            line = ""
        line += " " + row
    print("    " + line.strip() + "\n};")


def main():
    samples = class_samples()
    classes, decompositions, compositions = [], [], []
    for code in CODES:
        number = combining_class(code, samples)
        if number and classes and classes[-1][1:] == [code - 1, number]:
            classes[-1][1] = code
        elif number:
            classes.append([code, code, number])
        parts = decomposed(chr(code))
        if parts == chr(code):
            continue
        decompositions.append([code, list(map(ord, parts))])
        if composed(parts) == chr(code):
            first = composed(parts[:-1])
            assert len(first) == 1 and composed(first + parts[-1]) == chr(code)
            compositions.append([ord(first), ord(parts[-1]), code])
    assert max(len(parts) for _, parts in decompositions) <= 4
    print(f"// Made by normal_form.py with tokenizers {tokenizers.__version__}.")
    print("// First, last, combining class.")
    rows("MarkRange kMarks", classes)
    print("// A character and what it is made of, up to four characters.")
    rows("Decomposition kDecompositions", decompositions)
    print("// First, second, and what they make.")
    rows("Composition kCompositions", sorted(compositions))


main()

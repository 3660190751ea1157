#!/usr/bin/env python3
"""Writes bert_characters.inc: what BERT's tokenizer does with each character, as the tokenizers package does it.
usage: bert_characters.py > bert_characters.inc        with tokenizers from PyPI"""

import tokenizers
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

CODES = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
HANGUL = range(0xAC00, 0xD7A4)  # their parts are computed
NOTHING = {"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False}


def normalizer(**does):
    return BertNormalizer(**{**NOTHING, **does}).normalize_str


clean = normalizer(clean_text=True)
ideograph = normalizer(handle_chinese_chars=True)
lower = normalizer(strip_accents=True, lowercase=True)
split = BertPreTokenizer().pre_tokenize_str


def kind(c):
    """The class of a character, None for one of a word."""
    character = chr(c)
    cleaned = clean(character)
    if cleaned == "":
        return "kRemoved"
    if cleaned == " ":
        return "kSpace"
    if ideograph(character) != character:
        return "kIdeograph"
    if [part for part, _ in split(f"a{character}a")] == ["a", character, "a"]:
        return "kPunctuation"
    return None


def classes():
    found = []
    for c in CODES:
        name = kind(c)
        if name is None:
            continue
        if found and found[-1][1:] == [c - 1, name]:
            found[-1][1] = c
        else:
            found.append([c, c, name])
    return [f"{{0x{first:x}, 0x{last:x}, {name}}}" for first, last, name in found]


def simplified():
    """Runs of characters: the first becomes `to`, each next one the next; or all become nothing."""
    found = []
    for c in CODES:
        to = [ord(x) for x in lower(chr(c))]
        if to == [c] or c in HANGUL:
            continue
        if found and found[-1][1] == c - 1 and len(to) < 2 and len(found[-1][2]) == len(to):
            if to == [x + c - found[-1][0] for x in found[-1][2]]:
                found[-1][1] = c
                continue
        found.append([c, c, to])
    return [f"{{0x{first:x}, 0x{last:x}, {{{', '.join(f'0x{x:x}' for x in to)}}}}}" for first, last, to in found]


def write(rows):
    line = ""
    for row in rows:
        if len(line) + 2 + len(row) > 100:
            print(line)
            line = ""
        line += (" " if line else "") + row + ","
    print(line)


print(f"// Made by bert_characters.py with tokenizers {tokenizers.__version__}. First, last, class; ascending.")
print("constexpr Range kRanges[] = {")
write(classes())
print("};\n// First, last, and what the first becomes when it loses its case and accents; ascending.")
print("constexpr Simpler kSimpler[] = {")
write(simplified())
print("};")

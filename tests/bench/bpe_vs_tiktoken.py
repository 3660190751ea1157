#!/usr/bin/env python3
"""Byte pair encoding beside tiktoken's, of PyPI, with one thread: ids must be equal, speed is told.
See bpe_vs_tiktoken.sh."""

import array
import pathlib
import subprocess
import sys
import tempfile
import time

import tiktoken
from tiktoken.load import data_gym_to_mergeable_bpe_ranks

PATTERN = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
ROUNDS = 5

# What tokenizers stumble over. Each piece is also put before, behind and between letters and spaces.
PIECES = [
    "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\u2764\ufe0f", "e\u0301\u0302", "\u0301", "\u200d",
    "\u65e5\u672c\u8a9e", "\ud55c\uad6d\uc5b4", "\u0e20\u0e32\u0e29\u0e32", "\u0660\u0661\u0662", "\u0967\u0968", "\u2168", "\u00bd", "\U0001d7d8",
    "'s", "'S", "'re", "'ve", "''ll", " 'd", "\u2019s", "don't", "'", "<|endoftext|>", "<|endoftext", "\u00a0", "\u3000", "\u2028",
    "\x85", "\x1c", "\u200b", "\ufeff", "\ufffd", "\x00", "\x7f", "\t", "\n", "\r\n", "   ", " \n ", "\n\n\n", "\t  x", "...", "!?", "_", "0",
    "123456789", "3.14e-10", "a1b2", "\u00c5\u00df\u01c5", "\u0130i", "\U0001e900", "\U0010ffff", "\ue000", "\u0378",
]


def adversarial():
    joined = [a + b + c for a in ("", "a", " ", "  ", "\n", "7") for b in PIECES for c in ("", "a", " ", "  \n", "7", "'s")]
    pairs = [a + b for a in PIECES for b in PIECES]
    every = [chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
    long = ["a" * 100_000, " " * 100_000, "\n" * 5_000 + "x", "\U0001f600" * 5_000, "ab" * 20_000, "1" * 100_000, "!" * 20_000]
    return ["".join(joined), " ".join(pairs), "".join(every), " ".join(every[:0x30000]), "x".join(every[:0x30000])] + long


def reference(vocabulary):
    ranks = data_gym_to_mergeable_bpe_ranks(
        vocab_bpe_file=str(vocabulary / "vocab.bpe"), encoder_json_file=str(vocabulary / "encoder.json"))
    return tiktoken.Encoding("gpt2", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={"<|endoftext|>": len(ranks)})


def timed(function, text):
    start = time.perf_counter()
    result = function(text)
    return time.perf_counter() - start, result


def main():
    bench, vocabulary, files = sys.argv[1], pathlib.Path(sys.argv[2]), [pathlib.Path(f) for f in sys.argv[3:]]
    tiktokens = reference(vocabulary)
    differing = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for i, text in enumerate(adversarial()):
            (folder / f"adversarial{i}").write_bytes(text.encode())
            files.append(folder / f"adversarial{i}")
        print(f"| text | MB | tokens | thinwire MB/s | tiktoken {tiktoken.__version__} MB/s | ratio | ids |\n|---|---|---|---|---|---|---|")
        for file in files:
            text = file.read_bytes().decode()
            line = subprocess.run([bench, vocabulary, folder, file], check=True, capture_output=True, text=True).stdout
            seconds = float(line.split()[3])
            ids = array.array("i", (folder / (file.name + ".ids")).read_bytes())
            theirs = [timed(tiktokens.encode_ordinary, text) for _ in range(ROUNDS if len(text) < 10**8 else 1)]
            equal = ids.tolist() == theirs[0][1]
            differing += not equal
            size = len(text.encode()) / 1e6
            best = min(seconds for seconds, _ in theirs)
            print(f"| {file.name} | {size:.2f} | {len(ids)} | {size / seconds:.1f} | {size / best:.1f} |"
                  f" {best / seconds:.1f} | {'equal' if equal else 'DIFFERENT'} |", flush=True)
    sys.exit(1 if differing else 0)


main()

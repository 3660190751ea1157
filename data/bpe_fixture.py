#!/usr/bin/env python3
"""Writes bpe_testdata/: the first 700 merges of GPT-2's vocabulary and what tiktoken makes of some
texts with them.
usage: bpe_fixture.py VOCABULARY_DIR       with tiktoken from PyPI; the folder has encoder.json and vocab.bpe"""

import json
import pathlib
import sys

import tiktoken
from tiktoken.load import data_gym_to_mergeable_bpe_ranks

MERGES = 700
PATTERN = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
TEXTS = [
    "", " ", "  ", "\n", "a", "First Citizen:\nBefore we proceed any further, hear me speak.\n\nAll:\nSpeak, speak.",
    "I'm sure they'll say it's what we've won, don't you'd? They're 'S 'LL ''s 'sx", "caf\u00e9 nai\u0308ve \u00c5ngstro\u0308m",
    "   three before,\ttab\t\ttabs, \n \n mixed \r\n ends   ", "12345 3.14e-10 x2y3 \u0661\u0662\u0663 \u0967\u0968 \u2168 \u00bd",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f \U0001f1e9\U0001f1ea!", "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8 \ud55c\uad6d\uc5b4 \u4e2d\u6587",
    "\u00a0\u3000\u2028 x\u0085y\u001cz\u200bw\ufeff", "<|endoftext|> is text", "e\u0301e\u0301 \u0301\u0302",
    "the " * 60, "t" * 2000, " " * 500 + "x", "\U0010ffff\u0378\ue000", "\x00\x01\x7f",
]


def main():
    vocabulary = pathlib.Path(sys.argv[1])
    out = pathlib.Path(__file__).parent / "bpe_testdata"
    out.mkdir(exist_ok=True)
    encoder = json.loads((vocabulary / "encoder.json").read_text())
    lines = (vocabulary / "vocab.bpe").read_text().split("\n")[: 1 + MERGES]
    small = {token: id for token, id in encoder.items() if id < 256 + MERGES}
    small["<|endoftext|>"] = len(small)
    (out / "encoder.json").write_text(json.dumps(small) + "\n")
    (out / "vocab.bpe").write_text("\n".join(lines) + "\n")
    ranks = data_gym_to_mergeable_bpe_ranks(str(out / "vocab.bpe"), str(out / "encoder.json"))
    encoding = tiktoken.Encoding("small", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={"<|endoftext|>": len(ranks)})
    cases = [{"text": text, "ids": encoding.encode_ordinary(text)} for text in TEXTS]
    (out / "cases.json").write_text("[\n" + ",\n".join(map(json.dumps, cases)) + "\n]\n")


main()

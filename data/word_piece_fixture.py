#!/usr/bin/env python3
"""Writes word_piece_testdata/: a small vocabulary, what Hugging Face's tokenizers make of some texts with it, and
how much they keep of two sentences.
usage: word_piece_fixture.py       with tokenizers from PyPI"""

import json
import pathlib

from tokenizers import BertWordPieceTokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = [
    "the", "speak", "##ing", "##s", "##er", "un", "##aff", "##able", "hear", "me", "cafe", "naive", "first", "citizen",
    "don", "won", "First", "CAF\u00c9", "caf\u00e9", "##th", "mask", "MASK", "i", "##\u0e33", "\u6f22\u5b57", "##\u1161\u11ab",
]
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
OTHERS = (
    "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\u20ac\u00a1\u00df\u00e6\u03b1\u03c9\u0434\u0e01\u4e2d\u6587\u65e5\u672c\u8a9e\u8c48"
    "\u1112\u1161\u11ab\u1100\u1173\u11af\u0130\u0131I\u00c9\u2019\u2014\u09c7\u09be\U0001d158\U0001d165\U0001d16e"
)
TEXTS = [
    "", " ", "\n\t\r ", "the", "The THE tHe", "speaking speakers unaffable", "First Citizen:\nhear me speak.", "don't won't 'em",
    "caf\u00e9 CAF\u00c9 cafe\u0301 nai\u0308ve NA\u00cfVE", "[MASK] [mask] [CLS]a[SEP] [UNK]x [PAD][ [MASK", "[[MASK]]",
    "\u4e2d\u6587the\u65e5\u672c\u8a9e\u6f22\u5b57", "\uf900\uf901\U0002f800x", "\ud55c\uae00 \u1112\u1161\u11ab \uac00\uac01",
    "\u0130I\u0131i \u00df\u1e9e \u00c6 \u03a9 \u2126 \u0391\u0301 \u0414", "a\u00adb\u200bc\u200dd\ufeffe\u0000f\ufffdg\u0085h",
    "a\u00a0b\u3000c\u2003d\u2028e\u000bf\u000cg", "\u2260\u226e\u1fef \u037e\u0387", "a" * 100, "a" * 101, "\u0e01\u0e33 \u09cb",
    "\U0001d160 \U0001d15e", "1,234.5% $9 \u20ac7 \u00a1x! a_b c^d `e` ~f |g| \u2019 \u2014", "\u0378 \ue000 \U0010ffff \U0001f600",
    "unthe thes thex theth", "\u01c5 \u01c4 \ufb01 \u1fb3 \u1f88 \u10d0 \u1c90 \u13a0 \uab70", "x\u0301\u0316\u0327y",
]


def truncations(tokenizer):
    """Rows of: tokens of a sentence, of a second one, room for both with their special tokens, tokens kept of each."""
    first, second = (tokenizer.token_to_id(token) for token in ("the", "me"))
    for context in range(5, 13):
        tokenizer.enable_truncation(context, strategy="longest_first")
        for a in range(11):
            for b in range(11):
                ids = tokenizer.encode(" ".join(["the"] * a), " ".join(["me"] * b)).ids
                yield [a, b, context, ids.count(first), ids.count(second)]


def main():
    out = pathlib.Path(__file__).parent / "word_piece_testdata"
    out.mkdir(exist_ok=True)
    tokens = SPECIAL + list(LETTERS + OTHERS) + [f"##{c}" for c in LETTERS + OTHERS] + PIECES
    tokens = list(dict.fromkeys(tokens))
    (out / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    cases = []
    for lowercase in (True, False):
        tokenizer = BertWordPieceTokenizer({token: i for i, token in enumerate(tokens)}, lowercase=lowercase)
        for text in TEXTS:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            cases.append({"lowercase": lowercase, "text": text, "ids": ids})
    (out / "cases.json").write_text("[\n" + ",\n".join(map(json.dumps, cases)) + "\n]\n")
    (out / "truncations.json").write_text(json.dumps(list(truncations(tokenizer))) + "\n")


main()

#!/usr/bin/env python3
"""Writes hf_testdata/: small vocabularies of byte pairs, over bytes and over characters, learned from a text, as
tokenizer.json; and the ids that Hugging Face's tokenizers give texts by them, under each set of rules that is known.
usage: hf_fixture.py TEXT       with tokenizers from PyPI; TEXT as Tiny Shakespeare"""

import json
import pathlib
import sys

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

OUT = pathlib.Path(__file__).parent / "hf_testdata"
CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
ENDS = r"\s*[\r\n]+|\s+(?!\S)|\s+"
UNCASED = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|" + ENDS
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
PRECEDING = r"[^\r\n\p{L}\p{N}]?"
CASED = (f"{PRECEDING}{UPPER}*{LOWER}+|{PRECEDING}{UPPER}+{LOWER}*" + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + ENDS)

WORDS = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}


def split(pattern):
    by_pattern = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return {"type": "Sequence", "pretokenizers": [by_pattern, BYTES]}


# The file, the normalizer, the pre-tokenizer and ignore_merges of each.
RULES = {
    "GPT-2": ("bytes", None, WORDS, False),
    "SmolLM2": ("bytes", None, {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, WORDS]}, False),
    "Llama 3": ("bytes", None, split(UNCASED % r"\p{N}{1,3}"), True),
    "Qwen 2": ("bytes", {"type": "NFC"}, split(UNCASED % r"\p{N}"), False),
    "Mistral Nemo": ("bytes", None, split(CASED), True),
    "Llama 2": ("characters", {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, REPLACE]}, None, False),
    "Mistral": ("characters", None, {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": False}, False),
    "Gemma": ("characters", REPLACE, {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}, False),
}

TEXTS = [
    "", " ", "  ", "\n", "a", " a", "\u2581a", "a  b", "First Citizen:\nBefore we proceed any further, hear me speak.\n\nAll:\nSpeak, speak.",
    "I'm sure THEY'LL say it's what we'Ve won, 'S 'LL ''s 'sx it'\u017fx '\u017f", "caf\u00e9 nai\u0308ve \u00c5ngstro\u0308m e\u0301\u0323 \u212b\u0344",
    "   three before,\ttab\t\ttabs, \n \n mixed \r\n ends   ", "\n\n a", "\r\n\r\nq", "  1", "12345 3.14e-10 x2y3 \u0661\u0662\u0663 \u2168 \u00bd \U00011de3\U00016ff5",
    "HELLOworld helloWorld XMLParser iPhone \u01c5abc \u65e5\u672c\u8a9eABCdef \u02b0A\u0301B\u0302 \u0301 !!\u0301a a/b\n/\n!/",
    "\U0001f468\u200d\U0001f469 \u2764\ufe0f \ud55c\uad6d\uc5b4 \u1112\u1161\u11ab \uac00\u11a8", "\u00a0\u3000\u2028 x\u0085y\u180ez\u200bw\ufeff",
    "<s>a<s> b</s>  c <tool> d<tool>e <pad>x <s", "the " * 40, "t" * 500, " " * 100 + "x", "\U0010ffff\u0378\ue000", "\x00\x01\x7f",
]

ADDED = [
    AddedToken("<s>", normalized=False, special=True), AddedToken("</s>", normalized=False, special=True),
    AddedToken("<pad>", normalized=False, special=True, lstrip=True, rstrip=True), AddedToken("<tool>", normalized=False),
    AddedToken("\u00c5ngstr", normalized=True),
]


def finished(tokenizer):
    """Saves all but the rules, which cases give."""
    tokenizer.add_tokens(ADDED)
    begin = tokenizer.token_to_id("<s>")
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", begin)])
    return json.loads(tokenizer.to_str())


def over_bytes(text):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator([text], trainers.BpeTrainer(vocab_size=600, show_progress=False, initial_alphabet=alphabet))
    return finished(tokenizer)


def over_characters(text):
    tokenizer = Tokenizer(models.BPE(byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    tokenizer.pre_tokenizer = pre_tokenizers.Split("\u2581", "merged_with_next")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=700, show_progress=False, special_tokens=["<unk>"] + byte_tokens)
    tokenizer.train_from_iterator([text], trainer)
    file = finished(tokenizer)
    # Tokens of bytes are not looked for in a text.
    file["added_tokens"] = [token for token in file["added_tokens"] if token["content"] not in byte_tokens]
    return file


def main():
    text = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    files = {"bytes": over_bytes(text), "characters": over_characters(text)}
    for name, file in files.items():
        (OUT / name).mkdir(parents=True, exist_ok=True)
        first = next(rules for rules in RULES.values() if rules[0] == name)
        whole = dict(file, normalizer=first[1], pre_tokenizer=first[2])
        (OUT / name / "tokenizer.json").write_text(json.dumps(whole, ensure_ascii=False) + "\n", encoding="utf-8")
    cases = []
    for name, (file, normalizer, pre_tokenizer, ignore_merges) in RULES.items():
        whole = dict(files[file], normalizer=normalizer, pre_tokenizer=pre_tokenizer)
        whole["model"] = dict(whole["model"], ignore_merges=ignore_merges)
        tokenizer = Tokenizer.from_str(json.dumps(whole))
        case = {"name": name, "file": file, "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "ignore_merges": ignore_merges}
        for specials in ("text", "ids"):
            tokenizer.encode_special_tokens = specials == "text"
            case[specials] = [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS]
        cases.append(case)
    lines = ["{\"texts\": " + json.dumps(TEXTS) + ",", "\"rules\": ["]
    (OUT / "cases.json").write_text("\n".join(lines) + "\n" + ",\n".join(map(json.dumps, cases)) + "\n]}\n", encoding="utf-8")


main()

#!/usr/bin/env python3
"""Conversations, prompts and answers beside Hugging Face's transformers and TRL: each id, and which are learned.

Small tokenizers under the rules of published ones get a thousand seeded conversations a format. What is wanted are
the ids and the mask of `apply_chat_template`, by TRL's templates for training where it has the format; and of a
prompt and its answer the ids of both together, of which those behind the prompt's are learned.

usage: chats_test.py DOCUMENT_TOKENS HF_TESTDATA      with transformers, and TRL's wheel in the path (no torch)
       DOCUMENT_TOKENS is bazel-bin/data/document_tokens, HF_TESTDATA data/hf_testdata"""

import importlib.util
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from transformers import PreTrainedTokenizerFast

CONVERSATIONS = 1000
TEMPLATES = pathlib.Path(importlib.util.find_spec("trl").submodule_search_locations[0]) / "chat_templates"

# A role's strings in Jinja; what a model says, with the end of it, is between the marks.
LOOP = "{%% for m in messages %%}{%% if m.role == 'assistant' %%}%s{%% generation %%}{{ m.content }}%s{%% endgeneration %%}" \
       "{%% else %%}%s{%% endif %%}{%% endfor %%}"
CHATML = LOOP % ("<|im_start|>assistant\n", "<|im_end|>{{ '\\n' }}", "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{{ '\\n' }}")
ZEPHYR = LOOP % ("<|assistant|>\n", "</s>{{ '\\n' }}", "<|{{ m.role }}|>\n{{ m.content }}</s>{{ '\\n' }}")
MISTRAL = "<s>" + LOOP % (" ", "</s>", "[INST] {{ m.content }} [/INST]")

# The format, its template, the rules of a tokenizer, its special tokens, and whether it has a system message. `auto`
# is what is known of a published template, which does not say what is learned.
CASES = [
    ("chatml", CHATML, "Qwen 2", ["<|im_start|>", "<|im_end|>"], True),
    ("chatml", CHATML, "SmolLM2", ["<|im_start|>", "<|im_end|>"], True),
    ("llama3", "llama3_training", "Llama 3",
     ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"], True),
    ("mistral", MISTRAL, "Mistral", [], False),
    ("mistral", MISTRAL, "Llama 2", [], False),
    ("zephyr", ZEPHYR, "Llama 2", [], True),
    ("gemma", "gemma_training", "Gemma", ["<bos>", "<start_of_turn>", "<end_of_turn>"], False),
    ("auto", "gemma", "Gemma", ["<bos>", "<start_of_turn>", "<end_of_turn>"], False),
    ("auto", "llama3", "Llama 3",
     ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"], True),
    ("auto", "qwen2_5", "Qwen 2", ["<|im_start|>", "<|im_end|>"], True),
    ("auto", "qwen3_instruct_2507", "Qwen 2", ["<|im_start|>", "<|im_end|>"], True),
]
WORDS = ["the", " king", "\n", "\n\n", " ", "  ", "First Citizen", "'s", "12", "345", "\u00e9", "e\u0301", "\u65e5\u672c", ".", "?", "\t",
         "```", "{}", "\u2581", "\U0001f468\u200d\U0001f469", "<|", "[INST]", "assistant", "'LL", "\u00a0", "a"]


def tokenizer_of(folder, testdata, rules, specials):
    """Writes the files of a small tokenizer, and returns it."""
    known = {case["name"]: case for case in json.loads((testdata / "cases.json").read_text())["rules"]}[rules]
    file = json.loads((testdata / known["file"] / "tokenizer.json").read_text())
    file["normalizer"], file["pre_tokenizer"] = known["normalizer"], known["pre_tokenizer"]
    file["model"]["ignore_merges"] = known["ignore_merges"]
    file["post_processor"] = None
    # Tokens that take the spaces beside them are no part of these formats.
    file["added_tokens"] = [token for token in file["added_tokens"] if token["special"] and not token["lstrip"]]
    ids = max([token["id"] for token in file["added_tokens"]] + list(file["model"]["vocab"].values())) + 1
    for token in specials:
        file["added_tokens"].append(dict(file["added_tokens"][0], id=ids, content=token))
        ids += 1
    folder.mkdir(parents=True)
    (folder / "tokenizer.json").write_text(json.dumps(file))
    begin = next((token for token in specials if token in ("<bos>", "<|begin_of_text|>")), "<s>")
    return PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), bos_token=begin)


def said(draw):
    return "".join(draw.choices(WORDS, k=draw.randrange(12)))


def conversation(draw, has_system):
    messages = [{"role": "system", "content": said(draw)}] if has_system and draw.random() < 0.3 else []
    for _ in range(draw.randrange(1, 4)):
        messages += [{"role": "user", "content": said(draw)}, {"role": "assistant", "content": said(draw)}]
    return messages


def ours(program, folder, chat, examples):
    """The ids of each example, and whether each is learned, by `program`."""
    path = folder / "lines.jsonl"
    path.write_text("".join(json.dumps(example, ensure_ascii=chat == "none") + "\n" for example in examples))
    lines = subprocess.run([program, folder, chat, path], check=True, capture_output=True, text=True).stdout.splitlines()
    for line in lines:
        ids = json.loads(line)
        yield [id if id >= 0 else -id - 1 for id in ids], [int(id >= 0) for id in ids]


def wanted_chat(tokenizer, template, messages):
    encoded = tokenizer.apply_chat_template(messages, chat_template=template, tokenize=True, return_dict=True,
                                            return_assistant_tokens_mask=True)
    return encoded["input_ids"], encoded["assistant_masks"]


def differences(what, got, wanted, examples):
    """Prints the first examples that differ, and returns how many do."""
    wrong = [(example, ours, theirs) for example, ours, theirs in zip(examples, got, wanted, strict=True) if ours != theirs]
    print(f"{what}: {len(examples)} examples, {len(wrong)} differ")
    for example, (ids, mask), (other_ids, other_mask) in wrong[:2]:
        print("  ", json.dumps(example), ids == other_ids, mask == other_mask, ids, mask, other_ids, other_mask, sep="\n   ")
    return len(wrong)


def main():
    program, testdata = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    failures = 0
    for number, (chat, template, rules, specials, has_system) in enumerate(CASES):
        draw = random.Random(number)
        with tempfile.TemporaryDirectory() as root:
            folder = pathlib.Path(root) / "model"
            tokenizer = tokenizer_of(folder, testdata, rules, specials)
            if chat == "auto":
                (folder / "chat_template.jinja").write_bytes((TEMPLATES / f"{template}.jinja").read_bytes())
            if chat == "auto" or template.endswith("_training"):
                template = (TEMPLATES / f"{template}.jinja").read_text()
            talks = [conversation(draw, has_system) for _ in range(CONVERSATIONS)]
            got = list(ours(program, folder, chat, [{"messages": talk} for talk in talks]))
            wanted = [wanted_chat(tokenizer, template, talk) for talk in talks]
            if chat == "auto":
                wanted = [(ids, mask) for (ids, _), (_, mask) in zip(wanted, got)]
            failures += differences(f"{chat} by the rules of {rules}", got, wanted, talks)
            pairs = [{"prompt": said(draw), "completion": said(draw)} for _ in range(CONVERSATIONS)]
            wanted, kept, skipped = [], [], 0
            for pair in pairs:
                prompt = tokenizer.encode(pair["prompt"], add_special_tokens=False)
                both = tokenizer.encode(pair["prompt"] + pair["completion"], add_special_tokens=False)
                if both[:len(prompt)] != prompt:
                    skipped += 1  # where both share a token TRL warns and is no oracle
                    continue
                kept.append(pair)
                wanted.append((both, [0] * len(prompt) + [1] * (len(both) - len(prompt))))
            got = list(ours(program, folder, "none", kept))
            failures += differences(f"prompts by the rules of {rules}, {skipped} left out", got, wanted, kept)
    return failures != 0


sys.exit(main())

#!/usr/bin/env python3
"""Lines of JSONL beside TRL: ids and labels are those that its SFTTrainer prepares and its collator pads.

Two things are no differences. TRL labels the first token of a text, which no trainer can predict. Its template of Qwen2.5 for
training labels the end of the line behind `assistant`, which the prompt for an answer has already.

usage: trl_test.py DOCUMENT_TOKENS TOKENIZERS      see trl_test.sh; in the path are torch, transformers and trl"""

import importlib.util
import json
import logging
import pathlib
import random
import subprocess
import sys
import tempfile
import types

import datasets
from transformers import PreTrainedTokenizerFast
from trl import SFTTrainer
from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

LINES = 1000
NO_LABEL = -100
TEMPLATES = pathlib.Path(importlib.util.find_spec("trl").submodule_search_locations[0]) / "chat_templates"
CHATML = "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}{% if m.role == 'assistant' %}{% generation %}" \
         "{{ m.content + '<|im_end|>' + '\\n' }}{% endgeneration %}{% else %}{{ m.content + '<|im_end|>' + '\\n' }}{% endif %}{% endfor %}"
# What Llama's published tokenizer calls these; ours is made of the vocabulary alone.
LLAMA3 = {4: "<|start_header_id|>", 5: "<|end_header_id|>", 7: "<|eot_id|>"}

# The tokenizer, the tokens that begin and end texts, how conversations are written by us and by TRL. `auto` is what is known
# of a published template, of which TRL has one for training.
CASES = [
    ("qwen2", None, "<|endoftext|>", "auto", "qwen2_5"),
    ("llama3", "<|begin_of_text|>", "<|end_of_text|>", "auto", "llama3"),
    ("smollm2", None, "<|endoftext|>", "chatml", None),
]
WORDS = ["the", " king", "\n", "\n\n", " ", "  ", "First Citizen", "'s", "12", "345", "\u00e9", "e\u0301", "\u65e5\u672c", ".", "?", "\t",
         "```", "{}", "\u2581", "\U0001f468\u200d\U0001f469", "[INST]", "assistant", "'LL", "\u00a0", "a"]


def tokenizer_of(folder, made, begin, end):
    """Writes the files of a published tokenizer as its model has them, and returns it."""
    file = json.loads((made / "tokenizer.json").read_text())
    for token in file["added_tokens"]:
        number = token["content"].removeprefix("<|reserved_special_token_").removesuffix("|>")
        token["content"] = LLAMA3.get(int(number), token["content"]) if number.isdigit() else token["content"]
    if begin:
        id_ = next(token["id"] for token in file["added_tokens"] if token["content"] == begin)
        one = {"SpecialToken": {"id": begin, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
        file["post_processor"] = {"type": "TemplateProcessing", "single": list(one), "pair": [*one, {"Sequence": {"id": "B", "type_id": 1}}],
                                  "special_tokens": {begin: {"id": begin, "ids": [id_], "tokens": [begin]}}}
    folder.mkdir()
    (folder / "tokenizer.json").write_text(json.dumps(file))
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": begin, "eos_token": end}))
    return PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), bos_token=begin, eos_token=end)


def training_template(name):
    """TRL's template for training, whose answers begin where the prompt for them ends."""
    template = (TEMPLATES / f"{name}_training.jinja").read_text()
    begin = "{{- '<|im_start|>assistant' }}\n        {%- generation %}\n        {%- if not message.tool_calls %}\n            {{- '\\n' + message.content"
    assert name != "qwen2_5" or begin in template
    return template.replace(begin, begin.replace("assistant'", "assistant\\n'").replace("'\\n' + ", ""))


def said(draw):
    return "".join(draw.choices(WORDS, k=draw.randrange(1, 40)))


def conversation(draw):
    messages = [{"role": "system", "content": said(draw)}] if draw.random() < 0.3 else []
    for _ in range(draw.randrange(1, 4)):
        messages += [{"role": "user", "content": said(draw)}, {"role": "assistant", "content": said(draw)}]
    return messages


def ours(program, folder, chat, lines):
    """The ids of each line, and its labels but the first, by `program`."""
    path = folder / "lines.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    printed = subprocess.run([program, folder, chat, path], check=True, capture_output=True, text=True).stdout.splitlines()
    for line in printed:
        ids = json.loads(line)
        yield [id_ if id_ >= 0 else -id_ - 1 for id_ in ids], [id_ if id_ >= 0 else NO_LABEL for id_ in ids[1:]]


def theirs(tokenizer, template, lines):
    """The same by TRL: what its trainer prepares, through its collator, without what fills up a batch."""
    has_messages = "messages" in lines[0]
    trainer = types.SimpleNamespace(_tokenizer=tokenizer, chat_template=template, completion_only_loss="completion" in lines[0])
    args = types.SimpleNamespace(dataset_num_proc=None, dataset_text_field="text", assistant_only_loss=has_messages, max_length=None,
                                 shuffle_dataset=False)
    prepared = SFTTrainer._prepare_dataset(trainer, datasets.Dataset.from_list(lines), tokenizer, args, False, None, "train")
    collator = DataCollatorForLanguageModeling(pad_token_id=0)
    for begin in range(0, len(prepared), 8):
        batch = collator(list(prepared.select(range(begin, min(begin + 8, len(prepared))))))
        for ids, labels, is_text in zip(batch["input_ids"], batch["labels"], batch["attention_mask"].bool()):
            assert (labels[~is_text] == NO_LABEL).all()
            yield ids[is_text].tolist(), labels[is_text].tolist()[1:]


def diverges(tokenizer, line):
    """Whether a prompt and its completion share a token, so that TRL warns and labels from where the ids differ."""
    prompt = tokenizer(line["prompt"])["input_ids"]
    return tokenizer(line["prompt"] + line["completion"])["input_ids"][:len(prompt)] != prompt


def differences(what, lines, got, wanted):
    """Prints the first lines that differ, and returns how many do."""
    wrong = [case for case in zip(lines, got, wanted, strict=True) if case[1] != case[2]]
    labels = sum(label != NO_LABEL for _, labels in wanted for label in labels)
    print(f"{what}: {len(lines)} lines, {sum(len(ids) for ids, _ in wanted)} ids, {labels} labels: {len(wrong)} lines differ")
    for case in wrong[:2]:
        print(*(json.dumps(part) for part in case), sep="\n   ")
    return len(wrong)


def main():
    datasets.disable_progress_bars()
    logging.disable(logging.WARNING)
    program, tokenizers = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    failures = 0
    for number, (name, begin, end, chat, known) in enumerate(CASES):
        draw = random.Random(number)
        with tempfile.TemporaryDirectory() as root:
            folder = pathlib.Path(root) / "model"
            tokenizer = tokenizer_of(folder, tokenizers / name, begin, end)
            template = CHATML
            if known:
                (folder / "chat_template.jinja").write_bytes((TEMPLATES / f"{known}.jinja").read_bytes())
                template = training_template(known)
            texts = [{"text": said(draw)} for _ in range(LINES)]
            failures += differences(f"{name}, texts", texts, list(ours(program, folder, "none", texts)), list(theirs(tokenizer, None, texts)))
            pairs = [{"prompt": said(draw), "completion": said(draw)} for _ in range(2 * LINES)]
            shared = [pair for pair in pairs if diverges(tokenizer, pair)]
            pairs = [pair for pair in pairs if pair not in shared][:LINES]
            failures += differences(f"{name}, completions", pairs, list(ours(program, folder, "none", pairs)), list(theirs(tokenizer, None, pairs)))
            # Where both have a part in a token it is the answer's. TRL labels from where ids differ, which may be before.
            got, wanted = ([ids for ids, _ in by] for by in (ours(program, folder, "none", shared), theirs(tokenizer, None, shared)))
            failures += got != wanted
            print(f"{name}, completions that share a token with their prompts: {len(shared)} lines, ids {'equal' if got == wanted else 'differ'}")
            talks = [{"messages": conversation(draw)} for _ in range(LINES)]
            failures += differences(f"{name}, conversations", talks, list(ours(program, folder, chat, talks)), list(theirs(tokenizer, template, talks)))
    return failures != 0


sys.exit(main())

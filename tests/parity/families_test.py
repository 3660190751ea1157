#!/usr/bin/env python3
"""Opens what transformers writes, trains it, and has transformers open what we write.

usage: families_test.py THINWIRE STAGE_SERVER OLDER     (families_test.sh installs transformers, and version 4.57 in OLDER)

For each family of models like Llama it makes a tiny random checkpoint with transformers. The training
text is one batch, so that an epoch is a step and no order matters. Compared with transformers in fp32:
the logits of the first step (1e-4), every gradient (1e-4 of its norm), the losses of ten steps of AdamW
(1e-5), the parameters after them (1e-4 of their norm), and the logits of the exported model. Several
stages must have the bits of one; slices of sequences may differ by roundings. Greedy generation, which
has a cache of keys and values, must write what transformers writes.
"""
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import torch
import transformers as t
from safetensors.torch import load_file, save_file

CLASSES, BATCH, CONTEXT, LAYERS, STEPS = 320, 3, 24, 3, 10
TRAINED, TESTED = BATCH * CONTEXT + 1, 2 * CONTEXT + 1  # bytes of the text
RATE_OF_GRADIENTS = 16.0  # of one step of SGD, from whose parameters gradients are found
BASE = dict(vocab_size=CLASSES, hidden_size=64, intermediate_size=96, num_hidden_layers=LAYERS,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128, bos_token_id=None,
            eos_token_id=None, pad_token_id=None, attn_implementation="eager")
LLAMA3 = dict(rope_type="llama3", rope_theta=1e4, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)
FAMILIES = {
    "llama": t.LlamaConfig(**BASE),
    "llama_of_4": t.LlamaConfig(**BASE, rope_parameters=LLAMA3, tie_word_embeddings=True),
    "llama3": t.LlamaConfig(**BASE, rope_parameters=LLAMA3, tie_word_embeddings=True),
    "llama_linear": t.LlamaConfig(**BASE, rope_parameters=dict(rope_type="linear", rope_theta=1e4, factor=4.0)),
    "llama_bias": t.LlamaConfig(**BASE, attention_bias=True, mlp_bias=True, head_dim=32),
    "mistral": t.MistralConfig(**BASE, head_dim=32, sliding_window=8),
    "qwen2": t.Qwen2Config(**BASE, tie_word_embeddings=True),
    "qwen2_window": t.Qwen2Config(**BASE, use_sliding_window=True, sliding_window=5, max_window_layers=1),
    "qwen3": t.Qwen3Config(**BASE, head_dim=32, tie_word_embeddings=True),
    "qwen3_bias": t.Qwen3Config(**{**BASE, "num_attention_heads": 2}, attention_bias=True),
    "smollm3_window": t.SmolLM3Config(**BASE, no_rope_layers=[1, 0, 1], use_sliding_window=True, sliding_window=7,
                                      layer_types=["full_attention", "sliding_attention", "full_attention"]),
    "smollm3": t.SmolLM3Config(**BASE, no_rope_layers=[1, 1, 0], mlp_bias=True),
    "phi3": t.Phi3Config(**BASE),
    "phi3_window": t.Phi3Config(**BASE, sliding_window=9),
}
EXPERIMENT = """
name: family
init: {folder}
data: {{name: text, file: {text}, tokens: bytes, context: {context}, batch_size: {batch}, split: {split}}}
pipeline: {{cuts: [layers.0, layers.{last}], stages: 1, threads: 1}}
capture: {{steps: [1], what: activations}}
evaluation: {{every: 0}}
checkpoint: {{every_epochs: 0}}
"""
ADAMW = ("optimizer={name: adamw, lr: 0.003, epsilon: 0.000001, weight_decay: 0.1, decay: matrices, clip_norm: 1}",
         f"epochs={STEPS}")
failures = 0


def check(what, value, limit):
    global failures
    good = value <= limit
    failures += not good
    print(f"  {'ok  ' if good else 'BAD '} {what}: {value:.1e}, at most {limit:.0e}", flush=True)


def write_checkpoint(name, folder):
    torch.manual_seed(7)
    model = t.AutoModelForCausalLM.from_config(FAMILIES[name], attn_implementation="eager").float()
    for parameter in model.parameters():  # ones and zeros would hide mistakes
        parameter.data += 0.1 * torch.randn_like(parameter)
    model.save_pretrained(folder)
    if name == "llama_of_4":
        path = folder / "config.json"
        config = json.loads(path.read_text())
        rope = config.pop("rope_parameters")
        config["rope_theta"] = rope.pop("rope_theta")
        config["rope_scaling"] = rope
        path.write_text(json.dumps(config))
    return model


class Runs:
    def __init__(self, programs, work, folder):
        self.programs, self.work = programs, work
        letters = random.Random(1)
        text = "".join(letters.choice("abcdefghijklmnopqrstuvwxyz ,.") for _ in range(TRAINED + TESTED))
        (work / "text").write_text(text)
        self.ids = torch.tensor(list(text[:TRAINED].encode()))
        (work / "family.yaml").write_text(EXPERIMENT.format(
            folder=folder, text=work / "text", context=CONTEXT, batch=BATCH, last=LAYERS - 1,
            split=(TRAINED + 0.5) / (TRAINED + TESTED)))

    def batch(self):
        return self.ids[:-1].view(BATCH, CONTEXT), self.ids[1:].view(BATCH, CONTEXT)

    def run(self, name, *settings):
        """Returns the run's folder."""
        thinwire, stage_server = self.programs
        out = self.work / name
        given = [part for setting in settings for part in ("--set", setting)]
        done = subprocess.run([thinwire, "run", self.work / "family.yaml", "--stage_server", stage_server,
                               "--out", out, *given], capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            sys.exit(f"{name}: {done.stderr}")
        return out

    def losses(self, folder):
        lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
        return [line["loss"] for line in lines if line["type"] == "step"]

    def generated(self, folder, prompt, tokens):
        thinwire, stage_server = self.programs
        done = subprocess.run([thinwire, "generate", folder, "--stage_server", stage_server, "--prompt", prompt,
                               "--tokens", str(tokens), "--temperature", "0"], capture_output=True, timeout=300)
        if done.returncode != 0:
            sys.exit(f"generate: {done.stderr.decode()}")
        return done.stdout


def loss_of(model, batch):
    logits = model(batch[0]).logits
    return logits, torch.nn.functional.cross_entropy(logits.reshape(-1, CLASSES), batch[1].reshape(-1))


def train(model, batch):
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices}, {"params": others, "weight_decay": 0}], 3e-3,
                                  eps=1e-6, weight_decay=0.1)
    losses = []
    for _ in range(STEPS):
        loss = loss_of(model, batch)[1]
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def tensors_in(folder):
    return {name: tensor for file in folder.glob("*.safetensors") for name, tensor in load_file(file).items()}


def check_first_step(model, runs, batch):
    folder = runs.run("gradients", f"optimizer={{name: sgd, lr: {RATE_OF_GRADIENTS}, momentum: 0}}", "epochs=1")
    logits, loss = loss_of(model, batch)
    model.zero_grad()
    loss.backward()
    captured = load_file(folder / "captures" / "step-1.safetensors")
    hidden = captured[f"layers.{LAYERS - 1}/activation/step1/microbatch0"]
    ours = model.lm_head(model.model.norm(hidden))
    orders = itertools.permutations(range(BATCH))  # an epoch's order is its own
    check("logits", min((ours[list(order)] - logits).abs().max().item() for order in orders), 1e-4)
    after = tensors_in(folder / "model")
    names = {name for name, _ in model.named_parameters()}
    check("parameters that are missing or unknown", len(names ^ set(after)), 0)
    worst = 0
    for name, parameter in model.named_parameters():
        gradient = (parameter.detach().double() - after[name].double()) / RATE_OF_GRADIENTS
        worst = max(worst, ((gradient - parameter.grad).norm() / parameter.grad.norm()).item())
    check("gradients", worst, 1e-4)


def check_training(model, runs, batch):
    folder = runs.run("trained", *ADAMW)
    theirs, ours = train(model, batch), runs.losses(folder)
    check("ten losses", max(abs(a - b) for a, b in zip(ours, theirs, strict=True)), 1e-5)
    check("gain of ten steps, which is to be seen, inverted", 1 / (ours[0] - ours[-1]), 2)
    after = tensors_in(folder / "model")
    check("parameters after them", max(
        ((after[name].double() - parameter.detach()).norm() / parameter.detach().norm()).item()
        for name, parameter in model.named_parameters()), 1e-4)
    for name, *settings in (("stages", "pipeline.stages=3"), ("recomputed", "pipeline.recompute=blocks")):
        others = runs.losses(runs.run(name, *ADAMW, *settings))
        check(f"losses of {name}", max(abs(a - b) for a, b in zip(ours, others, strict=True)), 0)
    sliced = runs.losses(runs.run("sliced", *ADAMW, "pipeline.schedule=terapipe", "pipeline.slices=3"))
    check("losses of slices", max(abs(a - b) for a, b in zip(ours, sliced, strict=True)), 1e-4)
    return folder


def check_older(folder, older, ids, logits):
    """The same model opened by transformers 4.57, in a process of its own."""
    save_file({"ids": ids.contiguous(), "logits": logits.contiguous()}, folder / "logits.safetensors")
    script = pathlib.Path(__file__).with_name("open_in_older.py")
    done = subprocess.run([sys.executable, "-B", script, folder / "model", folder / "logits.safetensors"], capture_output=True,
                          text=True, env={**os.environ, "PYTHONPATH": str(older)})
    if done.returncode != 0:
        sys.exit(f"transformers 4.57: {done.stderr}")
    check("its logits in transformers 4.57", float(done.stdout.split()[-1]), 1e-4)


def check_export(model, runs, folder, batch, older):
    exported = t.AutoModelForCausalLM.from_pretrained(folder / "model", dtype=torch.float32,
                                                      attn_implementation="eager")
    check("the exported model's class is another", type(exported) is not type(model), 0)
    with torch.no_grad():
        logits_here = exported(batch[0]).logits
        check("its logits", (logits_here - model(batch[0]).logits).abs().max().item(), 1e-3)
        check_older(folder, older, batch[0], logits_here)
        prompt = "once"
        ids = list(prompt.encode())
        while len(ids) < CONTEXT:
            logits = exported(torch.tensor([ids])).logits[0, -1, :256]
            ids.append(int(logits.argmax()))
    written = runs.generated(folder, prompt, CONTEXT - len(prompt)).rstrip(b"\n")
    check("bytes that it writes otherwise", bytes(ids).rstrip(b"\n") != written, 0)
    again = runs.run("again", f"init={folder}/model", *ADAMW[:1], "epochs=1")
    config, same = ((path / "model" / "config.json").read_text() for path in (folder, again))
    check("config.json that is not written as it was read", config != same, 0)


def main(programs, older):
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as work:
        for name in FAMILIES:
            print(name, flush=True)
            folder = pathlib.Path(work) / name
            folder.mkdir()
            model = write_checkpoint(name, folder / "checkpoint")
            runs = Runs(programs, folder, folder / "checkpoint")
            batch = runs.batch()
            check_first_step(model, runs, batch)
            check_export(model, runs, check_training(model, runs, batch), batch, older)
    sys.exit(f"{failures} checks failed" if failures else 0)


if __name__ == "__main__":
    main(sys.argv[1:3], sys.argv[3])

#!/usr/bin/env python3
"""Goes on with what peft writes, and has peft and transformers open what we write.

usage: lora_test.py THINWIRE STAGE_SERVER [FAMILY...]      (lora_test.sh installs peft)

For each family it makes a tiny random checkpoint (families_test.py) and an adapter with peft, whose B is not zero, as
that would hide mistakes. Our run begins with both, by `init` and `lora.init`. Compared with peft in fp32: the logits of
the first step (1e-4), the losses of ten steps of AdamW (1e-5), the trained A and B (5e-4 of their norms). Then peft
opens the adapter that the run leaves, over the same base, and transformers opens what is merged: both must give our
loss (1e-5). Three stages must have the bits of one, and weights of the base may not change.
"""
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

import families_test
import peft
import torch
import transformers as t
from families_test import BATCH, CONTEXT, LAYERS, LLAMA3, STEPS, check, loss_of, tensors_in
from safetensors.torch import load_file

BASE = families_test.BASE
GPT2 = t.GPT2Config(vocab_size=families_test.CLASSES, n_positions=128, n_embd=64, n_layer=LAYERS, n_head=4, resid_pdrop=0,
                    embd_pdrop=0, attn_pdrop=0, bos_token_id=None, eos_token_id=None, attn_implementation="eager")
QV, ALL = ["q_proj", "v_proj"], "all-linear"
# What peft is told beside rank and alpha.
FAMILIES = {
    "gpt2": (GPT2, dict(target_modules=["c_attn"], fan_in_fan_out=True)),
    "gpt2_linear": (GPT2, dict(target_modules=["c_attn", "c_fc", "c_proj"], fan_in_fan_out=True)),
    "llama": (families_test.FAMILIES["llama"], dict(target_modules=QV)),
    "llama3": (t.LlamaConfig(**BASE, rope_parameters=LLAMA3, tie_word_embeddings=True),
               dict(target_modules=QV, use_rslora=True)),
    "llama_bias": (families_test.FAMILIES["llama_bias"], dict(target_modules=ALL)),
    "mistral": (families_test.FAMILIES["mistral"], dict(target_modules=["q_proj", "o_proj"])),
    "qwen2": (families_test.FAMILIES["qwen2"], dict(target_modules=ALL)),
    "qwen3": (families_test.FAMILIES["qwen3"], dict(target_modules=QV, layers_to_transform=[1, 2])),
    "smollm3": (families_test.FAMILIES["smollm3"], dict(target_modules=r".*\.[02]\.self_attn\.(k|v)_proj")),
    "phi3": (families_test.FAMILIES["phi3"], dict(target_modules=["qkv_proj", "gate_up_proj"])),
}
ADAMW = "optimizer={name: adamw, lr: 0.01, epsilon: 0.000001}"


class Runs(families_test.Runs):
    """Runs of one family, whose first blocks have that name: "layers" or "h"."""

    def __init__(self, programs, work, folder, blocks):
        super().__init__(programs, work, folder)
        self.last = f"{blocks}.{LAYERS - 1}"
        self.cuts = f"pipeline.cuts=[{blocks}.0, {self.last}]"

    def adapted(self, name, adapter, *settings):
        return self.run(name, self.cuts, f"lora={{init: {adapter}}}", ADAMW, "checkpoint.every_epochs=1", *settings)

    def merged(self, run):
        out = run / "merged"
        subprocess.run([self.programs[0], "checkpoint", "export", run, "--merge", "--out", out], check=True,
                       stdout=subprocess.DEVNULL)
        return out


def opened(folder):
    return t.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")


def with_adapter(folder, options):
    """Returns the model in the folder with an adapter of peft's."""
    torch.manual_seed(3)
    model = peft.get_peft_model(opened(folder), peft.LoraConfig(r=4, lora_alpha=8, task_type="CAUSAL_LM", **options))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.copy_(0.05 * torch.randn_like(parameter))
    return model


def train(model, batch):
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, 1e-2, eps=1e-6, weight_decay=0)
    losses = []
    for _ in range(STEPS):
        loss = loss_of(model, batch)[1]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def head_of(model, hidden):
    base = model.get_base_model()
    norm = base.transformer.ln_f if hasattr(base, "transformer") else base.model.norm
    return base.lm_head(norm(hidden))


def check_first_step(model, runs, run, batch):
    captured = load_file(run / "captures" / "step-1.safetensors")
    with torch.no_grad():
        ours = head_of(model, captured[f"{runs.last}/activation/step1/microbatch0"])
        logits = loss_of(model, batch)[0]
    orders = itertools.permutations(range(BATCH))  # an epoch's order is its own
    check("logits with peft's adapter", min((ours[list(order)] - logits).abs().max().item() for order in orders), 1e-4)


def check_training(model, runs, run, batch, work):
    theirs, ours = train(model, batch), runs.losses(run)
    check("ten losses", max(abs(a - b) for a, b in zip(ours, theirs, strict=True)), 1e-5)
    check("gain of ten steps, which is to be seen, inverted", 1 / (ours[0] - ours[-1]), 20)
    model.save_pretrained(work / "trained")
    after, want = tensors_in(run / "adapter"), tensors_in(work / "trained")
    check("tensors of the adapter that are missing or unknown", len(after.keys() ^ want.keys()), 0)
    check("A and B after them", max(((after[name].double() - tensor).norm() / tensor.norm()).item()
                                    for name, tensor in want.items()), 5e-4)


def check_base(runs, run, folder):
    base, after = tensors_in(folder), tensors_in(run / "model")
    changed = sum(not torch.equal(tensor, after[name]) for name, tensor in base.items())
    check("tensors of the base that changed", changed, 0)


def check_stages(runs, run, adapter):
    others = runs.adapted("stages", adapter, f"epochs={STEPS}", "pipeline.stages=3")
    check("losses of three stages", max(abs(a - b) for a, b in zip(runs.losses(run), runs.losses(others))), 0)
    one, three = tensors_in(run / "adapter"), tensors_in(others / "adapter")
    check("their adapter's tensors with other bits", sum(not torch.equal(one[name], three[name]) for name in one), 0)


def check_files(runs, run, folder, batch):
    loss = runs.losses(runs.adapted("again", run / "adapter", "epochs=1"))[0]
    with torch.no_grad():
        theirs = peft.PeftModel.from_pretrained(opened(folder), run / "adapter")
        check("loss of our adapter in peft", abs(loss_of(theirs, batch)[1].item() - loss), 1e-5)
        merged = opened(runs.merged(run))
        check("loss of our merged model in transformers", abs(loss_of(merged, batch)[1].item() - loss), 1e-5)
        by_peft = theirs.merge_and_unload()
        check("logits of it beside peft's merging", (loss_of(merged, batch)[0] - loss_of(by_peft, batch)[0]).abs().max().item(),
              1e-4)
    config = json.loads((run / "adapter" / "adapter_config.json").read_text())
    check("name of the base that is another", config["base_model_name_or_path"] != str(folder), 0)


def check_family(name, programs, work):
    config, options = FAMILIES[name]
    families_test.FAMILIES[name] = config
    folder, adapter = work / "checkpoint", work / "adapter"
    families_test.write_checkpoint(name, folder)
    runs = Runs(programs, work, folder, "h" if config.model_type == "gpt2" else "layers")
    batch = runs.batch()
    model = with_adapter(folder, options)
    model.save_pretrained(adapter)
    run = runs.adapted("run", adapter, f"epochs={STEPS}")
    check_first_step(model, runs, run, batch)
    check_training(model, runs, run, batch, work)
    check_base(runs, run, folder)
    check_stages(runs, run, adapter)
    check_files(runs, run, folder, batch)


def main(programs, names):
    torch.set_num_threads(1)
    t.utils.logging.disable_progress_bar()
    for name in names or FAMILIES:
        print(name, flush=True)
        with tempfile.TemporaryDirectory() as work:
            check_family(name, programs, pathlib.Path(work))
    failures = families_test.failures
    sys.exit(f"{failures} checks failed" if failures else 0)


if __name__ == "__main__":
    main(sys.argv[1:3], sys.argv[3:])

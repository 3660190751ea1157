#!/usr/bin/env python3
"""Trains what an experiment with a LoRA trains, by Hugging Face's peft and PyTorch on one machine, uncompressed.

usage: in_peft.py RUN [--seed N] [--out FILE]      in the environment that tests/parity/lora_test.sh makes

RUN is the folder of a run of the experiment, whose experiment.yaml has every value; --seed stands for another seed. The
adapter's first values and the order of the samples are those of our runs with that seed: both come from the streams of
docs/wire.md. With --out the result is written as compact.py leaves those of our runs, for judge.py.
"""
import argparse
import datetime
import json
import pathlib
import subprocess
import sys

import numpy as np
import peft
import torch
import transformers as t
import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TEXT = ROOT / "data" / "shakespeare" / "input.txt.zst"
sys.path.insert(0, str(ROOT / "tests" / "wire"))
import streams  # noqa: E402


def below(bound, numbers):
    """A number in [0, bound), by Lemire's method: the high word of a product, unless its low word is too small."""
    while True:
        product = int(next(numbers)) * bound
        if product % 2**32 >= -bound % 2**32 % bound:
            return product >> 32


def order_of(seed, epoch, size):
    """The samples of an epoch in their order: Fisher and Yates' shuffle by the seed's stream."""
    key = streams.event_key(streams.named_key(streams.named_key(seed, "data"), "shuffle"), epoch)
    order, numbers = list(range(size)), iter(streams.numbers(key, 2 * size))
    for i in range(size, 1, -1):
        j = below(i, numbers)
        order[i - 1], order[j] = order[j], order[i - 1]
    return order


def blocks_of(folder, text, context):
    """The samples of a text, as ids and the ids that come next."""
    ids = t.AutoTokenizer.from_pretrained(folder)(text, add_special_tokens=False, return_tensors="pt").input_ids[0]
    count = (len(ids) - 1) // context
    return [(ids[i * context:(i + 1) * context], ids[i * context + 1:(i + 1) * context + 1]) for i in range(count)]


def batch_of(samples):
    return [torch.stack(side) for side in zip(*samples)]


def adapted(experiment, seed):
    """The model with an adapter that has our first values."""
    lora = experiment["lora"]
    base = t.AutoModelForCausalLM.from_pretrained(experiment["init"], dtype=torch.float32)
    model = peft.get_peft_model(base, peft.LoraConfig(r=lora["rank"], lora_alpha=lora["alpha"], target_modules=lora["modules"],
                                                      lora_dropout=0, task_type="CAUSAL_LM"))
    for name, parameter in model.named_parameters():
        if ".lora_A." not in name:
            continue
        ours = name.removeprefix("base_model.model.").replace(".default", "")
        key = streams.named_key(streams.named_key(seed, "init"), ours)
        bound = 1 / np.sqrt(np.float32(parameter.shape[1]))
        values = (2 * streams.uniforms(key, parameter.numel()) - 1) * bound
        parameter.data.copy_(torch.from_numpy(values).view_as(parameter))
    return model


def loss_of(model, batch):
    logits = model(batch[0]).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[1].flatten())


def train(model, experiment, samples, seed):
    """Trains the steps of the experiment, less than an epoch; returns their losses."""
    optimizer_of, steps, size = experiment["optimizer"], experiment["steps"], experiment["data"]["batch_size"]
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], optimizer_of["lr"], weight_decay=0)
    falling = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    order, losses = order_of(seed, 1, len(samples)), []
    for step in range(steps):
        loss = loss_of(model, batch_of([samples[i] for i in order[step * size:(step + 1) * size]]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        falling.step()
        losses.append(loss.item())
        print(f"step {step + 1}: loss {losses[-1]:.4f}", flush=True)
    return losses


def evaluate(model, samples, size):
    """The mean loss of all tokens."""
    with torch.no_grad():
        sums = [loss_of(model, batch_of(samples[i:i + size])).item() * len(samples[i:i + size])
                for i in range(0, len(samples), size)]
    return sum(sums) / len(samples)


def result_of(experiment, seed, losses, test, started):
    """What compact.py keeps of a run; nothing crossed a cut."""
    values = {"compressed": test, "uncompressed": test, "uncompressed_recalibrated": None}
    names = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    versions = f"peft {peft.__version__}, transformers {t.__version__}, PyTorch {torch.__version__}"
    return {
        "suite": "smollm2", "configuration": "peft", "seed": seed, "epochs": 1, "measure": "loss", "final": values,
        "best": values, "evaluated": [{"epoch": 1, "train": sum(losses) / len(losses), **values}], "boundaries": [], "stages": 1,
        "losses": losses,
        "provenance": {"commit": versions, "cpu_model": names[0], "simd_target": torch.backends.cpu.get_cpu_capability(),
                       "onednn_isa": "PyTorch", "threads": torch.get_num_threads(), "microbatches": 1,
                       "train_samples": experiment["data"]["batch_size"] * len(losses),
                       "test_samples": experiment["data"]["test_limit"], "started": started,
                       "finished": now()},
    }


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("--seed", type=int, help="default: that of the run")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    t.utils.logging.disable_progress_bar()
    started = now()
    experiment = yaml.safe_load((options.run / "experiment.yaml").read_text())
    seed, data = options.seed or experiment["seed"], experiment["data"]
    text = subprocess.run(["zstd", "-dcq", TEXT], check=True, capture_output=True).stdout.decode()
    split = int(len(text) * 0.9)
    train_samples, test_samples = (blocks_of(data["vocabulary"], part, data["context"]) for part in (text[:split], text[split:]))
    model = adapted(experiment, seed)
    losses = train(model, experiment, train_samples, seed)
    test = evaluate(model, test_samples[:data["test_limit"]], data["batch_size"])
    print(f"test loss {test:.4f}")
    if options.out:
        options.out.write_text(json.dumps(result_of(experiment, seed, losses, test, started), indent=1) + "\n")


if __name__ == "__main__":
    main()

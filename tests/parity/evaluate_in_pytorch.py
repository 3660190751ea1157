#!/usr/bin/env python3
"""Loads what a run saved into PyTorch and evaluates it there on CIFAR-10's test images.

usage: evaluate_in_pytorch.py RUN_DIR CIFAR_DIR      (deploy/setup.sh --bench installs PyTorch)

Prints PyTorch's accuracy and loss beside the run's own without compression; fails unless they
agree to one image in a thousand and 1e-3.
"""
import json
import pathlib
import sys

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "bench"))
import resnet  # noqa: E402


def read_safetensors(path):
    data = path.read_bytes()
    header_bytes = int.from_bytes(data[:8], "little")
    for name, tensor in json.loads(data[8:8 + header_bytes]).items():
        if name == "__metadata__":
            continue
        begin, end = tensor["data_offsets"]
        values = np.frombuffer(data[8 + header_bytes + begin:8 + header_bytes + end], "<f4")
        yield name, torch.from_numpy(values.reshape(tensor["shape"]).copy())


def load_state(folder):
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    state = {}
    for shard in sorted(set(index["weight_map"].values())):
        state.update(read_safetensors(folder / shard))
    assert set(state) == set(index["weight_map"]), "index and shards name different tensors"
    return state


def test_images(folder):
    records = np.fromfile(next(folder.rglob("test_batch.bin")), np.uint8).reshape(-1, 3073)
    images = torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32).copy()).float() / 255
    mean = torch.tensor([.4914, .4822, .4465]).view(1, 3, 1, 1)
    std = torch.tensor([.2023, .1994, .2010]).view(1, 3, 1, 1)
    return (images - mean) / std, torch.from_numpy(records[:, 0].astype(np.int64))


def main():
    run, data = map(pathlib.Path, sys.argv[1:3])
    state = load_state(run / "model")
    model = resnet.CifarResNet18(state["conv1.weight"].shape[0])
    model.load_state_dict(state)  # strict: every name and shape
    model.eval()
    images, labels = test_images(data)
    correct, loss = 0, 0.0
    with torch.no_grad():
        for i in range(0, len(labels), 500):
            logits = model(images[i:i + 500])
            correct += int((logits.argmax(1) == labels[i:i + 500]).sum())
            loss += float(torch.nn.functional.cross_entropy(logits, labels[i:i + 500], reduction="sum"))
    own = json.loads((run / "summary.json").read_text())["epochs"][-1]["test"]["uncompressed"]
    accuracy, loss = correct / len(labels), loss / len(labels)
    print(f"PyTorch {torch.__version__}: accuracy {accuracy:.4f}, loss {loss:.5f}; "
          f"the run: {own['accuracy']:.4f}, {own['loss']:.5f}")
    return 0 if abs(accuracy - own["accuracy"]) <= 1e-3 and abs(loss - own["loss"]) <= 1e-3 else 1


sys.exit(main())

#!/usr/bin/python3
"""Writes resnet18_w4.safetensors: what PyTorch makes of a narrow CIFAR ResNet-18 (parity_test.cc).

Run once, on Debian 12 with python3-torch (deploy/setup.sh --bench); the result is committed.
Tensors, all fp32 (labels too):
  images.K [8, 3, 32, 32], labels.K [8]     two batches, used in turn
  initial.NAME                              the state before the first step, torchvision's names
  logits [8, 10], gradient.NAME             of the first step, in training mode
  losses [10]                               mean loss of every step
  final.NAME                                the state after ten steps of SGD
  evaluated [8, 10]                         logits of the first batch then, in evaluation mode
"""
import json
import os
import struct
import sys

import torch
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "bench"))
from resnet import CifarResNet18  # noqa: E402

STEPS, BATCH, LR, MOMENTUM, WEIGHT_DECAY = 10, 8, 0.01, 0.9, 5e-4


def state(model):
    return {name: value.clone() for name, value in model.state_dict().items()
            if not name.endswith("num_batches_tracked")}


def make():
    torch.manual_seed(1)
    model = CifarResNet18(width=4)
    # Scales of one and biases of zero would hide mistakes.
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1 and name != "fc.bias":
            parameter.data += 0.2 * torch.randn_like(parameter)
    tensors = {"initial." + name: value for name, value in state(model).items()}
    batches = [(torch.randn(BATCH, 3, 32, 32), torch.randint(10, (BATCH,))) for _ in range(2)]
    for i, (images, labels) in enumerate(batches):
        tensors[f"images.{i}"], tensors[f"labels.{i}"] = images, labels.float()

    optimizer = torch.optim.SGD(model.parameters(), LR, MOMENTUM, weight_decay=WEIGHT_DECAY)
    losses = []
    for step in range(STEPS):
        images, labels = batches[step % 2]
        logits = model(images)
        loss = nn.functional.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            tensors["logits"] = logits.detach()
            for name, parameter in model.named_parameters():
                tensors["gradient." + name] = parameter.grad.clone()
        optimizer.step()
        losses.append(loss.item())
    tensors["losses"] = torch.tensor(losses)
    tensors.update({"final." + name: value for name, value in state(model).items()})
    model.eval()
    with torch.no_grad():
        tensors["evaluated"] = model(batches[0][0])
    return tensors


def save(tensors, path):
    header, data = {"__metadata__": {"torch": torch.__version__}}, b""
    for name, tensor in tensors.items():
        raw = tensor.contiguous().numpy().astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


if __name__ == "__main__":
    save(make(), os.path.join(os.path.dirname(os.path.abspath(__file__)),
                              "resnet18_w4.safetensors"))

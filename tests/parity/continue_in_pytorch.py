#!/usr/bin/env python3
"""PyTorch goes on from a checkpoint of ours, and trains what we go on to train.

usage: continue_in_pytorch.py THINWIRE STAGE_SERVER      (deploy/setup.sh --bench installs PyTorch)

Trains a narrow ResNet-18 in four stages, without codecs and with the whole training set as one batch, so
that an epoch is a step and no order matters. Loads the checkpoint of the third step into PyTorch by the
`safetensors` package where there is one: the parameters into a module, what our optimizer remembers into
`torch.optim`'s state. Compares the logits' loss on the test set, and the losses of the next three steps,
with those of our run. By hand, not in tests/run.sh.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "bench"))
import resnet  # noqa: E402

DIGITS = pathlib.Path(__file__).parent.parent.parent / "data" / "digits"
MEAN, DEVIATION = 0.30774823, 0.37728035
SAMPLES, TESTS, STEPS, AT = 200, 300, 6, 3
OPTIMIZERS = {
    "sgd": ("{name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 0.0005, nesterov: true}",
            lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.0005, nesterov=True)),
    "adamw": ("{name: adamw, lr: 0.002, weight_decay: 0.1}",
              lambda p: torch.optim.AdamW(p, lr=0.002, weight_decay=0.1)),
}
EXPERIMENT = """
name: continued
model: {{name: resnet18, width: 8}}
data: {{name: digits, batch_size: {samples}, limit: {samples}, test_limit: {tests}, augment: none}}
pipeline: {{cuts: [layer1, layer2, layer3], microbatches: 1}}
optimizer: {optimizer}
evaluation: {{every: 1, compressed: false, uncompressed: true}}
checkpoint: {{keep: {steps}}}
epochs: {steps}
"""


def digits(name, count):
    """The first images of a file of 64 greys and a label a line, as the run sees them."""
    rows = np.loadtxt(DIGITS / name, delimiter=",", dtype=np.float32)[:count]
    images = (rows[:, :64] / 16 - MEAN) / DEVIATION
    return torch.from_numpy(images.reshape(-1, 1, 8, 8)), torch.from_numpy(rows[:, 64].astype(np.int64))


def read(path):
    """Name -> tensor."""
    try:
        from safetensors.torch import load_file
        return load_file(str(path))
    except ImportError:
        data = path.read_bytes()
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8:8 + size])
        header.pop("__metadata__", None)
        return {name: torch.from_numpy(np.frombuffer(
            data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]], "<f4").reshape(t["shape"]).copy())
            for name, t in header.items()}


def parts(checkpoint):
    """Part -> name -> tensor, and the step."""
    manifest = json.loads((checkpoint / "manifest.json").read_text())
    found = {}
    for file in manifest["files"]:
        if file["tensors"]:
            found.setdefault(file["tensors"], {}).update(read(checkpoint / file["name"]))
    return found, manifest["step"]


def compare(what, ours, theirs):
    """The relative difference, which is printed."""
    difference = abs(ours - theirs) / abs(ours)
    print(f"  {what}: ours {ours:.8f}, PyTorch's {theirs:.8f}, difference {difference:.1e}")
    return difference


def check(name, thinwire, stage_server, work):
    """Whether one optimizer's run goes on alike."""
    text, make = OPTIMIZERS[name]
    path, run = work / f"{name}.yaml", work / name
    path.write_text(EXPERIMENT.format(samples=SAMPLES, tests=TESTS, steps=STEPS, optimizer=text))
    subprocess.run([thinwire, "run", str(path), "--stage_server", stage_server, "--out", str(run), "--quiet"], check=True)
    state, step = parts(run / "checkpoints" / f"step-{AT}")
    model = resnet.CifarResNet18(8)
    model.conv1 = torch.nn.Conv2d(1, 8, 3, padding=1, bias=False)
    model.load_state_dict(state.pop("model"))  # strict: every name and shape
    optimizer = make(model.parameters())
    for key, parameter in model.named_parameters():
        optimizer.state[parameter] = {part: tensors[key] for part, tensors in state.items()}
        if "exp_avg" in state:
            optimizer.state[parameter]["step"] = torch.tensor(float(step))
    lines = [json.loads(line) for line in (run / "metrics.jsonl").open()]
    losses = {line["step"]: line["loss"] for line in lines if line["type"] == "step"}
    tested = {line["epoch"]: line["test"]["uncompressed"]["loss"] for line in lines if line["type"] == "epoch"}
    images, labels = digits("optdigits.tra", SAMPLES)
    print(f"{name}, PyTorch {torch.__version__}, state: {', '.join(sorted(state))}")
    model.eval()
    with torch.no_grad():
        test_images, test_labels = digits("optdigits.tes", TESTS)
        loss = torch.nn.functional.cross_entropy(model(test_images), test_labels).item()
    worst = [compare(f"test loss at step {step}", tested[step], loss)]
    model.train()
    for number in range(step + 1, STEPS + 1):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        worst.append(compare(f"loss of step {number}", losses[number], loss.item()))
    return worst[0] < 1e-5 and max(worst) < 1e-3


def main():
    """All optimizers."""
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as work:
        good = [check(name, sys.argv[1], sys.argv[2], pathlib.Path(work)) for name in OPTIMIZERS]
    print("0 failures" if all(good) else f"{good.count(False)} failures")
    return 0 if all(good) else 1


sys.exit(main())

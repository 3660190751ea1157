#!/usr/bin/python3
"""What PyTorch users write for the codecs, timed on captured tensors: one line of JSON,
[{"tensor", "operator", "direction", "seconds", "bytes"}, ...]. These operators pack
nothing: they do less than a codec.
usage: codecs_in_pytorch.py [--threads 1] [--repeats 10] FILE.safetensors..."""
import argparse
import json
import pathlib
import statistics
import time

import numpy as np
import torch


def read_safetensors(path):
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    for name, tensor in json.loads(data[8:start]).items():
        if name == "__metadata__" or tensor["dtype"] != "F32":
            continue
        begin, end = tensor["data_offsets"]
        values = np.frombuffer(data[start + begin:start + end], "<f4")
        yield name, torch.from_numpy(values.reshape(tensor["shape"]).copy())


def topk_by_kthvalue(x, ratio):
    """TopK of the released code of arXiv 2401.07788: all below a sample's threshold becomes 0."""
    flat = x.reshape(x.shape[0], -1)
    low = max(1, int(flat.shape[1] * (1 - ratio)))
    threshold = flat.abs().kthvalue(low, dim=1, keepdim=True).values
    return torch.where(flat.abs() > threshold, flat, torch.zeros(())).reshape(x.shape)


def topk_encode(x, ratio):
    flat = x.reshape(x.shape[0], -1)
    indices = flat.abs().topk(max(1, int(flat.shape[1] * ratio)), dim=1, sorted=False).indices
    return flat.gather(1, indices), indices


def topk_decode(message, out):
    values, indices = message
    return out.zero_().scatter_(1, indices, values)


def quantize(x):
    low, high = x.aminmax()
    scale = ((high - low) / 255).item() or 1.0
    zero = min(255, max(0, round(-low.item() / scale)))
    return torch.quantize_per_tensor(x, scale, zero, torch.quint8)


def timed(operation, repeats):
    operation()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        operation()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def measure(name, x, repeats):
    rows = []

    def add(operator, direction, operation):
        rows.append({"tensor": name, "operator": operator, "direction": direction,
                     "seconds": timed(operation, repeats), "bytes": 4 * x.numel()})

    out = torch.empty_like(x).reshape(x.shape[0], -1)  # memory that is there, as a stage's is
    for percent in (5, 10, 30):
        ratio = percent / 100
        add(f"kthvalue {percent} %", "encode", lambda: topk_by_kthvalue(x, ratio))
        message = topk_encode(x, ratio)
        add(f"topk {percent} %", "encode", lambda: topk_encode(x, ratio))
        add(f"topk {percent} %", "decode", lambda: topk_decode(message, out))
    quantized = quantize(x)
    add("quantize_per_tensor", "encode", lambda: quantize(x))
    add("quantize_per_tensor", "decode", quantized.dequantize)
    copy = torch.empty_like(x)
    add("copy_", "encode", lambda: copy.copy_(x))
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=10)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    rows = []
    for path in args.files:
        for name, x in read_safetensors(path):
            rows += measure(name, x, args.repeats)
    print(json.dumps(rows))


if __name__ == "__main__":
    main()

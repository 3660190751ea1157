#!/usr/bin/env python3
"""What PyTorch users write for the codecs, timed on a GPU on the tensors of codec_bench: a line of
JSON for each operator, tensor and direction, with the name of the codec that it stands beside.

Quantised values are packed into bytes as ours are; what topk keeps is not: its indices stay 64-bit
integers, and nothing codes them. "compiled": by torch.compile.

  tests/gpu/codecs_in_pytorch.py --mib 512
"""
import argparse
import json
import statistics
import time

import torch

LEVELS = {bits: (1 << bits) - 1 for bits in (2, 4, 8)}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--mib", type=int, default=512, help="of the tensor, in fp32")
    parser.add_argument("--repeats", type=int, default=20)
    return parser.parse_args()


def pack(codes, bits):
    """Bytes of whole codes, the first in the lowest bits."""
    per_byte = 8 // bits
    columns = codes.reshape(-1, per_byte)
    packed = columns[:, 0].clone()
    for i in range(1, per_byte):
        packed |= columns[:, i] << (i * bits)
    return packed


def unpack(packed, bits):
    return torch.stack([(packed >> (i * bits)) & LEVELS[bits] for i in range(8 // bits)], dim=1)


def uniform_encode(x, bits):
    low, high = torch.aminmax(x)
    codes = ((x - low) * (LEVELS[bits] / (high - low))).round_().to(torch.uint8)
    return pack(codes, bits), low, high


def uniform_encode_by_sample(x, bits):
    flat = x.reshape(x.shape[0], -1)
    low, high = flat.amin(1, keepdim=True), flat.amax(1, keepdim=True)
    codes = ((flat - low) * (LEVELS[bits] / (high - low))).round_().to(torch.uint8)
    return pack(codes, bits), low, high


def uniform_decode(message, bits, rows):
    packed, low, high = message
    codes = unpack(packed, bits).reshape(rows, -1)
    return codes * ((high - low) / LEVELS[bits]) + low


def fp8_encode(x):
    scale = 448 / x.abs().amax()
    return (x * scale).to(torch.float8_e4m3fn), scale


def fp8_decode(message):
    codes, scale = message
    return codes.to(torch.float32) / scale


def topk_encode(x, ratio, rows):
    flat = x.reshape(rows, -1)
    indices = flat.abs().topk(max(1, int(flat.shape[1] * ratio)), dim=1, sorted=False).indices
    return flat.gather(1, indices), indices


def topk_decode(message, out):
    values, indices = message
    return out.zero_().scatter_(1, indices, values)


def topk_by_kthvalue(x, ratio):
    """Of the released code of arXiv 2401.07788: all below a sample's threshold becomes 0."""
    flat = x.reshape(x.shape[0], -1)
    low = max(1, int(flat.shape[1] * (1 - ratio)))
    threshold = flat.abs().kthvalue(low, dim=1, keepdim=True).values
    return torch.where(flat.abs() > threshold, flat, 0.0)


def threshold_encode(x):
    kept = (x.abs() >= 1.5 * x.square().mean().sqrt()).reshape(-1).nonzero().squeeze(1)
    return x.reshape(-1)[kept], kept


def randomk_encode(x, ratio):
    flat = x.reshape(x.shape[0], -1)
    lots = torch.rand_like(flat)
    indices = lots.topk(max(1, int(flat.shape[1] * ratio)), dim=1, sorted=False).indices
    return flat.gather(1, indices), indices


class Bench:
    """Times calls on one tensor and prints them."""

    def __init__(self, args, name, x):
        self.args, self.name, self.x = args, name, x
        self.bytes = 4 * x.numel()

    def time(self, call):
        if self.x.device.type != "cuda":
            call()
            start = time.perf_counter()
            call()
            return time.perf_counter() - start
        seconds = []
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for i in range(3 + self.args.repeats):
            start.record()
            call()
            stop.record()
            stop.synchronize()
            if i >= 3:
                seconds.append(start.elapsed_time(stop) / 1e3)
        return statistics.median(seconds)

    def add(self, codec, direction, operator, call, given=tuple):
        """`call` with the arguments that `given` makes, which is not timed."""
        line = {"codec": codec, "tensor": self.name, "direction": direction, "operator": operator}
        try:
            arguments = given()
            line["seconds"] = self.time(lambda: call(*arguments))
            line["bytes_per_second"] = self.bytes / line["seconds"]
        except RuntimeError as error:  # too little memory, or an operator that this version lacks
            print(f"# {line}: {str(error).splitlines()[0]}", flush=True)
            return
        print(json.dumps(line), flush=True)

    def add_both(self, codec, operator, encode, decode):
        self.add(codec, "encode", operator, encode)
        self.add(codec, "decode", operator, decode, given=lambda: (encode(),))

    def casts(self):
        x = self.x
        self.add_both("bf16", "to(bfloat16)", lambda: x.to(torch.bfloat16),
                      lambda message: message.to(torch.float32))
        if hasattr(torch, "float8_e4m3fn"):
            self.add_both("fp8(format=e4m3)", "scale, to(float8_e4m3fn)", lambda: fp8_encode(x),
                          fp8_decode)

    def uniform(self):
        x, samples = self.x, self.x.shape[0]
        scopes = [("tensor", uniform_encode, 1), ("sample", uniform_encode_by_sample, samples)]
        for bits in LEVELS:
            for scope, encode, rows in scopes:
                codec = (f"uniform(bits={bits}, range=min_max, scope={scope}, rounding=nearest, "
                         "zero=free)")
                self.add_both(codec, "aminmax, round, pack", lambda: encode(x, bits),
                              lambda message: uniform_decode(message, bits, rows))
                if self.x.device.type == "cuda":
                    fast_encode, fast_decode = torch.compile(encode), torch.compile(uniform_decode)
                    self.add_both(codec, "the same, compiled", lambda: fast_encode(x, bits),
                                  lambda message: fast_decode(message, bits, rows))

    def sparse(self):
        x, samples = self.x, self.x.shape[0]
        for scope, rows in (("tensor", 1), ("sample", samples)):
            out = torch.empty_like(x).reshape(rows, -1)
            for ratio in (0.01, 0.1, 0.3):
                codec = f"topk(ratio={ratio:g}, scope={scope}, values=fp32)"
                self.add_both(codec, "topk, gather, scatter_",
                              lambda: topk_encode(x, ratio, rows),
                              lambda message: topk_decode(message, out))
        self.add("topk(ratio=0.1, scope=sample, values=fp32)", "encode", "kthvalue, where",
                 lambda: topk_by_kthvalue(x, 0.1))
        self.add("threshold(threshold=1.5, relative_to=rms, values=fp32)", "encode",
                 "nonzero, index", lambda: threshold_encode(x))
        self.add("randomk(ratio=0.1, scope=sample, values=fp32)", "encode", "rand, topk, gather",
                 lambda: randomk_encode(x, 0.1))


def main():
    args = parse_arguments()
    torch.manual_seed(1)
    dense = torch.randn(4 * args.mib, 32, 32, 64, device=args.device)
    for name, x in (("dense", dense), ("relu", dense.relu())):
        bench = Bench(args, name, x)
        copy = torch.empty_like(x)
        bench.add("copy", "encode", "copy_", lambda: copy.copy_(x))
        del copy
        bench.casts()
        bench.uniform()
        bench.sparse()


if __name__ == "__main__":
    main()

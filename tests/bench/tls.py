#!/usr/bin/env python3
"""Throughput of four stages with mutual TLS against the same without, in pairs of runs.

usage: tls.py THINWIRE STAGE_SERVER [--pairs N] [--rate MBIT]

Over TCP on the loopback, or with --rate (wants root) between network namespaces whose lines
have that rate in Mbit/s. Of each run the samples per second of its last epoch count; prints medians over pairs,
with the least and the most.
"""
import argparse
import contextlib
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from network import Network, address, inside, slow  # noqa: E402

STAGES = 4
MODELS = {
    "ResNet-18, width 16": """
model: {name: resnet18, width: 16}
data: {name: digits, batch_size: 100, limit: 1000, test_limit: 10}
optimizer: {name: sgd, lr: 0.01}
""",
    "GPT-2, 4 layers of 128": """
model: {name: gpt2, width: 128, layers: 4, heads: 4}
data: {name: shakespeare, batch_size: 16, context: 64, windows: 640, test_limit: 10}
optimizer: {name: adamw, lr: 0.001}
""",
}
CODECS = {"none": "{codec: none}", "topk 0.1": "{codec: topk, ratio: 0.1}"}


def experiment(model, codec):
    """The experiment's text."""
    return (f"name: tls\n{MODELS[model]}pipeline: {{cuts: auto, stages: {STAGES}, threads: 1, microbatches: 4}}\n"
            f"compression: {{activations: {CODECS[codec]}, gradients: {CODECS[codec]}}}\n"
            "evaluation: {compressed: false, uncompressed: false}\nmetrics: {error_every: 0}\nepochs: 3\n")


def credentials(certificates, role):
    """The flags of a role's certificate."""
    return ["--tls_cert", certificates / f"{role}.pem", "--tls_key", certificates / f"{role}.key",
            "--tls_ca", certificates / "ca.pem"]


def samples_per_second(args, text, work, certificates):
    """One run, over servers of its own."""
    hosts = [address(i) if args.rate else "127.0.0.1" for i in range(STAGES)]
    ports = [4800 + i for i in range(STAGES)]
    place = inside if args.rate else lambda _, *words: list(words)
    security = credentials(certificates, "stage") if certificates else []
    servers = []
    try:
        for i, (host, port) in enumerate(zip(hosts, ports)):
            insecure = ["--insecure"] if args.rate and not certificates else []
            words = [args.stage_server, "--listen", f"{host}:{port}", *insecure, *security]
            servers.append(subprocess.Popen([str(w) for w in place(i, *words)], stderr=subprocess.DEVNULL))
        (work / "tls.yaml").write_text(text)
        security = credentials(certificates, "coordinator") if certificates else []
        words = [args.thinwire, "run", work / "tls.yaml", "--quiet", "--overwrite", "--out", work / "run",
                 "--stages", ",".join(f"{h}:{p}" for h, p in zip(hosts, ports)), *security]
        subprocess.run([str(w) for w in place("c", *words)], check=True, timeout=600)
    finally:
        for server in servers:
            server.terminate()
            server.wait(timeout=30)
    epochs = json.loads((work / "run" / "summary.json").read_text())["epochs"]
    return epochs[-1]["samples_per_second"]


def certify(work):
    """A folder of certificates."""
    subprocess.run([ROOT / "deploy/certs.sh", work / "certificates"], check=True, stdout=subprocess.DEVNULL)
    return work / "certificates"


def main():
    """Every model with every codec."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("thinwire", type=pathlib.Path)
    parser.add_argument("stage_server", type=pathlib.Path)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--rate", type=float, help="of every line, Mbit/s")
    args = parser.parse_args()
    print(f"{args.pairs} pairs, lines: {f'{args.rate:g} Mbit/s' if args.rate else 'loopback'}, {time.strftime('%F')}")
    print("| model | codec | plain, samples/s | TLS, samples/s | TLS / plain |\n|---|---|---|---|---|")
    names = ["c", *(str(i) for i in range(STAGES))]
    with tempfile.TemporaryDirectory() as work, Network(names) if args.rate else contextlib.nullcontext():
        work = pathlib.Path(work)
        certificates = certify(work)
        for name in names if args.rate else []:
            slow(name, args.rate)
        for model in MODELS:
            for codec in CODECS:
                plain, tls = [], []
                for _ in range(args.pairs):
                    plain.append(samples_per_second(args, experiment(model, codec), work, None))
                    tls.append(samples_per_second(args, experiment(model, codec), work, certificates))
                ratios = [b / a for a, b in zip(plain, tls)]
                print(f"| {model} | {codec} | {statistics.median(plain):.0f} | {statistics.median(tls):.0f} | "
                      f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |", flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Published tokenizers beside Hugging Face's library: speed with one thread, seconds to open a file; ids must be equal.
See tokenizers_vs_hf.sh."""

import array
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import published_tokenizers
import tokenizers

ROUNDS = 3


def fastest(function):
    """Seconds of the fastest round, and its result."""
    rounds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        result = function()
        rounds.append(time.perf_counter() - start)
    return min(rounds), result


def main():
    bench, cache, files = sys.argv[1], pathlib.Path(sys.argv[2]), list(map(pathlib.Path, sys.argv[3:]))
    published_tokenizers.make(cache / "packages", cache / "published")
    differing = 0
    print(f"tokenizers {tokenizers.__version__}\n")
    print("| tokenizer | MB | opens in s | theirs | text | MB | ids | MB/s | theirs | ratio |\n|" + "---|" * 10)
    for name in published_tokenizers.TOKENIZERS:
        folder = cache / "published" / name
        path = folder / "tokenizer.json"
        opening, theirs = fastest(lambda: tokenizers.Tokenizer.from_file(str(path)))
        theirs.encode_special_tokens = True
        for file in files:
            text = file.read_bytes().decode()
            with tempfile.TemporaryDirectory() as out:
                lines = subprocess.run([bench, folder, out, "text", file], check=True, capture_output=True, text=True).stdout
                opened, encoded = (line.split() for line in lines.splitlines())
                ids = array.array("i", (pathlib.Path(out) / (file.name + ".ids")).read_bytes()).tolist()
            seconds, wanted = fastest(lambda: theirs.encode_batch_fast([text], add_special_tokens=False)[0].ids)
            differing += ids != wanted
            size = len(text.encode()) / 1e6
            print(f"| {name} | {path.stat().st_size / 1e6:.1f} | {float(opened[1]):.2f} | {opening:.2f} | {file.name} | {size:.2f} | {len(ids)}"
                  f" | {size / float(encoded[3]):.1f} | {size / seconds:.2f} | {seconds / float(encoded[3]):.1f} |", flush=True)
    sys.exit(1 if differing else 0)


main()

#!/usr/bin/env python3
"""How much memory a corpus takes, of short documents or one text: `thinwire plan` encodes it and divides it into samples,
`thinwire run` trains some steps on them in two stages. Prints for each process the peak of what it had resident, and of that the part that is
no file's page; fails above the limit.

usage: corpus_memory.py THINWIRE STAGE_SERVER [--text] [--gigabytes 3.1] [--packing best_fit] [--most-mb 200] [--folder FOLDER]
       FOLDER keeps the corpus; by default it is made anew in a temporary folder. It and what is made of it take four
       times as much disk."""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def write_corpus(path, size, line):
    """Writes documents of one to eight lines of Tiny Shakespeare, each as `line` % (its number, itself as JSON's string)."""
    text = subprocess.run(["zstd", "-dcq", ROOT / "data/shakespeare/input.txt.zst"], check=True, capture_output=True, text=True).stdout
    spoken = [json.dumps(line)[1:-1] for line in text.split("\n") if line]
    draw, written, count = random.Random(1), 0, 0
    with open(path, "w", buffering=1 << 22) as file:
        while written < size:
            block = []
            for _ in range(100_000):
                count += 1
                at = draw.randrange(len(spoken) - 9)
                block.append(line % (count, "\\n".join(spoken[at:at + draw.randrange(1, 9)])))
            written += file.write("".join(block))
    print(f"{count} documents, {written / 1e9:.2f} GB", flush=True)


class Peaks:
    """Peaks of the memory of a process and of those that it started, in MB, by their commands."""

    def __init__(self):
        self.all = {}

    def look(self, process):
        children = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, text=True).stdout.split()
        for number in [str(process), *children]:
            try:
                lines = pathlib.Path(f"/proc/{number}/status").read_text().splitlines()
            except OSError:
                continue
            about = dict(line.split(":", 1) for line in lines)
            resident, own = (int(about.get(field, "0 kB").split()[0]) / 1e3 for field in ("VmHWM", "RssAnon"))
            before = self.all.get(number, ("", 0, 0))
            self.all[number] = (about["Name"].strip(), max(before[1], resident), max(before[2], own))


def measured(arguments, peaks):
    """Runs a command and returns the greatest of the peaks."""
    begin = time.monotonic()
    process = subprocess.Popen(list(map(str, arguments)), stdout=subprocess.DEVNULL)
    while process.poll() is None:
        peaks.look(process.pid)
        time.sleep(0.05)
    if process.returncode:
        sys.exit(f"{' '.join(map(str, arguments))}: exit {process.returncode}")
    print(f"thinwire {arguments[1]}: {time.monotonic() - begin:.0f} s")
    for name, resident, own in peaks.all.values():
        print(f"  {name}: {resident:.0f} MB resident at most, {own:.0f} MB of it no file's")
    return max(resident for _, resident, _ in peaks.all.values())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("thinwire", type=pathlib.Path)
    parser.add_argument("stage_server", type=pathlib.Path)
    parser.add_argument("--text", action="store_true")
    parser.add_argument("--gigabytes", type=float, default=3.1)
    parser.add_argument("--packing", default="best_fit")
    parser.add_argument("--most-mb", type=float, default=200)
    parser.add_argument("--folder", type=pathlib.Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        folder = arguments.folder or pathlib.Path(work)
        corpus = folder / ("text.txt" if arguments.text else "lines.jsonl")
        if not corpus.exists():
            write_corpus(corpus, arguments.gigabytes * 1e9, "%d %s\n" if arguments.text else '{"text": "%d %s"}\n')
        kind = "text" if arguments.text else f"jsonl, packing: {arguments.packing}"
        experiment = pathlib.Path(work) / "memory.yaml"
        experiment.write_text(f"""name: memory
model: {{name: gpt2, layers: 2, heads: 2, width: 16}}
data: {{name: {kind}, file: {corpus}, tokens: hf, vocabulary: {ROOT}/data/hf_testdata/bytes, context: 128,
  batch_size: 32, test_limit: 32}}
pipeline: {{cuts: [h.0], threads: 1}}
optimizer: {{name: adamw, lr: 0.01}}
steps: 5
""")
        greatest = measured([arguments.thinwire.resolve(), "plan", experiment, "--gflops", "10"], Peaks())
        run = [arguments.thinwire.resolve(), "run", experiment, "--stage_server", arguments.stage_server.resolve(), "--out", f"{work}/run"]
        greatest = max(greatest, measured(run, Peaks()))
    if greatest > arguments.most_mb:
        sys.exit(f"{greatest:.0f} MB, want at most {arguments.most_mb:.0f}")


main()

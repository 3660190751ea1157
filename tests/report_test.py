#!/usr/bin/env python3
"""Opens the report of real runs in a real browser, and holds its numbers to the runs' own files.

usage: report_test.py THINWIRE STAGE_SERVER
"""
import csv
import io
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zlib

EXPERIMENT = """
name: NAME
seed: SEED
model: {name: resnet8, width: 8}
data: {name: digits, batch_size: 60, limit: 240, test_limit: 60}
pipeline: {cuts: [stem, layer1], stages: 1, microbatches: 1, threads: 1}
compression: {activations: CODEC, gradients: CODEC}
optimizer: {name: sgd, lr: 0.05}
epochs: 2
device: cpu
"""
CODECS = {"none": "{codec: none}", "uniform4": "{codec: uniform, bits: 4}"}
SEEDS = (1, 2)
LIGHT, DARK = 1, 0  # as the browser counts them


def thinwire(*arguments):
    done = subprocess.run([sys.argv[1], *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def train(folder):
    """Two codecs with two seeds, one of them traced, and a copy of a run that was killed."""
    for number, (name, codec) in enumerate(CODECS.items()):
        for seed in SEEDS:
            text = EXPERIMENT.replace("NAME", json.dumps(name)).replace("SEED", str(seed)).replace("CODEC", codec)
            experiment = folder / "experiment.yaml"
            experiment.write_text(text, encoding="utf-8")
            trace = ["--trace", "steps=3"] if name == "none" and seed == 1 else []
            thinwire("run", experiment, "--quiet", "--out", folder / f"runs/{number}-seed{seed}",
                     "--stage_server", sys.argv[2], *trace)
    killed = folder / "runs/0-seed3"
    shutil.copytree(folder / "runs/0-seed1", killed)
    (killed / "summary.json").unlink()
    text = (killed / "experiment.yaml").read_text(encoding="utf-8")
    (killed / "experiment.yaml").write_text(text.replace("seed: 1\n", "seed: 3\n"), encoding="utf-8")


def browser(folder, page, *flags):
    """What the browser, which has no network, prints."""
    done = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
         f"--user-data-dir={folder}/browser", "--host-resolver-rules=MAP * ~NOTFOUND", *flags, f"file://{page}"],
        capture_output=True, text=True, check=False, timeout=120, env={"HOME": str(folder), "PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def corner(png):
    """Red, green and blue of the upper left pixel: no filter changes it, as it has no neighbours."""
    data, at = b"", 8
    while at < len(png):
        length, kind = int.from_bytes(png[at:at + 4], "big"), png[at + 4:at + 8]
        data += png[at + 8:at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    return tuple(zlib.decompress(data)[1:4])


def check_page(folder, page):
    html = page.read_text(encoding="utf-8")
    script = "<script>document.title = document.documentElement.scrollWidth + ' of ' + innerWidth</script>"
    probe = folder / "probe.html"
    probe.write_text(html + script, encoding="utf-8")
    dom = browser(folder, probe, "--window-size=1200,900", "--dump-dom")
    width, window = map(int, re.search(r"<title>(\d+) of (\d+)</title>", dom).groups())
    assert width <= window, f"{width} pixels wide, want at most {window}"
    assert dom.count("<svg") == 4, "three charts and a timeline"
    assert "3 (unfinished)" in dom
    for scheme, background in ((LIGHT, (255, 255, 255)), (DARK, (13, 17, 23))):
        shot = folder / "shot.png"
        browser(folder, page, f"--blink-settings=preferredColorScheme={scheme}", f"--screenshot={shot}")
        assert corner(shot.read_bytes()) == background, scheme
    browser(folder, page, f"--print-to-pdf={folder}/page.pdf")
    assert (folder / "page.pdf").read_bytes().startswith(b"%PDF")


def check_numbers(folder):
    summaries = [json.loads((folder / f"runs/0-seed{seed}/summary.json").read_text(encoding="utf-8")) for seed in SEEDS]
    finals = [100 * summary["epochs"][-1]["test"]["compressed"]["accuracy"] for summary in summaries]
    mean = sum(finals) / 2
    deviation = abs(finals[0] - finals[1]) / 2 ** 0.5
    markdown = thinwire("report", folder / "runs", "--format", "md")
    assert f"| none | 1, 2, 3 (unfinished) | {mean:.2f} ± {deviation:.2f} |" in markdown, markdown
    rows = list(csv.DictReader(io.StringIO(thinwire("report", folder / "runs", "--format", "csv"))))
    assert len(rows) == 2 * 5, "two epochs of five runs"
    for row in rows:
        lines = (pathlib.Path(row["folder"]) / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        epoch = next(entry for entry in map(json.loads, lines)
                     if entry["type"] == "epoch" and entry["epoch"] == int(row["epoch"]))
        sent = sum(cut[way]["wire_bytes"] for cut in epoch["boundaries"] for way in ("activations", "gradients"))
        assert int(row["wire_bytes"]) == sent
        assert abs(float(row["uncompressed_accuracy"]) - epoch["test"]["uncompressed"]["accuracy"]) < 1e-8


def check_refusals(folder):
    for code, arguments, message in (
            (2, ["nowhere"], "no such folder"),
            (2, [folder / "browser"], "no run is in or below it"),
            (2, [folder / "runs", "--baseline", "nnoe"], "want one of none"),
            (2, [folder / "runs/0-seed1", folder / "runs/1-seed1"], "report of 2 folders without --out, want --out FILE"),
            (2, [folder / "runs", "--out", folder / "no/such/page.html"], "No such file or directory")):
        done = subprocess.run([sys.argv[1], "report", *map(str, arguments)], capture_output=True, text=True, check=False)
        assert done.returncode == code and message in done.stderr, (arguments, done.returncode, done.stderr)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        train(folder)
        thinwire("report", folder / "runs", "--title", "Two codecs")
        check_page(folder, folder / "runs/report.html")
        check_numbers(folder)
        check_refusals(folder)


if __name__ == "__main__":
    main()

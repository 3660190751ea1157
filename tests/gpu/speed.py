"""Parts of run.py that time something. Ratios are above 1 where we are faster."""
import collections
import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys

from commands import shown
from results import figure
from session import LOGGED_CHARACTERS, Again, Failed, Skipped

IMAGE_BYTES = 3 * 32 * 32
# Options of step_bench and torch_step.py.
GPT2_OF_ANY_VOCABULARY = ["--model", "gpt2", "--layers", 12, "--heads", 12, "--width", 768,
                          "--context", 1024]
GPT2 = [*GPT2_OF_ANY_VOCABULARY, "--vocabulary", 50257]
TINY_GPT2 = ["--model", "gpt2", "--layers", 1, "--heads", 1, "--width", 32, "--context", 16,
             "--vocabulary", 32]


# Shares of a copy: title, how the codec's name begins and ends, tensors, encode, decode.
EVERY = ("dense", "relu")
CODEC_AIMS = (
    ("uniform", "uniform", "zero=free)", EVERY, 0.85, 0.8),
    ("blockwise8", "blockwise8", ")", EVERY, 1.2, 0.8),
    ("topk, 0.01", "topk(ratio=0.01", ")", EVERY, 0.4, 0.4),
    ("topk, 0.1", "topk(ratio=0.1,", ")", EVERY, 0.4, 0.4),
    ("topk, 0.3", "topk(ratio=0.3", ")", EVERY, 0.33, 0.4),
    ("randomk", "randomk", ")", EVERY, 0.5, 0.2),
    ("ecsq without entropy", "ecsq", "lossless=none)", EVERY, 0.5, 0.4),
    ("ecsq", "ecsq", "rounding=nearest)", EVERY, 0.25, 0.3),
    ("ecsq with neighbours", "ecsq", "rounding=nearest)", ("patches",), 0.2, 0.2),
)


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def has_pytorch(session):
    return session.run([sys.executable, "-c", "import torch"], may_fail=True).status == 0


def messages(session, _):
    """An exact message from one process' GPU to another's, by each way of a link on one host."""
    sizes = ["--bytes", 1 << 16, "--rounds", 3, "--warmup", 1] if session.rehearse else []
    lines = json_lines(session.run([session.program("message_bench"), "--cuda_plugin",
                                    session.plugin, *sizes]).out)
    figures = [figure(f"{line['bytes'] / 1e6:.1f} MB, {line['way']}" +
                      ("" if line["went"] == line["way"] else f" (went by {line['went']})"),
                      1e3 * line["median_seconds"], "ms") for line in lines]
    return {"figures": figures, "numbers": lines}


def codecs(session, _):
    """Every codec from device memory to device memory, as a share of the card's copies."""
    sizes = ["--mib", "512"]
    if session.rehearse:
        sizes = ["--mib", "1", "--repeats", "1", "--entry_repeats", "1", "--warmup", "0",
                 "--only", "ratio=0.1"]
    lines = json_lines(session.run([session.program("codec_bench"), *sizes]).out)
    copy, rows = lines[0], lines[1:]
    figures = [figure(name, copy[key] / 1e9, "GB/s") for name, key in
               (("copies, read and written", "read_and_written_per_second"),
                ("from the GPU across PCIe", "to_host_bytes_per_second"),
                ("to the GPU across PCIe", "from_host_bytes_per_second"))]
    for title, prefix, suffix, tensors, encode, decode in CODEC_AIMS:
        for direction, aim in (("encode", encode), ("decode", decode)):
            shares = [row["of_copy"] for row in rows
                      if row["codec"].startswith(prefix) and row["codec"].endswith(suffix) and
                      row["tensor"] in tensors and row["direction"] == direction]
            if shares:
                figures.append(figure(f"{title}, slowest {direction}, of a copy", min(shares),
                                      at_least=aim))
    return {"figures": figures, "numbers": lines, "tables": codec_table(rows)}


def codec_table(rows):
    lines = ["Of a copy: fp32 bytes of the tensor a second, over those of cudaMemcpyAsync from "
             "device to device.", "",
             "| codec | tensor | bits/element | encode, GB/s | of a copy | decode, GB/s "
             "| of a copy | with PCIe: encode | decode |", "|---" * 9 + "|"]
    pairs = {}
    for row in rows:
        pairs.setdefault((row["codec"], row["tensor"]), {})[row["direction"]] = row
    for (codec, tensor), pair in pairs.items():
        cells = [f"{pair['encode']['bits_per_element']:.2f}"]
        for direction in ("encode", "decode"):
            row = pair[direction]
            cells += [f"{row['bytes_per_second'] / 1e9:.0f}", f"{row['of_copy']:.2f}"]
        cells += [f"{pair[d]['entry_bytes_per_second'] / 1e9:.1f}" for d in ("encode", "decode")]
        lines.append(f"| `{codec}` | {tensor} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def codecs_in_pytorch(session, results):
    """The same on the same tensors as one would write it in PyTorch."""
    if not has_pytorch(session):
        raise Skipped("python3 has no torch")
    sizes = ["--device", "cpu", "--mib", "1", "--repeats", "1"] if session.rehearse else []
    script = session.file("tests", "gpu", "codecs_in_pytorch.py")
    theirs = json_lines(session.run([sys.executable, "-B", script, *sizes]).out)
    ours = {(row["codec"], row["tensor"], row["direction"]): row["bytes_per_second"]
            for row in results.parts.get("codecs", {}).get("numbers", [])[1:]}
    lines = ["| codec | tensor | direction | PyTorch | theirs, GB/s | ours, GB/s | ours / theirs |",
             "|---" * 7 + "|"]
    ratios = {"encode": [], "decode": []}
    for row in theirs:
        mine = ours.get((row["codec"], row["tensor"], row["direction"]))
        cells = ["", ""]
        if mine is not None:
            ratio = mine / row["bytes_per_second"]
            ratios[row["direction"]].append(ratio)
            cells = [f"{mine / 1e9:.0f}", f"{ratio:.1f}"]
        cells = [f"`{row['codec']}`", row["tensor"], row["direction"], row["operator"],
                 f"{row['bytes_per_second'] / 1e9:.1f}", *cells]
        lines.append("| " + " | ".join(cells) + " |")
    figures = [figure(f"least ours / theirs, {direction}", min(of), at_least=1)
               for direction, of in ratios.items() if of]
    return {"figures": figures, "numbers": theirs, "tables": "\n".join(lines)}


def random_images(folder, images):
    """Files of CIFAR-10's binary format with random pixels and labels."""
    os.makedirs(folder, exist_ok=True)
    numbers = random.Random(1)
    names = [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]
    for name in names:
        with open(os.path.join(folder, name), "wb") as file:
            for _ in range(images):
                file.write(bytes([numbers.randrange(10)]) + numbers.randbytes(IMAGE_BYTES))


CUT_CODECS = {"none": "{codec: none}", "uniform": "{codec: uniform, bits: 4}",
              "ecsq": "{codec: ecsq, step: 1}"}
MICROBATCHES = 4


@contextlib.contextmanager
def multi_process_service(session):
    """Variables of the environment with which processes share the GPU's time by NVIDIA's MPS; none
    where that is not to be had."""
    folder = os.path.join(session.work, "mps")
    os.makedirs(folder, exist_ok=True)
    env = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
    control = shutil.which("nvidia-cuda-mps-control")
    started = control and session.run([control, "-d"], env=env, may_fail=True).status == 0
    try:
        yield env if started else None
    finally:
        if started:  # not by session.run(), which refuses where a signal ends us
            subprocess.run([control], input="quit\n", text=True, timeout=20, check=False,
                           stdout=subprocess.DEVNULL, env={**os.environ, **env})


def step_without_stages(session, width, batch):
    """Images a second of the uncut ResNet-18 in one program, with an update each microbatch."""
    steps = [1, "--warmup", 0] if session.rehearse else [40, "--warmup", 10]
    return json_lines(session.run([
        session.program("step_bench"), "--device", "cuda:0", "--cuda_plugin", session.plugin,
        "--precision", "bf16", "--width", width, "--batch", batch, "--steps", *steps
    ]).out)[0]["images_per_second"]


def four_stages(session, _):
    """Four processes on one GPU against one with the uncut model, both in the same microbatches:
    with several codecs, and with and without MPS; and one against a program without stages."""
    folder = os.path.join(session.work, "images")
    images = 10 if session.rehearse else 2048
    random_images(folder, images)
    common = {"data.dir": folder, "data.verify": "false", "data.limit": 5 * images,
              "data.test_limit": images, "data.augment": "none", "device": "cuda",
              "model.width": 64, "precision": "bf16", "data.batch_size": 512, "epochs": 3,
              "deterministic": "false", "pipeline.microbatches": MICROBATCHES,
              "metrics.error_every": 0, "evaluation.compressed": "false",
              "evaluation.uncompressed": "false"}
    if session.rehearse:
        common.update({"model.width": 4, "data.batch_size": 8, "epochs": 1, "data.limit": 8,
                       "pipeline.threads": 1})

    def speed(codec, stages, env=None):
        spread = {} if stages > 1 else {"pipeline.cuts": "[]"}
        settings = {**common, "pipeline.stages": stages, **spread,
                    "compression.activations": CUT_CODECS[codec],
                    "compression.gradients": CUT_CODECS[codec]}
        return session.train("speed", "experiments/cifar10/resnet18-w16.yaml", settings,
                             env=env).speed()

    speeds = collections.defaultdict(list)
    for _ in range(1 if session.rehearse else 2):
        speeds["one stage"].append(speed("none", 1))
        for codec in CUT_CODECS:
            speeds[f"four stages, {codec}"].append(speed(codec, 4))
    with multi_process_service(session) as env:
        for codec in CUT_CODECS if env else ():
            speeds[f"four stages, {codec}, MPS"].append(speed(codec, 4, env))
    speeds["step_bench"].append(step_without_stages(
        session, common["model.width"], common["data.batch_size"] // MICROBATCHES))
    medians = {name: statistics.median(of) for name, of in speeds.items()}
    figures = [figure(name, median, "samples/s") for name, median in medians.items()]
    figures.append(figure("one stage / step_bench", medians["one stage"] / medians["step_bench"]))
    for name, median in medians.items():
        if name.startswith("four stages"):
            aim = {} if "ecsq" in name else {"at_least": 0.85}
            figures.append(figure(f"{name} / one", median / medians["one stage"], **aim))
    return {"figures": figures, "numbers": speeds}


def step(precision, batch, yardsticks=("eager", "compile", "compile, graphs"), rounds=3,
         model=(), aim=1.2):
    """A part: training steps of one whole model, a ResNet-18 unless `model` says otherwise, against
    PyTorch's."""

    def run(session, _):
        if not has_pytorch(session) and not session.rehearse:
            raise Skipped("python3 has no torch")
        network = "-".join([model[1], str(model[-1])]) if model else "resnet18"
        path = os.path.join(session.work, f"step-{network}-{precision}-{batch}.json")
        if os.path.exists(path):
            os.remove(path)  # of an earlier call
        sizes = [*model, "--rounds", rounds]
        if session.rehearse:
            sizes = [*(TINY_GPT2 if model else ["--width", "4"]), "--steps", "1", "--rounds", "1"]
        command = [sys.executable, "-B", session.file("tests", "gpu", "vs_pytorch.py"),
                   "--bench", session.program("step_bench"), "--cuda_plugin", session.plugin,
                   "--batches", 2 if session.rehearse else batch, "--precisions", precision,
                   "--yardsticks", *yardsticks, "--seconds", int(session.left() / 2),
                   "--json", path, *sizes]
        done = session.run(command, may_fail=True)
        if not os.path.exists(path):
            raise Failed("nothing was measured: " + done.reason(),
                         [shown(done.out, LOGGED_CHARACTERS)])
        with open(path, encoding="utf-8") as file:
            rounds_done = [one["runs"] for one in json.load(file)]
        alone = [session.program("step_bench"), "--device", "cuda:0", "--cuda_plugin",
                 session.plugin, "--precision", precision, "--batch", batch, *model, "--steps", 3,
                 "--warmup", 1]
        unit = "tokens" if model else "images"
        return {"figures": step_figures(rounds_done, yardsticks, unit, Again(alone, {}), aim),
                "numbers": rounds_done}

    return run


def step_figures(rounds, yardsticks, unit, alone, aim):
    """Of rounds of which the last may lack what there was no time for. `unit`: what is counted;
    `alone`: one run of ours; `aim`: how much faster it should be."""
    for one in rounds:
        for name in ("thinwire", "thinwire, deterministic"):
            if "failed" in one.get(name, {}):
                raise Failed(f"{name}: {one[name]['failed']}", again=[alone])
    figures = []
    for name in ("thinwire", "thinwire, deterministic", *yardsticks):
        speeds = [one[name][unit + "_per_second"] for one in rounds if measured(one, name)]
        verdict = "failed" if any(name in one for one in rounds) else "not done in time"
        figures.append(figure(name, statistics.median(speeds), unit + "/s") if speeds else
                       figure(name, verdict))
    for name in yardsticks:
        ratios = [one[name]["step_seconds"] / one["thinwire"]["step_seconds"] for one in rounds
                  if measured(one, name) and measured(one, "thinwire")]
        if ratios:
            figures.append(figure(f"ours / {name}", statistics.median(ratios), at_least=aim))
    return figures


def measured(one, name):
    return name in one and "failed" not in one[name]

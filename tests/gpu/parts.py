"""The parts of run.py, in the order of what they teach: what is right before what is fast. Each
takes a Session and the Results so far, and returns figures, numbers and tables (Results.add), or
raises Failed or Skipped."""
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys

import machine
import memory
import sanitizer
import speed
import test_programs
import timeline
from results import figure
from session import Failed, Run

# `seconds`: what it wants to begin with, and its time limit unless that is `most`.
Part = collections.namedtuple("Part", "name seconds what run most needs_data always",
                              defaults=(None, False, False))

QUICKSTART = "experiments/quickstart.yaml"
LANGUAGE = "experiments/shakespeare.yaml"
# A quickstart that the emulator can do.
TINY = {"model.width": 4, "data.limit": 20, "data.test_limit": 20, "data.batch_size": 20,
        "pipeline.threads": 1, "epochs": 1}
TINY_LANGUAGE = {"model.width": 16, "model.heads": 2, "data.context": 8, "data.windows": 4,
                 "data.batch_size": 2, "data.test_limit": 2, "pipeline.threads": 1}


def first_line(command):
    """Of what it prints; "unknown" if it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout.strip().splitlines()[0]
    except (OSError, subprocess.SubprocessError, IndexError):
        return "unknown"


def device(session, results):
    """Which machine this is, that it runs a kernel, and that a run reaches its GPU."""
    query = "name,driver_version,memory.total,compute_cap,power.limit,clocks.max.sm,clocks.max.mem"
    results.facts["GPU"] = first_line(["nvidia-smi", f"--query-gpu={query}",
                                       "--format=csv,noheader"])
    version = "import torch; print(torch.__version__, 'for CUDA', torch.version.cuda)"
    results.facts["PyTorch"] = first_line([sys.executable, "-c", version])
    results.facts["Python"] = sys.version.split()[0]
    machine.look(session, results)
    run = session.train("device", QUICKSTART, {**TINY, "device": "cuda", "model.width": 16})
    origin = run.summary()["provenance"]
    results.facts["CPU"] = f"{origin['cpu_model']}, {session.cores} cores"
    results.facts["device"] = origin["devices"][0]["model"]
    results.facts["libraries"] = origin["devices"][0]["libraries"]
    results.facts["build"] = origin["build_id"]
    if session.rehearse:
        results.facts["rehearsal"] = "tiny sizes; speeds mean nothing"
    return {"numbers": {"provenance": origin}}


def tested(counts):
    figures = [figure(name, count) for name, count in zip(("tests", "skipped"), counts)]
    return {"figures": figures}


def twins(session, _):
    """Every kernel against its CPU twin."""
    tests = "CudaCastTest.*:SgdTest.*:RecordSegmentTest.*" if session.rehearse else "-*ParityTest*"
    shards = max(1, min(8, session.cores // 2))
    return tested(test_programs.check(
        session, "twins", test_programs.run(session, "twins", tests, shards)))


def device_tests(session, _):
    """What is linked with CUDA itself: memory, streams, recordings; both ways into cuDNN."""
    # Tests of the device want its memory for themselves.
    of_device = test_programs.run(session, "device_tests", "CudaDeviceTest.*:RecorderTest.*")
    rest = "BiasTest.*" if session.rehearse else "-CudaDeviceTest.*:RecorderTest.*"
    others = test_programs.run(session, "device_tests", rest)
    return tested(test_programs.check(session, "device_tests", of_device, others))


def parity(session, _):
    """A network's step against PyTorch's, in fp32."""
    path = os.path.join(session.work, "parity.json")
    test_programs.check(session, "twins", test_programs.run(
        session, "twins", "*ParityTest*", options=[f"--gtest_output=json:{path}"]))
    with open(path, encoding="utf-8") as file:
        tests = [test for suite in json.load(file)["testsuites"] for test in suite["testsuite"]]
    return {"figures": [figure(f"{test['name']}: furthest tensor", float(test["worst"]))
                        for test in tests]}


def both(codec):
    return {"compression.activations": codec, "compression.gradients": codec}


CODECS = {
    "none": both("{codec: none}"),
    "topk, ef21": both("{codec: topk, ratio: 0.1, feedback: {kind: ef21, digest_every: 1}}"),
    "uniform": both("{codec: uniform, bits: 4}"),
    "uniform, bf16": {**both("{codec: uniform, bits: 4}"), "precision": "bf16"},
}

SLICES = {"pipeline.schedule": "terapipe", "pipeline.slices": 4}

# Of a GPT-2. With bf16, its heads of 32 go through tensor cores.
LANGUAGE_CODECS = {
    "gpt2": {"model.dropout": 0.1},
    "gpt2, topk, bf16": {**both("{codec: topk, ratio: 0.2, scope: token}"), "precision": "bf16"},
    "gpt2, slices": SLICES,
    "gpt2, slices, topk, bf16": {**both("{codec: topk, ratio: 0.2, scope: token}"),
                                 "precision": "bf16", **SLICES},
}


def short(session, codec):
    """An experiment, and settings that make a few steps of it."""
    if codec in LANGUAGE_CODECS:
        sizes = TINY_LANGUAGE if session.rehearse else {"data.windows": 96, "data.test_limit": 12}
        return LANGUAGE, {"device": "cuda", "pipeline.microbatches": 2, "epochs": 1, **sizes,
                          **LANGUAGE_CODECS[codec]}
    sizes = TINY if session.rehearse else {"data.limit": 256, "data.test_limit": 100, "epochs": 2}
    return QUICKSTART, {"device": "cuda", "pipeline.microbatches": 4, **sizes, **CODECS[codec]}


def what_differs(one, other):
    """Of what may not depend on how a run was spread: names of what is not equal."""
    kinds = {"losses": Run.losses, "accuracies": Run.tests, "wire bytes": Run.wire_bytes,
             "parameters": Run.parameters}
    return [kind for kind, of in kinds.items() if of(one) != of(other)]


def n_stages(session, _):
    """N stages on the GPU are one stage, bit for bit."""
    spreads = {"one": {"pipeline.stages": 1}, "1f1b": {"pipeline.stages": 4},
               "gpipe": {"pipeline.stages": 4, "pipeline.schedule": "gpipe"}}
    all_settings = {**CODECS, **LANGUAGE_CODECS}
    names = ["topk, ef21", "gpt2", "gpt2, slices"] if session.rehearse else list(all_settings)

    def train(job):
        name, spread = job
        folder = re.sub(r"\W+", "-", f"n-{name}-{spread}")
        experiment, settings = short(session, name)
        return job, session.train(folder, experiment, {**spreads[spread], **settings})

    # What names its schedule has no other.
    jobs = [(name, spread) for name in names for spread in spreads
            if not (spread == "gpipe" and "pipeline.schedule" in all_settings[name])]
    with concurrent.futures.ThreadPoolExecutor(max(1, min(4, session.cores // 4))) as pool:
        runs = dict(pool.map(train, jobs))
    unequal = [f"{name}, 4 stages {spread}: {', '.join(differences)} differ"
               for name, spread in jobs if spread != "one"
               if (differences := what_differs(runs[name, "one"], runs[name, spread]))]
    if unequal:
        raise Failed("; ".join(unequal))
    steps = len(runs[jobs[0]].losses())
    return {"figures": [figure("runs equal to one stage's", len(jobs) - len(names)),
                        figure("steps each", steps)]}


def language(session, _):
    """A small GPT-2 learns on the GPU what it learns on the CPU, in fp32, also by slices."""
    figures = []
    for name in ("gpt2", "gpt2, slices"):
        experiment, settings = short(session, name)
        gpu, cpu = (session.train(f"language-{device}", experiment, {**settings, "device": device})
                    for device in ("cuda", "cpu"))
        furthest = max(abs(a - b) for a, b in zip(gpu.losses(), cpu.losses()))
        if furthest > 1e-3 or len(gpu.losses()) != len(cpu.losses()):
            raise Failed(f"{name}: losses are {gpu.losses()} on the GPU, {cpu.losses()} on the CPU")
        figures += [figure(f"{name}: steps", len(gpu.losses())),
                    figure(f"{name}: furthest loss", furthest)]
    return {"figures": figures}


def mixed(session, _):
    """GPUs and CPUs in one pipeline: every step's digests of the state are compared by the
    receivers, and a difference ends the run."""
    for devices in ("[cpu, cuda:0, cuda:0, cpu]", "[cuda:0, cpu, cpu, cuda:0]"):
        experiment, settings = short(session, "topk, ef21")
        run = session.train("mixed", experiment, {**settings, "device": devices})
        if not run.losses():
            raise Failed(f"{devices}: no step was recorded")
    return {"figures": [figure("steps with equal state", len(run.losses()))]}


def quickstart(session, _):
    """The README's first run on the GPU."""
    run = session.train("quickstart", QUICKSTART,
                        {"device": "cuda", **(TINY if session.rehearse else {})})
    last = run.epochs[-1]
    accuracy = last["test"]["compressed"]["accuracy"]
    if accuracy < 0.95 and not session.rehearse:
        raise Failed(f"test accuracy {accuracy}, want 0.95 or more")
    return {"figures": [figure("test accuracy, compressed", accuracy, at_least=0.95),
                        figure("four processes", run.speed(), "samples/s")]}


PAPER1 = {  # bits and ratios of activations/gradients
    "none": both("{codec: none}"),
    "topk 0.1": both("{codec: topk, ratio: 0.1, count: paper1}"),
    "topk 0.05": both("{codec: topk, ratio: 0.05, count: paper1}"),
    "uniform 2/8": {"compression.activations": "{codec: uniform, bits: 2}",
                    "compression.gradients": "{codec: uniform, bits: 8}"},
    "uniform 8/2": {"compression.activations": "{codec: uniform, bits: 8}",
                    "compression.gradients": "{codec: uniform, bits: 2}"},
}


def paper1(session, _):
    """ResNet-18 of full width on CIFAR-10 as in arXiv 2401.07788, for as many of its 100 epochs as
    the time allows: each configuration gets an equal share and is interrupted then."""
    sizes = {"data.limit": 20, "data.test_limit": 20, "data.batch_size": 10, "model.width": 4,
             "data.verify": "false"} if session.rehearse else {}
    runs = {}
    for i, (name, codec) in enumerate(PAPER1.items()):
        share = (session.left() - 10) / (len(PAPER1) - i)
        runs[name] = session.train("paper1-" + re.sub(r"\W+", "-", name),
                                   "experiments/paper1/full/experiment.yaml",
                                   {"data.dir": session.data, "device": "cuda", **codec, **sizes},
                                   limit=share, interrupts=True)
        if not runs[name].epochs:
            raise Failed(f"{name}: no epoch was done in {share:.0f} s, see log.txt")
    common = min(len(run.epochs) for run in runs.values())
    tables = ["| codec | epochs | last: on | off | recalibrated | "
              f"after {common} epochs: on | off | samples/s |", "|---" * 8 + "|"]
    for name, run in runs.items():
        tables.append(f"| {name} | {len(run.epochs)} | " + " | ".join(
            accuracies(run.epochs[-1]) + accuracies(run.epochs[common - 1])[:2]) +
                      f" | {run.speed():.0f} |")
    return {"figures": [figure("epochs of each at least", common)], "tables": "\n".join(tables),
            "numbers": {name: run.epochs for name, run in runs.items()}}


def accuracies(epoch):
    kinds = ("compressed", "uncompressed", "uncompressed_recalibrated")
    tests = [epoch["test"].get(kind) for kind in kinds]
    return ["-" if test is None else f"{100 * test['accuracy']:.2f} %" for test in tests]


PARTS = [
    Part("device", 30, "machine, versions, a kernel, a short run on the GPU", device, most=60,
         always=True),
    Part("twins", 60, "every kernel against its CPU twin", twins, most=120),
    Part("device_tests", 45, "memory, streams, recordings, cuDNN's calls", device_tests, most=90),
    Part("parity", 15, "a network's step against PyTorch's", parity, most=60),
    Part("n_stages", 60, "N stages are one stage, bit for bit", n_stages, most=150),
    Part("language", 30, "a small GPT-2 trains as on the CPU", language, most=60),
    Part("mixed", 30, "GPUs and CPUs in one pipeline", mixed, most=60),
    Part("messages", 20, "a message between two processes' GPUs, by each way", speed.messages,
         most=60),
    Part("timeline", 20, "a step's kernels by time", timeline.timeline(
        {"ResNet-18 at batch 512": ["--batch", 512], "GPT-2": ["--batch", 8, *speed.GPT2]}
    ), most=60),
    Part("trace", 20, "a run's trace has the GPU's kernels", timeline.traced(
        QUICKSTART, {"device": "cuda", "data.limit": 80, "data.test_limit": 20,
                     "data.batch_size": 20, "pipeline.stages": 1, "epochs": 1}), most=60),
    Part("codecs", 50, "codecs against the card's copies", speed.codecs, most=100),
    Part("step_gpt2", 100, "a step of GPT-2 (124M) against PyTorch, bf16, 8 x 1024",
         speed.step("bf16", 8, ["compile", "compile, autotuned"], rounds=1, model=speed.GPT2),
         most=200),
    Part("step_bf16_512", 100, "a step against PyTorch, bf16, batch 512",
         speed.step("bf16", 512, ["eager", "compile", "compile, autotuned"], rounds=1), most=200),
    Part("four_stages", 60, "four stages on one GPU against one", speed.four_stages, most=120),
    Part("memory", 40, "blocks that swap to the host, recompute or stash", memory.put_away, most=90),
    Part("step_bf16_100", 50, "a step against PyTorch, bf16, batch 100",
         speed.step("bf16", 100, rounds=1), most=120),
    Part("step_tf32_512", 50, "a step against PyTorch, TF32, batch 512",
         speed.step("tf32", 512, ["eager", "compile"], rounds=1, aim=1.1), most=120),
    Part("sanitizer", 40, "compute-sanitizer over kernels", sanitizer.sanitizer, most=90),
    Part("quickstart", 40, "the README's first run reaches its accuracy", quickstart, most=120),
    Part("step_gpt2_50304", 50, "the same of a vocabulary that PyTorch finds easy",
         speed.step("bf16", 8, ["compile"], rounds=1,
                    model=[*speed.GPT2_OF_ANY_VOCABULARY, "--vocabulary", 50304]), most=120),
    Part("codecs_in_pytorch", 60, "codecs against PyTorch", speed.codecs_in_pytorch, most=150),
    Part("paper1", 120, "arXiv 2401.07788 on CIFAR-10", paper1, most=1e9, needs_data=True),
]

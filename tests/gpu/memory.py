"""The part of run.py about blocks whose tensors are put away until their backward passes."""
import concurrent.futures
import http.client
import json
import os
import statistics
import time
import urllib.request

from results import figure
from session import Failed

LANGUAGE = "experiments/shakespeare.yaml"
# Three blocks of GPT-2 (124M), of which gpipe has 16 microbatches in flight.
STAGE = {"device": "cuda", "model.layers": 3, "model.heads": 12, "model.width": 768,
         "data.context": 512, "data.batch_size": 16, "data.windows": 16 * 12, "data.test_limit": 1,
         "pipeline.cuts": "none", "pipeline.microbatches": 16, "pipeline.schedule": "gpipe",
         "evaluation.every": 0, "epochs": 1}
TINY_STAGE = {"model.width": 24, "data.context": 8, "data.batch_size": 4, "data.windows": 16,
              "pipeline.microbatches": 4, "pipeline.threads": 1}
WAYS = {
    "all kept": {},
    "swap: host": {"pipeline.swap": "host"},
    "recompute: blocks": {"pipeline.recompute": "blocks"},
    "stash, 4 bits": {"pipeline.stash": "{codec: uniform, bits: 4, scope: group, group: 64}"},
}
EXACT = ("all kept", "swap: host", "recompute: blocks")
WARM_UP = 3  # steps: memory is allocated, passes are recorded
PEAK = "thinwire_stage_memory_peak_bytes{"


def peaks(folder):
    """The most memory that each stage of a run says now that it has taken; none before and behind
    the run."""
    found = {}
    try:
        with open(os.path.join(folder, "targets.json"), encoding="utf-8") as file:
            groups = json.load(file)
        for address in (address for group in groups if group["labels"].get("job") == "stage"
                        for address in group["targets"]):
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as page:
                lines = page.read().decode().splitlines()
            found.update((int(line.split('stage="')[1].split('"')[0]), float(line.split()[-1]))
                         for line in lines if line.startswith(PEAK))
    except (OSError, http.client.HTTPException, json.JSONDecodeError):
        pass
    return found


def watched(session, name, settings):
    """A run, and the most memory that its stage has taken."""
    most = 0
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        training = pool.submit(session.train, name, LANGUAGE, settings)
        while not training.done():
            most = max([most, *peaks(os.path.join(session.work, name)).values()])
            time.sleep(0.02)
    return training.result(), most


def put_away(session, _):
    """A step and the memory of a stage that keeps all, swaps to its host, recomputes, or stashes."""
    runs, memory, seconds = {}, {}, {}
    for number, (way, settings) in enumerate(WAYS.items()):
        sizes = TINY_STAGE if session.rehearse else {"precision": "bf16"}
        runs[way], memory[way] = watched(session, f"memory-{number}", {**STAGE, **sizes, **settings})
        if memory[way] == 0:
            raise Failed(f"{way}: no page of the stage's metrics was read while it trained")
        seconds[way] = statistics.median(step["seconds"] for step in runs[way].steps[WARM_UP:])
    plain = "all kept"
    for way in EXACT:
        if runs[way].losses() != runs[plain].losses():
            raise Failed(f"{way}: losses are {runs[way].losses()}, want {runs[plain].losses()}")
    figures = [figure("all kept: a step", 1e3 * seconds[plain], "ms"),
               figure("all kept: memory", memory[plain] / 1e6, "MB")]
    for way in list(WAYS)[1:]:
        figures.append(figure(f"{way}: memory, of all kept", memory[way] / memory[plain],
                              at_most=0.5 if way == "swap: host" else None))
        figures.append(figure(f"{way}: a step, of all kept", seconds[way] / seconds[plain],
                              at_most=1.15 if way == "swap: host" else None))
    return {"figures": figures}

#!/usr/bin/env python3
"""Every alert but ThinwireReplicasDrifting fires in a staged fault, with real processes and a real
Prometheus.

Each fault has four stage servers, a coordinator and a Prometheus of its own, and durations
shortened to seconds (SHORTENED in prometheus_process.py). Takes about five minutes.

usage: alerts_faults.py THINWIRE STAGE_SERVER DEPLOY [FAULT]...
"""

import pathlib
import signal
import sys
import tempfile
import time
from typing import Callable, Dict, List, NamedTuple

from link_proxy import LinkProxy
from prometheus_process import prometheus_of_files, wait_for
from stage_servers import running, stage_servers

EXPERIMENT = """
name: fault
model: {name: resnet8, width: 8}
data: {name: digits, batch_size: 64}
pipeline: {cuts: [layer1, layer2, layer3], microbatches: 2, threads: 1, deadline_seconds: 600}
compression: {activations: {codec: topk, ratio: 0.5}, gradients: {codec: uniform, bits: 8}}
optimizer: {name: sgd, lr: 0.02, momentum: 0.9}
epochs: 1000000
metrics: {error_every: 5}
device: cpu
"""
# Hardly computes, and sends much: what crosses in evaluations without codecs shows a fast link.
THIN_MODEL = """{name: custom, blocks: [
  {name: layer1, layers: [{kind: conv, name: conv, out: 64, kernel: 1}]},
  {name: layer2, layers: [{kind: relu}]},
  {name: layer3, layers: [{kind: relu}]},
  {name: head, layers: [{kind: global_avg_pool}, {kind: linear, name: fc, out: 10}]}]}"""
PATIENCE_SECONDS = 400


class Scene(NamedTuple):
    """What a fault may act upon."""

    coordinator: object  # processes
    servers: List
    link: LinkProxy  # in front of stage 2


class Fault(NamedTuple):
    """`overrides` of the experiment, an `act` in the run, and the alerts that must follow."""

    alerts: List[str]
    overrides: Dict[str, str] = {}
    act: Callable[[Scene], None] = lambda scene: None


FAULTS = {
    "a stage is killed": Fault(
        ["ThinwireStageDown"], act=lambda scene: scene.servers[2].process.kill()),
    "a stage is stopped": Fault(
        ["ThinwireStageDown"],
        act=lambda scene: scene.servers[1].process.send_signal(signal.SIGSTOP)),
    "the learning rate is absurd": Fault(
        ["ThinwireLossNotFinite"], {"optimizer.lr": "1e30"}),
    "the learning rate is absurd, no codec objects": Fault(
        ["ThinwireLossNotFinite"],
        {"optimizer.lr": "1e30", "compression.activations": "{codec: none}"}),
    "a link stalls": Fault(
        ["ThinwireLinkStalled", "ThinwireRunStuck"], act=lambda scene: scene.link.stall()),
    "the coordinator is stopped": Fault(
        ["ThinwireRunStuck"], act=lambda scene: scene.coordinator.send_signal(signal.SIGSTOP)),
    "the coordinator is killed": Fault(
        ["ThinwireRunStuck"], act=lambda scene: scene.coordinator.kill()),
    "a codec gets far stronger": Fault(
        ["ThinwireErrorDrifting"],
        {"compression.activations.level": "{by_epoch: {200: 0.02}}", "data.limit": "640",
         "data.test_limit": "64"}),
    # Evaluation uses the last level from the start.
    "evaluation is compressed far more": Fault(
        ["ThinwireAccuracyGap"],
        {"compression.activations.level": "{by_epoch: {1000000: 0.02}}"}),
    "a slow codec on a fast link": Fault(
        ["ThinwireCodecSlow"],
        {"model": THIN_MODEL, "compression.activations": "{codec: low_rank, rank: 48}",
         "data.limit": "192", "evaluation.compressed": "false"}),
}


def staged(fault, programs, deploy, work):
    """The alerts that fire once those of the fault do, and after how many seconds."""
    thinwire, stage_server = programs
    experiment = work / "fault.yaml"
    experiment.write_text(EXPERIMENT, encoding="utf-8")
    flags = [part for path, value in fault.overrides.items()
             for part in ("--set", f"{path}={value}")]
    with prometheus_of_files(deploy / "prometheus", work / "prometheus", True) as prometheus, \
            stage_servers(stage_server, 4, work) as servers:
        link = LinkProxy(servers[2].address)
        addresses = [server.address for server in servers]
        addresses[2] = link.address
        with running(thinwire, experiment, work / "run", work / "prometheus" / "targets",
                     "--stages", ",".join(addresses), "--metrics_linger", "60", *flags) as run:
            wait_for(f"scrape of the run: {(work / 'run.log').read_text(encoding='utf-8')}",
                     lambda: prometheus.value("thinwire_step"))
            time.sleep(3)
            if prometheus.firing() and fault.act is not Fault._field_defaults["act"]:
                raise SystemExit(f"FAILED: fires before the fault: {prometheus.firing()}")
            began = time.monotonic()
            fault.act(Scene(run, servers, link))
            seen = set()

            def fired():
                seen.update(labels["alertname"] for labels in prometheus.firing())
                return seen >= set(fault.alerts)

            wait_for(f"{' and '.join(fault.alerts)}", fired, PATIENCE_SECONDS)
            link.close()
            return seen, time.monotonic() - began


def main():
    """Stages all, or those that are named."""
    thinwire, stage_server, deploy, *names = sys.argv[1:]
    unknown = set(names) - FAULTS.keys()
    if unknown:
        raise SystemExit(f"alerts_faults.py: no faults {sorted(unknown)}, want {list(FAULTS)}")
    failures = 0
    for name in names or FAULTS:
        with tempfile.TemporaryDirectory() as work:
            try:
                seen, seconds = staged(FAULTS[name], (thinwire, stage_server),
                                       pathlib.Path(deploy), pathlib.Path(work))
            except SystemExit as error:
                print(f"{name}: {error}", flush=True)
                failures += 1
                continue
        others = sorted(seen - set(FAULTS[name].alerts))
        print(f"ok: {name}: {' and '.join(FAULTS[name].alerts)} after {seconds:.0f} s"
              + (f"; so does {', '.join(others)}" if others else ""), flush=True)
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

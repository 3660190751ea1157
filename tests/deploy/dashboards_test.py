#!/usr/bin/env python3
"""Dashboards and rules against a real run, scraped by a real Prometheus each second.

Two pipelines of two stage servers and a coordinator train a small network. Every expression of every dashboard, but those
of open membership, and every recording rule must return data, every alert's expression be understood, and no alert fire: in
the run, in its evaluations and after its end, although durations are shortened to seconds.

usage: dashboards_test.py THINWIRE STAGE_SERVER DEPLOY
"""

import json
import math
import pathlib
import re
import sys
import tempfile
import time

from prometheus_process import prometheus_of_files, wait_for
from stage_servers import running, stage_servers

# With feedback, so that there are residuals, and with epochs enough for several scrapes of the stages,
# which Prometheus finds some seconds after the run has begun. It learns slowly: of a network that fits
# its data the gradients of one message are many times another's, and so are residuals beside them.
# With replicas and local steps, which two pipelines carry, so that each has the other to wait for.
EXPERIMENT = """
name: watched
model: {name: resnet8, width: 8}
data: {name: digits, batch_size: 64}
pipeline: {cuts: [layer2], microbatches: 2, threads: 1}
compression:
  activations: {codec: uniform, bits: 4}
  gradients: {codec: topk, ratio: 0.2, feedback: ef}
replicas:
  count: 2
  sync: local
  every: 4
  outer: {name: sgd}
  contributions: {codec: uniform, bits: 8, feedback: ef}
  average: {codec: uniform, bits: 8}
optimizer: {name: sgd, lr: 0.002, momentum: 0}
epochs: 72
metrics: {error_every: 5}
device: cpu
"""
# Series of runs whose membership is open, which those with local steps are not.
OPEN_MEMBERSHIP = ("thinwire_member", "thinwire_repeated_steps_total")
PATIENCE_SECONDS = 120
LINGER_SECONDS = 4
# After the end; more than the longest shortened `for:`.
AFTERWARDS_SECONDS = 10
SCREEN_COLUMNS, SCREEN_ROWS = 24, 28  # of 1920 x 1080, in Grafana's grid


def dashboards(deploy):
    """Name -> content of each."""
    paths = sorted((deploy / "grafana" / "dashboards").glob("*.json"))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def layout_faults(board):
    """A line for each panel that is not as a reader wants it."""
    taken = set()
    for panel in board["panels"]:
        title, place = panel["title"], panel["gridPos"]
        if "Bad: " not in panel["description"]:
            yield f"{title}: the description does not say what is bad"
        if not panel["fieldConfig"]["defaults"].get("unit"):
            yield f"{title}: no unit"
        if place["x"] + place["w"] > SCREEN_COLUMNS or place["y"] + place["h"] > SCREEN_ROWS:
            yield f"{title}: {place} is beyond the screen"
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}
        if taken & cells:
            yield f"{title}: lies on another panel"
        taken |= cells


def expressions(board):
    """(where, PromQL) of panels and variables."""
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield f'{panel["title"]} {target["refId"]}', target["expr"]
    for variable in board["templating"]["list"]:
        query = variable.get("query")
        if variable["type"] == "query":
            name = f'variable {variable["name"]}'
            asked = re.fullmatch(r"query_result\((.*)\)|label_values\((.*), \w+\)", query)
            yield name, asked[1] or asked[2]


def substituted(expr, run):
    """As Grafana asks it."""
    for name, value in {"$run": run, "$boundary": ".*", "$direction": "activation|gradient",
                        "$__rate_interval": "4s", "$__range": "5m"}.items():
        expr = expr.replace(name, value)
    return expr


def has_data(prometheus, expr, start, end):
    """Whether a panel has something to draw."""
    return any(math.isfinite(value) for _, points in prometheus.series(expr, start, end)
               for _, value in points)


def trained(thinwire, servers, work, prometheus):
    """Trains; the run's id and when it began and ended."""
    experiment = work / "watched.yaml"
    experiment.write_text(EXPERIMENT, encoding="utf-8")
    stages = ",".join(server.address for server in servers)
    start = time.time()
    with running(thinwire, experiment, work / "run", work / "prometheus" / "targets",
                 "--stages", stages, "--carriers", "2", "--metrics_linger", str(LINGER_SECONDS)) as run:
        found = wait_for("step", lambda: prometheus.value("thinwire_step > 0"), PATIENCE_SECONDS)
        if run.wait(PATIENCE_SECONDS) != 0:
            raise SystemExit("FAILED: " + (work / "run.log").read_text(encoding="utf-8"))
        end = time.time()
        # The file is still there: its coordinator is down, and so that is no stage's fault.
        time.sleep(AFTERWARDS_SECONDS)
    return found[0][0]["run"], start, end


def faults(prometheus, deploy, run, start, end):
    """A line for everything that is not as it should be."""
    asked = 0
    for name, board in dashboards(deploy).items():
        yield from (f"dashboard {name}, {fault}" for fault in layout_faults(board))
        for where, expr in expressions(board):
            asked += 1
            if any(name in expr for name in OPEN_MEMBERSHIP):
                continue
            if not has_data(prometheus, substituted(expr, run), start, end):
                yield f"dashboard {name}, {where}: no data of {expr}"
    for group in prometheus.get("rules")["groups"]:
        for rule in group["rules"]:
            asked += 1
            if rule["health"] != "ok":
                yield f'{rule["name"]}: {rule.get("lastError", rule["health"])}'
            if rule["type"] == "recording":
                labels = ",".join(f'{name}="{value}"'
                                  for name, value in rule.get("labels", {}).items())
                if not has_data(prometheus, f'{rule["name"]}{{{labels}}}', start, end):
                    yield f'recording rule {rule["name"]} {labels}: no data'
    firing = prometheus.series('ALERTS{alertstate="firing"}', start, time.time())
    yield from (f"fires in a healthy run: {labels}" for labels, _ in firing)
    print(f"{asked} expressions over {end - start:.0f} s of run {run}")


def main():
    """Trains, then asks."""
    thinwire, stage_server, deploy = sys.argv[1:]
    deploy = pathlib.Path(deploy)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        with prometheus_of_files(deploy / "prometheus", work / "prometheus",
                                 shortened=True) as prometheus, \
                stage_servers(stage_server, 4, work) as servers:
            found = list(faults(prometheus, deploy,
                                *trained(thinwire, servers, work, prometheus)))
    for fault in found:
        print("FAILED:", fault)
    print(f"{len(found)} failures")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

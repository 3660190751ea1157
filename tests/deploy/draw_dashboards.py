#!/usr/bin/env python3
"""Trains the quickstart's experiment for a minute or so and draws the dashboards of that run; then
the same with replicas, and draws theirs.

usage: draw_dashboards.py THINWIRE STAGE_SERVER REPOSITORY     writes docs/dashboards/*.svg
"""

import pathlib
import subprocess
import sys
import tempfile
import time

from prometheus_process import prometheus_of_files, wait_for
from stage_servers import running, stage_servers

# Longer than the quickstart, and with feedback, so that there are residuals to be seen.
FLAGS = ["--set", "epochs=60", "--set", "compression.gradients.feedback=ef",
         "--set", "compression.activations.feedback=ef", "--set", "metrics.error_every=10"]
REPLICAS = ("{count: 2, sync: local, every: 8, contributions: {codec: ecsq, rate: 2, feedback: ef}, "
            "average: {codec: uniform, bits: 8}}")
# The flags of each run, on four stage servers, and the dashboards that it shows.
RUNS = [
    (FLAGS, ["run", "compression", "pipeline"]),
    ([*FLAGS, "--set", "pipeline.cuts=[layer2]", "--set", f"replicas={REPLICAS}", "--carriers", "2"],
     ["replicas"]),
]


def drawn(programs, repository, work, flags, dashboards):
    """Trains once and draws."""
    thinwire, stage_server = programs
    deploy = repository / "deploy"
    with prometheus_of_files(deploy / "prometheus", work / "prometheus",
                             shortened=False) as prometheus, \
            stage_servers(stage_server, 4, work) as servers:
        stages = ",".join(server.address for server in servers)
        with running(thinwire, repository / "experiments" / "quickstart.yaml", work / "run",
                     work / "prometheus" / "targets", "--stages", stages,
                     "--metrics_linger", "3", *flags) as run:
            found = wait_for("step", lambda: prometheus.value("thinwire_step > 0"), 60)
            start = time.time()
            if run.wait() != 0:
                raise SystemExit("FAILED: " + (work / "run.log").read_text(encoding="utf-8"))
            end = time.time()
        subprocess.run([str(deploy / "grafana" / "draw.py"), f"http://{prometheus.address}",
                        found[0][0]["run"], f"{start:.0f}", f"{end:.0f}",
                        str(repository / "docs" / "dashboards"), *dashboards], check=True)


def main():
    """Each run in a folder of its own."""
    thinwire, stage_server, repository = sys.argv[1:]
    for flags, dashboards in RUNS:
        with tempfile.TemporaryDirectory() as work:
            drawn((thinwire, stage_server), pathlib.Path(repository), pathlib.Path(work), flags,
                  dashboards)


if __name__ == "__main__":
    main()

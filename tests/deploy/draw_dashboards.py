#!/usr/bin/env python3
"""Trains the quickstart's experiment for a minute or so and draws the dashboards of that run.

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


def main():
    """Trains, then draws."""
    thinwire, stage_server, repository = sys.argv[1:]
    repository = pathlib.Path(repository)
    deploy = repository / "deploy"
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        with prometheus_of_files(deploy / "prometheus", work / "prometheus",
                                 shortened=False) as prometheus, \
                stage_servers(stage_server, 4, work) as servers:
            stages = ",".join(server.address for server in servers)
            with running(thinwire, repository / "experiments" / "quickstart.yaml", work / "run",
                         work / "prometheus" / "targets", "--stages", stages,
                         "--metrics_linger", "3", *FLAGS) as run:
                found = wait_for("step", lambda: prometheus.value("thinwire_step > 0"), 60)
                start = time.time()
                if run.wait() != 0:
                    raise SystemExit("FAILED: " + (work / "run.log").read_text(encoding="utf-8"))
                end = time.time()
            subprocess.run([str(deploy / "grafana" / "draw.py"), f"http://{prometheus.address}",
                            found[0][0]["run"], f"{start:.0f}", f"{end:.0f}",
                            str(repository / "docs" / "dashboards")], check=True)


if __name__ == "__main__":
    main()

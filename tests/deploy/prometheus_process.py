"""A real Prometheus in a folder of its own: started, asked, ended."""

import contextlib
import json
import pathlib
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

RULES = ("recording.yml", "alerts.yml")

# Durations of the rules as tests that cannot wait for minutes take them; with a scrape each second.
# Only windows, offsets and `for:` are replaced, names of series and all else stay.
SHORTENED = {"15s": "2s", "20s": "4s", "30s": "4s", "5m": "8s", "10m": "16s", "15m": "16s"}
DURATION = re.compile(r"(?<=\[)\w+(?=\])|(?<=offset )\w+|(?<=for: )\w+")


def copy_rules(rules, to, shortened):
    """Copies the folder of rules, with durations shortened if so asked."""
    to.mkdir()
    for name in RULES:
        text = (rules / name).read_text(encoding="utf-8")
        if shortened:
            text = DURATION.sub(lambda match: SHORTENED[match[0]], text)
        (to / name).write_text(text, encoding="utf-8")


def free_port():
    """One that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(what, condition, seconds=30):
    """The first true answer of `condition`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        answer = condition()
        if answer:
            return answer
        time.sleep(0.1)
    raise SystemExit(f"FAILED: no {what} within {seconds} s")


class Prometheus:
    """One that runs. Its configuration is FOLDER/prometheus.yml."""

    def __init__(self, folder):
        self.address = f"127.0.0.1:{free_port()}"
        self._log = open(folder / "prometheus.log", "w", encoding="utf-8")
        self._process = subprocess.Popen(
            ["prometheus", "--config.file", str(folder / "prometheus.yml"),
             "--storage.tsdb.path", str(folder / "tsdb"), "--web.listen-address", self.address],
            stdout=self._log, stderr=subprocess.STDOUT)
        wait_for("Prometheus", self._ready)

    def _ready(self):
        if self._process.poll() is not None:
            log = pathlib.Path(self._log.name).read_text(encoding="utf-8")
            raise SystemExit(f"FAILED: Prometheus ended: {log[-2000:]}")
        try:
            with urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=5):
                return True
        except OSError:
            return False

    def get(self, path, **parameters):
        """`data` of an answer of /api/v1; SystemExit where Prometheus refuses the question."""
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise SystemExit(f"FAILED: {parameters}: {error.read().decode('utf-8')}") from error

    def series(self, expr, start, end, step=1):
        """What a panel draws of `expr`: a list of (labels, [(time, value), ...])."""
        result = self.get("query_range", query=expr, start=start, end=end, step=step)["result"]
        return [(one["metric"], [(at, float(value)) for at, value in one["values"]])
                for one in result]

    def value(self, expr):
        """The labels of each series that `expr` has now, and its value."""
        result = self.get("query", query=expr)["result"]
        return [(one["metric"], float(one["value"][1])) for one in result]

    def firing(self):
        """The labels of the alerts that fire now."""
        return [alert["labels"] for alert in self.get("alerts")["alerts"]
                if alert["state"] == "firing"]

    def stop(self):
        """Ends it."""
        self._process.terminate()
        self._process.wait()
        self._log.close()


@contextlib.contextmanager
def prometheus_of_files(deploy, folder, shortened):
    """One with deploy/prometheus/files.yml as it is; targets go to FOLDER/targets."""
    folder.mkdir()
    (folder / "targets").mkdir()
    shutil.copy(deploy / "files.yml", folder / "prometheus.yml")
    copy_rules(deploy / "rules", folder / "rules", shortened)
    prometheus = Prometheus(folder)
    try:
        yield prometheus
    finally:
        prometheus.stop()

#!/usr/bin/env python3
"""Holds the table of events in docs/logs.md to what stage servers write: events, levels and keys.

usage: logs_page_test.py THINWIRE STAGE_SERVER LOGS_MD
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

EXPERIMENT = """
model: {name: resnet8, width: 4}
data: {name: digits, batch_size: 50, limit: 100, test_limit: 50}
pipeline: {cuts: [layer1], threads: 1}
optimizer: {name: sgd, lr: 0.05}
epochs: 1
"""
COMMON = ["time", "level", "event", "run", "stage", "message"]
# These want the 15 s of a lease, gRPC to complain, more connections than there may be, a GPU that locks no
# pages, a GPU without CUPTI, a run that servers join (members_test.sh); the page's test is not for them.
NOT_STAGED = {"lease_expired", "grpc", "connection", "link", "trace", "joined", "join_ended", "drain",
              "state"}
PATIENCE_SECONDS = 60


def documented(page):
    """Event -> (levels, keys) of the page's table."""
    rows = {}
    for line in page.read_text(encoding="utf-8").splitlines():
        row = re.match(r"\| `(\w+)` \| ([a-z, ]+) \|([^|]*)\|([^|]*)\|$", line)
        if row:
            keys = re.sub(r": `name`, `activations`, `gradients` of each", "", row[4])
            levels = set(row[2].split(", ")) | set(re.findall(r"(critical):", row[3]))
            rows[row[1]] = (levels, set(re.findall(r"`(\w+)`", keys)))
    return rows


class Servers:
    """Stage servers with logs in JSON, in a folder."""

    def __init__(self, program, folder, count):
        self.processes, self.addresses, self.logs = [], [], []
        self.token = folder / "token"
        self.token.write_text("what all of them know\n", encoding="utf-8")
        for i in range(count):
            ready, told = os.pipe()
            self.logs.append(folder / f"{i}.log")
            with open(self.logs[-1], "wb") as stderr:
                self.processes.append(subprocess.Popen(
                    [program, "--listen", "127.0.0.1:0", "--log_format", "json",
                     "--token_file", self.token, "--ready_fd", str(told)],
                    stderr=stderr, pass_fds=[told]))
            os.close(told)
            with os.fdopen(ready, encoding="utf-8") as line:
                self.addresses.append(json.loads(line.readline())["listen"])

    def end(self):
        """Ends them; every line of their logs, as a dictionary."""
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(PATIENCE_SECONDS)
        return [json.loads(line) for log in self.logs for line in log.read_text("utf-8").splitlines()]


def wait_until(condition, what):
    """Returns when it holds."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"FAILED: {what} within {PATIENCE_SECONDS} s")
        time.sleep(0.05)


def wait_until_training(log):
    """Returns in the midst of an epoch, by the log."""
    wait_until(lambda: '"epoch_begin"' in (log.read_text("utf-8").splitlines() or [""])[-1],
               f"no epoch begins in {log}")


def wait_until_stopped(logs):
    """Returns when the first stage that noticed says so; its neighbours may say that it is gone."""
    wait_until(lambda: any('"stopped"' in log.read_text("utf-8") for log in logs),
               "no stage is stopped")


def stage_every_event(thinwire, servers, folder):
    """A run that is done, one without the token, one that fails, one that is interrupted, one that is refused
    meanwhile, and one that is killed."""
    experiment = folder / "page.yaml"
    experiment.write_text(EXPERIMENT, encoding="utf-8")

    def run(out, *flags, token=("--token_file", servers.token)):
        return subprocess.Popen(
            [thinwire, "run", experiment, "--quiet", "--stages", ",".join(servers.addresses),
             "--out", folder / out, *token, *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    codes = [run("done").wait(PATIENCE_SECONDS),
             run("stranger", token=()).wait(PATIENCE_SECONDS),
             run("failed", "--set", "optimizer.lr=1e30").wait(PATIENCE_SECONDS)]
    slow = ["--set", "epochs=1000", "--set", "data.limit=0", "--set", "model.width=64"]  # epochs take seconds
    with run("long", *slow) as holder:
        wait_until_training(servers.logs[0])
        codes.append(run("refused").wait(PATIENCE_SECONDS))
        wait_until_training(servers.logs[0])
        holder.send_signal(signal.SIGINT)
        codes.append(holder.wait(PATIENCE_SECONDS))
    with run("killed", *slow) as killed:
        wait_until_training(servers.logs[0])
        killed.kill()
        codes.append(killed.wait(PATIENCE_SECONDS))
    wait_until_stopped(servers.logs)
    if codes != [0, 1, 1, 1, 130, -signal.SIGKILL]:
        raise SystemExit(f"FAILED: the runs ended with {codes}")


def differences(rows, lines):
    """A line for everything in which the page and the logs are not alike."""
    seen = {}
    for line in lines:
        event = line["event"]
        if event not in rows:
            yield f"{event} is written and does not stand in logs.md"
            continue
        levels, keys = rows[event]
        if line["level"] not in levels:
            yield f"{event} is written as {line['level']}, logs.md says {sorted(levels)}"
        common = [key for key in COMMON if key in line]
        if list(line)[:len(common)] != common:
            yield f"{event} begins with the keys {list(line)[:len(common)]}, want {common}"
        for key in set(line) - set(COMMON) - keys:
            yield f"{event} has the key {key}, which logs.md does not name"
        seen.setdefault(event, set()).update(line)
    for event in sorted(rows.keys() - NOT_STAGED):
        if event not in seen:
            yield f"{event} stands in logs.md and is not written"
            continue
        for key in sorted(rows[event][1] - seen[event]):
            yield f"{event} has no key {key}, which logs.md names"


def main():
    """Stages the events and compares."""
    thinwire, stage_server, page = sys.argv[1:]
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        servers = Servers(stage_server, folder, 2)
        try:
            stage_every_event(thinwire, servers, folder)
        finally:
            lines = servers.end()
    faults = sorted(set(differences(documented(pathlib.Path(page)), lines)))
    for fault in faults:
        print("FAILED:", fault)
    print(f"{len(lines)} lines, {len(faults)} failures")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

"""Stage servers, and runs on them, as processes of the test."""

import contextlib
import json
import os
import signal
import subprocess

PATIENCE_SECONDS = 60


class StageServer:
    """One that serves; `process`, `address` of gRPC."""

    def __init__(self, binary, log):
        read, write = os.pipe()
        environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
        with open(log, "w", encoding="utf-8") as file:
            self.process = subprocess.Popen(  # it ends with this process: its stdin does
                [binary, "--ready_fd", str(write), "--lifeline_fd", "0"], stdin=subprocess.PIPE,
                stderr=file, pass_fds=[write], env=environment)
        os.close(write)
        with os.fdopen(read) as ready:
            line = ready.readline()
        if not line:
            raise SystemExit(f"FAILED: {binary} did not start, see {log}")
        self.address = json.loads(line)["listen"]

    def end(self):
        """Also one that is stopped."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
        self.process.stdin.close()
        self.process.wait()


@contextlib.contextmanager
def stage_servers(binary, count, folder):
    """`count` stage servers, whose logs go to `folder`."""
    servers = []
    try:
        for i in range(count):
            servers.append(StageServer(binary, folder / f"stage-{i}.log"))
        yield servers
    finally:
        for server in servers:
            server.end()


@contextlib.contextmanager
def running(thinwire, experiment, out, targets, *flags):
    """`thinwire run` as a process, with its targets.json linked in `targets`, as users link it."""
    link = targets / f"{out.name}.json"
    link.symlink_to(out / "targets.json")
    with open(f"{out}.log", "w", encoding="utf-8") as log:
        run = subprocess.Popen([thinwire, "run", str(experiment), "--out", str(out), *flags],
                               stdout=log, stderr=subprocess.STDOUT)
    try:
        yield run
    finally:
        if run.poll() is None:
            run.send_signal(signal.SIGCONT)
            run.send_signal(signal.SIGINT)
        try:
            run.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            run.kill()
            run.wait()
        link.unlink()

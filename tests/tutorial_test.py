#!/usr/bin/env python3
"""Runs a tutorial's commands, line by line, and holds what they print against what it shows; then what it says of them.

usage: tutorial_test.py THINWIRE STAGE_SERVER QUICKSTART DOCUMENT [MODEL]...    models stand in models/

The blocks between ```console and ``` are one session of bash in a folder of its own. A line that begins with "$ " is a
command; lines that begin with "> " belong to it. The lines behind it are what it prints, on both streams:

- a line of … alone stands for any lines, a … in a line for any text;
- every number may be another, and so may the eight digits of a run's name; a minus may come or go;
- so many blanks as there are may be more or fewer;
- where nothing is shown, nothing is printed.

A command must end with 0 within COMMAND_SECONDS. What the text claims of numbers is in tutorial_claims.py.
"""
import os
import pathlib
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

import tutorial_claims

COMMAND_SECONDS = 240
END = "--- end of a command"
NUMBER = r"[-+]?\d[\d,.]*(?:e[-+]?\d+)?"
RUN = r"-[0-9a-f]{8}\b"
VARYING = re.compile(rf"(?P<run>{RUN})|(?P<number>{NUMBER})|(?P<any>…)|(?P<blank>\s+)")
STANDS_FOR = {"run": RUN, "number": NUMBER, "any": ".*", "blank": r"\s+"}


def commands_of(document):
    """(number of its line, command, lines shown behind it) of each command."""
    found, is_inside = [], False
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("```"):
            is_inside = line == "```console"
        elif is_inside and line.startswith("$ "):
            found.append((number, [line[2:]], []))
        elif is_inside and line.startswith("> ") and not found[-1][2]:
            found[-1][1].append(line[2:])
        elif is_inside:
            found[-1][2].append(line)
    return [(number, "\n".join(command), shown) for number, command, shown in found]


def pattern_of(line):
    """What a shown line stands for."""
    pattern, at = "", 0
    for match in VARYING.finditer(line):
        pattern += re.escape(line[at:match.start()])
        pattern += STANDS_FOR[match.lastgroup]
        at = match.end()
    return re.compile(pattern + re.escape(line[at:]) + r"\s*")


def mismatch(shown, printed):
    """The shown line that is not there, or what was printed and is not shown; None if all is well."""
    at, may_skip = 0, False
    for line in shown:
        if line.strip() == "…":
            may_skip = True
            continue
        pattern = pattern_of(line)
        end = len(printed) if may_skip else min(at + 1, len(printed))
        place = next((i for i in range(at, end) if pattern.fullmatch(printed[i])), None)
        if place is None:
            return f"'{line}' is not in:"
        at, may_skip = place + 1, False
    return None if may_skip or at == len(printed) else f"'{printed[at]}' is not shown, in:"


class Session:
    """A bash that runs one command after the other, in a folder where the programs are on the PATH."""

    def __init__(self, folder, thinwire, stage_server, quickstart, models):
        (folder / "bin").mkdir()
        for program in (thinwire, stage_server):
            (folder / "bin" / program.name).symlink_to(program.resolve())
        (folder / "experiments").mkdir()
        (folder / "experiments" / quickstart.name).symlink_to(quickstart.resolve())
        (folder / "models").mkdir()
        for model in models:
            (folder / "models" / model.name).symlink_to(model.resolve())
        path = f"{folder}/bin:{os.environ['PATH']}"
        self._bash = subprocess.Popen(["bash"], cwd=folder, env=dict(os.environ, PATH=path), text=True, bufsize=1,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      start_new_session=True)
        self._lines = queue.Queue()
        threading.Thread(target=lambda: [self._lines.put(line) for line in self._bash.stdout], daemon=True).start()

    def run(self, command):
        """Its exit code, None if it has not ended in time, and what it printed."""
        self._bash.stdin.write(f"{command}\necho \"{END} $?\"\n")
        end, printed = time.monotonic() + COMMAND_SECONDS, []
        while True:
            try:
                line = self._lines.get(timeout=max(0, end - time.monotonic())).rstrip()
            except queue.Empty:
                return None, printed
            if line.startswith(END):
                return int(line.split()[-1]), printed
            printed.append(line)

    def close(self):
        """Ends whatever the tutorial has left."""
        os.killpg(self._bash.pid, signal.SIGKILL)
        self._bash.wait()


def main():
    """The number of commands that did not do as shown, and of claims that do not hold."""
    thinwire, stage_server, quickstart, document, *models = map(pathlib.Path, sys.argv[1:])
    failures, told = 0, []
    with tempfile.TemporaryDirectory() as folder:
        session = Session(pathlib.Path(folder), thinwire, stage_server, quickstart, models)
        try:
            for number, command, shown in commands_of(document):
                since = time.monotonic()
                code, printed = session.run(command)
                told.append((command, printed))
                wrong = mismatch(shown, printed)
                if code != 0:
                    wrong = f"exit code {code}, want 0:" if code is not None else f"no end after {COMMAND_SECONDS} s:"
                failures += wrong is not None
                print(f"{'FAILED' if wrong else 'ok'}: {document}:{number}: {command.splitlines()[0]} "
                      f"({time.monotonic() - since:.1f} s)", flush=True)
                if wrong:
                    print("\n".join([f"  {wrong}", *(f"    {line}" for line in printed)]), flush=True)
                if code is None:
                    return failures
            for claim, holds in tutorial_claims.check(document, tutorial_claims.Told(pathlib.Path(folder), told)):
                failures += not holds
                print(f"{'ok' if holds else 'FAILED'}: {document}: {claim}", flush=True)
        finally:
            session.close()
    return failures


if __name__ == "__main__":
    sys.exit(main())

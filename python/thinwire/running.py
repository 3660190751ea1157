"""Starts runs by the program thinwire."""

import json
import os
import pathlib
import shutil
import subprocess
from typing import Mapping, Optional

KEPT_LINES = 20


class RunError(RuntimeError):
    """The program refused the run, or the run failed; the message has its last words."""

    def __init__(self, code: int, words: str):
        super().__init__(f"thinwire exited with {code}: {words}")
        self.code = code  # 1: the run failed, 2: wrong usage or experiment, 130: interrupted


def run(experiment, set: Optional[Mapping[str, object]] = None, out=None, *, overwrite: bool = False,
        resume: bool = False, binary=None, arguments=()) -> pathlib.Path:
    """Trains `experiment`, the path of a file, and returns the folder of its results, `out`.

    `set`: fields of the experiment, {"epochs": 2, "compression.activations": {"codec": "none"}}.
    `resume`: goes on with the run in `out`, if there is one. `binary`: the program; without it
    $THINWIRE, else the one on the path. `arguments`: more of the program's own. Raises RunError.
    """
    out = pathlib.Path(out if out is not None else pathlib.Path("runs") / pathlib.Path(experiment).stem)
    command = [_program(binary), "run", os.fspath(experiment)]
    command += ["--resume", str(out)] if resume else ["--out", str(out)]
    command += ["--overwrite"] if overwrite else []
    for field, value in (set or {}).items():
        # JSON is YAML: texts stay texts, numbers numbers.
        command += ["--set", f"{field}={json.dumps(value)}"]
    done = subprocess.run([*command, *map(str, arguments)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise RunError(done.returncode, "\n".join(done.stdout.splitlines()[-KEPT_LINES:]))
    return out


def _program(binary) -> str:
    program = os.fspath(binary) if binary else os.environ.get("THINWIRE") or shutil.which("thinwire")
    if not program:
        raise FileNotFoundError("no program thinwire: give binary=, set $THINWIRE, or put it on the path")
    return program

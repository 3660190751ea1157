#!/usr/bin/env python3
"""That a measurement is in the file as soon as it is done, ours before PyTorch's."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "vs_pytorch.py")
# The third thing to be measured is PyTorch, started by a python3 that ends what started it.
PYTHON = """#!/bin/sh
case "$*" in *torch_step.py*) kill -KILL $PPID;; esac
exec {python} "$@"
"""
BENCH = """#!/bin/sh
case "$*" in *--deterministic*) echo 'odd' >&2; echo 'worse' >&2; exit 3;; esac
echo '{"images_per_second": 5, "step_seconds": 2}'
"""


class VsPytorchTest(unittest.TestCase):
    def test_what_was_measured_survives_a_kill(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = {name: os.path.join(folder, name) for name in ("python3", "bench", "json")}
            for name, text in (("python3", PYTHON.format(python=sys.executable)), ("bench", BENCH)):
                with open(paths[name], "w", encoding="utf-8") as file:
                    file.write(text)
                os.chmod(paths[name], 0o755)
            code = (f"import runpy, sys; sys.executable = {paths['python3']!r}; "
                    f"sys.argv = [{SCRIPT!r}, '--bench', {paths['bench']!r}, '--batches', '2', "
                    f"'--precisions', 'bf16', '--json', {paths['json']!r}]; "
                    f"runpy.run_path({SCRIPT!r}, run_name='__main__')")
            killed = subprocess.run([sys.executable, "-c", code], check=False)
            self.assertEqual(killed.returncode, -9)
            with open(paths["json"], encoding="utf-8") as file:
                rounds = json.load(file)
        self.assertEqual(rounds, [{"batch": 2, "precision": "bf16", "runs": {
            "thinwire": {"images_per_second": 5, "step_seconds": 2},
            "thinwire, deterministic": {"failed": "exit 3: odd / worse"}}}])


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""What gpu_timeline.cc writes, with a CUPTI that pretends.

usage: gpu_timeline_test.py LIBRARY FAKE_CUPTI
"""
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import timeline  # noqa: E402

LIBRARY, FAKE = map(os.path.abspath, sys.argv[1:])
# What CUDA does with such a library, in a program that ends.
PROGRAM = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).InitializeInjection() != 1)"


class GpuTimelineTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "t.txt")

    def load(self, **env):
        """Returns what the program says on stderr."""
        done = subprocess.run([sys.executable, "-c", PROGRAM, LIBRARY], env={**os.environ, **env},
                              capture_output=True, text=True, timeout=60, check=True)
        return done.stderr

    def test_every_activity_is_a_line(self):
        said = self.load(LD_LIBRARY_PATH=os.path.dirname(FAKE), THINWIRE_TIMELINE=self.path)
        self.assertIn("2 activities found no room", said)
        records = [record for record in timeline.read(self.path) if record.start < record.end]
        self.assertEqual([record.name for record in records],
                         ["Softmax<float>", "copy", "copy", "cutlass_gemm", "clear", "copy"])

    def test_the_program_runs_on_without_a_timeline(self):
        self.assertIn("names no file", self.load(LD_LIBRARY_PATH=os.path.dirname(FAKE)))
        said = self.load(LD_LIBRARY_PATH=os.path.dirname(FAKE), THINWIRE_TIMELINE=self.path,
                         THINWIRE_FAKE_CUPTI_REFUSES="1")
        self.assertIn("timeline: CUPTI: cuptiActivityEnable: CUPTI_ERROR_FAKE (999)", said)

    def test_where_cupti_was_looked_for_and_why_it_does_not_load_is_said(self):
        # No library, and found before one that the system has.
        library = os.path.join(self.folder.name, "libcupti.so.13")
        with open(library, "w", encoding="utf-8") as file:
            file.write("none")
        said = self.load(LD_LIBRARY_PATH=self.folder.name, CUDA_HOME="/nowhere",
                         THINWIRE_TIMELINE=self.path)
        self.assertRegex(said, f"{library}: file too short; no other libcupti.so.13 is in "
                               f"{os.path.dirname(LIBRARY)} or its lib, in "
                               f"lib64 .* of /nowhere, .* LD_LIBRARY_PATH={self.folder.name}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

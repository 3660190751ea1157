#!/usr/bin/env python3
"""That the end of the console says what failed, however much there is."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import failures  # noqa: E402
from commands import shown  # noqa: E402
from results import Results  # noqa: E402

MOST = 11500


class FailuresTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.results = Results(folder.name)
        self.results.facts["GPU"] = "an H200"

    def failed(self, name, note, details=()):
        self.results.add(name, "failed", 1, None, note, details)

    def test_nothing_is_said_where_nothing_failed(self):
        self.results.add("a", "passed", 1)
        self.assertEqual(failures.text(self.results, MOST), "")

    def test_a_failure_is_said_whole_where_there_is_room(self):
        self.results.add("a", "passed", 1)
        self.failed("b", "2 tests failed: X, Y", ["X:\n1, want 2\n", "Y:\n3, want 4"])
        self.failed("c", "no step was recorded")
        self.assertEqual(failures.text(self.results, MOST),
                         "FAILED: b, c, on an H200\n"
                         "== b failed: 2 tests failed: X, Y\n-- X:\n1, want 2\n-- Y:\n3, want 4\n"
                         "== c failed: no step was recorded")

    def test_of_many_tests_the_first_are_said_and_the_others_counted(self):
        long = "\n".join(f"line {i}" for i in range(1000))
        self.failed("a", "100 tests failed", [f"Test{i}: FIRST\n{long}" for i in range(100)])
        text = failures.text(self.results, MOST)
        self.assertLess(len(text), 12000)
        for i in range(10):
            self.assertIn(f"-- Test{i}: FIRST\nline 0\n", text)
        self.assertRegex(text, "-- [0-9]+ more in results.json$")

    def test_every_part_that_failed_is_said_beside_long_ones(self):
        long = ["FIRST\n" + "x" * 50000] * 20
        for i in range(15):
            self.failed(f"long{i}", f"verdict {i}" + "y" * 2000, long)
        self.failed("short", "what it is", ["why it is"])
        text = failures.text(self.results, MOST)
        self.assertLess(len(text), 12000)
        for i in range(15):
            self.assertIn(f"\n== long{i} failed: verdict {i}", text)
            self.assertEqual(text.count("-- FIRST\n"), 15)
        self.assertIn("== short failed: what it is\n-- why it is", text)

    def test_short_texts_leave_their_share_to_long_ones(self):
        self.assertEqual([len(text) for text in failures.fit(["a" * 10, "b" * 9000], 3000)],
                         [10, len(shown("b" * 9000, 2990))])

    def test_of_what_is_too_long_head_and_tail_are_shown(self):
        text = "first\n" + "middle\n" * 1000 + "last\n"
        self.assertRegex(shown(text, 300), r"^first\n(middle\n)+\[... \d+ characters ...\]\n"
                                           r"(middle\n)+last\n$")
        self.assertLessEqual(len(shown(text, 300)), 300)
        self.assertEqual(shown("short", 300), "short")


if __name__ == "__main__":
    unittest.main()

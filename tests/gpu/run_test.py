#!/usr/bin/env python3
"""What run.py does with time, verdicts and earlier results, with parts that do nothing."""
import argparse
import json
import os
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import run  # noqa: E402
from parts import PARTS, Part  # noqa: E402
from results import Results, figure  # noqa: E402
from session import Again, Failed, Session, Skipped, Unusable  # noqa: E402


def raising(error):
    def part(*_):
        raise error
    return part


class RunTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.out = os.path.join(self.folder.name, "out")
        self.ran = []

    def part(self, name, seconds=1, outcome=None, **kwargs):
        def note(*_):
            self.ran.append(name)
            return outcome
        return Part(name, seconds, "", note, **kwargs)

    def call(self, parts, resume=None, seconds=60.0, only="", data=""):
        results = Results(self.out)
        if resume:
            results.resume(resume)
        log_path = os.path.join(self.out, "log.txt")
        session = Session(self.folder.name, self.folder.name, log_path, plugin="x.so", data=data)
        options = argparse.Namespace(seconds=seconds, only=only)
        stdout, sys.stdout = sys.stdout, open(os.devnull, "w", encoding="utf-8")
        try:
            run.run_parts(parts, session, results, options)
        finally:
            sys.stdout.close()
            sys.stdout = stdout
        return results

    def written(self):
        with open(os.path.join(self.out, "results.json"), encoding="utf-8") as file:
            return json.load(file)

    def test_all_passed_is_0(self):
        results = self.call([self.part("a"), self.part("b")])
        self.assertEqual(self.ran, ["a", "b"])
        self.assertEqual(results.exit_code(), 0)
        self.assertEqual({n: p["verdict"] for n, p in self.written()["parts"].items()},
                         {"a": "passed", "b": "passed"})

    def test_a_failure_is_1_and_the_others_still_run(self):
        results = self.call([Part("a", 1, "", raising(Failed("3, want 4"))),
                             Part("b", 1, "", raising(ValueError("odd"))), self.part("c")])
        self.assertEqual(self.ran, ["c"])
        self.assertEqual(results.exit_code(), 1)
        self.assertEqual(self.written()["parts"]["a"]["note"], "3, want 4")
        self.assertEqual(self.written()["parts"]["b"]["note"], "ValueError: odd")

    def test_what_failed_is_run_again_alone_with_the_libraries_logs(self):
        command = ["sh", "-c", "echo $OWN, $CUDA_LAUNCH_BLOCKING, $CUDNN_LOGLEVEL_DBG; exit 5"]
        self.call([Part("a", 1, "", raising(Failed("wrong", ["first", "second"],
                                                   [Again(command, {"OWN": "yes"})]))),
                   self.part("b")])
        first, again, second = self.written()["parts"]["a"]["details"]
        self.assertEqual((first, second), ("first", "second"))
        self.assertRegex(again, "^alone, with CUDA_LAUNCH_BLOCKING=1: exit 5: sh -c .*\n"
                                "yes, 1, 1\n")
        self.assertEqual(self.ran, ["b"])

    def test_running_again_takes_no_more_time_than_is_left(self):
        start = time.monotonic()
        self.call([Part("a", 1, "", raising(Failed("", [], 3 * [Again(["sleep", "30"], {})])))],
                  seconds=1.5)
        self.assertLess(time.monotonic() - start, 10)

    def test_where_no_kernel_runs_the_other_parts_are_left(self):
        results = self.call([Part("a", 1, "", raising(Unusable("old driver"))), self.part("b")])
        self.assertEqual((self.ran, self.written()["left"], results.exit_code()), ([], ["b"], 1))

    def test_what_cannot_run_here_is_no_failure(self):
        results = self.call([Part("a", 1, "", raising(Skipped("no torch")))])
        self.assertEqual(results.exit_code(), 0)
        self.assertIn("| a | skipped | 0.0 | no torch |", results.table())

    def test_a_part_that_would_not_fit_is_left_and_named_and_shorter_ones_run(self):
        results = self.call([self.part("long", seconds=100), self.part("short")], seconds=50)
        self.assertEqual(self.ran, ["short"])
        self.assertEqual(results.exit_code(), 3)
        self.assertEqual(self.written()["left"], ["long"])
        self.assertIn("Left for another call: long", results.table())

    def test_a_second_call_does_what_is_left_or_has_failed(self):
        self.call([self.part("a"), Part("b", 1, "", raising(Failed("no"))),
                   self.part("c", seconds=100)], seconds=50)
        earlier = os.path.join(self.folder.name, "earlier.json")
        os.rename(os.path.join(self.out, "results.json"), earlier)
        self.ran = []
        results = self.call([self.part("a"), self.part("b"), self.part("c", seconds=100)],
                            resume=earlier, seconds=200)
        self.assertEqual(self.ran, ["b", "c"])
        self.assertEqual(list(self.written()["parts"]), ["a", "b", "c"])
        self.assertEqual(results.exit_code(), 0)

    def test_the_machine_is_looked_at_in_every_call(self):
        parts = [self.part("device", always=True), self.part("a"), self.part("b")]
        self.call(parts)
        self.call(parts, resume=os.path.join(self.out, "results.json"), only="b")
        self.assertEqual(self.ran, ["device", "a", "b", "device"])

    def test_only_some_parts_and_those_without_data_not(self):
        parts = [self.part("ab"), self.part("b"), self.part("images", needs_data=True)]
        self.call(parts, only="b|images")
        self.assertEqual(self.ran, ["ab", "b"])
        self.call(parts, only="images", data="somewhere")
        self.assertEqual(self.ran, ["ab", "b", "images"])

    def test_results_are_there_while_a_later_part_runs(self):
        seen = []
        self.call([self.part("a"), Part("b", 1, "", lambda *_: seen.append(self.written()))])
        self.assertEqual(list(seen[0]["parts"]), ["a"])

    def test_the_table_has_figures_beside_their_aims(self):
        outcome = {"figures": [figure("share", 0.5, at_least=0.8), figure("error", 0.5, at_most=1)],
                   "tables": "more"}
        table = self.call([self.part("a", outcome=outcome)]).table()
        self.assertIn("| share | 0.5 | >= 0.8: **missed** |", table)
        self.assertIn("| error | 0.5 | <= 1: met |", table)
        self.assertIn("## a\n\nmore", table)

    def test_a_part_of_an_earlier_build_names_it(self):
        results = Results(self.out)
        results.facts["build"] = "one"
        results.add("a", "passed", 1)
        results.facts["build"] = "two"
        self.assertIn("| a | passed (build one) |", results.table())

    def test_names_are_unique(self):
        self.assertEqual(len({part.name for part in PARTS}), len(PARTS))


class SessionTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.session = Session(self.folder.name, self.folder.name,
                               os.path.join(self.folder.name, "log.txt"), plugin="x.so")
        self.session.begin(30)

    def log(self):
        with open(self.session.log_path, encoding="utf-8") as file:
            return file.read()

    def test_a_command_is_logged(self):
        done = self.session.run(["echo", "hello"], env={"LOUD": "1"})
        self.assertEqual((done.status, done.out), (0, "hello\n"))
        self.assertIn("[1] $ LOUD=1 echo hello\n[1] said:\nhello\n[1] exit 0, ", self.log())

    def test_head_and_tail_of_long_output_are_logged_in_the_order_in_which_it_came(self):
        self.session.run(["sh", "-c", "echo first; echo odd >&2; seq 20000; echo last >&2"])
        log = self.log()
        self.assertTrue("said:\nfirst\nodd\n1\n2\n" in log and "\n20000\nlast\n" in log and
                        "characters ...]" in log, log[:200] + log[-200:])
        self.assertLess(len(log), 21000)

    def test_a_command_is_in_the_log_before_it_ends(self):
        self.session.run(["sh", "-c", f"grep -q '1. . sh' {self.session.log_path}"])

    def test_a_command_that_fails_is_quoted(self):
        with self.assertRaisesRegex(Failed, "sh: exit 3: broken"):
            self.session.run(["sh", "-c", "echo broken >&2; exit 3"])
        with self.assertRaisesRegex(Failed, "sh: SIGSEGV: it printed nothing"):
            self.session.run(["sh", "-c", "kill -SEGV $$"])
        with self.assertRaisesRegex(Failed, "nowhere cannot be started: No such file"):
            self.session.run(["nowhere"])

    def test_what_it_said_on_either_stream_is_quoted_the_first_line_first(self):
        with self.assertRaises(Failed) as caught:
            self.session.run(["sh", "-c", "echo warning >&2; echo cause; seq 9; exit 1"],
                             env={"A": "b"})
        self.assertEqual(str(caught.exception), "sh: exit 1: warning / cause / ... / 7 / 8 / 9")
        self.assertIn("cause\n1\n2\n", caught.exception.details[0])
        self.assertEqual(caught.exception.again[0].env, {"A": "b"})

    def test_a_command_ends_when_the_parts_time_is_up_with_all_its_children(self):
        self.session.begin(0.5)
        start = time.monotonic()
        with self.assertRaisesRegex(Failed, "sh: not done after 0 s|sh: not done after 1 s"):
            self.session.run(["sh", "-c", "sleep 30 & sleep 30; wait"])
        self.assertLess(time.monotonic() - start, 15)

    def test_a_command_may_be_interrupted_and_keep_what_it_did(self):
        command = ["sh", "-c", "trap 'echo kept; exit 130' INT; while :; do sleep 0.1; done"]
        done = self.session.run(command, limit=0.5, interrupts=True)
        self.assertEqual((done.status, done.out), (130, "kept\n"))
        with self.assertRaisesRegex(Failed, "sh: exit 3"):
            self.session.run(["sh", "-c", "exit 3"], interrupts=True)

    def test_a_missing_program_names_the_places(self):
        with self.assertRaisesRegex(Failed, "no program twins: .*bazel-bin/tests/gpu/twins"):
            self.session.program("twins")


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""What becomes of what programs say and how they end, with programs that pretend: GoogleTest's,
compute-sanitizer, and those that look at a machine."""
import os
import signal
import sys
import tempfile
import time
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import commands  # noqa: E402
import googletest  # noqa: E402
import machine  # noqa: E402
import sanitizer  # noqa: E402
import test_programs  # noqa: E402
from results import Results  # noqa: E402
from session import Failed, Session, Skipped, Unusable  # noqa: E402

# Its tests do what their names say.
FAKE = r"""#!/bin/sh
names="A.Passes A.FailsFirst A.Crashes B.Passes/0 B.Poisons B.FailsAfterwards B.Skips C.Passes"
echo "Running main() from somewhere"
only=$(echo "$*" | sed -n 's/.*--gtest_filter=\([^ ]*\).*/\1/p' | tr : ' ')
if [ "$only" = '*' ]; then only=$names; fi
case "$*" in *--gtest_list_tests*)
  for name in $only; do echo "${name%%.*}."; echo "  ${name#*.}  # GetParam() = x.y"; done; exit;;
esac
status=0 broken=
for name in $only; do
  echo "[ RUN      ] $name"
  case $name in
    *Fail*) echo "a.cc:1: Failure"
            echo "$name: got 3, want 4${broken:+: an illegal memory access}" >&2;;
    *Crash*) echo "about to crash" >&2; kill -SEGV $$;;
    *Poison*) broken=1; echo "a.cc:2: Failure"; echo "kernel launch: an illegal memory access";;
    *Hang*) sleep 60;;
  esac
  case $name in
    *Fail*|*Poison*) echo "[  FAILED  ] $name, where GetParam() = x.y (1 ms)"; status=1;;
    *Skip*) echo "[  SKIPPED ] $name (0 ms)";;
    *) echo "[       OK ] $name (0 ms)";;
  esac
done
echo "[  PASSED  ] some tests."
for name in $only; do case $name in *Fail*) echo "[  FAILED  ] $name";; esac; done
exit $status
"""
SANITIZER = r"""#!/bin/sh
echo "========= COMPUTE-SANITIZER"
echo "[       OK ] A.Passes (0 ms)"
{}
echo "========= ERROR SUMMARY: 0 errors"
"""


class WithPrograms(unittest.TestCase):
    """A session among programs that pretend."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.session = Session(self.folder.name, self.folder.name,
                               os.path.join(self.folder.name, "log.txt"), plugin="x.so")
        self.session.begin(20)
        self.write("twins", FAKE)
        path = mock.patch.dict(os.environ, PATH=f"{self.folder.name}:{os.environ['PATH']}")
        path.start()
        self.addCleanup(path.stop)

    def write(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)


class TestProgramsTest(WithPrograms):
    def run_tests(self, tests, **kwargs):
        return test_programs.run(self.session, "twins", tests, **kwargs)

    def test_passed_and_skipped_tests_are_counted(self):
        outcome = self.run_tests("A.Passes:C.Passes:B.Skips")
        self.assertEqual(test_programs.check(self.session, "twins", outcome), (2, 1))

    def test_a_test_that_failed_is_quoted_with_both_streams(self):
        outcome = self.run_tests("A.Passes:A.FailsFirst")
        self.assertEqual(outcome.failed,
                         {"A.FailsFirst": "a.cc:1: Failure\nA.FailsFirst: got 3, want 4"})

    def test_a_test_that_crashed_is_named_and_those_after_it_run(self):
        outcome = self.run_tests("A.Passes:A.Crashes:C.Passes")
        self.assertEqual(outcome.passed, ["A.Passes", "C.Passes"])
        self.assertEqual(outcome.failed, {"A.Crashes": "twins ended in this test: SIGSEGV\n"
                                                       "about to crash"})

    def test_after_a_fault_that_ends_the_context_tests_run_in_a_new_process(self):
        outcome = self.run_tests("B.Poisons:B.FailsAfterwards:C.Passes")
        self.assertEqual(outcome.failed["B.FailsAfterwards"],
                         "a.cc:1: Failure\nB.FailsAfterwards: got 3, want 4")
        self.assertEqual(list(outcome.failed), ["B.Poisons", "B.FailsAfterwards"])
        self.assertEqual(outcome.passed, ["C.Passes"])

    def test_a_test_that_hangs_is_named(self):
        self.session.begin(1)
        outcome = self.run_tests("A.Passes:D.Hangs:C.Passes")
        self.assertIn("twins ended in this test: not done after 1 s", outcome.failed["D.Hangs"])
        self.assertEqual(outcome.ends, ["1 tests did not run: C.Passes"])

    def test_every_test_runs_once_in_several_processes(self):
        outcome = self.run_tests("*", shards=3)
        self.assertEqual(sorted(outcome.passed), ["A.Passes", "B.Passes/0", "C.Passes"])
        self.assertEqual(set(outcome.failed),
                         {"A.FailsFirst", "A.Crashes", "B.Poisons", "B.FailsAfterwards"})

    def test_failures_of_all_outcomes_are_merged_and_the_first_run_again(self):
        outcomes = [self.run_tests("A.FailsFirst"), self.run_tests("C.Passes"),
                    self.run_tests("A.Crashes:B.Poisons:B.FailsAfterwards")]
        with self.assertRaises(Failed) as caught:
            test_programs.check(self.session, "twins", *outcomes)
        self.assertEqual(str(caught.exception), "4 tests failed: A.FailsFirst, A.Crashes, "
                                                "B.Poisons, B.FailsAfterwards")
        self.assertEqual(caught.exception.details[0],
                         "A.FailsFirst:\na.cc:1: Failure\nA.FailsFirst: got 3, want 4")
        self.assertEqual([one.command[1] for one in caught.exception.again],
                         ["--gtest_filter=A.FailsFirst", "--gtest_filter=A.Crashes",
                          "--gtest_filter=B.Poisons"])

    def test_a_program_that_does_not_start_is_quoted(self):
        self.write("twins", "#!/bin/sh\necho 'libx.so: no such file' >&2; exit 127\n")
        with self.assertRaisesRegex(Failed, "twins: exit 127: libx.so: no such file"):
            self.run_tests("*")

    def test_a_program_that_fails_without_a_failed_test_is_quoted(self):
        self.write("twins", FAKE.replace("exit $status", "echo broken >&2; exit 7"))
        outcome = self.run_tests("A.Passes")
        with self.assertRaisesRegex(Failed, "twins: exit 7: .* broken"):
            test_programs.check(self.session, "twins", outcome)

    def test_a_program_all_of_whose_tests_are_skipped_has_shown_nothing(self):
        with self.assertRaisesRegex(Failed, "skipped all its tests: B.Skips"):
            test_programs.check(self.session, "twins", self.run_tests("B.Skips"))

    def test_names_of_tests_with_parameters(self):
        self.assertEqual(googletest.names("main() of x\nA.\n  B\nC/D.  # TypeParam = int\n"
                                          "  E/0  # GetParam() = 7\n"), ["A.B", "C/D.E/0"])


def is_alive(process):
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return file.read().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class StopTest(unittest.TestCase):
    def test_no_command_outlives_a_signal(self):
        self.addCleanup(setattr, commands, "_stopped", False)
        before = signal.signal(signal.SIGTERM, lambda *_: commands.stop())
        self.addCleanup(signal.signal, signal.SIGTERM, before)
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(commands.Stopped):
                commands.run(["sh", "-c", "sleep 300 & echo $! > pid; kill -TERM $PPID; wait"],
                             folder, {}, limit=60)
            with self.assertRaises(commands.Stopped):
                commands.run(["touch", "started"], folder, {}, limit=60)
            self.assertEqual(os.listdir(folder), ["pid"])
            with open(os.path.join(folder, "pid"), encoding="utf-8") as file:
                sleeper = int(file.read())
        end = time.monotonic() + 30
        while is_alive(sleeper):
            self.assertLess(time.monotonic(), end, "it sleeps on")
            time.sleep(0.02)


class SanitizerTest(WithPrograms):
    def sanitize(self, says):
        self.write("compute-sanitizer", SANITIZER.format(says))
        return sanitizer.sanitizer(self.session, None)

    def test_without_findings_it_passes(self):
        self.assertEqual([one["value"] for one in self.sanitize("")["figures"]], [1, 1, 1, 1])

    def test_what_it_finds_is_quoted(self):
        with self.assertRaises(Failed) as caught:
            self.sanitize('[ $2 = racecheck ] || exit 0; echo "========= Error: Race reported"; '
                          'echo "=========   at Kernel"; exit 9')
        self.assertEqual(str(caught.exception), "racecheck: Error: Race reported")
        self.assertIn("at Kernel", caught.exception.details[0])

    def test_where_it_may_not_run_it_is_skipped_with_the_reason(self):
        with self.assertRaisesRegex(Skipped, "cannot run here: Error: Insufficient permission.*"):
            self.sanitize('echo "========= Error: Insufficient permissions, ask someone"; exit 1')


class MachineTest(WithPrograms):
    def setUp(self):
        super().setUp()
        self.results = Results(self.folder.name)
        self.write("nvidia-smi", "#!/bin/sh\necho ECC errors: 0\n")
        self.write("kernel_probe", "#!/bin/sh\necho one device; echo runs kernels\n")
        self.write("ldd", "#!/bin/sh\necho '  libc.so.6 => /lib/libc.so.6 (0x1)'\n")

    def test_what_there_is_is_recorded(self):
        machine.look(self.session, self.results)
        self.assertEqual(self.results.facts["kernel_probe"], "one device; runs kernels")
        with open(self.session.log_path, encoding="utf-8") as file:
            self.assertIn("$ nvidia-smi -q\n[1] said:\nECC errors: 0\n", file.read())

    def test_missing_libraries_are_named_with_who_wants_them(self):
        self.write("ldd", "#!/bin/sh\necho '  libcudnn.so.9 => not found'\n")
        with self.assertRaisesRegex(Failed, r"^libraries are missing: libcudnn.so.9 \(for "
                                            r"libthinwire_cuda.so, twins\)$"):
            machine.look(self.session, self.results)

    def test_a_machine_that_runs_no_kernel_is_told_from_a_fault_of_ours(self):
        self.write("kernel_probe", "#!/bin/sh\necho cudaErrorInsufficientDriver >&2; exit 1\n")
        with self.assertRaisesRegex(Unusable, "no kernel of this build runs here: kernel_probe: "
                                              "exit 1: cudaErrorInsufficientDriver"):
            machine.look(self.session, self.results)


if __name__ == "__main__":
    unittest.main()

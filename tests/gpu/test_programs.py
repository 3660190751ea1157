"""GoogleTest programs in several processes. A test that crashes, hangs or leaves the GPU's context
unusable fails alone: those after it run in a new process."""
import concurrent.futures

import googletest
from session import Again, Failed

MOST_NAMES = 12
MOST_AGAIN = 3  # of the tests that failed
MOST_ROUNDS = 4  # new processes for what others died of


class Outcome:
    """What came of tests."""

    def __init__(self):
        self.passed, self.skipped = [], []
        self.failed = {}  # what each said
        self.ends = []  # how processes ended that no test explains, and tests that did not run

    def add(self, report):
        self.passed += report.passed
        self.skipped += report.skipped
        self.failed.update(report.failed)


def run_some(session, command, tests, env):
    """`tests` in one process, and in further ones as long as tests take theirs with them."""
    outcome = Outcome()
    for _ in range(MOST_ROUNDS):
        done = session.run([*command, "--gtest_filter=" + ":".join(tests)], env=env, may_fail=True)
        report = googletest.Report(done.out)
        if report.running is not None:
            report.failed[report.running] = (f"{done.name} ended in this test: {done.ending()}\n" +
                                             report.failed[report.running])
        elif done.status != 0 and not report.failed:
            outcome.ends.append(done.reason())
        outcome.add(report)
        ended = report.ended()
        tests = [test for test in tests if test not in ended]
        if not tests or report.poisoned_by is None or session.left() < 1:
            break
    if tests:
        outcome.ends.append(f"{len(tests)} tests did not run: " + some(tests))
    return outcome


def some(names):
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def run(session, program, tests, shards=1, options=()):
    """Runs the tests of the filter `tests` in `shards` processes at once. Returns an Outcome."""
    env = {"THINWIRE_PLUGIN": session.plugin}
    command = [session.program(program), *options]
    listing = session.run([*command, "--gtest_list_tests", f"--gtest_filter={tests}"], env=env)
    names = googletest.names(listing.out)
    if not names:
        raise Failed(f"{program} has no test {tests}")
    shares = [names[i::shards] for i in range(min(shards, len(names)))]
    outcome = Outcome()
    with concurrent.futures.ThreadPoolExecutor(len(shares)) as pool:
        for share in pool.map(lambda some_tests: run_some(session, command, some_tests, env),
                              shares):
            outcome.add(share)
            outcome.ends += share.ends
    return outcome


def check(session, program, *outcomes):
    """Failed, with what each failed test said, unless all is well. Returns how many tests passed
    and how many were skipped."""
    failed = {name: said for outcome in outcomes for name, said in outcome.failed.items()}
    ends = [end for outcome in outcomes for end in outcome.ends]
    notes = [f"{len(failed)} tests failed: " + some(list(failed))] if failed else []
    if failed or ends:
        env = {"THINWIRE_PLUGIN": session.plugin}
        again = [Again([session.program(program), f"--gtest_filter={name}"], env)
                 for name in list(failed)[:MOST_AGAIN]]
        raise Failed("; ".join(notes + ends),
                     [f"{name}:\n{said}" for name, said in failed.items()], again)
    passed = sum(len(outcome.passed) for outcome in outcomes)
    skipped = [name for outcome in outcomes for name in outcome.skipped]
    if passed == 0:
        raise Failed(f"{program} skipped all its tests: {some(skipped)}")
    return passed, len(skipped)

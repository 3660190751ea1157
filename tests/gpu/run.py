#!/usr/bin/env python3
"""Checks and times everything CUDA on a machine with a GPU. Each part's result is written at once,
so that a call that was cut short loses nothing, and a second one with --resume goes on from there.

DIR gets results.json (all numbers), table.md (verdicts, figures and aims) and log.txt (commands and
the head and tail of their output). What failed is printed last, in under 12,000 characters. Exit
code: 0 if all parts passed, 1 if one failed, 2 for wrong usage, 3 if parts are left for another
call, 130 if a signal stopped it.

examples:
  tests/gpu/run.sh --out out
  tests/gpu/run.sh --out out2 --resume out/results.json         # what is left
  tests/gpu/run.sh --out out --only 'twins|parity'
  tests/gpu/run.sh --out out --only paper1 --data ~/cifar-10-batches-bin --seconds 3000
  tests/gpu/run.sh --out out --rehearse --plugin libthinwire_emulated.so    # without a GPU
"""
import argparse
import collections
import itertools
import os
import re
import signal
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import commands  # noqa: E402
import diagnosis  # noqa: E402
import failures  # noqa: E402
from parts import PARTS  # noqa: E402
from results import Results  # noqa: E402
from session import Failed, Session, Skipped, Unusable  # noqa: E402

DIAGNOSIS_SECONDS = 45  # at most, for a part that failed


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, prog="run.sh",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="folder of the results")
    parser.add_argument("--resume",
                        help="results.json of an earlier call: its passed parts are kept")
    parser.add_argument("--seconds", type=float, default=520,
                        help="no part starts that would not fit (default: 520)")
    parser.add_argument("--only", default="", help="a regular expression: parts whose name has it")
    parser.add_argument("--plugin", default="", help="instead of libthinwire_cuda.so")
    parser.add_argument("--data", default="",
                        help="CIFAR-10's binary version, for the part paper1")
    parser.add_argument("--work", help="folder for what runs leave (default: a temporary one)")
    parser.add_argument("--rehearse", action="store_true",
                        help="tiny sizes, for the emulated plugin; speeds mean nothing")
    parser.add_argument("--list", action="store_true", help="print the parts and what they want")
    options = parser.parse_args(arguments)
    if not options.list and not options.out:
        parser.error("--out is required")
    return options


# How a part ended. `again`: as Failed's; `goes_on`: others may still pass.
Ended = collections.namedtuple("Ended", "verdict outcome note details again goes_on",
                               defaults=(None, "", (), (), True))


def attempt(part, session, results):
    try:
        return Ended("passed", part.run(session, results))
    except Skipped as reason:
        return Ended("skipped", note=str(reason))
    except Failed as reason:
        return Ended("failed", None, str(reason), reason.details, reason.again,
                     not isinstance(reason, Unusable))
    except Exception as error:  # pylint: disable=broad-except; the other parts shall still run
        session.log(traceback.format_exc())
        return Ended("failed", None, f"{type(error).__name__}: {error}", [traceback.format_exc()])


def run_part(part, session, results, limit, end):
    """Runs one part, with a look at what failed as long as there is time until `end`, and records
    its result. Returns whether others may still pass."""
    session.log(f"== {part.name}, at most {limit:.0f} s")
    session.begin(limit)
    start = time.monotonic()
    ended = attempt(part, session, results)
    seconds = time.monotonic() - start
    results.add(part.name, ended.verdict, seconds, ended.outcome, ended.note, ended.details)
    print(f"{part.name}: {ended.verdict}, {seconds:.0f} s{': ' * bool(ended.note)}{ended.note}",
          flush=True)
    if ended.again:
        session.begin(min(DIAGNOSIS_SECONDS, max(5, end - time.monotonic())))
        said = itertools.zip_longest(ended.details, diagnosis.again(session, ended.again))
        # What each said alone stands beside what it said first.
        results.add(part.name, ended.verdict, seconds, None, ended.note,
                    [text for pair in said for text in pair if text])
    return ended.goes_on


def run_parts(parts, session, results, options):
    """Those that `options` names, as far as the time goes; the others are left."""
    end = time.monotonic() + options.seconds
    goes_on = True
    for part in parts:
        if not part.always and (not re.search(options.only, part.name) or
                                results.has_passed(part.name)):
            continue
        if part.needs_data and not session.data:
            continue
        time_left = end - time.monotonic()
        needed = min(part.seconds, 20) if session.rehearse else part.seconds
        if not goes_on or time_left < needed:
            results.left.append(part.name)
            continue
        limit = min(part.most or part.seconds, time_left)
        goes_on = run_part(part, session, results, limit, end)
    results.save()
    if results.left:
        print("left for another call: " + ", ".join(results.left))


def main():
    options = parse_arguments()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: commands.stop())
    if options.list:
        for part in PARTS:
            print(f"{part.name:24} {part.seconds:4} s  {part.what}")
        return 0
    results = Results(options.out)
    if options.resume:
        results.resume(options.resume)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with tempfile.TemporaryDirectory(prefix="thinwire-gpu-") as temporary:
        work = os.path.abspath(options.work or temporary)
        os.makedirs(work, exist_ok=True)
        log_path = os.path.join(os.path.abspath(options.out), "log.txt")
        try:
            session = Session(root, work, log_path, os.path.abspath(options.plugin)
                              if options.plugin else "", options.rehearse,
                              os.path.abspath(options.data) if options.data else "")
        except Failed as reason:
            print(f"run.py: {reason}", file=sys.stderr)
            return 1
        try:
            run_parts(PARTS, session, results, options)
        except commands.Stopped:
            print("run.py: stopped; no program of ours is left", file=sys.stderr)
            return 130
    print(results.table())
    print(failures.text(results))
    return results.exit_code()


if __name__ == "__main__":
    sys.exit(main())

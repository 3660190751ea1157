"""NVIDIA's compute-sanitizer over some tests of kernels: accesses outside of memory, reads of what
nobody wrote, races in shared memory, barriers that not all threads reach."""
import glob
import os
import re
import shutil
import site

from commands import shown
from results import figure
from session import Failed, Skipped

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
# Every kind of kernel, in an order that mixes them: a sanitizer takes 10 to 100 times as long.
TESTS = ["--gtest_filter=Cuda*Test.*:BatchNormTest.*:LayerNormTest.*:CrossEntropyTest.*:SgdTest.*:CombineTest.*:"
         "AdamWTest.*:CodedAdamWTest.*:SumsOfSquaresTest.*:Embedding*Test.*:SwigluTest.*:DropTest.*:Attention*Test.*:"
         "*PoolTest.*:MaxoutTest.*:ResizeTest.*:TransposeTest.*:-CudaFeedbackTest.*:CudaOpsTest.*",
         "--gtest_shuffle", "--gtest_random_seed=1"]
CANNOT = re.compile("Internal Sanitizer Error|No attachable process|[Ii]nsufficient permission|"
                    "not permitted|not supported|before first instrumented API call")
# A line of its, other than those of a run without findings, or of one that was stopped.
FOUND = re.compile("^========= (?!COMPUTE-SANITIZER|(ERROR|RACECHECK) SUMMARY: 0 |"
                   "Target application|Error: process didn't terminate)", re.MULTILINE)


def find():
    """Its path, or None."""
    toolkit = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    places = [shutil.which("compute-sanitizer"), os.path.join(toolkit, "bin/compute-sanitizer"),
              os.path.join(toolkit, "compute-sanitizer/compute-sanitizer")]
    for folder in site.getsitepackages():
        places += glob.glob(os.path.join(folder, "nvidia/*/bin/compute-sanitizer"))
    return next((place for place in places if place and os.access(place, os.X_OK)), None)


def sanitizer(session, _):
    """Each tool gets an equal share of the time and is stopped then; what it said counts."""
    path = find()
    if path is None:
        raise Skipped("there is no compute-sanitizer")
    figures, notes, details = [], [], []
    for i, tool in enumerate(TOOLS):
        done = session.run([path, "--tool", tool, "--print-limit", "10", "--error-exitcode", "9",
                            session.program("twins"), *TESTS],
                           env={"THINWIRE_PLUGIN": session.plugin}, may_fail=True, interrupts=True,
                           limit=session.left() / (len(TOOLS) - i))
        cannot = CANNOT.search(done.out)
        if cannot is not None:
            raise Skipped(f"compute-sanitizer cannot run here: {line_at(done.out, cannot)}")
        tests = len(re.findall(r"^\[       OK \]", done.out, re.MULTILINE))
        figures.append(figure(f"{tool}: tests", tests))
        found = FOUND.search(done.out)
        if found is not None or not done.timed_out and done.status != 0:
            notes.append(f"{tool}: " + (line_at(done.out, found) if found else done.reason()))
            details.append(f"{tool}:\n" + shown(done.out[found.start() if found else 0:], 3000))
    if notes:
        raise Failed("; ".join(notes), details)
    return {"figures": figures}


def line_at(text, match):
    start = text.rfind("\n", 0, match.start()) + 1
    return text[start:].split("\n", 1)[0].strip("= ")

#!/usr/bin/env python3
"""Holds the READMEs of folders of code to the folders: headers, rooms and who includes whom; the list of commands.

usage: folder_pages.py
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Folders of one header for each codec or operation, which their README tells as a whole.
TOLD_AS_A_WHOLE = {"compress/cpu", "compress/cuda", "nn/cuda"}
# What is no part of the programs: helpers of tests, tests, benchmarks, fuzz targets.
BESIDE = re.compile(r"(^|_)(testing|test|bench|fuzz|test_kernels)$")
INCLUDE = re.compile(r'^#include "([\w/]+)/[\w.-]+"', re.M)
COMMAND = re.compile(r"^Command (Add\w+)\(CLI::App\* app\) {", re.M)
# The room of the coordinator that includes from all others.
TOPMOST = "commands"


def folders():
    """Each folder of sources that has a README, with its page's text."""
    for page in sorted(ROOT.rglob("README.md")):
        path = page.parent.relative_to(ROOT)
        if not any(part.startswith((".", "bazel-")) for part in path.parts):
            yield path, page.read_text(encoding="utf-8")


def headers(folder):
    return {path.name for path in (ROOT / folder).glob("*.h") if not BESIDE.search(path.stem)}


def check_headers():
    for folder, page in folders():
        named = set(re.findall(r"`([\w-]+\.h)`", page))
        if str(folder) not in TOLD_AS_A_WHOLE:
            for header in sorted(headers(folder) - named):
                yield f"{folder}/README.md: lacks `{header}`"
        if headers(folder) and str(folder) not in TOLD_AS_A_WHOLE:
            for header in sorted(named - {path.name for path in (ROOT / folder).glob("*.h")}):
                yield f"{folder}/README.md: has `{header}`, which is not there"


def included(room):
    """The folders of the project that a room's sources include from."""
    sources = [path for path in room.iterdir() if path.suffix in (".h", ".cc") and not BESIDE.search(path.stem)]
    return {folder for path in sources for folder in INCLUDE.findall(path.read_text(encoding="utf-8"))}


def check_arrows(folder, shown):
    """Lines 'a/, b/ -> c/, ../d/' of the folder's page: who includes whom of its rooms, and of the folders in `shown`."""
    page = (ROOT / folder / "README.md").read_text(encoding="utf-8")
    drawn, there = set(), set()
    for line in re.findall(r"^ {4}([\w/, ]+/ -> [\w/,. ]+)$", page, re.M):
        begins, ends = (re.split(r", *", side.strip()) for side in line.split("->"))
        drawn |= {(begin.strip("/"), end.removeprefix("../").strip("/")) for begin in begins for end in ends}
    for room in sorted(path for path in (ROOT / folder).iterdir() if path.is_dir() and (path / "BUILD").exists()):
        for target in included(room) if room.name != TOPMOST else ():
            name = target.removeprefix(f"{folder}/")
            if target != f"{folder}/{room.name}" and (target.startswith(f"{folder}/") or target in shown):
                there.add((room.name, name))
        if f"`{room.name}/`" not in page:
            yield f"{folder}/README.md: lacks the room `{room.name}/`"
    for begin, end in sorted(there - drawn):
        yield f"{folder}/README.md: lacks the arrow {begin}/ -> {end}/"
    for begin, end in sorted(drawn - there):
        yield f"{folder}/README.md: has the arrow {begin}/ -> {end}/, where nothing is included"


def check_commands():
    room = ROOT / "coordinator/commands"
    listed = re.findall(r"\bAdd\w+", (room / "commands.h").read_text(encoding="utf-8").split("kCommands", 1)[1])
    for path in sorted(room.glob("*.cc")):
        for command in COMMAND.findall(path.read_text(encoding="utf-8")):
            if command not in listed:
                yield f"coordinator/commands/commands.h: kCommands lacks {command} of {path.name}"


def main():
    wrong = [*check_headers(), *check_arrows("compress", set()),
             *check_arrows("coordinator", {"wire"}), *check_commands()]
    print("\n".join(wrong), file=sys.stderr)
    print(f"folder_pages.py: {len(list(folders()))} pages, {len(wrong)} that disagree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

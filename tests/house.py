#!/usr/bin/env python3
"""Measures the sources' structure and prose, and refuses what a stranger would stumble over.

Prints lengths of functions and files, the share of comments, circles between folders, includes from one
program into another, small headers, and files that name a codec. Fails where a figure is above its limit.

usage: house.py
"""
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUFFIXES = {".cc", ".h", ".cu", ".cuh"}
# Helpers of tests, tests, benchmarks and fuzz targets are no part of the programs.
BESIDE = re.compile(r"_(testing|test|bench|fuzz)(_|$)")
PROGRAMS = ("coordinator", "stage_server")
INCLUDE = re.compile(r'^#include "([\w/]+)/[\w.-]+"', re.M)
COMMENT = re.compile(r"^\s*//+ ?(.*)$")
# A sentence ends at a full stop, a question mark, a colon or a semicolon that a space follows.
SENTENCE = re.compile(r"(?<=[.?!:;])\s+")
SMALL_HEADER_LINES = 20
MOST_WORDS = 40
# The greatest value that each figure may have.
LIMITS = {
    "circles between folders": 0,
    "includes from program to program": 0,
    f"headers of at most {SMALL_HEADER_LINES} lines": 60,
    'comments that begin with "Of"': 0,
    f"sentences of more than {MOST_WORDS} words in headers": 0,
    "production files that name CodecKind": 8,
}


def tracked():
    """The paths, relative to the root, of all C++ and CUDA sources that git knows or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        paths = map(pathlib.Path, listed.stdout.splitlines())
    else:  # no work tree: a tarball
        paths = (path.relative_to(ROOT) for path in ROOT.rglob("*") if "bazel-" not in str(path.relative_to(ROOT)))
    return sorted(path for path in paths if path.suffix in SUFFIXES and (ROOT / path).is_file())


def is_production(path):
    return not BESIDE.search(path.stem) and path.parts[0] not in ("tests", "third_party")


def code_of(text):
    """The text without comments, and with empty strings for literals; lines stay where they are."""
    def blank(match):
        found = match.group(0)
        return '""' if found.startswith('"') else "0" if found.startswith("'") else "\n" * found.count("\n")
    # Comments of both kinds, string literals, character literals (not digit separators).
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'', blank, text, flags=re.S)


def function_lengths(code):
    """Lines of each function's definition, from its signature to its closing brace; lambdas count with theirs."""
    lengths, open_braces, begin = [], [], 0  # begin: where the present statement begins
    inside = 0  # how many functions the place is within
    for match in re.finditer(r"[{};]", code):
        sign, at = match.group(0), match.start()
        if sign == "{":
            statement = code[begin:at].strip()
            is_function = (not inside and re.search(r"\)\s*(const|override|final|noexcept|mutable|->[\w\s:<>,*&]+|\s)*"
                                                    r"(:\s[^;{}]*(\{[^{}]*\}[^;{}]*)*)?$", statement)
                           and not re.match(r"(namespace|class|struct|enum|union|extern)\b", statement)
                           and "=" not in statement.split("(")[0])
            open_braces.append((bool(is_function), code.count("\n", 0, at) - statement.count("\n")))
            inside += bool(is_function)
            begin = at + 1
        elif sign == "}":
            if open_braces:
                is_function, line = open_braces.pop()
                if is_function:
                    inside -= 1
                    lengths.append(code.count("\n", 0, at) - line + 1)
            begin = at + 1
        else:
            begin = at + 1
    return lengths


def comments_of(text):
    """Each comment of one line or more, as one string without its slashes, with the line that it begins at."""
    comment, begin = [], 0
    for number, line in enumerate(text.splitlines() + [""], 1):
        match = COMMENT.match(line)
        if match:
            begin = begin if comment else number
            comment.append(match.group(1))
        elif comment:
            yield begin, comment
            comment = []


def prose_of(comment):
    """The sentences of a comment; a blank line, an indented one or a list's point ends one."""
    text = ""
    for line in comment:
        ends = not line.strip() or line.startswith((" ", "-", "*", "|"))
        text += (". " if ends else "") + line.strip() + " "
    return SENTENCE.split(text)


def circles(folders):
    """Groups of folders each of which includes, on some way, from each other (Tarjan)."""
    index, low, stack, groups = {}, {}, [], []

    def visit(folder):
        index[folder] = low[folder] = len(index)
        stack.append(folder)
        for target in folders.get(folder, ()):
            if target not in index:
                visit(target)
                low[folder] = min(low[folder], low[target])
            elif target in stack:
                low[folder] = min(low[folder], index[target])
        if low[folder] == index[folder]:
            at = stack.index(folder)
            groups.append(sorted(stack[at:]))
            del stack[at:]

    for folder in sorted(folders):
        if folder not in index:
            visit(folder)
    return [group for group in groups if len(group) > 1]


def spread(values):
    values = sorted(values)
    return f"median {statistics.median(values):g}, 90 % {values[len(values) * 9 // 10]}, longest {values[-1]}"


def main():
    texts = {path: (ROOT / path).read_text(encoding="utf-8") for path in tracked()}
    production = {path: text for path, text in texts.items() if is_production(path)}
    known = {str(path.parent) for path in texts}
    includes, across, functions, comment_lines, code_lines = {}, [], [], 0, 0
    for path, text in production.items():
        code = code_of(text)
        functions += function_lengths(code)
        code_lines += sum(bool(line.strip()) for line in code.splitlines())
        comment_lines += sum(len(comment) for _, comment in comments_of(text))
        for folder in INCLUDE.findall(text):
            if folder in known and folder != str(path.parent):
                includes.setdefault(str(path.parent), set()).add(folder)
                ends = (path.parts[0], folder.split("/")[0])
                if ends[0] != ends[1] and set(ends) == set(PROGRAMS):
                    across.append(f"{path} includes from {folder}/")
    headers = {path: text for path, text in production.items() if path.suffix in (".h", ".cuh")}
    found = {
        "circles between folders": [" -> ".join(group) for group in circles(includes)],
        "includes from program to program": across,
        f"headers of at most {SMALL_HEADER_LINES} lines":
            [str(path) for path, text in headers.items() if text.count("\n") <= SMALL_HEADER_LINES],
        'comments that begin with "Of"':
            [f"{path}:{line}: // {comment[0]}" for path, text in texts.items()
             for line, comment in comments_of(text) if comment[0].startswith("Of ")],
        f"sentences of more than {MOST_WORDS} words in headers":
            [f"{path}:{line}: {sentence.strip()}" for path, text in headers.items()
             for line, comment in comments_of(text) for sentence in prose_of(comment)
             if len(sentence.split()) > MOST_WORDS],
        "production files that name CodecKind":
            [str(path) for path, text in production.items() if re.search(r"\bCodecKind\b", code_of(text))],
    }
    print(f"functions: {spread(functions)} lines, {sum(length > 60 for length in functions)} above 60")
    print(f"files: {spread(text.count(chr(10)) for text in production.values())} lines")
    print(f"lines of production code: {code_lines}, of comments {comment_lines}"
          f" ({100 * comment_lines / (comment_lines + code_lines):.1f} %)")
    wrong = 0
    for what, where in found.items():
        print(f"{what}: {len(where)} (at most {LIMITS[what]})")
        if len(where) > LIMITS[what]:
            wrong += 1
            print("\n".join(f"  {place}" for place in where), file=sys.stderr)
    print(f"house.py: {len(production)} files, {wrong} figures above their limits")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Finds types that C++ sources and .proto files define twice in one namespace.

No compiler sees such a pair where the definitions stand in different files: the linker keeps one of the two
destructors, and the other type is destroyed by it.

usage: one_definition.py [FILE]...    without files: every source of the project
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OPENED = re.compile(r"^namespace ?([\w:]*) ?\{$")
CLOSED = re.compile(r"^\}  // namespace")
MESSAGE = re.compile(r"^(?:message|enum) (\w+) \{")
# Only what starts a line is in no class and in no function.
DEFINED = re.compile(r"^(?:enum )?(?:class|struct|enum) (\w+)(?: final)?(?: : .*| ?\{.*)?$")


def definitions(path):
    """(name with its namespaces, line) of each type, but for those of anonymous namespaces."""
    namespaces = ["thinwire"] if path.endswith(".proto") else []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if path.endswith(".proto"):
                if message := MESSAGE.match(line):
                    yield "::".join([*namespaces, message[1]]), number
            elif opened := OPENED.match(line):
                namespaces.append(opened[1])
            elif CLOSED.match(line):
                namespaces.pop()
            elif (defined := DEFINED.match(line)) and all(namespaces):
                yield "::".join([*namespaces, defined[1]]), number


def sources(folder):
    """The sources below; Bazel's links lead elsewhere."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink() and not path.name.startswith("."):
            yield from sources(path)
        elif path.suffix in (".h", ".cc", ".cu", ".cuh", ".proto"):
            yield str(path.relative_to(ROOT))


def main():
    files = sys.argv[1:] or list(sources(ROOT))
    places = collections.defaultdict(list)
    for path in files:
        for name, line in definitions(path):
            places[name].append(f"{path}:{line}")
    twice = {name: at for name, at in places.items() if len(at) > 1}
    for name, at in sorted(twice.items()):
        print(f"{name} is defined {len(at)} times: {', '.join(at)}", file=sys.stderr)
    print(f"one_definition.py: {len(places)} types, {len(twice)} defined more than once")
    return 1 if twice or not places else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Writes the man pages of programs from what their --help says, one per program and subcommand.

usage: man_pages.py VERSION DATE FOLDER PROGRAM...
"""
import pathlib
import re
import subprocess
import sys

_SECTION = re.compile(r"(positionals|options|subcommands):", re.IGNORECASE)
# Two spaces, a name or names, then, after one space each, what it takes and whether it must be there.
_ENTRY = re.compile(r"  (\S+)((?: [A-Z]{2,}\S*)?)((?: \.\.\.)?)(?: REQUIRED)?(?:\s+(.*))?$")


def roff(text):
    """Returns text that roff prints as it stands."""
    for character, escape in (("\\", r"\e"), ("-", r"\-"), ("'", r"\(aq"), ("~", r"\(ti"),
                              ("^", r"\(ha")):
        text = text.replace(character, escape)
    text = re.sub("`([^`]*)`", r"\\fB\1\\fR", text)
    return "\\&" + text if text.startswith(".") else text


def tag(entry):
    """Returns how a flag, positional or subcommand is written, and its default value or ''."""
    names, kind, repeated = entry.group(1), entry.group(2).strip(), entry.group(3)
    kind, _, default = kind.partition("=")
    kind = re.sub("^(TEXT|INT|UINT|FLOAT):", "", kind)
    line = ", ".join(rf"\fB{roff(name)}\fR" for name in names.split(","))
    if kind and names.startswith("-"):
        line += rf" \fI{roff(kind)}\fR"
    return line + repeated, default


def entries(lines):
    """Returns the roff of a section's lines."""
    items = []
    for line in lines:
        entry = _ENTRY.match(line)
        if entry:
            items.append([*tag(entry), entry.group(4) or ""])
        else:
            items[-1][2] += " " + line.strip()
    out = []
    for name, default, text in items:
        out += [".TP", name, roff(text.strip() + (f" (default: {default})" if default else ""))]
    return out


def prose(lines):
    """Returns the roff of paragraphs; indented lines are examples and stay as they are."""
    out, is_example = [], False
    for line in lines:
        if line.startswith("  ") != is_example:
            is_example = not is_example
            out += [".PP", ".nf", ".RS"] if is_example else [".RE", ".fi", ".PP"]
        if line == "Examples:":
            out.append(".SH EXAMPLES")
        elif line.startswith("Exit codes: "):
            out.append(".SH EXIT STATUS")
            for code in re.split(r", (?=\d)", line[len("Exit codes: "):].rstrip(".")):
                number, _, meaning = code.partition(" ")
                out += [".TP", number, roff(meaning)]
        else:
            out.append(roff(line[2:] if is_example else line) or ".PP")
    return out + ([".RE", ".fi"] if is_example else [])


def help_of(command):
    """Returns the lines of a command's --help."""
    run = subprocess.run([*command, "--help"], stdout=subprocess.PIPE, check=True, text=True)
    return run.stdout.rstrip("\n").split("\n")


def divided(lines):
    """Returns the paragraphs above the usage, the usage, the sections by title, what follows."""
    usage = next(i for i, line in enumerate(lines) if line.startswith("Usage: "))
    sections, title = {}, None
    rest = lines[usage + 1:]
    while rest and (not rest[0] or title or _SECTION.fullmatch(rest[0])):
        line = rest.pop(0)
        section = _SECTION.fullmatch(line)
        title = section[1].lower() if section else title if line else None
        if title and not section:
            sections.setdefault(title, []).append(line)
    return lines[:usage], lines[usage][len("Usage: "):], sections, rest


def page(name, lines, see_also, edition):
    """Returns the man page of one command; edition is (version, date)."""
    about, usage, sections, rest = divided(lines)
    examples = rest.index("Examples:") if "Examples:" in rest else len(rest)
    description = about[1:] + rest[:examples]
    summary = about[0][0].lower() + about[0][1:].rstrip(".")
    out = [f'.TH {roff(name.upper())} 1 "{edition[1]}" "Thinwire {edition[0]}" "User Commands"',
           ".nh", ".ad l", ".SH NAME", rf"{roff(name)} \- {roff(summary)}",
           ".SH SYNOPSIS", roff(usage)]
    if any(description):
        out += [".SH DESCRIPTION", *prose(description)]
    for title, section in sections.items():
        out += [".SH " + title.upper(), *entries(section)]
    out += prose(rest[examples:])
    out += [".SH FILES", ".TP", r"\fI/usr/share/thinwire/experiments\fR",
            "Experiments to run, among them those of the examples.",
            ".TP", r"\fI/usr/share/doc/thinwire\fR",
            "What may stand in an experiment file, every codec, metric and result.",
            ".SH SEE ALSO", " ,\n".join(rf".BR {roff(other)} (1)" for other in see_also)]
    return "\n".join(out) + "\n"


def subcommands(lines):
    """Returns the names of a program's subcommands."""
    section = divided(lines)[2].get("subcommands", [])
    return [entry.group(1) for entry in map(_ENTRY.match, section) if entry]


def main():
    """Writes all pages."""
    version, date, folder, *programs = sys.argv[1:]
    texts = {}
    for program in programs:
        name = pathlib.Path(program).name
        texts[name] = help_of([program])
        for command in subcommands(texts[name]):
            texts[f"{name}-{command}"] = help_of([program, command])
    for name, lines in texts.items():
        others = [other for other in texts if other != name]
        pathlib.Path(folder, f"{name}.1").write_text(page(name, lines, others, (version, date)),
                                                     encoding="utf-8")


if __name__ == "__main__":
    main()

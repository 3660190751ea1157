"""results.json, which is written after every part, and the table made of it."""
import json
import os

VERDICTS = ("passed", "failed", "skipped")


def figure(name, value, unit="", at_least=None, at_most=None):
    """A number for the table, with what it should be."""
    entry = {"name": name, "value": value, "unit": unit}
    if at_least is not None:
        entry.update(aim=f">= {at_least:g}", met=value >= at_least)
    if at_most is not None:
        entry.update(aim=f"<= {at_most:g}", met=value <= at_most)
    return entry


def shown(value):
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)


class Results:
    """The record of one or more calls."""

    def __init__(self, folder):
        self.folder = folder
        self.facts, self.parts, self.left = {}, {}, []
        os.makedirs(folder, exist_ok=True)

    def resume(self, path):
        """Keeps the passed parts of an earlier call."""
        with open(path, encoding="utf-8") as file:
            earlier = json.load(file)
        self.facts = earlier["facts"]
        self.parts = {name: part for name, part in earlier["parts"].items()
                      if part["verdict"] == "passed"}

    def has_passed(self, name):
        return self.parts.get(name, {}).get("verdict") == "passed"

    def add(self, name, verdict, seconds, outcome=None, note="", details=()):
        """`outcome`: {"figures": [...], "numbers": anything, "tables": Markdown}, each optional.
        `details`: of a failure, the first first."""
        assert verdict in VERDICTS, verdict
        self.parts[name] = {"verdict": verdict, "seconds": round(seconds, 1), "note": note,
                            "build": self.facts.get("build", "unknown"), **(outcome or {})}
        if details:
            self.parts[name]["details"] = list(details)
        self.save()

    def save(self):
        content = {"facts": self.facts, "parts": self.parts, "left": self.left}
        self._replace("results.json", json.dumps(content, indent=1) + "\n")
        self._replace("table.md", self.table())

    def exit_code(self):
        if any(part["verdict"] == "failed" for part in self.parts.values()):
            return 1
        return 3 if self.left else 0

    def table(self):
        lines = ["# Thinwire on a GPU", ""]
        lines += [f"- {name}: {value}" for name, value in self.facts.items()]
        lines += ["", "| part | verdict | seconds | figure | value | aim |", "|---" * 6 + "|"]
        for name, part in self.parts.items():
            lines += self._rows(name, part)
        if self.left:
            lines += ["", "Left for another call: " + ", ".join(self.left)]
        for name, part in self.parts.items():
            if part.get("tables"):
                lines += ["", f"## {name}", "", part["tables"]]
        return "\n".join(lines) + "\n"

    def _rows(self, name, part):
        build = part["build"]
        other = "" if build == self.facts.get("build", "unknown") else f" (build {build})"
        head = f"| {name} | {part['verdict']}{other} | {part['seconds']} "
        rows = []
        if part["note"]:
            rows.append(f"| {part['note']} | | |".replace("\n", " "))
        for entry in part.get("figures", []):
            aim = ""
            if "aim" in entry:
                aim = f"{entry['aim']}: {'met' if entry['met'] else '**missed**'}"
            value = f"{shown(entry['value'])} {entry['unit']}".strip()
            rows.append(f"| {entry['name']} | {value} | {aim} |")
        rows = rows or ["| | | |"]
        return [(head if i == 0 else "| | | ") + row for i, row in enumerate(rows)]

    def _replace(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".new", path)

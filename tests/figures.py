#!/usr/bin/env python3
"""Holds the figures of README.md and docs/index.md to the pages that they cite.

A claim is a sentence, as a regular expression with a group for each number, and what these numbers are by the tables of a
page. A number is right if it is the page's, rounded to as many digits as the sentence shows. A sentence that is no longer
there is an error as well: its claim is to go with it.

usage: figures.py
"""
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NUMBER = r"((?:[−+]|(?<!\w)-)?\d[\d,]*(?:\.\d+)?)"
WORDS = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def value(text):
    return float(WORDS.index(text)) if text in WORDS else float(text.replace("−", "-").replace(",", ""))


def numbers(cell):
    return [value(text) for text in re.findall(NUMBER, cell)]


class Page:
    """The text of a page, and its tables row by row."""

    def __init__(self, path):
        self.path, self.text = path, (ROOT / path).read_text(encoding="utf-8")
        self._rows, heading = [], ""
        for line in self.text.splitlines():
            if line.startswith("#"):
                heading = line.lstrip("# ")
            elif line.startswith("|"):
                self._rows.append((heading, [cell.strip() for cell in line.strip("|").split("|")]))

    def rows(self, heading):
        """The rows under headings that begin so."""
        return [cells for under, cells in self._rows if under.startswith(heading)]

    def row(self, heading, *first):
        """The only row there whose first cells are these."""
        found = [cells for cells in self.rows(heading) if tuple(cells[:len(first)]) == first]
        if len(found) != 1:
            raise LookupError(f"{self.path}: {len(found)} rows '{' | '.join(first)}' under '{heading}', want 1")
        return found[0]

    def find(self, pattern):
        """The groups of the only place that the pattern matches, where any blanks may stand for a blank."""
        found = list(re.finditer(pattern.replace(" ", r"\s+"), self.text))
        if len(found) != 1:
            raise LookupError(f"{self.path}: '{pattern}' stands there {len(found)} times, want once")
        return [group for group in found[0].groups() if group is not None]


TRAINING = Page("docs/benchmarks/training.md")
ON_GPU = Page("docs/benchmarks/gpu.md")
SLOW = Page("docs/benchmarks/slow_network.md")
RECOVERY = Page("docs/benchmarks/recovery.md")
RESULTS = Page("docs/results.md")
README, INDEX, GPU = Page("README.md"), Page("docs/index.md"), Page("docs/gpu.md")

IMAGES, TEXTS = "One stage against PyTorch", "Language models: one stage against PyTorch"
FRONTIER = "frontier/narrow"
ON, OFF = 2, 3  # columns of a configuration's row


def ratios(heading):
    """How many times as fast as PyTorch one stage is, row by row: the numbers in bold."""
    return [numbers(cells[4])[0] for cells in TRAINING.rows(heading) if cells[1] in ("fp32", "bf16") and "**" in cells[4]]


def least_and_most(found):
    return [min(found), max(found)]


def over_gloo():
    """How many times as fast as PyTorch 2.15 and gloo four stages are, of each network as it was measured last."""
    latest, network = {}, ""
    for cells in TRAINING.rows("With payloads in shared memory"):
        network = re.match(r"`[^`]*`|", cells[0])[0] or network
        if cells[2] == "2.15":
            latest[network] = numbers(cells[-1])[0]
    return list(latest.values())


def aim(heading):
    """The aim of a table against PyTorch, how many of its rows reach it, and how many there are."""
    section = re.search(rf"^## {heading}$.*?The aim is ([\d.]+)", TRAINING.text, re.M | re.S)
    reached = [ratio >= value(section[1]) for ratio in ratios(heading)]
    return [value(section[1]), sum(reached), len(reached)]


def slow_step():
    """Seconds of a step of four microbatches at 20 Mbit/s: with 1.44 bits an element, and without a codec in these runs."""
    line = codec = ""
    for cells in SLOW.rows("The frontier on slow lines"):
        line, codec = cells[0] or line, cells[1] or codec
        if (line, codec, cells[2]) == ("20 Mbit/s", "`ecsq` 0.45, 1.1, support", "4"):
            return [numbers(cells[3])[0], *map(value, SLOW.find(r"20 Mbit/s: [\d.]+ and ([\d.]+) s\)"))]
    raise LookupError(f"{SLOW.path}: no step of that codec at 20 Mbit/s")


def result(heading, configuration, column):
    """The mean of three seeds and its deviation."""
    return numbers(RESULTS.row(heading, configuration, "1, 2, 3")[column])


def bits(heading, configuration):
    """Bits per element, the mean of both directions."""
    both = [numbers(cell) for cell in RESULTS.row(heading, configuration, "1, 2, 3") if " / " in cell]
    return sum(both[0]) / 2


def fewer(heading, configuration):
    """How many times fewer bytes than without a codec, in whole times."""
    return math.floor(bits(heading, "none") / bits(heading, configuration))


def steps_on_gpu():
    """How many times as fast as PyTorch a step on a card is: GPT-2's, and a ResNet-18's at each batch."""
    rows = ON_GPU.rows("28 November")
    speedups = {cells[0]: numbers(cells[3])[0] / numbers(cells[4])[0] for cells in rows
                if cells[0].startswith(("GPT-2", "ResNet-18", "batch"))}
    return (next(speedups[row] for row in speedups if row.startswith("GPT-2")),
            [speedups[row] for row in speedups if not row.startswith("GPT-2")])


def claims():
    """(page, sentence, its numbers by the page that it cites)."""
    yield README, rf"trains a ResNet-18 {NUMBER} to {NUMBER} times", least_and_most(ratios(IMAGES))
    yield README, rf"and GPT-2s {NUMBER} to {NUMBER} times as fast", least_and_most(ratios(TEXTS))
    yield README, rf"four stages it is at least {NUMBER} times as fast as PyTorch and gloo", [min(over_gloo())]
    gpt2, resnets = steps_on_gpu()
    yield (README, rf"in bf16 was \[{NUMBER} times as fast as .* at its best for GPT-2 \(124M\), {NUMBER} to {NUMBER} times for",
           [gpt2, *least_and_most(resnets)])
    yield (GPU, rf"A training step takes {NUMBER} of the time of `torch\.compile`'s for GPT-2\s+and {NUMBER} for ResNet-18",
           [1 / gpt2, 1 / max(resnets)])
    for heading in (IMAGES, TEXTS):
        yield TRAINING, rf"(?ms)^## {heading}$.*?The aim is {NUMBER}: reached in (\w+) of (\w+)", aim(heading)
    yield README, rf"bit, with error feedback and all: {NUMBER} processes", map(value, RECOVERY.find(r"(\d+) kills, no run"))
    yield README, rf"{NUMBER} times fewer bytes \({NUMBER} bits", [fewer(FRONTIER, "ecsq-1.5"), bits(FRONTIER, "ecsq-1.5")]
    yield README, rf"{NUMBER} ± {NUMBER} % with the codec at inference and", result(FRONTIER, "ecsq-1.5", ON)
    yield README, rf"inference and {NUMBER} ± {NUMBER} % without, against", result(FRONTIER, "ecsq-1.5", OFF)
    yield README, rf"against {NUMBER} ± {NUMBER} % without compression;", result(FRONTIER, "none", ON)
    yield README, rf"TopK of 5 % sends as many bytes and ends at {NUMBER} %", result(FRONTIER, "topk5", ON)[:1]
    yield README, rf"a step of four stages takes {NUMBER} s instead of {NUMBER} s", slow_step()
    yield INDEX, rf"with {NUMBER} bits for an element in place of", [bits(FRONTIER, "ecsq-1.5")]
    yield INDEX, rf"\*\*{NUMBER} times fewer bytes\*\*", [fewer(FRONTIER, "ecsq-1.5")]
    yield INDEX, rf"accuracy is {NUMBER} ± {NUMBER} % where", result(FRONTIER, "ecsq-1.5", ON)
    yield INDEX, rf"where it is {NUMBER} ± {NUMBER} % without codecs", result(FRONTIER, "none", ON)
    yield INDEX, rf"a step then takes {NUMBER} seconds in place of {NUMBER} \(", slow_step()


def agrees(said, figure):
    """Whether the text `said` is the figure, rounded to as many digits."""
    digits = len(said.partition(".")[2])
    return abs(value(said) - figure) <= 0.5 * 10**-digits + 1e-9


def main():
    count, wrong = 0, []
    try:
        for page, sentence, figures in claims():
            said, figures = page.find(sentence), list(figures)
            assert len(said) == len(figures), (page.path, sentence, said, figures)
            count += len(said)
            wrong += [f"{page.path}: '{sentence}' has {text}, the page that it cites {figure:.4g}"
                      for text, figure in zip(said, figures) if not agrees(text, figure)]
    except LookupError as error:
        wrong.append(str(error))
    print("\n".join(wrong), file=sys.stderr)
    print(f"figures.py: {count} figures, {len(wrong)} that disagree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""What the tutorials say beside their commands, held to what the commands did.

A claim is a piece of a tutorial's text, and a check of what was printed and written; the bounds of a check leave room for
machines on which numbers are others. tutorial_test.py runs them behind the commands.
"""
import json
import re
import sqlite3

NUMBER = r"([-+]?\d[\d,.]*)"


def numbers(text):
    return [float(number.replace(",", "").rstrip(".")) for number in re.findall(NUMBER, text)]


class Told:
    """What a tutorial's commands printed, and the folder that they ran in."""

    def __init__(self, folder, commands):
        self.folder, self._commands = folder, commands

    def printed(self, command):
        """The lines of the first command that begins so."""
        return next(lines for given, lines in self._commands if given.startswith(command))

    def line(self, command, beginning):
        """The first of them that begins so, blanks aside."""
        return next(line.strip() for line in self.printed(command) if line.strip().startswith(beginning))

    def summary(self, run):
        return json.loads((self.folder / run / "summary.json").read_text(encoding="utf-8"))

    def last_test(self, run):
        """Test accuracies of a run's last epoch, in per cent: with its codecs, and without."""
        test = self.summary(run)["epochs"][-1]["test"]
        return tuple(100 * test[kind]["accuracy"] for kind in ("compressed", "uncompressed"))

    def row(self, name):
        """Of a row of the study: accuracy with codecs, without, megabytes; and less none, with its interval."""
        cells = numbers(re.sub("±", " ", self.line("thinwire sweep study.yaml", f"{name} ")[len(name):]))
        return {"on": cells[1], "off": cells[3], "sent": cells[5], "less": cells[6:]}


def needs_its_codec(told):
    on, off = told.last_test("runs/quickstart")
    return on - off > 10


def is_entropy_coded(told):
    """Bits and cosine of the probe's row of gradients through ecsq."""
    row = next(line for line in told.printed("thinwire probe runs/none") if "| backward | `ecsq(step=1" in line)
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    return 0.4 < numbers(cells[0])[0] < 0.65 and 0.92 < numbers(cells[4])[0] < 0.98


def costs(least, row, most):
    """Whether the accuracy of a row is below none's by so many points."""
    return lambda told: least <= told.row("none")["on"] - told.row(row)["on"] <= most


def loses_nothing(told):
    """Neither a point, nor an interval below zero."""
    less = told.row("entropy-coded")["less"]
    return less[0] > -1 and less[2] >= 0


def every_epoch(told):
    """Whether results.sqlite has the epochs of all runs."""
    with sqlite3.connect(told.folder / "runs/study/results.sqlite") as results:
        return results.execute("SELECT count(*) FROM epochs").fetchone() == (8 * 4,)


def loads_nothing(told):
    page = (told.folder / "runs/study/report.html").read_text(encoding="utf-8")
    return not re.search(r"""(?:src|href)\s*=\s*["']?\s*(?:https?:)?//|@import|url\((?!["']?(?:data:|#))""", page)


def shared_beginnings(told):
    """Whether two runs of one seed have the same seeds, and runs of two seeds have not."""
    seeds = [re.findall(r"^seed: .*|^seeds:(?:\n  .*)*", (told.folder / f"runs/study/runs/{run}/experiment.yaml").read_text(), re.M)
             for run in ("none-seed1", "entropy-coded-seed1", "none-seed2")]
    return seeds[0] == seeds[1] != seeds[2]


def ranked(told):
    """The rows of the plan's table: milliseconds a step, samples a second, MB on the wire and of memory, % of waiting."""
    rows = [numbers(line.lstrip("> ").split("%")[0]) for line in told.printed("thinwire plan") if
            re.match(r"[> ] +[\d.]+ +\d+ +[\d.]+ +[\d.]+ +\d+ %", line)]
    return [row for row in rows if len(row) == 5]


def is_ranked(told):
    steps = [row[0] for row in ranked(told)]
    return len(steps) > 3 and steps == sorted(steps)


def samples_of_a_batch(told):
    """Whether steps times samples a second are the batch of 64, as far as they are printed."""
    return all(abs(step * rate / 1000 - 64) < 2 for step, rate, *_ in ranked(told))


def waits_nearly_always(told):
    return min(row[4] for row in ranked(told)) >= 90


def is_measured(told):
    """Whether the doctor tells of four servers and of the links between neighbours."""
    lines = "\n".join(told.printed("thinwire doctor"))
    return len(re.findall(r"^\d +127", lines, re.M)) == 4 and re.findall(r"^(\d -> \d)", lines, re.M)[:3] == [
        "0 -> 1", "1 -> 2", "2 -> 3"]


def eighteen_times(told):
    both = [boundary[way] for boundary in told.summary("runs/far")["boundaries"] for way in ("activations", "gradients")]
    return 16 < sum(int(way["raw_bytes"]) for way in both) / sum(int(way["wire_bytes"]) for way in both) < 20


def hardly_minds(told):
    on, off = told.last_test("runs/far")
    return on > 85 and abs(on - off) < 3


def waits_are_split(told):
    lines = [line.strip().split("  ")[0] for line in told.printed("thinwire trace")]
    return {"waiting", "peer", "encode", "decode", "wire"} <= set(lines)


def one_at_a_time(told):
    first, second = (told.summary(f"runs/queue/runs/quickstart-{run}")["provenance"] for run in (1, 2))
    return first["finished"] <= second["started"]


def has_three_cuts(told):
    summary = told.summary("runs/facts")
    return (summary["stages"], len(summary["boundaries"])) == (4, 3)


def sends_no_weights(told):
    """No tied boundary, and fewer bytes in all than the embedding has."""
    boundaries = told.summary("runs/facts")["boundaries"]
    sent = sum(boundary[way]["wire_bytes"] for boundary in boundaries for way in ("activations", "gradients"))
    return all(boundary["name"] != "tied" for boundary in boundaries) and sent < 4 * 49152 * 576


CLAIMS = {
    "tutorial_researcher.md": [
        ("ResNet of 77,754 parameters", lambda told: told.summary("runs/quickstart")["parameters"] == 77754),
        ("three cuts, so four stages in four processes",
         lambda told: (len(told.summary("runs/quickstart")["boundaries"]), told.summary("runs/quickstart")["stages"]) == (3, 4)),
        ("TopK at 10 % is a network that cannot do without its codec", needs_its_codec),
        ("the indices make 3.7 bits of what",
         lambda told: all(3.65 < bits < 3.75 for bits in (
             numbers(told.line("thinwire run experiments", f"layer1     {way}").split(" x ")[1])[0]
             for way in ("activation", "gradient")))),
        ("half a bit for a gradient whose cosine to the true one stays at 0.95", is_entropy_coded),
        ("Equal bytes, so different an end",
         lambda told: told.row("coarse-activations")["sent"] == told.row("coarse-gradients")["sent"]),
        ("two bits for activations cost about a point", costs(-0.5, "coarse-activations", 3)),
        ("two bits for gradients many times that", costs(5, "coarse-gradients", 100)),
        ("Entropy-coded steps take a third of those bytes",
         lambda told: 0.3 < told.row("entropy-coded")["sent"] / told.row("coarse-gradients")["sent"] < 0.37),
        ("and lose nothing that two seeds could show", loses_nothing),
        ("runs of one seed share initial parameters and the order of the data", shared_beginnings),
        ("`report.html` loads nothing from elsewhere", loads_nothing),
        ("`results.sqlite` with every epoch", every_epoch),
    ],
    "tutorial_engineer.md": [
        ("and ranks codecs, numbers of microbatches and schedules", is_ranked),
        ("The columns are milliseconds a step, samples a second", samples_of_a_batch),
        ("So small a network waits nearly always on such links", waits_nearly_always),
        ("measures the links between neighbours", is_measured),
        ("Some eighteen times fewer bytes in all", eighteen_times),
        ("and an accuracy that hardly minds", hardly_minds),
        ("`waiting` is split into what is waited for: the peer's computation, the codec, the link", waits_are_split),
        ("one run at a time on these stages", one_at_a_time),
    ],
    "tutorial_finetune.md": [
        ("It does not know.", lambda told: "Minka" not in " ".join(told.printed("printf 'What is the name of our cat?\\n' |"))),
        ("cuts the model at three balanced places", has_three_cuts),
        ("leaves both as they are, and nothing crosses for it", sends_no_weights),
    ],
}


def check(document, told):
    """(claim, whether it holds) of each; one that the document does not make fails."""
    text = " ".join(document.read_text(encoding="utf-8").split())
    return [(claim, claim in text and holds(told)) for claim, holds in CLAIMS[document.name]]

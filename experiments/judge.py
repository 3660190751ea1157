#!/usr/bin/env python3
"""Tables, pictures and verdicts of the suites, for docs/results.md between two markers per paper.

usage: judge.py [--results DIR] [--page FILE] [--seeds "1 2 3"]

Reads DIR/PAPER/SUITE/CONFIGURATION-seedN.json as compact.py leaves them. Differences are paired by seed:
the runs of one seed share initial parameters and the order of data. What is claimed stands in
claims.py.
"""

import argparse
import json
import math
import pathlib
import re
from typing import Dict, List, Tuple

from claims import (BORROWED, CLAIMS, FURTHER, MORE_SEEDS, OFF, ON, RECALIBRATED, SUITES, TARGETS,
                    WANTED, Claim, Comparison, Measure, measure_of)
from paired import deviation, estimate, overall, verdict
from picture import Row, Series, picture

SERIES = [
    Series(ON, "with the codecs", "#0969da", "full"),
    Series(RECALIBRATED, "without, recalibrated", "#1a7f37", "diamond"),
    Series(OFF, "without", "#cf222e", "hollow"),
]

DIRECTIONS = ("activations", "gradients")

Runs = Dict[str, Dict[int, dict]]  # configuration -> seed -> result


def load(folder: pathlib.Path) -> Runs:
    runs: Runs = {}
    for path in sorted(folder.glob("*.json")):
        result = json.loads(path.read_text())
        if path.name != f"{result['configuration']}-seed{result['seed']}.json":
            raise ValueError(f"{path} holds {result['configuration']}, seed {result['seed']}")
        runs.setdefault(result["configuration"], {})[result["seed"]] = result
    refuse_twins(runs)
    return runs


def borrowed(results: pathlib.Path, suite: str) -> Runs:
    """What stands for a suite in the results of another: the same setting, on the same data."""
    if suite not in BORROWED:
        return {}
    lender, names = BORROWED[suite]
    return {name: by_seed for name, by_seed in load(results / lender).items() if name in names}


def refuse_twins(runs: Runs):
    """Two configurations with the same numbers: one was trained with a setting ignored."""
    seen: Dict[str, str] = {}
    for configuration, by_seed in runs.items():
        for seed, result in by_seed.items():
            numbers = json.dumps([seed, result["evaluated"]])
            twin = seen.setdefault(numbers, configuration)
            if twin != configuration:
                raise ValueError(f"{twin} and {configuration} have the same numbers with seed "
                                 f"{seed}, in every epoch: one of them is not what its name says")


def difference(runs: Runs, left: Tuple[str, str], right: Tuple[str, str], seed: int,
               epoch: str) -> float:
    values = [runs[configuration][seed][epoch][inference] for configuration, inference in (left, right)]
    return values[0] - values[1]


def missing(runs: Runs, comparison: Comparison, seeds: List[int]) -> str:
    """What is not there, in words; empty when all is."""
    parts = []
    for configuration in dict.fromkeys(name for name, _ in comparison.sides()):
        absent = [str(seed) for seed in seeds if seed not in runs.get(configuration, {})]
        if absent:
            parts.append(f"{configuration}: seed {', '.join(absent)} missing")
    return "; ".join(parts)


def compare(runs: Runs, comparison: Comparison, seeds: List[int], epoch: str, measure: Measure):
    def of(seed: int) -> float:
        whole = difference(runs, comparison.left, comparison.right, seed, epoch)
        return whole - difference(runs, *comparison.less, seed, epoch) if comparison.less else whole
    return estimate([measure.scale * of(seed) for seed in seeds])


def spelled(side: Tuple[str, str]) -> str:
    words = {ON: "on", OFF: "off", RECALIBRATED: "recalibrated"}
    return f"{side[0]} {words[side[1]]}"


def named(comparison: Comparison) -> str:
    pairs = [comparison.sides()[i:i + 2] for i in range(0, len(comparison.sides()), 2)]
    names = [" − ".join(spelled(side) for side in pair) for pair in pairs]
    return names[0] if len(names) == 1 else f"({names[0]}) − ({names[1]})"


def interval(found, measure: Measure) -> str:
    mean, low, high = (f"{value:+.{measure.digits}f}" for value in (found.mean, found.low, found.high))
    return f"{mean} [{low}, {high}]".replace("-", "−")


def judge(runs: Runs, claim: Claim, seeds: List[int], measure: Measure) -> List[str]:
    rows, verdicts = [], []
    for comparison in claim.comparisons:
        name = named(comparison)
        absent = missing(runs, comparison, seeds)
        if absent:
            verdicts.append("not judged")
            rows.append(f"| {name} | {WANTED[comparison.claimed]} | | | | not judged: {absent} |")
            continue
        last = compare(runs, comparison, seeds, "final", measure)
        best = compare(runs, comparison, seeds, "best", measure)
        verdicts.append(verdict(last, comparison.claimed))
        rows.append(f"| {name} | {WANTED[comparison.claimed]} | {last.n} | {interval(last, measure)} | "
                    f"{interval(best, measure)} | {verdicts[-1]} |")
    return [f"**({claim.number}) {overall(verdicts)}**: {claim.text}.", "",
            f"| difference | claimed, {measure.unit} | n | last epoch | best epochs | verdict |",
            "|---|---|---|---|---|---|", *rows, ""]


def further_table(runs: Runs, comparisons: List[Comparison], seeds: List[int],
                  measure: Measure) -> List[str]:
    rows = []
    for comparison in comparisons:
        if missing(runs, comparison, seeds):
            continue
        found = compare(runs, comparison, seeds, "final", measure)
        rows.append(f"| {named(comparison)} | {found.n} | {interval(found, measure)} |")
    if not rows:
        return []
    return ["Further differences, of which nothing is claimed:", "",
            f"| difference, {measure.unit} | n | last epoch |", "|---|---|---|", *rows, ""]


def spread(values: List[float], measure: Measure) -> str:
    if any(value is None for value in values):
        return ""
    written = [f"{measure.scale * sum(values) / len(values):.{measure.digits}f}"]
    if len(values) > 1:
        written.append(f"{measure.scale * deviation(values):.{measure.digits}f}")
    return " ± ".join(written)


def boundaries(result: dict, sums: bool) -> List[dict]:
    """The cuts, or the sums of tensor-parallel parts: never the exchange of a tied weight's gradients."""
    return [boundary for boundary in result["boundaries"]
            if boundary["name"] != "tied" and (boundary["name"] == "sums") == sums]


def total(results: List[dict], sums: bool, direction: str, kind: str) -> int:
    return sum(boundary[direction][kind] for result in results for boundary in boundaries(result, sums))


def bits(runs: Runs, name: str, sums: bool, direction: str) -> str:
    """On the wire, per fp32 element of the network's tensor: a learned map sends fewer elements."""
    results = list(runs[name].values())
    if not any(boundaries(result, sums) for result in results):
        return ""  # nothing crossed: a whole model on one machine
    whole = list(runs.get("none", runs[name]).values())
    raw = total(whole, sums, direction, "raw_bytes") / len(whole) * len(results)
    return f"{32 * total(results, sums, direction, 'wire_bytes') / raw:.2f}" if raw else ""


def error(results: List[dict], sums: bool, direction: str) -> str:
    errors = [boundary[direction]["relative_error"]
              for result in results for boundary in boundaries(result, sums)
              if boundary[direction]["relative_error"] is not None]
    return f"{sum(errors) / len(errors):.3f}" if errors else ""


def sent(runs: Runs, name: str, sums: bool) -> List[str]:
    """Bits per element and relative error, activations / gradients."""
    results = [runs[name][seed] for seed in sorted(runs[name])]
    return [" / ".join(filter(None, (bits(runs, name, sums, direction) for direction in DIRECTIONS))),
            " / ".join(filter(None, (error(results, sums, direction) for direction in DIRECTIONS)))]


def has_sums(runs: Runs) -> bool:
    return any(boundaries(result, True) for by_seed in runs.values() for result in by_seed.values())


def exchanged(runs: Runs, name: str) -> str:
    """What replicas sent: bits of a contribution and of a sum, per element, and all bytes of a run."""
    results = [result["replicas"] for result in runs[name].values()]
    sent = [[result[kind] for result in results if kind in result] for kind in ("contributions", "average")]
    bits_each = [f"{sum(r['wire_bits_per_element'] for r in of) / len(of):.3f}" for of in sent if of]
    megabytes = sum(r["wire_bytes"] for of in sent for r in of) / len(results) / 1e6
    return f"{' / '.join(bits_each)} | {megabytes:,.1f}"


def stashed(runs: Runs, name: str) -> str:
    """What blocks kept for backward passes: bits of an element, and relative error."""
    results = [result["stash"] for result in runs[name].values() if "stash" in result]
    if not results:
        return " | "
    bits_each = [r["wire_bits_per_element"] for r in results]
    errors = [r["relative_error"] for r in results if r["relative_error"] is not None]
    return f"{sum(bits_each) / len(bits_each):.2f} | " + (f"{sum(errors) / len(errors):.3f}" if errors else "")


def final_table(runs: Runs, measure: Measure) -> List[str]:
    recalibrated = [RECALIBRATED] if is_recalibrated(runs) else []
    heads = ["configuration", "seeds", "on", "off", *["recalibrated" for _ in recalibrated], "best on",
             "best off", "bits per element", "relative error"]
    kinds = [False] + ([True] if has_sums(runs) else [])
    if has_sums(runs):
        heads += ["bits per element of sums", "relative error of sums"]
    with_replicas = all("replicas" in result for by_seed in runs.values() for result in by_seed.values())
    if with_replicas:
        heads += ["bits of contributions / sums", "exchanged, MB"]
    with_stash = any("stash" in result for by_seed in runs.values() for result in by_seed.values())
    if with_stash:
        heads += ["bits of the stash", "its relative error"]
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, by_seed in runs.items():
        results = [by_seed[seed] for seed in sorted(by_seed)]
        cells = [spread([r["final"][inference] for r in results], measure)
                 for inference in (ON, OFF, *recalibrated)]
        cells += [spread([r["best"][inference] for r in results], measure) for inference in (ON, OFF)]
        cells += [cell for sums in kinds for cell in sent(runs, name, sums)]
        if with_replicas:
            cells.append(exchanged(runs, name))
        if with_stash:
            cells.append(stashed(runs, name))
        seeds = ", ".join(str(seed) for seed in sorted(by_seed))
        rows.append(f"| {name} | {seeds} | " + " | ".join(cells) + " |")
    return rows + [""]


def is_recalibrated(runs: Runs) -> bool:
    return any(result["final"].get(RECALIBRATED) is not None
               for by_seed in runs.values() for result in by_seed.values())


def gap_table(runs: Runs, measure: Measure) -> List[str]:
    """The gap between on and off, and how much of it the statistics of batch norm make."""
    kinds = [OFF] + ([RECALIBRATED] if is_recalibrated(runs) else [])
    rows = []
    for name, by_seed in runs.items():
        cannot_be_off = any(result["final"][OFF] is None for result in by_seed.values())
        if name.startswith("none") or cannot_be_off or len(by_seed) < 2:
            continue
        seeds = sorted(by_seed)
        cells = [interval(compare(runs, Comparison((name, ON), (name, right)), seeds, "final", measure),
                          measure) for right in kinds]
        rows.append(f"| {name} | {len(seeds)} | {' | '.join(cells)} |")
    if not rows:
        return []
    heads = ["on − off", "on − recalibrated"][:len(kinds)]
    return [f"| configuration | n | {' | '.join(heads)} |", "|---|---" + "|---" * len(kinds) + "|", *rows,
            ""]


def epochs_to(result: dict, target: float) -> float:
    """The epochs until the loss with codecs falls to the target, on straight lines between evaluations; NaN: it never does."""
    before = None
    for row in result["evaluated"]:
        here = (row["epoch"], row[ON])
        if here[1] <= target:
            if before is None:
                return here[0]
            return before[0] + (here[0] - before[0]) * (before[1] - target) / (before[1] - here[1])
        before = here
    return math.nan


def target_table(runs: Runs, target: float, measure: Measure) -> List[str]:
    """How long each configuration takes to a common target."""
    reached = {name: {seed: epochs_to(result, target) for seed, result in by_seed.items()} for name, by_seed in runs.items()}
    base = reached.get("none", {})
    rows = []
    for name, by_seed in reached.items():
        epochs, more = list(by_seed.values()), [value / base[seed] for seed, value in by_seed.items() if seed in base]
        cells = [f"{sum(values) / len(values):.2f}" if values and not any(map(math.isnan, values)) else "–"
                 for values in (epochs, more)]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return [f"| configuration | epochs to {target:g} {measure.unit} | times those of none |", "|---|---|---|", *rows, ""]


def machines(runs: Runs) -> str:
    """Where the runs were made and by which commits, one line."""
    commits: Dict[str, List[str]] = {}
    for by_seed in runs.values():
        for result in by_seed.values():
            p = result["provenance"]
            machine = (f"{p['cpu_model']} ({p['simd_target']}, {p['onednn_isa']}), {p['threads']} "
                       "threads")
            of_machine = commits.setdefault(machine, [])
            if p["commit"] not in of_machine:
                of_machine.append(p["commit"])
    return "Runs: " + "; ".join(f"{machine}, commit {', '.join(of_machine)}"
                                for machine, of_machine in commits.items()) + "."


def rows_of(sweep: pathlib.Path) -> List[str]:
    """The rows of a sweep's file: names that stand two blanks from the left."""
    return re.findall(r"^  ([^\s#]+):", sweep.read_text(), re.MULTILINE)


def in_order(runs: Runs, order: List[str]) -> Runs:
    known = {name: order.index(name) for name in runs if name in order}
    return {name: runs[name] for name in sorted(runs, key=lambda n: known.get(n, len(order)))}


def drawn(setting: str, runs: Runs, measure: Measure) -> str:
    series = [kind for kind in SERIES if kind.inference != RECALIBRATED or is_recalibrated(runs)]
    rows = []
    for name, by_seed in runs.items():
        results = [by_seed[seed] for seed in sorted(by_seed)]
        values = {
            kind.inference: [measure.scale * r["final"][kind.inference] for r in results
                             if r["final"][kind.inference] is not None] for kind in series}
        crossed = sent(runs, name, has_sums(runs))[0]
        rows.append(Row(name, values, f"{crossed} bits" if crossed else ""))
    return picture(f"Test {measure.name} after the last epoch: {setting}", rows, series, measure.sign)


def report(results: pathlib.Path, experiments: pathlib.Path, paper: str, seeds: List[int]) -> str:
    """What stands between a paper's markers; also draws RESULTS/PAPER/SUITE.svg."""
    lines: List[str] = []
    for suite, setting in SUITES[paper].items():
        measure = measure_of(f"{paper}/{suite}")
        own = load(results / paper / suite)
        if not own:
            continue
        runs = in_order({**borrowed(results, f"{paper}/{suite}"), **own},
                        rows_of(experiments / paper / suite / "sweep.yaml"))
        (results / paper / f"{suite}.svg").write_text(drawn(setting, runs, measure))
        lines += [f"### {paper}/{suite}: {setting}", "", machines(runs), "",
                  f"![{measure.name.capitalize()} of each configuration](results/{paper}/{suite}.svg)", "",
                  *final_table(runs, measure), *gap_table(runs, measure)]
        if f"{paper}/{suite}" in TARGETS:
            lines += target_table(runs, TARGETS[f"{paper}/{suite}"], measure)
        judged = seeds + MORE_SEEDS.get(f"{paper}/{suite}", [])
        for claim in CLAIMS:
            if f"{paper}/{suite}" in claim.suites:
                lines += judge(runs, claim, judged, measure)
        lines += further_table(runs, FURTHER.get(f"{paper}/{suite}", []), seeds, measure)
    return "\n".join(lines)


def markers(paper: str) -> Tuple[str, str]:
    return (f"<!-- {paper}: from here to its end written by experiments/judge.py -->",
            f"<!-- {paper}: end -->")


def replace_part(page: str, paper: str, part: str) -> str:
    begin, end = markers(paper)
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise ValueError(f"want one line {begin} and below it one line {end}")
    before, rest = page.split(begin)
    return f"{before}{begin}\n\n{part}\n{end}{rest.split(end)[1]}"


def main():
    here = pathlib.Path(__file__).resolve().parent
    docs = here.parent / "docs"
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--results", type=pathlib.Path, default=docs / "results")
    parser.add_argument("--page", type=pathlib.Path, default=docs / "results.md")
    parser.add_argument("--seeds", default="1 2 3", help="all of them are needed for a verdict")
    options = parser.parse_args()
    seeds = [int(seed) for seed in options.seeds.split()]
    page = options.page.read_text()
    for paper in SUITES:
        page = replace_part(page, paper, report(options.results, here, paper, seeds))
    options.page.write_text(page)


if __name__ == "__main__":
    main()

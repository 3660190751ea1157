#!/usr/bin/env python3
"""Whether a tune's choice is what training everything in full would have chosen.

usage: tune_check.py TUNE.json RESULTS... [--within 0.10] [--cost 0.20]

RESULTS are folders of complete runs of the same experiment, CONFIGURATION-seedN.json as run.sh leaves
them. A candidate is the configuration with its codecs; a lossless stage changes no number, and the
place of a quantiser's levels (zero=on_grid) is left aside. Time to the target is the first evaluated epoch whose
mean over the seeds reaches what `none` ends at, less the tune's max_loss, and holds it at the next, times
its steps, times the seconds of the candidate's step in the tune: accuracy does not depend on the link.
Exit code 1 where the choice takes more than the best by more than `within`, or cost more than `cost`.
"""

import argparse
import json
import pathlib
import sys
from typing import Dict, List, Optional, Tuple

LEFT_ASIDE = ("ef", "ef21", "aq_sgd", "fixed")  # configurations that remember, or have other data


def plain(codec: str) -> str:
    return codec.replace(", lossless=entropy", "").replace("zero=on_grid", "zero=free")


def pair(text: str) -> Tuple[str, str]:
    parts = [plain(part.strip()) for part in text.split("|")]
    return parts[0], parts[-1]


def load(folders: List[pathlib.Path]) -> Dict[Tuple[str, str], Dict[int, dict]]:
    """(activations' codec, gradients' codec) -> seed -> result; the first folder that has one counts."""
    found: Dict[Tuple[str, str], Dict[int, dict]] = {}
    for folder in folders:
        for path in sorted(folder.glob("*-seed*.json")):
            result = json.loads(path.read_text())
            if any(part in LEFT_ASIDE for part in result["configuration"].split("-")):
                continue
            cut = result["boundaries"][0]
            key = (plain(cut["activations"]["codec"]), plain(cut["gradients"]["codec"]))
            found.setdefault(key, {}).setdefault(result["seed"], result)
    return found


def mean_curve(by_seed: Dict[int, dict]) -> List[Tuple[int, float]]:
    """Evaluated epochs and the mean over the seeds, with the codecs: a fraction, or nats."""
    runs = list(by_seed.values())
    epochs = [one["epoch"] for one in runs[0]["evaluated"]]
    return [(epoch, sum(run["evaluated"][i]["compressed"] for run in runs) / len(runs))
            for i, epoch in enumerate(epochs)]


def reached(curve: List[Tuple[int, float]], target: float, is_loss: bool) -> Optional[int]:
    """The first evaluated epoch at the target whose next is there too; the last needs no next."""
    there = [value <= target if is_loss else value >= target for _, value in curve]
    for i, (epoch, _) in enumerate(curve):
        if there[i] and (i + 1 == len(curve) or there[i + 1]):
            return epoch
    return None


def times(tune: dict, results: Dict[Tuple[str, str], Dict[int, dict]]) -> Tuple[float, List[dict]]:
    """The target, and each candidate that was run in full: its end, and its seconds to the target or None."""
    is_loss = tune["measure"] == "loss"
    none = results[("none", "none")]
    target = mean_curve(none)[-1][1] + tune["task"]["max_loss"] * (1 if is_loss else -0.01)
    rows = []
    for candidate in tune["candidates"]:
        by_seed = results.get(pair(candidate["codecs"]))
        if by_seed is None:
            continue
        curve = mean_curve(by_seed)
        epoch = reached(curve, target, is_loss)
        steps = tune["experiment_steps"] / next(iter(by_seed.values()))["epochs"]
        rows.append({"name": candidate["name"], "seeds": len(by_seed), "end": curve[-1][1],
                     "seconds": None if epoch is None else epoch * steps * candidate["step_seconds"]})
    return target, rows


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("tune", type=pathlib.Path)
    parser.add_argument("results", type=pathlib.Path, nargs="+")
    parser.add_argument("--within", type=float, default=0.10)
    parser.add_argument("--cost", type=float, default=0.20)
    flags = parser.parse_args()
    tune = json.loads(flags.tune.read_text())
    target, rows = times(tune, load(flags.results))
    print(f"target {target:.4f}; {len(rows)} of {len(tune['candidates'])} candidates were run in full")
    never = float("inf")
    for row in sorted(rows, key=lambda row: never if row["seconds"] is None else row["seconds"]):
        shown = "never" if row["seconds"] is None else f"{row['seconds']:.0f} s"
        print(f"{'>' if row['name'] == tune['choice'] else ' '} {row['name']:<20} {row['end']:.4f} "
              f"({row['seeds']} seeds) {shown:>9}")
    seconds = {row["name"]: row["seconds"] for row in rows}
    best = min((value for value in seconds.values() if value is not None), default=None)
    choice = seconds.get(tune["choice"])
    if best is None or choice is None:
        print(f"the choice, {tune['choice']}, was not run in full or does not reach the target")
        return 1
    cost = tune["spent_steps"] / tune["exhaustive_steps"]
    print(f"the choice, {tune['choice']}, takes {choice / best:.3f} times the best, for {100 * cost:.1f} % of the steps "
          "of every candidate that was trained, in full")
    return 0 if choice <= (1 + flags.within) * best and cost <= flags.cost else 1


if __name__ == "__main__":
    sys.exit(main())

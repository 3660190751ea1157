"""What runs left on the disk, as DataFrames. docs/results_format.md says what each column is."""

import json
import pathlib
import re
import sqlite3
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

import pandas

DIRECTIONS = ("activations", "gradients")
KEYS = {
    "runs": ["run"],
    "epochs": ["run", "epoch"],
    "steps": ["run", "step"],
    "evaluations": ["run", "step"],
    "boundaries": ["run", "boundary", "direction"],
    "epoch_boundaries": ["run", "epoch", "boundary", "direction"],
    "step_boundaries": ["run", "step", "boundary", "direction"],
}


class Results(NamedTuple):
    """The tables of results.sqlite, sorted by their keys, runs in the order of the sweep.

    Without a sweep a run's `row` is its folder's name without "-seedN", and `position` its place among
    the folders by name.
    """

    runs: pandas.DataFrame
    epochs: pandas.DataFrame
    steps: pandas.DataFrame
    evaluations: pandas.DataFrame
    boundaries: pandas.DataFrame
    epoch_boundaries: pandas.DataFrame
    step_boundaries: pandas.DataFrame


def load(folder) -> Results:
    """Reads a sweep's folder by its results.sqlite; a run's folder, or one of several, by their files.

    Where files are read, columns for which no run has a value may be missing. FileNotFoundError if
    there is no run; sqlite3.Error and ValueError for what is broken.
    """
    folder = pathlib.Path(folder)
    database = folder / "results.sqlite"
    rows = _of_database(database) if database.is_file() else _of_folders(folder)
    tables = {name: pandas.DataFrame(rows[name]) for name in KEYS}
    for name, keys in KEYS.items():
        if not tables[name].empty:
            by = ["position"] if name == "runs" else keys
            tables[name] = tables[name].sort_values(by).reset_index(drop=True)
    return Results(**tables)


def _of_database(path: pathlib.Path) -> Dict[str, List[dict]]:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return {name: [dict(row) for row in connection.execute(f"SELECT * FROM {name}")] for name in KEYS}
    finally:
        connection.close()


def _of_folders(folder: pathlib.Path) -> Dict[str, List[dict]]:
    rows: Dict[str, List[dict]] = {name: [] for name in KEYS}
    for position, run in enumerate(_runs_below(folder)):
        _add(run, position, rows)
    return rows


def _runs_below(folder: pathlib.Path) -> List[pathlib.Path]:
    if (folder / "summary.json").is_file():
        return [folder]
    below = folder / "runs" if (folder / "runs").is_dir() else folder
    runs = sorted(path.parent for path in below.glob("*/summary.json"))
    if not runs:
        raise FileNotFoundError(f"{folder}: no run with a summary.json, nor in a folder below")
    return runs


def _add(folder: pathlib.Path, position: int, rows: Dict[str, List[dict]]):
    run = folder.resolve().name
    summary = json.loads((folder / "summary.json").read_text())
    rows["runs"].append({
        "run": run,
        "row": re.sub(r"-seed\d+$", "", run),
        "position": position,
        "experiment": (folder / "experiment.yaml").read_text(),
        **_flat(summary),
    })
    rows["boundaries"] += [{"run": run, **key, **fields} for key, fields in _directions(summary)]
    for entry in _entries(folder / "metrics.jsonl"):
        kind = entry.pop("type")
        if kind == "step":
            rows["steps"].append({"run": run, **_flat(entry)})
            continue
        del entry["time"]
        if kind == "evaluation":
            rows["evaluations"].append({"run": run, **_flat(entry)})
            continue
        rows["epochs"].append({"run": run, **_flat(entry)})
        rows["epoch_boundaries"] += [{"run": run, "epoch": entry["epoch"], **key, **fields}
                                     for key, fields in _directions(entry)]
    traffic = folder / "traffic.jsonl"
    if traffic.is_file():
        rows["step_boundaries"] += [{"run": run, **_flat(entry)} for entry in _entries(traffic)]


def _entries(path: pathlib.Path) -> Iterator[dict]:
    for number, line in enumerate(path.read_text().split("\n")[:-1], start=1):  # whole lines alone
        try:
            yield json.loads(line)
        except ValueError as error:
            raise ValueError(f"{path}:{number}: {error}") from error


def _directions(record: dict) -> Iterator[Tuple[dict, dict]]:
    for boundary in record["boundaries"]:
        for direction in DIRECTIONS:
            yield {"boundary": boundary["name"], "direction": direction}, _flat(boundary[direction])


def _flat(record: dict, above: str = "") -> dict:
    """Fields of fields under both names; lists and maps of names are left out, as in the database."""
    flat: Dict[str, Optional[object]] = {}
    for name, value in record.items():
        if value is None or isinstance(value, list) or name == "libraries":
            continue
        if isinstance(value, dict):
            flat.update(_flat(value, f"{above}{name}_"))
        else:
            flat[above + name] = int(value) if isinstance(value, bool) else value
    return flat

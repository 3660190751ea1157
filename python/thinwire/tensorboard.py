"""Runs as TensorBoard shows them."""

import pathlib

import pandas

from .results import load

SCALARS = {"steps": ("step", "step"), "evaluations": ("evaluation", "step"), "epochs": ("epoch", "epoch")}
NOT_DRAWN = ("run", "time", "step", "epoch", "samples")


def to_tensorboard(folder, logs) -> pathlib.Path:
    """Writes what load(folder) has as event files, logs/RUN for each run, and returns `logs`.

    Scalars of steps are step/loss, step/accuracy, ...; of evaluations after steps
    evaluation/test_compressed_loss, ...; of epochs epoch/train_loss, ...; of boundaries, by epoch,
    boundary/NAME/DIRECTION/wire_bytes, .... What has no value is left out. ImportError without the
    package tensorboard.
    """
    try:
        from tensorboard.summary import Writer  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        raise ImportError("to_tensorboard wants the package tensorboard: pip install "
                          "'thinwire[tensorboard]'") from error
    results = load(folder)
    logs = pathlib.Path(logs)
    for run in results.runs["run"]:
        writer = Writer(str(logs / run))
        try:
            for table, (tag, at) in SCALARS.items():
                _add(writer, _of(getattr(results, table), run), tag, at)
            boundaries = _of(results.epoch_boundaries, run)
            if not boundaries.empty:
                for (boundary, direction), rows in boundaries.groupby(["boundary", "direction"]):
                    _add(writer, rows, f"boundary/{boundary}/{direction}", "epoch")
        finally:
            writer.close()
    return logs


def _of(table: pandas.DataFrame, run: str) -> pandas.DataFrame:
    return table if table.empty else table[table["run"] == run]


def _add(writer, rows: pandas.DataFrame, tag: str, at: str):
    for name in rows.columns:
        if name in NOT_DRAWN:
            continue
        values = pandas.to_numeric(rows[name], errors="coerce")
        for index, value in values.dropna().items():
            writer.add_scalar(f"{tag}/{name}", float(value), int(rows.at[index, at]))

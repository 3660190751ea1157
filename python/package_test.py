#!/usr/bin/env python3
"""The package, and results.sqlite by a reader of its own, on a sweep of two rows and two seeds.

usage: package_test.py THINWIRE STAGE_SERVER PACKAGE
"""

import csv
import json
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import unittest

THINWIRE, STAGE_SERVER, PACKAGE = (pathlib.Path(argument).absolute() for argument in sys.argv[1:4])
sys.path.insert(0, str(PACKAGE.parent.parent))
import pandas  # noqa: E402
import thinwire  # noqa: E402

EXPERIMENT = """
model: {name: resnet8, width: 4}
data: {name: digits, batch_size: 64, limit: 320, test_limit: 100}
pipeline: {cuts: [layer1, layer2], stages: 2, threads: 1}
optimizer: {name: sgd, lr: 0.05}
epochs: 2
evaluation: {every: 2, every_steps: 4}
"""
SWEEP = """
experiment: base.yaml
rows:
  topk: {compression.activations: {codec: topk, ratio: 0.1}}
  none: {}
seeds: [1, 2]
"""
RUNS = ["topk-seed1", "none-seed1", "topk-seed2", "none-seed2"]
TABLES = ("runs", "epochs", "steps", "evaluations", "boundaries", "epoch_boundaries", "step_boundaries")
NOT_SCALARS = ("libraries", "devices", "stages", "epochs", "boundaries", "events", "compute")


def flat(record, above=""):
    """docs/results_format.md's rule, written again."""
    for name, value in record.items():
        if isinstance(value, dict) and name not in NOT_SCALARS:
            yield from flat(value, above + name + "_")
        elif not isinstance(value, (dict, list)):
            yield above + name, value


class PackageTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.work = pathlib.Path(cls.temporary.name)
        (cls.work / "base.yaml").write_text(EXPERIMENT)
        (cls.work / "sweep.yaml").write_text(SWEEP)
        cls.dir = cls.work / "out"
        cls.sweep()

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def sweep(cls):
        done = subprocess.run([THINWIRE, "sweep", cls.work / "sweep.yaml", "--out", cls.dir, "--stage_server",
                               STAGE_SERVER], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def rows(self, query, *parameters):
        connection = sqlite3.connect(self.dir / "results.sqlite")
        connection.row_factory = sqlite3.Row
        try:
            return [dict(row) for row in connection.execute(query, parameters)]
        finally:
            connection.close()

    def lines(self, run, kind):
        lines = map(json.loads, (self.dir / "runs" / run / "metrics.jsonl").read_text().splitlines())
        return [line for line in lines if line["type"] == kind]

    def summary(self, run):
        return json.loads((self.dir / "runs" / run / "summary.json").read_text())

    def assert_holds(self, row, record):
        """Every single value of the record stands in the row, and nothing else has one."""
        expected = dict(flat(record))
        for name, value in expected.items():
            if name != "type" and (value is not None or name in row):  # a message may be null as a whole
                self.assertIn(name, row)
                self.assertEqual(row[name], value, name)
        for name, value in row.items():
            if name not in expected and value is not None:
                self.assertIn(name, ("run", "row", "position", "experiment", "boundary", "direction", "epoch"))

    def test_runs_stand_in_the_order_of_the_sweep(self):
        rows = self.rows("SELECT * FROM runs ORDER BY position")
        self.assertEqual([row["run"] for row in rows], RUNS)
        for row in rows:
            self.assertEqual(row["row"], row["run"].split("-")[0])
            self.assertEqual(row["experiment"], (self.dir / "runs" / row["run"] / "experiment.yaml").read_text())
            self.assert_holds({k: v for k, v in row.items()}, self.summary(row["run"]))

    def test_steps_and_epochs_are_those_of_metrics_jsonl(self):
        for run in RUNS:
            for table, kind in (("steps", "step"), ("evaluations", "evaluation"), ("epochs", "epoch")):
                order = "epoch" if kind == "epoch" else "step"
                rows = self.rows(f"SELECT * FROM {table} WHERE run = ? ORDER BY {order}", run)
                lines = self.lines(run, kind)
                self.assertEqual(len(rows), len(lines))
                for row, line in zip(rows, lines):
                    if kind != "step":
                        del line["time"]
                    self.assert_holds(row, line)

    def test_boundaries_are_those_of_the_summary_and_of_each_epoch(self):
        for run in RUNS:
            records = [(None, self.summary(run))] + [(line["epoch"], line) for line in self.lines(run, "epoch")]
            for epoch, record in records:
                for boundary in record["boundaries"]:
                    for direction in ("activations", "gradients"):
                        key = (run, boundary["name"], direction) + (() if epoch is None else (epoch,))
                        where = "run = ? AND boundary = ? AND direction = ?"
                        [row] = self.rows(
                            f"SELECT * FROM boundaries WHERE {where}" if epoch is None else
                            f"SELECT * FROM epoch_boundaries WHERE {where} AND epoch = ?", *key)
                        self.assert_holds(row, boundary[direction])

    def test_what_steps_sent_is_what_the_run_sent(self):
        for run in RUNS:
            lines = list(map(json.loads, (self.dir / "runs" / run / "traffic.jsonl").read_text().splitlines()))
            key = ("step", "boundary", "direction")
            lines.sort(key=lambda line: [line[name] for name in key])
            rows = self.rows("SELECT * FROM step_boundaries WHERE run = ? ORDER BY step, boundary, direction", run)
            self.assertEqual(len(rows), len(lines))
            for row, line in zip(rows, lines):
                self.assert_holds(row, line)
            steps = {line["step"] for line in self.lines(run, "step")}
            for boundary in self.summary(run)["boundaries"]:
                for direction in ("activations", "gradients"):
                    [total] = self.rows("SELECT count(*) AS steps, sum(wire_bytes) AS wire_bytes, sum(raw_bytes) AS "
                                        "raw_bytes, sum(messages) AS messages FROM step_boundaries WHERE run = ? AND "
                                        "boundary = ? AND direction = ?", run, boundary["name"], direction)
                    self.assertEqual(total.pop("steps"), len(steps))
                    self.assertEqual(total, {name: boundary[direction][name] for name in total})

    def test_a_second_import_changes_nothing(self):
        tables = TABLES
        before = [self.rows(f"SELECT * FROM {table} ORDER BY 1, 2, 3, 4") for table in tables]
        self.assertIn("4 were there", self.sweep())
        self.assertEqual(before, [self.rows(f"SELECT * FROM {table} ORDER BY 1, 2, 3, 4") for table in tables])
        (self.dir / "results.sqlite").unlink()
        self.sweep()
        self.assertEqual(before, [self.rows(f"SELECT * FROM {table} ORDER BY 1, 2, 3, 4") for table in tables])

    def test_csv_has_what_the_tables_have(self):
        subprocess.run([THINWIRE, "sweep", "--export", "csv", self.dir], check=True, stdout=subprocess.DEVNULL)
        for table in TABLES:
            with open(self.dir / "csv" / f"{table}.csv", newline="", encoding="utf-8") as file:
                exported = list(csv.DictReader(file))
            rows = self.rows(f"SELECT * FROM {table}")
            self.assertEqual(len(exported), len(rows))
            key = [name for name in ("run", "epoch", "step", "boundary", "direction") if name in rows[0]]
            by_key = {tuple(str(row[name]) for name in key): row for row in rows}
            for line in exported:
                row = by_key[tuple(line[name] for name in key)]
                for name, value in row.items():
                    text = line[name]
                    self.assertEqual(float(text) if isinstance(value, float) else text,
                                     "" if value is None else value if isinstance(value, float) else str(value))

    def test_the_table_at_the_end_has_means_and_paired_differences(self):
        final = {run: self.summary(run)["epochs"][-1]["test"]["compressed"]["accuracy"] * 100 for run in RUNS}
        differences = [final[f"none-seed{seed}"] - final[f"topk-seed{seed}"] for seed in (1, 2)]
        mean = sum(differences) / 2
        half = 12.7062047 * abs(differences[0] - differences[1]) / 2  # t(1) * sd / sqrt(2)
        self.assertIn(f"{mean:+.2f} [{mean - half:+.2f}, {mean + half:+.2f}]", self.sweep())

    def test_load_gives_the_same_by_the_database_and_by_the_files(self):
        database = thinwire.load(self.dir)
        files = thinwire.load(self.dir / "runs")
        self.assertEqual(list(database.runs["run"]), RUNS)
        self.assertEqual(list(files.runs["run"]), sorted(RUNS))
        for name in TABLES[1:]:
            ours, theirs = (getattr(results, name).dropna(axis=1, how="all") for results in (database, files))
            pandas.testing.assert_frame_equal(ours, theirs[ours.columns], check_dtype=False)
        one = thinwire.load(self.dir / "runs" / RUNS[0])
        self.assertEqual(len(one.steps), 10)
        with self.assertRaises(FileNotFoundError):
            thinwire.load(self.work / "nothing")

    def test_run_trains_and_tells_what_was_refused(self):
        started = {"binary": THINWIRE, "arguments": ["--stage_server", STAGE_SERVER]}
        out = thinwire.run(self.work / "base.yaml", set={"epochs": 1, "compression.gradients": {"codec": "fp16"}},
                           out=self.work / "one", **started)
        results = thinwire.load(out)
        self.assertEqual(len(results.epochs), 1)
        self.assertEqual(set(results.boundaries[results.boundaries["direction"] == "gradients"]["codec"]), {"fp16"})
        with self.assertRaisesRegex(thinwire.RunError, "epochs: 0, want at least 1") as refused:
            thinwire.run(self.work / "base.yaml", set={"epochs": 0}, out=self.work / "none", **started)
        self.assertEqual(refused.exception.code, 2)

    def test_tensorboard_is_asked_for_by_name(self):
        try:
            import tensorboard  # noqa: F401
        except ImportError:
            with self.assertRaisesRegex(ImportError, r"pip install 'thinwire\[tensorboard\]'"):
                thinwire.to_tensorboard(self.dir, self.work / "logs")
        else:
            self.skipTest("tensorboard is installed: tensorboard_test.sh reads what it writes")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

#!/usr/bin/env python3
"""The statistics against published tables, the verdicts, and the page that judge.py writes."""

import json
import pathlib
import tempfile
import unittest
from xml.etree import ElementTree

import claims
import judge
import paired
import picture
from compact import compact, keep

EXPERIMENTS = pathlib.Path(judge.__file__).resolve().parent


class CriticalTest(unittest.TestCase):
    def test_agrees_with_the_tables_of_student(self):
        for df, t in ((1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (30, 2.042)):
            self.assertAlmostEqual(paired.critical(df), t, places=3)

    def test_nears_the_normal_distribution(self):
        self.assertAlmostEqual(paired.critical(10000), 1.960, places=3)

    def test_one_degree_of_freedom_is_cauchys(self):
        self.assertAlmostEqual(paired.within(1.0, 1), 0.5)


class EstimateTest(unittest.TestCase):
    def test_mean_and_interval(self):
        found = paired.estimate([1.0, 2.0, 3.0])  # sd 1, t 4.3027, over sqrt(3): 2.4841
        self.assertEqual((found.n, found.mean), (3, 2.0))
        self.assertAlmostEqual(found.low, 2 - 2.4841, places=4)
        self.assertAlmostEqual(found.high, 2 + 2.4841, places=4)

    def test_equal_differences_leave_no_doubt(self):
        found = paired.estimate([0.5, 0.5])
        self.assertEqual((found.low, found.high), (0.5, 0.5))

    def test_one_difference_has_no_interval(self):
        with self.assertRaises(ValueError):
            paired.estimate([1.0])


class VerdictTest(unittest.TestCase):
    def found(self, low, high):
        return paired.Estimate(3, (low + high) / 2, low, high)

    def test_no_difference_needs_the_interval_inside_the_margin(self):
        for low, high, says in ((-0.9, 0.9, "confirmed"), (-1.1, 0.9, "undecided"),
                                (-3, 3, "undecided"), (1.2, 2, "not confirmed"),
                                (-2, -1.2, "not confirmed")):
            self.assertEqual(paired.verdict(self.found(low, high), claims.SAME), says)

    def test_more_needs_the_interval_beyond_the_margin(self):
        for low, high, says in ((1.1, 5, "confirmed"), (0.2, 5, "undecided"),
                                (0.2, 0.9, "not confirmed"), (-5, -2, "not confirmed")):
            self.assertEqual(paired.verdict(self.found(low, high), claims.MORE), says)

    def test_no_more_is_one_sided(self):
        self.assertEqual(paired.verdict(self.found(-9, 0.5), claims.NO_MORE), "confirmed")
        self.assertEqual(paired.verdict(self.found(1.5, 9), claims.NO_MORE), "not confirmed")

    def test_all_parts_of_a_claim_have_to_hold(self):
        yes, no, maybe, absent = "confirmed", "not confirmed", "undecided", "not judged"
        self.assertEqual(paired.overall([yes, yes]), yes)
        self.assertEqual(paired.overall([yes, maybe]), maybe)
        self.assertEqual(paired.overall([maybe, no, yes]), no)
        self.assertEqual(paired.overall([no, absent]), absent)


def result(configuration, seed, on, off):
    accuracies = {claims.ON: on, claims.OFF: off, claims.RECALIBRATED: off}
    end = {"codec": "none", "raw_bytes": 32, "wire_bytes": 4, "relative_error": 0.5}
    return {
        "configuration": configuration, "seed": seed, "final": accuracies, "best": accuracies,
        "evaluated": [{"epoch": 1, **accuracies}],
        "boundaries": [{"name": "layer1", "activations": end, "gradients": end}],
        "provenance": {"commit": "abc", "cpu_model": "cpu", "simd_target": "simd",
                       "onednn_isa": "isa", "threads": 2},
    }


class PageTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.results = pathlib.Path(folder.name)
        self.narrow = self.results / "paper1" / "narrow"
        self.narrow.mkdir(parents=True)

    def write(self, configuration, seed, on, off=0.5):
        path = self.narrow / f"{configuration}-seed{seed}.json"
        path.write_text(json.dumps(result(configuration, seed, on, off)))

    def report(self, seeds=(1, 2, 3)):
        return judge.report(self.results, EXPERIMENTS, "paper1", list(seeds))

    def test_differences_are_paired_by_seed(self):
        for seed in (1, 2, 3):  # seeds differ by 10 points, pairs by 5 and no more
            for few, many in ((2, 8), (4, 8)):
                self.write(f"uniform-{few}-{many}", seed, 0.5 + 0.1 * seed + 0.01 * few)
                self.write(f"uniform-{many}-{few}", seed, 0.45 + 0.1 * seed + 0.01 * few)
        self.assertIn("**(i) confirmed**", self.report())
        self.assertIn("| uniform-2-8 on − uniform-8-2 on | more than 1 | 3 | +5.00 [+5.00, +5.00]",
                      self.report())

    def test_a_missing_seed_is_named_and_nothing_is_judged(self):
        self.write("uniform-2-8", 1, 0.6)
        self.write("uniform-8-2", 1, 0.5)
        self.write("uniform-8-2", 2, 0.5)
        page = self.report(seeds=(1, 2))
        self.assertIn("**(i) not judged**", page)
        self.assertIn("not judged: uniform-2-8: seed 2 missing |", page)

    def test_further_differences_have_no_verdict(self):
        for seed in (1, 2, 3):
            self.write("uniform-4-8", seed, 0.6)
            self.write("uniform-8-4-on-grid", seed, 0.5)
        self.assertIn("| uniform-4-8 on − uniform-8-4-on-grid on | 3 | +10.00 [+10.00, +10.00] |",
                      self.report())
        self.assertNotIn("Further", self.report(seeds=(1, 2, 3, 4)))

    def test_configurations_stand_in_the_order_of_the_table(self):
        for name, on in (("topk5", 0.55), ("none", 0.6), ("topk50", 0.65)):
            self.write(name, 1, on)
        page = self.report()
        self.assertLess(page.index("| none | 1 |"), page.index("| topk50 | 1 |"))
        self.assertLess(page.index("| topk50 | 1 |"), page.index("| topk5 | 1 |"))
        self.assertIn("| none | 1 | 60.00 | 50.00 | 50.00 | 60.00 | 50.00 | 4.00 / 4.00 | 0.500 / 0.500 |", page)

    def test_bits_are_of_the_whole_tensor_where_a_map_sends_fewer_elements(self):
        self.write("none", 1, 0.6)
        self.write("ae", 1, 0.5)
        path = self.narrow / "ae-seed1.json"
        short = json.loads(path.read_text())
        for direction in ("activations", "gradients"):
            short["boundaries"][0][direction].update(raw_bytes=4, wire_bytes=4)
        path.write_text(json.dumps(short))
        self.assertIn("| ae | 1 | 50.00 | 50.00 | 50.00 | 50.00 | 50.00 | 4.00 / 4.00 |", self.report())

    def test_a_codec_that_cannot_be_switched_off_has_no_gap(self):
        for seed in (1, 2):
            self.write("topk", seed, 0.6)
            self.write("ae", seed, 0.6 + 0.01 * seed, off=None)
        page = self.report()
        self.assertIn("| ae | 1, 2 | 61.50 ± 0.71 |  |  |", page)
        self.assertIn("| topk | 2 | ", page)
        self.assertNotIn("| ae | 2 | ", page)

    def test_of_paper2_nothing_is_judged(self):
        self.narrow = self.results / "paper2" / "narrow"
        self.narrow.mkdir(parents=True)
        self.write("topk", 1, 0.6)
        page = judge.report(self.results, EXPERIMENTS, "paper2", [1])
        self.assertIn("| topk | 1 | 60.00", page)
        self.assertNotIn("judged", page)
        self.assertTrue((self.results / "paper2" / "narrow.svg").exists())

    def test_losses_are_in_nats_and_a_gap_may_be_less_another(self):
        self.narrow = self.results / "language" / "fine_tune"
        self.narrow.mkdir(parents=True)
        for seed in (1, 2, 3):  # scratch loses 0.1 by TopK, fine-tuning 0.2, 0.3 and 0.4
            for name, loss in (("none", 1.5), ("topk10", 1.6 + 0.1 * seed),
                               ("scratch-none", 2.0), ("scratch-topk10", 2.1)):
                self.write(name, seed, loss + 0.001 * seed, off=loss)
        page = judge.report(self.results, EXPERIMENTS, "language", [1, 2, 3])
        self.assertIn("| (topk10 on − none on) − (scratch-topk10 on − scratch-none on) | more than 0.02 "
                      "| 3 | +0.200 [−0.048, +0.448] |", page)
        self.assertIn("| none | 1, 2, 3 | 1.502 ± 0.001 | 1.500 ± 0.000 | 1.500 ± 0.000 |", page)

    def test_what_replicas_sent_stands_beside_their_losses(self):
        self.narrow = self.results / "replicas" / "shakespeare"
        self.narrow.mkdir(parents=True)
        self.write("gather-ecsq-1", 1, 1.7)
        path = self.narrow / "gather-ecsq-1-seed1.json"
        found = json.loads(path.read_text())
        found["replicas"] = {"count": 4, "contributions": {"wire_bits_per_element": 1.25, "wire_bytes": 2_500_000}}
        path.write_text(json.dumps(found))
        page = judge.report(self.results, EXPERIMENTS, "replicas", [1])
        self.assertRegex(page, r"\| gather-ecsq-1 \| 1 \| 1\.700 .* \| 1\.250 \| 2\.5 \|")

    def test_epochs_to_a_target_lie_on_lines_between_evaluations(self):
        def result(*losses):
            return {"evaluated": [{"epoch": i + 1, judge.ON: loss} for i, loss in enumerate(losses)]}
        self.assertAlmostEqual(judge.epochs_to(result(2.4, 2.0, 1.6), 1.8), 2.5)
        self.assertEqual(judge.epochs_to(result(1.7), 1.8), 1)
        runs = {"none": {1: result(2.0, 1.6)}, "slow": {1: result(2.2, 2.0, 1.6)}, "never": {1: result(1.9)}}
        table = judge.target_table(runs, 1.8, judge.measure_of("replicas/shakespeare"))
        self.assertEqual(table[2:5], ["| none | 1.50 | 1.00 |", "| slow | 2.50 | 1.67 |", "| never | – | – |"])

    def test_sums_of_parts_have_columns_of_their_own(self):
        self.narrow = self.results / "tensor" / "sst2"
        self.narrow.mkdir(parents=True)
        self.write("sums-topk", 1, 0.7)
        path = self.narrow / "sums-topk-seed1.json"
        found = json.loads(path.read_text())
        sent = {"raw_bytes": 3200, "wire_bytes": 170, "relative_error": 0.25}
        found["boundaries"].append({"name": "sums", "activations": sent, "gradients": sent})
        cuts = judge.bits({"sums-topk": {1: found}}, "sums-topk", False, "activations")
        path.write_text(json.dumps(found))
        page = judge.report(self.results, EXPERIMENTS, "tensor", [1])
        self.assertRegex(page, rf"\| sums-topk \| 1 \| 70\.00 .* \| {cuts} / .* \| 1\.70 / 1\.70 \| 0\.250 / 0\.250 \|")

    def test_the_same_setting_need_not_be_run_again(self):
        for seed in (1, 2, 3):
            self.write("topk10", seed, 0.52 + 0.01 * seed)
            self.write("topk50", seed, 0.59 + 0.01 * seed)
        self.narrow = self.results / "frontier" / "narrow"
        self.narrow.mkdir(parents=True)
        self.assertEqual(judge.report(self.results, EXPERIMENTS, "frontier", [1, 2, 3]), "")
        for seed in (1, 2, 3):
            self.write("none", seed, 0.60 + 0.01 * seed)
            self.write("ecsq-1.25", seed, 0.598 + 0.01 * seed)
        page = judge.report(self.results, EXPERIMENTS, "frontier", [1, 2, 3])
        self.assertIn("**(ix) confirmed**", page)
        self.assertIn("| none on − ecsq-1.25 on | no more than 1 | 3 | +0.20 [+0.20, +0.20]", page)
        self.assertIn("topk10", page)
        self.assertNotIn("topk50", page)

    def test_what_is_borrowed_has_the_same_setting(self):
        for suite, (lender, _) in claims.BORROWED.items():
            settings = [[line for line in (EXPERIMENTS / of / "experiment.yaml").read_text().splitlines()
                         if not line.startswith(("#", "name:"))] for of in (suite, lender)]
            self.assertEqual(*settings)

    def test_configurations_with_the_same_numbers_are_refused(self):
        self.write("topk10", 1, 0.6)
        self.write("topk10", 2, 0.6)  # another seed may
        self.report()
        self.write("topk10-ef", 2, 0.6)
        with self.assertRaisesRegex(ValueError, "topk10-ef and topk10 .* seed 2"):
            self.report()

    def test_what_crosses_no_cut_has_no_bits(self):
        of_another = {**result("peft", 1, 0.6, 0.6), "boundaries": []}
        runs = {"none": {1: result("none", 1, 0.6, 0.5)}, "peft": {1: of_another}}
        self.assertEqual(judge.bits(runs, "none", False, "activations"), "4.00")
        self.assertEqual(judge.bits(runs, "peft", False, "activations"), "")

    def test_every_configuration_of_a_claim_is_one_that_is_run(self):
        known = set()
        for paper in claims.SUITES:
            for sweep in (EXPERIMENTS / paper).glob("*/sweep.yaml"):
                known |= {(f"{paper}/{sweep.parent.name}", row) for row in judge.rows_of(sweep)}
        known |= {(suite, name) for suite, (_, names) in claims.BORROWED.items() for name in names}
        known |= {(suite, name) for suite, names in claims.OF_OTHERS.items() for name in names}
        compared = [(suite, comparison) for claim in claims.CLAIMS for suite in claim.suites
                    for comparison in claim.comparisons]
        compared += [(suite, comparison) for suite, further in claims.FURTHER.items()
                     for comparison in further]
        for suite, comparison in compared:
            for name, _ in comparison.sides():
                self.assertIn((suite, name), known)

    def test_only_what_stands_between_the_markers_changes(self):
        begin, end = judge.markers("paper2")
        page = f"before\n{begin}\nold\n{end}\nafter\n"
        self.assertEqual(judge.replace_part(page, "paper2", "new"),
                         f"before\n{begin}\n\nnew\n{end}\nafter\n")
        with self.assertRaises(ValueError):
            judge.replace_part(page, "paper1", "new")


class PictureTest(unittest.TestCase):
    def drawn(self, values):
        series = [picture.Series("on", "with <codecs>", "#111111", "full"),
                  picture.Series("off", "without", "#222222", "hollow")]
        root = ElementTree.fromstring(
            picture.picture("title", [picture.Row("topk & ef", values, "4 bits")], series, " %"))
        circles = [e for e in root.iter("{http://www.w3.org/2000/svg}circle")]
        return root, circles[2:]  # after the legend's

    def test_each_seed_is_a_dot_and_each_mean_a_mark_in_scale(self):
        _, circles = self.drawn({"on": [70.0, 80.0], "off": [50.0]})
        of_seeds = [float(c.get("cx")) for c in circles if c.get("opacity")]
        means = [float(c.get("cx")) for c in circles if not c.get("opacity")]
        width = picture.WIDTH - picture.LEFT - picture.RIGHT
        for x, percent in zip(of_seeds + means, (70, 80, 50, 75, 50)):
            self.assertAlmostEqual(x, picture.LEFT + (percent - 50) / 30 * width, delta=0.1)
        self.assertEqual((len(of_seeds), len(means)), (3, 2))

    def test_what_was_not_measured_is_left_out(self):
        root, circles = self.drawn({"on": [60.0], "off": []})
        self.assertEqual(len(circles), 2)
        self.assertIn("topk & ef", [e.text for e in root.iter() if e.text])


class CompactTest(unittest.TestCase):
    def summary(self):
        def epoch(number, on, off):
            test = {"compressed": {"accuracy": on, "loss": -on, "perplexity": None}, "uncompressed": {"accuracy": off},
                    "uncompressed_recalibrated": None}
            return {"epoch": number, "train": {"accuracy": 0.5}, "test": test}
        keys = ("commit", "cpu_model", "simd_target", "onednn_isa", "threads", "microbatches",
                "train_samples", "test_samples", "started", "finished")
        return {"status": "completed", "seed": 7, "stages": 1, "boundaries": [],
                "provenance": {key: 1 for key in keys},
                "epochs": [epoch(1, 0.5, 0.4), epoch(2, 0.7, 0.2),
                           {"epoch": 3, "train": {"accuracy": 0.6}, "test": None},
                           epoch(4, 0.6, 0.3)]}

    def test_final_is_the_last_and_best_each_inferences_own(self):
        short = compact(self.summary(), "narrow", "topk10")
        self.assertEqual((short["seed"], short["epochs"]), (7, 4))
        self.assertEqual(short["final"]["compressed"], 0.6)
        self.assertEqual(short["best"]["compressed"], 0.7)
        self.assertEqual(short["best"]["uncompressed"], 0.4)
        self.assertIsNone(short["best"]["uncompressed_recalibrated"])
        self.assertEqual([row["epoch"] for row in short["evaluated"]], [1, 2, 4])

    def test_of_a_language_model_the_loss_is_kept_and_the_least_is_best(self):
        summary = self.summary()
        for epoch in summary["epochs"]:
            epoch["train"]["loss"] = 1
            for tested in (epoch["test"] or {}).values():
                if tested:
                    tested.update(loss=3 + tested["accuracy"], perplexity=9)
        short = compact(summary, "shakespeare", "topk10")
        self.assertEqual((short["measure"], short["final"]["compressed"]), ("loss", 3.6))
        self.assertEqual(short["best"]["compressed"], 3.5)

    def test_an_error_that_nobody_measured_stays_unknown(self):
        summary = self.summary()
        end = {"parameters": "fp16()", "raw_bytes": 4, "wire_bytes": 2, "wire_bits_per_element": 16,
               "relative_error": None}
        summary["boundaries"] = [{"name": "layer1", "activations": end, "gradients": end}]
        short = compact(summary, "narrow", "fp16")
        self.assertIsNone(short["boundaries"][0]["activations"]["relative_error"])
        self.assertEqual(judge.error([short], False, "activations"), "")

    def test_runs_of_a_sweep_are_kept_once_they_are_completed(self):
        with tempfile.TemporaryDirectory() as folder:
            run, output = pathlib.Path(folder, "runs", "topk10-seed7"), pathlib.Path(folder, "kept", "topk10-seed7.json")
            run.mkdir(parents=True)
            self.assertEqual(keep(run, "paper1/narrow", output), "has not ended")
            summary = self.summary()
            summary["status"] = "interrupted"
            (run / "summary.json").write_text(json.dumps(summary))
            self.assertEqual(keep(run, "paper1/narrow", output), "is interrupted, want completed")
            self.assertFalse(output.exists())
            (run / "summary.json").write_text(json.dumps(self.summary()))
            self.assertIsNone(keep(run, "paper1/narrow", output))
            kept = json.loads(output.read_text())
            self.assertEqual((kept["suite"], kept["configuration"], kept["seed"]), ("narrow", "topk10", 7))


if __name__ == "__main__":
    unittest.main()

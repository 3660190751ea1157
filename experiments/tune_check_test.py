#!/usr/bin/env python3
"""tune_check.py on made-up results whose best candidate is known."""

import unittest

import tune_check


def result(activations, gradients, values, epochs=2):
    return {"epochs": epochs, "boundaries": [{"activations": {"codec": activations}, "gradients": {"codec": gradients}}],
            "evaluated": [{"epoch": i + 1, "compressed": value} for i, value in enumerate(values)]}


def tune(**steps):
    return {"measure": "accuracy", "task": {"max_loss": 1.0}, "experiment_steps": 100, "choice": "",
            "candidates": [{"name": name, "codecs": codecs, "step_seconds": seconds}
                           for name, (codecs, seconds) in steps.items()]}


class TuneCheckTest(unittest.TestCase):
    def test_the_first_epoch_that_holds_the_target_counts(self):
        self.assertEqual(tune_check.reached([(1, 0.5), (2, 0.6), (3, 0.7)], 0.6, False), 2)
        self.assertEqual(tune_check.reached([(1, 0.6), (2, 0.5), (3, 0.7)], 0.6, False), 3)
        self.assertIsNone(tune_check.reached([(1, 0.5)], 0.6, False))
        self.assertEqual(tune_check.reached([(1, 2.0), (2, 1.5)], 1.5, True), 2)

    def test_times_are_steps_by_the_seconds_of_the_link_and_never_is_said(self):
        results = {("none", "none"): {1: result("none", "none", [0.5, 0.79]), 2: result("none", "none", [0.5, 0.81])},
                   ("fp8", "fp16"): {1: result("fp8", "fp16", [0.795, 0.8])},
                   ("topk", "topk"): {1: result("topk", "topk", [0.3, 0.4])}}
        target, rows = tune_check.times(
            tune(none=("none", 1.0), a=("fp8, lossless=entropy | fp16", 0.5), b=("topk", 0.1), c=("unknown", 0.1)), results)
        self.assertAlmostEqual(target, 0.79)
        self.assertEqual([(row["name"], row["seconds"]) for row in rows], [("none", 100.0), ("a", 25.0), ("b", None)])

    def test_of_one_codec_both_directions_are_meant(self):
        self.assertEqual(tune_check.pair("fp8"), ("fp8", "fp8"))
        self.assertEqual(tune_check.pair("u(zero=on_grid, lossless=entropy) | g"), ("u(zero=free)", "g"))


if __name__ == "__main__":
    unittest.main()

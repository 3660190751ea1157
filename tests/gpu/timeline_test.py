#!/usr/bin/env python3
"""What timeline.py says of a step."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import timeline  # noqa: E402
from session import Failed  # noqa: E402

# Three ends of losses, 1 ms apart; between the second and the third, in ns, two kernels that overlap
# for 50 us, and a copy.
LINES = """\
K 0 10000 7 1 AddUpLosses
K 990000 1000000 7 1 AddUpLosses
K 1100000 1300000 7 64 a<float, 4>
K 1250000 1400000 8 64 b
C 1500000 1600000 7 4096 copy
K 1990000 2000000 7 1 AddUpLosses
K 2990000 3000000 7 1 AddUpLosses
a line that is no record
"""


class TimelineTest(unittest.TestCase):
    def read(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.txt")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return timeline.read(path)

    def test_a_step_is_what_lies_between_two_losses(self):
        step = timeline.last_step(self.read(LINES))
        self.assertAlmostEqual(step.total, 1.0)
        self.assertAlmostEqual(step.busy, 0.2 + 0.1 + 0.1 + 0.01)
        self.assertEqual(step.kernels["a<float, 4>"], (1, 0.2))
        self.assertEqual(step.kernels["copy"], (1, 0.1))

    def test_the_table_has_the_longest_first(self):
        rows = timeline.table(timeline.last_step(self.read(LINES))).splitlines()[2:]
        self.assertEqual([row.split("|")[2].strip() for row in rows], ["1", "1", "1", "1"])
        self.assertIn("20.0 %", rows[0])

    def test_kernels_of_a_trace_lie_within_their_steps(self):
        def event(name, category, step, begin, duration):
            return {"ph": "X", "name": name, "cat": category, "ts": begin, "dur": duration,
                    "args": {"step": step}}

        events = [{"ph": "M", "name": "process_name"}, event("step", "step", 3, 0, 1000),
                  event("step", "step", 4, 1000, 1000), event("kernel a", "kernel", 3, 10, 20),
                  event("kernel b", "kernel", 3, 30, 20)]
        with self.assertRaisesRegex(Failed, "step 4 has no kernel, the trace has 2"):
            timeline.check_slices(events, (3, 4))
        events.append(event("kernel a", "kernel", 4, 1900, 190))
        self.assertEqual(timeline.check_slices(events, (3, 4)), 1.5)
        events.append(event("kernel late", "kernel", 4, 5000, 20))
        with self.assertRaisesRegex(Failed, "kernel late ran from 4000 to 4020 us of step 4"):
            timeline.check_slices(events, (3, 4))

    def test_too_few_steps_are_said(self):
        with self.assertRaisesRegex(ValueError, "1 steps, want 3"):
            timeline.last_step(self.read(LINES.splitlines()[0] + "\n"))


if __name__ == "__main__":
    unittest.main()

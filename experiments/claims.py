"""What is claimed of the suites, by the papers, and how large a difference has to be.

Fixed before the runs. "On" is the accuracy with the codecs at inference, "off" without them,
"recalibrated" without them and with batch norm statistics re-estimated. Differences are in points.
"""

import math
from typing import List, NamedTuple, Optional, Tuple

from paired import Region

ON, OFF, RECALIBRATED = "compressed", "uncompressed", "uncompressed_recalibrated"
MARGIN = 1.0  # points
MORE = Region(MARGIN, math.inf)
NO_MORE = Region(-math.inf, MARGIN)
SAME = Region(-MARGIN, MARGIN)
GAP = Region(7 - MARGIN, 15 + MARGIN)  # the paper's 7 to 15 points
WANTED = {
    MORE: "more than 1",
    NO_MORE: "no more than 1",
    SAME: "between −1 and 1",
    GAP: "7 to 15, give or take 1",
}

SUITES = {  # by paper, in the order of their tables; of paper2's nothing is claimed in numbers
    "paper1": {
        "full": "width 64, 100 epochs, the paper's setting",
        "narrow": "width 16, 5 epochs",
        "aq_sgd": "width 16, 10,000 images, 20 epochs",
    },
    "paper2": {
        "narrow": "width 16, 5 epochs",
    },
}


class Comparison(NamedTuple):
    """(configuration, inference) minus (configuration, inference), and what is claimed of it, if anything."""

    left: Tuple[str, str]
    right: Tuple[str, str]
    claimed: Optional[Region] = None


class Claim(NamedTuple):
    number: str
    text: str
    suites: Tuple[str, ...]
    comparisons: List[Comparison]


FULL_AND_NARROW = ("paper1/full", "paper1/narrow")
FEEDBACKS = ("topk10-ef", "topk10-ef21", "topk10-ef21-exact")

CLAIMS = [
    Claim("i", "gradients need milder compression than activations: few bits for activations and "
          "many for gradients beat the reverse", FULL_AND_NARROW,
          [Comparison(("uniform-2-8", ON), ("uniform-8-2", ON), MORE),
           Comparison(("uniform-4-8", ON), ("uniform-8-4", ON), MORE)]),
    Claim("ii", "TopK of 50 to 10 % stays near the baseline, 5 % is clearly lower",
          FULL_AND_NARROW,
          [Comparison(("none", ON), ("topk50", ON), NO_MORE),
           Comparison(("none", ON), ("topk10", ON), NO_MORE),
           Comparison(("none", ON), ("topk5", ON), MORE)]),
    Claim("iii", "a network trained through TopK needs it at inference: on is 7 to 15 points above "
          "off", FULL_AND_NARROW,
          [Comparison((name, ON), (name, OFF), GAP) for name in ("topk50", "topk10", "topk5")]),
    Claim("iv", "EF and EF21 gain nothing with compression at inference, but nearly close the gap "
          "between on and off", FULL_AND_NARROW,
          [Comparison((name, ON), ("topk10", ON), NO_MORE) for name in FEEDBACKS]
          + [Comparison((name, ON), (name, OFF), SAME) for name in FEEDBACKS]),
    Claim("v", "AQ-SGD with TopK 30 % stays near the baseline, 10 % is clearly worse",
          ("paper1/aq_sgd",),
          [Comparison(("none", ON), ("topk30", ON), NO_MORE),
           Comparison(("none", ON), ("topk10", ON), MORE),
           Comparison(("none-augmented", ON), ("topk30-augmented", ON), NO_MORE),
           Comparison(("none-augmented", ON), ("topk10-augmented", ON), MORE)]),
]

# By suite: what nobody claimed, for the words around the tables. No verdict.
FURTHER = {
    "paper1/narrow": [
        Comparison(("uniform-8-4-on-grid", ON), ("uniform-8-4", ON)),
        Comparison(("uniform-4-8", ON), ("uniform-8-4-on-grid", ON)),
        Comparison(("none", ON), ("uniform-4-8", ON)),
        Comparison(("none", ON), ("uniform-8-4", ON)),
        Comparison(("none", ON), ("uniform-8-4-on-grid", ON)),
        Comparison(("topk10", RECALIBRATED), ("topk10", OFF)),
    ] + [Comparison((name, how), ("topk10", how))
         for how in (OFF, RECALIBRATED) for name in FEEDBACKS],
}

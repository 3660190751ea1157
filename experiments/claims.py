"""What is claimed of the suites, by the papers, and how large a difference has to be.

Fixed before the runs. "On" is the accuracy, or the loss, with the codecs at inference, "off" without
them, "recalibrated" without them and with batch norm statistics re-estimated. Differences are in
points, or in nats.
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
NATS = 0.02
MORE_LOSS = Region(NATS, math.inf)
NO_MORE_LOSS = Region(-math.inf, NATS)
WITHIN_3_PERCENT = Region(-math.inf, 0.05)  # of about 1.63 nats
WITHIN_1_PERCENT = Region(-math.inf, 0.0164)  # of about 1.64 nats
ABOVE_ZERO = Region(0, math.inf)
NO_MORE_THAN_A_HUNDREDTH = Region(-math.inf, 0.01)
NO_MORE_THAN_HALF = Region(-math.inf, 0.5)
WANTED = {
    MORE: "more than 1",
    NO_MORE: "no more than 1",
    SAME: "between −1 and 1",
    GAP: "7 to 15, give or take 1",
    MORE_LOSS: "more than 0.02",
    NO_MORE_LOSS: "no more than 0.02",
    WITHIN_3_PERCENT: "no more than 0.05",
    WITHIN_1_PERCENT: "no more than 0.0164",
    ABOVE_ZERO: "more than 0",
    NO_MORE_THAN_A_HUNDREDTH: "no more than 0.01",
    NO_MORE_THAN_HALF: "no more than 0.5",
}


class Measure(NamedTuple):
    """What a suite's results are, and how they are written."""

    name: str
    scale: float  # of what is written to what a result holds
    unit: str  # of a difference
    sign: str  # behind a value on an axis
    digits: int


ACCURACY = Measure("accuracy", 100, "points", " %", 2)
LOSS = Measure("loss", 1, "nats", "", 3)
LOSSES = ("language/shakespeare", "language/fine_tune", "language/subspaces", "replicas/shakespeare",
          "memory/shakespeare", "pretrained/smollm2")


def measure_of(suite: str) -> Measure:
    """What the results of PAPER/SUITE are."""
    return LOSS if suite in LOSSES else ACCURACY


SUITES = {  # by paper, in the order of their tables; of paper2's nothing is claimed in numbers
    "paper1": {
        "full": "width 64, 100 epochs, the paper's setting",
        "narrow": "width 16, 5 epochs",
        "aq_sgd": "width 16, 10,000 images, 20 epochs",
    },
    "paper2": {
        "narrow": "width 16, 5 epochs",
    },
    "language": {
        "shakespeare": "from scratch, characters, 2000 steps",
        "fine_tune": "from WikiText-2 to Tiny Shakespeare, bytes, 1000 steps",
        "subspaces": "layers at the cuts, WikiText-2, bytes, Muon, 1000 steps",
    },
    "frontier": {
        "held_out": "width 16, 40,000 images, 5 epochs, judged by 10,000 held out",
        "narrow": "width 16, 5 epochs",
    },
    "replicas": {
        "shakespeare": "four replicas, from scratch, characters, 2000 steps of 48 windows",
        "resnet18": "four replicas of a ResNet-18 of width 16, CIFAR-10, 5 epochs of steps of 100 images",
    },
    "memory": {
        "shakespeare": "a small GPT-2, from scratch, characters, 2000 steps",
        "resnet18": "a ResNet-18 of width 16, CIFAR-10, 5 epochs",
    },
    "tensor": {
        "sst2": "a BERT of four blocks of width 256, 4,800 sentences of SST-2, 2 epochs, judged by 3,000 others",
        "mrpc": "the same BERT, 2,400 pairs of MRPC, 4 epochs, judged by 1,200 others, of which 70.6 % are paraphrases",
        "vit": "a ViT of four blocks of width 128, 10,000 images of CIFAR-10, 5 epochs",
    },
    "pretrained": {
        "smollm2": "an adapter of SmolLM2-135M-Instruct, Tiny Shakespeare, 40 steps of 512 tokens, judged by 4,096",
    },
}

# By suite: a loss that its configurations are to reach, and soon.
TARGETS = {"replicas/shakespeare": 1.8}

# By suite: seeds beside the first three, run because these left claims undecided. Verdicts are of all.
MORE_SEEDS = {"tensor/sst2": [4, 5, 6]}

# Results of another suite of the same setting, which need no runs of their own.
BORROWED = {"frontier/narrow": ("paper1/narrow", ("topk10", "topk5"))}

# Results of other programs, which no sweep has.
OF_OTHERS = {"pretrained/smollm2": ("peft",)}


class Comparison(NamedTuple):
    """(configuration, inference) minus (configuration, inference), and what is claimed of it, if anything.

    `less`: another such difference that is taken from it.
    """

    left: Tuple[str, str]
    right: Tuple[str, str]
    claimed: Optional[Region] = None
    less: Optional[Tuple[Tuple[str, str], Tuple[str, str]]] = None

    def sides(self) -> List[Tuple[str, str]]:
        return [self.left, self.right, *(self.less or ())]


class Claim(NamedTuple):
    number: str
    text: str
    suites: Tuple[str, ...]
    comparisons: List[Comparison]


FRONTIER = ("frontier/narrow",)
FULL_AND_NARROW = ("paper1/full", "paper1/narrow")
FINE_TUNE = ("language/fine_tune",)
SUBSPACES = ("language/subspaces",)
REPLICAS = ("replicas/shakespeare",)
REPLICAS_OF_IMAGES = ("replicas/resnet18",)
SUMS = ("tensor/sst2",)
SUMS_OF_PAIRS = ("tensor/mrpc",)
SUMS_OF_IMAGES = ("tensor/vit",)
PRETRAINED = ("pretrained/smollm2",)
RATIOS = (4, 8, 16, 32, 64, 128)
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
    Claim("vi", "fine-tuning stands TopK 50 %; from 20 % on the loss rises", FINE_TUNE,
          [Comparison(("topk50", ON), ("none", ON), NO_MORE_LOSS),
           Comparison(("topk20", ON), ("none", ON), MORE_LOSS),
           Comparison(("topk10", ON), ("none", ON), MORE_LOSS)]),
    Claim("vii", "fine-tuning suffers more from TopK than training from scratch does", FINE_TUNE,
          [Comparison((name, ON), ("none", ON), MORE_LOSS,
                      ((f"scratch-{name}", ON), ("scratch-none", ON)))
           for name in ("topk50", "topk20", "topk10")]),
    Claim("viii", "gradients that choose indices of their own do worse in fine-tuning than those that "
          "share the activations'", FINE_TUNE,
          [Comparison((f"{name}{scope}", ON), (f"{name}-shared{scope}", ON), MORE_LOSS)
           for scope in ("", "-sample") for name in ("topk20", "topk10")]),
    Claim("x", "learned subspaces (arXiv 2606.05484) take 4 to 16 times fewer bytes and lose at most 3 % of the loss",
          SUBSPACES,
          [Comparison((f"learned_subspace-{ratio}", ON), ("none", ON), WITHIN_3_PERCENT)
           for ratio in (4, 8, 16)]),
    Claim("xi", "one fixed subspace (arXiv 2506.01260) loses more at equal tokens, says the same paper", SUBSPACES,
          [Comparison((f"subspace-{ratio}", ON), (f"learned_subspace-{ratio}", ON), MORE_LOSS)
           for ratio in (4, 8, 16)]),
    Claim("xii", "a residual bottleneck (arXiv 2604.11947) takes 128 times fewer bytes without significant loss",
          SUBSPACES,
          [Comparison(("residual-128", ON), ("none", ON), NO_MORE_LOSS)]),
    Claim("xiii", "local steps lose at most 1 % of the loss of an exchange every step, at equal tokens (DiLoCo, arXiv 2311.08105)",
          REPLICAS, [Comparison((name, ON), ("none", ON), WITHIN_1_PERCENT) for name in ("local-16", "local-64")]),
    Claim("xiv", "the 64 largest of each 4096 in two bits lose no more than exact local steps (SparseLoCo, arXiv 2508.15706)",
          REPLICAS, [Comparison((f"local-{every}-sparse", ON), (f"local-{every}", ON), NO_MORE_LOSS) for every in (16, 64)]),
    Claim("xv", "two bits with error feedback cost local steps of AdamW something (MuLoCo, arXiv 2505.23725)",
          REPLICAS, [Comparison((f"local-{every}-ecsq-2", ON), (f"local-{every}", ON), MORE_LOSS) for every in (16, 64)]),
    Claim("xvi", "compressed cuts and compressed replicas together lose no more than the sum of both", REPLICAS,
          [Comparison((f"cuts-4-8-{name}", ON), ("cuts-4-8", ON), NO_MORE_LOSS, ((name, ON), ("none", ON)))
           for name in ("ecsq-2", "local-16-ecsq-2")]),
    Claim("xvii", "exact contributions of the last stages lose less than compressed ones (Optimus-CC, arXiv 2301.09830)",
          REPLICAS, [Comparison(("gather-ecsq-1", ON), ("gather-ecsq-1-selected", ON), ABOVE_ZERO)]),
    Claim("xviii", "at equal bytes ecsq loses less than topk and low_rank with error feedback, every step", REPLICAS,
          [Comparison((name, ON), ("gather-ecsq-1", ON), ABOVE_ZERO)
           for name in ("gather-topk3-ef", "gather-low_rank4-ef")]),
    Claim("xix", "of partial sums' codecs at equal bytes learned encoders stay near the baseline (arXiv 2301.02654)", SUMS,
          [Comparison(("none", ON), ("results-encoder", ON), NO_MORE)]),
    Claim("xx", "TopK and random K of partial sums lose clearly at equal bytes (the same paper)", SUMS,
          [Comparison(("none", ON), (name, ON), MORE) for name in ("results-topk", "results-randomk")]),
    Claim("xxi", "early layers are more sensitive: compressing the sums of all layers loses more than those of the later half "
          "(the same paper)", SUMS,
          [Comparison(("sums-topk", ON), ("all-topk", ON), ABOVE_ZERO)]),
    Claim("xxii", "ecsq of 2 bits in both directions of all sums stays near the baseline, TopK of as many bytes does not",
          SUMS + SUMS_OF_PAIRS + SUMS_OF_IMAGES,
          [Comparison(("none", ON), ("all-ecsq-2", ON), NO_MORE), Comparison(("none", ON), ("all-topk", ON), MORE)]),
    Claim("xxiii", "an adapter trained through 2 bits, the mean of both directions, ends within 0.02 of peft's without codecs",
          PRETRAINED, [Comparison(("ecsq-2", OFF), ("peft", OFF), NO_MORE_LOSS)]),
    Claim("xxiv", "with these codecs it does so, too", PRETRAINED, [Comparison(("ecsq-2", ON), ("peft", OFF), NO_MORE_LOSS)]),
    Claim("xxv", "replicas of a ResNet stay near exact exchanges: with two bits every step, and with 16 local steps, exact or of two "
          "bits", REPLICAS_OF_IMAGES,
          [Comparison(("none", ON), (name, ON), NO_MORE) for name in ("ecsq-2", "local-16", "local-16-ecsq-2")]),
    Claim("xxvi", "the 64 largest of each 4096 in two bits lose no more than exact local steps of a ResNet (SparseLoCo, "
          "arXiv 2508.15706)", REPLICAS_OF_IMAGES,
          [Comparison(("local-16", ON), ("local-16-sparse", ON), NO_MORE)]),
    Claim("xxvii", "compressed cuts and compressed replicas of a ResNet together lose no more than the sum of both", REPLICAS_OF_IMAGES,
          [Comparison(("cuts-4-8", ON), ("cuts-4-8-local-16-ecsq-2", ON), NO_MORE, (("none", ON), ("local-16-ecsq-2", ON)))]),
    Claim("xxviii", "a stash of 4 bits costs a small GPT-2 at most a hundredth of a nat", ("memory/shakespeare",),
          [Comparison(("stash-4", ON), ("none", ON), NO_MORE_THAN_A_HUNDREDTH)]),
    Claim("xxix", "a stash of 4 bits costs a ResNet at most half a point", ("memory/resnet18",),
          [Comparison(("none", ON), ("stash-4", ON), NO_MORE_THAN_HALF)]),
    Claim("xxx", "TopK of a ViT's partial sums loses clearly, though of results of the later half only", SUMS_OF_IMAGES,
          [Comparison(("none", ON), ("results-topk", ON), MORE)]),
    Claim("xxxi", "(xxiii) holds with the gradients coded token by token, at rates that another seed has chosen", PRETRAINED,
          [Comparison(("ecsq-2-token", OFF), ("peft", OFF), NO_MORE_LOSS)]),
    Claim("xxxii", "a stash of 5 bits in groups of 256 costs a small GPT-2 at most a hundredth of a nat", ("memory/shakespeare",),
          [Comparison(("stash-5", ON), ("none", ON), NO_MORE_THAN_A_HUNDREDTH)]),
    Claim("xxxiii", "a stash of 5 bits in groups of 256 costs a ResNet at most half a point", ("memory/resnet18",),
          [Comparison(("none", ON), ("stash-5", ON), NO_MORE_THAN_HALF)]),
    Claim("ix", "1.25 bits, the mean of both directions, stay near the baseline", FRONTIER,
          [Comparison(("none", ON), ("ecsq-1.25", ON), NO_MORE)]),
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
    "language/shakespeare": [
        Comparison((name, how), ("none", how)) for how in (ON, OFF)
        for name in ("topk10", "topk10-shared", "uniform-8-8", "uniform-4-8", "uniform-8-4",
                     "principal-0.18-0.7", "principal-0.35-1")
    ] + [Comparison(("aq_sgd-4-8", ON), ("none-fixed", ON)),
         Comparison(("topk10", ON), ("topk10-shared", ON)),
         Comparison(("uniform-8-4", ON), ("uniform-4-8", ON))],
    "language/fine_tune": [
        Comparison((f"{start}{name}-sample", ON), (f"{start}{name}", ON))
        for start in ("", "scratch-") for name in ("topk50", "topk20", "topk10")
    ] + [Comparison((name, how), ("none", how)) for how in (ON, OFF)
         for name in ("principal-0.18-0.7", "principal-0.35-1", "ecsq-0.35-1")
         ] + [Comparison(("aq_sgd-1-1", ON), ("none-fixed", ON))],
    "frontier/narrow": [
        Comparison((name, how), ("none", how)) for how in (ON, OFF)
        for name in ("ecsq-2", "ecsq-1.5", "ecsq-1.25", "ecsq-1", "uniform-2")],
    "replicas/shakespeare": [
        Comparison((name, ON), ("none", ON))
        for name in ("uniform-8", "ecsq-2", "gather-ecsq-1", "gather-ecsq-1-ef", "local-16-ecsq-2", "local-64-ecsq-2",
                     "cuts-4-8")],
    "replicas/resnet18": [
        Comparison(("none", ON), (name, ON)) for name in ("cuts-4-8", "local-16-sparse", "cuts-4-8-local-16-ecsq-2")],
    "memory/shakespeare": [Comparison((name, ON), ("none", ON)) for name in ("stash-4-nearest", "stash-2")],
    "memory/resnet18": [Comparison(("none", ON), (name, ON)) for name in ("stash-4-nearest", "stash-2")],
    "tensor/sst2": [
        Comparison(("none", ON), (name, ON)) for name in ("results-ecsq-2", "sums-ecsq-2", "sums-topk", "cut-ecsq-2", "cut-topk")
    ] + [Comparison((f"cut-{name}", ON), (f"all-{name}", ON)) for name in ("ecsq-2", "topk")],
    "pretrained/smollm2": [Comparison(("none", OFF), ("peft", OFF))]
    + [Comparison(("ecsq-2", how), ("none", how)) for how in (ON, OFF)]
    + [Comparison(("ecsq-2-token", ON), ("peft", OFF))]
    + [Comparison(("ecsq-2-token", how), ("ecsq-2", how)) for how in (ON, OFF)],
    "language/subspaces": [
        Comparison((f"{kind}-{ratio}", ON), ("none", ON)) for ratio in RATIOS
        for kind in ("ecsq", "principal", "residual", "learned_subspace", "subspace")
    ] + [Comparison((f"{kind}-ecsq-{ratio}", ON), (f"{kind}-{ratio}", ON)) for ratio in (64, 128)
         for kind in ("residual", "learned_subspace")],
}

"""Paired differences: mean, 95 % interval, and what it says about a claim."""

import math
from typing import List, NamedTuple

CONFIDENCE = 0.95


def within(t, df):
    """P(|T| <= t) of Student's t with `df` >= 1 degrees of freedom (Abramowitz & Stegun 26.7.3-4)."""
    angle = math.atan(t / math.sqrt(df))
    cosine = math.cos(angle)
    if df % 2:
        term, total = cosine, 0.0
        for k in range(1, df - 1, 2):
            total += term
            term *= cosine * cosine * (k + 1) / (k + 2)
        return 2 / math.pi * (angle + math.sin(angle) * total)
    term, total = 1.0, 0.0
    for k in range(0, df - 1, 2):
        total += term
        term *= cosine * cosine * (k + 1) / (k + 2)
    return math.sin(angle) * total


def critical(df, confidence=CONFIDENCE):
    """t with P(|T| <= t) = confidence, by bisection."""
    low, high = 0.0, 1.0
    while within(high, df) < confidence:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle, df) < confidence else (low, middle)
    return high


class Estimate(NamedTuple):
    n: int
    mean: float
    low: float  # ends of the 95 % interval
    high: float


def deviation(values: List[float]) -> float:
    """Standard deviation with n - 1; at least two values."""
    mean = sum(values) / len(values)
    return math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1))


def estimate(differences: List[float]) -> Estimate:
    """The interval of the mean of one difference per seed, two seeds at least."""
    n = len(differences)
    if n < 2:
        raise ValueError(f"{n} differences, want at least 2")
    mean = sum(differences) / n
    half = critical(n - 1) * deviation(differences) / math.sqrt(n)
    return Estimate(n, mean, mean - half, mean + half)


class Region(NamedTuple):
    """Where a claim says that the difference lies, ends excluded."""

    low: float
    high: float


def verdict(found: Estimate, claimed: Region) -> str:
    """The whole interval inside the region, the whole of it outside, or neither."""
    if claimed.low < found.low and found.high < claimed.high:
        return "confirmed"
    if found.high <= claimed.low or claimed.high <= found.low:
        return "not confirmed"
    return "undecided"


def overall(verdicts: List[str]) -> str:
    """The verdict on a claim with several parts: all have to hold."""
    for worst in ("not judged", "not confirmed", "undecided"):
        if worst in verdicts:
            return worst
    return "confirmed"

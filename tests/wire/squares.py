"""Sums of squares in the order of docs/compression.md."""

import numpy as np


def total(x):
    """The sum of x's squares in fp64."""
    result = 0.0
    for start in range(0, x.size, 4096):
        squares = np.square(x[start : start + 4096].astype(np.float64))
        lanes = [0.0] * 16
        for lane in range(16):
            for square in squares[lane::16]:
                lanes[lane] += float(square)
        run = 0.0
        for lane in lanes:
            run += lane
        result += run
    return result

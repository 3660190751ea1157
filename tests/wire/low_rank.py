"""The codec low_rank: a product of two thin factors."""

import numpy as np

from floats import F32


def decode(payload, shape, spec):
    """P Q^T of each matrix, summed from left to right."""
    matrices = shape[0] if spec.per_sample else 1
    count, columns = int(np.prod(shape)), shape[-1]
    rows = count // columns // matrices if count else 0
    numbers = np.frombuffer(payload, dtype="<f4").reshape(matrices if count else 0, -1)
    assert not count or numbers.shape[1] == (rows + columns) * spec.rank
    result = np.zeros((len(numbers), rows, columns), dtype=F32)
    for matrix, both in zip(result, numbers):
        p = both[: rows * spec.rank].reshape(rows, spec.rank)
        q = both[rows * spec.rank :].reshape(columns, spec.rank)
        matrix[:] = p[:, :1] * q[:, 0]
        for column in range(1, spec.rank):
            matrix += p[:, column, None] * q[:, column]
    return result.reshape(-1)

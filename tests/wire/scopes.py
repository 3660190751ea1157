"""Which elements share one range or one budget."""

import numpy as np


def of_elements(scope, shape, group=0):
    """The number of each element's scope, in memory order."""
    count = int(np.prod(shape))
    elements = np.arange(count)
    if scope == "tensor" or count == 0:
        return np.zeros(count, dtype=np.int64)
    if scope == "sample":
        return elements // (count // shape[0])
    if scope == "token":
        return elements // shape[-1]
    if scope == "channel":
        return elements % shape[-1]
    return elements // group


def number(scopes):
    """How many there are."""
    return int(scopes[-1]) + 1 if len(scopes) else 0

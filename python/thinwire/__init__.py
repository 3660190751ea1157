"""Runs of Thinwire from Python: load(), run() and to_tensorboard()."""

import importlib

# Where each name is. What it needs, such as pandas, is imported with it: `python -m thinwire.prepare` goes without.
_HOMES = {"Results": ".results", "load": ".results", "RunError": ".running", "run": ".running",
          "to_tensorboard": ".tensorboard"}
__all__ = sorted(_HOMES)


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name], __name__), name)


def __dir__():
    return sorted([*globals(), *__all__])

"""Runs of Thinwire from Python: load(), run() and to_tensorboard()."""

from .results import Results, load
from .running import RunError, run
from .tensorboard import to_tensorboard

__all__ = ["Results", "RunError", "load", "run", "to_tensorboard"]

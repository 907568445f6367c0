"""Recurrent networks: cells, iterators over sentences, checkpoints."""

from . import io, rnn, rnn_cell
from .io import *  # noqa: F403
from .rnn import *  # noqa: F403
from .rnn_cell import *  # noqa: F403

__all__ = rnn_cell.__all__ + rnn.__all__ + io.__all__

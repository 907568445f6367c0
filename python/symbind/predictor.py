"""Predictor: predictions from any thread."""

from ._symbind import Predictor

__all__ = ["Predictor"]

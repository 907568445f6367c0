"""Stochastic variance reduced gradients."""

from . import svrg_module

__all__ = ["svrg_module"]

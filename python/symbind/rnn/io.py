"""Iterators over sentences of different lengths."""

__all__ = []

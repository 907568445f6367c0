"""Monitor: looks into a network while it runs."""

from ._symbind import Monitor

__all__ = ["Monitor"]

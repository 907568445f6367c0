"""SequentialModule: modules one after the other."""

from .._symbind import SequentialModule

__all__ = ["SequentialModule"]

SequentialModule.__module__ = __name__
SequentialModule.META_TAKE_LABELS = "take_labels"
SequentialModule.META_AUTO_WIRING = "auto_wiring"
SequentialModule._grad_req = None  # until it is bound

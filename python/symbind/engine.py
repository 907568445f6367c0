"""Bulking, which MXNet's engine has and plans do not need: sizes are accepted and have no effect."""

_size = 0


def set_bulk_size(size):
    """Stores a size and returns the previous one. It has no effect: a plan is one list of kernels already."""
    global _size
    before, _size = _size, int(size)
    return before


class _Bulk:
    def __init__(self, size):
        self._size = size
        self._before = None

    def __enter__(self):
        self._before = set_bulk_size(self._size)
        return self

    def __exit__(self, *exception):
        set_bulk_size(self._before)


def bulk(size):
    """``with bulk(10):`` is accepted; see set_bulk_size."""
    return _Bulk(size)

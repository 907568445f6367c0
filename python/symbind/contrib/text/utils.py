"""Counting words."""

import collections as _collections
import re as _re

__all__ = ["count_tokens_from_str"]


def count_tokens_from_str(source_str, token_delim=" ", seq_delim="\n", to_lower=False, counter_to_update=None):
    """Counts the tokens of a text, whose tokens and sequences are separated by two regular expressions; adds them to a
    counter where one is given."""
    tokens = [token for token in _re.split(f"{token_delim}|{seq_delim}", source_str) if token]
    if to_lower:
        tokens = [token.lower() for token in tokens]
    counter = _collections.Counter() if counter_to_update is None else counter_to_update
    counter.update(tokens)
    return counter

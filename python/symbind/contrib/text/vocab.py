"""Vocabularies: tokens and their numbers."""

import collections as _collections

from ..._symbind import MXNetTypeError, MXNetValueError

__all__ = ["Vocabulary"]


class Vocabulary:
    """Numbers for tokens: 0 is the unknown token, then come the reserved ones, then those of a counter, the most
    frequent first and equally frequent ones in the order of the alphabet.

    Parameters
    ----------
    counter : collections.Counter
        Tokens and how often each was seen.
    most_freq_count : int
        How many tokens of the counter are taken at most; None: all.
    min_freq : int
        How often a token of the counter must have been seen.
    unknown_token : hashable
        Stands for every token that has no number.
    reserved_tokens : list
        Tokens that have numbers in any case, such as a padding.
    """

    def __init__(self, counter=None, most_freq_count=None, min_freq=1, unknown_token="<unk>", reserved_tokens=None):
        if min_freq < 1:
            raise MXNetValueError(f"min_freq must be at least 1, not {min_freq}")
        if reserved_tokens is not None:
            if unknown_token in reserved_tokens:
                raise MXNetValueError(f"the unknown token {unknown_token!r} is reserved already: leave it out")
            if len(set(reserved_tokens)) != len(reserved_tokens):
                raise MXNetValueError("reserved_tokens has a token twice")
        self._unknown_token = unknown_token
        self._reserved_tokens = None if reserved_tokens is None else list(reserved_tokens)
        self._idx_to_token = [unknown_token, *(reserved_tokens or [])]
        self._token_to_idx = {token: index for index, token in enumerate(self._idx_to_token)}
        if counter is not None:
            self._take(counter, most_freq_count, min_freq)

    def _take(self, counter, most_freq_count, min_freq):
        if not isinstance(counter, _collections.Counter):
            raise MXNetTypeError(f"expected a collections.Counter, not {type(counter).__name__}")
        by_name = sorted(counter.items(), key=lambda item: item[0])
        taken = 0
        for token, count in sorted(by_name, key=lambda item: item[1], reverse=True):
            if count < min_freq or taken == most_freq_count:
                break
            if token not in self._token_to_idx:
                self._add(token)
                taken += 1

    def _add(self, token):
        self._token_to_idx[token] = len(self._idx_to_token)
        self._idx_to_token.append(token)

    def __len__(self):
        return len(self._idx_to_token)

    @property
    def token_to_idx(self):
        """The numbers of all tokens."""
        return self._token_to_idx

    @property
    def idx_to_token(self):
        """The tokens in the order of their numbers."""
        return self._idx_to_token

    @property
    def unknown_token(self):
        """Stands for every token that has no number."""
        return self._unknown_token

    @property
    def reserved_tokens(self):
        """The tokens that have numbers in any case, or None."""
        return self._reserved_tokens

    def to_indices(self, tokens):
        """The number of a token, or a list of those of a list; 0 for an unknown one."""
        if isinstance(tokens, list):
            return [self._token_to_idx.get(token, 0) for token in tokens]
        return self._token_to_idx.get(tokens, 0)

    def to_tokens(self, indices):
        """The token of a number, or a list of those of a list."""
        found = []
        for index in indices if isinstance(indices, list) else [indices]:
            if not isinstance(index, int) or not 0 <= index < len(self):
                raise MXNetValueError(f"there is no token with the number {index!r}: they go from 0 to {len(self) - 1}")
            found.append(self._idx_to_token[index])
        return found if isinstance(indices, list) else found[0]

"""Sentences as numbers of words, and batches of sentences of about one length."""

import bisect as _bisect
import collections as _collections
import functools as _functools

import numpy as _np

from .. import _symbind
from ..io import DataBatch, DataDesc, DataIter

__all__ = ["BucketSentenceIter", "encode_sentences"]


def encode_sentences(sentences, vocab=None, invalid_label=-1, invalid_key="\n", start_label=0, unknown_token=None):
    """Numbers for the words of sentences: (lists of numbers, vocabulary).

    Without a vocabulary a new one numbers the words in order of appearance from `start_label` on; no word gets
    `invalid_label`, which is that of `invalid_key`. With one, a word that it does not have becomes `unknown_token`,
    which is added if it is new; without `unknown_token` it is an error.
    """
    is_new = vocab is None
    vocab = {invalid_key: invalid_label} if is_new else dict(vocab)
    following = start_label if is_new else max([start_label, *(number + 1 for number in vocab.values())])
    encoded = []
    for sentence in sentences:
        numbers = []
        for word in sentence:
            if word not in vocab and not is_new:
                if unknown_token is None:
                    raise _symbind.MXNetValueError(
                        f"{word!r} is not in the vocabulary; give unknown_token to replace unknown words"
                    )
                word = unknown_token
            if word not in vocab:
                following += following == invalid_label
                vocab[word] = following
                following += 1
            numbers.append(vocab[word])
        encoded.append(numbers)
    return encoded, vocab


class BucketSentenceIter(DataIter):
    """Sentences in batches of the same bucket: the shortest length that holds them.

    The label is the data moved by one word: the next word at each. Sentences longer than the largest bucket are left
    out, and so are those that do not fill a batch, others in each epoch. Without `buckets` they are the lengths that
    `batch_size` sentences or more have. Every epoch has a new order; `mx.random.seed` makes it reproducible.

    A subclass may draw the order itself, as MXNet's does: its `reset` sets `nddata` and `ndlabel`, lists of
    arrays with the rows of each bucket, from `data`, and `next` takes the batches that `idx` lists from these.
    """

    def __init__(
        self,
        sentences,
        batch_size,
        buckets=None,
        invalid_label=-1,
        data_name="data",
        label_name="softmax_label",
        dtype="float32",
        layout="NT",
    ):
        super().__init__(batch_size)
        plain = [[int(word) for word in sentence] for sentence in sentences]
        buckets = [int(length) for length in buckets] if buckets is not None else []
        self._sentences = _symbind._BucketSentences(plain, batch_size, buckets, invalid_label, dtype, layout)
        self._plain = plain
        self.buckets = self._sentences.buckets
        self.data_name, self.label_name = data_name, label_name
        self.invalid_label, self.dtype, self.layout = invalid_label, dtype, layout
        self.major_axis = layout.find("N")
        self.default_bucket_key = self.buckets[-1]
        shape = (batch_size, self.default_bucket_key)
        shape = shape if self.major_axis == 0 else shape[::-1]
        self.provide_data = [DataDesc(data_name, shape, _np.dtype(dtype).type, layout)]
        self.provide_label = [DataDesc(label_name, shape, _np.dtype(dtype).type, layout)]
        self.nddata, self.ndlabel = [], []
        counts = _collections.Counter(_bisect.bisect_left(self.buckets, len(sentence)) for sentence in plain)
        self.idx = [
            (bucket, first)
            for bucket in range(len(self.buckets))
            for first in range(0, counts[bucket] - batch_size + 1, batch_size)
        ]
        self.curr_idx = 0
        self.reset()

    @_functools.cached_property
    def data(self):
        """The sentences of each bucket as the rows of a NumPy array."""
        rows = [[] for _ in self.buckets]
        for sentence in self._plain:
            bucket = _bisect.bisect_left(self.buckets, len(sentence))
            if bucket < len(self.buckets):
                rows[bucket].append(sentence + [self.invalid_label] * (self.buckets[bucket] - len(sentence)))
        return [_np.array(each, dtype=self.dtype).reshape(-1, length) for each, length in zip(rows, self.buckets)]

    def reset(self):
        """To the beginning of a new epoch."""
        self.curr_idx = 0
        self._sentences.reset()

    def next(self):
        """The next batch; its bucket_key is the length of the sentences in it."""
        arrays = self._next_of_nddata() if self.nddata else self._sentences.next()
        if arrays is None:
            raise StopIteration
        self.curr_idx += 1
        data, label = arrays
        return DataBatch(
            [data],
            [label],
            pad=0,
            bucket_key=data.shape[1 - self.major_axis],
            provide_data=[DataDesc(self.data_name, data.shape, data.dtype, self.layout)],
            provide_label=[DataDesc(self.label_name, label.shape, label.dtype, self.layout)],
        )

    def _next_of_nddata(self):
        if self.curr_idx == len(self.idx):
            return None
        bucket, first = self.idx[self.curr_idx]
        arrays = [rows[bucket][first : first + self.batch_size] for rows in (self.nddata, self.ndlabel)]
        return arrays if self.major_axis == 0 else [array.T for array in arrays]

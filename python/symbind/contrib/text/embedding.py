"""Word vectors, from files of one token and its numbers in a line."""

import logging as _logging
import os as _os
import warnings as _warnings

import numpy as _np

from ... import registry as _registry
from ..._symbind import MXNetTypeError, MXNetValueError
from ...base import data_dir as _data_dir
from ...ndarray import array as _array
from ...ndarray import concatenate as _concatenate
from ...ndarray import zeros
from . import vocab as _vocab

__all__ = [
    "CompositeEmbedding",
    "CustomEmbedding",
    "FastText",
    "GloVe",
    "create",
    "get_pretrained_file_names",
    "register",
]


_ROOT = _os.path.join(_data_dir(), "embeddings")

# Those of fastText's files, and of those that share one space of vectors.
_LANGUAGES = """
    aa ab ace ady af ak als am an ang ar arc arz as ast av ay az azb ba bar bat_smg bcl be bg bh bi bjn bm bn bo bpy
    br bs bug bxr ca cbk_zam cdo ce ceb ch cho chr chy ckb co cr crh cs csb cu cv cy da de diq dsb dv dz ee el eml
    en eo es et eu ext fa ff fi fiu_vro fj fo fr frp frr fur fy ga gag gan gd gl glk gn gom got gu gv ha hak haw he
    hi hif ho hr hsb ht hu hy hz ia id ie ig ii ik ilo io is it iu ja jam jbo jv ka kaa kab kbd kg ki kj kk kl km kn
    ko koi kr krc ks ksh ku kv kw ky la lad lb lbe lez lg li lij lmo ln lo lrc lt ltg lv mai map_bms mdf mg mh mhr
    mi min mk ml mn mo mr mrj ms mt mus mwl my myv mzn na nah nap nds nds_nl ne new ng nl nn no nov nrm nso nv ny oc
    olo om or os pa pag pam pap pcd pdc pfl pi pih pl pms pnb pnt ps pt qu rm rmy rn ro roa_rup roa_tara ru rue rw
    sa sah sc scn sco sd se sg sh si simple sk sl sm sn so sq sr srn ss st stq su sv sw szl ta tcy te tet tg th ti
    tk tl tn to tpi tr ts tt tum tw ty tyv udm ug uk ur uz ve vec vep vi vls vo wa war wo wuu xal xh xmf yi yo za
    zea zh zh_classical zh_min_nan zh_yue zu
"""
_ALIGNED_LANGUAGES = """
    ar bg ca cs da de el en es et fi fr he hr hu id it mk nl no pl pt ro ru sk sl sv tr uk vi
"""


class _TokenEmbedding(_vocab.Vocabulary):
    """A vocabulary with a vector for each token."""

    # The files there are by their names; a subclass lists its own.
    pretrained_file_names = ()

    @classmethod
    def _file_names(cls):
        """The names of the files; a class written for MXNet has a dict of them with their check sums."""
        return list(cls.pretrained_file_names or getattr(cls, "pretrained_file_name_sha1", ()))

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self._vec_len = 0
        self._idx_to_vec = None

    @property
    def vec_len(self):
        """The length of a vector."""
        return self._vec_len

    @property
    def idx_to_vec(self):
        """A matrix with the vector of each token, in the order of their numbers."""
        return self._idx_to_vec

    def _load_embedding(self, pretrained_file_path, elem_delim, init_unknown_vec, encoding="utf8"):
        """Reads a file. The first vector of a token counts; a line of one number is taken for a header."""
        path = _os.path.expanduser(pretrained_file_path)
        if not _os.path.isfile(path):
            raise MXNetValueError(f"there is no file of word vectors at {path}")
        _logging.getLogger().info("Loading word vectors from %s", path)
        vectors, unknown = [], None
        with open(path, encoding=encoding) as file:
            for number, line in enumerate(file, 1):
                token, *numbers = line.rstrip().split(elem_delim)
                if not numbers:
                    continue
                vector = _np.array(numbers, dtype=_np.float32)
                if token == self.unknown_token and unknown is None:
                    unknown = vector
                    self._check_length(vector, number, token)
                elif token in self._token_to_idx:
                    _warnings.warn(f"line {number} of {path}: {token} has a vector already; skipped", stacklevel=4)
                elif len(vector) == 1:
                    _warnings.warn(
                        f"line {number} of {path}: {token} with a single number is not a vector; skipped", stacklevel=4
                    )
                else:
                    self._check_length(vector, number, token)
                    self._add(token)
                    vectors.append(vector)
        first = init_unknown_vec(shape=self._vec_len) if unknown is None else _array(unknown)
        rows = [first.asnumpy().reshape(1, -1), *(vector.reshape(1, -1) for vector in vectors)]
        self._idx_to_vec = _array(_np.concatenate(rows))

    def _check_length(self, vector, number, token):
        if self._vec_len and len(vector) != self._vec_len:
            raise MXNetValueError(
                f"line {number}: {token} has {len(vector)} numbers, and those before have {self._vec_len}"
            )
        self._vec_len = len(vector)

    def _restrict_to(self, vocabulary):
        """Keeps the tokens of a vocabulary, in its numbers."""
        if vocabulary is None:
            return
        if not isinstance(vocabulary, _vocab.Vocabulary):
            raise MXNetTypeError(f"expected a Vocabulary, not {type(vocabulary).__name__}")
        matrix = self.get_vecs_by_tokens(vocabulary.idx_to_token)
        self._take_over(vocabulary, matrix)

    def _take_over(self, vocabulary, matrix):
        self._token_to_idx = dict(vocabulary.token_to_idx)
        self._idx_to_token = list(vocabulary.idx_to_token)
        self._unknown_token = vocabulary.unknown_token
        self._reserved_tokens = vocabulary.reserved_tokens
        self._idx_to_vec, self._vec_len = matrix, matrix.shape[1]

    def get_vecs_by_tokens(self, tokens, lower_case_backup=False):
        """The vector of a token, or a matrix for a list; a missing token has the vector of the unknown token. With
        `lower_case_backup` the vector of a token in lower case is used for one that is missing."""
        several = isinstance(tokens, list)
        wanted = tokens if several else [tokens]
        if lower_case_backup:
            wanted = [token if token in self._token_to_idx else token.lower() for token in wanted]
        rows = self._idx_to_vec.asnumpy()[self.to_indices(wanted)]
        return _array(rows if several else rows[0])

    def update_token_vectors(self, tokens, new_vectors):
        """Writes new vectors of tokens that have numbers."""
        wanted = tokens if isinstance(tokens, list) else [tokens]
        for token in wanted:
            if token not in self._token_to_idx:
                rest = f"all unknown ones are {self.unknown_token!r}"
                raise MXNetValueError(f"the token {token!r} is unknown; {rest}")
        values = new_vectors.asnumpy().reshape(-1, self._vec_len)
        if len(values) != len(wanted):
            raise MXNetValueError(f"there are {len(wanted)} tokens and {len(values)} vectors")
        matrix = self._idx_to_vec.asnumpy()
        matrix[self.to_indices(wanted)] = values
        self._idx_to_vec = _array(matrix)


register = _registry.get_register_func(_TokenEmbedding, "token embedding")
create_by_name = _registry.get_create_func(_TokenEmbedding, "token embedding")


def create(embedding_name, **kwargs):
    """Word vectors by the name of their kind: "glove" or "fasttext"."""
    return create_by_name(embedding_name, **kwargs)


def get_pretrained_file_names(embedding_name=None):
    """The names of files of one kind; or a dict of those of every kind."""
    kinds = {name: cls._file_names() for name, cls in _registry.get_registry(_TokenEmbedding).items()}
    if embedding_name is None:
        return kinds
    if embedding_name not in kinds:
        raise KeyError(f"there are no word vectors of the kind {embedding_name!r}; there are {', '.join(kinds)}")
    return kinds[embedding_name]


class _Downloaded(_TokenEmbedding):
    """Vectors whose file is in embedding_root/<kind>, where the user has put it."""

    def __init__(self, pretrained_file_name, embedding_root, init_unknown_vec, vocabulary, kwargs):
        kind = type(self).__name__.lower()
        if self.pretrained_file_names and pretrained_file_name not in self.pretrained_file_names:
            known = ", ".join(self.pretrained_file_names)
            raise KeyError(f"there is no file {pretrained_file_name} of {kind}; there are {known}")
        super().__init__(**kwargs)
        path = _os.path.join(_os.path.expanduser(embedding_root), kind, pretrained_file_name)
        if not _os.path.isfile(path):
            raise OSError(f"{pretrained_file_name} is not fetched by itself: put the file at {path}")
        self._load_embedding(path, " ", init_unknown_vec)
        self._restrict_to(vocabulary)


@register
class GloVe(_Downloaded):
    """Vectors of GloVe, from a file in embedding_root/glove."""

    pretrained_file_names = (
        "glove.42B.300d.txt",
        "glove.6B.50d.txt",
        "glove.6B.100d.txt",
        "glove.6B.200d.txt",
        "glove.6B.300d.txt",
        "glove.840B.300d.txt",
        "glove.twitter.27B.25d.txt",
        "glove.twitter.27B.50d.txt",
        "glove.twitter.27B.100d.txt",
        "glove.twitter.27B.200d.txt",
    )

    def __init__(
        self,
        pretrained_file_name="glove.840B.300d.txt",
        embedding_root=_ROOT,
        init_unknown_vec=zeros,
        vocabulary=None,
        **kwargs,
    ):
        super().__init__(pretrained_file_name, embedding_root, init_unknown_vec, vocabulary, kwargs)


@register
class FastText(_Downloaded):
    """Vectors of fastText, from a file in embedding_root/fasttext."""

    pretrained_file_names = (
        "crawl-300d-2M.vec",
        "wiki-news-300d-1M.vec",
        "wiki-news-300d-1M-subword.vec",
        *(f"wiki.{language}.vec" for language in _LANGUAGES.split()),
        *(f"wiki.multi.{language}.vec" for language in _ALIGNED_LANGUAGES.split()),
    )

    def __init__(
        self,
        pretrained_file_name="wiki.simple.vec",
        embedding_root=_ROOT,
        init_unknown_vec=zeros,
        vocabulary=None,
        **kwargs,
    ):
        super().__init__(pretrained_file_name, embedding_root, init_unknown_vec, vocabulary, kwargs)


class CustomEmbedding(_TokenEmbedding):
    """Vectors from a user's file: in each line a token and its numbers, separated by `elem_delim`."""

    def __init__(
        self,
        pretrained_file_path,
        elem_delim=" ",
        encoding="utf8",
        init_unknown_vec=zeros,
        vocabulary=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self._load_embedding(pretrained_file_path, elem_delim, init_unknown_vec, encoding)
        self._restrict_to(vocabulary)


class CompositeEmbedding(_TokenEmbedding):
    """The vectors of several embeddings, concatenated, for the tokens of a vocabulary."""

    def __init__(self, vocabulary, token_embeddings):
        super().__init__()
        several = token_embeddings if isinstance(token_embeddings, list) else [token_embeddings]
        for each in several:
            if not isinstance(each, _TokenEmbedding):
                raise MXNetTypeError(f"expected word vectors, not {type(each).__name__}")
        parts = [each.get_vecs_by_tokens(vocabulary.idx_to_token) for each in several]
        self._take_over(vocabulary, _concatenate(parts, axis=1))

"""What Symbol has in Python beyond its C++ methods: text, pickling, binding, and operators as methods."""

import json as _json

import numpy as _np

from .. import _symbind
from .._functions import install_method, with_numpy_number
from ..base import NotImplementedForSymbol
from ..ndarray._methods import install_fluent, install_python2_names


def _repr(self):
    name = self.name
    if name is None:
        return f"<Symbol group [{', '.join(output.name for output in self)}]>"
    return f"<Symbol {name}>"


def _iter(self):
    return (self[index] for index in range(len(self)))


def _bind(self, ctx, args, args_grad=None, grad_req="write", aux_states=None, group2ctx=None, shared_exec=None):
    """The network bound to arrays: by list, in the order of list_arguments(), or by name. No entry in args_grad means
    no gradient."""
    return self._bind(ctx, args, args_grad, grad_req, aux_states, group2ctx, shared_exec)


def _infer_shape(self, /, *args, **kwargs):
    """Shapes of arguments, outputs and auxiliary states from those known; three None, and a warning, where some stay
    unknown."""
    return self._infer_shape(args, kwargs)


def _infer_shape_partial(self, /, *args, **kwargs):
    """The same, with 0 for a dimension that stays unknown and () for a shape; -1 for a dimension with np_shape."""
    return self._infer_shape_partial(args, kwargs)


def _infer_type(self, /, *args, **kwargs):
    """Types of arguments, outputs and auxiliary states from those known; three None, and a warning, where some stay
    unknown."""
    return self._infer_type(args, kwargs)


def _infer_type_partial(self, /, *args, **kwargs):
    """The same, with None for a type that stays unknown."""
    return self._infer_type_partial(args, kwargs)


def _simple_bind(
    self,
    /,
    ctx,
    grad_req="write",
    type_dict=None,
    stype_dict=None,
    group2ctx=None,
    shared_arg_names=None,
    shared_exec=None,
    shared_buffer=None,
    memory_budget=0,
    **kwargs,
):
    """Infers every shape and type, allocates every array filled with zeros, and binds to them.
    memory_budget: bytes of working memory that training should need at most, by recomputing in backward what forward
    computed; 0 for no limit."""
    return self._simple_bind(
        ctx,
        grad_req,
        type_dict,
        stype_dict,
        group2ctx,
        shared_arg_names,
        shared_exec,
        shared_buffer,
        memory_budget,
        kwargs,
    )


def _call(self, /, *args, **kwargs):
    """A copy of the network with symbols in place of its variables: in order, or by name."""
    return self._composed(args, kwargs)


def _eval(self, /, ctx=None, **kwargs):
    """The outputs for arguments given by name."""
    return self.bind(_symbind.current_context() if ctx is None else ctx, kwargs).forward()


def _reshape(self, *args, **kwargs):
    """The operator Reshape on this symbol; the shape may be given as separate numbers."""
    if args and isinstance(args[0], (int, _np.integer)):
        kwargs["shape"], args = args, ()
    return _symbind._require_op("Reshape").on_symbols((self, *args), kwargs)


def _transpose(self, *args, **kwargs):
    """The operator transpose on this symbol; the axes may be given as separate numbers."""
    if args and isinstance(args[0], int):
        kwargs["axes"], args = args, ()
    return _symbind._require_op("transpose").on_symbols((self, *args), kwargs)


def _astype(self, *args, **kwargs):
    """The operator Cast on this symbol: astype(dtype)."""
    return _symbind._require_op("Cast").on_symbols((self, *args), kwargs)


def _expand_dims(self, axis, inplace=False, **kwargs):
    """The operator expand_dims on this symbol; plans work in place by themselves."""
    return _symbind._require_op("expand_dims").on_symbols((self,), {"axis": axis, **kwargs})


def _squeeze(self, axis=None, inplace=False, **kwargs):
    """The operator squeeze on this symbol; plans work in place by themselves."""
    attributes = kwargs if axis is None else {"axis": axis, **kwargs}
    return _symbind._require_op("squeeze").on_symbols((self,), attributes)


def _flatten(self, inplace=False, **kwargs):
    """The operator flatten on this symbol; plans work in place by themselves."""
    return _symbind._require_op("flatten").on_symbols((self,), kwargs)


def _diag(self, k=0, **kwargs):
    """The operator diag on this symbol."""
    return _symbind._require_op("diag").on_symbols((self,), {"k": k, **kwargs})


def _gradient(self, wrt):
    """Fails, as it does in MXNet: bind the symbol, and ask the executor for gradients."""
    raise _symbind.MXNetError("the gradient of a Symbol is no Symbol: bind it and call backward()")


def _optimize_for(
    self,
    backend,
    args=None,
    aux=None,
    ctx=None,
    shape_dict=None,
    type_dict=None,
    stype_dict=None,
    skip_infer=False,
    **kwargs,
):
    """The symbol itself: every plan is optimised when it is compiled."""
    return self


def _get_backend_symbol(self, backend):
    """The symbol itself: every plan is optimised when it is compiled."""
    return self


def _array_ufunc(self, ufunc, method, *inputs, **kwargs):
    """np.sqrt(2) * symbol is our own operator; NumPy does nothing else with symbols."""
    result = with_numpy_number(type(self), ufunc, method, inputs, kwargs)
    if result is None:
        raise _symbind.MXNetTypeError(
            f"np.{ufunc.__name__} of a Symbol: it combines with other symbols and numbers, not with NumPy arrays"
        )
    return result


def _bool(self):
    raise NotImplementedForSymbol("bool")


def _only_arrays(name):
    def method(self, *args, **kwargs):
        raise NotImplementedForSymbol(method, "bind and forward")

    method.__name__ = name
    return method


def _without_amp_cast(self):
    """The network without the casts of mixed precision; the symbol itself where there are none."""
    text = self._tojson()
    if '"amp_' not in text:
        return self
    graph = _json.loads(text)
    kept, placed, removed = [], {}, {}  # nodes, their new numbers, and what a cast's outputs are instead

    def entry(source, output, *_):
        return removed[source][output] if source in removed else [placed[source], output, 0]

    for number, node in enumerate(graph["nodes"]):
        node["inputs"] = [entry(*given) for given in node["inputs"]]
        if node["op"] in ("amp_cast", "amp_multicast"):
            removed[number] = node["inputs"]
        else:
            placed[number] = len(kept)
            kept.append(node)
    graph["nodes"] = kept
    graph["arg_nodes"] = [i for i, node in enumerate(kept) if node["op"] == "null"]
    graph["node_row_ptr"] = list(range(len(kept) + 1))
    graph["heads"] = [entry(*head) for head in graph["heads"]]
    return _symbind._load_symbol_json(_json.dumps(graph))


def _tojson(self, remove_amp_cast=True):
    """The network as MXNet's JSON, without the casts of mixed precision by default."""
    return (_without_amp_cast(self) if remove_amp_cast else self)._tojson()


def _save(self, fname, remove_amp_cast=True):
    """Writes the network to a file, as MXNet's JSON."""
    (_without_amp_cast(self) if remove_amp_cast else self)._save(fname)


def _set_state(self, state):
    """The network from a pickle of MXNet's, which holds its JSON."""
    text = state.get("handle")
    if text is None:
        raise _symbind.MXNetValueError("the pickle holds a Symbol without a network")
    self._become(_symbind._load_symbol_json(text))


def _restore(json):
    return _symbind._load_symbol_json(json)


def install(cls):
    """Completes the C++ class."""
    install_fluent(cls, symbolic=True)
    cls.__repr__ = _repr
    cls.__iter__ = _iter
    cls.__call__ = _call
    cls.bind = _bind
    cls.eval = _eval
    cls.reshape = _reshape
    cls.transpose = _transpose
    cls.astype = _astype
    cls.__bool__ = _bool
    cls.__array_ufunc__ = _array_ufunc
    cls.tojson = _tojson
    cls.save = _save
    cls.__reduce__ = lambda self: (_restore, (self._tojson(),))
    cls.__deepcopy__ = lambda self, memo=None: self.__copy__()
    cls.__abs__ = lambda self: self.abs()
    cls.as_nd_ndarray = lambda self: self
    cls.handle = property(lambda self: self)
    cls.optimize_for = _optimize_for
    cls.get_backend_symbol = _get_backend_symbol
    cls.gradient = _gradient
    cls.expand_dims = _expand_dims
    cls.squeeze = _squeeze
    cls.flatten = _flatten
    cls.diag = _diag
    cls.__setstate__ = _set_state
    cls.__array_priority__ = 1000.0
    install_python2_names(cls, cls.__truediv__)
    install_method(cls, "infer_shape", _infer_shape)
    install_method(cls, "infer_shape_partial", _infer_shape_partial)
    install_method(cls, "infer_type", _infer_type)
    install_method(cls, "infer_type_partial", _infer_type_partial)
    install_method(cls, "simple_bind", _simple_bind)
    for name in ("asnumpy", "asscalar", "copy", "copyto", "as_in_context", "detach", "backward", "wait_to_read"):
        setattr(cls, name, _only_arrays(name))

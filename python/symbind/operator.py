"""Operators written in Python."""

import itertools as _itertools
import threading as _threading
from collections import namedtuple as _namedtuple

from . import _symbind

_registry = {}
_lock = _threading.Lock()
_numbers = _itertools.count()


class CustomOp:
    """An operator at work: one object serves every forward and backward pass of one bound node, so what forward leaves
    in its attributes backward finds there."""

    def forward(self, is_train, req, in_data, out_data, aux):
        """Computes the outputs: ``self.assign(out_data[0], req[0], …)``."""
        raise NotImplementedError(f"{type(self).__name__} does not define forward")

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        """Computes the gradients of the inputs."""
        raise NotImplementedError(f"{type(self).__name__} does not define backward")

    def assign(self, dst, req, src):
        """Writes a result according to the request: it is ignored, replaces the values of dst, or is added to them."""
        if req == "null":
            return
        if req in ("write", "inplace"):
            dst[:] = src
        elif req == "add":
            dst[:] += src
        else:
            raise _symbind.MXNetValueError(f"a request is null, write, inplace or add, not {req!r}")


class CustomOpProp:
    """What an operator is. Its keyword arguments arrive as texts; without `need_top_grad` it is a loss head."""

    def __init__(self, need_top_grad=True):
        self.need_top_grad_ = need_top_grad

    def list_arguments(self):
        return ["data"]

    def list_outputs(self):
        return ["output"]

    def list_auxiliary_states(self):
        return []

    def infer_shape(self, in_shape):
        """Lists of the shapes of inputs, outputs and auxiliary states; by default all are like the first input."""
        first = in_shape[0]
        return in_shape, [first] * len(self.list_outputs()), [first] * len(self.list_auxiliary_states())

    def infer_type(self, in_type):
        """Lists of types likewise."""
        first = next((dtype for dtype in in_type if dtype is not None), None)
        return (
            [first if dtype is None else dtype for dtype in in_type],
            [first] * len(self.list_outputs()),
            [first] * len(self.list_auxiliary_states()),
        )

    def declare_backward_dependency(self, out_grad, in_data, out_data):
        """The arrays that backward reads, by number; the others need not be stored."""
        needed = list(out_grad) if self.need_top_grad_ else []
        return needed + list(in_data) + list(out_data)

    def create_operator(self, ctx, in_shapes, in_dtypes):
        """The CustomOp that does the work."""
        return CustomOp()


def register(reg_name):
    """A class decorator: ``mx.sym.Custom(…, op_type=reg_name)`` uses the class from here on."""

    def decorate(prop_cls):
        if not (isinstance(prop_cls, type) and issubclass(prop_cls, CustomOpProp)):
            raise _symbind.MXNetTypeError("register decorates subclasses of CustomOpProp")
        with _lock:
            _registry[reg_name] = prop_cls
        _symbind._register_custom_op(reg_name, prop_cls)
        return prop_cls

    return decorate


def get_all_registered_operators():
    """The names of all operators."""
    return _symbind._list_ops()


OperatorArguments = _namedtuple("OperatorArguments", ["narg", "names", "types"])


def get_operator_arguments(op_name):
    """What an operator takes: the number, names and kinds of its inputs and parameters."""
    op = _symbind._require_op(op_name)
    inputs = ["data"] if op.takes_any else [*op.inputs, *op.aux]
    kind = "NDArray-or-Symbol[]" if op.takes_any else "NDArray-or-Symbol"
    names, types = list(inputs), [kind] * len(inputs)
    for name, type_name, default, _ in op.fields:
        names.append(name)
        types.append(f"{type_name}, required" if default is None else f"{type_name}, optional, default={default!r}")
    return OperatorArguments(len(names), names, types)


class PythonOp:
    """The older way to write an operator: calling the object returns a symbol."""

    def __init__(self, need_top_grad=True):
        self.need_top_grad_ = need_top_grad

    def __call__(self, *args, **kwargs):
        return self.get_symbol(*args, **kwargs)

    def get_symbol(self, *args, **kwargs):
        """A symbol of this operator."""
        from .symbol import Custom

        name = f"_python_op_{next(_numbers)}"
        _symbind._register_custom_op(name, lambda **arguments: _PythonOpProp(self))
        return Custom(*args, op_type=name, **kwargs)

    def forward(self, in_data, out_data):
        """Computes the outputs; by default the first input is the first output."""
        out_data[0][:] = in_data[0]

    def backward(self, out_grad, in_data, out_data, in_grad):
        """Computes the gradients; by default 1."""
        in_grad[0][:] = 1.0

    def infer_shape(self, in_shape):
        return in_shape, [in_shape[0]]

    def list_outputs(self):
        return ["output"]

    def list_arguments(self):
        return ["data"]

    def need_top_grad(self):
        return self.need_top_grad_


class NumpyOp(PythonOp):
    """An operator on NumPy arrays."""

    numpy_arrays = True


class NDArrayOp(PythonOp):
    """An operator on NDArrays."""

    numpy_arrays = False

    def declare_backward_dependency(self, out_grad, in_data, out_data):
        needed = list(out_grad) if self.need_top_grad() else []
        return needed + list(in_data) + list(out_data)


class _PythonOpProp(CustomOpProp):
    def __init__(self, op):
        super().__init__(op.need_top_grad())
        self._op = op
        self.list_arguments = op.list_arguments
        self.list_outputs = op.list_outputs

    def infer_shape(self, in_shape):
        ins, outs = self._op.infer_shape([list(shape) for shape in in_shape])
        return ins, outs, []

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return _PythonOpAtWork(self._op)


class _PythonOpAtWork(CustomOp):
    def __init__(self, op):
        self._op = op

    def _call(self, method, req, results, inputs):
        """Runs it on arrays of its kind; results with the request "add" are added to the values of the array."""
        numpy = getattr(self._op, "numpy_arrays", False)
        # an operator that needs no gradient from above gets None for it
        given = [[array.asnumpy() if numpy and array is not None else array for array in arrays] for arrays in inputs]
        made = [array.asnumpy() if numpy else array.copy() for array in results]
        method(given, made)
        for array, kind, value in zip(results, req, made):
            self.assign(array, kind, value)

    def forward(self, is_train, req, in_data, out_data, aux):
        self._call(lambda given, made: self._op.forward(given[0], made), req, out_data, [in_data])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        def run(given, made):
            self._op.backward(given[0], given[1], given[2], made)

        self._call(run, req, in_grad, [out_grad, in_data, out_data])

"""Errors are of the Python types that MXNet 1.9.1 raises, and MXNetErrors; those of custom operators keep their own."""

import pathlib
import re

import numpy as np
import pytest

import symbind as mx

a = mx.nd.zeros((2, 3))


def net():
    data = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    return mx.sym.SoftmaxOutput(data, name="softmax")


def module(bound=True):
    mod = mx.mod.Module(net())
    if bound:
        mod.bind([("data", (4, 5))], [("softmax_label", (4,))])
    return mod


BOTH = [
    (ValueError, lambda: a.reshape((4, 5))),
    (ValueError, lambda: a.broadcast_to((4, 5))),
    (ValueError, lambda: net().bind(mx.cpu(), {})),
    (ValueError, lambda: net().bind(mx.cpu(), [a])),
    (ValueError, lambda: net().simple_bind(mx.cpu(), data=(4, 5)).forward(data=mx.nd.zeros((9, 9)))),
    (ValueError, lambda: module(False).bind([("nope", (4, 5))])),
    (ValueError, lambda: mx.optimizer.create("nope")),
    (ValueError, lambda: mx.lr_scheduler.FactorScheduler(0)),
    (ValueError, lambda: mx.lr_scheduler.FactorScheduler(1, warmup_steps=-1)),
    (ValueError, lambda: mx.init.Uniform()("nope", a)),
    (ValueError, lambda: mx.init.Xavier()("x_weight", mx.nd.zeros((2,)))),
    (ValueError, lambda: mx.metric.Accuracy().update([mx.nd.zeros((2,))], [mx.nd.zeros((3, 2))])),
    (ValueError, lambda: mx.metric.MSE().update([mx.nd.zeros((2,))], [mx.nd.zeros((3, 2))])),
    (AssertionError, lambda: mx.metric.create("nope")),
    (AssertionError, lambda: mx.init.create("nope")),
    (AssertionError, lambda: module(False).forward(mx.io.DataBatch([a], None))),
    (AssertionError, lambda: module().get_params()),
    (AssertionError, lambda: module().update()),
    (AssertionError, lambda: mx.nd.concatenate([a, mx.nd.zeros((2, 4))])),
    (TypeError, lambda: mx.optimizer.SGD(nope=3)),
    (TypeError, lambda: a.__setitem__(slice(None), "x")),
    (IndexError, lambda: a[5]),
    (IndexError, lambda: a[1, 9]),
    (IndexError, lambda: a.__setitem__((1, 9), 0)),
    (IndexError, lambda: mx.nd.gather_nd(a, mx.nd.array([[5], [5]]))),
    (ValueError, lambda: a["x"]),
    (FileNotFoundError, lambda: mx.nd.load("/nonexistent.params")),
    (RuntimeError, lambda: module().set_params({}, {}, allow_missing=False)),
    # What the bindings refuse before the library is asked.
    (TypeError, lambda: float(a)),
    (ValueError, lambda: a.asscalar()),
    (ValueError, lambda: bool(a)),
    (TypeError, lambda: a.copyto(3)),
    (TypeError, lambda: mx.nd.zeros((2,), dtype="nope")),
    (TypeError, lambda: mx.nd.FullyConnected(3, num_hidden=2)),
    (TypeError, lambda: mx.nd.save("/tmp/never", 3)),
    (IndexError, lambda: net()[7]),
    (ValueError, lambda: net()["nope"]),
    (TypeError, lambda: net()(mx.sym.Variable("x"), data=mx.sym.Variable("y"))),
    (ValueError, lambda: net().infer_shape((4, 5), (1,), (1,), (1,), (1,), (1,))),
    (TypeError, lambda: net().simple_bind(mx.cpu(), data=(4, 5)).forward(nope=a)),
    (ValueError, lambda: mx.mod.Module(net(), data_names=["nope"])),
    (TypeError, lambda: mx.mod.BucketingModule(3, 10)),
    (ValueError, lambda: module().fit(mx.io.NDArrayIter(np.zeros((4, 5)), np.zeros(4), 4))),
    (TypeError, lambda: module().fit(np.zeros((4, 5)), num_epoch=1)),
    (TypeError, lambda: module().forward(mx.io.DataBatch([a], [["x", "y"]]))),
    (TypeError, lambda: module().forward(mx.io.DataBatch([a], [[[1], [1, 2]]]))),
    (TypeError, lambda: mx.mod.SequentialModule().add(3)),
    (ValueError, lambda: mx.mod.SequentialModule().add(module(), nope=1)),
    (TypeError, lambda: mx.kv.create("local").init(object(), a)),
    (TypeError, lambda: mx.kv.create(3)),
    (ValueError, lambda: mx.kv.create("local").broadcast(["a"], [[]], [[a]])),
    (TypeError, lambda: mx.kv.create("local").set_command_handler(3)),
    (TypeError, lambda: mx.io.NDArrayIter("nope")),
    (TypeError, lambda: mx.io.CSVIter(data_shape=(3,))),
    (TypeError, lambda: mx.metric.CustomMetric(3)),
    (TypeError, lambda: mx.mon.Monitor(1, stat_func=3)),
    # And what the package refuses in Python.
    (TypeError, lambda: mx.sym.Variable(3)),
    (TypeError, lambda: mx.sym.Group(3)),
    (ValueError, lambda: a.squeeze(axis=0, inplace=True)),
    (ValueError, lambda: mx.nd.moveaxis(a, 0, 5)),
    (ValueError, lambda: mx.AttrScope(x=3)),
    (ValueError, lambda: mx.recordio.MXRecordIO("/tmp/never", "x")),
    (ValueError, lambda: mx.model.FeedForward(net()).fit(np.zeros((4, 5)), np.zeros(4))),
    (AssertionError, lambda: mx.io.DataBatch(data=3)),
    (AssertionError, lambda: mx.image.ImageIter(1, (3, 2, 2))),
    (RuntimeError, lambda: mx.runtime.Features().is_enabled("nope")),
    (TypeError, lambda: mx.viz.print_summary(3)),
]


@pytest.mark.parametrize("kind, call", BOTH)
def test_an_error_is_of_python_s_type_and_an_mxneterror(kind, call):
    with pytest.raises(kind) as raised:
        call()
    assert isinstance(raised.value, mx.MXNetError) and str(raised.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda: mx.nd.dot(a, a),
        lambda: mx.nd.Activation(a, act_type="nope"),
        lambda: mx.nd.Convolution(a, a, a, kernel=(3, 3), num_filter=1),
        lambda: net().infer_shape(data=(4,), fc_weight=(9, 9)),
    ],
)
def test_what_operators_refuse_is_an_mxneterror_alone(call):
    with pytest.raises(mx.MXNetError) as raised:
        call()
    assert not isinstance(raised.value, (ValueError, TypeError, IndexError))


def test_the_package_raises_no_built_in_type_where_both_are_possible():
    """Errors are raised as MXNetValueError and its like: see python/src/error.cc."""
    package = pathlib.Path(mx.__file__).parent
    alone = re.compile(r"raise (ValueError|TypeError|IndexError|RuntimeError)\(")
    of_python = {"_compat", "tools"}  # which stand for Python's and NumPy's own functions, and for a command
    found = [
        f"{path.relative_to(package)}: {line.strip()}"
        for path in package.rglob("*.py")
        if path.relative_to(package).parts[0] not in of_python
        for line in path.read_text().splitlines()
        if alone.search(line)
    ]
    assert found == []


def test_numbers_of_more_than_one_element_are_type_errors():
    for convert in (float, int):
        with pytest.raises(TypeError, match="one element"):
            convert(a)
    with pytest.raises(ValueError, match="one element"):
        a.asscalar()


class Failing(mx.operator.CustomOp):
    def __init__(self, where):
        self.where = where

    def forward(self, is_train, req, in_data, out_data, aux):
        if self.where == "forward":
            raise KeyError("forward of the operator")
        self.assign(out_data[0], req[0], in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        raise ZeroDivisionError("backward of the operator")


@mx.operator.register("failing_for_test_errors")
class FailingProp(mx.operator.CustomOpProp):
    def __init__(self, where):
        super().__init__()
        self.where = where

    def infer_shape(self, in_shape):
        if self.where == "infer_shape":
            raise LookupError("shapes of the operator")
        return super().infer_shape(in_shape)

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Failing(self.where)


def test_errors_of_custom_operators_surface_at_the_call():
    x = mx.sym.Variable("x")
    custom = lambda where: mx.sym.Custom(x, op_type="failing_for_test_errors", where=where)  # noqa: E731
    with pytest.raises(LookupError, match="shapes"):
        custom("infer_shape").infer_shape(x=(2,))
    with pytest.raises(KeyError, match="forward"):
        mx.nd.Custom(mx.nd.ones((2,)), op_type="failing_for_test_errors", where="forward")
    executor = custom("forward").simple_bind(mx.cpu(), x=(2,))
    with pytest.raises(KeyError, match="forward"):
        executor.forward()
    executor = custom("backward").simple_bind(mx.cpu(), x=(2,))
    np.testing.assert_array_equal(executor.forward(is_train=True)[0].asnumpy(), np.zeros(2))
    with pytest.raises(ZeroDivisionError, match="backward"):
        executor.backward(mx.nd.ones((2,)))

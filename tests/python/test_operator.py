"""Operators written in Python, the newer and the older way."""

import numpy as np
import pytest

import symbind as mx


class Softmax(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        x = in_data[0].asnumpy()
        y = np.exp(x - x.max(axis=1, keepdims=True))
        self.assign(out_data[0], req[0], mx.nd.array(y / y.sum(axis=1, keepdims=True)))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        labels = in_data[1].asnumpy().astype(int)
        y = out_data[0].asnumpy()
        y[np.arange(len(labels)), labels] -= 1
        self.assign(in_grad[0], req[0], mx.nd.array(y))


@mx.operator.register("test_softmax")
class SoftmaxProp(mx.operator.CustomOpProp):
    def __init__(self):
        super().__init__(need_top_grad=False)

    def list_arguments(self):
        return ["data", "label"]

    def infer_shape(self, in_shape):
        return [in_shape[0], [in_shape[0][0]]], [in_shape[0]], []

    def create_operator(self, ctx, shapes, dtypes):
        return Softmax()


def test_custom_softmax_equals_ours():
    data = mx.sym.Variable("data")
    custom = mx.sym.Custom(data=data, name="softmax", op_type="test_softmax")
    assert custom.list_arguments() == ["data", "softmax_label"]
    builtin = mx.sym.SoftmaxOutput(data, name="softmax")
    x, labels = np.random.RandomState(0).randn(4, 3), np.array([0, 2, 1, 1])
    results = []
    for net in (custom, builtin):
        executor = net.simple_bind(mx.cpu(), data=(4, 3))
        executor.forward(is_train=True, data=x, softmax_label=labels)
        executor.backward()
        results.append((executor.outputs[0].asnumpy(), executor.grad_dict["data"].asnumpy()))
    for ours, theirs in zip(*results):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    again = mx.sym.load_json(custom.tojson())
    assert again.infer_shape(data=(4, 3))[1] == [(4, 3)]


class Scale(mx.operator.CustomOp):
    def __init__(self, factor):
        self.factor = factor
        self.seen = None

    def forward(self, is_train, req, in_data, out_data, aux):
        self.seen = in_data[0].copy()
        aux[0][:] += 1
        self.assign(out_data[0], req[0], in_data[0] * self.factor)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        assert (self.seen == in_data[0]).asnumpy().all()
        self.assign(in_grad[0], req[0], out_grad[0] * self.factor)


@mx.operator.register("test_scale")
class ScaleProp(mx.operator.CustomOpProp):
    def __init__(self, factor="1"):
        super().__init__()
        self.factor = float(factor)

    def list_auxiliary_states(self):
        return ["count"]

    def infer_shape(self, in_shape):
        return in_shape, [in_shape[0]], [[1]]

    def create_operator(self, ctx, shapes, dtypes):
        return Scale(self.factor)


def test_keywords_states_and_requests():
    net = mx.sym.Custom(mx.sym.Variable("x"), op_type="test_scale", factor=3, name="s")
    assert net.list_auxiliary_states() == ["s_count"]
    executor = net.bind(
        mx.cpu(),
        {"x": mx.nd.array([1, 2])},
        {"x": mx.nd.array([10, 10])},
        grad_req="add",
        aux_states={"s_count": mx.nd.zeros((1,))},
    )
    for _ in range(2):
        executor.forward(is_train=True)
        executor.backward(mx.nd.array([1, 2]))
    assert executor.outputs[0].asnumpy().tolist() == [3, 6]
    assert executor.grad_dict["x"].asnumpy().tolist() == [16, 22]
    assert executor.aux_dict["s_count"].asnumpy().tolist() == [2]


def test_on_arrays():
    out = mx.nd.Custom(mx.nd.array([1, 2]), mx.nd.zeros((1,)), op_type="test_scale", factor=2)
    assert out.asnumpy().tolist() == [2, 4]


def test_mistakes():
    with pytest.raises(mx.MXNetError, match="never_registered"):
        mx.sym.Custom(mx.sym.Variable("x"), op_type="never_registered")
    with pytest.raises(TypeError):
        mx.operator.register("x")(int)
    with pytest.raises(TypeError):
        mx.sym.Custom(mx.sym.Variable("x"), op_type="test_scale", unknown=1)

    class Failure(Exception):
        pass

    class Failing(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            raise Failure("forward")

    @mx.operator.register("test_failing")
    class FailingProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Failing()

    executor = mx.sym.Custom(mx.sym.Variable("x"), op_type="test_failing").simple_bind(mx.cpu(), x=(2,))
    for _ in range(2):
        with pytest.raises(Failure) as caught:
            executor.forward()
        assert caught.traceback[-1].name == "forward"


def test_an_operator_that_cannot_be_made_leaves_the_executor_usable():
    @mx.operator.register("test_unmakable")
    class Unmakable(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            raise OSError("no")

    executor = mx.sym.Custom(mx.sym.Variable("x"), op_type="test_unmakable").simple_bind(mx.cpu(), x=(2,))
    for attempt in (executor.forward, executor.debug_str, executor.memory):
        with pytest.raises(OSError):
            attempt()


class Square(mx.operator.NumpyOp):
    def forward(self, in_data, out_data):
        out_data[0][:] = in_data[0] ** 2

    def backward(self, out_grad, in_data, out_data, in_grad):
        in_grad[0][:] = 2 * in_data[0] * out_grad[0]


class Cube(mx.operator.NDArrayOp):
    def forward(self, in_data, out_data):
        out_data[0][:] = in_data[0] ** 3

    def backward(self, out_grad, in_data, out_data, in_grad):
        in_grad[0][:] = 3 * in_data[0] ** 2 * out_grad[0]


@pytest.mark.parametrize("op, power", [(Square(), 2), (Cube(), 3)])
def test_older_operators(op, power):
    net = op(data=mx.sym.Variable("x"), name="p")
    executor = net.simple_bind(mx.cpu(), x=(2,))
    executor.forward(is_train=True, x=np.array([2, 3]))
    np.testing.assert_allclose(executor.outputs[0].asnumpy(), np.array([2.0, 3.0]) ** power)
    executor.backward(mx.nd.ones((2,)))
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), power * np.array([2.0, 3.0]) ** (power - 1))


def test_an_operator_tells_what_it_takes():
    found = mx.operator.get_operator_arguments("FullyConnected")
    assert found.names == ["data", "weight", "bias", "num_hidden", "no_bias", "flatten"] and found.narg == 6
    assert found.types[0] == "NDArray-or-Symbol" and found.types[3].endswith("required")
    assert mx.operator.get_operator_arguments("Concat").types[0] == "NDArray-or-Symbol[]"
    with pytest.raises(mx.MXNetError, match="nope"):
        mx.operator.get_operator_arguments("nope")


@mx.operator.register("takes_arguments_as_texts")
class TakesTexts(mx.operator.CustomOpProp):
    seen = None

    def __init__(self, **arguments):
        super().__init__()
        TakesTexts.seen = arguments

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return mx.operator.CustomOp()


def test_arguments_arrive_as_texts_and_none_among_them():
    mx.sym.Custom(mx.sym.Variable("x"), op_type="takes_arguments_as_texts", a=1, b=(2, 3), c=None, d=[1, 2.5], e=True)
    assert TakesTexts.seen == {"a": "1", "b": "(2, 3)", "c": "None", "d": "[1, 2.5]", "e": "True"}

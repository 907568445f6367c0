"""Operators as functions: how arguments are sorted out, and what is said when they are wrong."""

import inspect
import subprocess
import sys

import numpy as np
import pytest
from script_runs import environment, package_path

import symbind as mx


def test_arguments_by_position_and_by_name():
    x = mx.nd.array([[1, -2], [3, 4]])
    np.testing.assert_array_equal(mx.nd.sum(x, 1).asnumpy(), [-1, 7])
    np.testing.assert_array_equal(mx.nd.sum(data=x, axis=(0,), keepdims=True).asnumpy(), [[4, 2]])
    np.testing.assert_array_equal(mx.nd.clip(x, 0, 3).asnumpy(), [[1, 0], [3, 3]])
    np.testing.assert_array_equal(mx.nd.concat(x, x, dim=1).shape, (2, 4))
    np.testing.assert_array_equal(mx.nd.dot(x, x, transpose_b=True).asnumpy(), [[5, -5], [-5, 25]])
    weight, bias = mx.nd.ones((3, 2)), mx.nd.zeros((3,))
    assert mx.nd.FullyConnected(x, weight, bias, num_hidden=3).shape == (2, 3)
    assert mx.nd.FullyConnected(data=x, weight=weight, no_bias=True, num_hidden=3).shape == (2, 3)
    assert mx.nd.FullyConnected(x, weight, None, no_bias=True, num_hidden=3).shape == (2, 3)


def test_out_is_filled_and_returned():
    x, out = mx.nd.array([1, 4]), mx.nd.zeros((2,))
    assert mx.nd.sqrt(x, out=out) is out
    assert out.asnumpy().tolist() == [1, 2]
    with pytest.raises(mx.MXNetError):
        mx.nd.sqrt(x, out=mx.nd.zeros((3,)))


def test_the_name_and_the_result_may_come_after_all_parameters():
    x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    assert mx.sym.flatten(x, "flat").name == "flat"
    assert mx.sym.Activation(x, "relu", "act").name == "act"
    assert mx.sym.broadcast_mul(x, y, "product").list_outputs() == ["product_output"]
    assert mx.sym.make_loss(x, "cost").list_outputs() == ["cost_loss"]
    with pytest.raises(TypeError, match="cannot tell what 'product' is"):
        mx.sym.broadcast_mul(x, "product")
    with pytest.raises(TypeError, match="cannot tell what 'more' is"):
        mx.sym.Activation(x, "relu", "act", "more")
    array, out = mx.nd.array([-2, 3]), mx.nd.zeros((2,))
    assert mx.nd.square(array, out) is out and out.asnumpy().tolist() == [4, 9]
    assert mx.nd.clip(array, 0, 1, out) is out and out.asnumpy().tolist() == [0, 1]
    assert mx.nd.broadcast_add(array, array, out) is out and out.asnumpy().tolist() == [-4, 6]
    with pytest.raises(TypeError, match="an input follows parameters"):
        mx.nd.clip(array, 0, out)
    with pytest.raises(mx.MXNetError):
        mx.nd.square(array, out, out)


def test_signatures_and_docstrings_come_from_the_registry():
    signature = inspect.signature(mx.sym.Convolution)
    assert list(signature.parameters)[:4] == ["data", "weight", "bias", "kernel"]
    assert signature.parameters["num_group"].default == 1
    assert "num_filter : int" in mx.nd.Convolution.__doc__
    assert mx.sym.Convolution.__name__ == "Convolution"
    assert "Convolution" in dir(mx.sym) and "_plus_scalar" not in dir(mx.sym)
    assert "_plus_scalar" in dir(mx.sym._internal)
    namespace = {}
    exec("from symbind.ndarray import *", namespace)
    assert "Convolution" in namespace and "zeros" in namespace


def test_a_modules_dictionary_has_every_operator():
    program = """
import types
import symbind as mx
for module in (mx.nd, mx.sym, mx.nd._internal, mx.sym.contrib):
    built = types.ModuleType.__dict__["__dict__"].__get__(module)  # what importing has built
    operators = [name for name in module.__all__ if name not in built]
    assert len(operators) > 20, (module, operators)
    assert set(operators) < set(vars(module)) == set(module.__dict__) == set(dir(module))
    assert all(callable(module.__dict__[name]) for name in operators)
assert vars(mx.nd)["exp"] is mx.nd.exp and mx.nd.exp(mx.nd.zeros(2)).asnumpy().tolist() == [1, 1]
mx.nd.exp = mx.nd.sin  # as libraries do that wrap the operators
assert vars(mx.nd)["exp"] is mx.nd.sin
"""
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(package_path()), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_mistakes_are_explained():
    x = mx.sym.Variable("x")
    with pytest.raises(mx.MXNetError, match="num_filter"):
        mx.sym.Convolution(x, kernel=(3, 3), num_filtr=3)
    with pytest.raises(mx.MXNetError, match="act_type"):
        mx.sym.Activation(x, act_type="rellu")
    with pytest.raises(mx.MXNetError):
        mx.sym.FullyConnected(x, num_hidden="many")
    with pytest.raises(TypeError):
        mx.sym.Flatten(x, 1, 2)
    with pytest.raises(mx.MXNetError):
        mx.nd.FullyConnected(mx.nd.zeros((2, 2)), num_hidden=3)
    with pytest.raises(AttributeError, match="no_such_operator"):
        mx.nd.no_such_operator
    with pytest.raises(AttributeError, match="no_such_operator"):
        mx.sym.contrib.no_such_operator


def test_values_become_the_text_of_files():
    symbol = mx.sym.Convolution(
        mx.sym.Variable("x"), kernel=[3, 3], num_filter=np.int64(8), stride=(2, 2), no_bias=True, name="c"
    )
    assert symbol.attr_dict()["c"] == {
        "kernel": "[3, 3]",
        "num_filter": "8",
        "stride": "(2, 2)",
        "no_bias": "True",
    }
    assert mx.sym.Cast(mx.sym.Variable("x"), dtype=np.float64, name="k").attr("dtype") == "float64"


def test_a_parameter_may_be_a_numpy_array():
    x = mx.sym.Variable("x")
    assert mx.sym.Pooling(x, kernel=np.array([2, 2]), name="pool").attr("kernel") == "(2, 2)"
    assert mx.nd.Reshape(mx.nd.zeros((2, 3)), shape=np.array([3, 2])).shape == (3, 2)
    assert x.infer_shape(x=np.array([4, 5]))[1] == [(4, 5)] and mx.nd.zeros(np.array([2])).shape == (2,)


@pytest.mark.parametrize("name", ["_backward_relu", "_backward_topk", "_BatchNorm_Relu", "_pointwise", "_sum_to_like"])
def test_internal_operators_are_hidden(name):
    for module in (mx.nd, mx.sym, mx.nd._internal, mx.sym._internal):
        with pytest.raises(AttributeError):
            getattr(module, name)
    assert name not in mx._symbind._list_ops()


@pytest.mark.parametrize("name", ["_plus", "_arange", "_mul_scalar", "_copy"])
def test_public_operators_may_begin_with_an_underscore(name):
    assert callable(getattr(mx.nd._internal, name)) and callable(getattr(mx.sym._internal, name))


def test_values_that_once_meant_missing_obey_their_rules():
    x = mx.nd.ones((2, 3))
    for call in (
        lambda: mx.nd.LeakyReLU(x, act_type="\0"),
        lambda: mx.nd.SequenceReverse(x, axis=-(2**63)),
        lambda: mx.nd.topk(x, ret_typ="\0"),
        lambda: mx.nd.Dropout(x, p=float("nan")),
        lambda: mx.nd.concat(x, x, num_args=3),
        lambda: mx.sym.concat(mx.sym.Variable("a"), mx.sym.Variable("b"), num_args=3),
    ):
        with pytest.raises(mx.MXNetError):
            call()


def test_nan_is_the_largest_in_orders():
    x = mx.nd.array([1, float("nan"), 5])
    assert np.array_equal(mx.nd.topk(x, k=2, ret_typ="value").asnumpy(), [np.nan, 5], equal_nan=True)
    assert np.array_equal(mx.nd.sort(x).asnumpy(), [1, 5, np.nan], equal_nan=True)


def test_two_outputs_of_one_name_have_no_dictionary():
    x = mx.sym.Variable("x")
    executor = mx.sym.Group([mx.sym.exp(x, name="y"), mx.sym.log(x, name="y")]).simple_bind(mx.cpu(), x=(2,))
    with pytest.raises(ValueError, match="y_output"):
        executor.output_dict  # noqa: B018


@pytest.mark.parametrize("name, value", [("nd", mx.nd.ones((2, 3))), ("sym", mx.sym.Variable("x"))])
def test_an_input_is_given_once(name, value):
    operators = getattr(mx, name)
    with pytest.raises(TypeError, match="'data' is given by position and by name"):
        operators.relu(value, data=value)
    with pytest.raises(TypeError, match="given by position"):  # for arrays the second one is where the result goes
        operators.relu(value, value, data=value)
    assert operators.FullyConnected(value, weight=value, num_hidden=2, no_bias=True) is not None

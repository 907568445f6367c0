"""Ranges, diagonals and random numbers, as arrays and as symbols."""

import json

import numpy as np
import pytest

import symbind as mx


def value(symbol, **inputs):
    return symbol.eval(**{name: mx.nd.array(array) for name, array in inputs.items()})[0].asnumpy()


@pytest.mark.parametrize(
    "make, expected",
    [
        (lambda m: m.arange(4), [0, 1, 2, 3]),
        (lambda m: m.arange(1, 5, 2, repeat=2), [1, 1, 3, 3]),
        (lambda m: m.arange(5, 0, -2.5), [5, 2.5]),
        (lambda m: m.arange(0, 5, 1.5, dtype="int32"), [0, 1, 2, 3]),
        (lambda m: m.linspace(0, 1, 5), [0, 0.25, 0.5, 0.75, 1]),
        (lambda m: m.linspace(0, 1, 4, endpoint=False), [0, 0.25, 0.5, 0.75]),
        (lambda m: m.eye(2, 3, 1), [[0, 1, 0], [0, 0, 1]]),
        (lambda m: m.full((2, 2), 7), [[7, 7], [7, 7]]),
    ],
)
def test_arrays_and_symbols_hold_the_same_numbers(make, expected):
    np.testing.assert_array_equal(make(mx.nd).asnumpy(), expected)
    np.testing.assert_array_equal(value(make(mx.sym)), expected)
    assert make(mx.nd).dtype == value(make(mx.sym)).dtype


def test_a_range_is_written_as_it_was_asked_for():
    node = json.loads(mx.sym.arange(5).tojson())["nodes"][0]
    assert node["op"] == "_arange"
    assert node["attrs"]["start"] == "5" and node["attrs"]["stop"] == "None"


def test_a_range_is_as_long_as_the_network_needs():
    net = mx.sym.arange(2, infer_range=True) * mx.sym.var("x")
    np.testing.assert_array_equal(value(net, x=[1, 1, 1]), [2, 3, 4])


def test_sequences_end_where_their_lengths_say():
    data, lengths = mx.nd.arange(6).reshape((3, 2)), mx.nd.array([1, 3])
    masked = mx.nd.SequenceMask(data, lengths, use_sequence_length=True, value=-1)
    np.testing.assert_array_equal(masked.asnumpy(), [[0, 1], [-1, 3], [-1, 5]])
    last = mx.sym.SequenceLast(mx.sym.var("x"), use_sequence_length=True, name="last")
    assert last.list_arguments() == ["x", "last_sequence_length"]


@pytest.mark.parametrize(
    "draw, mean",
    [
        (lambda m, shape: m.exponential(0.5, shape=shape), 0.5),
        (lambda m, shape: m.gamma(9, 0.5, shape=shape), 4.5),
        (lambda m, shape: m.poisson(4, shape=shape), 4),
        (lambda m, shape: m.negative_binomial(3, 0.4, shape=shape), 4.5),
        (lambda m, shape: m.generalized_negative_binomial(2, 0.3, shape=shape), 2),
        (lambda m, shape: m.randint(0, 11, shape=shape), 5),
    ],
)
def test_arrays_and_symbols_draw_the_same_numbers(draw, mean):
    mx.random.seed(5)
    numbers = draw(mx.nd.random, (10000,)).asnumpy()
    assert abs(numbers.mean() - mean) < 0.05 * numbers.std()
    mx.random.seed(5)
    np.testing.assert_array_equal(value(draw(mx.sym.random, (10000,))), numbers)
    mx.random.seed(5)
    np.testing.assert_array_equal(draw(mx.random, (10000,)).asnumpy(), numbers)


def test_arrays_of_parameters_give_a_row_each():
    assert mx.nd.random.gamma(mx.nd.array([1, 2]), mx.nd.array([1, 2]), shape=3).shape == (2, 3)
    assert mx.random.exponential(mx.nd.array([1, 2])).shape == (2,)
    with pytest.raises(ValueError, match="all numbers or all arrays"):
        mx.nd.random.gamma(mx.nd.array([1, 2]), 1)


@pytest.mark.parametrize("draw", [mx.random.uniform, mx.nd.random.normal, mx.random.gamma])
def test_a_context_may_follow_the_shape(draw):
    def drawn(*arguments, **more):
        mx.random.seed(3)
        return draw(1, 2, (2, 3), *arguments, **more).asnumpy()

    out = mx.nd.zeros((2, 3))
    expected = drawn(ctx=mx.cpu())
    np.testing.assert_array_equal(drawn(mx.cpu()), expected)
    np.testing.assert_array_equal(drawn(mx.cpu(), out), expected)
    np.testing.assert_array_equal(drawn(mx.cpu(), out=out), out.asnumpy())
    assert mx.random.normal(0, 1, (2,), mx.cpu(1)).context == mx.cpu(1)


def test_indices_are_drawn_with_their_probabilities():
    data = mx.nd.array([[0, 1, 0], [0.5, 0, 0.5]])
    indices, logs = mx.nd.random.multinomial(data, shape=4, get_prob=True)
    assert indices.dtype == np.int32 and set(indices.asnumpy()[1]) <= {0, 2}
    np.testing.assert_array_equal(indices.asnumpy()[0], [1, 1, 1, 1])
    np.testing.assert_allclose(logs.asnumpy()[1], np.log([0.5] * 4), rtol=1e-6)
    assert len(mx.sym.random.multinomial(mx.sym.var("data")).list_outputs()) == 2
    assert mx.nd.sample_multinomial(mx.nd.array([[0.5, 0.5]]), shape=(0,)).shape == (1, 0)


def test_a_shuffle_keeps_the_rows():
    rows = mx.nd.arange(20).reshape((10, 2))
    mixed = mx.random.shuffle(rows).asnumpy()
    np.testing.assert_array_equal(mixed[np.argsort(mixed[:, 0])], rows.asnumpy())

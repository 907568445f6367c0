"""Loops, branches and masks of mx.nd.contrib and mx.sym.contrib, and functions that choose an operator's parameters."""

import numpy as np
import pytest

import symbind as mx


def recurrent(x, states):
    hidden = mx.sym.tanh(x * mx.sym.var("w") + states[0])
    return [hidden, hidden * 2], [hidden]


def test_foreach_on_symbols_and_on_arrays_agree():
    outputs, states = mx.sym.contrib.foreach(recurrent, mx.sym.var("data"), [mx.sym.var("first")])
    net = mx.sym.Group([*outputs, *states])
    assert net.list_arguments() == ["data", "first", "w"]
    rng = np.random.RandomState(1)
    arrays = {name: mx.nd.array(rng.rand(*shape)) for name, shape in [("data", (4, 3)), ("first", (3,)), ("w", (3,))]}
    computed = net.bind(mx.cpu(), arrays).forward()

    def on_arrays(x, states):
        hidden = mx.nd.tanh(x * arrays["w"] + states[0])
        return [hidden, hidden * 2], [hidden]

    expected, last = mx.nd.contrib.foreach(on_arrays, arrays["data"], [arrays["first"]])
    for ours, theirs in zip(computed, [*expected, *last]):
        np.testing.assert_allclose(ours.asnumpy(), theirs.asnumpy(), rtol=1e-6)


def test_foreach_keeps_the_form_of_its_arguments(tmp_path):
    a, b, s = mx.sym.var("a"), mx.sym.var("b"), mx.sym.var("s")
    output, state = mx.sym.contrib.foreach(lambda x, state: (x[0] + x[1], state + x[0]), [a, b], s)
    assert isinstance(output, mx.sym.Symbol) and isinstance(state, mx.sym.Symbol)
    net = mx.sym.Group([output, state])
    net.save(str(tmp_path / "loop.json"))
    again = mx.sym.load(str(tmp_path / "loop.json"))
    assert again.tojson() == net.tojson() and again.infer_shape(a=(5, 2), b=(5, 2), s=(2,))[1] == [(5, 2), (2,)]
    attributes = net.attr_dict()[net[0].name]
    assert attributes["num_out_data"] == "1" and not any(key.startswith("subgraph") for key in attributes)


def test_a_body_that_fails_says_why():
    data = mx.sym.var("data")
    with pytest.raises(ZeroDivisionError):
        mx.sym.contrib.foreach(lambda x, s: 1 / 0, data, [])
    with pytest.raises(TypeError, match="the outputs of body must be a Symbol"):
        mx.sym.contrib.foreach(lambda x, s: (3, s), data, [])
    with pytest.raises(mx.MXNetError, match="takes 0 states and returns 1"):
        mx.sym.contrib.foreach(lambda x, s: (x, [x]), data, [])


def test_while_loop_stops_and_fills_up_with_zeros():
    outputs, (i, total) = mx.nd.contrib.while_loop(
        lambda i, total: i < 3,
        lambda i, total: (total * 2, [i + 1, total + i]),
        [mx.nd.array([0]), mx.nd.array([1])],
        max_iterations=5,
    )
    assert outputs.asnumpy().ravel().tolist() == [2, 2, 4, 0, 0]
    assert i.asscalar() == 3 and total.asscalar() == 4
    with pytest.raises(ValueError, match="max_iterations"):
        mx.nd.contrib.while_loop(lambda i: i < 3, lambda i: ([], [i]), [mx.nd.array([0])])


def test_cond_calls_one_branch():
    assert mx.nd.contrib.cond(mx.nd.array([2]) > 1, lambda: "then", lambda: "else") == "then"
    assert mx.nd.contrib.cond(mx.nd.array([0]) > 1, lambda: "then", lambda: "else") == "else"


def test_boolean_mask_selects_rows_of_arrays():
    data = mx.nd.array([[1, 2], [3, 4], [5, 6]])
    assert mx.nd.contrib.boolean_mask(data, mx.nd.array([1, 0, 2])).asnumpy().tolist() == [[1, 2], [5, 6]]
    assert mx.nd.contrib.boolean_mask(data, mx.nd.array([0, 0, 0])).shape == (0, 2)
    with pytest.raises(ValueError, match="one element per slice"):
        mx.nd.contrib.boolean_mask(data, mx.nd.array([1, 0]))
    with pytest.raises(NotImplementedError, match="mx.sym.where"):
        mx.sym.contrib.boolean_mask(mx.sym.var("x"), mx.sym.var("index"))


def test_split_v2_takes_indices_or_a_number_of_parts():
    data = mx.nd.arange(12).reshape((2, 6))
    assert [part.shape for part in mx.nd.split_v2(data, (1, 3), axis=1)] == [(2, 1), (2, 2), (2, 3)]
    assert [part.shape for part in data.split_v2(3, axis=1)] == [(2, 2)] * 3
    assert mx.sym.split_v2(mx.sym.var("x"), (1, 3), axis=1).infer_shape(x=(2, 6))[1] == [(2, 1), (2, 2), (2, 3)]
    with pytest.raises(ValueError, match="into 4 equal parts"):
        mx.nd.split_v2(data, 4, axis=1)


def test_histogram_finds_its_range():
    counts, edges = mx.nd.histogram(mx.nd.arange(10), bins=5)
    expected = np.histogram(np.arange(10), bins=5)
    assert counts.asnumpy().tolist() == expected[0].tolist()
    np.testing.assert_allclose(edges.asnumpy(), expected[1], rtol=1e-6)
    net = mx.sym.histogram(mx.sym.var("x"), bins=mx.sym.var("edges"))
    assert net.infer_shape(x=(3, 4), edges=(6,))[1] == [(5,), (6,)]


def test_image_operators_are_functions_of_their_namespace():
    image = mx.nd.array(np.arange(24).reshape(2, 4, 3), dtype="uint8")
    tensor = mx.nd.image.normalize(mx.nd.image.to_tensor(image), mean=0.5, std=(1, 2, 4))
    expected = (np.arange(24).reshape(2, 4, 3).transpose(2, 0, 1) / 255 - 0.5) / np.array([1, 2, 4]).reshape(3, 1, 1)
    np.testing.assert_allclose(tensor.asnumpy(), expected, rtol=1e-5)
    assert mx.sym.image.resize(mx.sym.var("x"), size=3, keep_ratio=True).infer_shape(x=(2, 4, 3))[1] == [(3, 6, 3)]
    assert mx.nd._internal._cvimresize(image, 8, 4).shape == (4, 8, 3)


def test_while_loop_and_cond_on_symbols_and_on_arrays_agree():
    def doubled(space):
        def build(x, w):
            outputs, last = space.contrib.while_loop(
                lambda i, x: i < 3, lambda i, x: (x * w, [i + 1, x * 2]), [x.slice_axis(0, 0, 1), x], max_iterations=5
            )
            return [outputs, *last, space.contrib.cond(x.sum() > 0, lambda: x + w, lambda: x - w)]

        return build

    arrays = {"x": mx.nd.array([0, 1, 2]), "w": mx.nd.array([3, 4, 5])}
    net = mx.sym.Group(doubled(mx.sym)(mx.sym.var("x"), mx.sym.var("w")))
    again = mx.sym.load_json(net.tojson())
    for ours, theirs in zip(again.bind(mx.cpu(), arrays).forward(), doubled(mx.nd)(arrays["x"], arrays["w"])):
        np.testing.assert_allclose(ours.asnumpy(), theirs.asnumpy())
    with pytest.raises(ValueError, match="max_iterations"):
        mx.sym.contrib.while_loop(lambda i: i < 3, lambda i: ([], i), mx.sym.var("i"))
    with pytest.raises(ValueError, match="different lists"):
        mx.sym.contrib.cond(mx.sym.var("p"), lambda: mx.sym.var("a"), lambda: [mx.sym.var("b")])

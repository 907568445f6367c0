"""Recurrent cells: the networks they build, weights, classes written in Python, training."""

import gc
import gzip
import json
import pathlib
import sys
import weakref

import numpy as np
import pytest

import symbind as mx

ORACLE = pathlib.Path(__file__).resolve().parents[1] / "oracle"
sys.path.insert(0, str(ORACLE))
import rnn_networks  # noqa: E402

RECORDED = json.loads(gzip.decompress((ORACLE / "recorded" / "rnn_networks.json.gz").read_bytes()))


def nodes_of(text):
    graph = json.loads(text)
    nodes = [
        (node["op"], node["name"], node.get("attrs", {}), [entry[:2] for entry in node["inputs"]])
        for node in graph["nodes"]
    ]
    return nodes, [head[:2] for head in graph["heads"]], graph["node_row_ptr"]


@pytest.mark.parametrize("name", sorted(RECORDED["networks"]))
def test_networks_are_those_of_mxnet(name):
    with mx.name.NameManager():
        answer = rnn_networks.NETWORKS[name](mx)
    symbol, more = (answer[0], answer[1:]) if isinstance(answer, tuple) else (answer, ())
    expected = RECORDED["networks"][name]
    assert nodes_of(symbol.tojson()) == nodes_of(expected["tojson"])
    assert json.loads(json.dumps(more)) == expected["more"]


@pytest.mark.parametrize("name", sorted(RECORDED["networks"]))
def test_networks_of_mxnet_load(name):
    loaded = mx.sym.load_json(RECORDED["networks"][name]["tojson"])
    assert nodes_of(loaded.tojson()) == nodes_of(RECORDED["networks"][name]["tojson"])


@pytest.mark.parametrize("name", sorted(RECORDED["weights"]))
def test_weights_are_unpacked_as_by_mxnet_and_packed_again(name):
    cell, values = rnn_networks.WEIGHTS[name](mx)
    arguments = {key: mx.nd.array(value) for key, value in values.items()}
    unpacked = cell.unpack_weights(arguments)
    expected = RECORDED["weights"][name]
    assert sorted(unpacked) == sorted(expected)
    for key, array in unpacked.items():
        assert list(array.shape) == expected[key]["shape"]
        assert array.asnumpy().ravel().tolist() == expected[key]["data"]
    packed = cell.pack_weights(unpacked)
    assert sorted(packed) == sorted(arguments)
    for key, array in packed.items():
        assert np.array_equal(array.asnumpy(), arguments[key].asnumpy())


def outputs_of(symbol, arguments, is_train=False, **shapes):
    executor = symbol.simple_bind(mx.cpu(), grad_req="null", **shapes)
    for name, array in executor.arg_dict.items():
        array[:] = arguments[name]
    return [output.asnumpy() for output in executor.forward(is_train=is_train)]


@pytest.mark.parametrize("mode", ["rnn_relu", "rnn_tanh", "lstm", "gru"])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layout", ["NTC", "TNC"])
def test_fused_and_unfused_cells_agree(mode, bidirectional, layout):
    fused = mx.rnn.FusedRNNCell(5, num_layers=2, mode=mode, bidirectional=bidirectional, prefix="f_")
    data = mx.sym.Variable("data")
    one, _ = fused.unroll(4, data, layout=layout, merge_outputs=True)
    other, _ = fused.unfuse().unroll(4, data, layout=layout, merge_outputs=True)
    rng = np.random.RandomState(1)
    shapes, _, _ = one.infer_shape(data=(4, 4, 3))
    arguments = dict(zip(one.list_arguments(), [rng.uniform(-0.5, 0.5, shape) for shape in shapes]))
    unpacked = fused.unpack_weights({name: mx.nd.array(value) for name, value in arguments.items() if name != "data"})
    stack = fused.unfuse()
    packed = stack.pack_weights(unpacked)
    packed["data"] = mx.nd.array(arguments["data"])
    assert sorted(packed) == sorted(other.list_arguments())
    expected = outputs_of(one, arguments, data=(4, 4, 3))[0]
    actual = outputs_of(other, packed, data=(4, 4, 3))[0]
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


class Decay(mx.rnn.BaseRNNCell):
    """h' = tanh(W·x) + rate · h"""

    def __init__(self, num_hidden, rate=0.5, prefix="decay_", params=None):
        super().__init__(prefix=prefix, params=params)
        self._num_hidden = num_hidden
        self.rate = rate
        self.weight = self.params.get("weight")

    @property
    def state_info(self):
        return [{"shape": (0, self._num_hidden), "__layout__": "NC"}]

    @property
    def _gate_names(self):
        return ()

    def __call__(self, inputs, states):
        self._counter += 1
        name = f"{self._prefix}t{self._counter}_"
        fc = mx.sym.FullyConnected(
            inputs, weight=self.weight, no_bias=True, num_hidden=self._num_hidden, name=name + "fc"
        )
        output = self._get_activation(fc, "tanh", name=name + "act") + self.rate * states[0]
        return output, [output]


def decayed(x, weight, rate=0.5):
    """(steps, batch, features) → outputs of all steps"""
    state, outputs = 0, []
    for step in x:
        state = np.tanh(step @ weight.T) + rate * state
        outputs.append(state)
    return np.stack(outputs)


def test_a_cell_of_ones_own_unrolls():
    cell = Decay(4)
    outputs, states = cell.unroll(3, mx.sym.Variable("data"), layout="TNC", merge_outputs=True)
    assert outputs.list_arguments() == ["data", "decay_weight"] and len(states) == 1
    assert states[0].name.startswith("_plus") and cell._counter == 2
    rng = np.random.RandomState(0)
    x, weight = rng.randn(3, 2, 5), rng.randn(4, 5)
    got = outputs_of(outputs, {"data": x, "decay_weight": weight}, data=(3, 2, 5))[0]
    np.testing.assert_allclose(got, decayed(x, weight), rtol=1e-5)
    assert cell.state_shape == [(0, 4)]


def test_cells_of_ones_own_work_inside_others():
    stack = mx.rnn.SequentialRNNCell()
    stack.add(Decay(4, prefix="low_"))
    stack.add(mx.rnn.ResidualCell(Decay(4, prefix="middle_")))
    stack.add(mx.rnn.ZoneoutCell(Decay(4, prefix="zone_"), zoneout_states=0.5))
    stack.add(mx.rnn.BidirectionalCell(Decay(4, prefix="l_"), Decay(4, prefix="r_", rate=0.25)))
    outputs, _ = stack.unroll(3, mx.sym.Variable("data"), layout="TNC", merge_outputs=True)
    names = ["data", "low_weight", "middle_weight", "zone_weight", "l_weight", "r_weight"]
    assert outputs.list_arguments() == names
    assert stack.state_shape == [(0, 4)] * 5
    rng = np.random.RandomState(0)
    values = {name: rng.randn(4, 4) for name in names}
    values["data"] = rng.randn(3, 2, 4)
    x = decayed(values["data"], values["low_weight"])
    x = x + decayed(x, values["middle_weight"])
    x = decayed(x, values["zone_weight"])
    left = decayed(x, values["l_weight"])
    right = decayed(x[::-1], values["r_weight"], 0.25)[::-1]
    got = outputs_of(outputs, values, data=(3, 2, 4))[0]
    np.testing.assert_allclose(got, np.concatenate([left, right], 2), rtol=1e-4, atol=1e-5)


def test_a_derived_cell_replaces_a_step_and_calls_the_one_it_replaces():
    class Halved(mx.rnn.LSTMCell):
        calls = 0

        def __call__(self, inputs, states):
            Halved.calls += 1
            output, states = super().__call__(inputs, states)
            return output * 0.5, states

        def reset(self):
            self.resets = getattr(self, "resets", 0) + 1
            super().reset()

    cell = Halved(3, prefix="h_")
    stack = mx.rnn.SequentialRNNCell()
    stack.add(cell)
    outputs, _ = stack.unroll(4, mx.sym.Variable("data"), merge_outputs=False)
    assert Halved.calls == 4 and cell.resets == 2
    assert cell._counter == 3 and cell._num_hidden == 3 and cell._iW.name == "h_i2h_weight"
    plain, _ = mx.rnn.LSTMCell(3, prefix="h_").unroll(4, mx.sym.Variable("data"), merge_outputs=False)
    rng = np.random.RandomState(0)
    shapes, _, _ = plain[3].infer_shape(data=(2, 4, 5))
    values = dict(zip(plain[3].list_arguments(), [rng.randn(*shape) for shape in shapes]))
    expected = outputs_of(plain[3], values, data=(2, 4, 5))[0]
    np.testing.assert_allclose(outputs_of(outputs[3], values, data=(2, 4, 5))[0], expected / 2, rtol=1e-6)


def test_a_derived_modifier_and_an_own_unroll():
    class Doubled(mx.rnn.ModifierCell):
        def __call__(self, inputs, states):
            output, states = self.base_cell(inputs, states)
            return output * 2, states

    class Backwards(mx.rnn.GRUCell):
        def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None):
            outputs, states = super().unroll(length, inputs[::-1], begin_state, layout, merge_outputs)
            return outputs[::-1], states

    stack = mx.rnn.SequentialRNNCell()
    stack.add(Doubled(mx.rnn.RNNCell(3, prefix="a_")))
    stack.add(Backwards(3, prefix="b_"))
    steps = [mx.sym.Variable(f"t{i}") for i in range(2)]
    outputs, states = stack.unroll(2, steps)
    assert outputs[1].name == "b_t0_out" and states[1].name == "b_t1_out"


def test_an_own_begin_state_is_asked():
    class Learned(mx.rnn.RNNCell):
        def begin_state(self, **kwargs):
            return [mx.sym.Variable("first_state", shape=(1, 3))]

    outputs, _ = Learned(3).unroll(2, mx.sym.Variable("data"), merge_outputs=True)
    assert "first_state" in outputs.list_arguments()
    stack = mx.rnn.SequentialRNNCell()
    stack.add(Learned(3))
    assert [state.name for state in stack.begin_state(func=mx.sym.Variable)] == ["first_state"]


def test_begin_state_takes_a_function_and_its_keywords():
    cell = mx.rnn.LSTMCell(3, prefix="l_")
    states = cell.begin_state(func=mx.sym.Variable)
    assert [state.name for state in states] == ["l_begin_state_0", "l_begin_state_1"]
    states = cell.begin_state(func=mx.sym.ones, shape=(2, 3))
    assert states[0].infer_shape()[1] == [(2, 3)]
    assert mx.rnn.ZoneoutCell(cell).begin_state(init_sym=mx.sym.Variable)[0].name == "l_begin_state_4"


def states_of(cell, **options):
    """The names of the states, nested as unroll returns them."""

    def named(states):
        return [state.name if isinstance(state, mx.sym.Symbol) else named(state) for state in states]

    return named(cell.unroll(2, mx.sym.Variable("data"), **options)[1])


@pytest.mark.parametrize("merge_outputs", [None, True, False])
def test_states_of_each_direction_are_a_list_of_their_own(merge_outputs):
    def both(kind, left, right):
        return mx.rnn.BidirectionalCell(kind(3, prefix=left), kind(3, prefix=right))

    lstm = [["l_t1_out", "l_t1_state"], ["r_t1_out", "r_t1_state"]]
    gru = [["a_t1_out"], ["b_t1_out"]]
    options = {"merge_outputs": merge_outputs}
    assert states_of(both(mx.rnn.LSTMCell, "l_", "r_"), **options) == lstm
    assert states_of(both(mx.rnn.GRUCell, "a_", "b_"), **options) == gru
    stack = mx.rnn.SequentialRNNCell()
    stack.add(mx.rnn.RNNCell(6, prefix="first_"))
    stack.add(mx.rnn.ResidualCell(both(mx.rnn.LSTMCell, "l_", "r_")))
    stack.add(both(mx.rnn.GRUCell, "a_", "b_"))
    stack.add(mx.rnn.RNNCell(3, prefix="last_"))
    assert states_of(stack, **options) == ["first_t1_out", *lstm, *gru, "last_t1_out"]
    inner = mx.rnn.BidirectionalCell(both(mx.rnn.LSTMCell, "l_", "r_"), both(mx.rnn.GRUCell, "a_", "b_"))
    assert states_of(inner, **options) == [lstm, gru]
    unfused = mx.rnn.FusedRNNCell(3, num_layers=2, bidirectional=True, mode="gru", prefix="f_").unfuse()
    assert states_of(unfused, **options) == [["f_l0_t1_out"], ["f_r0_t1_out"], ["f_l1_t1_out"], ["f_r1_t1_out"]]

    class Own(mx.rnn.BidirectionalCell):
        def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None):
            return super().unroll(length, inputs, begin_state, layout, merge_outputs)

    stack = mx.rnn.SequentialRNNCell()
    stack.add(Own(mx.rnn.LSTMCell(3, prefix="l_"), mx.rnn.LSTMCell(3, prefix="r_")))
    assert states_of(stack, **options) == lstm
    # They begin another sequence as they are.
    _, states = both(mx.rnn.GRUCell, "a_", "b_").unroll(2, mx.sym.Variable("x"))
    outputs, _ = both(mx.rnn.GRUCell, "c_", "d_").unroll(2, mx.sym.Variable("data"), begin_state=states)
    assert {"x", "a_i2h_weight", "b_i2h_weight"} <= set(mx.sym.Group(outputs).list_arguments())


def test_cells_have_the_members_that_scripts_read():
    assert mx.rnn.DropoutCell(0.25).dropout == 0.25
    zoneout = mx.rnn.ZoneoutCell(mx.rnn.LSTMCell(3), 0.5, 0.25)
    assert (zoneout.zoneout_outputs, zoneout.zoneout_states, zoneout.prev_output) == (0.5, 0.25, None)
    output, _ = zoneout(mx.sym.Variable("x"), zoneout.begin_state())
    assert zoneout.prev_output.name == output.name
    fused = mx.rnn.FusedRNNCell(3, 2, mode="gru", bidirectional=True, get_next_state=True, prefix="f_")
    assert (fused._directions, fused._get_next_state, fused._num_gates) == (["l", "r"], True, 3)
    assert fused._parameter.name == "f_parameters"
    both = mx.rnn.BidirectionalCell(mx.rnn.RNNCell(3, prefix="l_"), mx.rnn.RNNCell(3, prefix="r_"), output_prefix="o_")
    assert both._output_prefix == "o_"
    assert mx.rnn.RNNCell(3, activation="relu")._activation == "relu"
    own = lambda data, name=None: mx.sym.sin(data, name=name)  # noqa: E731
    assert mx.rnn.RNNCell(3, activation=own)._activation is own
    images = mx.rnn.ConvLSTMCell((1, 3, 6, 7), 2, h2h_kernel=(5, 3), i2h_stride=(2, 1))
    assert (images._num_gates, images._state_shape, images._h2h_pad) == (4, (0, 2, 3, 7), (2, 1))
    assert (images._h2h_kernel, images._i2h_stride, images._conv_layout) == ((5, 3), (2, 1), "NCHW")
    x = mx.sym.Variable("x")
    products = images._conv_forward(x, [mx.sym.Variable("h")], "t0_")
    assert [product.name for product in products] == ["t0_i2h", "t0_h2h"]
    assert images._get_activation(x, images._activation, name="act").attr("slope") == "0.2"


def test_a_derived_cell_computes_with_the_members_of_its_base_and_sets_its_own():
    class Halved(mx.rnn.RNNCell):
        def __init__(self, num_hidden, prefix="halved_"):
            super().__init__(num_hidden, activation="relu", prefix=prefix)
            self._num_hidden = num_hidden  # as in cells written for MXNet
            self._activation = "sigmoid"

        def __call__(self, inputs, states):
            self._counter += 1
            name = f"{self._prefix}t{self._counter}_"
            i2h = mx.sym.FullyConnected(inputs, self._iW, self._iB, num_hidden=self._num_hidden, name=name + "i2h")
            h2h = mx.sym.FullyConnected(states[0], self._hW, self._hB, num_hidden=self._num_hidden, name=name + "h2h")
            output = self._get_activation((i2h + h2h) / 2, self._activation, name=name + "out")
            return output, [output]

    outputs, _ = Halved(2).unroll(1, [mx.sym.Variable("x")])
    bound = outputs[0].bind(
        mx.cpu(),
        {
            "x": mx.nd.ones((1, 1)),
            "halved_i2h_weight": mx.nd.array([[2.0], [-2.0]]),
            "halved_i2h_bias": mx.nd.zeros((2,)),
            "halved_h2h_weight": mx.nd.zeros((2, 2)),
            "halved_h2h_bias": mx.nd.zeros((2,)),
        },
    )
    np.testing.assert_allclose(bound.forward()[0].asnumpy(), [[0.7310586, 0.2689414]], rtol=1e-5)


def test_mistakes_are_explained():
    with pytest.raises(TypeError, match="expected a recurrent cell"):
        mx.rnn.SequentialRNNCell().add("lstm")
    cell = mx.rnn.LSTMCell(3)
    with pytest.raises(mx.MXNetError, match="length is 2 and there are 1 inputs"):
        cell.unroll(2, [mx.sym.Variable("x")])
    with pytest.raises(mx.MXNetError, match="axis of time"):
        cell.unroll(2, mx.sym.Variable("x"), layout="NC")
    with pytest.raises(NotImplementedError, match="state_info"):
        mx.rnn.BaseRNNCell().state_info  # noqa: B018
    with pytest.raises(NotImplementedError, match="__call__"):
        mx.rnn.BaseRNNCell()(mx.sym.Variable("x"), [])
    with pytest.raises(mx.MXNetError, match="cannot be stepped"):
        mx.rnn.FusedRNNCell(3)(mx.sym.Variable("x"), [])
    with pytest.raises(mx.MXNetError, match="unfuse"):
        mx.rnn.ZoneoutCell(mx.rnn.FusedRNNCell(3))
    with pytest.raises(mx.MXNetError, match="inside a modifier"):
        base = mx.rnn.GRUCell(3)
        mx.rnn.ResidualCell(base)
        base.begin_state()
    with pytest.raises(mx.MXNetError, match="needs 2 states"):
        cell(mx.sym.Variable("x"), [])
    with pytest.raises(mx.MXNetError, match="no parameter lstm_i2h_weight"):
        cell.unpack_weights({})

    class Wrong(mx.rnn.RNNCell):
        def __call__(self, inputs, states):
            return inputs

    with pytest.raises(TypeError, match=r"returns \(output, states\)"):
        Wrong(3).unroll(2, mx.sym.Variable("x"))


def test_cells_that_refer_to_each_other_are_freed():
    class Own(Decay):
        pass

    stack = mx.rnn.SequentialRNNCell()
    cell = Own(3)
    cell.stack = stack
    stack.add(cell)
    dead = weakref.ref(cell)
    del stack, cell
    gc.collect()
    assert dead() is None


def sequences():
    """Sums of the bits so far, modulo 2."""
    rng = np.random.RandomState(3)
    bits = rng.randint(0, 2, (512, 6)).astype("float32")
    return bits, (np.cumsum(bits, 1) % 2).astype("float32")


def test_a_fused_network_learns_and_its_checkpoint_is_read_by_cells(tmp_path):
    mx.random.seed(7)
    bits, parity = sequences()
    cell = mx.rnn.FusedRNNCell(16, num_layers=1, mode="lstm", prefix="lstm_")
    data, label = mx.sym.Variable("data"), mx.sym.Variable("softmax_label")

    def network(outputs):
        net = mx.sym.FullyConnected(mx.sym.Reshape(outputs, shape=(-1, 16)), num_hidden=2, name="out")
        return mx.sym.SoftmaxOutput(net, mx.sym.Reshape(label, shape=(-1,)), name="softmax")

    inputs = mx.sym.Reshape(data, shape=(0, 0, 1))
    net = network(cell.unroll(6, inputs, merge_outputs=True)[0])
    iterator = mx.io.NDArrayIter(bits, parity, batch_size=32, shuffle=True)
    module = mx.mod.Module(net)
    prefix = str(tmp_path / "parity")
    module.fit(
        iterator,
        num_epoch=30,
        optimizer="adam",
        optimizer_params={"learning_rate": 0.02},
        initializer=mx.init.Xavier(),
        eval_metric=mx.metric.Accuracy(),
        epoch_end_callback=mx.rnn.do_rnn_checkpoint(cell, prefix, 30),
    )
    score = dict(module.score(iterator, mx.metric.Accuracy()))["accuracy"]
    assert score > 0.97

    stack = cell.unfuse()
    unrolled = network(stack.unroll(6, inputs, merge_outputs=True)[0])
    _, arg_params, aux_params = mx.rnn.load_rnn_checkpoint(stack, prefix, 30)
    reader = mx.mod.Module(unrolled)
    reader.bind(iterator.provide_data, iterator.provide_label, for_training=False)
    reader.set_params(arg_params, aux_params)
    assert dict(reader.score(iterator, mx.metric.Accuracy()))["accuracy"] == pytest.approx(score, abs=1e-3)
    symbol, packed, _ = mx.rnn.load_rnn_checkpoint([cell], prefix, 30)
    assert "lstm_parameters" in packed and symbol.list_arguments() == net.list_arguments()


def test_the_old_function_still_unrolls():
    with pytest.warns(DeprecationWarning):
        outputs, states = mx.rnn.rnn_unroll(mx.rnn.LSTMCell(4), 2, input_prefix="in_")
    assert outputs[0].list_arguments()[0] == "in_t0_data" and len(states) == 2


@pytest.mark.parametrize("kind", ["ConvRNNCell", "ConvLSTMCell", "ConvGRUCell"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_cells_over_images_run(kind, layout):
    shape = (2, 3, 5, 4) if layout == "NCHW" else (2, 5, 4, 3)
    cell = getattr(mx.rnn, kind)(shape, 2, conv_layout=layout)
    steps = [mx.sym.Variable(f"t{i}") for i in range(2)]
    outputs, _ = cell.unroll(2, steps)
    executor = mx.sym.Group(outputs).simple_bind(mx.cpu(), t0=shape, t1=shape)
    for name, array in executor.arg_dict.items():
        array[:] = np.random.RandomState(len(name)).uniform(-1, 1, array.shape)
    got = [output.asnumpy() for output in executor.forward()]
    expected = (2, 2, 5, 4) if layout == "NCHW" else (2, 5, 4, 2)
    assert all(each.shape == expected and np.abs(each).max() > 0 for each in got)


SENTENCES = [[1, 2, 3], [4, 5], [1, 2, 3, 4, 5, 6], [7], [1, 2], [3, 4, 5], [2] * 9]


def test_words_are_numbered():
    assert mx.rnn.encode_sentences([["a", "b", "c"], ["b", "d", ""]]) == (
        [[0, 1, 2], [1, 3, 4]],
        {"\n": -1, "a": 0, "b": 1, "c": 2, "d": 3, "": 4},
    )
    assert mx.rnn.encode_sentences([["a", "z", "q", "z"]], invalid_label=2)[0] == [[0, 1, 3, 1]]
    vocab = {"a": 5, "b": 6}
    assert mx.rnn.encode_sentences([["a", "b"]], vocab=vocab) == ([[5, 6]], vocab)
    with pytest.raises(ValueError, match="'z' is not in the vocabulary"):
        mx.rnn.encode_sentences([["z"]], vocab=vocab)
    assert mx.rnn.encode_sentences([["a", "z"]], vocab=vocab, unknown_token="?") == ([[5, 7]], {**vocab, "?": 7})


@pytest.mark.parametrize("layout", ["NT", "TN"])
def test_sentences_come_in_buckets(layout):
    mx.random.seed(2)
    iterator = mx.rnn.BucketSentenceIter(SENTENCES, 2, buckets=[6, 3], layout=layout, dtype="int32")
    assert iterator.buckets == [3, 6] and iterator.default_bucket_key == 6 and iterator.batch_size == 2
    shape = (2, 6) if layout == "NT" else (6, 2)
    assert iterator.provide_data[0].shape == shape and iterator.provide_label[0].name == "softmax_label"
    batches = list(iterator)
    assert [batch.bucket_key for batch in batches] == [3, 3]
    for batch in batches:
        assert batch.data[0].dtype == np.int32 and batch.pad == 0
        data, label = batch.data[0].asnumpy(), batch.label[0].asnumpy()
        data, label = (data, label) if layout == "NT" else (data.T, label.T)
        assert np.array_equal(label[:, :-1], data[:, 1:]) and (label[:, -1] == -1).all()
        for row in data:
            assert [word for word in row if word != -1] in SENTENCES
    iterator.reset()
    assert len(list(iterator)) == 2
    assert mx.rnn.BucketSentenceIter(SENTENCES, 2).buckets == [2, 3]
    with pytest.raises(mx.MXNetError, match="no length has 5 sentences"):
        mx.rnn.BucketSentenceIter(SENTENCES, 5)


class InOrder(mx.rnn.BucketSentenceIter):
    """An iterator that draws no order, written for MXNet's attributes."""

    def reset(self):
        self.curr_idx = 0
        self.nddata, self.ndlabel = [], []
        for rows in self.data:
            label = np.full_like(rows, self.invalid_label)
            label[:, :-1] = rows[:, 1:]
            self.nddata.append(mx.nd.array(rows, dtype=self.dtype))
            self.ndlabel.append(mx.nd.array(label, dtype=self.dtype))


@pytest.mark.parametrize("layout", ["NT", "TN"])
def test_a_class_of_ones_own_may_order_the_sentences(layout):
    sentences = [[1, 2], [3], [4, 5, 6], [7, 8], [9, 10, 11, 12]]
    iterator = InOrder(sentences, 2, buckets=[2, 3], invalid_label=0, layout=layout)
    assert [rows.tolist() for rows in iterator.data] == [[[1, 2], [3, 0], [7, 8]], [[4, 5, 6]]]
    assert iterator.idx == [(0, 0)]
    for _ in range(2):
        batches = list(iterator)
        assert [batch.bucket_key for batch in batches] == [2] and iterator.curr_idx == 1
        turned = [batches[0].data[0].asnumpy(), batches[0].label[0].asnumpy()]
        data, label = turned if layout == "NT" else [array.T for array in turned]
        assert data.tolist() == [[1, 2], [3, 0]] and label.tolist() == [[2, 0], [0, 0]]
        iterator.reset()


def test_a_reset_in_python_may_forget_the_last_output():
    class Forgetting(mx.rnn.ZoneoutCell):
        def reset(self):
            super().reset()
            self.prev_output = None

    cell = Forgetting(mx.rnn.LSTMCell(3), zoneout_outputs=0.5)
    cell.reset()
    assert cell.prev_output is None
    outputs, _ = cell.unroll(2, mx.sym.Variable("data"), merge_outputs=True)
    assert outputs.infer_shape(data=(4, 2, 5))[1] == [(4, 2, 3)]

"""Initializers: MXNet's rules by name, texts, classes written in Python, and those of __init__ attributes."""

import copy
import json
import logging
import pickle

import numpy as np
import pytest

import symbind as mx

I = mx.init  # noqa: E741


def filled(initializer, name, shape=(4, 6), attrs=None, plain=False):
    array = mx.nd.full(shape, 9)
    initializer(name if plain else I.InitDesc(name, attrs), array)
    return array.asnumpy()


def test_a_description_is_a_name_with_attributes():
    desc = I.InitDesc("fc_weight", {"__init__": "zeros"})
    assert isinstance(desc, str) and desc == "fc_weight" and desc.endswith("weight")
    assert desc.attrs == {"__init__": "zeros"} and desc.global_init is None
    assert I.InitDesc("x").attrs == {}
    assert mx.initializer is I


def test_the_end_of_the_name_decides():
    xavier = I.Xavier()
    assert np.abs(filled(xavier, "fc_weight")).max() <= np.sqrt(3 / 5) + 1e-6
    assert filled(xavier, "fc_weight").std() > 0
    for name, value in {"fc_bias": 0, "bn_gamma": 1, "bn_beta": 0, "q_min": 0, "q_max": 1}.items():
        assert (filled(xavier, name) == value).all(), name
    with pytest.raises(mx.MXNetError, match="something.*no rule"):
        filled(xavier, "something")


def test_plain_names_follow_the_old_rules():
    uniform = I.Uniform(0.1)
    for name, value in {"bn_moving_mean": 0, "bn_moving_var": 1, "bn_moving_inv_var": 0, "bn_moving_avg": 0}.items():
        assert (filled(uniform, name, plain=True) == value).all(), name
    np.testing.assert_array_equal(filled(uniform, "stn_loc_bias", (6,), plain=True), [1, 0, 0, 0, 1, 0])
    kernel = filled(uniform, "upsampling_weight", (1, 1, 4, 4), plain=True)
    np.testing.assert_allclose(kernel[0, 0], np.outer([0.25, 0.75, 0.75, 0.25], [0.25, 0.75, 0.75, 0.25]))


def test_distributions():
    mx.random.seed(3)
    shape = (200, 300)
    uniform = filled(I.Uniform(0.5), "w_weight", shape)
    assert np.abs(uniform).max() <= 0.5 and abs(uniform.std() - 0.5 / np.sqrt(3)) < 0.005
    assert abs(filled(I.Normal(2.0), "w_weight", shape).std() - 2) < 0.05
    gaussian = filled(I.Xavier("gaussian", "in", 2), "w_weight", shape)
    assert abs(gaussian.std() - np.sqrt(2 / 300)) < 0.002
    msra = filled(I.MSRAPrelu("out", 0.5), "w_weight", shape)
    assert abs(msra.std() - np.sqrt(2 / 1.25 / 200)) < 0.002
    orthogonal = filled(I.Orthogonal(scale=2), "w_weight", (20, 30))
    np.testing.assert_allclose(orthogonal @ orthogonal.T, 4 * np.eye(20), atol=1e-4)
    mx.random.seed(3)
    np.testing.assert_array_equal(filled(I.Uniform(0.5), "w_weight", shape), uniform)


def test_values_that_are_known():
    assert (filled(I.Zero(), "a_weight") == 0).all() and (filled(I.One(), "a_weight") == 1).all()
    assert (filled(I.Constant(2.5), "a_weight") == 2.5).all()
    rows = np.arange(24, dtype="float32").reshape(4, 6)
    np.testing.assert_array_equal(filled(I.Constant(mx.nd.array(rows)), "a_weight"), rows)
    np.testing.assert_array_equal(filled(I.LSTMBias(2.0), "i2h_weight", (8,)), [0, 0, 2, 2, 0, 0, 0, 0])
    ramp = [0.25, 0.75, 0.75, 0.25]
    np.testing.assert_allclose(filled(I.Bilinear(), "up_weight", (1, 1, 4, 4))[0, 0], np.outer(ramp, ramp))


def test_fused_recurrent_parameters():
    # one layer: 4 gates of (3 x 2) and (3 x 3), then 2 x 4 biases of 3
    fused = I.FusedRNN(I.Constant(5), num_hidden=3, num_layers=1, mode="lstm", forget_bias=7)
    values = filled(I.Uniform(), "rnn_parameters", (4 * 3 * 5 + 24,), {"__init__": fused.dumps()})
    assert (values[:60] == 5).all()
    np.testing.assert_array_equal(values[60:].reshape(2, 4, 3)[:, 1], np.full((2, 3), 7))
    assert (values[60:].reshape(2, 4, 3)[:, [0, 2, 3]] == 0).all()
    inner = json.loads(fused.dumps())[1]["init"]
    assert inner == '["constant", {"value": 5}]'
    inherits = I.FusedRNN(None, 3, 1, "lstm")
    values = filled(I.Constant(4), "rnn_parameters", (84,), {"__init__": inherits.dumps()})
    assert (values[:60] == 4).all()


def test_load_and_mixed(tmp_path):
    arrays = {"arg:fc_weight": mx.nd.ones((4, 6)) * 3, "aux:bn_moving_mean": mx.nd.ones((2,))}
    load = I.Load(arrays, default_init=I.Zero())
    assert (filled(load, "fc_weight") == 3).all() and (filled(load, "other_weight") == 0).all()
    mx.nd.save(str(tmp_path / "a.params"), arrays)
    assert (filled(I.Load(str(tmp_path / "a.params")), "fc_weight", plain=True) == 3).all()
    with pytest.raises(mx.MXNetError, match="shape"):
        filled(load, "fc_weight", (2, 2))
    with pytest.raises(mx.MXNetError, match="not among"):
        filled(I.Load(arrays), "other_weight")
    mixed = I.Mixed(["fc.*", ".*"], [I.Constant(1), I.Constant(2)])
    assert (filled(mixed, "fc_weight") == 1).all() and (filled(mixed, "conv_weight") == 2).all()
    with pytest.raises(mx.MXNetError, match="no pattern"):
        filled(I.Mixed(["fc"], [I.Zero()]), "conv_weight")
    missing = I.Mixed(["conv", ".*"], [None, I.One()])
    assert filled(missing, "fc_weight").all()
    with pytest.raises(mx.MXNetError, match="'conv_weight' matches the pattern 'conv', for which no initializer"):
        filled(missing, "conv_weight")


class Renamed(I.Load):
    def __init__(self, param, prefix):
        super().__init__(param)
        for name in list(self.param):
            self.param[prefix + name] = self.param.pop(name)
        self.default_init = I.One()


def test_what_load_has_read_may_be_changed(tmp_path):
    arrays = {"arg:weight": mx.nd.ones((4, 6)) * 3, "aux:mean": mx.nd.zeros((4,))}
    mx.nd.save(str(tmp_path / "a.params"), arrays)
    for source in (arrays, str(tmp_path / "a.params")):
        load = Renamed(source, "fc_")
        assert list(load.param) == ["fc_weight", "fc_mean"] and load.verbose is False
        assert (filled(load, "fc_weight") == 3).all() and (filled(load, "weight") == 1).all()
        load.param["fc_weight"] = mx.nd.ones((4, 6)) * 5
        for other in (load, pickle.loads(pickle.dumps(load)), copy.deepcopy(load)):
            assert (filled(other, "fc_weight") == 5).all() and (filled(other, "weight") == 1).all()
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name="fc")
    module = mx.mod.Module(net, label_names=None)
    module.bind([("data", (2, 6))], for_training=False)
    module.init_params(load)
    params = module.get_params()[0]
    assert (params["fc_weight"].asnumpy() == 5).all() and (params["fc_bias"].asnumpy() == 0).all()  # a bias is 0
    with pytest.raises(TypeError, match="a file or a dict of arrays"):
        I.Load([mx.nd.ones(2)])


TEXTS = [
    (lambda: I.Zero(), '["zero", {}]'),
    (lambda: I.Uniform(), '["uniform", {"scale": 0.07}]'),
    (lambda: I.Normal(0.5), '["normal", {"sigma": 0.5}]'),
    (lambda: I.Constant(3), '["constant", {"value": 3}]'),
    (lambda: I.Xavier(), '["xavier", {"rnd_type": "uniform", "factor_type": "avg", "magnitude": 3}]'),
    (lambda: I.MSRAPrelu(), '["msraprelu", {"factor_type": "avg", "slope": 0.25}]'),
    (lambda: I.Orthogonal(), '["orthogonal", {"scale": 1.414, "rand_type": "uniform"}]'),
    (lambda: I.LSTMBias(), '["lstmbias", {"forget_bias": 1.0}]'),
    (lambda: I.Bilinear(), '["bilinear", {}]'),
]


@pytest.mark.parametrize("make, text", TEXTS)
def test_texts_are_mxnets(make, text):
    initializer = make()
    assert initializer.dumps() == text
    again = I.create(text)
    assert again == initializer and type(again) is type(initializer)
    for other in (pickle.loads(pickle.dumps(initializer)), copy.deepcopy(initializer)):
        assert other == initializer
        mx.random.seed(1)
        expected = filled(initializer, "a_weight", (4, 4, 2, 2))
        mx.random.seed(1)
        np.testing.assert_array_equal(filled(other, "a_weight", (4, 4, 2, 2)), expected)


def test_arguments_are_attributes_and_take_effect():
    xavier = I.Xavier(factor_type="in", magnitude=2.34)
    assert (xavier.rnd_type, xavier.factor_type, xavier.magnitude) == ("uniform", "in", 2.34)
    assert repr(xavier) == "Xavier(rnd_type='uniform', factor_type='in', magnitude=2.34)"
    assert xavier != I.Xavier() and I.MSRAPrelu().magnitude == pytest.approx(2 / 1.0625)
    normal = I.Normal(1)
    normal.sigma = 0
    assert (filled(normal, "a_weight") == 0).all()
    with pytest.raises(mx.MXNetError, match="factor_type must be avg, in or out"):
        I.Xavier(factor_type="middle")


@I.register
class Steps(I.Initializer):
    """0, 1, 2, … times a factor; its biases are 5."""

    def __init__(self, factor=1):
        super().__init__(factor=factor)
        self.factor = factor

    def _init_weight(self, desc, arr):
        arr[:] = self.factor * np.arange(arr.size).reshape(arr.shape)

    def _init_bias(self, desc, arr):
        arr[:] = 5

    def _init_default(self, desc, arr):
        arr[:] = len(desc)


def test_an_initializer_written_in_python():
    steps = Steps(2)
    np.testing.assert_array_equal(filled(steps, "fc_weight", (2, 2)), [[0, 2], [4, 6]])
    assert (filled(steps, "fc_bias") == 5).all() and (filled(steps, "bn_gamma") == 1).all()
    assert (filled(steps, "other") == 5).all() and (filled(steps, "others", plain=True) == 6).all()
    assert steps.dumps() == '["steps", {"factor": 2}]'
    assert I.create("steps", factor=3).factor == 3
    assert pickle.loads(pickle.dumps(steps)).factor == 2


def test_the_constants_that_a_class_of_ones_own_may_call():
    class Calls(I.Initializer):
        def _init_weight(self, desc, arr):
            {"zero": self._init_zero, "one": self._init_one, "bilinear": self._init_bilinear}[desc[:-7]](desc, arr)

    assert (filled(Calls(), "zero_weight") == 0).all() and (filled(Calls(), "one_weight") == 1).all()
    shape = (1, 1, 4, 4)
    np.testing.assert_array_equal(filled(Calls(), "bilinear_weight", shape), filled(I.Bilinear(), "x_weight", shape))


def test_an_attribute_finds_a_registered_python_initializer():
    attrs = {"__init__": '["steps", {"factor": 3}]'}
    np.testing.assert_array_equal(filled(I.Zero(), "any_name", (3,), attrs), [0, 3, 6])
    variable = mx.sym.Variable("v", init=Steps(4))
    attrs = variable.attr_dict()["v"]
    np.testing.assert_array_equal(filled(I.Uniform(), "v", (3,), attrs), [0, 4, 8])


def test_what_a_variables_own_initializer_is_told():
    told = []

    @I.register
    class Told(I.Initializer):
        def _init_weight(self, desc, arr):
            told.append((str(desc), desc.attrs, desc.global_init))
            arr[:] = 1

    first = I.Zero()
    filled(first, "x_bias", attrs={"__init__": "told", "__lr_mult__": "2"})
    ((name, attrs, global_init),) = told
    assert name == "x_bias" and attrs["__lr_mult__"] == "2" and global_init is first


def test_a_subclass_of_a_built_in_and_a_call_of_ones_own():
    class Shifted(I.Xavier):
        def _init_weight(self, desc, arr):
            super()._init_weight(desc, arr)
            arr += 100

    class Everything(I.Initializer):
        def __call__(self, desc, arr):
            arr[:] = 8

    assert (filled(Shifted(), "a_weight") > 90).all() and (filled(Shifted(), "a_bias") == 0).all()
    mixed = I.Mixed(["b", ".*"], [Everything(), lambda desc, arr: arr.__setitem__(slice(None), 6)])
    assert (filled(mixed, "b_anything") == 8).all() and (filled(mixed, "a_weight", plain=True) == 6).all()


def test_registering_over_a_built_in_name_replaces_it():
    built_in = I.Normal
    try:

        @I.register
        class Normal(I.Normal):
            def _init_bias(self, desc, arr):
                arr[:] = 3

        assert type(I.create("normal")) is Normal
        assert abs(filled(Normal(1.0), "a_weight", (100, 100)).std() - 1) < 0.05
        assert filled(I.Zero(), "x", (50, 50), {"__init__": '["normal", {"sigma": 1}]'}).std() > 0.5
    finally:
        I.register(built_in)


def test_verbosity(caplog):
    shouting = I.Constant(2).set_verbosity(True, lambda arr: f"sum {arr.asnumpy().sum()}")
    with caplog.at_level(logging.INFO):
        filled(shouting, "a_weight", (2, 2))
    assert "a_weight" in caplog.text and "sum 8.0" in caplog.text


def test_mistakes_say_what_is_wrong():
    with pytest.raises(TypeError, match="fills an NDArray"):
        I.Zero()("a_weight", np.zeros(3))
    with pytest.raises(TypeError, match="name or an InitDesc"):
        I.Zero()(3, mx.nd.zeros((2,)))
    with pytest.raises(ValueError, match="unknown initializer 'nothing'; there are .*xavier"):
        I.create("nothing")
    with pytest.raises(mx.MXNetError, match="nothing"):
        filled(I.Zero(), "x", attrs={"__init__": "nothing"})
    with pytest.raises(NotImplementedError, match="_init_weight"):
        filled(I.Initializer(), "a_weight")
    with pytest.raises(TypeError, match="expected an initializer"):
        I.Mixed([".*"], [3])
    with pytest.raises(TypeError, match="subclass of Initializer"):
        I.register(lambda desc, arr: None)

    class Broken(I.Initializer):
        def _init_weight(self, desc, arr):
            raise LookupError("cannot")

    with pytest.raises(LookupError, match="cannot"):
        filled(Broken(), "a_weight")


def test_aliases_are_known_here_and_to_variables():
    @I.alias("flat_seven", "seven")
    class Sevens(I.Initializer):
        def _init_weight(self, _, arr):
            arr[:] = 7

    for name in ("sevens", "flat_seven", "Seven"):
        assert (filled(I.create(name), "x_weight") == 7).all()
    assert (filled(I.Zero(), "x_weight", attrs={"__init__": '["seven", {}]'}) == 7).all()


def test_the_bias_of_an_affine_map_is_the_identity():
    array = mx.nd.zeros((6,))
    I.Xavier()._init_loc_bias("loc_bias", array)
    assert array.asnumpy().tolist() == [1, 0, 0, 0, 1, 0]
    with pytest.raises(ValueError, match="6 numbers"):
        I.Xavier()._init_loc_bias("loc_bias", mx.nd.zeros((5,)))


@pytest.mark.parametrize(
    "value", [3.5, [1, 2], np.array([1.0, 2.0]), mx.nd.array([1, 2])], ids=["number", "list", "numpy", "nd"]
)
def test_a_constant_goes_to_json_and_comes_back(value):
    text = I.Constant(value).dumps()
    due = np.broadcast_to(value.asnumpy() if hasattr(value, "asnumpy") else value, (2,))
    array = mx.nd.zeros((2,))
    I.create(text)(I.InitDesc("x_weight"), array)
    np.testing.assert_array_equal(array.asnumpy(), due)
    variable = mx.sym.Variable("x_weight", init=I.Constant(value), shape=(2,))
    mod = mx.mod.Module(mx.sym.Variable("data") + variable, label_names=None)
    mod.bind([("data", (2,))], for_training=False)
    mod.init_params()
    np.testing.assert_array_equal(mod.get_params()[0]["x_weight"].asnumpy(), due)


class Noting(mx.init.Initializer):
    """Writes down whom it is called for."""

    def __call__(self, desc, array):
        self.__dict__.setdefault("names", []).append(str(desc))
        array[:] = 0.1


def test_parameters_are_initialized_in_the_order_that_mxnet_has():
    """An initializer that draws from a generator of its own gives the same values then."""
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="r")
    net = mx.sym.BatchNorm(mx.sym.FullyConnected(net, num_hidden=3, name="a"), name="bn")
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=3, name="l"), name="softmax")
    states = ["bn_moving_mean", "bn_moving_var"]
    of_network = "r_weight r_bias a_weight a_bias bn_gamma bn_beta l_weight l_bias".split()
    by_module, by_feedforward = Noting(), Noting()
    module = mx.mod.Module(net)
    module.bind([("data", (2, 3))], [("softmax_label", (2,))])
    module.init_params(by_module)
    assert by_module.names == sorted(of_network) + states
    model = mx.model.FeedForward(net, num_epoch=1, initializer=by_feedforward, numpy_batch_size=2)
    model.fit(np.zeros((4, 3)), np.zeros(4))
    assert by_feedforward.names == of_network + states

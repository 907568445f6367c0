"""Optimizers: MXNet's numbers, attributes and names; classes written in Python; updaters; pickling."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import symbind as mx

WEIGHT = np.array([[0.5, -0.25, 1.0], [2.0, -1.5, 0.125]], "float32")
GRADS = [
    np.array([[0.1, -0.2, 0.3], [-0.4, 0.5, -0.6]], "float32"),
    np.array([[-0.3, 0.1, 0.2], [0.6, -0.1, 0.4]], "float32"),
    np.array([[0.05, 0.15, -0.25], [0.35, -0.45, 0.55]], "float32"),
]
COMMON = {"learning_rate": 0.1, "rescale_grad": 0.5, "clip_gradient": 0.2, "param_idx2name": {0: "fc_weight"}}

# The weight after three steps in MXNet 1.9.1, with the arguments above.
RECORDED = [
    ("sgd", {"momentum": 0.9, "wd": 0.01}, [0.5096514, -0.2385317, 0.9473118, 1.9874337, -1.5162212, 0.1204434]),
    ("ccsgd", {"momentum": 0.5}, [0.51125, -0.2475, 0.9712501, 1.9875, -1.5074999, 0.11]),
    ("nag", {"momentum": 0.9, "wd": 0.01}, [0.5146821, -0.2415154, 0.9372945, 1.9650955, -1.5049335, 0.1004019]),
    ("dcasgd", {}, [0.5075004, -0.2525, 0.9875013, 1.9824992, -1.4950006, 0.105]),
    ("signum", {"wd_lh": 0.1}, [0.5861395, -0.1455648, 0.6732889, 1.8396081, -1.5524586, 0.0202974]),
    ("adam", {"wd": 0.01}, [0.4691328, -0.137537, 0.7714298, 2.0453043, -1.6188645, 0.1795157]),
    ("adamax", {}, [0.4539564, -0.1433463, 0.7961395, 2.0590923, -1.6189312, 0.1795154]),
    ("nadam", {}, [0.4786683, -0.246202, 0.8876249, 1.9763405, -1.511096, 0.0955796]),
    ("adagrad", {"wd": 0.01}, [0.4778593, -0.2498361, 0.8987689, 1.9705507, -1.5014441, 0.0960504]),
    ("groupadagrad", {}, [0.5376225, -0.2330335, 0.867152, 1.9688481, -1.518841, 0.0861103]),
    ("rmsprop", {}, [0.4330471, -0.2688612, 0.6929114, 1.9109524, -1.5041645, 0.0197172]),
    ("rmsprop", {"centered": True}, [0.1299571, 0.1826746, -0.0927725, 2.2880642, -2.0141943, 0.3958785]),
    ("adadelta", {"wd": 0.01}, [0.4855867, -0.248316, 0.9621303, 1.9306996, -1.4512613, 0.1105074]),
    ("ftrl", {}, [0.0288923, -0.0238346, 0.1183003, 0.3204441, -0.2461507, 0.006222]),
    ("ftml", {}, [0.4700339, -0.23877, 0.9013236, 1.9910021, -1.517025, 0.1114797]),
    ("lars", {"momentum": 0.9, "wd": 0.01}, [0.500074, -0.2499496, 0.999702, 1.9998835, -1.5000643, 0.1249299]),
    ("lamb", {"wd": 0.01}, [0.6069587, -0.1463763, 0.5573934, 1.940847, -1.6381198, 0.0674049]),
    ("lbsgd", {"momentum": 0.9}, [0.51245, -0.2399, 0.95285, 1.9986999, -1.5247, 0.1212]),
    ("test", {}, [0.425, -0.225, 1.125, 2.2749999, -1.525, 0.3]),
]


def run(optimizer, grads=GRADS, weight=None):
    weight = mx.nd.array(WEIGHT) if weight is None else weight
    updater = mx.optimizer.get_updater(optimizer)
    for grad in grads:
        updater(0, mx.nd.array(grad), weight)
    return weight.asnumpy()


@pytest.mark.parametrize("name, arguments, expected", RECORDED)
def test_the_steps_are_those_of_mxnet(name, arguments, expected):
    result = run(mx.optimizer.create(name, **COMMON, **arguments))
    np.testing.assert_allclose(result.ravel(), expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name, arguments, expected", RECORDED)
def test_update_can_be_called_directly(name, arguments, expected):
    optimizer = mx.optimizer.create(name, **COMMON, **arguments)
    weight = mx.nd.array(WEIGHT)
    state = optimizer.create_state(0, weight)
    for grad in GRADS:
        optimizer.update(0, weight, mx.nd.array(grad), state)
    np.testing.assert_allclose(weight.asnumpy().ravel(), expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name, arguments, expected", RECORDED)
@pytest.mark.parametrize("again", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_a_copy_goes_on_where_the_optimizer_is(name, arguments, expected, again):
    optimizer = mx.optimizer.create(name, **COMMON, **arguments)
    weight = mx.nd.array(WEIGHT)
    state = optimizer.create_state(0, weight)
    optimizer.update(0, weight, mx.nd.array(GRADS[0]), state)
    other = again(optimizer)
    assert type(other) is type(optimizer) and other.num_update == optimizer.num_update
    for grad in GRADS[1:]:
        other.update(0, weight, mx.nd.array(grad), state)
    np.testing.assert_allclose(weight.asnumpy().ravel(), expected, rtol=2e-5, atol=2e-6)


def test_sgld_takes_half_a_step_and_noise():
    mx.random.seed(1)
    weight = mx.nd.zeros((10000,))
    optimizer = mx.optimizer.SGLD(learning_rate=0.04)
    optimizer.update(0, weight, mx.nd.ones((10000,)), optimizer.create_state(0, weight))
    values = weight.asnumpy()
    assert abs(values.mean() + 0.02) < 0.01 and abs(values.std() - 0.2) < 0.01


def test_signatures_and_attributes_are_mxnets():
    signature = inspect.signature(mx.optimizer.Adam.__init__)
    assert list(signature.parameters)[1:6] == ["learning_rate", "beta1", "beta2", "epsilon", "lazy_update"]
    assert signature.parameters["epsilon"].default == 1e-8
    adam = mx.optimizer.Adam(beta1=0.8, wd=0.5)
    assert (adam.lr, adam.beta1, adam.beta2, adam.epsilon, adam.lazy_update) == (0.001, 0.8, 0.999, 1e-8, True)
    assert (adam.wd, adam.rescale_grad, adam.clip_gradient, adam.multi_precision) == (0.5, 1, None, False)
    assert (adam.num_update, adam.begin_num_update, adam.lr_scheduler, adam.idx2name) == (0, 0, None, {})
    assert mx.optimizer.RMSProp().clip_weights is None
    assert mx.optimizer.AdaGrad(eps=1e-3).float_stable_eps == 1e-3
    assert mx.opt is mx.optimizer and mx.optimizer.optimizer.SGD is mx.optimizer.SGD
    assert mx.optimizer.contrib.GroupAdaGrad is mx.optimizer.Optimizer.opt_registry["groupadagrad"]
    assert isinstance(mx.optimizer.create("AdaDelta"), mx.optimizer.AdaDelta)


def test_defaults_of_signatures_are_those_of_cpp():
    for name, klass in mx.optimizer.Optimizer.opt_registry.items():
        if klass.__module__ != "symbind.optimizer":
            continue  # registered by another test
        made = mx.optimizer.create(name)
        for parameter in list(inspect.signature(klass).parameters.values())[:-1]:
            value = made.lr if parameter.name == "learning_rate" else getattr(made, parameter.name)
            assert (value, type(value)) == (parameter.default, type(parameter.default)), (name, parameter)
    base = inspect.signature(mx.optimizer.Optimizer.__init__)
    assert [str(base.parameters[name]) for name in ("rescale_grad", "wd", "learning_rate", "multi_precision")] == [
        "rescale_grad=1.0",
        "wd=0.0",
        "learning_rate=None",
        "multi_precision=False",
    ]


def test_arguments_go_by_position_in_mxnets_order():
    assert mx.optimizer.SGD(0.5).momentum == 0.5
    ftrl = mx.optimizer.Ftrl(0.25, 0.5, wd=0.125)
    assert (ftrl.lamda1, ftrl.lr, ftrl.beta, ftrl.wd) == (0.25, 0.5, 1, 0.125)
    assert mx.optimizer.Optimizer(2.0, {0: "a"}, 0.5).wd == 0.5
    assert mx.optimizer.LBSGD(0.5, True, "sqrt", 3).warmup_epochs == 3
    with pytest.raises(TypeError, match="positional"):
        mx.optimizer.NAG(0.5, 0.5)
    with pytest.raises(TypeError, match="momentum"):
        mx.optimizer.NAG(0.5, momentum=0.5)
    with pytest.raises(TypeError, match="momentum"):
        mx.optimizer.Optimizer(momentum=0.5)
    with pytest.raises(mx.MXNetError, match="no argument momenta"):
        mx.optimizer.NAG(momenta=0.5)


def test_a_rule_leaves_the_optimizer_its_name():
    assert mx.optimizer.SignSGD().momentum == 0 and mx.optimizer.Signum().momentum == 0.9
    updater = mx.optimizer.get_updater(mx.optimizer.SignSGD())
    mx.optimizer.get_updater(mx.optimizer.Signum(momentum=0)).set_states(updater.get_states())


def test_attributes_take_effect():
    sgd = mx.optimizer.SGD(learning_rate=1)
    weight = mx.nd.array([8.0])
    sgd.lr = 0.5
    sgd.rescale_grad = 4
    sgd.clip_gradient = 2
    sgd.wd = 0.125
    sgd.update(0, weight, mx.nd.array([1.0]), None)
    assert weight.asscalar() == 8 - 0.5 * (2 + 0.125 * 8)
    sgd.set_learning_rate(0.25)
    assert sgd.learning_rate == 0.25
    sgd.momentum = 0.5
    assert isinstance(sgd.create_state(0, weight), mx.nd.NDArray)
    sgd.lr_scheduler = lambda update: 7.0
    assert sgd.learning_rate == 7
    with pytest.raises(UserWarning, match="schedule"):  # as MXNet does
        sgd.set_learning_rate(1)


@mx.optimizer.register
class DecaysBiases(mx.optimizer.NAG):
    def set_wd_mult(self, args_wd_mult):
        self.wd_mult = {}
        for name in self.idx2name.values():
            if name.endswith("_beta"):
                self.wd_mult[name] = 0.0
        self.wd_mult.update(args_wd_mult)


def test_a_class_may_set_the_multipliers_in_its_own_way():
    names = {0: "fc_weight", 1: "fc_bias", 2: "norm_beta"}
    made = mx.optimizer.create("decaysbiases", wd=0.1, param_idx2name=names)
    np.testing.assert_allclose(made._get_wds([0, 1, 2]), [0.1, 0.1, 0])
    copy = pickle.loads(pickle.dumps(made))
    np.testing.assert_allclose(copy._get_wds([0, 1, 2]), [0.1, 0.1, 0])
    made.set_wd_mult({"fc_bias": 0.5})
    np.testing.assert_allclose(made._get_wds([0, 1, 2]), [0.1, 0.05, 0])
    plain = mx.optimizer.create("nag", wd=0.1, param_idx2name=names)
    np.testing.assert_allclose(plain._get_wds([0, 1, 2]), [0.1, 0, 0])
    plain.wd_mult = {"fc_weight": 2}
    np.testing.assert_allclose(plain._get_wds([0, 1, 2]), [0.2, 0.1, 0.1])


def test_multipliers_counts_and_names():
    net = mx.sym.FullyConnected(
        mx.sym.Variable("x"), mx.sym.Variable("a_weight", lr_mult=2, wd_mult=3), num_hidden=2, name="a"
    )
    names = {0: "a_weight", 1: "a_bias", 2: "a_gamma"}
    sgd = mx.optimizer.SGD(learning_rate=0.1, wd=0.1, param_idx2name=names, sym=net)
    assert (sgd.idx2name, sgd.lr_mult, sgd.wd_mult) == (names, {"a_weight": 2}, {"a_bias": 0, "a_weight": 3})
    np.testing.assert_allclose(sgd._get_lrs([0, 1, 2]), [0.2, 0.1, 0.1])
    np.testing.assert_allclose(sgd._get_wds([0, 1, 2]), [0.3, 0, 0.1])
    assert (sgd._get_lr("a_weight"), sgd._get_wd("a_bias")) == (0.2, 0)
    sgd.set_wd_mult({"a_bias": 0.5})
    assert sgd.wd_mult == {"a_bias": 0.5, "a_weight": 3}
    sgd.lr_mult["a_bias"] = 4
    assert sgd._get_lr(1) == pytest.approx(0.4)
    sgd._update_count([0, 1])
    sgd._update_count(0)
    assert (sgd._index_update_count, sgd.num_update) == ({0: 2, 1: 1}, 2)
    other = pickle.loads(pickle.dumps(sgd))
    assert (other.lr_mult, other.wd_mult) == (sgd.lr_mult, sgd.wd_mult)
    np.testing.assert_allclose(other._get_lrs([0, 1, 2]), [0.2, 0.4, 0.1])
    np.testing.assert_allclose(other._get_wds([0, 1, 2]), [0.3, 0.05, 0.1])
    assert (other._index_update_count, other.num_update, other.lr_mult) == ({0: 2, 1: 1}, 2, sgd.lr_mult)
    sgd.num_update = 10
    sgd._index_update_count = {0: 10}
    assert (sgd.num_update, sgd._index_update_count) == (10, {0: 10})


def test_lists_update_several_parameters():
    sgd = mx.optimizer.SGD(learning_rate=1)
    weights = [mx.nd.array([1.0]), mx.nd.array([2.0])]
    sgd.update([0, "b"], weights, [mx.nd.array([0.5]), mx.nd.array([0.25])], [None, None])
    assert [weight.asscalar() for weight in weights] == [0.5, 1.75]
    updater = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=1, momentum=0.5))
    updater([3, 4], [mx.nd.array([0.5]), mx.nd.array([0.25])], weights)
    assert [weight.asscalar() for weight in weights] == [0.0, 1.5]
    assert sorted(updater.states) == [3, 4]


def test_sixteen_bit_weights_keep_a_copy():
    sgd = mx.optimizer.SGD(learning_rate=1e-4, multi_precision=True)
    weight = mx.nd.array([1.0], dtype="float16")
    updater = mx.optimizer.get_updater(sgd)
    for _ in range(10):
        updater(0, mx.nd.array([1.0], dtype="float16"), weight)
    state = sgd.create_state_multi_precision(0, weight)
    assert isinstance(state, tuple) and any(part is not None and part.dtype == np.float32 for part in state)
    assert weight.asscalar() == np.float16(1 - 1e-3)


class OwnUpdate(mx.optimizer.SGD):
    def update(self, index, weight, grad, state):
        assert weight.dtype == grad.dtype == np.float32
        super().update(index, weight, grad, state)


class OwnState(mx.optimizer.SGD):
    def create_state(self, index, weight):
        assert weight.dtype == np.float32
        return super().create_state(index, weight)


@pytest.mark.parametrize("momentum", [0, 0.9])
@pytest.mark.parametrize("own_class", [OwnUpdate, OwnState])
def test_overridden_methods_get_the_copy_of_sixteen_bit_weights(own_class, momentum):
    def trained(made, together):
        updater = mx.optimizer.get_updater(made(learning_rate=1e-4, momentum=momentum, multi_precision=True))
        weights = [mx.nd.array(values, dtype="float16") for values in ([1.0, -2.0], [3.0])]
        grads = [mx.nd.array(values, dtype="float16") for values in ([1.0, -1.0], [2.0])]
        for _ in range(20):
            if together:
                updater([0, 1], grads, weights)
            else:
                for index, (weight, grad) in enumerate(zip(weights, grads)):
                    updater(index, grad, weight)
        return np.concatenate([weight.asnumpy() for weight in weights])

    for together in (False, True):
        expected = trained(mx.optimizer.SGD, together)
        assert (np.abs(expected - [1, -2, 3]) > 1e-3).all()
        np.testing.assert_array_equal(trained(own_class, together), expected)


def test_one_made_in_cpp_appears_under_its_class():
    updater = mx.optimizer.get_updater("adam")
    adam = updater.optimizer
    assert type(adam) is mx.optimizer.Adam and adam is updater.optimizer
    assert (adam.beta1, adam.lr) == (0.9, 0.001)
    adam.lr = 0.1
    weight = mx.nd.array(WEIGHT)
    updater(0, mx.nd.array(GRADS[0]), weight)
    assert adam.num_update == 1 and adam._index_update_count == {0: 1}
    np.testing.assert_allclose(weight.asnumpy(), run(mx.optimizer.Adam(learning_rate=0.1), GRADS[:1]), rtol=1e-6)
    other = pickle.loads(pickle.dumps(adam))
    assert (type(other), other.num_update, other.lr) == (mx.optimizer.Adam, 1, 0.1)
    del updater
    adam.update(0, weight, mx.nd.array(GRADS[0]), adam.create_state(0, weight))  # it keeps itself alive


# ---- written in Python ----


@mx.optimizer.register
class Trail(mx.optimizer.Optimizer):
    """Momentum by hand; its state is a list of which one item is replaced."""

    def __init__(self, decay=0.5, marks=None, **kwargs):
        super().__init__(**kwargs)
        self.decay = decay
        self.marks = marks

    def create_state(self, index, weight):
        return [mx.nd.zeros(weight.shape), (None, mx.nd.zeros((1,)))]

    def update(self, index, weight, grad, state):
        assert isinstance(state, list) and isinstance(state[1], tuple)
        self._update_count(index)
        state[0] = self.decay * state[0] + grad * self.rescale_grad
        state[1][1][:] += 1
        weight[:] -= self._get_lr(index) * (state[0] + self._get_wd(index) * weight)


def by_hand(grads=GRADS, lr=0.1, decay=0.5):
    weight, trail = WEIGHT.copy(), 0
    for grad in grads:
        trail = decay * trail + grad
        weight -= lr * trail
    return weight


def test_a_python_optimizer_runs_in_the_updater():
    optimizer = mx.optimizer.create("trail", learning_rate=0.1)
    updater = mx.optimizer.get_updater(optimizer)
    weight = mx.nd.array(WEIGHT)
    for grad in GRADS:
        updater(0, mx.nd.array(grad), weight)
    np.testing.assert_allclose(weight.asnumpy(), by_hand(), rtol=1e-6)
    assert updater.optimizer is optimizer and optimizer._index_update_count == {0: 3}
    assert updater.states[0][1][1].asscalar() == 3
    other = mx.optimizer.get_updater(mx.optimizer.create("trail", learning_rate=0.1))
    other.set_states(updater.get_states())
    np.testing.assert_allclose(other.states[0][0].asnumpy(), updater.states[0][0].asnumpy())
    assert other.optimizer.num_update == 3


def test_a_python_optimizer_runs_in_a_store():
    store = mx.kv.create("local")
    store.init("w", mx.nd.array(WEIGHT))
    optimizer = Trail(learning_rate=0.1)
    store.set_optimizer(optimizer)
    for grad in GRADS:
        store.push("w", [mx.nd.array(grad / 2)] * 2)
    out = mx.nd.zeros(WEIGHT.shape)
    store.pull("w", out)
    np.testing.assert_allclose(out.asnumpy(), by_hand(), rtol=1e-6)
    assert optimizer.num_update == 3


def test_a_python_optimizer_is_pickled_with_its_own_attributes():
    optimizer = Trail(decay=0.25, marks={"a": [1]}, learning_rate=0.5, wd=0.1, param_idx2name={0: "x_bias"})
    optimizer._update_count(0)
    other = pickle.loads(pickle.dumps(optimizer))
    assert (other.decay, other.marks, other.lr, other.wd) == (0.25, {"a": [1]}, 0.5, 0.1)
    assert (other.idx2name, other.num_update) == ({0: "x_bias"}, 1)


def test_a_subclass_of_a_built_in_overrides_its_update():
    class Noted(mx.optimizer.SGD):
        def __init__(self, **kwargs):
            super().__init__(momentum=0.9, **kwargs)
            self.seen = []

        def update(self, index, weight, grad, state):
            self.seen.append((index, self.learning_rate))
            super().update(index, weight, grad * 2, state)

    noted = Noted(learning_rate=0.1)
    expected = run(mx.optimizer.SGD(momentum=0.9, learning_rate=0.1), [2 * grad for grad in GRADS])
    np.testing.assert_allclose(run(noted), expected, rtol=1e-6)
    assert noted.seen == [(0, 0.1)] * 3


def test_a_subclass_of_a_built_in_overrides_its_state():
    class Warm(mx.optimizer.SGD):
        def create_state(self, index, weight):
            return mx.nd.ones(weight.shape)

    weight = run(Warm(momentum=0.5, learning_rate=0.1), GRADS[:1])
    np.testing.assert_allclose(weight, WEIGHT + 0.5 - 0.1 * GRADS[0], rtol=1e-5)


def test_registering_over_a_built_in_name_replaces_it():
    built_in = mx.optimizer.Optimizer.opt_registry["nag"]
    try:

        @mx.optimizer.Optimizer.register
        class NAG(mx.optimizer.NAG):
            mine = True

        assert mx.optimizer.create("nag", momentum=0.5).mine
        np.testing.assert_allclose(run(NAG(learning_rate=0.1)), run(built_in(learning_rate=0.1)))
    finally:
        mx.optimizer.register(built_in)


def test_mistakes_say_what_is_wrong():
    with pytest.raises(mx.MXNetError, match="momentun.*momentum"):
        mx.optimizer.SGD(momentun=0.9)
    with pytest.raises(mx.MXNetError, match="unknown optimizer 'sgdd'; there are .*sgd"):
        mx.optimizer.create("sgdd")
    with pytest.raises(TypeError, match="name of an optimizer"):
        mx.optimizer.create(None)
    with pytest.raises(TypeError, match="subclass of Optimizer"):
        mx.optimizer.register(3)
    with pytest.raises(mx.MXNetError, match="momentum must be a number"):
        mx.optimizer.SGD(momentum=[1])
    with pytest.raises(TypeError, match="weight must be an NDArray"):
        mx.optimizer.SGD().update(0, WEIGHT, mx.nd.array(WEIGHT), None)
    with pytest.raises(TypeError, match="int or a text"):
        mx.optimizer.SGD().update(0.5, mx.nd.array(WEIGHT), mx.nd.array(WEIGHT), None)
    with pytest.raises(NotImplementedError, match="update"):
        mx.optimizer.Optimizer().update(0, mx.nd.array(WEIGHT), mx.nd.array(WEIGHT), None)
    with pytest.raises(TypeError, match="expected an optimizer"):
        mx.optimizer.get_updater(3)


def test_mixins():
    class Counted:
        count = 0

        def tick(self):
            self.count += 1

    class Mine(Counted, mx.optimizer.SGD):
        def update(self, index, weight, grad, state):
            self.tick()
            super().update(index, weight, grad, state)

    mine = Mine(learning_rate=0.1)
    np.testing.assert_allclose(run(mine), run(mx.optimizer.SGD(learning_rate=0.1)))
    assert mine.count == 3 and isinstance(mine, Counted)
    with pytest.raises(TypeError, match="not two|lay-out|layout"):
        type("Both", (mx.optimizer.SGD, mx.lr_scheduler.LRScheduler), {})


def test_an_exception_in_update_reaches_the_caller():
    class Broken(mx.optimizer.Optimizer):
        def update(self, index, weight, grad, state):
            raise LookupError("cannot")

    with pytest.raises(LookupError, match="cannot"):
        run(Broken())


def test_states_are_saved_and_loaded():
    first, second = (mx.optimizer.get_updater(mx.optimizer.Adam(learning_rate=0.1)) for _ in range(2))
    weight = mx.nd.array(WEIGHT)
    first(0, mx.nd.array(GRADS[0]), weight)
    second.set_states(first.get_states(dump_optimizer=True))
    other = weight.copy()
    first(0, mx.nd.array(GRADS[1]), weight)
    second(0, mx.nd.array(GRADS[1]), other)
    np.testing.assert_array_equal(weight.asnumpy(), other.asnumpy())
    mean, square = first.states[0]
    first.states[0] = (mean * 0, square)
    assert first.states[0][0].asnumpy().any() == False  # noqa: E712
    with pytest.raises(mx.MXNetError, match="adam.*sgd"):
        mx.optimizer.get_updater(mx.optimizer.SGD()).set_states(first.get_states())


def test_adamw_is_mxnets_operator_with_the_rate_as_eta():
    """Three steps of MXNet 1.9.1's adamw_update with lr = the correction of the running means, eta = learning rate."""
    weight = mx.nd.array([1, -2, 3])
    optimizer = mx.optimizer.AdamW(learning_rate=0.05, wd=0.1, rescale_grad=0.5, clip_gradient=0.8)
    assert (optimizer.epsilon, optimizer.correct_bias) == (1e-6, True)
    grads = [[0.5, -1, 2], [1, 0.25, -3], [-2, 0.5, 0.125]]
    np.testing.assert_allclose(run(optimizer, grads, weight), [0.89239228, -1.894925, 2.9086113], rtol=1e-6)
    assert isinstance(mx.optimizer.create("adamw"), mx.optimizer.AdamW)
    assert mx.optimizer.contrib.AdamW is mx.optimizer.AdamW

    weight, mean, var = mx.nd.array([1, -2, 3]), mx.nd.zeros(3), mx.nd.zeros(3)
    infinite = mx.nd.array([float("inf")])
    for grad, rescale in [
        (grads[0], 1.0),
        ([9, 9, 9], float("nan")),  # where rescale_grad is not finite, or 0, nothing changes
        ([9, 9, 9], 0),
        (grads[1], mx.nd.array([1.0])),
        ([9, 9, 9], infinite),
        (grads[2], 1.0),
    ]:
        step = {"lr": 1, "eta": 0.001, "epsilon": 1e-6, "out": weight}
        mx.nd.contrib.adamw_update(weight, mx.nd.array(grad), mean, var, rescale, **step)
    np.testing.assert_allclose(weight.asnumpy(), [0.99369574, -1.994608, 2.998728], rtol=1e-6)


def test_updates_of_several_weights_are_those_of_each():
    def arrays(dtype="float32"):
        values = [[1, -2, 3], [0.5, 0.25]]
        weights, grads = ([mx.nd.array(v, dtype=dtype) * factor for v in values] for factor in (1, 0.5))
        return weights, grads, *([mx.nd.array(v) * 0 + start for v in values] for start in (0.125, 0.5))

    rates = {"lrs": [0.5, 0.25], "wds": [0.125, 0]}
    weights, grads, means, squares = arrays()
    updated = mx.nd.contrib.multi_adamw_update(weights, grads, means, squares, 0.5, etas=[1, 2], **rates)
    weights, grads, other_means, squares = arrays()
    for i, eta in enumerate([1, 2]):
        step = {"lr": rates["lrs"][i], "wd": rates["wds"][i], "eta": eta, "out": weights[i]}
        mx.nd.contrib.adamw_update(weights[i], grads[i], other_means[i], squares[i], mx.nd.array([0.5]), **step)
        np.testing.assert_array_equal(updated[i].asnumpy(), weights[i].asnumpy())
        np.testing.assert_array_equal(means[i].asnumpy(), other_means[i].asnumpy())

    weights, grads, means, squares = arrays("float16")
    copies = [weight.astype("float32") for weight in weights]
    step = {"step_count": [1, 2], **rates}
    mx.nd.contrib.multi_mp_lamb_update(weights, grads, means, squares, copies, out=weights, **step)
    plain = [weight.astype("float32") for weight in arrays()[0]]
    found = mx.nd.contrib.multi_lamb_update(plain, *arrays()[1:], **step)
    for master, weight, alone in zip(copies, weights, found, strict=True):
        np.testing.assert_allclose(master.asnumpy(), alone.asnumpy(), rtol=1e-6)
        np.testing.assert_array_equal(weight.asnumpy(), master.astype("float16").asnumpy())
    with pytest.raises(ValueError, match="as many arrays of each kind"):
        mx.nd.contrib.multi_lamb_update(plain, plain[:1], plain, plain, **step)


def test_adamw_is_an_operator_of_networks_too():
    names = ["weight", "grad", "mean", "var"]
    net = mx.sym.contrib.adamw_update(*map(mx.sym.var, names), rescale_grad=0.5, lr=0.5, eta=1, name="step")
    arrays = {name: mx.nd.array([0.5, 1]) for name in names}
    found = net.bind(mx.cpu(), arrays).forward()[0]
    arrays = {name: mx.nd.array([0.5, 1]) for name in names}
    wanted = mx.nd.contrib.adamw_update(**arrays, rescale_grad=0.5, lr=0.5, eta=1)
    np.testing.assert_array_equal(found.asnumpy(), wanted.asnumpy())


def test_arrays_are_reset_and_set():
    arrays = [mx.nd.array([1, 2]), mx.nd.array([3], dtype="int32")]
    assert mx.nd.reset_arrays(*arrays, num_arrays=2) == []
    assert [array.asnumpy().tolist() for array in arrays] == [[0, 0], [0]]
    assert mx.nd._internal._set_value(2.5, out=arrays[0]) is arrays[0]
    assert arrays[0].asnumpy().tolist() == [2.5, 2.5]
    with pytest.raises(ValueError, match="out"):
        mx.nd._internal._set_value(1)


def test_operators_that_update_are_found_beside_the_optimizers():
    weight, grad = mx.nd.array([1, 2]), mx.nd.array([0.5, 1])
    mx.optimizer.sgd_update(weight, grad, out=weight, lr=0.5)
    assert weight.asnumpy().tolist() == [0.75, 1.5]
    for name in ("adam_update", "ftml_update", "mp_sgd_mom_update", "rmspropalex_update", "signum_update", "sign"):
        assert getattr(mx.optimizer.optimizer, name) is getattr(mx.nd, name)
    with pytest.raises(AttributeError, match="no operator"):
        mx.optimizer.unknown_update  # noqa: B018


def test_the_global_norm_is_clipped():
    arrays = [mx.nd.array([3.0, 0]), mx.nd.array([0, 4.0])]
    assert mx.optimizer.clip_global_norm(arrays, 10) == 5 and arrays[0].asnumpy()[0] == 3
    assert mx.optimizer.clip_global_norm(arrays, max_norm=1) == 5
    np.testing.assert_allclose([array.asnumpy().max() for array in arrays], [0.6, 0.8], rtol=1e-6)
    with pytest.raises(mx.MXNetError, match="max_norm"):
        mx.optimizer.clip_global_norm(arrays, 0)


@pytest.mark.parametrize("contexts", [[mx.cpu(0)], [mx.cpu(0), mx.cpu(1)]])
@pytest.mark.parametrize("own_class", [False, True])
def test_the_global_norm_is_clipped_in_fit(contexts, own_class):
    class Plain(mx.optimizer.Optimizer):
        def update(self, index, weight, grad, state):
            self._update_count(index)
            weight -= self._get_lr(index) * self.rescale_grad * grad

    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc"), name="softmax")
    values = np.random.RandomState(0).uniform(-1, 1, (4, 5))
    data = mx.io.NDArrayIter(values, np.array([0, 1, 2, 0]), batch_size=4)
    arguments = {"learning_rate": 1.0, "clip_global_norm": 0.125, "rescale_grad": 0.25}
    optimizer = Plain(**arguments) if own_class else "sgd"
    start = {"fc_weight": mx.nd.zeros((3, 5)), "fc_bias": mx.nd.zeros((3,))}
    module = mx.mod.Module(net, context=contexts)
    module.fit(data, optimizer=optimizer, optimizer_params=arguments, arg_params=start, num_epoch=1)
    step = np.concatenate([array.asnumpy().ravel() for array in module.get_params()[0].values()])
    np.testing.assert_allclose(np.linalg.norm(step), 0.125, rtol=1e-5)
    copied = pickle.loads(pickle.dumps(mx.optimizer.SGD(clip_global_norm=2)))
    assert copied.clip_global_norm == 2


@pytest.mark.parametrize("rate", [float("nan"), float("inf")])
def test_rates_that_are_not_finite_are_refused(rate):
    with pytest.raises(mx.MXNetError, match="learning_rate must be finite"):
        mx.optimizer.Adam(learning_rate=rate)
    sgd = mx.optimizer.SGD()
    with pytest.raises(mx.MXNetError, match="finite"):
        sgd.set_learning_rate(rate)
    with pytest.raises(mx.MXNetError, match="finite"):
        sgd.lr = rate
    with pytest.raises(mx.MXNetError, match="base_lr must be finite"):
        mx.lr_scheduler.FactorScheduler(step=1, base_lr=rate)
    sgd.lr_scheduler = lambda update: rate
    with pytest.raises(mx.MXNetError, match="schedule's learning rate for update 1 must be finite"):
        run(sgd)


class CountingDown(mx.optimizer.Optimizer):
    """Its state holds more than arrays."""

    def create_state(self, index, weight):
        return {"mean": mx.nd.zeros(weight.shape), "left": 2}

    def update(self, index, weight, grad, state):
        self._update_count(index)
        state["mean"] += grad
        state["left"] -= 1
        if state["left"] == 0:
            weight -= self._get_lr(index) * state["mean"]
            state["left"] = 2


def test_the_state_of_a_python_optimizer_may_be_anything():
    weights = [mx.nd.ones((2,)), mx.nd.ones((3,))]
    updater = mx.optimizer.get_updater(CountingDown(learning_rate=0.5))
    for _ in range(3):
        for index, weight in enumerate(weights):
            updater(index, mx.nd.ones(weight.shape), weight)
    assert [weight.asnumpy().tolist() for weight in weights] == [[0.0, 0.0], [0.0, 0.0, 0.0]]
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc"), name="softmax")
    module = mx.mod.Module(net)
    data = mx.io.NDArrayIter(np.ones((4, 3)), np.zeros(4), 2)
    module.fit(data, num_epoch=1, optimizer=CountingDown(learning_rate=0.1), initializer=mx.init.Zero())
    assert abs(module.get_params()[0]["fc_weight"].asnumpy()).sum() > 0


# ---- rates and decays of one's own


class Halving:
    """A rate that halves with every step, from an object that is no number."""

    class Rate:
        value = 0.5

    def start(self):
        self.lr = self.Rate()

    def _get_lr(self, index):
        return self.lr.value / 2**self.num_update


@pytest.mark.parametrize("several", [False, True])
def test_a_class_may_decide_about_rates_and_decays(several):
    class Mine(Halving, mx.optimizer.SGD):
        pass

    def _get_wd(self, index):
        return 0.25 if index == "w" else 0

    if several:
        Mine._get_lrs = lambda self, indices: [Halving._get_lr(self, index) for index in indices]
        Mine._get_wds = lambda self, indices: [_get_wd(self, index) for index in indices]
        Mine._get_lr = mx.optimizer.SGD._get_lr
    else:
        Mine._get_wd = _get_wd
    optimizer = Mine()
    optimizer.start()
    assert optimizer.lr.value == 0.5
    updater = mx.optimizer.get_updater(optimizer)
    weights = {"w": mx.nd.array([1.0]), "b": mx.nd.array([1.0])}
    for name, weight in weights.items():
        updater(name, mx.nd.array([2.0]), weight)
    assert weights["w"].asscalar() == 1 - 0.25 * (2 + 0.25 * 1)
    assert weights["b"].asscalar() == 1 - 0.25 * 2
    optimizer.lr = 0.125
    assert optimizer.lr == 0.125


def test_a_rate_of_ones_own_counts_in_fit():
    class Still(mx.optimizer.Adam):
        def _get_lr(self, index):
            return super()._get_lr(index) if index == 1 else 0.0

    net = mx.sym.LinearRegressionOutput(
        mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, name="fc"), name="out"
    )
    module = mx.mod.Module(net, label_names=["out_label"])
    data = mx.io.NDArrayIter(np.ones((4, 2)), np.ones((4, 1)), 2, label_name="out_label")
    first = {"fc_weight": mx.nd.ones((1, 2)), "fc_bias": mx.nd.ones((1,))}
    module.fit(data, num_epoch=1, eval_metric="mse", arg_params=first, optimizer=Still(rescale_grad=0.5))
    after = module.get_params()[0]
    assert after["fc_weight"].asnumpy().tolist() == [[1, 1]] and after["fc_bias"].asscalar() < 1


def test_only_a_class_with_its_own_rate_keeps_other_objects():
    with pytest.raises(TypeError):
        mx.optimizer.SGD().lr = object()


def test_a_schedule_may_wait_for_its_first_rate():
    class Schedule:
        base_lr = None

        def __call__(self, num_update):
            return self.base_lr / 2

    schedule = Schedule()
    optimizer = mx.optimizer.SGD(learning_rate=0.5, lr_scheduler=schedule)
    assert schedule.base_lr == 0.5 and optimizer.learning_rate == 0.25

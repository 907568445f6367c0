"""Schedules: MXNet's numbers, attributes, pickling, and schedules written in Python inside C++ optimizers."""

import copy
import pickle

import numpy as np
import pytest

import symbind as mx

L = mx.lr_scheduler

# What MXNet 1.9.1 returns for updates 0 to 12.
RECORDED = [
    (
        lambda: L.FactorScheduler(3, 0.5, 0.02, 0.1, 2, 0.01),
        [0.01, 0.055, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025, 0.025, 0.025, 0.02, 0.02, 0.02],
    ),
    (
        lambda: L.MultiFactorScheduler([3, 6], 0.1, 0.1, 3, 0.01, "constant"),
        [0.01, 0.01, 0.01, 0.1, 0.01, 0.01, 0.01, 0.001, 0.001, 0.001, 0.001, 0.001, 0.001],
    ),
    (
        lambda: L.PolyScheduler(10, 0.1, 2, 0.01, 2, 0.02),
        [0.02, 0.06, 0.1, 0.07890625, 0.060625, 0.04515625, 0.0325, 0.02265625, 0.015625, 0.01140625, 0.01, 0.01, 0.01],
    ),
    (
        lambda: L.CosineScheduler(10, 0.1, 0.01, 2, 0.02),
        [
            *(0.02, 0.06, 0.1, 0.096574579, 0.086819805, 0.072220754, 0.055),
            *(0.037779246, 0.023180195, 0.013425421, 0.01, 0.01, 0.01),
        ],
    ),
]


@pytest.mark.parametrize("make, expected", RECORDED)
def test_rates_are_those_of_mxnet(make, expected):
    schedule = make()
    np.testing.assert_allclose([schedule(update) for update in range(13)], expected, atol=1e-9)


@pytest.mark.parametrize("make, expected", RECORDED)
@pytest.mark.parametrize("again", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_a_copy_goes_on_where_the_schedule_is(make, expected, again):
    schedule = make()
    for update in range(5):
        schedule(update)
    schedule.note = "mine"
    other = again(schedule)
    assert type(other) is type(schedule) and other.note == "mine"
    np.testing.assert_allclose([other(update) for update in range(5, 13)], expected[5:], atol=1e-9)
    np.testing.assert_allclose([schedule(update) for update in range(5, 13)], expected[5:], atol=1e-9)


@pytest.mark.parametrize(
    "schedule, defaults",
    [
        (L.FactorScheduler(3), {"factor": 1, "stop_factor_lr": 1e-8}),
        (L.MultiFactorScheduler([3]), {"factor": 1}),
        (L.PolyScheduler(10), {"power": 2, "final_lr": 0}),
        (L.CosineScheduler(10), {"final_lr": 0}),
    ],
)
def test_defaults_are_those_of_mxnet(schedule, defaults):
    defaults.update(base_lr=0.01, warmup_steps=0, warmup_begin_lr=0, warmup_mode="linear")
    assert {name: getattr(schedule, name) for name in defaults} == defaults
    assert schedule(0) == 0.01  # no update warms up


def test_attributes_have_mxnets_names():
    factor = L.FactorScheduler(step=3, factor=0.5, base_lr=0.1, warmup_steps=2, warmup_begin_lr=0.01)
    assert isinstance(factor, L.LRScheduler)
    assert (factor.step, factor.factor, factor.stop_factor_lr, factor.base_lr, factor.count) == (3, 0.5, 1e-8, 0.1, 0)
    assert (factor.warmup_steps, factor.warmup_begin_lr, factor.warmup_mode) == (2, 0.01, "linear")
    assert factor.warmup_final_lr == 0.1
    assert factor.get_warmup_lr(1) == pytest.approx(0.055)
    factor(4)
    assert (factor.count, factor.base_lr) == (3, 0.05)
    multi = L.MultiFactorScheduler([3, 6], 0.1, 0.1)
    multi(5)
    assert (multi.step, multi.count, multi.cur_step_ind) == ([3, 6], 3, 1)
    assert multi.base_lr == pytest.approx(0.01)
    poly = L.PolyScheduler(max_update=10, base_lr=0.1, pwr=3, warmup_steps=2)
    assert (poly.max_update, poly.power, poly.final_lr, poly.base_lr_orig, poly.max_steps) == (10, 3, 0, 0.1, 8)
    cosine = L.CosineScheduler(max_update=10, base_lr=0.1, final_lr=0.02, warmup_steps=3)
    assert (cosine.max_update, cosine.final_lr, cosine.base_lr_orig, cosine.max_steps) == (10, 0.02, 0.1, 7)


def test_attributes_can_be_changed_under_way():
    factor = L.FactorScheduler(step=1, factor=0.5, base_lr=0.8)
    assert factor(2) == 0.4
    factor.factor = 0.1
    assert factor(3) == pytest.approx(0.04)
    factor.base_lr = 1.0
    assert factor(3) == 1.0
    with pytest.raises(mx.MXNetError, match="factor must not exceed 1"):
        factor.factor = 2


def test_wrong_arguments_say_so():
    with pytest.raises(mx.MXNetError, match="step must be at least 1"):
        L.FactorScheduler(step=0)
    with pytest.raises(mx.MXNetError, match="growing list"):
        L.MultiFactorScheduler(step=[5, 3])
    with pytest.raises(mx.MXNetError, match="linear or constant"):
        L.FactorScheduler(step=1, warmup_mode="steep")
    with pytest.raises(NotImplementedError, match="__call__"):
        L.LRScheduler()(1)


class Halving(L.LRScheduler):
    def __init__(self, base_lr=0.8):
        super().__init__(base_lr)
        self.asked = []

    def __call__(self, num_update):
        self.asked.append(num_update)
        return self.base_lr / 2**num_update


class WithoutInit(L.LRScheduler):
    def __init__(self):
        self.base_lr = 0.25

    def __call__(self, num_update):
        return self.base_lr


class Doubled(L.FactorScheduler):
    def __call__(self, num_update):
        return 2 * super().__call__(num_update)


def steps(schedule, count, **arguments):
    """How far a C++ optimizer with that schedule goes in each step along a gradient of one."""
    optimizer = mx.optimizer.SGD(lr_scheduler=schedule, **arguments)
    updater = mx.optimizer.get_updater(optimizer)
    weight = mx.nd.zeros((1,))
    taken = []
    for _ in range(count):
        before = weight.asscalar()
        updater(0, mx.nd.ones((1,)), weight)
        taken.append(before - weight.asscalar())
    return taken


def test_a_python_schedule_decides_inside_a_cpp_optimizer():
    schedule = Halving()
    np.testing.assert_allclose(steps(schedule, 3), [0.4, 0.2, 0.1], rtol=1e-6)
    assert schedule.asked == [1, 2, 3]
    np.testing.assert_allclose(steps(WithoutInit(), 2), [0.25, 0.25], rtol=1e-6)
    np.testing.assert_allclose(steps(Doubled(1, 0.5, base_lr=0.1), 3), [0.2, 0.1, 0.05], rtol=1e-6)


def test_the_optimizers_rate_becomes_the_schedules():
    schedule = Halving(base_lr=0.8)
    np.testing.assert_allclose(steps(schedule, 1, learning_rate=0.2), [0.1], rtol=1e-6)
    assert schedule.base_lr == 0.2


def test_any_function_is_a_schedule():
    np.testing.assert_allclose(steps(lambda update: 1 / update, 3), [1, 1 / 2, 1 / 3], rtol=1e-6)

    class LooksLikeOne:
        base_lr = 0.5

        def __call__(self, num_update):
            return np.float32(self.base_lr)

    duck = LooksLikeOne()
    np.testing.assert_allclose(steps(duck, 1, learning_rate=0.125), [0.125])
    assert duck.base_lr == 0.125
    optimizer = mx.optimizer.SGD(lr_scheduler=duck)
    assert optimizer.lr_scheduler is duck
    with pytest.raises(TypeError, match="expected a schedule"):
        mx.optimizer.SGD(lr_scheduler=3)


def test_an_exception_in_a_schedule_reaches_the_caller():
    def broken(num_update):
        raise KeyError("no rate")

    with pytest.raises(KeyError, match="no rate"):
        steps(broken, 1)


def test_a_python_schedule_can_be_pickled():
    schedule = Halving(0.5)
    schedule(1)
    other = pickle.loads(pickle.dumps(schedule))
    assert (other(2), other.asked, other.base_lr) == (0.125, [1, 2], 0.5)


def test_a_change_of_rate_is_logged(caplog):
    with caplog.at_level("INFO"):
        factor, multi = mx.lr_scheduler.FactorScheduler(2, 0.5), mx.lr_scheduler.MultiFactorScheduler([3], 0.1)
        for update in range(1, 5):
            factor(update), multi(update)
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [
        "Update[3]: Change learning rate to 5.00000e-03",
        "Update[4]: Change learning rate to 1.00000e-03",
    ]


def test_the_optimizers_rate_replaces_the_schedules_aloud_only_where_that_was_given(caplog):
    mx.optimizer.SGD(learning_rate=0.5, lr_scheduler=mx.lr_scheduler.FactorScheduler(2, 0.5))
    assert caplog.text == ""
    mx.optimizer.SGD(learning_rate=0.5, lr_scheduler=mx.lr_scheduler.FactorScheduler(2, 0.5, base_lr=0.2))
    assert "0.2, is replaced by the optimizer's, 0.5" in caplog.text


def test_a_rate_that_a_schedule_does_not_follow_is_reported(caplog):
    schedule = mx.lr_scheduler.CosineScheduler(100)
    for rate in (0.2, 0.3):
        caplog.clear()
        mx.optimizer.SGD(learning_rate=rate, lr_scheduler=schedule)
        assert f"learning_rate, {rate}, does not change the schedule, whose curve begins at its own base_lr, 0.01" in (
            caplog.text
        )
        assert schedule(0) == 0.01  # as in MXNet
    caplog.clear()
    schedule = mx.lr_scheduler.CosineScheduler(100, base_lr=0.1, warmup_steps=10)
    schedule.warmup_final_lr = 0.2
    mx.optimizer.SGD(learning_rate=0.1, lr_scheduler=schedule)
    assert caplog.text == "" and schedule(10) == 0.1

    class Doubled(mx.lr_scheduler.PolyScheduler):
        def __call__(self, num_update):
            return 2 * self.base_lr

    caplog.clear()
    assert mx.optimizer.SGD(learning_rate=0.2, lr_scheduler=Doubled(100)).lr_scheduler(0) == 0.4
    assert caplog.text == ""


def test_steps_that_are_parts_of_epochs_and_powers_may_be_floats():
    rates = lambda schedule: [round(schedule(update), 6) for update in range(12)]  # noqa: E731
    factor = mx.lr_scheduler.FactorScheduler(2.5, 0.5)
    assert rates(factor) == [0.01] * 3 + [0.005] * 3 + [0.0025] * 2 + [0.00125] * 3 + [0.000625]  # as MXNet's
    assert (factor.step, factor.count) == (2.5, 10)
    assert rates(mx.lr_scheduler.MultiFactorScheduler([3.5, 7.0], 0.1)) == [0.01] * 4 + [0.001] * 4 + [0.0001] * 4
    poly = mx.lr_scheduler.PolyScheduler(10, 0.1, 1.5)
    assert [round(poly(update), 6) for update in (1, 5, 9)] == [0.085381, 0.035355, 0.003162]
    assert (poly.power, mx.lr_scheduler.PolyScheduler(10).power) == (1.5, 2)
    with pytest.raises(ValueError, match="step must be at least 1: 0.5"):
        mx.lr_scheduler.FactorScheduler(0.5)

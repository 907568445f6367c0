"""Training that is resumed from a checkpoint of an epoch's callback ends in the same bits as training that was never
interrupted: all pairs of dropout, shuffling, validation, BatchNorm and schedules."""

import itertools

import numpy as np
import pytest

import symbind as mx

EPOCHS, SAVED_EPOCH = 3, 2


def network(dropout, batch_norm):
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=8, name="fc1")
    if batch_norm:
        net = mx.sym.BatchNorm(net, fix_gamma=False, name="bn")
    if dropout != "none":
        net = mx.sym.Dropout(net, p=0.5, mode=dropout, name="drop")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=3, name="fc2"), name="softmax")


def batches(shuffle):
    values = np.random.RandomState(5).uniform(-1, 1, (24, 4)).astype("float32")
    return mx.io.NDArrayIter(values, np.arange(24) * 7 % 3, batch_size=6, shuffle=shuffle)


def schedule(kind):
    return {
        "none": lambda: None,
        "factor": lambda: mx.lr_scheduler.FactorScheduler(step=5, factor=0.7, base_lr=0.05),
        "cosine": lambda: mx.lr_scheduler.CosineScheduler(max_update=20, base_lr=0.05, warmup_steps=3),
    }[kind]()


def fit(module, case, begin=0, callback=None):
    _, _, shuffle, evaluation, rate = case
    # The iterators are made before the states are loaded, as one writes it down.
    data = batches(shuffle)
    module.fit(
        data,
        eval_data=None if evaluation == "none" else batches(evaluation == "shuffled"),
        epoch_end_callback=callback,
        optimizer="adam",
        optimizer_params={"learning_rate": 0.05, "lr_scheduler": schedule(rate)},
        initializer=mx.init.Xavier(),
        begin_epoch=begin,
        num_epoch=EPOCHS,
    )
    arg_params, aux_params = module.get_params()
    return {name: array.asnumpy() for name, array in {**arg_params, **aux_params}.items()}


CHOICES = [
    ["none", "training", "always"],  # dropout
    [False, True],  # BatchNorm
    [False, True],  # shuffle
    ["none", "plain", "shuffled"],  # eval_data
    ["none", "factor", "cosine"],  # schedule
]
# Every third of all combinations, by the sum of the choices: whatever two of them are, the others can make up the rest,
# so that each pair is there.
CASES = [
    tuple(levels[chosen] for levels, chosen in zip(CHOICES, indices))
    for indices in itertools.product(*(range(len(levels)) for levels in CHOICES))
    if sum(indices) % 3 == 0
]


def test_the_cases_have_all_pairs():
    for (i, first), (k, second) in itertools.combinations(enumerate(CHOICES), 2):
        assert {(case[i], case[k]) for case in CASES} == set(itertools.product(first, second))


@pytest.mark.parametrize("dropout", CHOICES[0])
def test_resuming_is_exact_in_all_pairs(dropout, tmp_path):
    prefix = str(tmp_path / "net")
    for case in CASES:
        if case[0] != dropout:
            continue
        mx.random.seed(7)
        whole = mx.mod.Module(network(*case[:2]))
        expected = fit(whole, case, callback=mx.callback.module_checkpoint(whole, prefix, SAVED_EPOCH, True))
        mx.random.seed(99)  # the checkpoint has its own random state
        resumed = fit(mx.mod.Module.load(prefix, SAVED_EPOCH, load_optimizer_states=True), case, begin=SAVED_EPOCH)
        for name, value in expected.items():
            assert resumed[name].tobytes() == value.tobytes(), (case, name)


def test_a_prediction_takes_no_random_numbers():
    net = mx.sym.Dropout(mx.sym.Variable("data"), p=0.5)
    executor = net.simple_bind(mx.cpu(), data=(64,))
    executor.arg_dict["data"][:] = 1
    mx.random.seed(3)
    expected = executor.forward(is_train=True)[0].asnumpy()
    mx.random.seed(3)
    executor.forward(is_train=False)
    mx.nd.Dropout(mx.nd.ones((8,)), p=0.5)
    np.testing.assert_array_equal(executor.forward(is_train=True)[0].asnumpy(), expected)


def test_score_and_predict_leave_the_training_stream():
    data = batches(False)
    module = mx.mod.Module(network("training", True))
    module.bind(data.provide_data, data.provide_label)
    module.init_params()
    batch = next(data)
    mx.random.seed(3)
    module.forward(batch, is_train=True)
    expected = module.get_outputs()[0].asnumpy()
    mx.random.seed(3)
    module.score(batches(True), "acc")
    module.predict(batches(False))
    module.forward(batch, is_train=True)
    np.testing.assert_array_equal(module.get_outputs()[0].asnumpy(), expected)


def test_networks_that_sample_in_inference_give_new_numbers_at_each_call():
    executor = mx.sym.Dropout(mx.sym.Variable("data"), p=0.5, mode="always").simple_bind(mx.cpu(), data=(64,))
    executor.arg_dict["data"][:] = 1
    first = executor.forward(is_train=False)[0].asnumpy()
    assert (executor.forward(is_train=False)[0].asnumpy() != first).any()

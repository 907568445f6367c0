"""FeedForward: what it takes, and what it gives back; and the functions that drive stores and updaters."""

import logging
import pickle

import numpy as np
import pytest

import symbind as mx

DATA = np.random.RandomState(0).randn(20, 4).astype(np.float32)
LABEL = (DATA[:, 0] > 0).astype(np.float32)


def model(**arguments):
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), name="fc", num_hidden=2)
    net = mx.sym.SoftmaxOutput(net, name="softmax")
    return mx.model.FeedForward(net, **{"num_epoch": 20, "learning_rate": 0.5, "numpy_batch_size": 5, **arguments})


def test_arrays_lists_and_columns_are_taken():
    trained = model()
    trained.fit(DATA, LABEL.reshape(-1, 1), eval_data=(DATA.tolist(), LABEL.tolist()))
    right = trained.predict(DATA).argmax(axis=1) == LABEL
    assert right.mean() > 0.9
    assert trained.score(mx.io.NDArrayIter(DATA, LABEL, 5)) == pytest.approx(right.mean())


def test_score_of_an_array_counts_zeros_as_labels():
    trained = model(num_epoch=1)
    trained.fit(mx.nd.array(DATA), LABEL)
    assert trained.score(DATA) == pytest.approx((trained.predict(DATA).argmax(axis=1) == 0).mean())


def test_score_of_several_metrics_is_a_list():
    trained = model(num_epoch=1)
    trained.fit(DATA, LABEL)
    iterator = mx.io.NDArrayIter(DATA, LABEL, 5)
    single = [trained.score(iterator, name) for name in ("acc", "ce")]
    assert trained.score(iterator, ["acc", "ce"]) == pytest.approx(single)
    assert trained.score(iterator, mx.metric.create(["acc"])) == pytest.approx(single[:1])
    assert trained.score(iterator, lambda label, pred: 3) == 3


def test_predict_gives_back_data_and_labels():
    trained = model(num_epoch=1)
    trained.fit(DATA, LABEL)
    outputs, data, labels = trained.predict(mx.io.NDArrayIter(DATA, LABEL, 8), return_data=True)
    assert outputs.shape == (20, 2)
    np.testing.assert_array_equal(data, DATA)
    np.testing.assert_array_equal(labels, LABEL)


def test_a_saved_model_predicts_the_same(tmp_path):
    trained = model(num_epoch=2)
    trained.fit(DATA, LABEL)
    trained.save(str(tmp_path / "model"))
    loaded = mx.model.FeedForward.load(str(tmp_path / "model"), 2)
    assert loaded.begin_epoch == 2
    np.testing.assert_array_equal(loaded.predict(DATA), trained.predict(DATA))


def regression(**arguments):
    """A model of two outputs whose label has another name than iterators give it."""
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), name="fc", num_hidden=2)
    net = mx.sym.LinearRegressionOutput(net, mx.sym.Variable("score"), name="regression")
    params = {"fc_weight": mx.nd.ones((2, 4)), "fc_bias": mx.nd.array([0, 1])}
    return mx.model.FeedForward(net, arg_params=params, aux_params={}, numpy_batch_size=4, **arguments)


SUMS = DATA.sum(axis=1, keepdims=True) + [0, 1]


@pytest.mark.parametrize("ctx", [mx.cpu(), [mx.cpu(0), mx.cpu(1)]], ids=["one device", "two devices"])
def test_labels_of_any_name_and_shape_are_not_needed_to_predict(ctx, tmp_path):
    predictor = regression(ctx=ctx)
    for data in (DATA, mx.io.NDArrayIter(DATA, None, 5), mx.io.NDArrayIter(DATA, LABEL, 5, label_name="score")):
        np.testing.assert_allclose(predictor.predict(data), SUMS, rtol=1e-4, atol=1e-5)
    predictor.save(str(tmp_path / "model"), 1)
    loaded = mx.model.FeedForward.load(str(tmp_path / "model"), 1, ctx=ctx)
    np.testing.assert_allclose(loaded.predict(DATA), SUMS, rtol=1e-4, atol=1e-5)
    labels = SUMS + [1, 2]
    for name in ("score", "softmax_label"):
        assert loaded.score(mx.io.NDArrayIter(DATA, labels, 5, label_name=name), "mse") == pytest.approx(2.5, rel=1e-4)


def test_arguments_without_values_are_zeros_to_predict():
    predictor = regression()
    del predictor.arg_params["fc_bias"]
    np.testing.assert_allclose(predictor.predict(DATA), SUMS - [0, 1], rtol=1e-4, atol=1e-5)
    label = mx.sym.Variable("label")
    shown = mx.sym.Group([mx.sym.LinearRegressionOutput(mx.sym.Variable("data"), label), mx.sym.BlockGrad(label)])
    predictor = mx.model.FeedForward(shown, arg_params={}, aux_params={})
    outputs = predictor.predict(mx.io.NDArrayIter(DATA, DATA, 5, label_name="label"))
    np.testing.assert_array_equal(outputs[1], np.zeros_like(DATA))


def test_labels_whose_shapes_do_not_follow_from_the_data_are_those_of_the_iterator():
    shown = mx.sym.Group([mx.sym.Variable("data") + 1, mx.sym.BlockGrad(mx.sym.Variable("label"))])
    predictor = mx.model.FeedForward(shown, arg_params={}, aux_params={})
    outputs = predictor.predict(mx.io.NDArrayIter(DATA, LABEL, 5, label_name="label"))
    np.testing.assert_array_equal(outputs[1], LABEL)


def test_predict_reads_the_executor_that_a_script_has_made():
    predictor = regression()
    predictor._init_predictor([("data", (4, 4))])
    predictor._pred_exec.copy_params_from({"fc_bias": mx.nd.array([5, 6])}, {})
    np.testing.assert_allclose(predictor.predict(DATA), SUMS + 5, rtol=1e-4, atol=1e-5)


def test_a_checkpoint_is_logged_once(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    mx.model.save_checkpoint(str(tmp_path / "model"), 3, None, {"fc_bias": mx.nd.ones((2,))}, {})
    assert [record.getMessage() for record in caplog.records] == [f'Saved checkpoint to "{tmp_path}/model-0003.params"']


def test_samples_that_fill_no_batch_of_an_array_come_first_in_the_next_epoch():
    batches = []
    model(num_epoch=3, numpy_batch_size=8).fit(
        DATA, LABEL, batch_end_callback=lambda param: batches.append((param.epoch, param.nbatch))
    )
    assert batches == [(0, 1), (0, 2), (1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]  # of 20 samples 4 wait, then none


class Watched(mx.io.NDArrayIter):
    """Notes the first sample of every batch."""

    def __init__(self):
        super().__init__(np.arange(10, dtype=np.float32).reshape(10, 1), np.zeros(10), 2)
        self.seen = []

    def next(self):
        batch = super().next()
        self.seen.append(int(batch.data[0].asnumpy()[0, 0]))
        return batch


@pytest.mark.parametrize(
    "epoch_size, expected",
    [
        (2, [0, 2, 4, 6, 8, 0]),
        (3, [0, 2, 4, 6, 8, 0, 2, 4, 6]),
        (5, [0, 2, 4, 6, 8] * 3),
        (5.0, [0, 2, 4, 6, 8] * 3),
        (1.5, [0, 2, 4, 6, 8, 0]),
        (7, [0, 2, 4, 6, 8] * 4 + [0]),
        (None, [0, 2, 4, 6, 8] * 3),
    ],
)
def test_short_epochs_go_on_where_the_last_one_ended(epoch_size, expected):
    train = Watched()
    model(num_epoch=3, epoch_size=epoch_size).fit(train)
    assert train.seen == expected


def test_an_iterator_that_was_read_is_read_from_its_beginning():
    train = Watched()
    for _ in train:
        pass
    train.seen.clear()
    model(num_epoch=1).fit(train)
    assert train.seen == [0, 2, 4, 6, 8]


def test_batches_are_counted_from_one():
    counts = []
    model(num_epoch=2).fit(
        Watched(), batch_end_callback=[lambda param: counts.append(param.nbatch), mx.callback.Speedometer(2)]
    )
    assert counts == [1, 2, 3, 4, 5] * 2
    with pytest.raises(TypeError, match="a callback must be callable: 3 is not"):
        model(num_epoch=1).fit(Watched(), batch_end_callback=3)


def test_parameters_of_several_devices_are_updated_one_by_one():
    from symbind.model import _update_params

    def arrays(*rows):
        return [[mx.nd.array([value]) for value in row] for row in rows]

    weights = arrays([1, 1], [2, 2], [3, 3])
    grads = arrays([0.5, 1], [0, 0], [2, 4])
    grads[1] = [None, None]  # fixed
    calls = []

    def updater(index, grad, weight):
        calls.append((index, grad.asscalar(), weight.asscalar()))
        weight -= grad

    _update_params(weights, grads, updater, 2)
    assert calls == [(0, 0.5, 1), (1, 1, 1), (4, 2, 3), (5, 4, 3)]
    assert [[w.asscalar() for w in row] for row in weights] == [[0.5, 0], [2, 2], [1, -1]]

    store = mx.kv.create("local")
    for name, row in zip("abc", weights):
        store.init(name, row[0])
    _update_params(weights, grads, updater, 2, store, list("abc"))
    assert [[w.asscalar() for w in row] for row in weights] == [[-1, -1.5], [2, 2], [-5, -7]]  # by the devices' sum


def test_what_is_no_data_is_said():
    with pytest.raises(TypeError, match="not a list"):
        model().fit(DATA.tolist(), LABEL)
    with pytest.raises(ValueError, match="labels"):
        model().fit(DATA)
    with pytest.raises(ValueError, match="20 samples and 3 labels"):
        model().fit(DATA, LABEL[:3])
    with pytest.raises(ValueError, match="num_epoch"):
        model(num_epoch=None).fit(DATA, LABEL)
    with pytest.raises(ValueError, match="no parameters yet"):
        model().predict(DATA)


# ---- parameters in a store and on devices


def on_two_devices(*values):
    return [[mx.nd.full((2, 3), value) for _ in range(2)] for value in values]


def numbers(arrays):
    return [[array.asnumpy().mean() for array in on_devices] for on_devices in arrays]


@pytest.mark.parametrize("update_on_kvstore", [True, False])
def test_a_store_starts_from_the_parameters_and_hands_them_out_if_it_updates_them(update_on_kvstore):
    store, arrays = mx.kv.create("local"), on_two_devices(0, 0)
    params = {"v": mx.nd.full((2, 3), 7), "w": mx.nd.full((2, 3), 8)}
    mx.model._initialize_kvstore(store, arrays, params, ["w", "v"], update_on_kvstore)
    assert numbers(arrays) == ([[8, 8], [7, 7]] if update_on_kvstore else [[0, 0], [0, 0]])
    stored = on_two_devices(0)
    store.pull("v", stored[0])
    assert numbers(stored) == [[7, 7]]


def test_a_store_with_an_optimizer_updates_the_parameters_that_have_gradients():
    store, arrays = mx.kv.create("local"), on_two_devices(1, 2, 3)
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    mx.model._initialize_kvstore(store, arrays, {n: a[0] for n, a in zip("uvw", arrays)}, list("uvw"), True)
    grads = on_two_devices(1, 0, 2)
    grads[1] = [None, None]
    mx.model._update_params_on_kvstore(arrays, grads, store, list("uvw"))
    assert numbers(arrays) == [[0, 0], [2, 2], [1, 1]]


def test_an_updater_gets_the_gradients_that_the_store_summed_and_an_index_per_device():
    store, arrays, grads = mx.kv.create("local"), on_two_devices(1, 2, 3), on_two_devices(1, 0, 2)
    mx.model._initialize_kvstore(store, arrays, {n: a[0] for n, a in zip("uvw", arrays)}, list("uvw"), False)
    grads[1] = [None, None]
    indices = []

    def updater(index, grad, weight):
        indices.append(index)
        weight[:] -= 0.25 * grad

    mx.model._update_params(arrays, grads, updater, 2)
    assert indices == [0, 1, 4, 5] and numbers(arrays) == [[0.75, 0.75], [2, 2], [2.5, 2.5]]
    mx.model._update_params(arrays, grads, updater, 2, store, list("uvw"))
    assert numbers(arrays) == [[0.25, 0.25], [2, 2], [1.5, 1.5]]


# The older names


def test_parameters_that_the_network_lacks_are_left_out_if_that_is_said(caplog):
    trained = model(num_epoch=1)
    trained.fit(DATA, LABEL)
    params = dict(trained.arg_params, other=mx.nd.ones((1,)))
    with pytest.raises(ValueError, match="other.*allow_extra_params"):
        model(arg_params=params, aux_params={}).predict(DATA)
    lenient = model(arg_params=params, aux_params={}, allow_extra_params=True)
    assert np.allclose(lenient.predict(DATA), trained.predict(DATA))
    assert "other" not in lenient.arg_params
    # As an executor's arg_dict, which has the data, too.
    with_data = model(arg_params=dict(trained.arg_params, data=mx.nd.array(DATA)), aux_params={})
    caplog.clear()
    assert np.allclose(with_data.predict(DATA), trained.predict(DATA)) and not caplog.text


def test_a_model_is_pickled_with_its_parameters():
    trained = model(num_epoch=1)
    trained.fit(DATA, LABEL)
    trained._init_predictor([("data", (2, DATA.shape[1])), ("softmax_label", (2,))])
    assert trained._pred_exec.forward()[0].shape[0] == 2
    again = pickle.loads(pickle.dumps(trained))
    assert again._pred_exec is None
    assert np.allclose(again.predict(DATA), trained.predict(DATA))


def test_parameters_are_initialized_for_given_inputs():
    fresh = model()
    inputs = [("data", (5, DATA.shape[1])), ("softmax_label", (5,))]
    arguments, params, aux = fresh._init_params(inputs)
    assert set(params) == set(arguments) - {"data", "softmax_label"} == set(fresh.arg_params) and aux == []
    kept = fresh.arg_params[params[0]].asnumpy()
    fresh._init_params(inputs)
    assert np.array_equal(fresh.arg_params[params[0]].asnumpy(), kept)
    assert [fresh._is_data_arg(name) for name in ("data", "my_label", "fc_weight")] == [True, True, False]


def test_a_function_of_bucket_keys_may_be_the_symbol():
    class Buckets(mx.io.DataIter):
        default_bucket_key = 1
        provide_data, provide_label = [("data", (2, DATA.shape[1]))], [("softmax_label", (2,))]

        def __init__(self):
            super().__init__(2)
            self.left = [1, 2, 1]

        def reset(self):
            self.left = [1, 2, 1]

        def next(self):
            if not self.left:
                raise StopIteration
            return mx.io.DataBatch(
                [mx.nd.array(DATA[:2])],
                [mx.nd.array(LABEL[:2])],
                bucket_key=self.left.pop(),
                provide_data=self.provide_data,
                provide_label=self.provide_label,
            )

    asked = []

    def generate(key):
        asked.append(key)
        return model().symbol

    trained = mx.model.FeedForward(generate, num_epoch=2)
    trained.fit(Buckets())
    assert set(asked) == {1, 2} and trained.symbol.list_outputs() == ["softmax_output"]
    assert trained.predict(Buckets()).shape[0] == 6


def test_parameters_of_a_store_may_have_numbers_for_keys():
    store = mx.kv.create("local")
    weights, grads = [[mx.nd.ones((2,))]], [[mx.nd.ones((2,)) * 3]]
    store.init(0, weights[0][0])
    store.set_updater(lambda key, grad, weight: weight.__isub__(grad))
    mx.model._update_params_on_kvstore(weights, grads, store)
    assert weights[0][0].asnumpy().tolist() == [-2, -2]

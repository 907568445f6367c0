"""FeedForward: what it takes, and what it gives back."""

import logging

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


def test_a_checkpoint_is_logged_once(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    mx.model.save_checkpoint(str(tmp_path / "model"), 3, None, {"fc_bias": mx.nd.ones((2,))}, {})
    assert [record.getMessage() for record in caplog.records] == [f'Saved checkpoint to "{tmp_path}/model-0003.params"']


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

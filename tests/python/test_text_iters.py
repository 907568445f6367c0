"""CSVIter and LibSVMIter."""

import numpy as np
import pytest

import symbind as mx


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows.csv"


def test_csv_batches_go_on_after_the_samples_that_filled_the_last_one(path):
    path.write_text("".join(f"{i},{-i}\n" for i in range(5)))
    it = mx.io.CSVIter(data_csv=str(path), data_shape=(2,), batch_size=2, prefetch_buffer=4)
    assert it.provide_data == [("data", (2, 2))]
    assert it.provide_label == [("softmax_label", (2,))]
    epochs = []
    for _ in range(2):
        epochs.append([(batch.data[0].asnumpy()[:, 0].tolist(), batch.pad, list(batch.index)) for batch in it])
        it.reset()
    assert epochs == [
        [([0, 1], 0, [0, 1]), ([2, 3], 0, [2, 3]), ([4, 0], 1, [4, 0])],
        [([1, 2], 0, [1, 2]), ([3, 4], 0, [3, 4])],
    ]


def test_csv_labels_types_and_shapes(path, tmp_path):
    path.write_text("1,2,3,4\n5,6,7,8\n")
    labels = tmp_path / "labels.csv"
    labels.write_text("7,1\n8,2\n")
    it = mx.io.CSVIter(
        data_csv=path, data_shape=(2, 2), label_csv=labels, label_shape=(2,), batch_size=2, dtype="int64", round_batch=0
    )
    batch = it.next()
    assert batch.data[0].dtype == np.int64
    np.testing.assert_array_equal(batch.data[0].asnumpy(), np.arange(1, 9).reshape(2, 2, 2))
    np.testing.assert_array_equal(batch.label[0].asnumpy(), [[7, 1], [8, 2]])
    with pytest.raises(StopIteration):
        it.next()


def test_a_loop_over_the_parts_of_batches(path):
    path.write_text("1,2\n3,4\n5,6\n")
    it = mx.io.CSVIter(data_csv=str(path), data_shape="(2,)", batch_size="2")
    seen = []
    while it.iter_next():  # getdata() is an array, not a list of one
        seen.append((it.getdata().asnumpy().tolist(), it.getlabel().shape, it.getpad(), list(it.getindex())))
    assert seen == [([[1, 2], [3, 4]], (2,), 0, [0, 1]), ([[5, 6], [1, 2]], (2,), 1, [2, 0])]


def test_libsvm_batches_are_dense(path):
    path.write_text("1 0:1 2:3.5\n-1 1:2\n0\n")
    it = mx.io.LibSVMIter(data_libsvm=str(path), data_shape=(3,), batch_size=3)
    batch = it.next()
    np.testing.assert_array_equal(batch.data[0].asnumpy(), [[1, 0, 3.5], [0, 2, 0], [0, 0, 0]])
    np.testing.assert_array_equal(batch.label[0].asnumpy(), [1, -1, 0])


def test_wrong_arguments_are_named(path):
    path.write_text("1,2\n")
    with pytest.raises(TypeError, match="CSVIter has no argument shuffle; there are .*data_csv"):
        mx.io.CSVIter(data_csv=str(path), data_shape=(2,), batch_size=1, shuffle=True)
    with pytest.raises(TypeError, match="CSVIter needs the argument data_shape"):
        mx.io.CSVIter(data_csv=str(path), batch_size=1)
    with pytest.raises(TypeError, match="batch_size"):
        mx.io.CSVIter(data_csv=str(path), data_shape=(2,), batch_size=1.5)
    with pytest.raises(mx.MXNetError, match=r"rows.csv\] line 1: .*3: found 2"):
        mx.io.CSVIter(data_csv=str(path), data_shape=(3,), batch_size=1)
    with pytest.raises(mx.MXNetError, match="num_parts"):
        mx.io.CSVIter(data_csv=str(path), data_shape=(2,), batch_size=1, num_parts=0)


def test_a_network_is_trained_from_csv(path, tmp_path):
    rng = np.random.RandomState(3)
    data = rng.rand(64, 2)
    labels = tmp_path / "labels.csv"
    np.savetxt(path, data, delimiter=",")
    np.savetxt(labels, data[:, 0] > data[:, 1], delimiter=",", fmt="%d")
    it = mx.io.CSVIter(data_csv=str(path), data_shape=(2,), label_csv=str(labels), batch_size=16)
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2), name="softmax")
    model = mx.mod.Module(net)
    model.fit(it, num_epoch=30, optimizer_params={"learning_rate": 2.0})
    it.reset()
    assert model.score(it, "acc")[0][1] > 0.9

"""The checkers must accept what is right and refuse what is wrong."""

import os
import subprocess
import sys

import numpy as np
import pytest

import symbind as mx
from symbind import test_utils as checks

DATA = os.path.join(os.path.dirname(__file__), "..", "..", "data")


def test_the_default_context_can_be_set():
    assert checks.default_context() == mx.current_context()
    checks.set_default_context(mx.cpu(1))
    try:
        assert checks.default_context() == mx.cpu(1)
    finally:
        checks.set_default_context(None)
    with pytest.raises(TypeError):
        checks.set_default_context("cpu")


def test_comparisons_know_their_tolerances():
    one = np.ones(3, np.float32)
    assert checks.almost_equal(one, one + 1e-4) and not checks.almost_equal(one, one + 0.1)
    assert not checks.almost_equal(one.astype("float64"), one.astype("float64") + 1e-4)
    assert checks.almost_equal(one, one + 0.1, rtol=0.2)
    assert checks.same(mx.nd.ones(3), one) and not checks.same(one, one + 1e-7)
    with_nan = np.array([np.nan, 1.0])
    assert not checks.almost_equal(with_nan, with_nan)
    assert checks.almost_equal(with_nan, with_nan, equal_nan=True)
    assert checks.almost_equal_ignore_nan(with_nan, np.array([3.0, 1.0]))


def test_a_failed_comparison_shows_the_worst_indices():
    left = np.zeros((2, 3))
    right = left.copy()
    right[1, 2], right[0, 1] = 5, 0.5
    with pytest.raises(AssertionError) as error:
        checks.assert_almost_equal(left, right, atol=1e-3, names=("ours", "theirs"))
    lines = str(error.value).splitlines()
    assert "2 of 6" in lines[0] and "at (1, 2): ours=0, theirs=5" in str(error.value) and len(lines) == 3
    with pytest.raises(AssertionError):
        checks.assert_allclose(left, left + 1e-6)
    with pytest.raises(AssertionError):
        checks.assert_almost_equal(np.array([np.nan]), np.array([1.0]))
    checks.assert_almost_equal_with_err(left, right, atol=1e-3, etol=0.5)
    with pytest.raises(AssertionError):
        checks.assert_almost_equal_with_err(left, right, atol=1e-3, etol=0.2)


def test_exceptions_are_asserted():
    checks.assert_exception(int, ValueError, "x")
    with pytest.raises(AssertionError, match="ValueError was not raised"):
        checks.assert_exception(int, ValueError, "1")


def test_random_shapes_and_arrays():
    for _ in range(50):
        assert all(1 <= dim <= 4 for dim in checks.rand_shape_nd(3, 4))
        assert len(checks.rand_shape_2d(2, 3)) == 2 and checks.rand_shape_3d(1, 1, 1) == (1, 1, 1)
    first, second = checks.random_arrays((2, 3), (4,))
    assert first.shape == (2, 3) and second.dtype == np.float32 and checks.random_arrays((2,)).shape == (2,)
    assert checks.rand_ndarray((2, 3), dtype="float64").dtype == np.float64
    assert set(checks.random_sample([1, 2, 3], 3)) == {1, 2, 3}
    with pytest.raises(NotImplementedError, match="dense"):
        checks.rand_ndarray((2, 2), "csr")


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_np_reduce_agrees_with_numpy(axis, keepdims):
    values = np.random.rand(2, 3, 4)
    assert np.allclose(checks.np_reduce(values, axis, keepdims, np.sum), values.sum(axis=axis, keepdims=keepdims))


def test_forward_and_backward_are_checked():
    x = mx.sym.Variable("x")
    square = x * x
    values = np.array([1.0, 2.0, -3.0])
    checks.check_symbolic_forward(square, [values], [values**2])
    with pytest.raises(AssertionError):
        checks.check_symbolic_forward(square, [values], [values**2 + 0.1])
    out_grad = np.array([1.0, 10.0, 100.0])
    for request in ("write", "add"):
        checks.check_symbolic_backward(
            square, {"x": values}, [out_grad], {"x": 2 * values * out_grad}, grad_req=request
        )
    checks.check_symbolic_backward(square, [values], [out_grad], {"x": values}, grad_req="null")
    with pytest.raises(AssertionError):
        checks.check_symbolic_backward(square, [values], [out_grad], [values])
    with pytest.raises(ValueError, match="expected 1 arrays"):
        checks.check_symbolic_forward(square, [values, values], [values])


def test_gradients_are_checked_by_differences():
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    location = {"a": np.random.rand(3, 2) + 1, "b": np.random.rand(3, 2) + 1}
    checks.check_numeric_gradient(a * b + a, location, rtol=1e-2, atol=1e-2)
    checks.check_numeric_gradient(a * b, location, dtype=np.float64, rtol=1e-4, atol=1e-6)
    checks.check_numeric_gradient(a * b, location, grad_nodes={"a": "add", "b": "null"}, rtol=1e-2, atol=1e-2)
    # BlockGrad's gradient is wrong on purpose: differences see through it.
    with pytest.raises(AssertionError, match="NUMERICAL_a"):
        checks.check_numeric_gradient(mx.sym.BlockGrad(a) * b, location, rtol=1e-2, atol=1e-2)


def test_auxiliary_states_are_set_back_between_differences():
    net = mx.sym.BatchNorm(mx.sym.Variable("data"), fix_gamma=False, name="bn", eps=1e-3)
    location = {"data": np.random.rand(4, 2) * 2, "bn_gamma": np.ones(2), "bn_beta": np.zeros(2)}
    aux = {"bn_moving_mean": np.zeros(2), "bn_moving_var": np.ones(2)}
    checks.check_numeric_gradient(net, location, aux, numeric_eps=1e-2, rtol=0.05, atol=0.02)


def test_consistency_over_contexts_and_types():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name="fc")
    entries = [
        {"ctx": mx.cpu(0), "data": (3, 5), "type_dict": {"data": np.float64}},
        {"ctx": mx.cpu(1), "data": (3, 5), "type_dict": {"data": np.float32}},
    ]
    truth = checks.check_consistency(net, entries)
    assert {"fc_output", "data", "fc_weight", "fc_bias"} <= set(truth)
    checks.check_consistency(net, entries, grad_req="null")
    other = mx.sym.FullyConnected(mx.sym.Variable("data") * 1.1, num_hidden=4, name="fc")
    with pytest.raises(AssertionError, match="ground truth"):
        checks.check_consistency([net, other], entries)


def test_one_memory_is_told_from_two():
    values = mx.nd.ones((2, 2))
    assert checks.same_array(values, values.reshape((2, 2))) and not checks.same_array(values, values.copy())
    assert values.asnumpy().tolist() == [[1, 1], [1, 1]]


def test_networks_of_one_structure():
    x = mx.sym.Variable("x")
    assert checks.same_symbol_structure(x + 1, mx.sym.Variable("y") + 2)
    assert not checks.same_symbol_structure(x + 1, x * 2)


def test_simple_forward_and_speed():
    x = mx.sym.Variable("x")
    assert checks.simple_forward(x * 2, x=np.array([1.0, 2.0])).tolist() == [2, 4]
    assert checks.check_speed(x * 2, location={"x": np.ones(3)}, N=2) > 0
    assert checks.check_speed(x * 2, N=2, typ="forward", x=(2, 2)) > 0


def test_the_environment_is_put_back():
    with checks.environment("SYMBIND_TEST_A", "1"):
        assert os.environ["SYMBIND_TEST_A"] == "1"
        with checks.environment({"SYMBIND_TEST_A": None, "SYMBIND_TEST_B": 2}):
            assert "SYMBIND_TEST_A" not in os.environ and os.environ["SYMBIND_TEST_B"] == "2"
        assert os.environ["SYMBIND_TEST_A"] == "1"
    assert "SYMBIND_TEST_A" not in os.environ and "SYMBIND_TEST_B" not in os.environ


def test_standard_error_is_discarded():
    code = (
        "import os; from symbind.test_utils import discard_stderr\n"
        "with discard_stderr(): os.write(2, b'unseen')\nos.write(2, b'seen')"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert result.stderr == b"seen"


def test_a_test_is_retried():
    calls = []

    @checks.retry(3)
    def flaky():
        calls.append(1)
        assert len(calls) == 3

    flaky()
    assert len(calls) == 3


def test_download_takes_what_is_there_and_says_what_to_do_otherwise(tmp_path):
    source = tmp_path / "source.txt"
    source.write_text("content")
    fetched = checks.download(source.as_uri(), dirname=str(tmp_path / "to"), fname="copy.txt")
    assert open(fetched).read() == "content"
    source.write_text("changed")
    assert open(checks.download(source.as_uri(), fname=fetched)).read() == "content"
    assert open(checks.download(source.as_uri(), fname=fetched, overwrite=True)).read() == "changed"
    with pytest.raises(OSError, match="by hand"):
        checks.download((tmp_path / "missing").as_uri(), fname=str(tmp_path / "new"), retries=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source.txt", "to"]


def test_mnist_is_read_from_the_data_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(os.path.join(DATA, ".."))
    mnist = checks.get_mnist()
    count = len(mnist["train_label"])
    assert mnist["train_data"].shape == (count, 1, 28, 28) and mnist["train_data"].dtype == np.float32
    assert 0 <= mnist["train_data"].min() and 0.9 < mnist["train_data"].max() <= 1
    train, validation = checks.get_mnist_iterator(batch_size=10, input_shape=(784,))
    assert next(train).data[0].shape == (10, 784)
    _, validation = checks.get_mnist_iterator(batch_size=10, input_shape=(1, 28, 28))
    assert next(validation).data[0].shape == (10, 1, 28, 28)
    os.mkdir(tmp_path / "empty")
    monkeypatch.chdir(tmp_path / "empty")
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="train-images"):
        checks.get_mnist()
    os.symlink(os.path.abspath(DATA), tmp_path / "mnist")
    checks.get_mnist_ubyte()
    assert sorted(os.listdir("data"))[0] == "t10k-images-idx3-ubyte"


def test_cifar10_is_not_fetched_if_it_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fetched = []
    monkeypatch.setattr("symbind._test_data.get_zip_data", lambda *args: fetched.append(args))
    checks.get_cifar10()
    assert [(folder, name) for folder, _, name in fetched] == [("data", "cifar10.zip")]
    (tmp_path / "data" / "cifar").mkdir(parents=True)
    for name in ("train.rec", "test.rec", "train.lst", "test.lst"):
        (tmp_path / "data" / "cifar" / name).touch()
    checks.get_cifar10()
    assert len(fetched) == 1


def test_the_path_of_im2rec(tmp_path, monkeypatch):
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))  # there is none
    command = [sys.executable, checks.get_im2rec_path(), "--help"]
    assert "--recursive" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "im2rec.py").touch()
    assert checks.get_im2rec_path() == str(tmp_path / "tools" / "im2rec.py")


def test_a_dummy_iterator_gives_one_batch_again():
    real = mx.io.NDArrayIter(np.arange(8.0).reshape(4, 2), np.arange(4.0), batch_size=2)
    dummy = checks.DummyIter(real)
    first, second = dummy.next(), dummy.next()
    assert first is second and first.data[0].asnumpy().tolist() == [[0, 1], [2, 3]]
    assert dummy.batch_size == 2 and dummy.provide_data[0].name == "data"


def test_optimizers_are_compared():
    sgd = mx.optimizer.create("sgd", learning_rate=0.1, momentum=0.9)
    same = mx.optimizer.create("sgd", learning_rate=0.1, momentum=0.9)
    other = mx.optimizer.create("sgd", learning_rate=0.2, momentum=0.9)
    checks.compare_optimizer(sgd, same, (3, 4), np.float32)
    with pytest.raises(AssertionError):
        checks.compare_optimizer(sgd, other, (3, 4), np.float32)


def test_a_good_generator_passes_and_a_bent_one_fails():
    random = np.random.RandomState(7)
    buckets, probs = checks.gen_buckets_probs_with_ppf(lambda p: p, 5)
    np.testing.assert_allclose(buckets, [(0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1)])
    assert probs == [0.2] * 5
    p, observed, expected = checks.chi_square_check(lambda n: random.uniform(size=n), buckets, probs, nsamples=1000)
    assert 0 < p <= 1 and observed.sum() == 1000 and expected.tolist() == [200] * 5
    assert len(checks.verify_generator(lambda n: random.uniform(size=n), buckets, probs, 10000, nrepeat=3)) == 3
    with pytest.raises(AssertionError, match="0 of 3 chi-square tests pass"):
        checks.verify_generator(lambda n: random.uniform(size=n) ** 1.2, buckets, probs, 10000, nrepeat=3)
    coin = lambda n: mx.nd.array(random.randint(2, size=n))  # noqa: E731
    checks.verify_generator(coin, [0, 1], [0.5, 0.5], 10000, nrepeat=3)
    with pytest.raises(AssertionError):
        checks.verify_generator(coin, [0, 1], [0.4, 0.6], 10000, nrepeat=3)
    with pytest.raises(ValueError, match="do not overlap"):
        checks.chi_square_check(lambda n: random.uniform(size=n), [(0, 0.6), (0.5, 1)], [0.6, 0.4], nsamples=10)


@pytest.mark.parametrize(
    "statistic, freedom, due",  # tabulated quantiles of the chi-square distribution
    [
        (3.841458820694124, 1, 0.05),
        (9.487729036781154, 4, 0.05),
        (0.7107230213973, 4, 0.95),
        (135.80672317102676, 100, 0.01),
    ],
)
def test_p_values_are_those_of_the_tables(statistic, freedom, due):
    from symbind._test_generators import _chi_square_tail

    assert _chi_square_tail(statistic, freedom) == pytest.approx(due, rel=1e-9)
    assert _chi_square_tail(0, freedom) == 1


def test_means_and_variances_are_checked():
    random = np.random.RandomState(7)
    normal = lambda n: random.normal(1, 2, size=n)  # noqa: E731
    assert checks.mean_check(normal, 1, 2, 10000) and not checks.mean_check(normal, 1.2, 2, 10000)
    assert checks.var_check(normal, 2, 10000) and not checks.var_check(normal, 2.2, 10000)


def test_matrices_have_what_their_names_say():
    np.random.seed(3)
    q = checks.new_orthonormal_matrix_2d(4)
    np.testing.assert_allclose(q @ q.T, np.eye(4), atol=1e-12)
    symmetric = checks.new_sym_matrix_with_real_eigvals_nd((2, 3, 3))
    np.testing.assert_array_equal(symmetric, symmetric.transpose(0, 2, 1))
    for matrix in checks.new_matrix_with_real_eigvals_nd((5, 4, 4)):
        values = np.linalg.eigvals(matrix)
        assert np.abs(values.imag).max() < 1e-9 and np.abs(values.real).max() <= 1 + 1e-9
    assert checks.get_identity_mat(2).asnumpy().tolist() == [[1, 0], [0, 1]]
    assert checks.get_identity_mat_batch(3).shape == (2, 3, 3)


def test_tolerances_come_from_numbers_types_and_defaults():
    half = np.zeros(1, np.float16)
    assert checks.get_tolerance(half, 0.5, {}) == 0.5
    assert checks.get_tolerance(half, {np.float16: 0.25}, checks.default_rtols()) == 0.25
    assert checks.get_tolerance(half, None, checks.default_rtols()) == 1e-2
    assert checks.get_etol() == 0 and checks.get_etol(0.3) == 0.3
    text = checks.locationError(np.array([1, 2.0]), np.array([1, 3.0]), (1,), ("a", "b"), maxError=True)
    assert text == "Location of maximum error: (1,), a=2.00000000, b=3.00000000"


def test_a_model_is_fetched_from_the_addresses_given(tmp_path):
    for ending in ("symbol.json", "params"):
        (tmp_path / ending).write_text(ending)
    info = {"net": {"symbol": (tmp_path / "symbol.json").as_uri(), "params": (tmp_path / "params").as_uri()}}
    prefix, epoch = checks.download_model("net", str(tmp_path / "there"), info)
    assert (tmp_path / "there" / "net-symbol.json").read_text() == "symbol.json" and epoch == 0
    assert (tmp_path / "there" / "net-0000.params").read_text() == "params" and prefix.endswith("net")
    assert checks.download_model("other", str(tmp_path), info) == (None, 0)

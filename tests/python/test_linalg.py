"""mx.nd.linalg and mx.sym.linalg beside NumPy's, and CTCLoss under all its names."""

import numpy as np
import pytest

import symbind as mx

NAMES = (
    "det extractdiag extracttrian gelqf gemm gemm2 inverse makediag maketrian potrf potri slogdet sumlogdiag syevd "
    "syrk trmm trsm"
).split()


@pytest.fixture
def covariances():
    a = np.random.RandomState(3).normal(size=(4, 5, 5))
    return a @ a.transpose(0, 2, 1) + np.eye(5)


def double(array):
    return mx.nd.array(array, dtype="float64")


@pytest.mark.parametrize("name", NAMES)
def test_every_function_is_there_on_arrays_and_on_symbols(name):
    assert name in dir(mx.nd.linalg) and name in dir(mx.sym.linalg)
    symbol = getattr(mx.sym.linalg, name)(name="x")
    assert symbol.list_arguments()[0] == "x_A"
    assert getattr(mx.nd.linalg, name).__doc__
    if name != "syevd":
        assert hasattr(mx.nd, "linalg_" + name) and hasattr(mx.sym, "linalg_" + name)


def test_outputs_have_the_names_of_mxnet():
    assert mx.sym.linalg.potrf(name="x").list_outputs() == ["x_output"]
    assert mx.sym.linalg.det(name="x").list_outputs() == ["x_output0"]
    for name in ("gelqf", "syevd", "slogdet"):
        assert getattr(mx.sym.linalg, name)(name="x").list_outputs() == ["x_output0", "x_output1"]


def test_factorizations_agree_with_numpy(covariances):
    a = double(covariances)
    factor = mx.nd.linalg.potrf(a)
    np.testing.assert_allclose(factor.asnumpy(), np.linalg.cholesky(covariances), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(mx.nd.linalg.potri(factor).asnumpy(), np.linalg.inv(covariances), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(mx.nd.linalg.inverse(a).asnumpy(), np.linalg.inv(covariances), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(mx.nd.linalg.det(a).asnumpy(), np.linalg.det(covariances), rtol=1e-11)
    for ours, theirs in zip(mx.nd.linalg.slogdet(a), np.linalg.slogdet(covariances)):
        np.testing.assert_allclose(ours.asnumpy(), theirs, rtol=1e-12)
    vectors, values = mx.nd.linalg.syevd(a)
    np.testing.assert_allclose(values.asnumpy(), np.linalg.eigvalsh(covariances), rtol=1e-11)
    assert (np.abs(vectors.asnumpy()).max(axis=2) == vectors.asnumpy().max(axis=2)).all()


def test_a_gaussian_density_trains_its_covariance(covariances):
    # The gradient of -log det(A)/2 - xᵀA⁻¹x/2 by A, of symmetric A: (A⁻¹xxᵀA⁻¹ - A⁻¹)/2.
    a, x = mx.sym.Variable("a"), mx.sym.Variable("x")
    factor = mx.sym.linalg.potrf(a)
    solved = mx.sym.linalg.trsm(factor, x)
    density = -mx.sym.linalg.sumlogdiag(factor) - 0.5 * mx.sym.sum(solved * solved, axis=(1, 2))
    points = np.random.RandomState(4).normal(size=(4, 5, 1))
    executor = density.bind(
        mx.cpu(), {"a": double(covariances), "x": double(points)}, args_grad={"a": double(covariances)}
    )
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones(4, dtype="float64"))
    inverse = np.linalg.inv(covariances)
    steep = inverse @ points
    expected = (steep @ steep.transpose(0, 2, 1) - inverse) / 2
    np.testing.assert_allclose(executor.grad_dict["a"].asnumpy(), expected, rtol=1e-9, atol=1e-11)


def test_a_matrix_that_cannot_be_factorized_is_an_error_of_mxnet():
    with pytest.raises(mx.MXNetError, match="matrix 0 of A is not positive definite"):
        mx.nd.linalg.potrf(double(-np.eye(3))).wait_to_read()


@pytest.mark.parametrize("function", ["CTCLoss", "ctc_loss", "contrib.CTCLoss", "contrib.ctc_loss"])
def test_ctc_loss_has_its_names(function):
    def find(module):
        return getattr(module.contrib, function[8:]) if "." in function else getattr(module, function)

    losses = find(mx.nd)(mx.nd.zeros((3, 1, 3)), mx.nd.array([[1, 0]]))
    np.testing.assert_allclose(losses.asnumpy(), np.log(27 / 6), rtol=1e-6)
    assert find(mx.sym)(name="ctc", use_data_lengths=True, use_label_lengths=True).list_arguments() == [
        "ctc_data",
        "ctc_label",
        "ctc_data_lengths",
        "ctc_label_lengths",
    ]

"""Checks of random number generators, and random matrices with known properties, for test_utils."""

import math as _math

import numpy as np

from ._symbind import MXNetValueError
from .ndarray import array as _array

# ---- generators -----------------------------------------------------------------------------------------------------


def gen_buckets_probs_with_ppf(ppf, nbuckets):
    """Intervals of equal probability under the distribution with this quantile function, and their probabilities."""
    if nbuckets < 1:
        raise MXNetValueError(f"the number of buckets is at least 1, not {nbuckets}")
    probability = 1.0 / nbuckets
    edges = [ppf(index / nbuckets) for index in range(nbuckets + 1)]
    return list(zip(edges[:-1], edges[1:])), [probability] * nbuckets


def _chi_square_tail(statistic, freedom):
    """The probability that a chi-square variable exceeds `statistic`: the upper regularized incomplete gamma function
    Q(freedom / 2, statistic / 2), by its series below the mean and by its continued fraction above."""
    shape, x = freedom / 2.0, statistic / 2.0
    if x <= 0:
        return 1.0
    scale = _math.exp(shape * _math.log(x) - x - _math.lgamma(shape))
    if x < shape + 1:
        term = total = 1.0 / shape
        denominator = shape
        while abs(term) > abs(total) * 1e-16:
            denominator += 1
            term *= x / denominator
            total += term
        return 1.0 - scale * total
    tiny = 1e-300
    b = x + 1 - shape
    c, d = 1 / tiny, 1 / b
    fraction = d
    for step in range(1, 10000):
        a = -step * (step - shape)
        b += 2
        d = 1 / (a * d + b or tiny)
        c = b + a / c or tiny
        fraction *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return scale * fraction


def _counts(samples, buckets):
    """How many samples are in each bucket: an interval (low, high), or one value."""
    if isinstance(buckets[0], (list, tuple)):
        edges = [low for low, _ in buckets] + [buckets[-1][1]]
        for (_, high), (low, _) in zip(buckets, buckets[1:]):
            if low < high:
                raise MXNetValueError("buckets are intervals in ascending order that do not overlap")
        inside = samples[(samples >= edges[0]) & (samples < edges[-1])]
        indices = np.searchsorted(edges, inside, side="right") - 1
        gap_free = inside < np.array([high for _, high in buckets])[indices]
        return np.bincount(indices[gap_free], minlength=len(buckets))
    return np.array([np.count_nonzero(samples == value) for value in buckets])


def chi_square_check(generator, buckets, probs, nsamples=1000000):
    """The chi-square test of a generator: (p value, observed counts, expected counts).

    generator(n) returns n numbers. A bucket is an interval (low, high) for a continuous distribution, and a value for a
    discrete one; `probs` are their probabilities.
    """
    if not buckets or len(buckets) != len(probs):
        raise MXNetValueError(f"there are {len(buckets)} buckets and {len(probs)} probabilities")
    samples = np.asarray(_as_values(generator(nsamples))).reshape(-1)
    if samples.size != nsamples:
        raise MXNetValueError(f"generator({nsamples}) returned {samples.size} numbers")
    observed = _counts(samples, buckets)
    expected = nsamples * np.asarray(probs, dtype=np.float64)
    statistic = float(np.sum((observed - expected) ** 2 / expected))
    return _chi_square_tail(statistic, len(buckets) - 1), observed, expected


def _as_values(numbers):
    return numbers.asnumpy() if hasattr(numbers, "asnumpy") else numbers


def mean_check(generator, mu, sigma, nsamples=1000000):
    """Is the mean of the numbers within three of its standard deviations of mu?"""
    samples = np.asarray(_as_values(generator(nsamples)), dtype=np.float64)
    return bool(abs(samples.mean() - mu) < 3 * sigma / _math.sqrt(nsamples))


def var_check(generator, sigma, nsamples=1000000):
    """Is the variance of normal numbers within three of its standard deviations of sigma²?"""
    samples = np.asarray(_as_values(generator(nsamples)), dtype=np.float64)
    deviation = _math.sqrt(2.0 * sigma**4 / (nsamples - 1))
    return bool(abs(samples.var(ddof=1) - sigma**2) < 3 * deviation)


def verify_generator(generator, buckets, probs, nsamples=1000000, nrepeat=5, success_rate=0.2, alpha=0.05):
    """Fails where fewer than `success_rate` of `nrepeat` chi-square tests have a p value above alpha. Returns those."""
    results = [chi_square_check(generator, buckets, probs, nsamples) for _ in range(nrepeat)]
    values = [result[0] for result in results]
    passed = sum(value > alpha for value in values)
    if passed < nrepeat * success_rate:
        _, observed, expected = results[-1]
        raise AssertionError(
            f"{passed} of {nrepeat} chi-square tests pass, fewer than {success_rate:.0%}: p values {values}, buckets "
            f"{buckets}, last counts {observed.tolist()}, expected {expected.tolist()}"
        )
    return values


# ---- matrices -------------------------------------------------------------------------------------------------------


def get_identity_mat(size):
    """An identity matrix of float32, as an NDArray."""
    return _array(np.eye(size, dtype=np.float32))


def get_identity_mat_batch(size):
    """Two identity matrices of float32, in one NDArray."""
    return _array(np.stack([np.eye(size, dtype=np.float32)] * 2))


def rand_coord_2d(x_low, x_high, y_low, y_high):
    """A random position (x, y), the highs not among them."""
    return np.random.randint(x_low, x_high), np.random.randint(y_low, y_high)


def new_orthonormal_matrix_2d(n):
    """A random matrix whose rows are orthonormal."""
    q, _ = np.linalg.qr(np.random.normal(size=(n, n)))
    return q


def new_sym_matrix_with_real_eigvals_2d(n):
    """A random symmetric matrix: its eigenvalues are real."""
    half = np.random.normal(scale=4, size=(n, n))
    return (half + half.T) / 2


def new_matrix_with_real_eigvals_2d(n):
    """A random matrix with real eigenvalues between -1 and 1, and well conditioned eigenvectors."""
    vectors = new_orthonormal_matrix_2d(n) + 0.1 * np.random.uniform(-1, 1, size=(n, n)) / max(n, 1)
    values = np.sort(np.random.uniform(-1, 1, size=n))
    return vectors @ np.diag(values) @ np.linalg.inv(vectors)


def _many(make, shape):
    matrices = [make(shape[-1]) for _ in range(int(np.prod(shape[:-2], dtype=np.int64)))]
    return np.array(matrices).reshape(shape)


def new_sym_matrix_with_real_eigvals_nd(shape):
    """Random symmetric matrices in the last two axes."""
    return _many(new_sym_matrix_with_real_eigvals_2d, shape)


def new_matrix_with_real_eigvals_nd(shape):
    """Random matrices with real eigenvalues in the last two axes."""
    return _many(new_matrix_with_real_eigvals_2d, shape)

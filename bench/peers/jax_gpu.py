"""JAX (XLA) on a GPU: ResNet-50 v1.5, training and predictions, each compiled as a whole; one JSON row per case.
Training is timed in groups of ten steps, a prediction until its result is on the host."""

import functools
import os

import timing

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # so that the peak is that of the step
try:
    import jax
except ImportError:
    timing.skip("jax")
import jax.numpy as jnp
import numpy as np
from jax import lax

BATCHES = {"resnet50v1-train": 32, "resnet50v1-infer": 32, "resnet50v1-infer-b1": 1}
UNITS = (3, 4, 6, 3)
CLASSES = 1000


class Parameters:
    """Weights and the running statistics of norms, by the name of their layer."""

    def __init__(self):
        self.weights, self.statistics = {}, {}
        self.key = jax.random.PRNGKey(0)

    def conv(self, name, kernel, channels, filters):
        self.key, key = jax.random.split(self.key)
        deviation = (2 / (kernel * kernel * filters)) ** 0.5
        self.weights[name] = jax.random.normal(key, (kernel, kernel, channels, filters)) * deviation
        self.weights[name + "_scale"], self.weights[name + "_shift"] = jnp.ones(filters), jnp.zeros(filters)
        self.statistics[name] = jnp.zeros(filters), jnp.ones(filters)


def resnet50_parameters():
    made = Parameters()
    made.conv("conv0", 7, 3, 64)
    channels = 64
    for stage, units in enumerate(UNITS):
        filters = 256 << stage
        for number in range(units):
            name = f"stage{stage}_unit{number}_"
            made.conv(name + "conv1", 1, channels, filters // 4)
            made.conv(name + "conv2", 3, filters // 4, filters // 4)
            made.conv(name + "conv3", 1, filters // 4, filters)
            if number == 0:
                made.conv(name + "shortcut", 1, channels, filters)
            channels = filters
    made.weights["fc"] = jax.random.normal(made.key, (channels, CLASSES)) * 0.01
    made.weights["fc_bias"] = jnp.zeros(CLASSES)
    return made.weights, made.statistics


def resnet50(weights, statistics, data, dtype, is_train):
    """The outputs before softmax in float32, and the statistics after this batch. Images are NHWC."""
    updated = {}

    def conv_norm(x, name, stride=1):
        weight = weights[name].astype(dtype)
        pad = weight.shape[0] // 2
        dimensions = ("NHWC", "HWIO", "NHWC")
        y = lax.conv_general_dilated(x, weight, (stride, stride), [(pad, pad)] * 2, dimension_numbers=dimensions)
        wide = y.astype(jnp.float32)
        mean, variance = statistics[name]
        if is_train:
            running = mean, variance
            mean = wide.mean((0, 1, 2))
            variance = (wide * wide).mean((0, 1, 2)) - mean * mean
            updated[name] = tuple(0.9 * old + 0.1 * new for old, new in zip(running, (mean, variance)))
        scale = weights[name + "_scale"] * lax.rsqrt(variance + 2e-5)
        return (wide * scale + (weights[name + "_shift"] - mean * scale)).astype(dtype)

    x = jax.nn.relu(conv_norm(data.astype(dtype), "conv0", 2))
    lowest = np.array(-np.inf, dtype)
    x = lax.reduce_window(x, lowest, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0)))
    for stage, units in enumerate(UNITS):
        for number in range(units):
            name, stride = f"stage{stage}_unit{number}_", 2 if stage > 0 and number == 0 else 1
            body = jax.nn.relu(conv_norm(x, name + "conv1"))
            body = jax.nn.relu(conv_norm(body, name + "conv2", stride))
            body = conv_norm(body, name + "conv3")
            shortcut = conv_norm(x, name + "shortcut", stride) if number == 0 else x
            x = jax.nn.relu(body + shortcut)
    features = x.astype(jnp.float32).mean((1, 2)).astype(dtype)
    return (features @ weights["fc"].astype(dtype) + weights["fc_bias"].astype(dtype)).astype(jnp.float32), updated


def training_step(batch, dtype):
    """A function that queues one whole step, and one that waits. In float16 the loss is scaled, and a step whose
    gradients overflow is left out."""
    weights, statistics = resnet50_parameters()
    momenta = jax.tree.map(jnp.zeros_like, weights)
    data = jax.random.normal(jax.random.PRNGKey(1), (batch, 224, 224, 3))
    label = jnp.arange(batch) % CLASSES
    is_scaled = dtype == jnp.float16

    def scaled_loss(weights, statistics, scale, data, label):
        logits, updated = resnet50(weights, statistics, data, dtype, True)
        return -jax.nn.log_softmax(logits)[jnp.arange(batch), label].mean() * scale, updated

    @functools.partial(jax.jit, donate_argnums=0)
    def step(state, data, label):
        weights, momenta, statistics, scale = state
        gradients, new_statistics = jax.grad(scaled_loss, has_aux=True)(weights, statistics, scale, data, label)
        gradients = jax.tree.map(lambda gradient: gradient / scale, gradients)
        new_momenta = jax.tree.map(lambda m, g, w: 0.9 * m + g + 1e-4 * w, momenta, gradients, weights)
        new_weights = jax.tree.map(lambda w, m: w - 0.01 * m, weights, new_momenta)
        if not is_scaled:
            return new_weights, new_momenta, new_statistics, scale
        finite = functools.reduce(jnp.logical_and, [jnp.isfinite(g).all() for g in jax.tree.leaves(gradients)])
        keep = functools.partial(jax.tree.map, lambda new, old: jnp.where(finite, new, old))
        return keep(new_weights, weights), keep(new_momenta, momenta), new_statistics, scale * (finite * 0.5 + 0.5)

    state = weights, momenta, statistics, jnp.float32(65536 if is_scaled else 1)

    def queue():
        nonlocal state
        state = step(state, data, label)

    return queue, lambda: jax.block_until_ready(state)


def prediction(batch, dtype):
    """A function that computes the outputs of a batch. Weights and data are of the given type."""
    weights, statistics = resnet50_parameters()
    weights = {name: weight.astype(dtype) if weight.ndim > 1 else weight for name, weight in weights.items()}
    data = jax.random.normal(jax.random.PRNGKey(1), (batch, 224, 224, 3)).astype(dtype)
    predict = jax.jit(lambda weights, statistics, data: resnet50(weights, statistics, data, dtype, False)[0])
    return lambda: np.asarray(predict(weights, statistics, data))


def main():
    arguments = timing.parse_arguments(__doc__, BATCHES, any_batch=True, on_device=True)
    device = jax.devices(arguments.device)[0]
    on_gpu = arguments.device == "gpu"
    warm_up = 10 if on_gpu else 1
    dtype = jnp.dtype(arguments.dtype)
    for case in arguments.case:
        batch = arguments.batch or BATCHES[case]
        with jax.default_device(device):
            if "-infer" in case:
                ms = timing.median_ms(prediction(batch, dtype), arguments.seconds, warm_up)
            else:
                step, wait = training_step(batch, dtype)
                ms = timing.median_ms(step, arguments.seconds, warm_up, group=10 if on_gpu else 1, wait=wait)
        peak = (device.memory_stats() or {}).get("peak_bytes_in_use")
        timing.report(case, batch, ms, dtype=arguments.dtype, device_peak_mb=peak and peak >> 20)


if __name__ == "__main__":
    main()

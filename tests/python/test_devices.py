"""What a script does on a device, from Python: the same test on a CPU and, where there is one, on a GPU, compared with
the CPU."""

import os

import numpy as np
import pytest

import symbind as mx

GPUS = [mx.gpu(mx.num_gpus() - 1)] if mx.num_gpus() > 0 else []  # the last one: nothing may need the first
COUNT, BATCH = 32, 8

# Products of float32 on a GPU are rounded to TF32, unless SYMBIND_TF32=0.
TOLERANCE = {"rtol": 1e-3, "atol": 1e-4} if os.environ.get("SYMBIND_TF32") == "0" else {"rtol": 3e-2, "atol": 3e-3}


@pytest.fixture(params=[mx.cpu(1), *GPUS], ids=str)
def device(request):
    return request.param


def network():
    net = mx.sym.Variable("data")
    net = mx.sym.Convolution(net, kernel=(3, 3), pad=(1, 1), num_filter=8, name="conv")
    net = mx.sym.BatchNorm(net, fix_gamma=False, name="norm")
    net = mx.sym.Pooling(mx.sym.Activation(net, act_type="relu"), kernel=(2, 2), stride=(2, 2), pool_type="max")
    net = mx.sym.FullyConnected(net, num_hidden=3, name="fc")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def images():
    """Images whose brightest third tells the class."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, COUNT)
    data = rng.standard_normal((COUNT, 2, 6, 6)).astype("float32")
    for image, label in zip(data, labels):
        image[:, 2 * label : 2 * label + 2] += 3
    return data, labels.astype("float32")


def batches(data=None, **options):
    own, labels = images()
    return mx.io.NDArrayIter(own if data is None else data, labels, BATCH, **options)


def trained(context, epochs=4, **options):
    mx.random.seed(3)
    module = mx.mod.Module(network(), context=context)
    options = {"optimizer": "sgd", "optimizer_params": {"learning_rate": 0.1, "momentum": 0.9}, **options}
    module.fit(batches(), num_epoch=epochs, initializer=mx.init.Xavier(), **options)
    return module


def parameters(module):
    args, states = module.get_params()
    return {name: array.asnumpy() for name, array in {**args, **states}.items()}


def check_equal(ours, reference):
    assert ours.keys() == reference.keys()
    for name, values in reference.items():
        np.testing.assert_allclose(ours[name], values, err_msg=name, **TOLERANCE)


def accuracy(module):
    return dict(module.score(batches(), "acc"))["accuracy"]


def test_arrays_are_indexed_assigned_and_copied(device):
    values = np.arange(24, dtype="float32").reshape(2, 3, 4)
    array = mx.nd.array(values, ctx=device)
    assert array.context == device
    np.testing.assert_array_equal(array[1, :, 1:3].asnumpy(), values[1, :, 1:3])
    array[0, 1] = 7
    array[:, :, 0] = mx.nd.array([[1, 2, 3], [4, 5, 6]], ctx=device)
    values[0, 1], values[:, :, 0] = 7, [[1, 2, 3], [4, 5, 6]]
    np.testing.assert_array_equal(array.asnumpy(), values)
    array += 1
    assert array.sum().asscalar() == values.sum() + values.size
    np.testing.assert_array_equal(array.as_in_context(mx.cpu()).asnumpy(), values + 1)
    assert (mx.nd.zeros((2, 3), ctx=device) + 1).context == device
    with device:
        assert mx.nd.ones((2,)).context == device


def test_random_numbers_are_those_of_the_cpu_with_the_same_number(device):
    drawn = []
    for context in (device, mx.cpu(device.device_id)):
        mx.random.seed(5)
        drawn.append(mx.nd.random.uniform(shape=(100,), ctx=context).asnumpy())
    np.testing.assert_allclose(*drawn, rtol=1e-6)


def test_fit_trains_as_on_a_cpu(device):
    few = [parameters(trained(context, epochs=1)) for context in (device, mx.cpu(1))]
    check_equal(*few)
    assert accuracy(trained(device)) == 1


@pytest.mark.parametrize("optimizer", ["sgd", "nag", "adam", "rmsprop", "adagrad", "ftrl"])
def test_optimizers_step_as_on_a_cpu(device, optimizer):
    def step(context):
        return parameters(trained(context, 1, optimizer=optimizer, optimizer_params={"learning_rate": 1e-3}))

    check_equal(step(device), step(mx.cpu(1)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_networks_of_float32_train_in_16_bits(device, dtype, tmp_path):
    module = trained(device, epochs=6, compute_dtype=dtype)
    assert accuracy(module) == 1
    assert all(array.dtype == np.float32 for array in parameters(module).values())
    module.save_checkpoint(str(tmp_path / "net"), 6, save_optimizer_states=True)
    again = mx.mod.Module.load(str(tmp_path / "net"), 6, context=mx.cpu())
    again.bind(batches().provide_data, for_training=False)
    np.testing.assert_allclose(again.predict(batches()).asnumpy(), module.predict(batches()).asnumpy(), atol=0.03)


def test_checkpoints_are_exchanged_with_a_cpu(device, tmp_path):
    for source, target in ((device, mx.cpu()), (mx.cpu(), device)):
        module = trained(source, epochs=1)
        prefix = str(tmp_path / str(source))
        module.save_checkpoint(prefix, 1, save_optimizer_states=True)
        again = mx.mod.Module.load(prefix, 1, load_optimizer_states=True, context=target)
        again.fit(batches(), begin_epoch=1, num_epoch=2, optimizer_params={"learning_rate": 0.1, "momentum": 0.9})
        module.fit(batches(), begin_epoch=1, num_epoch=2)
        check_equal(parameters(again), parameters(module))


def test_metrics_and_callbacks_in_python_see_every_batch(device):
    class Mean(mx.metric.EvalMetric):
        def __init__(self):
            super().__init__("mean")

        def update(self, labels, preds):
            self.sum_metric += preds[0].asnumpy().max(axis=1).sum()
            self.num_inst += len(labels[0])

    seen = []
    metrics = mx.metric.CompositeEvalMetric([mx.metric.Accuracy(), Mean(), mx.metric.np(lambda label, pred: 1)])
    trained(
        device,
        epochs=1,
        eval_metric=metrics,
        batch_end_callback=lambda p: seen.append((p.nbatch, dict(p.eval_metric.get_name_value()))),
    )
    assert [number for number, _ in seen] == list(range(COUNT // BATCH))
    assert all(1 / 3 < values["mean"] <= 1 for _, values in seen)


def test_optimizers_in_python_update(device):
    class Plain(mx.optimizer.Optimizer):
        def create_state(self, index, weight):
            return mx.nd.zeros(weight.shape, weight.context)

        def update(self, index, weight, grad, state):
            assert weight.context == grad.context == state.context == device
            state[:] = 0.9 * state - self._get_lr(index) * self.rescale_grad * grad
            weight[:] += state

    own = trained(device, 1, optimizer=Plain(learning_rate=0.1, rescale_grad=1 / BATCH))
    built_in = trained(device, 1, optimizer_params={"learning_rate": 0.1, "momentum": 0.9})
    check_equal(parameters(own), parameters(built_in))


class Twice(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], 2 * in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], 2 * out_grad[0])


@mx.operator.register("test_devices_twice")
class TwiceProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Twice()


def test_operators_in_python_are_part_of_a_network(device):
    data = mx.sym.Variable("data")
    net = mx.sym.Custom(
        mx.sym.FullyConnected(data, num_hidden=3, no_bias=True, name="fc"), op_type="test_devices_twice"
    )
    executor = mx.sym.MakeLoss(net).simple_bind(device, data=(4, 5))
    x, weight = np.random.default_rng(2).standard_normal((2, 4, 5)).astype("float32")
    executor.copy_params_from({"fc_weight": mx.nd.array(weight[:3])})
    np.testing.assert_allclose(executor.forward(True, data=x)[0].asnumpy(), 2 * x @ weight[:3].T, **TOLERANCE)
    executor.backward()
    np.testing.assert_allclose(executor.grad_dict["fc_weight"].asnumpy(), np.tile(2 * x.sum(0), (3, 1)), **TOLERANCE)


def test_predictors_predict_as_modules_do(device):
    module = trained(device, epochs=1)
    expected = module.predict(batches()).asnumpy()
    predict = mx.Predictor(module.symbol, *module.get_params(), ctx=device)
    data = images()[0]
    np.testing.assert_allclose(predict(data).asnumpy(), expected, **TOLERANCE)
    np.testing.assert_allclose(predict(data[:5]).asnumpy(), expected[:5], **TOLERANCE)


def test_images_of_bytes_are_normalized_there(device):
    pixels = np.clip(images()[0][:, :1] * 30 + 100, 0, 255).astype("uint8")

    def predicted(context, data):
        mx.random.seed(3)
        module = mx.mod.Module(network(), context=context)
        module.bind(data.provide_data, data.provide_label)
        module.init_params(mx.init.Xavier())
        return module.predict(data).asnumpy()

    class Pixels(mx.io.NDArrayIter):
        @property
        def provide_data(self):
            return [mx.io.DataDesc("data", (BATCH, 1, 6, 6), normalization=([100], [30], 1))]

    there = predicted(device, Pixels(mx.nd.array(pixels, dtype="uint8"), images()[1], BATCH))
    here = predicted(mx.cpu(), batches((pixels.astype("float32") - 100) / 30))
    np.testing.assert_allclose(there, here, **TOLERANCE)


def test_buckets_share_their_parameters(device):
    def network_of(length):
        steps = mx.sym.Embedding(mx.sym.Variable("data"), input_dim=9, output_dim=6, name="embed")
        cell = mx.rnn.SequentialRNNCell()
        cell.add(mx.rnn.LSTMCell(5, prefix="lstm_"))
        outputs, _ = cell.unroll(length, steps, layout="NTC", merge_outputs=True)
        scores = mx.sym.FullyConnected(mx.sym.Reshape(outputs, shape=(-1, 5)), num_hidden=9, name="fc")
        labels = mx.sym.Reshape(mx.sym.Variable("softmax_label"), shape=(-1,))
        return mx.sym.SoftmaxOutput(scores, labels, name="softmax"), ("data",), ("softmax_label",)

    rng = np.random.default_rng(4)
    sentences = [[int(word) for word in rng.integers(1, 9, length)] for length in (3, 5) * 8]

    def perplexity(context):
        mx.random.seed(6)
        data = mx.rnn.BucketSentenceIter(sentences, 4, buckets=[3, 5], invalid_label=0)
        module = mx.mod.BucketingModule(network_of, default_bucket_key=data.default_bucket_key, context=context)
        metric = mx.metric.Perplexity(0)
        module.fit(data, num_epoch=2, eval_metric=metric, initializer=mx.init.Xavier(), optimizer="adam")
        return metric.get()[1]

    assert perplexity(device) == pytest.approx(perplexity(mx.cpu(1)), rel=1e-2)


def test_the_same_device_listed_twice_trains_as_once(device):
    once, twice = (
        parameters(trained(context, 1, optimizer_params={"learning_rate": 0.01})) for context in (device, [device] * 2)
    )
    # Each half has its own statistics of BatchNorm; the parameters of the last layer differ by their effect alone.
    assert once.keys() == twice.keys()
    np.testing.assert_allclose(twice["fc_bias"], once["fc_bias"], atol=0.01)


def test_two_devices_of_a_kind_train_as_one_listed_twice(device):
    other = mx.Context(device.device_type, 0)
    options = {"epochs": 1, "optimizer_params": {"learning_rate": 0.01}}
    twice, both = (parameters(trained(contexts, **options)) for contexts in ([device] * 2, [other, device]))
    assert both.keys() == twice.keys()
    for name, values in twice.items():
        np.testing.assert_array_equal(both[name], values, err_msg=name)


def test_parts_of_a_network_are_placed_on_several_devices(device):
    with mx.AttrScope(ctx_group="first"):
        net = mx.sym.Activation(
            mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name="fc1"), act_type="tanh"
        )
    with mx.AttrScope(ctx_group="second"):
        net = mx.sym.LinearRegressionOutput(mx.sym.FullyConnected(net, num_hidden=2, name="fc2"), name="out")
    rng = np.random.default_rng(7)
    results = []
    devices = [(device, mx.cpu(1)), (mx.cpu(1), device), (mx.Context(device.device_type, 0), device)]
    for groups in (*({"first": first, "second": second} for first, second in devices), None):
        executor = net.simple_bind(mx.cpu(1), group2ctx=groups, data=(3, 5), out_label=(3, 2))
        rng = np.random.default_rng(7)
        for array in executor.arg_dict.values():
            array[:] = rng.standard_normal(array.shape)
        executor.forward(is_train=True)
        executor.backward()
        results.append({name: array.asnumpy() for name, array in executor.grad_dict.items()})
    for result in results[:-1]:
        check_equal(result, results[-1])

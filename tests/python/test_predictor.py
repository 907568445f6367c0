"""Predictor: predictions from any thread, and the page that describes it."""

import collections
import concurrent.futures
import os
import re
import signal
import threading
import types

import numpy as np
import pytest

import symbind as mx

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))


def network():
    data = mx.sym.Variable("data")
    net = mx.sym.FullyConnected(data, num_hidden=8, name="fc1")
    net = mx.sym.FullyConnected(mx.sym.Activation(net, act_type="tanh"), num_hidden=3, name="fc2")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def parameters(net, **shapes):
    rng = np.random.default_rng(1)
    arg_shapes, _, _ = net.infer_shape(**shapes)
    named = zip(net.list_arguments(), arg_shapes)
    return {n: mx.nd.array(rng.standard_normal(s)) for n, s in named if n not in shapes and "label" not in n}


@pytest.fixture
def model():
    net = network()
    return net, parameters(net, data=(2, 5))


def expected(net, params, data):
    executor = net.simple_bind(mx.cpu(), grad_req="null", data=data.shape)
    executor.copy_params_from(params)
    return executor.forward(data=mx.nd.array(data))[0].asnumpy()


def images(batch, seed=0):
    return np.random.default_rng(seed).standard_normal((batch, 5)).astype("float32")


def test_it_gives_what_an_executor_gives_for_every_batch_size(model):
    predict = mx.Predictor(*model)
    for batch in (1, 4, 2, 1):
        data = images(batch, batch)
        np.testing.assert_allclose(predict(data).asnumpy(), expected(*model, data), rtol=1e-5)
        np.testing.assert_allclose(predict(data=mx.nd.array(data)).asnumpy(), expected(*model, data), rtol=1e-5)
    assert predict.input_names == ["data"]
    assert predict.output_names == ["softmax_output"]
    assert predict.executors == 3


def test_it_serves_threads(model):
    predict = mx.Predictor(*model, max_concurrent=3)
    requests = [images(1 + i % 4, i) for i in range(60)]
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda data: predict(data).asnumpy(), requests))
    for data, answer in zip(requests, answers):
        np.testing.assert_allclose(answer, expected(*model, data), rtol=1e-5)


def test_several_inputs_and_outputs():
    left, right = mx.sym.Variable("left"), mx.sym.Variable("right")
    predict = mx.Predictor(mx.sym.Group([left + right, left * right]), {})
    total, product = predict({"left": [1, 2], "right": [10, 20]})
    assert total.asnumpy().tolist() == [11, 22]
    total, product = predict(left=[1, 2], right=[10, 20])
    assert total.asnumpy().tolist() == [11, 22]
    assert product.asnumpy().tolist() == [10, 40]
    for mapping in (types.MappingProxyType, collections.OrderedDict, collections.UserDict):
        total, product = predict(mapping({"left": [1, 2], "right": [10, 20]}))
        assert total.asnumpy().tolist() == [11, 22]
    with pytest.raises(mx.MXNetError, match="'right' is missing"):
        predict(left=[1, 2])
    with pytest.raises(TypeError, match="inputs are named by strings, not 1"):
        predict({"left": [1, 2], 1: [1, 2]})
    with pytest.raises(TypeError, match="the input 'right' is None"):
        predict(left=[1, 2], right=None)
    with pytest.raises(mx.MXNetError, match="by name"):
        predict([1, 2])
    with pytest.raises(TypeError, match="not both"):
        predict([1, 2], right=[1, 2])


def test_the_server_in_the_docs_serves(model, tmp_path):
    net, params = model
    prefix = str(tmp_path / "net")
    mx.model.save_checkpoint(prefix, 6, net, params, {})
    page = open(os.path.join(ROOT, "docs", "serving.md"), encoding="utf-8").read()
    (program,) = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "def serve" in block]
    scope = {}
    exec(program, scope)
    requests = [images(1 + i % 3, i) for i in range(20)]
    for data, answer in zip(requests, scope["serve"](prefix, 6, requests)):
        np.testing.assert_allclose(answer, expected(net, params, data), rtol=1e-5)


def test_an_executor_that_is_running_refuses_other_threads(model):
    net, _ = model
    executor = net.simple_bind(mx.cpu(), data=(2, 5))
    shared = executor.reshape(partial_shaping=True, data=(1, 5))
    own = executor.reshape(partial_shaping=True, own_memory=True, data=(1, 5))
    inside, leave = threading.Event(), threading.Event()

    def stop(name, array):
        inside.set()
        leave.wait()

    executor.set_monitor_callback(stop)
    thread = threading.Thread(target=executor.forward)
    thread.start()
    inside.wait()
    try:
        with pytest.raises(mx.MXNetError, match="this executor is in use by another thread.*Predictor"):
            executor.forward()
        with pytest.raises(mx.MXNetError, match="working memory.*Predictor"):
            shared.forward()
        own.forward()
    finally:
        leave.set()
        thread.join()
    executor.set_monitor_callback(None)
    executor.forward()


class WaitsInForward(mx.operator.CustomOp):
    entered, may_leave = threading.Event(), threading.Event()

    def forward(self, is_train, req, in_data, out_data, aux):
        self.entered.set()
        self.may_leave.wait()
        self.assign(out_data[0], req[0], in_data[0] * 2)


@mx.operator.register("waits_in_forward")
class WaitsInForwardProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return WaitsInForward()


def test_a_forked_child_predicts_while_a_thread_of_its_parent_does():
    net = mx.sym.Custom(mx.sym.Variable("data"), op_type="waits_in_forward")
    predict = mx.Predictor(net, {}, {}, max_concurrent=1)
    thread = threading.Thread(target=predict, args=(np.ones((2, 3), np.float32),))
    thread.start()
    WaitsInForward.entered.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        WaitsInForward.may_leave.set()
        right = (predict(np.ones((2, 3), np.float32)).asnumpy() == 2).all()
        os._exit(0 if right else 1)
    _, status = os.waitpid(child, 0)
    WaitsInForward.may_leave.set()
    thread.join()
    assert status == 0
    assert (predict(np.ones((2, 3), np.float32)).asnumpy() == 2).all()

"""The monitor, on executors."""

import logging

import numpy as np
import pytest

import symbind as mx


def executor():
    data = mx.sym.Variable("data")
    net = mx.sym.FullyConnected(data, num_hidden=2, no_bias=True, name="fc")
    net = mx.sym.Activation(net, act_type="relu", name="relu")
    bound = net.simple_bind(mx.cpu(), data=(2, 3))
    bound.arg_dict["data"][:] = np.arange(6).reshape(2, 3)
    bound.arg_dict["fc_weight"][:] = [[1, 0, 0], [0, 0, -1]]
    return bound


def run(monitor, bound):
    monitor.tic()
    bound.forward(is_train=True)
    return monitor.toc()


def test_what_it_sees():
    bound = executor()
    monitor = mx.mon.Monitor(1)
    assert mx.monitor.Monitor is mx.mon.Monitor
    assert (monitor.interval, monitor.step, monitor.activated) == (1, 0, False)
    monitor.install(bound)
    seen = run(monitor, bound)
    assert monitor.step == 1
    assert [name for _, name, _ in seen] == ["fc_output", "relu_output", "data", "fc_weight"]
    assert all(step == 1 and text.endswith("\t") for step, _, text in seen)
    values = {name: float(text) for _, name, text in seen}
    outputs = np.array([[0.0, -2.0], [3.0, -5.0]])
    assert values["fc_output"] == pytest.approx(np.sqrt((outputs**2).mean()), rel=1e-5)
    assert values["relu_output"] == pytest.approx(np.sqrt((np.maximum(outputs, 0) ** 2).mean()), rel=1e-5)


def test_every_so_often():
    bound = executor()
    monitor = mx.mon.Monitor(interval=2, pattern=".*weight", sort=True)
    monitor.install(bound)
    assert [len(run(monitor, bound)) for _ in range(4)] == [1, 0, 1, 0]
    assert run(monitor, bound)[0][:2] == (5, "fc_weight")


def test_statistics_in_python():
    bound = executor()
    for statistic, text in [
        (lambda array: mx.nd.max(array), "5.0\t"),
        (lambda array: array.asnumpy().max(), "5.0\t"),
        (lambda array: [array.max(), array.min()], "5.0\t0.0\t"),
        (lambda array: 7, "7.0\t"),
    ]:
        monitor = mx.mon.Monitor(1, stat_func=statistic, pattern="data")
        monitor.install(bound)
        assert run(monitor, bound) == [(1, "data", text)]
    everything = mx.mon.Monitor(1, lambda array: array.sum(), monitor_all=True, pattern="fc", sort=True)
    everything.install(bound)
    names = [name for _, name, _ in run(everything, bound)]
    assert names == sorted(names) and len(names) > 2


def test_statistics_may_fail():
    bound = executor()

    def broken(array):
        raise KeyError("no statistic")

    monitor = mx.mon.Monitor(1, broken)
    monitor.install(bound)
    monitor.tic()
    with pytest.raises(KeyError, match="no statistic"):
        bound.forward(is_train=True)
    monitor = mx.mon.Monitor(1, lambda array: "text")
    monitor.install(bound)
    monitor.tic()
    with pytest.raises(TypeError, match="stat_func returns an NDArray"):
        bound.forward(is_train=True)
    with pytest.raises(TypeError, match="must be callable"):
        mx.mon.Monitor(1, stat_func=3)
    with pytest.raises(mx.MXNetError, match="regular expression"):
        mx.mon.Monitor(1, pattern="(")
    with pytest.raises(mx.MXNetError, match="interval must be at least 1"):
        mx.mon.Monitor(0)


def test_it_prints_through_logging(caplog):
    caplog.set_level(logging.INFO)
    bound = executor()
    monitor = mx.mon.Monitor(1, lambda array: array.sum(), pattern="data")
    monitor.install(bound)
    monitor.tic()
    bound.forward()
    monitor.toc_print()
    assert [record.getMessage() for record in caplog.records] == [f"Batch: {1:7d} {'data':30s} 15.0\t"]
    del monitor
    bound.forward()  # goes on without it

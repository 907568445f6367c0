"""The monitor, on executors."""

import gc
import logging
import weakref

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


def softmax_net():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def batches():
    return mx.io.NDArrayIter(np.ones((8, 3)), np.zeros(8), 4)


class Recording(mx.mon.Monitor):
    """Overrides every method that fit calls."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.calls = []

    def install(self, exe):
        self.calls.append("install")
        super().install(exe)

    def tic(self):
        self.calls.append("tic")
        super().tic()

    def toc(self):
        seen = super().toc()
        self.calls.append([name for _, name, _ in seen])
        return [(step, name, "seen") for step, name, _ in seen]


def test_methods_of_a_subclass_are_called_by_fit(caplog):
    monitor = Recording(1, pattern="fc_output|fc_weight")
    with caplog.at_level(logging.INFO):
        mx.mod.Module(softmax_net()).fit(batches(), num_epoch=1, monitor=monitor)
    assert monitor.calls == ["install", *(["tic", ["fc_output", "fc_weight"]] * 2)]
    lines = [record.getMessage() for record in caplog.records if "seen" in record.getMessage()]
    assert lines == [f"Batch: {step:7d} {name:30s} seen" for step in (1, 2) for name in ("fc_output", "fc_weight")]


def test_anything_with_the_methods_of_a_monitor_will_do():
    class Watcher:
        def __init__(self):
            self.exes, self.names, self.calls = [], [], []

        def install(self, exe):
            exe.set_monitor_callback(lambda name, array: self.names.append((name, array.shape)))
            self.exes.append(exe)

        def tic(self):
            self.calls.append("tic")

        def toc_print(self):
            self.calls.append("toc_print")

    watcher = Watcher()
    module = mx.mod.Module(softmax_net(), context=[mx.cpu(0), mx.cpu(1)])
    module.fit(batches(), num_epoch=1, monitor=watcher)
    assert watcher.calls == ["tic", "toc_print"] * 2
    assert len(watcher.exes) == 2 and watcher.exes[0].outputs[0].shape == (2, 2)
    assert set(watcher.names) >= {("fc_output", (2, 2)), ("softmax_output", (2, 2))}

    watcher = Watcher()
    group = mx.mod.Module(softmax_net())
    group.bind([("data", (4, 3))], [("softmax_label", (4,))])
    group.init_params()
    group.install_monitor(watcher)
    del watcher.exes[:]
    gc.collect()
    group.forward(mx.io.DataBatch([mx.nd.ones((4, 3))], [mx.nd.zeros(4)]))
    assert ("fc_output", (4, 2)) in watcher.names
    group.reshape([("data", (2, 3))], [("softmax_label", (2,))])  # a new executor is watched, too
    group.forward(mx.io.DataBatch([mx.nd.ones((2, 3))], [mx.nd.zeros(2)]))
    assert ("fc_output", (2, 2)) in watcher.names and len(watcher.exes) == 1
    for wrong in (3, None, object()):
        with pytest.raises(TypeError, match="install"):
            group.install_monitor(wrong)


class Gradients(mx.mon.Monitor):
    """Has a toc() of its own, as scripts do that look at gradients."""

    def toc(self):
        if not self.activated:
            return []
        self.queue.extend((self.step, name, str(len(exe.arg_arrays))) for exe in self.exes for name in exe.arg_dict)
        self.activated = False
        seen, self.queue = self.queue, []
        return seen


def test_a_subclass_may_keep_its_own_records():
    bound = executor()
    monitor = Gradients(1)
    monitor.install(bound)
    assert run(monitor, bound) == [(1, "data", "2"), (1, "fc_weight", "2")] and not monitor.activated
    monitor.interval, monitor.step = 3, 5
    assert [len(run(monitor, bound)) for _ in range(3)] == [0, 2, 0] and monitor.step == 8
    with pytest.raises(mx.MXNetError, match="interval must be at least 1"):
        monitor.interval = 0


def test_a_monitor_of_a_module_dies_with_it():
    monitor = Recording(1)
    module = mx.mod.Module(softmax_net())
    module.bind([("data", (4, 3))], [("softmax_label", (4,))])
    module.install_monitor(monitor)
    monitor.module = module
    alive = weakref.ref(monitor)
    del monitor, module
    gc.collect()
    assert alive() is None


def test_the_executors_it_is_installed_in():
    bound = executor()
    monitor = mx.mon.Monitor(1, pattern="fc_.*")
    assert monitor.exes == [] and monitor.re_prog.match("fc_weight")
    monitor.install(bound)
    assert [exe is bound for exe in monitor.exes] == [True]
    del bound
    assert monitor.exes == []

"""The profiler: operators of networks and on arrays, memory, user-defined tasks; tables, JSON and traces."""

import json

import numpy as np
import pytest

import symbind as mx


class Doubled(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * 2)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * 2)


@mx.operator.register("doubled_for_test_profiler")
class DoubledProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Doubled()


@pytest.fixture
def profiler(tmp_path):
    mx.profiler.set_state("stop")
    mx.profiler.set_config(**mx.profiler._SETTINGS)
    mx.profiler.set_config(filename=str(tmp_path / "trace.json"))
    mx.profiler.dumps(reset=True)
    yield mx.profiler
    mx.profiler.set_config(filename=str(tmp_path / "trace.json"))
    mx.profiler.dump()
    mx.profiler.dumps(reset=True)


def bound():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name="fc")
    net = mx.sym.Custom(net, op_type="doubled_for_test_profiler", name="custom")
    executor = mx.sym.SoftmaxOutput(net, name="softmax").simple_bind(mx.cpu(), data=(2, 3))
    executor.arg_dict["fc_weight"][:] = 0.5
    executor.arg_dict["data"][:] = np.arange(6).reshape(2, 3)
    return executor


def times(profiler):
    return json.loads(profiler.dumps(format="json"))["Time"]


def test_operators_of_networks_are_timed(profiler, tmp_path):
    executor = bound()
    expected = executor.forward(is_train=True)[0].asnumpy()
    executor.backward()
    gradient = executor.grad_dict["fc_weight"].asnumpy()
    profiler.set_config(profile_symbolic=True)
    profiler.set_state("run")
    for _ in range(3):
        executor.forward(is_train=True)
        executor.backward()
    profiler.set_state("stop")
    np.testing.assert_array_equal(executor.outputs[0].asnumpy(), expected)
    np.testing.assert_array_equal(executor.grad_dict["fc_weight"].asnumpy(), gradient)
    found = times(profiler)
    product = found["operator"]["FullyConnected"]
    assert product["Count"] == 3 and 0 < product["Min"] <= product["Avg"] <= product["Max"] <= product["Total"]
    own = found["Custom Operator"]
    assert own["doubled_for_test_profiler"]["Count"] == 3 and own["_backward_doubled_for_test_profiler"]["Count"] == 3
    profiler.dump()
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    named = [event for event in events if event["name"] == "FullyConnected"]
    assert len(named) == 3 and all(event["ph"] == "X" and event["dur"] > 0 for event in named)
    assert named[0]["args"]["node"] == "fc" and named[0]["pid"] == "cpu(0)"
    executor.forward(is_train=True)
    assert times(profiler)["operator"]["FullyConnected"]["Count"] == 3


def test_operators_on_arrays_are_timed_where_asked_for(profiler):
    a = mx.nd.ones((2, 3))
    profiler.set_config(profile_imperative=True)
    profiler.set_state("run")
    mx.nd.dot(a, a.T)
    bound().forward()
    profiler.pause()
    mx.nd.exp(a)
    profiler.resume()
    mx.nd.log(a)
    profiler.set_state("stop")
    found = times(profiler)["operator"]
    assert {"dot", "transpose", "log"} <= set(found) and "exp" not in found and "FullyConnected" not in found


def test_memory_is_sampled(profiler):
    profiler.set_config(profile_all=True)
    profiler.set_state("run")
    bound().forward(is_train=True)
    profiler.set_state("stop")
    memory = json.loads(profiler.dumps(format="json"))["Memory"]["Device Storage"]["Memory: cpu/0"]
    assert memory["Count"] >= 1 and 0 < memory["Min"] <= memory["Avg"] <= memory["Max"]
    assert "Memory: cpu/0" in profiler.dumps() and "Min (kB)" in profiler.dumps()


def test_tasks_counters_and_markers_of_one_s_own(profiler, tmp_path):
    domain = profiler.Domain("test")
    with domain.new_task("before"):
        pass
    profiler.set_state("run")
    for _ in range(2):
        with domain.new_task("work"):
            pass
    profiler.pause()
    with profiler.Event("paused"):
        pass
    profiler.resume()
    with profiler.Event("alone"):
        pass
    counter = domain.new_counter("count", 1)
    counter += 2
    domain.new_marker("here").mark()
    found = times(profiler)
    assert found["test"]["work"]["Count"] == 2 and found["event"]["alone"]["Count"] == 1
    table = profiler.dumps()
    assert "work" in table and "paused" not in table and "before" not in table
    profiler.dump()
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [event["args"]["count"] for event in events if event["ph"] == "C"] == [1, 3]
    assert [event["name"] for event in events if event["ph"] == "i"] == ["here"]
    profiler.dumps(reset=True)
    assert "work" not in profiler.dumps()


def test_resetting_the_table_leaves_the_trace(profiler, tmp_path):
    def traced():
        profiler.dump()
        return [event["name"] for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]]

    for name in ("first", "second"):
        profiler.set_state("run")
        with profiler.Event(name):
            pass
        profiler.set_state("stop")
        assert name in profiler.dumps(reset=True) and name not in profiler.dumps()
        assert traced() == [name]  # a finished trace is not continued
    assert traced() == ["second"]


def test_tables_are_sorted(profiler):
    profiler.set_state("run")
    domain = profiler.Domain("sorted")
    for name, count in (("rare", 1), ("often", 3), ("twice", 2)):
        for _ in range(count):
            with domain.new_task(name):
                pass
    profiler.set_state("stop")

    def order(**how):
        return list(json.loads(profiler.dumps(format="json", **how))["Time"]["sorted"])

    assert order(sort_by="count") == ["often", "twice", "rare"]
    assert order(sort_by="count", ascending=True) == ["rare", "twice", "often"]
    table = profiler.dumps(sort_by="count")
    assert table.index("often") < table.index("twice") < table.index("rare")


def test_mistakes_are_said(profiler):
    for call in (
        lambda: profiler.dumps(sort_by="x"),
        lambda: profiler.dumps(format="x"),
        lambda: profiler.set_state("x"),
        lambda: profiler.set_config(nope=3),
    ):
        with pytest.raises(mx.MXNetError):
            call()
    profiler.profiler_set_config(mode="all", filename="x.json")
    profiler.profiler_set_state("stop")

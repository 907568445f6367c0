"""SequentialModule, and modules that are written in Python."""

import logging

import numpy as np
import pytest

import symbind as mx


def features(prefix="fc1"):
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name=prefix)
    return mx.mod.Module(mx.sym.Activation(net, act_type="tanh", name="tanh"), label_names=[])


def classes():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc2")
    return mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))


def two_halves():
    module = mx.mod.SequentialModule()
    assert module.add(features()).add(classes(), take_labels=True, auto_wiring=True) is module
    return module


def batches():
    rng = np.random.RandomState(0)
    return mx.io.NDArrayIter(rng.rand(12, 5).astype(np.float32), np.arange(12) % 3, 4)


def batch(count=2):
    return mx.io.DataBatch([mx.nd.ones((count, 5))], [mx.nd.zeros((count,))])


def bound(module):
    module.bind([("data", (2, 5))], [("softmax_label", (2,))], inputs_need_grad=True)
    module.init_params(mx.init.One())
    return module


def test_it_is_described_by_its_first_and_last_modules():
    module = mx.mod.SequentialModule()
    assert (module.data_names, module.output_names, module.symbol) == ([], [], None)
    module = bound(two_halves())
    assert (module.data_names, module.label_names, module.output_names) == (
        ["data"],
        ["softmax_label"],
        ["softmax_output"],
    )
    assert module.data_shapes == [mx.io.DataDesc("data", (2, 5))]
    assert module.label_shapes == [mx.io.DataDesc("softmax_label", (2,))]
    assert module.output_shapes == [("softmax_output", (2, 3))]
    assert sorted(module.get_params()[0]) == ["fc1_bias", "fc1_weight", "fc2_bias", "fc2_weight"]
    assert [type(part) for part in module._modules] == [mx.mod.Module, mx.mod.Module]
    assert module._metas == [{}, {"take_labels": True, "auto_wiring": True}]
    assert (module.META_TAKE_LABELS, module.META_AUTO_WIRING) == ("take_labels", "auto_wiring")


def test_it_is_fitted_and_asked_as_any_module():
    seen = []
    module = two_halves()
    module.fit(
        batches(),
        num_epoch=30,
        optimizer="adam",
        optimizer_params={"learning_rate": 0.1},
        epoch_end_callback=lambda epoch, symbol, args, aux: seen.append((epoch, symbol, sorted(args))),
    )
    assert seen[0] == (0, None, ["fc1_bias", "fc1_weight", "fc2_bias", "fc2_weight"])
    assert module.score(batches(), "acc")[0][1] > 0.6
    assert module.predict(batches()).shape == (12, 3)
    assert len(module.get_outputs(merge_multi_context=False)[0]) == 1


def test_a_checkpoint_callback_writes_parameters_and_no_network(tmp_path):
    two_halves().fit(batches(), num_epoch=1, epoch_end_callback=mx.callback.do_checkpoint(str(tmp_path / "model")))
    assert [path.name for path in tmp_path.iterdir()] == ["model-0001.params"]


def test_adding_a_module_begins_anew():
    module = bound(two_halves())
    module.init_optimizer()
    module.add(mx.mod.PythonLossModule(), auto_wiring=True)
    assert (module.binded, module.params_initialized, module.optimizer_initialized) == (False, False, False)


def test_modules_of_python_are_called_and_kept():
    class Doubling(mx.mod.PythonModule):
        """Its output is twice its input."""

        def _compute_output_shapes(self):
            return [("twice", self._data_shapes[0][1])]

        def forward(self, data_batch, is_train=None):
            self.outputs = [2 * data_batch.data[0]]

        def get_outputs(self, merge_multi_context=True):
            return self.outputs

        def backward(self, out_grads=None):
            self.grads = [2 * grad for grad in out_grads]

        def get_input_grads(self, merge_multi_context=True):
            return self.grads

    def gradients(*between):
        module = mx.mod.SequentialModule().add(features())
        for part in between:
            module.add(part, auto_wiring=True)
        bound(module.add(classes(), take_labels=True, auto_wiring=True))
        module.forward_backward(batch())
        return module.get_outputs()[0].asnumpy(), module.get_input_grads()[0].asnumpy()

    doubled, by_python = gradients(Doubling(["data"], [], ["twice"]))
    twice = mx.mod.Module(mx.sym.Variable("data") * 2, label_names=[])
    expected, by_network = gradients(twice)
    assert np.allclose(doubled, expected) and np.allclose(by_python, by_network)


def test_a_base_module_of_ones_own_may_be_a_part():
    class Through(mx.mod.BaseModule):
        data_names, label_names, output_names = ["data"], [], ["same"]
        data_shapes = label_shapes = output_shapes = None

        def bind(self, data_shapes, label_shapes=None, **more):
            self.output_shapes = [("same", data_shapes[0][1])]
            self.binded = True

        def init_params(self, **more):
            self.params_initialized = True

        def get_params(self):
            return {}, {}

        def init_optimizer(self, **more):
            self.optimizer_initialized = True

        def forward(self, data_batch, is_train=None):
            self.data = data_batch.data

        def get_outputs(self):
            return self.data

        def backward(self, out_grads=None):
            self.grads = out_grads

        def get_input_grads(self):
            return self.grads

        def update(self):
            pass

        def install_monitor(self, mon):
            pass

    module = mx.mod.SequentialModule().add(features()).add(Through(), auto_wiring=True)
    module.add(classes(), take_labels=True, auto_wiring=True)
    module.fit(batches(), num_epoch=1)
    assert module.predict(batches()).shape == (12, 3)


def test_a_loss_has_the_gradient_of_its_function():
    loss = mx.mod.PythonLossModule(name="mine", grad_func=lambda scores, labels: scores.asnumpy() * 0 + 3)
    assert (loss.data_names, loss.label_names, loss.output_names) == (["data"], ["softmax_label"], ["mine_output"])
    loss.bind([("data", (2, 4))], [("softmax_label", (2,))])
    assert loss.output_shapes == [("mine_output", (2, 4))] and loss.get_params() == ({}, {})
    scores = mx.nd.ones((2, 4))
    loss.forward(mx.io.DataBatch([scores], [mx.nd.zeros((2,))]), is_train=True)
    loss.backward()
    assert isinstance(loss.get_input_grads()[0], mx.nd.NDArray)
    assert (loss.get_input_grads()[0].asnumpy() == 3).all()
    assert loss.get_outputs()[0] is scores
    metric = mx.metric.Accuracy()
    loss.update_metric(metric, [mx.nd.zeros((2,))])
    assert metric.get()[1] == 1


def test_mistakes_are_named(caplog):
    module = mx.mod.SequentialModule()
    with pytest.raises(ValueError, match="labels.*take_labels"):
        module.add(features(), labels=True)
    with pytest.raises(TypeError, match="module"):
        module.add(mx.sym.Variable("data"))
    with pytest.raises(mx.MXNetError, match="no modules"):
        module.bind([("data", (2, 5))])
    twice = mx.mod.SequentialModule().add(features()).add(features(), auto_wiring=True)
    twice.bind([("data", (2, 5))])
    with pytest.raises(mx.MXNetError, match="both have 'fc1_"):
        twice.init_params()
    with pytest.raises(mx.MXNetError, match="share"):
        two_halves().bind([("data", (2, 5))], shared_module=classes())
    module = bound(two_halves())
    with caplog.at_level(logging.WARNING):
        module.bind([("data", (2, 5))])
        module.set_params(dict(module.get_params()[0], other=mx.nd.ones((1,))), {})
    assert "already bound" in caplog.text and "other" in caplog.text
    with pytest.raises(ValueError, match="one input"):
        mx.mod.PythonLossModule(data_names=("a", "b"))
    with pytest.raises(TypeError, match="grad_func"):
        mx.mod.PythonLossModule(grad_func=3)
    loss = mx.mod.PythonLossModule()
    loss.bind([("data", (2, 4))], [("softmax_label", (2,))])
    with pytest.raises(ValueError, match="out_grads"):
        loss.backward([mx.nd.ones((2, 4))])
    with pytest.raises(NotImplementedError, match="grad_func"):
        loss.backward()
    plain = mx.mod.PythonModule(["data"], ["softmax_label"], ["out"])
    with pytest.raises(ValueError, match="'x'.*data"):
        plain.bind([("x", (2, 4))])
    with pytest.raises(NotImplementedError, match="_compute_output_shapes"):
        plain.bind([("data", (2, 4))])
    with pytest.raises(ValueError, match="grad_req"):
        plain.bind([("data", (2, 4))], grad_req="add")
    with pytest.raises(NotImplementedError, match="forward"):
        plain.forward(batch())


def with_state(name, label):
    """A layer that adds a state to what it gets."""
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name=name)
    net = net + mx.sym.Variable(name + "_state", shape=(4, 2))
    if label:
        return mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"), state_names=[name + "_state"])
    return mx.mod.Module(net, label_names=[], state_names=[name + "_state"])


def bound_for_three(module):
    module.bind([("data", (4, 3))], [("softmax_label", (4,))])
    module.init_params()
    return module


def test_states_are_those_of_all_modules():
    first, last = with_state("first", False), with_state("last", True)
    module = bound_for_three(mx.mod.SequentialModule().add(first).add(last, take_labels=True, auto_wiring=True))
    assert [state.shape for state in module.get_states()] == [(4, 2), (4, 2)]
    module.set_states(value=3)
    assert (first.get_states()[0].asnumpy() == 3).all() and (last.get_states()[0].asnumpy() == 3).all()
    module.set_states([mx.nd.ones((4, 2)), mx.nd.ones((4, 2)) * 2])
    assert (first.get_states()[0].asnumpy() == 1).all() and (last.get_states()[0].asnumpy() == 2).all()
    module.set_states(module.get_states(merge_multi_context=False))
    assert (last.get_states()[0].asnumpy() == 2).all()
    with pytest.raises(ValueError, match="1 states were given, the modules have 2"):
        module.set_states([mx.nd.ones((4, 2))])
    with pytest.raises(ValueError, match="either"):
        module.set_states()


def test_modules_without_states_have_none_and_refuse_them():
    loss = mx.mod.PythonLossModule()
    with pytest.raises(AssertionError, match="bind"):
        loss.get_states()
    loss.bind([("data", (4, 3))], [("softmax_label", (4,))])
    loss.init_params()
    for module in (loss, bound_for_three(two_halves_of_three())):
        assert module.get_states(merge_multi_context=False) == []
        with pytest.raises(AssertionError, match="states"):
            module.set_states([mx.nd.ones((4, 2))])
        with pytest.raises(AssertionError, match="states"):
            module.set_states(value=1)
    loss.set_states()
    loss.set_states([])


def two_halves_of_three():
    """The two halves, for data of three columns."""
    return mx.mod.SequentialModule().add(features()).add(classes(), take_labels=True, auto_wiring=True)

"""What people's notes on MXNet's Module and DataParallelExecutorGroup read in them, and what they say it holds."""

import logging

import numpy as np
import pytest

import symbind as mx

ARGUMENTS = ["data", "fc1_weight", "fc1_bias", "bn_gamma", "bn_beta", "fc2_weight", "fc2_bias", "softmax_label"]
PARAMETERS = ARGUMENTS[1:-1]
STATES = ["bn_moving_mean", "bn_moving_var"]
DATA, LABEL = [("data", (6, 5))], [("softmax_label", (6,))]


def network():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), name="fc1", num_hidden=4)
    net = mx.sym.BatchNorm(net, name="bn")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, name="fc2", num_hidden=3), name="softmax")


def bound(contexts=None, **options):
    module = mx.mod.Module(network(), context=contexts or mx.cpu())
    module.bind(data_shapes=DATA, label_shapes=LABEL, **options)
    return module


def batch(seed=0):
    rng = np.random.RandomState(seed)
    return mx.io.DataBatch([mx.nd.array(rng.rand(6, 5))], [mx.nd.array(rng.randint(3, size=6))])


def two_contexts():
    return [mx.cpu(0), mx.cpu(1)]


# A module as it is made


def test_a_new_module_separates_inputs_from_parameters():
    symbol = network()
    module = mx.mod.Module(symbol, context=two_contexts(), fixed_param_names=["fc1_bias"])
    assert module._symbol is symbol or module._symbol.tojson() == symbol.tojson()
    assert module._context == two_contexts()
    assert module._work_load_list == [1, 1]
    assert module._param_names == PARAMETERS
    assert module._fixed_param_names == ["fc1_bias"]
    assert module._aux_names == STATES
    assert module._data_names == module.data_names == ["data"]
    assert module._label_names == module.label_names == ["softmax_label"]
    assert module._state_names == []
    assert module._output_names == module.output_names == ["softmax_output"]
    assert module.logger is logging


def test_a_new_module_has_nothing_else():
    module = mx.mod.Module(network())
    for name in (
        "_arg_params _aux_params _optimizer _kvstore _update_on_kvstore _updater _preload_opt_states _grad_req "
        "_exec_group _data_shapes _label_shapes"
    ).split():
        assert getattr(module, name) is None, name
    for name in "binded for_training inputs_need_grad params_initialized optimizer_initialized _params_dirty".split():
        assert getattr(module, name) is False, name


def test_a_context_alone_becomes_a_list_of_one():
    assert mx.mod.Module(network(), context=mx.cpu(1))._context == [mx.cpu(1)]


# Bound


def test_binding_allocates_parameters_of_zeros():
    module = bound()
    assert module.binded and module.for_training and not module.inputs_need_grad
    assert module._grad_req == "write"
    assert list(module._arg_params) == PARAMETERS and list(module._aux_params) == STATES
    assert module._arg_params["fc1_weight"].shape == (4, 5)
    for array in [*module._arg_params.values(), *module._aux_params.values()]:
        assert not array.asnumpy().any()
    assert module._data_shapes == module.data_shapes == [mx.io.DataDesc("data", (6, 5))]
    assert module._label_shapes == module.label_shapes == [mx.io.DataDesc("softmax_label", (6,))]
    assert module.output_shapes == [("softmax_output", (6, 3))]
    assert module._total_exec_bytes == module._exec_group._total_exec_bytes


def test_the_group_knows_what_it_was_made_of():
    module = mx.mod.Module(network(), context=two_contexts(), fixed_param_names=["fc1_bias"])
    module.bind(data_shapes=DATA, label_shapes=LABEL, inputs_need_grad=True)
    group = module._exec_group
    assert isinstance(group, mx.module.executor_group.DataParallelExecutorGroup)
    assert group.param_names == PARAMETERS
    assert group.arg_names == ARGUMENTS
    assert group.aux_names == STATES
    assert group.symbol.tojson() == network().tojson()
    assert group.contexts == two_contexts()
    assert group.workload == [1, 1]
    assert group.for_training is True and group.inputs_need_grad is True
    assert group.logger is logging
    assert group._total_exec_bytes >= 0
    assert group.fixed_param_names == ["fc1_bias"]
    assert group.state_names == []
    assert group.batch_size == 6
    assert group.data_names == ["data"] and group.label_names == ["softmax_label"]
    assert group.data_shapes == module.data_shapes and group.label_shapes == module.label_shapes
    assert group.data_layouts == [0] and group.label_layouts == [0] and group.output_layouts == [0]
    assert group.output_names == ["softmax_output"] and group.num_outputs == 1
    assert group.get_output_shapes() == [("softmax_output", (6, 3))]
    assert group._default_execs is None
    wanted = {name: "write" for name in ARGUMENTS}
    wanted.update(fc1_bias="null", softmax_label="null")
    assert group.grad_req == wanted
    assert len(group.shared_data_arrays) == 2 and "data" in group.shared_data_arrays[0]


def test_every_context_has_an_executor_and_a_slice_of_the_batch():
    group = bound(two_contexts())._exec_group
    assert group.slices == [slice(0, 3), slice(3, 6)]
    assert [type(executor) for executor in group.execs] == [mx.executor.Executor] * 2
    assert [executor.arg_dict["data"].shape for executor in group.execs] == [(3, 5)] * 2
    assert [executor._ctx for executor in group.execs] == two_contexts()


def test_workloads_divide_the_batch():
    module = mx.mod.Module(network(), context=two_contexts(), work_load_list=[1, 2])
    module.bind(data_shapes=DATA, label_shapes=LABEL)
    assert module._exec_group.slices == [slice(0, 2), slice(2, 6)]
    assert module._exec_group.workload == [1, 2]


def test_the_groups_arrays_are_those_of_the_executors():
    group = bound(two_contexts(), inputs_need_grad=True)._exec_group
    assert [[part for part, _ in arrays] for arrays in group.data_arrays] == [group.slices]
    assert [[part for part, _ in arrays] for arrays in group.label_arrays] == [group.slices]
    assert [[array.shape for _, array in arrays] for arrays in group.data_arrays] == [[(3, 5), (3, 5)]]
    assert len(group.param_arrays) == len(group.grad_arrays) == len(PARAMETERS)
    assert len(group.aux_arrays) == 2 and len(group.aux_arrays[0]) == 2
    assert group.state_arrays == []
    assert [array.shape for array in group.input_grad_arrays[0]] == [(3, 5), (3, 5)]
    # the same memory: what is written to one is read in the other
    for i, executor in enumerate(group.execs):
        group.data_arrays[0][i][1][:] = 7
        assert (executor.arg_dict["data"].asnumpy() == 7).all()
        for name, params, grads in zip(group.param_names, group.param_arrays, group.grad_arrays):
            params[i][:] = 3
            grads[i][:] = 5
            assert (executor.arg_dict[name].asnumpy() == 3).all()
            assert (executor.grad_dict[name].asnumpy() == 5).all()
            assert (executor.arg_arrays[group.arg_names.index(name)].asnumpy() == 3).all()
            assert (executor.grad_arrays[group.arg_names.index(name)].asnumpy() == 5).all()
        group.aux_arrays[1][i][:] = 2
        assert (executor.aux_dict["bn_moving_var"].asnumpy() == 2).all()
        group.input_grad_arrays[0][i][:] = 4
        assert (executor.grad_dict["data"].asnumpy() == 4).all()


def test_data_keep_the_order_they_are_described_in():
    module = mx.mod.Module(mx.sym.Variable("a") - mx.sym.Variable("b"), data_names=["a", "b"], label_names=None)
    module.bind([("b", (2, 3)), ("a", (2, 3))], inputs_need_grad=True)
    module.init_params()
    assert module.data_names == ["a", "b"] and module._exec_group.data_names == ["b", "a"]
    module.forward(mx.io.DataBatch([mx.nd.ones((2, 3)), mx.nd.zeros((2, 3))], None), is_train=True)
    assert (module.get_outputs()[0].asnumpy() == -1).all()
    module.backward([mx.nd.ones((2, 3))])
    assert [grad.asnumpy()[0, 0] for grad in module.get_input_grads()] == [-1, 1]


def test_fixed_parameters_have_no_gradient():
    module = mx.mod.Module(network(), context=two_contexts(), fixed_param_names=["fc1_bias"])
    module.bind(data_shapes=DATA, label_shapes=LABEL)
    assert module._exec_group.grad_arrays[PARAMETERS.index("fc1_bias")] == [None, None]
    assert module._exec_group.input_grad_arrays is None


def test_bound_for_prediction_there_are_no_gradients():
    module = mx.mod.Module(network())
    module.bind(data_shapes=DATA, for_training=False)
    group = module._exec_group
    assert group.grad_arrays is None
    assert group.label_arrays is None and group.label_shapes is None and group.label_layouts is None
    assert set(group.grad_req.values()) == {"null"}
    assert module.label_shapes is None


def test_states_are_inputs_of_the_group_and_no_parameters():
    state = mx.sym.Variable("state")
    net = mx.sym.Group([mx.sym.FullyConnected(mx.sym.Variable("data") + state, name="fc", num_hidden=2), state + 1])
    module = mx.mod.Module(net, label_names=None, state_names=["state"])
    module.bind(data_shapes=DATA)
    module.init_params()
    assert module._state_names == ["state"] and module._param_names == ["fc_weight", "fc_bias"]
    assert [[array.shape for array in arrays] for arrays in module._exec_group.state_arrays] == [[(6, 5)]]
    module.set_states(value=3)
    assert (module.get_states(merge_multi_context=False)[0][0].asnumpy() == 3).all()


def test_rebinding_forgets_the_group_and_keeps_the_parameters():
    module = bound()
    module.init_params(mx.init.Constant(0.25))
    module._reset_bind()
    assert not module.binded and module._exec_group is None
    assert module._data_shapes is None and module._label_shapes is None
    module.bind(data_shapes=[("data", (2, 5))], label_shapes=[("softmax_label", (2,))], force_rebind=True)
    assert module._exec_group.batch_size == 2
    assert (module._exec_group.param_arrays[0][0].asnumpy() == 0.25).all()


def test_a_group_knows_the_axis_of_the_samples_of_any_input():
    group = bound(two_contexts())._exec_group
    desc = mx.io.DataDesc
    assert group.decide_slices(group.data_shapes) == [0]
    inputs = [desc("data", (6, 5)), desc("steps", (3, 6), layout="TN"), desc("all", (3, 7), layout="")]
    assert group.decide_slices(inputs) == [0, 1, -1]
    assert group.decide_slices([("data", (6, 2))]) == [0]
    with pytest.raises(ValueError, match="8 samples.*batch of 6"):
        group.decide_slices([desc("data", (8, 5))])
    with pytest.raises(ValueError, match="at least one"):
        group.decide_slices([])
    assert group.batch_size == 6 and group.slices == [slice(0, 3), slice(3, 6)]


# Initialized


def test_initializing_fills_the_devices_arrays():
    module = bound(two_contexts())
    module.init_params(mx.init.Constant(0.5))
    assert module.params_initialized and not module._params_dirty
    assert (module._arg_params["fc1_weight"].asnumpy() == 0.5).all()
    for array in module._exec_group.param_arrays[0]:
        assert (array.asnumpy() == 0.5).all()


def test_one_context_needs_no_store_and_has_an_updater():
    module = bound()
    module.init_params()
    module.init_optimizer(optimizer_params={"learning_rate": 0.5})
    assert module.optimizer_initialized
    assert module._kvstore is None and module._update_on_kvstore is False
    assert isinstance(module._updater, mx.optimizer.Updater)
    assert isinstance(module._optimizer, mx.optimizer.SGD)
    assert module._updater.optimizer is module._optimizer
    assert module._optimizer.rescale_grad == pytest.approx(1 / 6)
    assert module._optimizer.lr == 0.5
    assert module._optimizer.idx2name == dict(enumerate(PARAMETERS))
    assert isinstance(module._updater.get_states(), bytes)


def test_two_contexts_update_on_a_store():
    module = bound(two_contexts())
    module.init_params()
    module.init_optimizer(kvstore="local")
    assert isinstance(module._kvstore, mx.kvstore.KVStore) and module._kvstore.type == "local"
    assert module._kvstore.num_workers == 1 and module._kvstore.rank == 0
    assert module._update_on_kvstore is True and module._updater is None


def test_the_group_gives_the_outputs_that_are_asked_for():
    data = mx.sym.Variable("data")
    net = mx.sym.Group([data + 1, data + 2, data + 3])
    module = mx.mod.Module(net, label_names=None, context=[mx.cpu(0), mx.cpu(1)])
    module.bind(data_shapes=[("data", (4, 2))], for_training=False)
    module.init_params()
    module.forward(mx.io.DataBatch([mx.nd.zeros((4, 2))]))
    group = module._exec_group

    def values(**options):
        return [output.asnumpy()[0, 0] for output in group.get_outputs(**options)]

    assert values() == [1, 2, 3] and values(begin=1) == [2, 3]
    assert values(begin=0, end=2) == [1, 2] and values(begin=1, end=2) == [2]
    assert [len(parts) for parts in group.get_outputs(merge_multi_context=False, begin=2)] == [2]


# Trained


def test_a_step_leaves_gradients_in_the_groups_arrays_and_parameters_to_fetch():
    module = bound(two_contexts())
    module.init_params(mx.init.Xavier())
    module.init_optimizer()
    before = module._arg_params["fc2_weight"].asnumpy()
    module.forward(batch(), is_train=True)
    assert [output.shape for output in module.get_outputs()] == [(6, 3)]
    assert [[part.shape for part in parts] for parts in module.get_outputs(merge_multi_context=False)] == [[(3, 3)] * 2]
    assert [output.shape for output in module._exec_group.execs[1].outputs] == [(3, 3)]
    module.backward()
    group = module._exec_group
    index = PARAMETERS.index("fc2_weight")
    assert np.abs(group.grad_arrays[index][0].asnumpy()).max() > 0
    np.testing.assert_array_equal(
        group.grad_arrays[index][1].asnumpy(), group.execs[1].grad_dict["fc2_weight"].asnumpy()
    )
    module.update()
    assert module._params_dirty is True
    np.testing.assert_array_equal(module._arg_params["fc2_weight"].asnumpy(), before)
    module._sync_params_from_devices()
    assert module._params_dirty is False
    after = module._arg_params["fc2_weight"].asnumpy()
    np.testing.assert_array_equal(after, group.param_arrays[index][0].asnumpy())
    total = sum(grad.asnumpy() for grad in group.grad_arrays[index])
    np.testing.assert_allclose(after, before - 0.01 * total / 6, rtol=1e-5, atol=1e-7)


def test_another_batch_size_reshapes_the_group_and_keeps_the_parameters():
    module = bound()
    module.init_params(mx.init.Xavier())
    weight = module._exec_group.param_arrays[0][0].asnumpy()
    module.reshape(data_shapes=[("data", (4, 5))], label_shapes=[("softmax_label", (4,))])
    assert module._exec_group.batch_size == 4 and module._exec_group.slices == [slice(0, 4)]
    assert module._exec_group.data_arrays[0][0][1].shape == (4, 5)
    np.testing.assert_array_equal(module._exec_group.param_arrays[0][0].asnumpy(), weight)
    module.forward(batch())  # and back by itself
    assert module.get_outputs()[0].shape == (6, 3)


def test_a_shared_module_lends_parameters_and_optimizer():
    module = bound()
    module.init_params(mx.init.Xavier())
    module.init_optimizer()
    other = mx.mod.Module(network())
    other.bind(data_shapes=[("data", (2, 5))], label_shapes=[("softmax_label", (2,))], shared_module=module)
    assert other.params_initialized and other.optimizer_initialized
    assert other._optimizer is module._optimizer and other._updater is module._updater
    module._exec_group.param_arrays[0][0][:] = 9
    assert (other._exec_group.param_arrays[0][0].asnumpy() == 9).all()


def test_the_optimizers_states_wait_for_the_optimizer(tmp_path):
    module = bound()
    module.init_params(mx.init.Xavier())
    module.init_optimizer(optimizer_params={"momentum": 0.9})
    module.forward_backward(batch())
    module.update()
    prefix = str(tmp_path / "model")
    module.save_checkpoint(prefix, 1, save_optimizer_states=True)
    loaded = mx.mod.Module.load(prefix, 1, load_optimizer_states=True)
    assert loaded._preload_opt_states == prefix + "-0001.states"
    assert loaded.params_initialized
    assert sorted(loaded._arg_params) == sorted(PARAMETERS) and sorted(loaded._aux_params) == STATES
    loaded.bind(data_shapes=DATA, label_shapes=LABEL)
    loaded.init_optimizer(optimizer_params={"momentum": 0.9})
    assert loaded._preload_opt_states is None
    np.testing.assert_array_equal(loaded._updater.states[0].asnumpy(), module._updater.states[0].asnumpy())


# The functions around them


def test_the_helpers_the_notes_name_can_be_imported():
    from symbind.initializer import InitDesc, Uniform
    from symbind.io import DataDesc
    from symbind.model import _create_kvstore, _update_params, _update_params_on_kvstore, load_checkpoint
    from symbind.module.base_module import BaseModule, _check_input_names, _parse_data_desc

    assert issubclass(mx.mod.Module, BaseModule)
    assert InitDesc("fc_weight", {"lr_mult": "2"}).attrs == {"lr_mult": "2"}
    assert DataDesc.get_batch_axis("NCHW") == 0 and DataDesc.get_batch_axis("TNC") == 1
    assert DataDesc.get_batch_axis(None) == 0
    assert _create_kvstore("local", 1, {}) == (None, False)
    data, label = _parse_data_desc(["data"], ["softmax_label"], DATA, LABEL)
    assert data[0].name == "data" and label[0].shape == (6,)
    with pytest.raises(ValueError, match="other"):
        _check_input_names(network(), ["other"], "data", True)
    assert callable(load_checkpoint) and callable(_update_params) and callable(_update_params_on_kvstore)
    assert isinstance(Uniform(0.01), mx.init.Initializer)

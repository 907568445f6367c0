"""Module: calls by position as MXNet has them, what Python may put instead of its steps, and mistakes."""

import threading

import numpy as np
import pytest

import symbind as mx


def network():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def batches(count=8, batch_size=4):
    rng = np.random.RandomState(0)
    return mx.io.NDArrayIter(rng.rand(count, 5), np.arange(count) % 3, batch_size)


def test_a_module_with_a_memory_budget_trains_alike_in_less_memory():
    net = mx.sym.Variable("data")
    for _ in range(6):
        net = mx.sym.Activation(mx.sym.FullyConnected(net, num_hidden=32), act_type="sigmoid")
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=3), name="softmax")

    def trained(memory_budget):
        mx.random.seed(3)
        module = mx.mod.Module(net, memory_budget=memory_budget)
        module.fit(batches(800, 400), num_epoch=2, initializer=mx.init.Uniform(0.5))
        params = {name: array.asnumpy() for name, array in module.get_params()[0].items()}
        return params, module._exec_group.execs[0].memory()["arena"]

    usual, usual_bytes = trained(0)
    less, less_bytes = trained(usual_bytes * 9 // 10)
    assert less_bytes <= usual_bytes * 9 // 10
    for name, array in usual.items():
        assert np.array_equal(less[name], array), name


def test_synchronized_batch_norm_sees_the_batch_of_all_contexts():
    def step(contexts, norm):
        net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=6, name="fc1")
        net = mx.sym.FullyConnected(norm(net), num_hidden=3, name="fc2")
        module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"), context=contexts)
        data = batches(8, 8)
        module.bind(data.provide_data, data.provide_label, inputs_need_grad=True)
        mx.random.seed(3)
        module.init_params(mx.init.Uniform(0.5))
        module.init_optimizer()
        module.forward_backward(data.next())
        module.update()
        arrays = {"output": module.get_outputs()[0], "data": module.get_input_grads()[0]}
        for params in module.get_params():
            arrays.update(params)
        return {name: array.asnumpy() for name, array in arrays.items()}

    expected = step([mx.cpu()], lambda x: mx.sym.BatchNorm(x, fix_gamma=False, eps=1e-3, name="bn"))
    for count in 1, 2, 3:
        contexts = [mx.cpu(i) for i in range(count)]
        actual = step(contexts, lambda x: mx.sym.contrib.SyncBatchNorm(x, fix_gamma=False, ndev=2, key="bn", name="bn"))
        assert actual.keys() == expected.keys()
        for name, array in expected.items():
            np.testing.assert_allclose(actual[name], array, rtol=1e-5, atol=1e-6, err_msg=f"{name} on {count} contexts")


# What inspect.signature says of MXNet 1.9.1's.
SIGNATURES = {
    "fit": "train_data eval_data eval_metric epoch_end_callback batch_end_callback kvstore optimizer optimizer_params "
    "eval_end_callback eval_batch_end_callback initializer arg_params aux_params allow_missing force_rebind "
    "force_init begin_epoch num_epoch validation_metric monitor sparse_row_id_fn",
    "score": "eval_data eval_metric num_batch batch_end_callback score_end_callback reset epoch sparse_row_id_fn",
    "predict": "eval_data num_batch merge_batches reset always_output_list sparse_row_id_fn",
    "iter_predict": "eval_data num_batch reset sparse_row_id_fn",
    "bind": "data_shapes label_shapes for_training inputs_need_grad force_rebind shared_module grad_req",
    "init_params": "initializer arg_params aux_params allow_missing force_init allow_extra",
    "set_params": "arg_params aux_params allow_missing force_init allow_extra",
    "init_optimizer": "kvstore optimizer optimizer_params force_init",
    "forward": "data_batch is_train",
    "backward": "out_grads",
    "get_outputs": "merge_multi_context",
    "get_input_grads": "merge_multi_context",
    "update_metric": "eval_metric labels pre_sliced",
    "reshape": "data_shapes label_shapes",
    "save_checkpoint": "prefix epoch save_optimizer_states remove_amp_cast",
    "set_states": "states value",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_arguments_are_where_mxnet_has_them(name):
    text = getattr(mx.mod.Module, name).__doc__.split("->")[0]
    positions = [text.index(argument + ":") for argument in SIGNATURES[name].split()]
    assert positions == sorted(positions)


def test_predict_in_all_its_forms():
    module = mx.mod.Module(network())
    data = batches()
    module.bind(data.provide_data, data.provide_label)
    module.init_params()
    assert module.predict(data).shape == (8, 3)
    assert module.predict(data, 1).shape == (4, 3)
    assert [len(parts) for parts in module.predict(data, None, False)] == [1, 1]
    assert isinstance(module.predict(data, always_output_list=True), list)
    assert module.predict(np.zeros((4, 5))).shape == (4, 3)
    assert module.predict(mx.nd.zeros((2, 5))).shape == (2, 3)
    steps = list(module.iter_predict(data))
    assert [number for _, number, _ in steps] == [0, 1]


def test_predictions_over_a_shuffled_iterator_leave_the_next_order_alone():
    module = mx.mod.Module(network())
    data = batches()
    module.bind(data.provide_data, data.provide_label)
    module.init_params()
    shuffled = mx.io.NDArrayIter(np.arange(60).reshape(12, 5), np.zeros(12), 4, shuffle=True)

    def order():
        shuffled.reset()
        return [batch.data[0].asnumpy()[:, 0].tolist() for batch in shuffled]

    mx.random.seed(3)
    expected = order()
    for predict in (
        module.predict,
        lambda data: list(module.iter_predict(data)),
        lambda data: next(module.iter_predict(data)),
    ):
        mx.random.seed(3)
        predict(shuffled)
        assert order() == expected


def test_a_step_replaced_on_the_object_is_the_one_that_runs():
    module = mx.mod.Module(network())
    module.fit(batches(), num_epoch=1)
    calls = []
    update = module.update
    module.update = lambda: (calls.append("update"), update())
    module.fit(batches(), num_epoch=2)
    assert calls == ["update"] * 4
    del module.update
    module.fit(batches(), num_epoch=1)
    assert len(calls) == 4


def test_steps_replaced_on_the_class_are_those_that_run(monkeypatch):
    calls = []

    def counted(name):
        original = getattr(mx.mod.Module, name)

        def step(self, *args, **kwargs):
            calls.append(name)
            return original(self, *args, **kwargs)

        return step

    names = ["bind", "forward", "backward", "update", "update_metric"]
    for name in names:
        monkeypatch.setattr(mx.mod.Module, name, counted(name))
    mx.mod.Module(network()).fit(batches(), num_epoch=1)
    monkeypatch.undo()
    assert {name: calls.count(name) for name in names} == {**dict.fromkeys(names, 2), "bind": 1}
    calls.clear()
    mx.mod.Module(network()).fit(batches(), num_epoch=1)
    assert not calls


def test_a_store_busy_in_another_thread_does_not_lock_up():
    store = mx.kv.create("local")
    inside = threading.Event()

    def slow(key, pushed, stored):
        inside.set()
        stored[:] += pushed

    store.init("x", mx.nd.zeros((2,)))
    store._set_updater(slow)
    pusher = threading.Thread(target=lambda: [store.push("x", mx.nd.ones((2,))) for _ in range(200)])
    pusher.start()
    inside.wait(10)
    module = mx.mod.Module(network(), context=[mx.cpu(0), mx.cpu(1)])
    data = batches()
    module.bind(data.provide_data, data.provide_label)
    module.init_params()
    module.init_optimizer(kvstore=store)
    pusher.join(30)
    assert not pusher.is_alive()


@pytest.mark.parametrize(
    "mistake",
    [
        lambda: mx.mod.Module(network(), group2ctxs={"a": []}),
        lambda: mx.mod.Module(network(), group2ctxs=5),
        lambda: mx.mod.Module(network(), compression_params=5),
        lambda: mx.mod.Module(network(), work_load_list="x"),
        lambda: mx.mod.Module(network()).update_metric("acc", [mx.nd.zeros((4,))]),
        lambda: mx.mod.Module(network()).get_outputs(False),
        lambda: mx.sym.FullyConnected(mx.sym.Variable("x"), 5, num_hidden=2),
        lambda: network().simple_bind(mx.cpu(), data=(2, 5)).set_monitor_callback(5),
        lambda: network().simple_bind(mx.cpu(), data=(2, 5)).copy_params_from(5),
        lambda: network().simple_bind(mx.cpu(), data=(2, 5), type_dict=5),
        lambda: mx.Context(1, 0),
        lambda: mx.init.Uniform("x"),
    ],
)
def test_mistakes_are_exceptions(mistake):
    with pytest.raises((TypeError, ValueError, mx.MXNetError)):
        mistake()


def test_a_fixed_gamma_does_not_decay():
    for fixed in (True, False):
        net = mx.sym.BatchNorm(mx.sym.Variable("data"), fix_gamma=fixed, name="bn")
        module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))
        data = mx.io.NDArrayIter(np.random.RandomState(0).normal(size=(8, 3)), np.zeros(8), 4)
        module.fit(data, num_epoch=3, optimizer_params={"learning_rate": 0.1, "wd": 0.5})
        gamma = module.get_params()[0]["bn_gamma"].asnumpy()
        assert (gamma == 1).all() if fixed else (gamma < 0.9).all()


def test_networks_with_operators_of_the_first_generation_load():
    data = mx.sym.Variable("data")
    net = mx.sym.BatchNorm_v1(mx.sym.Convolution_v1(data, kernel=(3, 3), num_filter=2, name="conv"), name="bn")
    assert mx.sym.load_json(net.tojson()).list_arguments() == [
        "data",
        "conv_weight",
        "conv_bias",
        "bn_gamma",
        "bn_beta",
    ]
    assert net.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    assert net.infer_shape(data=(1, 3, 8, 8))[1] == [(1, 2, 6, 6)]


def test_arrays_changed_on_the_devices_are_fetched_when_the_module_is_told():
    module = mx.mod.Module(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc"), label_names=None)
    module.bind([("data", (4, 3))])
    module.init_params(mx.init.Zero())
    for weight in module._exec_group.param_arrays[0]:
        weight[:] = 5
    module._params_dirty = True
    assert (module.get_params()[0]["fc_weight"].asnumpy() == 5).all() and not module._params_dirty


def test_labels_under_another_name_are_refused():
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2), name="softmax")
    data = mx.io.NDArrayIter(np.zeros((4, 3)), np.ones(4), 2, label_name="truth")
    with pytest.raises(mx.MXNetError, match="label_shapes describe truth.*softmax_label"):
        mx.mod.Module(net).fit(data, num_epoch=1)


def test_an_optimizer_that_is_ready_needs_no_parameters():
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2), name="softmax")
    data = mx.io.NDArrayIter(np.zeros((4, 3)), np.ones(4), 2)
    module = mx.mod.Module(net)
    module.fit(data, optimizer=mx.optimizer.SGD(rescale_grad=0.5), optimizer_params=None, num_epoch=1)
    module.init_optimizer(optimizer="adam", optimizer_params=None, force_init=True)
    assert module._optimizer.lr == 0.001


def test_states_of_other_parameters_are_refused(tmp_path):
    prefix = str(tmp_path / "net")
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2), name="softmax")
    mod = mx.mod.Module(net)
    mod.bind([("data", (2, 3))], [("softmax_label", (2,))])
    mod.init_params(mx.init.One())
    mod.init_optimizer(optimizer_params={"momentum": 0.5})
    mod.save_checkpoint(prefix, 1, save_optimizer_states=True)
    mx.mod.Module.load(prefix, 1, load_optimizer_states=True)

    mod.init_params(mx.init.Zero(), force_init=True)
    mod.save_checkpoint(prefix, 1)  # the old states remain beside new parameters
    mx.mod.Module.load(prefix, 1)
    with pytest.raises(mx.MXNetError, match="net-0001.states.*saved with other parameters.*net-0001.params"):
        mx.mod.Module.load(prefix, 1, load_optimizer_states=True)


def test_states_of_other_shapes_beside_those_of_the_parameters_are_loaded(tmp_path):
    @mx.optimizer.register
    class Counting(mx.optimizer.Optimizer):
        def create_state(self, index, weight):
            return mx.nd.zeros(weight.shape), mx.nd.zeros((2, 1, 3))

        def update(self, index, weight, grad, state):
            state[0][:] += grad
            state[1][:] += 1
            counts[index] = state[1].asnumpy()

    counts = {}
    prefix, module = str(tmp_path / "net"), mx.mod.Module(network())
    module.fit(batches(), num_epoch=1, optimizer="counting")
    module.save_checkpoint(prefix, 1, save_optimizer_states=True)
    other = mx.mod.Module.load(prefix, 1, load_optimizer_states=True)
    other.fit(batches(), num_epoch=2, begin_epoch=1, optimizer="counting")
    steps = 2 * len(list(batches()))
    assert len(counts) == 2 and all((count == np.full((2, 1, 3), steps)).all() for count in counts.values())


def test_a_sparse_gradient_of_an_embedding_is_warned_of(caplog):
    net = mx.sym.Embedding(mx.sym.Variable("data"), input_dim=4, output_dim=2, sparse_grad=True, name="words")
    module = mx.mod.Module(
        mx.sym.LinearRegressionOutput(mx.sym.sum(net, axis=1), name="out"), label_names=["out_label"]
    )
    module.bind([("data", (2, 3))], [("out_label", (2, 2))])
    module.init_params()
    module.init_optimizer()
    assert "the gradient of words is dense" in caplog.text


def test_fit_on_an_exhausted_iterator_says_to_reset_it():
    data = batches()
    for _ in data:
        pass
    module = mx.mod.Module(network())
    with pytest.raises(mx.MXNetError, match=r"no batch for epoch 0.*reset\(\)"):
        module.fit(data, num_epoch=1)
    data.reset()
    module.fit(data, num_epoch=1)


def test_what_fit_would_ignore_is_warned_of(caplog):
    data = batches()
    module = mx.mod.Module(network(), context=[mx.cpu(0), mx.cpu(1)])
    module.fit(data, kvstore=None, num_epoch=1)
    assert "2 contexts without a kvstore train separately" in caplog.text
    caplog.clear()
    module.fit(data, optimizer="adam", num_epoch=1)
    assert "optimizer is initialized already" in caplog.text and "force_init" in caplog.text


def test_parameters_of_a_larger_network_are_taken_with_a_warning(caplog):
    """As scripts do that cut a feature extractor out of a classifier."""
    data = batches()
    module = mx.mod.Module(network())
    module.bind(data.provide_data, data.provide_label)
    module.init_params()
    arg_params, aux_params = module.get_params()
    module.set_params({**arg_params, "fc9_weight": mx.nd.zeros(1)}, aux_params)
    assert "fc9_weight" in caplog.text and "allow_extra" in caplog.text
    caplog.clear()
    module.set_params({**arg_params, "fc9_weight": mx.nd.zeros(1)}, aux_params, allow_extra=True)
    assert not caplog.text


def test_a_warning_of_many_parameters_names_the_first(caplog):
    data = batches()
    module = mx.mod.Module(network())
    module.bind(data.provide_data, data.provide_label)
    module.init_params(arg_params={f"extra{i:02}": mx.nd.zeros((1,)) for i in range(30)}, allow_missing=True)
    assert "extra00, extra01" in caplog.text and "extra07 and 22 more; they are ignored" in caplog.text


def test_what_was_silently_accepted_is_an_error():
    data = batches()
    module = mx.mod.Module(network())
    module.bind(data.provide_data, data.provide_label)
    module.init_params()
    arg_params, aux_params = module.get_params()
    with pytest.raises(mx.MXNetError, match="typo.*allow_extra"):
        module.set_params({**arg_params, "typo": mx.nd.zeros(1)}, aux_params, allow_missing=True)
    module.set_params({**arg_params, "typo": mx.nd.zeros(1)}, aux_params, allow_extra=True)
    with pytest.raises(mx.MXNetError, match="locol"):
        module.init_optimizer(kvstore="locol")
    batch = next(data)
    batch.pad = batch.data[0].shape[0] + 1
    with pytest.raises(mx.MXNetError, match="pad"):
        module.forward(batch, is_train=False)
    for wrong in ([None], [mx.nd.zeros(2), None]):
        with pytest.raises((TypeError, mx.MXNetError)):
            module.forward(mx.io.DataBatch(wrong), is_train=False)
    for arguments in ({"epoch_end_callback": [None]}, {"batch_end_callback": [None]}, {"eval_metric": 5}):
        with pytest.raises((TypeError, ValueError, mx.MXNetError)):
            module.fit(data, num_epoch=1, **arguments)
    with pytest.raises((ValueError, mx.MXNetError), match="fc9_weight.*_weight"):
        mx.mod.Module(network(), fixed_param_names=["fc9_weight"])


# ---- mixed precision -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_float32_network_trains_in_16_bits(tmp_path, dtype):
    rng = np.random.RandomState(3)
    data = rng.normal(size=(128, 8)).astype("float32")
    labels = (data[:, 0] > 0).astype("float32")
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    mod = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))
    train = mx.io.NDArrayIter(data, labels, 16)
    mod.fit(train, num_epoch=15, optimizer_params={"learning_rate": 0.5}, compute_dtype=dtype)
    assert mod.score(mx.io.NDArrayIter(data, labels, 16), "acc")[0][1] > 0.9
    prediction = mod.predict(mx.io.NDArrayIter(data, labels, 16))
    assert prediction.dtype == np.float32 and mod.get_params()[0]["fc_weight"].dtype == np.float32
    # A checkpoint is that of a float32 network.
    mod.save_checkpoint(str(tmp_path / "net"), 1)
    assert "amp_cast" not in (tmp_path / "net-symbol.json").read_text()
    again = mx.mod.Module.load(str(tmp_path / "net"), 1)
    again.bind(train.provide_data, for_training=False)
    exact = again.predict(mx.io.NDArrayIter(data, labels, 16)).asnumpy()
    np.testing.assert_allclose(prediction.asnumpy(), exact, atol=0.02)
    assert not np.array_equal(prediction.asnumpy(), exact)
    with pytest.raises(mx.MXNetError, match="int8"):
        mx.mod.Module(mx.sym.SoftmaxOutput(net), compute_dtype="int8")


def test_a_bound_module_computes_in_another_type_with_force_rebind():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    mod = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))
    train = mx.io.NDArrayIter(np.ones((16, 4), "float32"), np.zeros(16), 16)
    mod.fit(train, num_epoch=1, compute_dtype=None)
    mod.fit(train, num_epoch=1, compute_dtype="float32")
    with pytest.raises(mx.MXNetError, match="force_rebind.*it computes in float32, and float16 was given"):
        mod.fit(train, num_epoch=1, compute_dtype="float16")
    for dtype in ("float16", "bfloat16", "float32"):
        mod.fit(train, num_epoch=1, compute_dtype=dtype, force_rebind=True)
        assert (mod.loss_scale > 1) == (dtype == "float16")


def test_the_scale_of_a_loss_is_halved_when_a_gradient_overflows():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    net = mx.sym.SoftmaxOutput(net, name="softmax")
    assert mx.mod.Module(net).loss_scale == 1 and mx.mod.Module(net, compute_dtype="float16").loss_scale == 65536
    mod = mx.mod.Module(net, compute_dtype="float16")
    mod.bind([("data", (2, 4))], [("softmax_label", (2,))])
    mod.init_params()
    mod.init_optimizer()
    mod.forward_backward(mx.io.DataBatch([mx.nd.ones((2, 4)) * np.inf], [mx.nd.zeros((2,))]))
    mod.update()
    assert mod.loss_scale == 32768


def test_errors_of_mixed_precision_name_what_the_user_gave():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    mod = mx.mod.Module(net, label_names=None, compute_dtype="float16")
    mod.bind([("data", (2, 4))])
    mod.init_params()
    mod.forward(mx.io.DataBatch([mx.nd.ones((2, 4))], None), is_train=True)
    assert list(mod._exec_group.execs[0].output_dict) == ["fc_output"]
    with pytest.raises(mx.MXNetError, match="out_grads are needed for fc_output:"):
        mod.backward()
    doubles = mx.io.NDArrayIter(mx.nd.ones((8, 4), dtype="float64"), np.zeros(8), 8)
    mod = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))
    with pytest.raises(mx.MXNetError, match="only networks of float32 compute in float16; 'data' has type float64"):
        mod.fit(doubles, num_epoch=1, compute_dtype="float16")


@pytest.mark.parametrize("replaced", ["forward", "backward"])
def test_forward_backward_calls_the_passes_that_python_defines(replaced):
    calls = []

    class Noting(mx.mod.Module):
        pass

    def note(self, *args, **kwargs):
        calls.append(replaced)
        getattr(mx.mod.Module, replaced)(self, *args, **kwargs)

    setattr(Noting, replaced, note)
    for kind in mx.mod.Module, Noting:
        module = kind(network())
        data = batches()
        module.bind(data.provide_data, data.provide_label)
        module.init_params(mx.init.Constant(0.1))
        module.init_optimizer()
        module.forward_backward(data.next())
        grad = module._exec_group.grad_arrays[0][0].asnumpy()
        assert len(calls) == (kind is Noting)
    plain = mx.mod.Module(network())
    data.reset()
    plain.bind(data.provide_data, data.provide_label)
    plain.init_params(mx.init.Constant(0.1))
    plain.forward(data.next(), is_train=True)
    plain.backward()
    assert np.array_equal(plain._exec_group.grad_arrays[0][0].asnumpy(), grad)
    calls.clear()
    module.fit(batches(), num_epoch=1)
    assert calls == [replaced] * 2


def weights_after(module, overriding, epochs=1, **options):
    """The largest weight after each batch of a network whose updates wait for a check of the gradients."""
    rng = np.random.RandomState(0)
    data = rng.rand(24, 4).astype("float32")
    train = mx.io.NDArrayIter(data, data.argmax(axis=1) % 3, 6)
    seen = []

    def note(param):
        seen.append(float(np.abs(module.get_params()[0]["fc_weight"].asnumpy()).max()))

    if overriding:
        kind = type(overriding.__name__, (mx.mod.Module,), {overriding.__name__: overriding})
        module = kind(module.symbol)
    mx.random.seed(1)
    module.fit(
        train,
        num_epoch=epochs,
        initializer=mx.init.One(),
        optimizer_params={"learning_rate": 0.5},
        batch_end_callback=note,
        compute_dtype="float16",
        **options,
    )
    return seen


def clear_gradients(module):
    for arrays in module._exec_group.grad_arrays:
        for array in arrays:
            array[:] = 0


def test_steps_in_python_come_after_the_update():
    def update_metric(self, *args, **options):
        super(type(self), self).update_metric(*args, **options)
        clear_gradients(self)

    def prepare(self, *args, **options):
        super(type(self), self).prepare(*args, **options)
        clear_gradients(self)

    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    plain = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))
    expected = weights_after(plain, None)
    assert len(set(expected)) > 2
    for overriding in update_metric, prepare:
        assert weights_after(plain, overriding) == expected, overriding.__name__


def test_an_iterator_sees_updated_arrays():
    seen = []

    class Watching(mx.io.NDArrayIter):
        def next(self):
            if module.optimizer_initialized:
                seen.append(module._exec_group.param_arrays[0][0].asnumpy().sum())
            return super().next()

    module = mx.mod.Module(network())
    data = np.ones((16, 2), np.float32)
    shown = []
    module.fit(
        Watching(data, np.arange(16) % 2, 4),
        num_epoch=1,
        initializer=mx.init.One(),
        compute_dtype="float16",
        optimizer_params={"learning_rate": 0.1},
        batch_end_callback=lambda p: shown.append(module.get_params()[0][module._param_names[0]].asnumpy().sum()),
    )
    assert seen[1:] == shown  # the first batch is fetched before the first step


def test_fit_validates_by_score_in_python(caplog):
    caplog.set_level("INFO")
    calls = []

    class Scoring(mx.mod.Module):
        def score(self, eval_data, eval_metric, *args, **options):
            calls.append((eval_data, sorted(options), options["epoch"]))
            super().score(eval_data, eval_metric, *args, **options)
            return [("mAP", np.float32(0.25))]

    class Silent(Scoring):
        def score(self, *args, **options):
            super().score(*args, **options)

    noted = []
    validation = batches()
    for kind in Scoring, Silent:
        kind(network()).fit(
            batches(),
            eval_data=validation,
            num_epoch=2,
            eval_end_callback=lambda p: noted.append("end"),
            eval_batch_end_callback=[lambda p: noted.append("batch")],
        )
    names = ["batch_end_callback", "epoch", "score_end_callback"]
    assert calls == [(validation, names, 0), (validation, names, 1)] * 2
    assert noted == (["batch"] * 2 + ["end"]) * 4
    logged = [line for line in caplog.messages if "Validation" in line]
    assert logged == [f"Epoch[{i}] Validation-mAP=0.250000" for i in (0, 1)]


class Noting(mx.mod.BaseModule):
    """A module of the user's that notes what its steps are handed."""

    def __init__(self):
        super().__init__()
        self.binded = self.params_initialized = True
        self.seen = []

    def bind(self, data_shapes, label_shapes, **options):
        self.shapes = data_shapes, label_shapes

    def init_params(self, **options):
        pass

    def init_optimizer(self, **options):
        pass

    def get_params(self):
        return {}, {}

    def set_params(self, arg_params, aux_params):
        pass

    def forward(self, data_batch, is_train=None):
        self.seen.append(data_batch)

    def backward(self):
        pass

    def update(self):
        pass

    def update_metric(self, eval_metric, labels, **options):
        self.seen.append((labels, options))

    def get_outputs(self):
        return [mx.nd.ones((4, 1)), mx.nd.arange(8).reshape((4, 2))]


class Given:
    """An iterator over batches as they are."""

    def __init__(self, batches, shapes=(("data", (4, 2)),)):
        self.batches = list(batches)
        self.provide_data = shapes
        self.provide_label = None

    def __iter__(self):
        return iter(self.batches)

    def reset(self):
        pass


def nested_batch(pad=0):
    parts = [[mx.nd.zeros((4, 2)), mx.nd.zeros((3,))], [mx.nd.zeros((4, 5)), mx.nd.zeros((7,))]]
    labels = [[mx.nd.zeros((1,))], [mx.nd.zeros((2,))]]
    shapes = [[("data", (4, 2))], [("data", (4, 5))]]
    return mx.io.DataBatch(parts, labels, pad, provide_data=shapes)


def test_steps_in_python_are_handed_the_batch_itself():
    class Lazy:
        """Arrays that can be read only once."""

        def __init__(self):
            self.data = iter([np.zeros((4, 2))])
            self.label = {"softmax_label": np.zeros(4)}
            self.pad = 0

    batches = [nested_batch(), Lazy()]
    for batch in batches:
        module = Noting()
        module.forward_backward(batch)
        assert module.seen == [batch]
        module = Noting()
        module.fit(Given([batch]), num_epoch=1, eval_metric=mx.metric.Loss())
        assert module.seen[0] is batch and module.seen[1][0] is batch.label and module.seen[1][1] == {}
        module = Noting()
        module.score(Given([batch]), mx.metric.Loss())
        assert module.seen[0] is batch and module.seen[1][0] is batch.label
        module = Noting()
        module.predict(Given([batch]))
        assert module.seen == [batch]
        assert [seen is batch for _, _, seen in module.iter_predict(Given([batch]))] == [True]
    assert len(list(batches[1].data)) == 1


def test_batches_per_device_stay_a_list():
    module = Noting()
    batch = [mx.io.DataBatch([mx.nd.zeros((2, 2))], [mx.nd.zeros((2,)) + i]) for i in range(2)]
    module.fit(Given([batch]), num_epoch=1, eval_metric=mx.metric.Loss())
    assert module.seen == [batch, ([batch[0].label, batch[1].label], {"pre_sliced": True})]


def test_bind_in_python_is_handed_descriptions_that_only_it_reads():
    shapes = [[("data", (4, 2))], [("data", (4, 5))]]
    module = Noting()
    module.fit(Given([nested_batch()], shapes), num_epoch=1, eval_metric=mx.metric.Loss())
    assert module.shapes == (shapes, None)
    plain = mx.mod.Module(network())
    with pytest.raises(TypeError):
        plain.fit(Given([nested_batch()], shapes), num_epoch=1)


@pytest.mark.parametrize("step", ["forward", "forward_backward"])
def test_a_module_converts_the_batch_in_the_step_that_python_overrides(step):
    class Unpacking(mx.mod.Module):
        def note(self, data_batch, *args, **options):
            data_batch = mx.io.DataBatch(data_batch.data[0][:1], data_batch.label)
            getattr(mx.mod.Module, step)(self, data_batch, *args, **options)

    setattr(Unpacking, step, Unpacking.note)
    data = mx.nd.array(np.random.RandomState(0).rand(4, 5))
    label = [mx.nd.array([0, 1, 2, 1])]
    nested = mx.io.DataBatch([[data, mx.nd.zeros((3,))]], label)
    weights = []
    for kind, batch in (mx.mod.Module, mx.io.DataBatch([data], label)), (Unpacking, nested):
        module = kind(network())
        module.bind([("data", (4, 5))], [("softmax_label", (4,))])
        module.init_params(mx.init.One())
        module.fit(Given([batch] * 3, [("data", (4, 5))]), num_epoch=2)
        module.forward_backward(batch)
        weights.append(module.get_params()[0]["fc_weight"].asnumpy())
    assert np.array_equal(*weights) and not np.allclose(weights[0], 1)
    if step == "forward":
        assert module.predict(Given([nested])).shape == (4, 3)
        assert dict(module.score(Given([nested]), "acc"))
    else:  # forward is in C++, which cannot read the batch
        with pytest.raises(TypeError, match="a list in it is not an array"):
            module.predict(Given([nested]))


@pytest.mark.parametrize("kind", [mx.mod.Module, mx.mod.BucketingModule])
def test_an_overridden_forward_backward_may_pass_on_what_it_is_given(kind):
    class Passing(kind):
        def forward_backward(self, data_batch):
            super().forward_backward(data_batch)

    data, label = np.random.RandomState(0).rand(4, 5).astype("float32"), np.array([0, 1, 2, 1], np.float32)
    weights = []
    for each in kind, Passing:
        arguments = (network(),) if kind is mx.mod.Module else (lambda key: (network(), ["data"], ["softmax_label"]), 5)
        module = each(*arguments)
        module.bind([("data", (4, 5))], [("softmax_label", (4,))])
        module.init_params(mx.init.One())
        batch = mx.io.DataBatch([data], [label], bucket_key=5)
        module.fit(Given([batch] * 3, [("data", (4, 5))]), num_epoch=2)
        module.forward_backward(batch)
        module.update()
        weights.append(module.get_params()[0]["fc_weight"].asnumpy())
    assert np.array_equal(*weights) and not np.allclose(weights[0], 1)


def test_predict_needs_no_shapes_of_a_module_in_python():
    batch = mx.io.DataBatch([mx.nd.zeros((4, 2))], pad=1)
    for given in batch, nested_batch(pad=1):
        module = Noting()
        assert [output.shape for output in module.predict(Given([given, given]))] == [(6, 1), (6, 2)]
        (outputs, number, _), *_ = module.iter_predict(Given([given]))
        assert number == 0 and outputs[1].asnumpy().tolist() == [[0, 1], [2, 3], [4, 5]]
    padded = mx.io.NDArrayIter(np.zeros((6, 2)), batch_size=4)
    assert [output.shape for output in Noting().predict(padded)] == [(6, 1), (6, 2)]

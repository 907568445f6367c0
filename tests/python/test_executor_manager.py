"""What scripts from before Module call: groups of executors, their manager, and training over them."""

import numpy as np
import pytest

import symbind as mx
from symbind import executor_manager, model
from symbind.module import executor_group

PARAMS = ["fc_weight", "fc_bias"]
DATA = np.random.RandomState(0).rand(20, 4).astype(np.float32)
LABEL = (np.arange(20) % 3).astype(np.float32)


def network(key=None):
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    return mx.sym.SoftmaxOutput(net, name="softmax")


class Described:
    batch_size = 6
    default_bucket_key = 4
    provide_data = [("data", (6, 4))]
    provide_label = [("softmax_label", (6,))]


def first_values():
    return {"fc_weight": mx.nd.ones((3, 4)), "fc_bias": mx.nd.zeros((3,))}


def batch(**more):
    return mx.io.DataBatch([mx.nd.array(DATA[:6])], [mx.nd.array(LABEL[:6])], **more)


def manager(contexts=2, **more):
    made = executor_manager.DataParallelExecutorManager(
        network(), [mx.cpu(i) for i in range(contexts)], Described, network().list_arguments(), PARAMS, [], **more
    )
    made.set_params(first_values(), {})
    return made


def sums(arrays):
    return [float(sum(np.abs(array.asnumpy()).sum() for array in of_devices)) for of_devices in arrays]


def test_a_manager_runs_a_batch_on_all_devices():
    made = manager()
    assert (made.slices, made.curr_execgrp, made.param_names) == ([slice(0, 3), slice(3, 6)], None, PARAMS)
    made.load_data_batch(batch())
    made.forward(is_train=True)
    made.backward()
    metric = mx.metric.Accuracy()
    made.update_metric(metric, batch().label)
    assert metric.get() == ("accuracy", 1 / 3)
    # MXNet 1.9.1 has 4.7343 on two devices and 4.0043 on one.
    assert sums(made.grad_arrays)[0] == pytest.approx(4.7343, abs=1e-4)
    one = manager(1)
    one.load_data_batch(batch())
    one.forward(is_train=True)
    one.backward()
    assert sums(one.grad_arrays)[0] == pytest.approx(4.0043, abs=1e-4)
    for of_devices in made.param_arrays:
        of_devices[1][:] += 2
    into = first_values()
    made.copy_to(into, {})
    assert (into["fc_weight"].asnumpy() == 2).all() and (into["fc_bias"].asnumpy() == 1).all()


def test_a_manager_with_a_function_has_a_group_for_each_bucket():
    made = manager(sym_gen=network)
    for key in (4, 7):
        made.load_data_batch(
            batch(bucket_key=key, provide_data=Described.provide_data, provide_label=Described.provide_label)
        )
        made.forward(is_train=True)
    assert list(made.execgrp_bucket) == [4, 7] and made.curr_execgrp is made.execgrp_bucket[7]
    made.param_arrays[0][0][:] = 5
    assert (made.curr_execgrp.param_arrays[0][0].asnumpy() == 5).all()
    with pytest.raises(NotImplementedError, match="BucketingModule"):
        made.install_monitor(mx.mon.Monitor(1))


def test_executors_are_bound_with_the_gradients_that_are_wanted():
    shapes = {"data": (2, 4), "softmax_label": (2,)}
    bound = executor_manager._bind_exec(network(), mx.cpu(), shapes, PARAMS, need_grad=True)
    assert bound.grad_dict["fc_weight"] is not None and bound.grad_dict["data"] is None
    bound = executor_manager._bind_exec(network(), mx.cpu(), shapes, PARAMS, need_grad={"data"})
    assert bound.grad_dict["fc_weight"] is None and bound.grad_dict["data"] is not None
    other = executor_manager._bind_exec(network(), mx.cpu(), shapes, PARAMS, base_exec=bound)
    bound.arg_dict["fc_weight"][:] = 3
    assert (other.arg_dict["fc_weight"].asnumpy() == 3).all()
    with pytest.raises(TypeError, match="need_grad"):
        executor_manager._bind_exec(network(), mx.cpu(), shapes, PARAMS, need_grad=["data"])
    with pytest.raises(ValueError, match="work_load_list"):
        manager(work_load_list=[1])


def test_training_on_several_devices_writes_into_the_parameters():
    seen = []
    params = first_values()
    weight = params["fc_weight"]
    store, in_store = model._create_kvstore("local", 2, params)
    model._train_multi_device(
        network(),
        [mx.cpu(0), mx.cpu(1)],
        network().list_arguments(),
        PARAMS,
        [],
        params,
        {},
        begin_epoch=0,
        end_epoch=2,
        epoch_size=None,
        optimizer=mx.optimizer.SGD(learning_rate=0.1, rescale_grad=0.2),
        kvstore=store,
        update_on_kvstore=in_store,
        train_data=mx.io.NDArrayIter(DATA, LABEL, 4),
        eval_data=mx.io.NDArrayIter(DATA, LABEL, 4),
        eval_metric=mx.metric.Accuracy(),
        batch_end_callback=lambda param: seen.append(param.nbatch),
        epoch_end_callback=lambda epoch, symbol, args, aux: seen.append(sorted(args)),
    )
    assert seen == [1, 2, 3, 4, 5, ["fc_bias", "fc_weight"]] * 2
    # What MXNet 1.9.1 ends with.
    assert np.abs(weight.asnumpy() - 1).sum() == pytest.approx(0.1811, abs=1e-4)


def test_the_functions_of_the_executor_group_split_and_merge_by_axis():
    parts = [(slice(0, 2), mx.nd.zeros((3, 2))), (slice(2, 5), mx.nd.zeros((3, 3)))]
    whole = mx.nd.array(np.arange(15).reshape(3, 5))
    executor_group._load_general([whole], [parts], [1])
    assert np.array_equal(parts[1][1].asnumpy(), whole.asnumpy()[:, 2:])
    merged = executor_group._merge_multi_context([[part for _, part in parts]], [1])[0]
    assert np.array_equal(merged.asnumpy(), whole.asnumpy())
    assert executor_group._merge_multi_context([[whole, whole]], [-1])[0] is whole
    assert executor_group._prepare_group2ctxs({"a": [mx.cpu(0), mx.cpu(1)]}, 2) == [{"a": mx.cpu(0)}, {"a": mx.cpu(1)}]
    assert executor_group._prepare_group2ctxs({"a": mx.cpu(1)}, 2) == [{"a": mx.cpu(1)}] * 2
    assert executor_group._prepare_group2ctxs(None, 2) == [None, None]
    with pytest.raises(ValueError, match="3 contexts for 2"):
        executor_group._prepare_group2ctxs({"a": [mx.cpu()] * 3}, 2)


def test_a_batch_of_another_size_is_refused():
    load = mx.executor_manager._load_general
    halves = [mx.nd.zeros((2, 3)), mx.nd.zeros((2, 3))]
    targets = [[(slice(0, 2), halves[0]), (slice(2, 4), halves[1])]]
    load([mx.nd.ones((4, 3))], targets)
    assert all(half.asnumpy().sum() == 6 for half in halves)
    with pytest.raises(AssertionError, match="5 samples, not 4"):
        load([mx.nd.ones((5, 3))], targets)


def test_callbacks_are_called_one_or_all():
    seen = []
    model._multiple_callbacks([seen.append, seen.append], 1)
    model._multiple_callbacks(seen.append, 2)
    model._multiple_callbacks(None, 3)
    assert seen == [1, 1, 2]


def test_pixels_that_only_modules_normalize_are_refused():
    class Pixels(Described):
        provide_data = [mx.io.DataDesc("data", (6, 3, 2, 2), normalization=([0], [255], 1))]

    with pytest.raises(ValueError, match="data: only modules normalize images"):
        executor_manager.DataParallelExecutorManager(
            network(), [mx.cpu()], Pixels, network().list_arguments(), PARAMS, []
        )

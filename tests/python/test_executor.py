"""Executors: bind, simple_bind, forward, backward, reshape, monitors."""

import numpy as np
import pytest

import symbind as mx


def test_bind_forward_backward():
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    net = 2 * a + b
    executor = net.bind(mx.cpu(), {"a": mx.nd.array([1, 2]), "b": mx.nd.array([3, 4])}, {"a": mx.nd.zeros((2,))})
    (out,) = executor.forward(is_train=True)
    assert out.asnumpy().tolist() == [5, 8]
    executor.backward(mx.nd.array([1, 10]))
    assert executor.grad_dict["a"].asnumpy().tolist() == [2, 20]
    assert executor.grad_dict["b"] is None and executor.grad_arrays[1] is None
    executor.arg_dict["a"][:] = 0
    assert executor.forward()[0].asnumpy().tolist() == [3, 4]
    assert executor.outputs[0].asnumpy().tolist() == [3, 4]
    assert list(executor.output_dict) == net.list_outputs()


def test_bind_by_list_and_grad_req():
    x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    net = x * y
    grads = [mx.nd.ones((2,)), mx.nd.ones((2,))]
    executor = net.bind(mx.cpu(), [mx.nd.array([1, 2]), mx.nd.array([3, 4])], grads, grad_req=["add", "write"])
    executor.forward(True)
    executor.backward([mx.nd.ones((2,))])
    assert grads[0].asnumpy().tolist() == [4, 5] and grads[1].asnumpy().tolist() == [1, 2]
    with pytest.raises(mx.MXNetError):
        net.bind(mx.cpu(), [mx.nd.zeros((2,))])
    with pytest.raises(mx.MXNetError, match="no array for .y"):
        net.bind(mx.cpu(), {"x": mx.nd.zeros((2,)), "z": mx.nd.zeros((2,))})
    with pytest.raises(mx.MXNetError):
        net.bind(mx.cpu(), [mx.nd.zeros((2,))] * 2, grads, grad_req="sometimes")


def test_simple_bind_takes_inputs_by_name():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    executor = net.simple_bind(mx.cpu(), data=(3, 4), grad_req={"fc_weight": "write"}, type_dict={"data": "float64"})
    assert executor.arg_dict["fc_weight"].dtype == np.float64
    executor.arg_dict["fc_weight"][:] = 1
    out = executor.forward(is_train=True, data=np.full((3, 4), 0.5))[0]
    assert out.asnumpy().tolist() == [[2, 2]] * 3
    with pytest.raises(mx.MXNetError):
        executor.forward(data=np.zeros((2, 4)))
    with pytest.raises(TypeError):
        executor.forward(nothing=np.zeros((2, 4)))
    executor.copy_params_from({"fc_weight": mx.nd.zeros((2, 4), dtype="float64")})
    assert executor.forward()[0].asnumpy().sum() == 0
    with pytest.raises(ValueError, match="extra"):
        executor.copy_params_from({"extra": mx.nd.zeros((2,))})


def test_reshape_shares_parameters():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    executor = net.simple_bind(mx.cpu(), data=(4, 3))
    smaller = executor.reshape(data=(2, 3))
    smaller.arg_dict["fc_weight"][:] = 1
    assert executor.arg_dict["fc_weight"].asnumpy().sum() == 6
    assert smaller.forward(data=np.ones((2, 3)))[0].shape == (2, 2)
    with pytest.raises(mx.MXNetError):
        executor.reshape(data=(8, 3))
    assert executor.reshape(allow_up_sizing=True, data=(8, 3)).outputs[0].shape == (8, 2)


def test_backward_before_forward_is_an_error():
    net = mx.sym.MakeLoss(mx.sym.Variable("x"))
    executor = net.simple_bind(mx.cpu(), x=(2,))
    with pytest.raises(mx.MXNetError):
        executor.backward()


def test_monitor_and_its_exceptions():
    net = mx.sym.exp(mx.sym.Variable("x") * 2, name="e")
    executor = net.simple_bind(mx.cpu(), x=(2,))
    seen = {}
    executor.set_monitor_callback(lambda name, array: seen.__setitem__(name, array.asnumpy()))
    executor.forward(x=np.zeros((2,)))
    assert seen["e_output"].tolist() == [1, 1]

    class Mine(Exception):
        pass

    def fail(name, array):
        raise Mine(name)

    executor.set_monitor_callback(fail)
    with pytest.raises(Mine):
        executor.forward()
    executor.set_monitor_callback(None)
    assert executor.forward()[0].asnumpy().tolist() == [1, 1]


def test_memory_and_debug_str():
    net = mx.sym.exp(mx.sym.exp(mx.sym.Variable("x")))
    executor = net.simple_bind(mx.cpu(), x=(1000,))
    executor.forward(is_train=True)
    assert executor.memory()["arguments"] == 4000
    assert "exp" in executor.debug_str()
    assert executor.memory_picture("two exps").startswith("<svg ")


def test_an_executor_with_a_memory_budget_gives_the_same_gradients_in_less_memory():
    net = mx.sym.Variable("data")
    for _ in range(6):
        net = mx.sym.Activation(mx.sym.FullyConnected(net, num_hidden=32), act_type="sigmoid")
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=3), name="softmax")

    def gradients(memory_budget):
        executor = net.simple_bind(mx.cpu(), memory_budget=memory_budget, data=(400, 4))
        rng = np.random.RandomState(1)
        for array in executor.arg_arrays:
            array[:] = rng.uniform(-0.5, 0.5, array.shape)
        executor.forward(is_train=True)
        executor.backward()
        return {name: array.asnumpy() for name, array in executor.grad_dict.items()}, executor.memory()["arena"]

    usual, usual_bytes = gradients(0)
    less, less_bytes = gradients(usual_bytes * 9 // 10)
    assert less_bytes <= usual_bytes * 9 // 10
    for name, gradient in usual.items():
        assert np.array_equal(less[name], gradient), name


def test_a_part_of_a_network_binds_with_the_shapes_of_the_whole(caplog):
    part = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    executor = part.simple_bind(mx.cpu(), data=(3, 4), softmax_label=(3,))
    assert executor.forward()[0].shape == (3, 2)
    assert "no argument 'softmax_label'" in caplog.text
    arrays = {"data": mx.nd.ones((3, 4)), "fc_weight": mx.nd.ones((2, 4)), "fc_bias": mx.nd.zeros(2)}
    whole = {**arrays, "fc2_weight": mx.nd.ones((5, 2))}
    assert (part.bind(mx.cpu(), whole, aux_states={"bn_mean": mx.nd.ones(2)}).forward()[0].asnumpy() == 4).all()
    part.bind(mx.cpu(), arrays, args_grad=whole)
    assert "args_grad names 'fc2_weight'" in caplog.text  # a gradient that is not computed


def test_the_optimized_symbol_is_the_network_that_was_bound():
    x = mx.sym.Variable("x")
    net = mx.sym.Activation(mx.sym.FullyConnected(x, num_hidden=2, name="fc"), act_type="relu", name="relu")
    optimized = net.simple_bind(mx.cpu(), x=(3, 4)).get_optimized_symbol()
    assert optimized.tojson() == net.tojson()


def test_a_gradient_sees_outputs_that_the_program_has_written():
    """As scripts for style transfer do, which give the difference of two outputs as the gradient."""
    data = mx.sym.Variable("data")
    for net in mx.sym.relu(data), mx.sym.Activation(data, act_type="relu"):
        executor = net.simple_bind(mx.cpu(), data=(4,))
        executor.forward(is_train=True, data=mx.nd.array([1, 2, 3, 4]))
        executor.outputs[0][:] = mx.nd.array([-1, 0, 2, np.nan])
        executor.backward(mx.nd.array([1, 1, 1, 1]))
        np.testing.assert_array_equal(executor.grad_dict["data"].asnumpy(), [0, 0, 1, np.nan])


def test_the_dictionaries_under_the_names_that_mxnet_stores_them():
    net = mx.sym.BatchNorm(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc"), name="bn")
    executor = net.simple_bind(mx.cpu(), data=(2, 3))
    executor._arg_dict["fc_weight"][:] = 3
    assert executor.arg_dict["fc_weight"].asnumpy().sum() == 18
    for name in "arg_dict", "grad_dict", "aux_dict", "output_dict":
        assert list(getattr(executor, "_" + name)) == list(getattr(executor, name))
        setattr(executor, "_" + name, None)
        with pytest.raises(AttributeError, match="assign to these"):
            setattr(executor, "_" + name, {})
    assert sorted(executor._aux_dict) == ["bn_moving_mean", "bn_moving_var"]

"""Short programs and sessions from people's notes on MXNet, run as they stand after `import mxnet as mx`."""

import doctest
import subprocess
import sys
import textwrap

from script_runs import environment, package_path

TWO_A_PLUS_B = """
    import mxnet as mx

    a = mx.sym.Variable('a')
    b = mx.sym.Variable('b')
    d = 2 * a + b

    print(d.list_arguments())
    type(d)

    e = d.simple_bind(mx.cpu(), a=(1,), b=(1,))

    e.copy_params_from(arg_params = {'a':mx.nd.array([1.]), 'b':mx.nd.array([2.])})

    y = e.forward(is_train=True)

    e.backward(out_grads=mx.nd.array([1.]))
"""

ARGUMENTS_IN_PLACE = """
    import mxnet as mx

    a = mx.sym.Variable('a')
    b = mx.sym.Variable('b')
    d = 2 * a + b
    e = d.simple_bind(mx.cpu(), a=(1,), b=(1,))

    y = e.forward()

    print(e.outputs[0].asnumpy())
    # e.backward(out_grads=mx.nd.array([2.]))
    for value in e.arg_arrays:
        print(value.asnumpy())
        value += mx.nd.array([1])
    e.forward()

    for value in e.outputs:
        print(value.asnumpy())
"""

WITHOUT_GRADIENTS = """
    import mxnet as mx

    x = mx.sym.Variable('x')
    y = mx.sym.FullyConnected(x, num_hidden=4)
    exe = y.simple_bind(mx.cpu(), x=(5,4), grad_req='null')
"""

# A session in which `train` was there already.
SESSION = """
    >>> data = mx.sym.Variable('data')
    >>> fc1  = mx.sym.FullyConnected(data, name='fc1', num_hidden=128)
    >>> act1 = mx.sym.Activation(fc1, name='relu1', act_type="relu")
    >>> fc2  = mx.sym.FullyConnected(act1, name='fc2', num_hidden=10)
    >>> out  = mx.sym.SoftmaxOutput(fc2, name = 'softmax')
    >>> mod = mx.mod.Module(out)
    >>> out
    <Symbol softmax>
    >>> mod
    <...module.module.Module object at 0x...>
    >>> data_shapes = train.provide_data
    >>> data_shapes
    [DataDesc[data,(128, 3, 8, 8),<class 'numpy.float32'>,NCHW]]
    >>> mod.bind(data_shapes=train.provide_data, label_shapes=train.provide_label)
    >>> label_shapes = train.provide_label
    >>> label_shapes
    [DataDesc[softmax_label,(128,),<class 'numpy.float32'>,NCHW]]
    >>> mod.init_params()
    >>> mod.init_optimizer()
    >>> for batch in train:
    ...     mod.forward(batch)
    ...     mod.backward()
    ...     mod.update()
    >>> mod.get_outputs()[0].shape
    (128, 10)
"""


def printed(program, afterwards, tmp_path):
    """What the program prints under `python -m symbind`; then the lines of `afterwards` look at its variables."""
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(program) + textwrap.dedent(afterwards))
    command = [sys.executable, "-m", "symbind", str(script)]
    done = subprocess.run(command, env=environment(package_path()), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_graph_of_two_numbers_gives_its_value_and_its_gradients(tmp_path):
    afterwards = """
        print(type(d).__name__, y[0].asnumpy(), [grad.asnumpy() for grad in e.grad_arrays])
    """
    text = printed(TWO_A_PLUS_B, afterwards, tmp_path)
    assert text == "['a', 'b']\nSymbol [4.] [array([2.], dtype=float32), array([1.], dtype=float32)]\n"


def test_changing_the_arguments_in_place_changes_the_next_output(tmp_path):
    assert printed(ARGUMENTS_IN_PLACE, "", tmp_path) == "[0.]\n[0.]\n[0.]\n[3.]\n"


def test_grad_req_null_binds_without_gradients(tmp_path):
    afterwards = """
        print(type(exe).__name__, exe.grad_arrays, [array.shape for array in exe.arg_arrays])
        print(exe.forward()[0].shape)
    """
    text = printed(WITHOUT_GRADIENTS, afterwards, tmp_path)
    assert text == "Executor [None, None, None] [(5, 4), (4, 4), (4,)]\n(5, 4)\n"


def test_a_session_that_builds_binds_and_trains_a_module_shows_what_mxnet_showed(capsys):
    import numpy as np

    import symbind as mx

    train = mx.io.NDArrayIter(np.random.RandomState(0).rand(256, 3, 8, 8), np.arange(256) % 10, 128)
    test = doctest.DocTestParser().get_doctest(SESSION, {"mx": mx, "train": train}, "session", None, 0)
    failures = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed
    assert failures == 0, capsys.readouterr().out

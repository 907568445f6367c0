"""What is wrong is said in a Python exception; what a callback throws reaches the caller. Nothing here may crash."""

import traceback

import numpy as np
import pytest

import symbind as mx

# Calls that are wrong


def x():
    return mx.sym.Variable("x")


WRONG_CALLS = {
    "a keyword misspelt": (lambda: mx.sym.Convolution(x(), kernal=(3, 3), num_filter=2), "kernal.*kernel, stride"),
    "a keyword misspelt on arrays": (lambda: mx.nd.Activation(mx.nd.zeros(2), akt_type="relu"), "akt_type.*act_type"),
    "a choice misspelt": (lambda: mx.sym.Activation(x(), act_type="rleu"), "rleu|relu, sigmoid"),
    "a parameter left out": (lambda: mx.sym.FullyConnected(x()), "num_hidden"),
    "a parameter of another type": (lambda: mx.sym.Convolution(x(), kernel="big", num_filter=2), "kernel.*big"),
    "a parameter out of range": (lambda: mx.sym.FullyConnected(x(), num_hidden=-1), "num_hidden.*-1"),
    "an input that is not there": (lambda: mx.sym.FullyConnected(x(), wait=x(), num_hidden=1), "wait.*weight"),
    "an operator that is not there": (lambda: mx.sym.NoSuchOperator(x()), "NoSuchOperator"),
    "an array where a symbol is expected": (
        lambda: mx.sym.FullyConnected(mx.nd.zeros((2, 2)), num_hidden=1),
        "NDArray",
    ),
    "a symbol where an array is expected": (lambda: mx.nd.FullyConnected(x(), num_hidden=1), "Symbol"),
    "NumPy where a symbol is expected": (lambda: mx.sym.FullyConnected(np.zeros((2, 2)), num_hidden=1), "ndarray"),
    "NumPy where an array is expected": (lambda: mx.nd.FullyConnected(np.zeros((2, 2)), num_hidden=1), "ndarray"),
    "text where a symbol is expected": (
        lambda: mx.sym.FullyConnected(data="data", num_hidden=1),
        "input data.*Symbol.*str",
    ),
    "a number where an array is expected": (
        lambda: mx.nd.Activation(data=3, act_type="relu"),
        "input data.*NDArray.*int",
    ),
    "None in a group": (lambda: mx.sym.Group([x(), None]), "symbols"),
    "None in a sum": (lambda: x() + None, "NoneType"),
    "NumPy in a sum": (lambda: mx.nd.zeros(2) + np.zeros(2), "NumPy.*mx.nd.array"),
    "NumPy before an array": (lambda: np.zeros(2) + mx.nd.zeros(2), "NumPy.*mx.nd.array"),
    "NumPy compared": (lambda: mx.nd.zeros(2) == np.zeros(2), "NumPy.*mx.nd.array"),
    "NumPy added in place": (lambda: mx.nd.zeros(2).__iadd__(np.zeros(2)), "NumPy.*mx.nd.array"),
    "the truth of a symbol": (lambda: bool(x()), "no values, so bool"),
    "an initializer of another type": (lambda: mx.init.Xavier(magnitude="big"), "Xavier.*magnitude='big'"),
    "None for a name": (lambda: mx.sym.Variable(None), "name"),
    "None concatenated": (lambda: mx.sym.Concat(x(), None, x()), "None"),
    "None to load": (lambda: mx.sym.load(None), None),
    "a wrong file": (lambda: mx.nd.load("there/is/no/such/file"), "no/such/file"),
    "a device to load": (lambda: mx.sym.load("/dev/zero"), "/dev/zero.*not a regular file"),
    "a directory to load": (lambda: mx.nd.load("/"), "directory"),
    "a path with NUL": (lambda: mx.nd.save("a\0b", [mx.nd.zeros(1)]), r"a\\x00b.*NUL"),
    "bytes that are not UTF-8": (
        lambda: mx.optimizer.get_updater(mx.optimizer.SGD()).set_states(b"F\xff\n."),
        r"found \\xff",
    ),
    "a wrong network": (lambda: mx.sym.load_json("{"), "JSON"),
    "a wrong shape": (lambda: mx.nd.zeros((2, "a")), "integer"),
    "a negative shape": (lambda: mx.nd.zeros((2, -3)), "-3"),
    "a wrong type": (lambda: mx.nd.zeros((2, 3), dtype="float33"), "float33"),
    "a wrong context": (lambda: mx.nd.zeros(2, ctx="tpu"), "tpu"),
    "a device that is not here": (lambda: mx.nd.zeros(2, ctx=mx.gpu(99)), "gpu"),
    "rows of different lengths": (lambda: mx.nd.array([[1, 2], [3]]), None),
    "words for an array": (lambda: mx.nd.array(["a", "b"]), None),
    "an array of records": (lambda: mx.nd.array(np.zeros(2, dtype=[("a", "f4"), ("b", "i4")])), None),
    "an index too large": (lambda: mx.nd.zeros((2,))[5], "5"),
    "an index that is text": (lambda: mx.nd.zeros((2,))["a"], None),
    "values that do not fit": (lambda: mx.nd.zeros((2, 3)).__setitem__(slice(None), np.zeros((4, 5))), "4"),
    "shapes that do not match": (lambda: mx.nd.zeros((2, 3)) + mx.nd.zeros((4,)), "lhs|rhs"),
    "a shape of another size": (lambda: mx.nd.zeros((2,)).reshape((3,)), "3"),
    "shapes of unknown names": (lambda: x().simple_bind(mx.cpu(), y=(2,)), "x"),
    "shapes missing": (lambda: (x() + mx.sym.Variable("y")).simple_bind(mx.cpu()), "x"),
    "arrays missing": (lambda: x().bind(mx.cpu(), {}), "x"),
    "None among the arrays": (lambda: x().bind(mx.cpu(), [None]), "x"),
    "NumPy among the arrays": (lambda: x().bind(mx.cpu(), {"x": np.zeros(2)}), "NDArray"),
    "a wrong grad_req": (lambda: x().bind(mx.cpu(), [mx.nd.zeros(2)], grad_req="wriet"), "wriet"),
    "an output that is not there": (lambda: x().get_internals()["y_output"], "y_output"),
    "an argument that is not there": (lambda: x().simple_bind(mx.cpu(), x=(2,)).forward(y=mx.nd.zeros(2)), "y.*x"),
    "no context": (lambda: x().bind(3, [mx.nd.zeros(2)]), "[Cc]ontext"),
}


@pytest.mark.parametrize("call", WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_a_wrong_call_says_what_is_wrong(call):
    function, says = call
    with pytest.raises((TypeError, ValueError, IndexError, AttributeError, mx.MXNetError), match=says) as caught:
        function()
    assert len(str(caught.value)) > 10
    assert "std::" not in str(caught.value)


def small_module(batch_size=4, **options):
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), name="fc", num_hidden=3), name="softmax")
    module = mx.mod.Module(net, **options)
    module.bind(data_shapes=[("data", (batch_size, 5))], label_shapes=[("softmax_label", (batch_size,))])
    module.init_params(mx.init.Uniform(0.1))
    module.init_optimizer()
    return module


def small_iter():
    return mx.io.NDArrayIter(np.random.RandomState(0).rand(16, 5), np.arange(16) % 3, 4)


def batch(data=None, label=None):
    data = mx.nd.zeros((4, 5)) if data is None else data
    return mx.io.DataBatch([data], [mx.nd.zeros((4,)) if label is None else label])


WRONG_USES = {
    "no symbol": (lambda: mx.mod.Module(None), None),
    "an unknown input": (lambda: mx.mod.Module(x(), data_names=["data"]), "data"),
    "an unknown fixed parameter": (lambda: small_module(fixed_param_names=["fc_wait"]), "fc_wait"),
    "other names bound": (
        lambda: mx.mod.Module(x(), data_names=["x"], label_names=None).bind([("y", (2,))]),
        "y|x",
    ),
    "a shape that cannot be": (lambda: mx.mod.Module(x() + x(), ["x"], None).bind([("x", "ab")]), None),
    "a batch of another width": (lambda: small_module().forward(batch(mx.nd.zeros((4, 6)))), "6"),
    "None for a batch": (lambda: small_module().forward(None), None),
    "a list for a batch": (lambda: small_module().forward([1, 2]), None),
    "NumPy in a batch": (lambda: small_module().forward(batch("nonsense")), None),
    "a pad that is not a number": (
        lambda: small_module().forward(mx.io.DataBatch([mx.nd.zeros((2, 2))], [mx.nd.zeros(2)], pad=1.5)),
        "pad.*1.5",
    ),
    "parameters missing": (lambda: small_module().set_params({}, {}), "fc_"),
    "parameters of another shape": (
        lambda: small_module().set_params({"fc_weight": mx.nd.zeros((9, 9)), "fc_bias": mx.nd.zeros(3)}, {}),
        None,
    ),
    "an unknown optimizer": (lambda: small_module().init_optimizer(optimizer="sdg", force_init=True), "sdg"),
    "an unknown parameter of one": (
        lambda: small_module().init_optimizer(optimizer_params={"learing_rate": 1}, force_init=True),
        "learing_rate",
    ),
    "an unknown metric": (lambda: mx.metric.create("acuracy"), "acuracy"),
    "an unknown initializer": (lambda: mx.init.create("xavir"), "xavir"),
    "an unknown store": (lambda: mx.kv.create("lokal"), "lokal"),
    "no number of epochs": (lambda: small_module().fit(small_iter()), "epoch"),
    "nothing to fit": (lambda: small_module().fit(None, num_epoch=1), None),
    "a number to fit": (lambda: small_module().fit(3, num_epoch=1), None),
    "a callback that cannot be called": (
        lambda: small_module().fit(small_iter(), num_epoch=1, batch_end_callback=3),
        None,
    ),
    "data of different lengths": (lambda: mx.io.NDArrayIter(np.zeros((4, 2)), np.zeros(5), 2), "4|5"),
    "prediction before binding": (lambda: mx.mod.Module(x(), ["x"], None).predict(small_iter()), None),
    "input gradients that were not asked for": (lambda: small_module().get_input_grads(), None),
    "a checkpoint that is not there": (lambda: mx.model.load_checkpoint("no/such/model", 3), "no/such/model"),
}


@pytest.mark.parametrize("use", WRONG_USES.values(), ids=WRONG_USES)
def test_a_wrong_use_of_a_module_says_what_is_wrong(use):
    function, says = use
    expected = (TypeError, ValueError, AttributeError, AssertionError, RuntimeError, OSError)
    with pytest.raises(expected, match=says) as caught:
        function()
    assert "std::" not in str(caught.value)


# NumPy arrays as they come

SOURCE = np.arange(24).reshape(4, 6) % 7
UNALIGNED = np.frombuffer(b"\0" + SOURCE.astype(np.float32).tobytes(), dtype=np.uint8)[1:].view(np.float32)
READ_ONLY = SOURCE.astype(np.float32)
READ_ONLY.flags.writeable = False
ODD_ARRAYS = {
    "float16": SOURCE.astype(np.float16),
    "longdouble": SOURCE.astype(np.longdouble),
    "big-endian": SOURCE.astype(">f4"),
    "big-endian integers": SOURCE.astype(">i8"),
    "uint16": SOURCE.astype(np.uint16),
    "uint64": SOURCE.astype(np.uint64),
    "bool": SOURCE > 3,
    "objects": SOURCE.astype(object),
    "every second": SOURCE[::2, ::3],
    "backwards": SOURCE[::-1, ::-1],
    "transposed": SOURCE.T,
    "column by column": np.asfortranarray(SOURCE),
    "one value repeated": np.broadcast_to(np.float32(3), (4, 5)),
    "a row repeated": np.broadcast_to(np.arange(5), (3, 5)),
    "unaligned": UNALIGNED.reshape(4, 6),
    "read-only": READ_ONLY,
    "a matrix with no rows": np.zeros((0, 3)),
    "a masked array": np.ma.masked_array(SOURCE, mask=False),
    "a number": np.float64(2.5),
}


@pytest.mark.parametrize("source", ODD_ARRAYS.values(), ids=ODD_ARRAYS)
def test_an_odd_numpy_array_is_read_as_numpy_reads_it(source):
    wanted = np.asarray(source).astype(np.float32)
    got = mx.nd.array(source)
    np.testing.assert_array_equal(got.asnumpy(), wanted.reshape(wanted.shape or (1,)))
    target = mx.nd.zeros(got.shape)
    target[:] = source
    np.testing.assert_array_equal(target.asnumpy(), got.asnumpy())
    np.testing.assert_array_equal((mx.nd.zeros(got.shape) + got).asnumpy(), got.asnumpy())


def test_an_iterator_takes_odd_numpy_arrays():
    for name in ("float16", "big-endian", "every second", "transposed", "bool", "read-only"):
        source = ODD_ARRAYS[name]
        batches = mx.io.NDArrayIter(source, batch_size=2, last_batch_handle="discard")
        got = np.concatenate([b.data[0].asnumpy() for b in batches])
        np.testing.assert_array_equal(got, source[: len(got)])


def test_what_asnumpy_gives_is_a_copy():
    array = mx.nd.zeros((3,))
    array.asnumpy()[:] = 5
    assert (array.asnumpy() == 0).all()


# Callbacks that throw


class Thrown(Exception):
    pass


THROWN = Thrown("out of a callback")


def throw(*_, **__):
    raise THROWN


class ThrowingMetric(mx.metric.EvalMetric):
    def __init__(self):
        super().__init__("throwing")

    update = throw


class ThrowingIter(mx.io.DataIter):
    provide_data = [mx.io.DataDesc("data", (4, 5))]
    provide_label = [mx.io.DataDesc("softmax_label", (4,))]
    next = throw

    def reset(self):
        pass


class ThrowingOptimizer(mx.optimizer.Optimizer):
    def create_state(self, index, weight):
        return None

    update = throw


class ThrowingInitializer(mx.init.Initializer):
    _init_weight = throw


class ThrowingScheduler(mx.lr_scheduler.LRScheduler):
    __call__ = throw


class ThrowingOp(mx.operator.CustomOp):
    forward = throw


@mx.operator.register("throwing_op")
class ThrowingProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return ThrowingOp()


def fit(train=None, **options):
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), name="fc", num_hidden=3)
    module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))
    module.fit(small_iter() if train is None else train, **{"num_epoch": 1, **options})


def install_throwing_monitor():
    executor = (x() * 2).simple_bind(mx.cpu(), x=(2,))
    executor.set_monitor_callback(throw)
    executor.forward()


THROWING = {
    "batch_end_callback": lambda: fit(batch_end_callback=throw),
    "one of several callbacks": lambda: fit(batch_end_callback=[lambda _: None, throw]),
    "epoch_end_callback": lambda: fit(epoch_end_callback=throw),
    "eval_end_callback": lambda: fit(eval_data=small_iter(), eval_end_callback=throw),
    "eval_batch_end_callback": lambda: fit(eval_data=small_iter(), eval_batch_end_callback=throw),
    "metric": lambda: fit(eval_metric=ThrowingMetric()),
    "metric function": lambda: fit(eval_metric=mx.metric.np(throw)),
    "iterator": lambda: fit(train=ThrowingIter(4)),
    "iterator inside another": lambda: fit(train=mx.io.ResizeIter(ThrowingIter(4), 2)),
    "optimizer": lambda: fit(optimizer=ThrowingOptimizer(rescale_grad=0.25)),
    "initializer": lambda: fit(initializer=ThrowingInitializer()),
    "scheduler": lambda: fit(optimizer_params={"lr_scheduler": ThrowingScheduler()}),
    "monitor": lambda: fit(monitor=mx.mon.Monitor(1, stat_func=throw)),
    "monitor callback": install_throwing_monitor,
    "custom operator": lambda: mx.nd.Custom(mx.nd.zeros(2), op_type="throwing_op").asnumpy(),
    "score": lambda: small_module().score(small_iter(), ThrowingMetric()),
}


@pytest.mark.parametrize("use", THROWING.values(), ids=THROWING)
def test_what_a_callback_throws_reaches_the_caller_with_its_traceback(use):
    with pytest.raises(Thrown) as caught:
        use()
    assert caught.value is THROWN
    assert "throw" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


def test_a_module_goes_on_after_a_callback_has_thrown():
    module = small_module()
    with pytest.raises(Thrown):
        module.fit(small_iter(), num_epoch=1, batch_end_callback=throw)
    module.fit(small_iter(), num_epoch=2)
    assert module.score(small_iter(), "acc")[0][0] == "accuracy"


def test_exceptions_have_the_types_that_scripts_catch():
    executor = (x() * 2).simple_bind(mx.cpu(), x=(2,))
    with pytest.raises(ValueError):
        x()["y_output"]
    with pytest.raises(TypeError):
        executor.forward(y=mx.nd.zeros(2))
    with pytest.raises(ValueError):
        executor.copy_params_from({"y": mx.nd.zeros(2)})
    with pytest.raises(IndexError):
        mx.nd.zeros(2)[3]
    with pytest.raises(AttributeError):
        mx.sym.no_such_operator  # noqa: B018
    with pytest.raises(RuntimeError):  # which MXNetError is
        mx.nd.dot(mx.nd.zeros((2, 3)), mx.nd.zeros((2, 3)))

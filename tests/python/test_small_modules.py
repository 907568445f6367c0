"""engine, util, profiler, libinfo, log, registry, executor_manager, and what is not part of Symbind."""

import array
import ctypes
import importlib
import inspect
import logging
import os
import subprocess
import sys

import pytest

import symbind as mx


def test_bulk_sizes_are_kept():
    before = mx.engine.set_bulk_size(10)
    with mx.engine.bulk(20):
        assert mx.engine.set_bulk_size(20) == 20
    assert mx.engine.set_bulk_size(before) == 10


def test_numpy_arrays_are_refused():
    assert not mx.util.is_np_array()
    with mx.util.np_array(False):
        pass
    for call in (mx.util.set_np, mx.util.np_array, lambda: mx.util.use_np(len)):
        with pytest.raises(NotImplementedError, match="not part of Symbind"):
            call()
    assert not mx.util.is_np_shape()


def test_numpy_shapes_are_on_inside_their_scope():
    assert not mx.util.is_np_shape()
    with mx.util.np_shape():
        assert mx.util.is_np_shape()
        with mx.util.np_shape(False):
            assert not mx.util.is_np_shape()
        assert mx.util.is_np_shape()
    assert mx.util.set_np_shape(True) is False and mx.util.set_np_shape(False) is True

    @mx.util.use_np_shape
    def fails():
        assert mx.util.is_np_shape()
        raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert not mx.util.is_np_shape()

    @mx.util.use_np_shape
    class Counter:
        def active(self):
            return mx.util.is_np_shape()

    assert Counter().active() and not mx.util.is_np_shape()


def test_with_numpy_shapes_one_element_has_no_axis():
    array = mx.nd.array([[1, 2], [3, 4]])
    assert array[1][0].shape == array[1, 0].shape == mx.nd.array(3).shape == (1,)
    with mx.util.np_shape():
        assert array[1][0].shape == array[1, 0].shape == mx.nd.array(3).shape == ()
        assert array[1, 0].asscalar() == 3 and (array[1, 0] + array).shape == (2, 2)
        assert array.sum().shape == (1,)  # as MXNet's reductions have it


def test_with_numpy_shapes_zero_is_an_extent_and_minus_one_is_unknown():
    net = mx.sym.FullyConnected(mx.sym.Variable("a"), num_hidden=3)
    assert net.infer_shape_partial(a=(0, 4))[1] == [(0, 3)]  # unknown
    with pytest.warns(UserWarning, match="cannot be decided: a"):
        assert mx.sym.Variable("a", shape=(0, 3)).infer_shape() == (None, None, None)
    with mx.util.np_shape():
        assert net.infer_shape(a=(0, 4))[:2] == ([(0, 4), (3, 4), (3,)], [(0, 3)])
        assert net.infer_shape_partial(a=(-1, 4))[:2] == ([(-1, 4), (3, 4), (3,)], [(-1, 3)])
        assert mx.sym.Variable("a", shape=(0, 3)).infer_shape()[0] == [(0, 3)]
        assert mx.sym.Variable("a", shape=(-1, 3)).infer_shape_partial()[0] == [(-1, 3)]
        assert mx.sym.Variable("a").infer_shape(a=())[0] == [()]
        assert mx.sym.zeros((0, 3)).eval(ctx=mx.cpu())[0].shape == (0, 3)


def test_util_tells_of_gpus_and_the_environment(tmp_path):
    assert mx.util.get_gpu_count() == mx.num_gpus()
    with pytest.raises(mx.MXNetError, match="not available"):
        mx.util.get_gpu_memory(mx.num_gpus())
    mx.util.makedirs(str(tmp_path / "a" / "b"))
    mx.util.makedirs(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()
    mx.util.setenv("SYMBIND_TEST_VARIABLE", 3)
    assert mx.util.getenv("SYMBIND_TEST_VARIABLE") == "3"
    mx.util.setenv("SYMBIND_TEST_VARIABLE", None)
    assert mx.util.getenv("SYMBIND_TEST_VARIABLE") is None


def test_the_profiler_has_its_old_names_and_refuses_nonsense():
    mx.profiler.profiler_set_config(mode="symbolic", filename="x.json")
    mx.profiler.profiler_set_state("run")
    mx.profiler.profiler_set_state("stop")
    for call in (lambda: mx.profiler.set_state("go"), lambda: mx.profiler.dumps(sort_by="colour")):
        with pytest.raises(ValueError):
            call()


def test_libinfo_finds_the_library():
    assert mx.__version__ == mx.libinfo.__version__ == "1.9.1"
    assert all(os.path.exists(path) for path in mx.libinfo.find_lib_path())
    assert "libsymbind" in os.path.basename(mx.libinfo.find_lib_path()[0])


def test_a_logger_writes_to_its_file_once(tmp_path):
    path = tmp_path / "log"
    for _ in range(2):
        logger = mx.log.get_logger("symbind_test_log", str(path), level=mx.log.INFO)
    logger.info("%d batches", 3)
    logger.debug("not shown")
    (line,) = path.read_text().splitlines()
    assert line.startswith("[I ") and line.endswith("3 batches")
    handlers = list(logging.getLogger().handlers)
    assert mx.log.getLogger() is logging.getLogger() and logging.getLogger().handlers == handlers


def test_a_registry_makes_classes_by_name():
    class Base:
        def __init__(self, size=1):
            self.size = size

    register = mx.registry.get_register_func(Base, "thing")
    alias = mx.registry.get_alias_func(Base, "thing")
    create = mx.registry.get_create_func(Base, "thing")

    @alias("other", "third")
    @register
    class Mine(Base):
        pass

    assert set(mx.registry.get_registry(Base)) == {"mine", "other", "third"}
    assert create("MINE", size=2).size == 2 and isinstance(create("third"), Mine)
    assert create('["mine", {"size": 3}]').size == 3
    assert create('{"thing": "mine", "size": 4}').size == 4
    made = Mine()
    assert create(made) is made
    with pytest.raises(ValueError, match="mine, other, third"):
        create("nothing")
    with pytest.raises(TypeError):
        register(int)


def test_a_batch_is_split_by_work_load():
    split = mx.executor_manager._split_input_slice
    assert split(10, [1, 1, 1]) == [slice(0, 3), slice(3, 6), slice(6, 10)]
    assert split(7, [1, 2]) == [slice(0, 2), slice(2, 7)]
    assert split(10, [1, 2, 1]) == [slice(0, 2), slice(2, 7), slice(7, 10)]  # 2.5 is rounded to even
    for wrong in ((2, [1, 1, 1]), (4, []), (4, [1, 0])):
        with pytest.raises(ValueError):
            split(*wrong)


def test_arguments_of_one_name_are_found():
    twice = mx.sym.Variable("a") + mx.sym.Variable("a")
    with pytest.raises(ValueError, match="a occurs twice"):
        mx.executor_manager._check_arguments(twice)
    mx.executor_manager._check_arguments(mx.sym.Variable("a") + mx.sym.Variable("b"))


def test_batches_are_loaded_into_slices():
    whole, first, second = mx.nd.zeros((4, 2)), mx.nd.zeros((1, 2)), mx.nd.zeros((3, 2))
    source = mx.nd.arange(8).reshape((4, 2))
    mx.executor_manager._load_general([source, source], [whole, [(slice(0, 1), first), (slice(1, 4), second)]])
    assert whole.asnumpy().tolist() == source.asnumpy().tolist()
    assert first.asnumpy().tolist() == [[0, 1]] and second.asnumpy()[2].tolist() == [6, 7]


@pytest.mark.parametrize("name", ["gluon", "autograd", "np", "npx", "numpy_extension", "onnx", "rtc", "torch"])
def test_what_is_not_part_of_symbind_says_so(name):
    with pytest.raises(AttributeError, match="not part of Symbind"):
        getattr(mx, name)
    with pytest.raises(ImportError, match="not part of Symbind"):
        importlib.import_module(f"symbind.{name}")
    with pytest.raises(ImportError, match="not part of Symbind"):
        exec(f"from symbind import {name}")
    assert not hasattr(mx, name) and name not in dir(mx)


def test_the_package_can_be_listed():
    names = {name for name, _ in inspect.getmembers(mx)}
    assert {"sym", "nd", "viz", "test_utils", "profiler", "engine", "util"} <= names
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = mx.nonsense


def test_old_names_of_modules():
    assert issubclass(mx.misc.FactorScheduler, mx.lr_scheduler.LRScheduler)
    assert mx._symbol_internal is mx.sym._internal


def test_import_leaves_slow_modules_for_later():
    code = (
        "import sys, symbind as mx; late = {'symbind.test_utils', 'symbind.visualization'};"
        "assert not late & set(sys.modules); mx.viz; mx.test_utils; assert late <= set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_classes_are_found_under_the_paths_of_mxnets_files():
    assert importlib.import_module("symbind.ndarray.ndarray").NDArray is mx.nd.ndarray.NDArray is mx.nd.NDArray
    assert importlib.import_module("symbind.symbol.symbol").Symbol is mx.sym.symbol.Symbol is mx.sym.Symbol


def test_the_default_context_is_read_and_set():
    assert mx.Context.default_ctx == mx.cpu(0)
    assert mx.Context.devstr2type["cpu_pinned"] == 3 and mx.Context.devtype2str[2] == "gpu"
    with mx.cpu(3):
        mx.Context.default_ctx = mx.cpu(4)
        assert mx.current_context() == mx.cpu(4) == mx.Context.default_ctx
    assert mx.current_context() == mx.cpu(0)
    mx.Context.default_ctx = mx.cpu(2)
    try:
        assert mx.nd.zeros((1,)).context == mx.cpu(2)
        with mx.cpu(1):
            assert mx.current_context() == mx.cpu(1)
        assert mx.current_context() == mx.cpu(2)
    finally:
        mx.Context.default_ctx = mx.cpu(0)


def test_the_first_factor_scheduler_falls_by_powers():
    schedule = mx.misc.FactorScheduler(10)
    assert [schedule(k) for k in (0, 5, 10, 25)] == pytest.approx([0.01, 0.01, 0.001, 0.0001])
    optimizer = mx.optimizer.SGD(learning_rate=0.5, lr_scheduler=mx.misc.FactorScheduler(1, 0.5))
    assert optimizer.lr_scheduler(2) == pytest.approx(0.125)
    for wrong in ((0,), (1, 1)):
        with pytest.raises(ValueError):
            mx.misc.FactorScheduler(*wrong)
    with pytest.raises(NotImplementedError):
        mx.misc.LearningRateScheduler()(1)


def test_names_of_the_c_interface_can_be_imported_and_work_without_a_library():
    from symbind.base import (  # noqa: F401
        _LIB,
        ExecutorHandle,
        NDArrayHandle,
        OptimizerCreator,
        OptimizerHandle,
        SymbolHandle,
        c_array,
        c_array_buf,
        c_handle_array,
        c_str,
        c_str_array,
        check_call,
        ctypes2buffer,
        ctypes2numpy_shared,
        mx_float,
        mx_float_p,
        mx_int,
        mx_uint,
    )

    assert NDArrayHandle().value is None and mx_int(-3).value == -3
    assert c_str("é").value == "é".encode() and c_str_array(["a", "b"])[:] == [b"a", b"b"]
    assert list(c_array(mx_uint, [1, 2])) == list(c_array_buf(mx_uint, array.array("I", [1, 2]))) == [1, 2]
    numbers = c_array(mx_float, range(6))
    shared = ctypes2numpy_shared(ctypes.cast(numbers, mx_float_p), (2, 3))
    numbers[5] = 7
    assert shared.tolist() == [[0, 1, 2], [3, 4, 7]]
    assert ctypes2buffer(ctypes.cast(c_str("text"), ctypes.POINTER(ctypes.c_char)), 2) == b"te"
    assert check_call(0) is None
    with pytest.raises(mx.MXNetError, match="returned -1"):
        check_call(-1)
    with pytest.raises(AttributeError, match="_LIB.MXGetGPUCount: Symbind has no C interface"):
        check_call(_LIB.MXGetGPUCount(None))


def test_documentation_of_parameters_is_laid_out_as_mxnets():
    given = ["a", "b", "a"], ["int", "float, optional", "x"], ["first", "", "again"]
    assert mx.base.build_param_doc(*given) == "Parameters\n----------\na : int\n    first\nb : float, optional\n"
    assert mx.base.build_param_doc(*given, False).endswith("optional\na : x\n    again\n")


def test_base_has_the_paths_and_errors_scripts_take_from_it():
    assert mx.base.__version__ == mx.__version__ and mx.base.data_dir_default().endswith(".mxnet")
    assert mx.base._as_list(obj=(1, 2)) == [1, 2]
    assert "sparse" in str(mx.base.NotSupportedForSparseNDArray(len, "retain", 3))
    with pytest.raises(ValueError, match="GPU"):
        mx.util.get_cuda_compute_capability(mx.cpu())

"""Arrays: creation, indexing, arithmetic, conversion, files."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symbind as mx

from_dlpack = getattr(np, "from_dlpack", None) or np._from_dlpack  # NumPy 1.22 has it under its first name


def test_creation_follows_mxnet_defaults():
    assert mx.nd.array([1, 2]).dtype == np.float32
    assert mx.nd.array(np.arange(3, dtype=np.int64)).dtype == np.float32
    assert mx.nd.array(np.arange(3), dtype="int32").dtype == np.int32
    assert mx.nd.array(mx.nd.zeros((2,), dtype="float64")).dtype == np.float64
    assert mx.nd.zeros(3).shape == (3,)
    assert mx.nd.full((2, 2), 7).asnumpy().tolist() == [[7, 7], [7, 7]]
    assert mx.nd.arange(3).asnumpy().tolist() == [0, 1, 2]
    assert mx.nd.arange(1, 3, step=0.5, repeat=2).asnumpy().tolist() == [1, 1, 1.5, 1.5, 2, 2, 2.5, 2.5]
    assert mx.nd.array(5).shape == (1,)
    assert mx.nd.concatenate([mx.nd.ones((1, 2)), mx.nd.zeros((2, 2))]).shape == (3, 2)
    assert mx.nd.moveaxis(mx.nd.zeros((2, 3, 4)), 0, 2).shape == (3, 4, 2)


def test_every_dtype_survives_a_round_trip():
    for dtype in ("float32", "float64", "float16", "uint8", "int8", "int32", "int64", "bool"):
        values = np.array([[0, 1], [2, 3]]).astype(dtype)
        array = mx.nd.array(values, dtype=dtype)
        assert array.dtype == np.dtype(dtype).type
        assert array.asnumpy().dtype == values.dtype
        np.testing.assert_array_equal(array.asnumpy(), values)
    half = mx.nd.array([1, 1 + 2.0**-8], dtype="bfloat16")
    assert half.dtype == "bfloat16"
    assert half.asnumpy().tolist() == [1, 1]


def test_arrays_of_odd_dtype_and_stride():
    values = np.arange(24, dtype=">f8").reshape(4, 6)[::-2, 1::2]
    np.testing.assert_array_equal(mx.nd.array(values).asnumpy(), values.astype(np.float32))
    np.testing.assert_array_equal(mx.nd.array(np.asfortranarray(values)).asnumpy(), values)
    with pytest.raises(TypeError, match="uint16"):
        mx.nd.array([1], dtype=np.uint16)
    with pytest.raises(TypeError):
        mx.nd.array([[1, 2], [3]])
    with pytest.raises(TypeError):
        mx.nd.array("text")


def test_asnumpy_copies():
    array = mx.nd.zeros((2,))
    values = array.asnumpy()
    values[:] = 1
    assert array.asnumpy().tolist() == [0, 0]


def test_views_and_copies():
    array = mx.nd.arange(12).reshape((3, 4))
    array[1][:] = -1
    array[0:1][:] = 5
    array.reshape((4, 3))[3] = 9
    np.testing.assert_array_equal(array.asnumpy(), [[5] * 4, [-1] * 4, [8, 9, 9, 9]])
    column = array[:, 1:3]
    column[:] = 0
    assert array.asnumpy()[0, 1] == 5
    vector = mx.nd.arange(4)
    vector[1:3][:] = -1
    assert vector.asnumpy().tolist() == [0, -1, -1, 3]


@pytest.mark.parametrize("key", [Ellipsis, ()])
def test_all_of_an_array_is_a_view(key):
    array = mx.nd.arange(6).reshape((3, 2))
    array[key][:] = -1
    assert array[key].shape == (3, 2) and (array.asnumpy() == -1).all()
    with mx.util.np_shape():
        element = mx.nd.array(3)
        assert element[key].shape == () and element[key].asscalar() == 3


def keys(shape):
    """Index expressions that NumPy and we take, for an array of this shape."""
    axis_key = [st.one_of(st.integers(-n, n - 1), st.slices(n)) for n in shape]
    basic = st.integers(1, len(shape)).flatmap(lambda n: st.tuples(*axis_key[:n]))
    rows = st.lists(st.integers(-shape[0], shape[0] - 1), min_size=1, max_size=4)
    return st.one_of(
        basic,
        st.tuples(st.just(Ellipsis), axis_key[-1]),
        st.tuples(st.none(), axis_key[0]),
        rows,
        rows.map(np.array),
        st.tuples(rows, axis_key[1]),
    )


@given(keys((3, 4, 2)))
@settings(max_examples=200, deadline=None)
def test_indexing_is_numpys(key):
    values = np.arange(24, dtype=np.float32).reshape(3, 4, 2)
    array = mx.nd.array(values)
    expected = values[key]
    assert array[key].shape == (expected.shape or (1,))
    np.testing.assert_array_equal(array[key].asnumpy(), np.atleast_1d(expected))

    changed = values.copy()
    changed[key] = -1
    array[key] = -1
    np.testing.assert_array_equal(array.asnumpy(), changed)


@pytest.mark.parametrize("source, destination", [(0, 2), (-1, 0), ([0, 1], [-1, -2]), ((2, 0), (0, 1)), (1, 1)])
def test_axes_are_moved_as_numpy_moves_them(source, destination):
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    moved = mx.nd.moveaxis(mx.nd.array(values), source, destination)
    np.testing.assert_array_equal(moved.asnumpy(), np.moveaxis(values, source, destination))


@pytest.mark.parametrize(
    "source, destination, message",
    [(3, 0, "out of bounds"), (0, -4, "out of bounds"), ([0, 0], [1, 2], "twice"), ([0, 1], [2, -1], "twice")],
)
def test_axes_that_are_not_there_cannot_be_moved(source, destination, message):
    with pytest.raises(ValueError, match=message):
        mx.nd.moveaxis(mx.nd.zeros((2, 3, 4)), source, destination)


@pytest.mark.parametrize("key", [(slice(None), 1), [2, 0], (slice(None, None, -1), 0), (1, 1)])
def test_indexing_of_bfloat16_is_numpys(key):
    values = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
    array = mx.nd.array(values).astype("bfloat16")
    assert array[key].dtype == "bfloat16"
    np.testing.assert_array_equal(array[key].asnumpy(), np.atleast_1d(values[key]))
    array[key] = 9
    values[key] = 9
    np.testing.assert_array_equal(array.asnumpy(), values)


@pytest.mark.parametrize("key", [slice(3, 1), slice(4, None), slice(-1, 1), slice(9, 12)])
def test_a_slice_whose_end_is_before_its_start_is_empty(key):
    values = np.arange(8, dtype=np.float32).reshape(4, 2)
    array = mx.nd.array(values)
    empty = array[key]
    assert empty.shape == values[key].shape == (0, 2) and empty.asnumpy().shape == (0, 2)
    array[key] = 7
    np.testing.assert_array_equal(array.asnumpy(), values)
    assert mx.nd.array([1, 2, 3, 4])[3:1].shape == (0,)


def test_iterating_goes_along_the_first_axis():
    assert [row.shape for row in mx.nd.zeros((3, 4))] == [(4,)] * 3
    assert [value.asscalar() for value in mx.nd.array([1, 2, 3])] == [1, 2, 3]


def test_indexing_with_arrays_and_masks():
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    array = mx.nd.array(values)
    np.testing.assert_array_equal(array[mx.nd.array([1, 0, 1])].asnumpy(), values[[1, 0, 1]])
    mask = mx.nd.array([[1, 0, 1], [0, 1, 0]], dtype="bool")
    np.testing.assert_array_equal(array[mask].asnumpy(), [0, 2, 4])
    array[mask] = mx.nd.array([7, 8, 9])
    np.testing.assert_array_equal(array.asnumpy(), [[7, 1, 8], [3, 9, 5]])
    array[:] = np.ones((2, 3))
    array[0] = [4, 5, 6]
    np.testing.assert_array_equal(array.asnumpy(), [[4, 5, 6], [1, 1, 1]])


@pytest.mark.parametrize(
    "name, expected",
    [
        ("lesser", [0, 0, 1]),
        ("lesser_equal", [0, 1, 1]),
        ("greater", [1, 0, 0]),
        ("greater_equal", [1, 1, 0]),
        ("equal", [0, 1, 0]),
        ("not_equal", [1, 0, 1]),
    ],
)
def test_a_number_is_compared_with_an_array_from_its_side(name, expected):
    compare = getattr(mx.nd, name)
    array = mx.nd.array([1, 2, 3])
    assert compare(2, array).asnumpy().tolist() == expected
    assert compare(array * 0 + 2, array).asnumpy().tolist() == expected
    assert [compare(2, value) for value in (1, 2, 3)] == expected
    assert compare(array, 2).asnumpy().tolist() == [compare(value, 2) for value in (1, 2, 3)]


@pytest.mark.parametrize("key", [5, -4, (0, 9), "x", 1.5])
def test_bad_keys_are_exceptions(key):
    with pytest.raises((IndexError, TypeError, ValueError)):
        mx.nd.zeros((3, 4))[key]
    with pytest.raises((IndexError, TypeError, ValueError)):
        mx.nd.zeros((3, 4))[key] = 1


def test_arithmetic():
    a, b = mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([10, 20])
    x, y = a.asnumpy(), b.asnumpy()
    for ours, numpys in [
        (a + b, x + y),
        (a - 1, x - 1),
        (1 - a, 1 - x),
        (a * b, x * y),
        (a / 2, x / 2),
        (2 / a, 2 / x),
        (a**2, x**2),
        (2**a, 2**x),
        (-a, -x),
        (a == 2, x == 2),
        (a != b, x != y),
        (a < 3, x < 3),
        (a >= b / 10, x >= y / 10),
        (3 > a, 3 > x),
        (a * np.float32(3), x * 3),
    ]:
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours.asnumpy(), numpys.astype(np.float32), rtol=1e-6)
    before = a
    a += 1
    a *= b
    assert before is a
    np.testing.assert_allclose(a.asnumpy(), (x + 1) * y)
    np.testing.assert_allclose((a * -0.0).asnumpy(), 0)
    assert np.signbit((mx.nd.ones((1,)) * -0.0).asnumpy())[0]
    assert not np.signbit((mx.nd.ones((1,)) * 0.0).asnumpy())[0]


def test_errors_name_what_is_wrong():
    with pytest.raises(mx.MXNetError, match=r"\(2,3\).*\(4,\)"):
        mx.nd.zeros((2, 3)) + mx.nd.zeros((4,))
    with pytest.raises(TypeError):
        mx.nd.zeros((2,)) + "one"
    with pytest.raises(TypeError):
        mx.nd.zeros((2,)) + np.zeros((2,))
    with pytest.raises(mx.MXNetError, match="int32"):
        mx.nd.zeros((2,)) + mx.nd.zeros((2,), dtype="int32")
    with pytest.raises(ValueError):
        bool(mx.nd.zeros((2,)))
    with pytest.raises(ValueError):
        mx.nd.zeros((2,)).asscalar()


def test_text_is_mxnets():
    assert repr(mx.nd.array([[1, 2], [3, 4]])) == "\n[[1. 2.]\n [3. 4.]]\n<NDArray 2x2 @cpu(0)>"


def test_python_protocols():
    array = mx.nd.array([[1, 2], [3, 4]])
    assert len(array) == 2
    assert [row.asnumpy().tolist() for row in array] == [[1, 2], [3, 4]]
    assert float(mx.nd.array([2.5])) == 2.5
    assert type(mx.nd.array([0.1]).asscalar()) is np.float32 and type(mx.nd.array([0.5]).item()) is float
    assert int(mx.nd.array([2.5])) == 2
    assert [10, 20, 30][mx.nd.array([1], dtype="int32")] == 20
    assert bool(mx.nd.array([1])) and not bool(mx.nd.array([0]))
    assert np.asarray(array).tolist() == [[1, 2], [3, 4]]
    assert np.asarray(array, dtype=np.int32).dtype == np.int32
    assert len({array, array, array.copy()}) == 2
    for other in (pickle.loads(pickle.dumps(array)), copy.copy(array), copy.deepcopy(array)):
        other[:] = 0
        assert array.asnumpy().sum() == 10


def test_dlpack_shares_memory():
    array = mx.nd.zeros((2, 2))
    view = from_dlpack(array)
    array[0, 1] = 3
    assert view[0, 1] == 3
    assert array.__dlpack_device__() == (1, 0)
    assert mx.nd.from_dlpack(np.ones((2,), np.float32)).asnumpy().tolist() == [1, 1]


def test_files(tmp_path):
    path = str(tmp_path / "arrays.params")
    mx.nd.save(path, {"b": mx.nd.ones((2,)), "a": mx.nd.zeros((1,), dtype="int32")})
    loaded = mx.nd.load(path)
    assert list(loaded) == ["b", "a"] and loaded["a"].dtype == np.int32
    mx.nd.save(path, [mx.nd.ones((2,))])
    assert isinstance(mx.nd.load(path), list)
    with open(path, "rb") as file:
        assert mx.nd.load_frombuffer(file.read())[0].asnumpy().tolist() == [1, 1]
    with pytest.raises(TypeError):
        mx.nd.save(path, {"a": np.zeros(2)})
    with pytest.raises(mx.MXNetError, match="missing"):
        mx.nd.load(str(tmp_path / "missing.params"))


def test_contexts():
    assert mx.cpu(1) == mx.Context("cpu", 1) and mx.cpu() != mx.cpu(1) and mx.cpu() != None  # noqa: E711
    assert str(mx.gpu(2)) == "gpu(2)" and mx.gpu(2).device_type == "gpu" and mx.gpu(2).device_id == 2
    assert {mx.cpu(): 1}[mx.cpu(0)] == 1
    with mx.cpu(3):
        assert mx.current_context() == mx.cpu(3)
        assert mx.nd.zeros((1,)).context == mx.cpu(3)
    assert mx.current_context() == mx.cpu()
    assert mx.nd.ones((1,)).as_in_context(mx.cpu(1)).context == mx.cpu(1)
    assert mx.nd.ones((1,)).copyto(mx.cpu(2)).context == mx.cpu(2)
    with pytest.raises(mx.MXNetError):
        mx.Context("tpu", 0)
    if mx.num_gpus() == 0:
        with pytest.raises(mx.MXNetError):
            mx.nd.zeros((1,), ctx=mx.gpu(0))


def test_random_numbers_repeat():
    mx.random.seed(7)
    first = mx.nd.random.uniform(-1, 1, shape=(100,)).asnumpy()
    second = mx.random.normal(2, 0.5, shape=(1000,)).asnumpy()
    mx.random.seed(7)
    np.testing.assert_array_equal(mx.nd.uniform(low=-1, high=1, shape=(100,)).asnumpy(), first)
    assert first.min() >= -1 and first.max() < 1
    assert abs(second.mean() - 2) < 0.1 and abs(second.std() - 0.5) < 0.05
    out = mx.nd.zeros((3, 2))
    mx.random.uniform(5, 6, out=out)
    assert out.asnumpy().min() >= 5


def test_axes_are_transposed_by_position_and_by_name():
    array = mx.nd.zeros((2, 3, 4))
    for transposed in (
        array.transpose((2, 0, 1)),
        array.transpose(2, 0, 1),
        array.transpose(axes=(2, 0, 1)),
        array.transpose(np.array([2, 0, 1])),
    ):
        assert transposed.shape == (4, 2, 3)
    assert array.transpose().shape == array.T.shape == (4, 3, 2)


def test_methods_are_those_operators_that_exist():
    for name in mx.nd._methods.FLUENT:
        exists = mx._symbind._find_op(name) is not None
        assert hasattr(mx.nd.NDArray, name) == exists and hasattr(mx.sym.Symbol, name) == exists, name


def test_power_has_mxnets_keywords():
    base = mx.nd.array([2, 3])
    assert mx.nd.power(base=base, exp=2).asnumpy().tolist() == [4, 9]
    assert mx.sym.pow(base=mx.sym.Variable("base"), exp=2).eval(base=base)[0].asnumpy().tolist() == [4, 9]
    assert mx.nd.power(2, 3) == mx.sym.power(2, 3) == 8


def test_dlpack_methods_share_the_memory():
    array = mx.nd.array([1, 2])
    view = mx.nd.from_dlpack(array.to_dlpack_for_read())
    np.testing.assert_array_equal(view.asnumpy(), [1, 2])
    array[0] = 5
    assert view.asnumpy().tolist() == [5, 2]
    mx.nd.from_dlpack(array.to_dlpack_for_write())[:] = 7
    del array
    assert view.asnumpy().tolist() == [7, 7]
    with pytest.raises(ValueError, match="contiguous"):
        mx.nd.from_dlpack(np.zeros((4, 4))[:, ::2])


def test_from_numpy_shares_the_memory_unless_told_otherwise():
    values = np.arange(6, dtype="int32").reshape(2, 3)
    array = mx.nd.from_numpy(values)
    assert array.dtype == np.int32 and array.shape == (2, 3)
    array[1] = 9
    assert values.tolist() == [[0, 1, 2], [9, 9, 9]] and not values.flags.writeable
    assert mx.nd.from_numpy(values).asnumpy().tolist() == values.tolist()  # which is only read
    copy = mx.nd.from_numpy(values, zero_copy=False)
    copy[:] = 0
    assert values.tolist() == [[0, 1, 2], [9, 9, 9]]
    executor = mx.sym.square(mx.sym.Variable("x")).bind(mx.cpu(), {"x": array.astype("float32")})
    assert executor.forward()[0].asnumpy().tolist() == [[0, 1, 4], [81, 81, 81]]
    with pytest.raises(ValueError, match="contiguous"):
        mx.nd.from_numpy(values.T)
    unaligned = np.frombuffer(bytearray(9), "u1")[1:].view("f4")
    for copied in (unaligned, np.frombuffer(bytes(8), "f4")):
        array_of_copy = mx.nd.from_numpy(copied)
        array_of_copy[:] = 3
        assert copied.tolist() == [0, 0] and array_of_copy.asnumpy().tolist() == [3, 3]
    del values
    assert array.asnumpy().tolist() == [[0, 1, 2], [9, 9, 9]]
    for unknown in (np.zeros(2, "complex64"), np.array(["a"])):
        with pytest.raises((TypeError, mx.MXNetError)):
            mx.nd.from_numpy(unknown)


def test_broadcast_to_adds_axes_in_front():
    row = mx.nd.array([1, 2, 3])
    np.testing.assert_array_equal(row.broadcast_to((2, 3)).asnumpy(), [[1, 2, 3]] * 2)
    assert mx.nd.zeros((3, 1)).broadcast_to((2, 0, 4)).shape == (2, 3, 4)
    with pytest.raises(ValueError, match="0 keeps"):
        row.broadcast_to((0, 3))
    with pytest.raises(mx.MXNetError):
        row.broadcast_to((2, 4))


def test_numbers_of_numpy_are_numbers():
    a = mx.nd.array([1, 2])
    np.testing.assert_array_equal((a == np.float32(1)).asnumpy(), [1, 0])
    np.testing.assert_array_equal((np.float64(3) - a).asnumpy(), [2, 1])
    np.testing.assert_array_equal((np.array(2.0) * a).asnumpy(), [2, 4])
    np.testing.assert_array_equal((np.float32(1) < a).asnumpy(), [0, 1])
    assert (a == None) is False and a in [None, a]  # noqa: E711


def test_functions_of_numpy_take_an_arrays_values():
    a = mx.nd.array([1, 4])
    root = np.sqrt(a)
    assert isinstance(root, np.ndarray) and root.tolist() == [1, 2]
    assert not np.isnan(a).any()
    values = np.zeros(2)
    for mixed in (lambda: np.add(values, a), lambda: values.__iadd__(a), lambda: np.arctan2(a, 1)):
        with pytest.raises(TypeError, match="NumPy.*asnumpy"):
            mixed()


def test_an_array_made_from_a_handle_shares_its_data():
    a = mx.nd.zeros(2)
    mx.nd.NDArray(a.handle, writable=False)[:] = 3
    np.testing.assert_array_equal(a.asnumpy(), [3, 3])
    with pytest.raises(TypeError):
        mx.nd.NDArray([1, 2])


def test_single_elements_change_in_place():
    a = mx.nd.zeros((2, 2))
    a[0, 0] += 5
    a[1, 1] = mx.nd.array([7])
    a[1, 0] = np.array([[6]])
    np.testing.assert_array_equal(a.asnumpy(), [[5, 0], [6, 7]])
    row = mx.nd.zeros(3)
    row[1] += 2
    row[-1] = mx.nd.ones((1,))
    np.testing.assert_array_equal(row.asnumpy(), [0, 2, 1])


MXNET_PICKLE = bytes.fromhex(  # of mx.nd.array([[1, 2], [3, 4.5]]), by MXNet 1.9.1
    "8002636d786e65742e6e6461727261792e6e6461727261790a4e4441727261790a71004e8571015271027d7103580600000068616e646c6571"
    "04635f5f6275696c74696e5f5f0a6279746561727261790a7105635f636f646563730a656e636f64650a7106583e000000c389c3bac293c3b9"
    "0000000002000000020000000000000002000000000000000100000000000000000000000000c2803f00000040000040400000c29040710758"
    "060000006c6174696e31710886710952710a85710b52710c73622e"
)


def test_a_pickle_of_mxnet_s_is_read():
    ours = MXNET_PICKLE.replace(b"cmxnet.ndarray.ndarray", b"csymbind.ndarray.ndarray")
    array = pickle.loads(ours)
    assert array.shape == (2, 2) and array.asnumpy().tolist() == [[1, 2], [3, 4.5]]
    with pytest.raises(mx.MXNetError):
        array.__setstate__({"handle": b"\x00" * 20})
    with pytest.raises(ValueError, match="without contents"):
        array.__setstate__({"handle": None})
    assert array.asnumpy().tolist() == [[1, 2], [3, 4.5]]


def test_in_place_views_share_memory():
    a = mx.nd.arange(6).reshape((1, 2, 3))
    for view in (a.expand_dims(0, inplace=True), a.squeeze(0, inplace=True), a.flatten(inplace=True)):
        view[:] = view + 1
    assert a.asnumpy().ravel().tolist() == [3, 4, 5, 6, 7, 8]
    assert a.expand_dims(-1, inplace=True).shape == (1, 2, 3, 1)
    assert a.squeeze(inplace=True).shape == (2, 3) and mx.nd.ones((1, 1)).squeeze(inplace=True).shape == (1,)
    assert a.flatten(inplace=True).shape == (1, 6)
    copied = a.expand_dims(0)
    copied[:] = 0
    assert a.asnumpy().ravel().tolist() == [3, 4, 5, 6, 7, 8]
    with pytest.raises(ValueError, match="axis 4 is out of range"):
        a.expand_dims(5 - 1, inplace=True)
    with pytest.raises(ValueError, match="axis 1 has length 2"):
        a.squeeze(1, inplace=True)
    with pytest.raises(ValueError, match="no axis 3"):
        a.squeeze((0, 3), inplace=True)


def test_regions_are_assigned_by_bounds():
    a = mx.nd.zeros((3, 4))
    assert a.slice_assign(mx.nd.ones((2, 2)), (0, 1), (4, 3), (2, None)) is a
    a.slice_assign_scalar(5, (1,), (2,), None)
    assert a.asnumpy().tolist() == [[0, 1, 1, 0], [5, 5, 5, 5], [0, 1, 1, 0]]
    with pytest.raises(ValueError, match="one number per axis"):
        a.slice_assign_scalar(5, (1,), (2, 3), None)


def test_names_that_mxnet_and_python_2_have():
    a = mx.nd.array([5, 7])
    assert a.__div__(2).asnumpy().tolist() == [2.5, 3.5] and a.__rdiv__(35).asnumpy().tolist() == [7, 5]
    same = a
    same %= 3
    assert a.asnumpy().tolist() == [2, 1]
    a._full(4)
    assert a.asnumpy().tolist() == [4, 4]
    a._sync_copyfrom(np.array([1, 2]))
    assert a.asnumpy().tolist() == [1, 2] and a.writable
    with pytest.raises(ValueError, match=r"shape \(2,\).*\(3,\)"):
        a._sync_copyfrom(np.zeros(3))
    assert mx.nd.array([0]).__nonzero__() is False
    for call in (a.attach_grad, a.backward):
        with pytest.raises(NotImplementedError, match="bind a Symbol"):
            call()

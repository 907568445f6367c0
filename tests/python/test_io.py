"""Batches and iterators, ours and those written in Python."""

import copy
import gzip
import os
import pickle
import struct
import subprocess
import sys
import threading

import numpy as np
import pytest

import symbind as mx


def rows(iterator):
    return [batch.data[0].asnumpy().ravel().tolist() for batch in iterator]


class ByParts(mx.io.DataIter):
    """Defines the parts that DataIter.next() asks for, and never calls DataIter.__init__."""

    def __init__(self, batches=3):
        self.batches = batches
        self.current = -1
        self.provide_data = [("data", (2, 1))]
        self.provide_label = [("softmax_label", (2,))]

    def reset(self):
        self.current = -1

    def iter_next(self):
        self.current += 1
        return self.current < self.batches

    def getdata(self):
        return [mx.nd.full((2, 1), self.current)]

    def getlabel(self):
        return [mx.nd.zeros((2,))]

    def getpad(self):
        return 0


class Generator(mx.io.DataIter):
    """Its __iter__ is a generator, as in the bucketing examples."""

    def __init__(self):
        super().__init__()
        self.batch_size = 2
        self.resets = 0

    @property
    def provide_data(self):
        return [mx.io.DataDesc("data", (2, 1))]

    @property
    def provide_label(self):
        return []

    def __iter__(self):
        for i in range(2):
            batch = mx.io.DataBatch([mx.nd.full((2, 1), i)], pad=i)
            batch.note = f"batch {i}"
            yield batch

    def reset(self):
        self.resets += 1


class Bare:
    """No base class at all; the description can be read only once."""

    def __init__(self):
        self.provide_data = zip(["data"], [(2, 1)])
        self.provide_label = None
        self.left = 2

    def __iter__(self):
        return self

    def __next__(self):
        if self.left == 0:
            raise StopIteration
        self.left -= 1
        return mx.io.DataBatch([mx.nd.full((2, 1), self.left)])

    def reset(self):
        self.left = 2


# ---- descriptions and batches


def test_a_description_is_a_pair_with_more():
    desc = mx.io.DataDesc("data", (2, 3))
    assert repr(desc) == "DataDesc[data,(2, 3),<class 'numpy.float32'>,NCHW]"
    assert desc == mx.io.DataDesc("data", (2, 3), dtype="int32", layout="TNC")
    assert desc == ("data", (2, 3))
    name, shape = desc
    assert (name, shape, desc.dtype, desc.layout) == ("data", (2, 3), np.float32, "NCHW")
    assert [mx.io.DataDesc.get_batch_axis(layout) for layout in (None, "NCHW", "TNC", "TC")] == [0, 0, 1, -1]
    listed = mx.io.DataDesc.get_list([("a", (1,)), ("b", (2,))], [("a", "int32"), ("b", "int8")])
    assert repr(listed) == "[DataDesc[a,(1,),int32,NCHW], DataDesc[b,(2,),int8,NCHW]]"
    assert mx.io.DataDesc.get_list([("a", (1,))], None)[0].dtype == np.float32
    again = pickle.loads(pickle.dumps(mx.io.DataDesc("x", (1,), "int8", "TN")))
    assert (again, again.dtype, again.layout) == (("x", (1,)), "int8", "TN")
    assert copy.deepcopy(again).layout == "TN"


def test_a_batch_holds_what_it_is_given():
    batch = mx.io.DataBatch([mx.nd.zeros((2, 3))], [mx.nd.zeros((2,))], bucket_key=7)
    batch.extra = 1
    assert str(batch) == "DataBatch: data shapes: [(2, 3)] label shapes: [(2,)]"
    assert (batch.pad, batch.index, batch.bucket_key, batch.provide_data, batch.provide_label) == (
        (None, None, 7, None, None)
    )
    assert str(mx.io.DataBatch([mx.nd.zeros((2, 3))])) == "DataBatch: data shapes: [(2, 3)] label shapes: None"
    with pytest.raises(AssertionError, match="data must be a list"):
        mx.io.DataBatch(mx.nd.zeros((2, 3)))
    with pytest.raises(AssertionError, match="label must be a list"):
        mx.io.DataBatch([], mx.nd.zeros((2,)))


# ---- NDArrayIter


def test_arrays_in_batches():
    data = np.arange(10.0).reshape(5, 2)
    iterator = mx.io.NDArrayIter(data, np.arange(5), batch_size=2)
    assert isinstance(iterator, mx.io.DataIter)
    assert repr(iterator.provide_data) == "[DataDesc[data,(2, 2),<class 'numpy.float32'>,NCHW]]"
    assert iterator.provide_label == [("softmax_label", (2,))]
    assert (iterator.num_data, iterator.batch_size, iterator.cursor, iterator.num_source) == (5, 2, -2, 2)
    batches = list(iterator)
    assert [batch.pad for batch in batches] == [0, 0, 1]
    assert np.array_equal(np.concatenate([b.data[0].asnumpy() for b in batches])[:5], data)
    assert batches[2].label[0].asnumpy().tolist() == [4, 0]
    assert (batches[0].bucket_key, batches[0].provide_data) == (None, None)
    with pytest.raises(StopIteration):
        iterator.next()
    iterator.reset()
    assert len(list(iterator)) == 3


def test_what_arrays_may_be_given_as():
    by_name = mx.io.NDArrayIter({"b": np.zeros((4, 2)), "a": np.zeros(4, "int64")}, {"y": mx.nd.zeros((4,))})
    assert by_name.provide_data == [("a", (1,)), ("b", (1, 2))]
    assert by_name.provide_label == [("y", (1,))]
    assert [name for name, _ in by_name.data] == ["a", "b"]
    listed = mx.io.NDArrayIter([np.zeros((4, 1)), mx.nd.zeros((4, 2))], [[1, 2, 3, 4]])
    assert listed.provide_data == [("_0_data", (1, 1)), ("_1_data", (1, 2))]
    assert listed.provide_label == [("softmax_label", (1,))]
    assert [a.shape for a in listed.data_list] == [(4, 1), (4, 2), (4,)]
    assert mx.io.NDArrayIter(np.zeros((4, 1), "bool")).provide_data[0].dtype == np.float32
    kept = mx.io.NDArrayIter(mx.nd.zeros((4, 1), dtype="int32"))
    assert kept.provide_data[0].dtype == np.int32 and kept.next().data[0].dtype == np.int32
    assert mx.io.NDArrayIter(mx.nd.zeros((4, 1)), layout="NC", data_name="x").provide_data[0].layout == "NC"
    assert mx.io.NDArrayIter(np.zeros((4, 1))).next().label == []


def test_arrays_are_named_as_iterators_name_them():
    kept = mx.nd.ones((3,), dtype="int32")
    by_name = mx.io._init_data({"b": np.zeros((2, 1)), "a": kept}, allow_empty=False, default_name="data")
    assert [name for name, _ in by_name] == ["a", "b"]
    assert by_name[0][1] is kept and isinstance(by_name[1][1], mx.nd.NDArray) and by_name[1][1].shape == (2, 1)
    assert mx.io._init_data(kept, allow_empty=False, default_name="data") == [("data", kept)]
    listed = mx.io._init_data([kept, kept], allow_empty=False, default_name="x")
    assert [name for name, _ in listed] == ["_0_x", "_1_x"]
    assert mx.io._init_data(None, allow_empty=True, default_name="data") == []
    with pytest.raises(ValueError, match="at least one array"):
        mx.io._init_data(None, allow_empty=False, default_name="data")
    with pytest.raises(TypeError, match="not int"):
        mx.io._init_data(7, allow_empty=False, default_name="data")


def test_wrong_arrays_are_refused():
    with pytest.raises(TypeError, match="must be an NDArray"):
        mx.io.NDArrayIter("x")
    with pytest.raises(mx.MXNetError, match="at least one array"):
        mx.io.NDArrayIter(None)
    with pytest.raises(mx.MXNetError, match="same number of samples"):
        mx.io.NDArrayIter(np.zeros((3, 1)), np.zeros(4))
    with pytest.raises(mx.MXNetError, match="last_batch_handle must be one of"):
        mx.io.NDArrayIter(np.zeros((3, 1)), last_batch_handle="drop")
    with pytest.raises(TypeError):
        mx.io.NDArrayIter(np.zeros((3, 1)), batchsize=3)


def test_the_end_of_an_epoch():
    data = np.arange(5.0)
    assert rows(mx.io.NDArrayIter(data, batch_size=2, last_batch_handle="discard")) == [[0, 1], [2, 3]]
    rolling = mx.io.NDArrayIter(data, batch_size=2, last_batch_handle="roll_over")
    assert rows(rolling) == [[0, 1], [2, 3]]
    rolling.reset()
    assert rows(rolling) == [[4, 0], [1, 2], [3, 4]]
    rolling.reset()
    rolling.hard_reset()
    assert rows(rolling)[0] == [0, 1]


def test_shuffling_follows_the_seed():
    def epoch():
        mx.random.seed(3)
        iterator = mx.io.NDArrayIter(np.arange(20.0), np.arange(20), batch_size=20, shuffle=True)
        batch = iterator.next()
        assert batch.data[0].asnumpy().tolist() == batch.label[0].asnumpy().tolist() == iterator.idx.tolist()
        return batch.data[0].asnumpy().tolist()

    first = epoch()
    assert first == epoch() != sorted(first)
    assert sorted(first) == list(range(20))


def first_of_rows(iterator):
    return [(b.data[0].asnumpy()[:, 0].tolist(), [a.asnumpy().tolist() for a in b.label], b.pad) for b in iterator]


def test_scripts_may_assign_the_arrays_and_the_position():
    def iterator(**options):
        return mx.io.NDArrayIter(np.arange(12).reshape(6, 2), np.arange(6), 2, **options)

    changed = iterator()
    assert first_of_rows(changed)[0] == ([0, 2], [[0, 1]], 0)
    changed.data = [("data", mx.nd.arange(12).reshape((6, 2)) + 100)]
    changed.label = [("softmax_label", np.arange(6) + 50)]
    changed.reset()
    rows = [([100, 102], [[50, 51]], 0), ([104, 106], [[52, 53]], 0), ([108, 110], [[54, 55]], 0)]
    assert first_of_rows(changed) == rows
    changed.cursor = -2
    assert first_of_rows(changed) == rows
    changed.cursor = 0
    assert first_of_rows(changed) == rows[1:]
    changed.cursor = 6
    assert first_of_rows(changed) == []
    changed.data = [("image", mx.nd.zeros((6, 3, 4)))]
    changed.label = []
    assert changed.provide_data[0].name == "image" and changed.provide_data[0].shape == (2, 3, 4)
    assert changed.provide_label == []

    larger = iterator()
    larger.batch_size = 4
    assert larger.provide_data[0].shape == (4, 2)
    assert first_of_rows(larger) == [([0, 2, 4, 6], [[0, 1, 2, 3]], 0), ([8, 10, 0, 2], [[4, 5, 0, 1]], 2)]

    shuffled = iterator(shuffle=True)
    shuffled.next()
    shuffled.data = [("data", mx.nd.arange(6).reshape((6, 1)))]
    for data, label, _ in first_of_rows(shuffled):
        assert data == label[0]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("data", [("data", np.zeros((4, 2)))], "must have 6 samples.*construct another"),
        ("data", [], "at least one array"),
        ("data", np.zeros((6, 2)), "list of pairs"),
        ("label", [np.zeros(6)], "list of pairs"),
        ("cursor", -3, "at least -batch_size"),
        ("batch_size", 0, "at least 1"),
        ("idx", np.arange(6), "construct an NDArrayIter of data"),
    ],
)
def test_what_cannot_be_assigned_to_an_iterator_is_refused(name, value, message):
    iterator = mx.io.NDArrayIter(np.zeros((6, 2)), np.zeros(6), 2)
    with pytest.raises((ValueError, TypeError, AttributeError, mx.MXNetError), match=message):
        setattr(iterator, name, value)
    assert len(list(iterator)) == 3


def test_stepping_by_parts():
    iterator = mx.io.NDArrayIter(np.arange(3.0), batch_size=2)
    assert iterator.iter_next()
    assert iterator.getdata()[0].asnumpy().tolist() == [0, 1] and iterator.getlabel() == []
    assert iterator.getpad() == 0 and iterator.cursor == 0
    assert iterator.iter_next() and iterator.getpad() == 1
    assert not iterator.iter_next()


@pytest.mark.parametrize("part", ["getdata", "getlabel", "getpad", "getindex"])
def test_parts_of_a_batch_that_was_not_drawn_are_an_error(part, tmp_path):
    np.savetxt(tmp_path / "values.csv", np.zeros((4, 2)), delimiter=",")
    iterators = [
        mx.io.NDArrayIter(np.zeros((4, 2)), batch_size=2),
        mx.io.PrefetchingIter(mx.io.NDArrayIter(np.zeros((4, 2)), batch_size=2)),
        mx.io.ResizeIter(mx.io.NDArrayIter(np.zeros((4, 2)), batch_size=2), 1),
        mx.io.CSVIter(data_csv=str(tmp_path / "values.csv"), data_shape=(2,), batch_size=2),
    ]
    for iterator in iterators:
        if part != "getpad" or not isinstance(iterator, mx.io.NDArrayIter):  # which has a pad by its cursor
            with pytest.raises(mx.MXNetError, match="call iter_next"):
                getattr(iterator, part)()
        assert iterator.iter_next()
        getattr(iterator, part)()


def test_a_subclass_may_change_a_part_of_each_batch():
    class Mirrored(mx.io.NDArrayIter):
        def getdata(self):
            return [array[:, ::-1] for array in super().getdata()]

        def getpad(self):
            return super().getpad() + 1

    data = np.arange(12, dtype="float32").reshape(6, 2)
    batches = list(Mirrored(data, np.arange(6), 4))
    assert [batch.pad for batch in batches] == [1, 3]
    np.testing.assert_array_equal(batches[0].data[0].asnumpy(), data[:4, ::-1])
    np.testing.assert_array_equal(batches[0].label[0].asnumpy(), np.arange(4))
    module = mx.mod.Module(mx.sym.Variable("data") * 1, label_names=None)
    module.bind([("data", (4, 2))], for_training=False)
    module.init_params()
    np.testing.assert_array_equal(module.predict(Mirrored(data, batch_size=2)).asnumpy(), data[[0, 2, 4], ::-1])


def test_a_subclass_may_change_what_an_iterator_says():
    class Doubled(mx.io.NDArrayIter):
        def next(self):
            batch = super().next()
            batch.data = [2 * batch.data[0]]
            return batch

    doubled = Doubled(np.arange(4.0), batch_size=2)
    doubled.anything = 1
    assert rows(doubled) == [[0, 2], [4, 6]]
    doubled.reset()
    assert rows(mx.io.ResizeIter(doubled, 3)) == [[0, 2], [4, 6], [0, 2]]


# ---- iterators written in Python, seen by C++


@pytest.mark.parametrize("make", [ByParts, Generator, Bare])
def test_python_iterators_inside_native_ones(make):
    expected = rows(make())
    assert len(expected) >= 2
    resized = mx.io.ResizeIter(make(), len(expected) + 1)
    assert resized.provide_data == [("data", (2, 1))] and resized.batch_size == 2
    assert rows(resized) == expected + expected[:1] and resized.cur == len(expected) + 1
    resized.reset()
    assert resized.cur == 0 and resized.next() and resized.cur == 1
    prefetched = mx.io.PrefetchingIter(make())
    assert prefetched.provide_data == [("data", (2, 1))] and prefetched.batch_size == 2
    for _ in range(3):
        assert rows(prefetched) == expected
        prefetched.reset()


def test_batches_come_back_as_the_objects_they_were():
    batches = list(mx.io.PrefetchingIter(Generator()))
    assert [batch.note for batch in batches] == ["batch 0", "batch 1"]
    assert [batch.pad for batch in batches] == [0, 1]


def test_the_base_class_has_no_batches():
    base = mx.io.DataIter(3)
    assert base.batch_size == 3 and not hasattr(base, "provide_data")
    assert base.iter_next() is None and base.getdata() is None
    assert list(base) == []
    with pytest.raises(StopIteration):
        base.next()


def test_exceptions_pass_unchanged():
    class Trouble(Exception):
        pass

    class Failing(Generator):
        def __iter__(self):
            yield mx.io.DataBatch([mx.nd.zeros((2, 1))])
            raise Trouble("broken file")

    for iterator in (mx.io.PrefetchingIter(Failing()), mx.io.ResizeIter(Failing(), 5)):
        iterator.next()
        with pytest.raises(Trouble, match="broken file") as caught:
            iterator.next()
        assert any(entry.name == "__iter__" for entry in caught.traceback)

    class Nameless(Generator):
        @property
        def provide_data(self):
            raise KeyError("no shapes yet")

    with pytest.raises(KeyError, match="no shapes yet"):
        mx.io.PrefetchingIter(Nameless())
    with pytest.raises(TypeError, match="NDArrayIter"):
        mx.io.ResizeIter(np.zeros((3, 1)), 2)
    with pytest.raises(TypeError, match="must be a data iterator, not NoneType"):
        mx.io.ResizeIter(None, 2)

    class NotBatches(Generator):
        def __iter__(self):
            yield 3

    with pytest.raises(TypeError, match="a batch needs an attribute data"):
        mx.io.ResizeIter(NotBatches(), 2).next()


# ---- iterators over iterators


def test_prefetching_combines_and_renames():
    left = mx.io.NDArrayIter(np.arange(5.0), np.arange(5), batch_size=2)
    right = mx.io.NDArrayIter(np.arange(5.0) * 10, batch_size=2)
    both = mx.io.PrefetchingIter(
        [left, right], rename_data=[{"data": "left"}, {"data": "right"}], rename_label=[{"softmax_label": "y"}, {}]
    )
    assert both.provide_data == [("left", (2,)), ("right", (2,))]
    assert both.provide_label == [("y", (2,))]
    assert both.n_iter == 2 and both.iters == [left, right]
    batches = list(both)
    assert [[a.asnumpy().tolist() for a in batch.data] for batch in batches] == [
        [[0, 1], [0, 10]],
        [[2, 3], [20, 30]],
        [[4, 0], [40, 0]],
    ]
    assert [batch.pad for batch in batches] == [0, 0, 1]
    both.reset()
    assert both.iter_next() and both.getpad() == 0 and both.getdata()[1].asnumpy().tolist() == [0, 10]


def test_prefetching_is_dropped_in_the_middle():
    for _ in range(20):
        iterator = mx.io.PrefetchingIter(Generator())
        iterator.next()
        del iterator  # its thread may just be waiting for the GIL


def test_prefetching_from_several_threads():
    def work():
        for _ in range(5):
            iterator = mx.io.PrefetchingIter(Generator())
            counts.append(len(list(iterator)))

    counts = []
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [2] * 20


def test_a_program_may_end_while_batches_are_made():
    program = """
import symbind as mx, time
class Slow(mx.io.DataIter):
    provide_data, provide_label = [("data", (1,))], []
    def next(self):
        time.sleep(0.02)
        return mx.io.DataBatch([mx.nd.zeros((1,))])
iterator = mx.io.PrefetchingIter(Slow())
iterator.next()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_fork_leaves_the_threads_alone():
    iterator = mx.io.PrefetchingIter(mx.io.NDArrayIter(np.arange(100.0), batch_size=2))
    iterator.next()
    child = os.fork()
    if child == 0:
        del iterator
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert len(list(iterator)) == 49


def test_epochs_of_another_length():
    inner = mx.io.NDArrayIter(np.arange(6.0), batch_size=2)
    resized = mx.io.ResizeIter(inner, 2, reset_internal=False)
    assert resized.size == 2 and resized.data_iter is inner
    assert rows(resized) == [[0, 1], [2, 3]]
    resized.reset()
    assert rows(resized) == [[4, 5], [0, 1]]


# ---- files


@pytest.fixture
def digits(tmp_path):
    pixels = np.arange(6 * 4, dtype=np.uint8).reshape(6, 2, 2)
    with gzip.open(tmp_path / "images.gz", "wb") as file:
        file.write(struct.pack(">IIII", 0x803, 6, 2, 2) + pixels.tobytes())
    with open(tmp_path / "labels", "wb") as file:
        file.write(struct.pack(">II", 0x801, 6) + bytes(range(6)))
    return dict(image=str(tmp_path / "images.gz"), label=str(tmp_path / "labels"))


def test_mnist(digits):
    iterator = mx.io.MNISTIter(**digits, batch_size=4, shuffle=False, silent=True, input_shape=(4,))
    assert iterator.provide_data == [("data", (4, 1, 2, 2))] and iterator.num_data == 6
    batch = iterator.next()
    assert np.array_equal(batch.data[0].asnumpy().ravel(), np.arange(16) / 256)
    assert batch.label[0].asnumpy().tolist() == [0, 1, 2, 3]
    with pytest.raises(StopIteration):
        iterator.next()
    flat = mx.io.MNISTIter(**digits, batch_size=2, flat=True, silent=True, num_parts=2, part_index=1, shuffle=False)
    assert flat.provide_data == [("data", (2, 4))]
    assert flat.iter_next() and flat.getlabel().asnumpy().tolist() == [3, 4]
    with pytest.raises(TypeError, match="no argument batchsize; there are image, label"):
        mx.io.MNISTIter(**digits, batchsize=2)
    with pytest.raises(mx.MXNetError, match="nowhere"):
        mx.io.MNISTIter(image="nowhere", label="nowhere")


def test_names_are_the_same_in_both_modules():
    assert mx.io.io.DataDesc is mx.io.DataDesc


class _Failing(mx.io.DataIter):
    def __init__(self):
        super().__init__(2)
        self.provide_data = [mx.io.DataDesc("data", (2, 1))]
        self.provide_label = []

    def next(self):
        raise OSError("the disk is gone")

    def reset(self):
        pass


def test_a_prefetcher_throws_what_went_wrong_at_every_call():
    prefetching = mx.io.PrefetchingIter(_Failing())
    for _ in range(3):
        with pytest.raises(OSError, match="the disk is gone"):
            prefetching.next()


class _Counting(mx.io.DataIter):
    def __init__(self, name):
        super().__init__(2)
        self.provide_data = [mx.io.DataDesc(name, (2, 1))]
        self.provide_label = []
        self.left = 2

    def next(self):
        if not self.left:
            raise StopIteration
        self.left -= 1
        return mx.io.DataBatch([mx.nd.full((2, 1), self.left)], [])

    def reset(self):
        self.left = 2


def test_a_prefetcher_combines_the_batches_of_python_iterators():
    batch = mx.io.PrefetchingIter([_Counting("a"), _Counting("b")]).next()
    assert len(batch.data) == 2

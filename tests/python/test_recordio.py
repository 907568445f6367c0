"""mx.recordio: files of records, and records of images."""

import multiprocessing
import os
import pickle
import struct

import numpy as np
import pytest

import symbind as mx

MARK = b"\x0a\x23\xd7\xce"


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "some.rec")


def write(path, records):
    with mx.recordio.MXRecordIO(path, "w") as writer:
        for record in records:
            writer.write(record)


def test_records_come_back_and_reset_begins_again(path):
    records = [b"", b"abc", MARK, b"abcd" + MARK + b"e", bytes(range(256)) * 100]
    write(path, records)
    reader = mx.recordio.MXRecordIO(path, "r")
    assert [reader.read() for _ in range(7)] == [*records, None, None]
    reader.reset()
    assert reader.read() == b""


def test_readers_do_not_write_and_writers_do_not_read(path):
    writer = mx.recordio.MXRecordIO(path, "w")
    with pytest.raises(AssertionError, match="open for writing"):
        writer.read()
    writer.close()
    writer.close()
    with pytest.raises(AssertionError, match="open for reading"):
        mx.recordio.MXRecordIO(path, "r").write(b"a")
    with pytest.raises(ValueError, match="'r' or 'w'"):
        mx.recordio.MXRecordIO(path, "a")
    with pytest.raises(ValueError, match="closed"):
        reader = mx.recordio.MXRecordIO(path, "r")
        reader.close()
        reader.read()


def test_missing_and_damaged_files_are_named(path, tmp_path):
    with pytest.raises(mx.MXNetError, match="missing.rec.*No such file"):
        mx.recordio.MXRecordIO(str(tmp_path / "missing.rec"), "r")
    with open(path, "wb") as file:
        file.write(MARK + b"\x20\0\0\0abc")
    with pytest.raises(mx.MXNetError, match="some.rec.*offset 8 expected a part of 32 bytes.*truncated"):
        mx.recordio.MXRecordIO(path, "r").read()


def test_a_pickled_reader_begins_at_the_first_record(path):
    write(path, [b"a", b"b"])
    reader = mx.recordio.MXRecordIO(path, "r")
    reader.read()
    assert pickle.loads(pickle.dumps(reader)).read() == b"a"
    writer = mx.recordio.MXRecordIO(path, "w")
    with pytest.raises(RuntimeError, match="cannot be pickled"):
        pickle.dumps(writer)


@pytest.fixture
def indexed(tmp_path):
    paths = str(tmp_path / "some.idx"), str(tmp_path / "some.rec")
    writer = mx.recordio.MXIndexedRecordIO(*paths, "w")
    for key in [5, 3, 9]:
        writer.write_idx(key, b"record %d" % key)
    writer.close()
    return paths


def test_an_index_of_another_file_is_an_error(indexed):
    with open(indexed[0], "a") as index:
        index.write("7\t4800\n")
    with pytest.raises(mx.MXNetError, match="4800.*record 7.*another file"):
        mx.recordio.MXIndexedRecordIO(*indexed, "r").read_idx(7)


def test_records_are_found_by_their_keys(indexed):
    reader = mx.recordio.MXIndexedRecordIO(*indexed, "r")
    assert reader.keys == [5, 3, 9]
    assert reader.idx == {5: 0, 3: 16, 9: 32}
    assert reader.read_idx(9) == b"record 9"
    assert reader.read_idx(5) == b"record 5"
    assert reader.read() == b"record 3"
    reader.seek(3)
    assert reader.read() == b"record 3"
    with pytest.raises(KeyError):
        reader.read_idx(7)
    with pytest.raises(AssertionError):
        reader.tell()
    assert pickle.loads(pickle.dumps(reader)).read_idx(3) == b"record 3"
    assert mx.recordio.MXIndexedRecordIO(*indexed, "r", key_type=str).keys == ["5", "3", "9"]


def _read_in_child(reader, key, results):
    results.put(reader.read_idx(key))


def test_a_forked_child_reads_through_the_same_object(indexed):
    reader = mx.recordio.MXIndexedRecordIO(*indexed, "r")
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    children = [context.Process(target=_read_in_child, args=(reader, key, results)) for key in [3, 9]]
    for child in children:
        child.start()
    assert sorted(results.get(timeout=60) for _ in children) == [b"record 3", b"record 9"]
    for child in children:
        child.join()
    assert reader.read_idx(5) == b"record 5"


def test_a_forked_child_does_not_write(path):
    writer = mx.recordio.MXRecordIO(path, "w")
    writer.write(b"mine")
    child = os.fork()
    if child == 0:
        try:
            writer.write(b"yours")
        except RuntimeError:
            del writer  # writes nothing either
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    writer.close()
    assert os.path.getsize(path) == 12


@pytest.mark.parametrize("label", [4.0, 3, [1, 2, 3], np.array([0.5, 2]), np.float32(7)])
def test_headers_come_back(label):
    header = mx.recordio.IRHeader(0, label, 2574, 1 << 40)
    back, data = mx.recordio.unpack(mx.recordio.pack(header, b"data"))
    assert data == b"data"
    assert (back.id, back.id2) == (2574, 1 << 40)
    assert back.flag == (0 if np.isscalar(label) else len(label))
    np.testing.assert_array_equal(back.label, np.float32(label))


def test_packed_bytes_are_those_of_the_format():
    assert mx.recordio.pack((0, 4.0, 2574, 0), b"ab") == (
        b"\x00\x00\x00\x00\x00\x00\x80@\x0e\n\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00ab"
    )
    assert struct.unpack(mx.recordio._IR_FORMAT, mx.recordio.pack((0, 4.0, 2574, 0), b"")) == (0, 4.0, 2574, 0)
    assert mx.recordio._IR_SIZE == 24
    with pytest.raises(mx.MXNetError, match="24 bytes"):
        mx.recordio.unpack(b"short")

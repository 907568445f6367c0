"""im2rec: folders of images as RecordIO files."""

import os
import subprocess
import sys

import numpy as np
import pytest

import symbind as mx
from symbind.tools import im2rec


@pytest.fixture
def folder(tmp_path):
    """Two classes, cats and dogs, of four images each; dogs are brighter."""
    for label, name in enumerate(["cats", "dogs"]):
        (tmp_path / "images" / name).mkdir(parents=True)
        for i in range(4):
            pixels = np.full((12, 20, 3), 100 * label + i, "uint8")
            (tmp_path / "images" / name / f"{i}.png").write_bytes(mx.image.imencode(pixels, ".png", 3))
    (tmp_path / "images" / "notes.txt").write_text("no image")
    return tmp_path


def run(folder, *options):
    return im2rec.main([*options, str(folder / "set"), str(folder / "images")])


def lines(path):
    return [line.split("\t") for line in path.read_text().splitlines()]


def images(folder, name="set"):
    records = mx.recordio.MXIndexedRecordIO(str(folder / f"{name}.idx"), str(folder / f"{name}.rec"), "r")
    unpacked = [mx.recordio.unpack_img(records.read_idx(key)) for key in records.keys]
    return {header.id: (header.label, pixels) for header, pixels in unpacked}


def test_folders_become_a_list_and_a_file(folder, capsys):
    assert run(folder, "--list", "--recursive") == 0
    listed = lines(folder / "set.lst")
    assert sorted(int(line[0]) for line in listed) == list(range(8))
    assert [int(line[0]) for line in listed] != list(range(8))  # shuffled
    assert {(float(line[1]), line[2].split("/")[0]) for line in listed} == {(0, "cats"), (1, "dogs")}
    assert "dogs 1" in capsys.readouterr().out

    assert run(folder, "--encoding", ".png", "--num-thread", "2") == 0
    packed = images(folder)
    assert len(packed) == 8
    for number, label, name in listed:
        assert packed[int(number)][0] == float(label)
        assert packed[int(number)][1][0, 0, 0] == 100 * float(label) + int(name.split("/")[1][0])
    out = capsys.readouterr().out
    assert "8 of 8" in out and "images/s" in out


def test_images_are_cropped_and_resized(folder):
    run(folder, "--list", "--recursive", "--no-shuffle")
    run(folder, "--resize", "6")
    assert {pixels.shape for _, pixels in images(folder).values()} == {(6, 10, 3)}
    run(folder, "--resize", "6", "--center-crop", "--color", "0")
    assert {pixels.shape for _, pixels in images(folder).values()} == {(6, 6)}
    run(folder, "--pass-through")
    records = mx.recordio.MXIndexedRecordIO(str(folder / "set.idx"), str(folder / "set.rec"), "r")
    data = mx.recordio.unpack(records.read_idx(0))[1]
    assert data == (folder / "images" / "cats" / "0.png").read_bytes()


def test_lists_are_divided(folder):
    run(folder, "--list", "--recursive", "--train-ratio", "0.5", "--test-ratio", "0.25")
    sizes = {name: len(lines(folder / f"set_{name}.lst")) for name in ["train", "test", "val"]}
    assert sizes == {"train": 4, "test": 2, "val": 2}
    assert run(folder) == 0
    assert len(images(folder, "set_train")) == 4
    run(folder, "--list", "--recursive", "--chunks", "3")
    assert sum(len(lines(folder / f"set_{i}.lst")) for i in range(3)) == 8


def test_several_labels_are_packed(folder):
    (folder / "set.lst").write_text("7\t1\t2.5\tcats/0.png\n")
    run(folder, "--pack-label")
    assert images(folder)[7][0].tolist() == [1, 2.5]
    it = mx.io.ImageRecordIter(
        path_imgrec=folder / "set.rec", data_shape=(3, 12, 12), batch_size=1, label_width=2, verbose=False
    )
    assert it.next().label[0].asnumpy().tolist() == [[1, 2.5]]


def test_broken_images_are_named_and_left_out(folder, capsys):
    run(folder, "--list", "--recursive")
    (folder / "images" / "cats" / "1.png").write_bytes(b"nonsense")
    os.remove(folder / "images" / "dogs" / "2.png")
    with open(folder / "set.lst", "a") as file:
        file.write("wrong line\n")
    assert run(folder) == 1
    assert len(images(folder)) == 6
    errors = capsys.readouterr().err
    assert "cats/1.png" in errors and "dogs/2.png" in errors and "line 9" in errors


def test_wrong_arguments_are_named(folder, capsys):
    with pytest.raises(SystemExit):
        im2rec.main(["--list", str(folder / "set"), str(folder / "nowhere")])
    assert "nowhere" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="make it with --list"):
        run(folder)
    with pytest.raises(SystemExit, match="no images"):
        run(folder, "--exts", ".gif", "--list")


def test_it_is_a_program(folder):
    command = [sys.executable, "-m", "symbind.tools.im2rec", "--list", str(folder / "set"), str(folder / "images/cats")]
    assert subprocess.run(command, timeout=120, stdout=subprocess.DEVNULL).returncode == 0
    assert {float(line[1]) for line in lines(folder / "set.lst")} == {0}

"""mx.image: functions, augmenters and iterators over images."""

import gzip
import json
import os
import random
import sys
import types

import numpy as np
import pytest

import symbind as mx

ORACLE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "oracle"))
sys.path.insert(0, ORACLE)

import image_cases  # noqa: E402


def pattern(height, width, channels):
    y, x, c = np.mgrid[0:height, 0:width, 0:channels]
    return ((y * 5 + x * 3 + c * 40 + (y * 7 + x * 11) % 13 * 4) % 256).astype("uint8")


def image(height, width):
    return mx.nd.array(pattern(height, width, 3), dtype="uint8")


def recorded():
    with gzip.open(os.path.join(ORACLE, "recorded", "images.json.gz"), "rt") as file:
        return {case["name"]: case for case in json.load(file)["functions"]}


@pytest.mark.parametrize("name", sorted(image_cases.calls(mx, pattern)))
def test_images_are_changed_as_in_mxnet(name):
    expected = recorded()[name]
    random.seed(7)
    np.random.seed(7)
    result = image_cases.calls(mx, pattern)[name]()
    assert list(result.shape) == expected["shape"]
    # Bytes that were resized may differ by a unit.
    tolerance = 1 if result.dtype == np.uint8 or name.startswith(("CreateAug", "fixed")) else 2e-2
    np.testing.assert_allclose(result.asnumpy().ravel(), expected["data"], rtol=1e-4, atol=tolerance)


def test_files_and_bytes_are_decoded(tmp_path):
    path = str(tmp_path / "some.png")
    data = mx.image.imencode(image(5, 6), ".png", 3)
    with open(path, "wb") as file:
        file.write(data)
    for result in [
        mx.image.imread(path),
        mx.image.imdecode(data),
        mx.image.imdecode(np.frombuffer(data, "uint8")),
        mx.image.imdecode(mx.nd.array(np.frombuffer(data, "uint8"), dtype="uint8")),
    ]:
        np.testing.assert_array_equal(result.asnumpy(), pattern(5, 6, 3))
    out = mx.nd.zeros((5, 6, 3), dtype="uint8")
    assert mx.image.imdecode(data, to_rgb=0, out=out) is out
    np.testing.assert_array_equal(out.asnumpy(), pattern(5, 6, 3)[:, :, ::-1])
    assert mx.image.imdecode(data, flag=0).shape == (5, 6, 1)
    with pytest.raises(mx.MXNetError, match="JPEG or PNG"):
        mx.image.imdecode(b"nonsense")
    with pytest.raises(TypeError, match="imread"):
        mx.image.imdecode("some.png")
    with pytest.raises(mx.MXNetError, match="missing.jpg"):
        mx.image.imread(str(tmp_path / "missing.jpg"))


def test_images_in_records_are_blue_first_as_in_opencv():
    pixels = pattern(5, 6, 3)
    record = mx.recordio.pack_img((0, 3.0, 7, 0), pixels, quality=3, img_fmt=".png")
    header, back = mx.recordio.unpack_img(record)
    assert (header.label, header.id) == (3.0, 7)
    np.testing.assert_array_equal(back, pixels)
    np.testing.assert_array_equal(mx.image.imdecode(mx.recordio.unpack(record)[1]).asnumpy(), pixels[:, :, ::-1])
    header, back = mx.recordio.unpack_img(mx.recordio.pack_img((0, 1.0, 0, 0), pixels[:, :, 0]), iscolor=0)
    assert back.shape == (5, 6)
    assert np.abs(back.astype(int) - pixels[:, :, 0]).max() < 40  # JPEG


def test_sizes_and_borders():
    assert mx.image.scale_down((640, 480), (720, 120)) == (640, 106)
    assert mx.image.imresize(image(4, 6), 3, 2).shape == (2, 3, 3)
    assert mx.image.imresize(image(4, 6), 3, 2, interp=10).shape == (2, 3, 3)
    bordered = mx.image.copyMakeBorder(image(4, 6), 1, 2, 3, 4, values=(1, 2, 3))
    assert bordered.shape == (7, 13, 3)
    assert bordered.asnumpy()[0, 0].tolist() == [1, 2, 3]
    assert mx.image.copyMakeBorder(image(4, 6), 1, 0, 0, 0, values=7).asnumpy()[0, 0, 0] == 7
    with pytest.raises(mx.MXNetError, match="inside the image"):
        mx.image.fixed_crop(image(4, 6), 3, 0, 4, 2)


def test_augmenters_describe_themselves():
    augs = mx.image.CreateAugmenter((3, 8, 8), resize=10, rand_crop=True, rand_resize=True, brightness=0.1)
    assert [json.loads(a.dumps())[0] if isinstance(a.dumps(), str) else a.dumps()[0] for a in augs] == [
        "resizeaug",
        "randomsizedcropaug",
        "castaug",
        "colorjitteraug",
    ]
    assert augs[0].dumps() == '["resizeaug", {"size": 10, "interp": 2}]'


@pytest.fixture
def folder(tmp_path):
    """Seven images of one color each, as files and in a RecordIO file with an index."""
    writer = mx.recordio.MXIndexedRecordIO(str(tmp_path / "all.idx"), str(tmp_path / "all.rec"), "w")
    lines = []
    for i in range(7):
        data = mx.image.imencode(np.full((6, 8, 3), i * 10, "uint8"), ".png", 3)
        (tmp_path / f"{i}.png").write_bytes(data)
        writer.write_idx(i, mx.recordio.pack((0, float(i), i, 0), data))
        lines.append(f"{i}\t{i}\t{i}.png\n")
    writer.close()
    (tmp_path / "all.lst").write_text("".join(lines))
    return tmp_path


def sources(folder):
    return [
        {"path_imgrec": str(folder / "all.rec")},
        {"path_imgrec": str(folder / "all.rec"), "path_imgidx": str(folder / "all.idx")},
        {"path_imglist": str(folder / "all.lst"), "path_root": str(folder)},
        {"imglist": [[float(i), f"{i}.png"] for i in range(7)], "path_root": str(folder)},
    ]


@pytest.mark.parametrize("source", range(4))
def test_image_iter_reads_records_and_files(folder, source):
    it = mx.image.ImageIter(3, (3, 4, 4), **sources(folder)[source])
    assert it.provide_data == [("data", (3, 3, 4, 4))]
    for _ in range(2):
        batches = list(it)
        assert [batch.label[0].asnumpy().tolist() for batch in batches[:2]] == [[0, 1, 2], [3, 4, 5]]
        assert batches[1].data[0].asnumpy()[:, 0, 0, 0].tolist() == [30, 40, 50]
        assert batches[2].label[0].asnumpy().tolist() == [6, 0, 1]  # padded from the beginning
        assert [batch.pad for batch in batches] == [0, 0, 2]
        it.reset()


def test_image_iter_pads_a_batch_with_few_images(folder):
    it = mx.image.ImageIter(9, (3, 4, 4), imglist=[[1.0, "1.png"], [2.0, "2.png"]], path_root=str(folder))
    for _ in range(2):
        (batch,) = it
        assert batch.label[0].asnumpy().tolist() == [1, 2, 1, 2, 1, 2, 1, 2, 1] and batch.pad == 7
        it.reset()


def test_image_iter_discards_and_rolls_over(folder):
    it = mx.image.ImageIter(3, (3, 4, 4), last_batch_handle="discard", **sources(folder)[0])
    assert len(list(it)) == 2
    it = mx.image.ImageIter(3, (3, 4, 4), last_batch_handle="roll_over", **sources(folder)[0])
    assert len(list(it)) == 2
    it.reset()
    assert [batch.label[0].asnumpy().tolist() for batch in it] == [[6, 0, 1], [2, 3, 4]]


def test_image_iter_shuffles_and_takes_parts(folder):
    random.seed(1)
    it = mx.image.ImageIter(7, (3, 4, 4), shuffle=True, **sources(folder)[1])
    order = it.next().label[0].asnumpy().tolist()
    assert sorted(order) == list(range(7)) and order != list(range(7))
    it = mx.image.ImageIter(1, (3, 4, 4), num_parts=3, part_index=1, **sources(folder)[2])
    assert [batch.label[0].asnumpy()[0] for batch in it] == [2, 3]
    with pytest.raises(AssertionError, match="path_imgidx"):
        mx.image.ImageIter(1, (3, 4, 4), shuffle=True, **sources(folder)[0])
    with pytest.raises(AssertionError, match="path_imgrec"):
        mx.image.ImageIter(1, (3, 4, 4))


def test_image_iter_leaves_out_broken_images(folder):
    (folder / "3.png").write_bytes(b"nonsense")
    it = mx.image.ImageIter(6, (3, 4, 4), **sources(folder)[2])
    assert it.next().label[0].asnumpy().tolist() == [0, 1, 2, 4, 5, 6]


def test_internal_names_of_functions_do_what_the_public_ones_do(tmp_path):
    internal, pixels = mx.nd._internal, image(4, 6)
    coded, path = mx.image.imencode(pixels, ".png", 3), str(tmp_path / "image.png")
    with open(path, "wb") as file:
        file.write(coded)
    pairs = [
        (internal._cvimdecode(coded), pixels),
        (internal._cvimdecode(coded, 1, False), pixels[:, :, ::-1]),
        (internal._cvimdecode(coded, flag=0), mx.image.imdecode(coded, flag=0)),
        (internal._cvimread(path), pixels),
        (internal._cvimread(path, to_rgb=False), pixels[:, :, ::-1]),
        (internal._cvimread(path, 0), mx.image.imdecode(coded, flag=0)),
        (internal._cvimresize(pixels, 3, 8), mx.image.imresize(pixels, 3, 8)),
        (internal._cvimresize(pixels, 3, 8, 0), mx.image.imresize(pixels, 3, 8, interp=0)),
        (internal._cvcopyMakeBorder(pixels, 1, 2, 3, 4), mx.image.copyMakeBorder(pixels, 1, 2, 3, 4)),
        (internal._cvcopyMakeBorder(pixels, 1, 0, 0, 1, 0, 9), mx.image.copyMakeBorder(pixels, 1, 0, 0, 1, value=9)),
    ]
    for ours, public in pairs:
        np.testing.assert_array_equal(ours.asnumpy(), public.asnumpy())


@pytest.fixture
def objects(tmp_path):
    """Three images with one to three objects."""
    path = str(tmp_path / "objects.rec")
    with mx.recordio.MXRecordIO(path, "w") as writer:
        for i in range(3):
            boxes = [[k, 0.1 + 0.2 * k, 0.2, 0.4 + 0.2 * k, 0.7] for k in range(i + 1)]
            label = [4, 5, 20, 10] + sum(boxes, [])
            writer.write(mx.recordio.pack((0, label, i, 0), mx.image.imencode(image(20, 30), ".png", 3)))
    return path


def test_objects_come_with_their_images(objects):
    it = mx.image.ImageDetIter(3, (3, 12, 12), path_imgrec=objects)
    assert it.provide_label == [("label", (3, 3, 5))]
    label = it.next().label[0].asnumpy()
    np.testing.assert_allclose(label[0], [[0, 0.1, 0.2, 0.4, 0.7], [-1] * 5, [-1] * 5], rtol=1e-6)
    np.testing.assert_allclose(label[2, 2], [2, 0.5, 0.2, 0.8, 0.7], rtol=1e-6)
    it.reshape(label_shape=(5, 5))
    it.reset()
    assert it.next().label[0].shape == (3, 5, 5)


def drawn(objects, **keywords):
    return list(mx.image.ImageDetIter(3, (3, 12, 12), path_imgrec=objects).draw_next(**keywords))


def test_boxes_are_drawn_into_their_images(objects):
    first, _, last = drawn(objects, color=(255, 0, 1), thickness=1)
    assert first.shape == (12, 12, 3) and first.dtype == np.uint8
    # From (0.1, 0.2) to (0.4, 0.7) of 12 x 12 pixels.
    frame = np.zeros((12, 12), bool)
    frame[2:9, 1:5] = True
    frame[3:8, 2:4] = False
    np.testing.assert_array_equal((first == (255, 0, 1)).all(axis=2), frame)
    assert (last[2, [1, 4, 6, 9]] == (255, 0, 1)).all()  # three boxes
    thick = drawn(objects, color=(255, 0, 1), thickness=2)[0]
    np.testing.assert_array_equal((thick == (255, 0, 1)).all(axis=2)[2:9, 2], [True] * 7)


def test_drawing_restores_colours(objects):
    plain = mx.image.ImageDetIter(3, (3, 12, 12), path_imgrec=objects).next().data[0].asnumpy()[0].transpose(1, 2, 0)
    outside = np.s_[10:]  # below the box
    np.testing.assert_array_equal(drawn(objects)[0][outside], plain[outside])
    np.testing.assert_array_equal(
        drawn(objects, mean=[200, 2, 0], std=[2, 0.5, 1])[0][outside],
        np.clip(plain[outside] * np.array([2, 0.5, 1]) + np.array([200, 2, 0]), 0, 255).astype("uint8"),
    )


def test_images_are_shown_and_named_by_opencv(objects, monkeypatch):
    calls = []
    names = ("imshow", "waitKey", "putText")
    functions = {name: lambda *given, name=name: calls.append((name, *given)) for name in names}
    monkeypatch.setitem(sys.modules, "cv2", types.SimpleNamespace(FONT_HERSHEY_SIMPLEX=0, **functions))
    images = drawn(objects, color=(1, 2, 3), waitKey=7, window_name="objects", id2labels={0: "cat", 2: "dog"})
    assert [call[0] for call in calls] == ["putText", "imshow", "waitKey"] * 2 + ["putText"] * 2 + ["imshow", "waitKey"]
    assert calls[0][2:] == ("cat", (1, 12), 0, 0.5, (1, 2, 3), 1)
    assert calls[1][1] == "objects" and (calls[1][2][..., ::-1] == images[0]).all()
    assert calls[2] == ("waitKey", 7)
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(mx.MXNetError, match="needs OpenCV"):
        drawn(objects, waitKey=1)


def test_boxes_move_with_crops_and_borders():
    # The object is white on black: its box can be read from the image.
    pixels = np.zeros((60, 80, 3), "uint8")
    pixels[15:30, 20:60] = 255
    label = np.array([[1, 20 / 80, 15 / 60, 60 / 80, 30 / 60]], "float32")
    random.seed(3)
    crop = mx.image.DetRandomCropAug(min_object_covered=0.5, area_range=(0.3, 0.9), min_eject_coverage=0.5)
    pad = mx.image.DetRandomPadAug(pad_val=(0, 0, 0))
    flip = mx.image.DetHorizontalFlipAug(1.0)
    shapes = set()
    for _ in range(100):
        src, boxes = mx.nd.array(pixels, dtype="uint8"), label
        for aug in random.sample([crop, pad, flip], 3):
            src, boxes = aug(src, boxes)
        shapes.add(src.shape)
        assert boxes.shape == (1, 5)
        rows, columns = np.nonzero(src.asnumpy()[:, :, 0])
        height, width = src.shape[:2]
        box = [columns.min() / width, rows.min() / height, (columns.max() + 1) / width, (rows.max() + 1) / height]
        np.testing.assert_allclose(boxes[0, 1:], box, atol=1e-5)
    assert len(shapes) > 20


def test_detection_augmenters_are_combined(objects):
    random.seed(2)
    it = mx.image.ImageDetIter(
        3, (3, 12, 12), path_imgrec=objects, rand_crop=0.7, rand_pad=0.7, rand_mirror=True, mean=True, std=True, hue=0.1
    )
    for _ in range(10):
        for batch in it:
            label = batch.label[0].asnumpy()
            boxes = label[label[:, :, 0] >= 0]
            assert len(boxes) and (boxes[:, 1:] >= -1e-6).all() and (boxes[:, 1:] <= 1 + 1e-6).all()
        it.reset()


def test_wrong_labels_of_objects_are_named(tmp_path):
    path = str(tmp_path / "wrong.rec")
    with mx.recordio.MXRecordIO(path, "w") as writer:
        writer.write(mx.recordio.pack((0, [2, 4, 1, 2, 3, 4, 5], 0, 0), mx.image.imencode(image(4, 4))))
    with pytest.raises(RuntimeError, match="cannot have a head of 2 and objects of 4"):
        mx.image.ImageDetIter(1, (3, 4, 4), path_imgrec=path)

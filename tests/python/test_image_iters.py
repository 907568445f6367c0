"""ImageRecordIter and its relatives."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import symbind as mx


def png(image):
    return mx._symbind.imencode(mx.nd.array(image, dtype="uint8"), ".png", 1)


@pytest.fixture
def records(tmp_path):
    """Ten plain images of 6 x 5; the color and the label say which it is."""
    paths = str(tmp_path / "some.idx"), str(tmp_path / "some.rec")
    writer = mx.recordio.MXIndexedRecordIO(*paths, "w")
    for i in range(10):
        writer.write_idx(i, mx.recordio.pack((0, float(i), i, 0), png(np.full((6, 5, 3), i * 10))))
    writer.close()
    return paths[1]


def test_batches_have_labels_ids_and_padding(records):
    it = mx.io.ImageRecordIter(path_imgrec=records, data_shape=(3, 4, 4), batch_size=4, verbose=False)
    assert it.provide_data == [("data", (4, 3, 4, 4))]
    assert it.provide_label == [("softmax_label", (4,))]
    given = [(batch.label[0].asnumpy().tolist(), list(batch.index), batch.pad) for batch in it]
    assert given == [
        ([0, 1, 2, 3], [0, 1, 2, 3], 0),
        ([4, 5, 6, 7], [4, 5, 6, 7], 0),
        ([8, 9, 0, 1], [8, 9, 0, 1], 2),
    ]
    it.reset()
    assert it.next().label[0].asnumpy().tolist() == [2, 3, 4, 5]


@pytest.mark.parametrize("make, dtype", [("ImageRecordUInt8Iter", np.uint8), ("ImageRecordInt8Iter", np.int8)])
def test_pixels_as_they_are(records, make, dtype):
    it = getattr(mx.io, make)(path_imgrec=records, data_shape=(3, 4, 4), batch_size=2, verbose=False)
    batch = it.next()
    assert batch.data[0].dtype == dtype
    assert batch.data[0].asnumpy()[:, 0, 0, 0].tolist() == [0, 10]


def test_scripts_pass_numbers_texts_and_paths(records, tmp_path):
    it = mx.io.ImageRecordIter(
        path_imgrec=tmp_path / "some.rec",
        data_shape=[3, 4, 4],
        batch_size=np.int64(2),
        shuffle="False",
        rand_crop=1,
        mean_r=np.float32(1),
        scale=2,
        resize=6.0,
        label_name="label",
        verbose=0,
        ctx="gpu",
        device_id=0,
    )
    assert it.provide_label[0].name == "label"
    assert it.next().data[0].asnumpy()[1, :, 0, 0].tolist() == [18, 20, 20]
    it = mx.io.ImageRecordIter(path_imgrec=tmp_path / "some.rec", data_shape="(3, 4, 4)", batch_size="2")
    assert it.iter_next() and it.getdata().shape == (2, 3, 4, 4) and it.getlabel().shape == (2,)
    with pytest.raises((TypeError, ValueError, SyntaxError)):
        mx.io.ImageRecordIter(path_imgrec=tmp_path / "some.rec", data_shape="3 x 4 x 4", batch_size=2)


def test_pixels_that_a_device_normalizes(records):
    options = {
        "path_imgrec": records,
        "data_shape": (3, 4, 4),
        "batch_size": 4,
        "rand_crop": True,
        "rand_mirror": True,
        "seed_aug": 3,
        "mean_r": 12.5,
        "std_g": 3,
        "scale": 0.25,
        "verbose": False,
    }
    net = mx.sym.FullyConnected(mx.sym.Convolution(mx.sym.var("data"), kernel=(3, 3), num_filter=2), num_hidden=10)
    net = mx.sym.SoftmaxOutput(net, name="softmax")
    given = mx.io.ImageRecordIter(**options, normalize_on_device=True)
    desc = given.provide_data[0]
    assert desc.dtype == np.float32 and desc.normalization == ([12.5, 0, 0], [1, 3, 1], 0.25)
    assert pickle.loads(pickle.dumps(desc)).normalization == desc.normalization

    def trained(wrap, **more):
        data = wrap(mx.io.ImageRecordIter(**options, **more))
        mx.random.seed(1)
        module = mx.mod.Module(net, context=[mx.cpu(0), mx.cpu(1)])
        module.fit(data, num_epoch=2, initializer=mx.init.Xavier(), optimizer_params={"learning_rate": 0.01})
        return {name: value.asnumpy() for name, value in module.get_params()[0].items()}

    for way in (lambda data: data, mx.io.PrefetchingIter, lambda data: mx.io.ResizeIter(data, 3), InPython):
        expected = trained(way)
        for name, value in trained(way, normalize_on_device=True).items():
            np.testing.assert_array_equal(value, expected[name])

    module = mx.mod.Module(net)
    module.bind([("data", (4, 3, 4, 4))], [("softmax_label", (4,))])
    module.init_params(mx.init.Xavier())
    batch, numbers = given.next(), mx.io.ImageRecordIter(**options).next()
    assert batch.data[0].dtype == np.uint8 and batch.provide_data[0].normalization == desc.normalization
    outputs = []
    for each in (batch, numbers):
        module.forward(each, is_train=False)
        outputs.append(module.get_outputs()[0].asnumpy())
    np.testing.assert_array_equal(*outputs)
    of_slices = mx.mod.Module(net, context=[mx.cpu(0), mx.cpu(1)])
    of_slices.bind([("data", (4, 3, 4, 4))], [("softmax_label", (4,))])
    of_slices.set_params(*module.get_params())
    slices = [mx.io.DataBatch([batch.data[0][i : i + 2]], provide_data=batch.provide_data) for i in (0, 2)]
    of_slices.forward(slices, is_train=False)
    np.testing.assert_allclose(of_slices.get_outputs()[0].asnumpy(), outputs[0], rtol=1e-6)

    with pytest.raises(mx.MXNetError, match="normalize_on_device.*max_random_contrast"):
        mx.io.ImageRecordIter(**options, normalize_on_device=True, max_random_contrast=0.1)
    with pytest.raises(TypeError, match=r"\(mean, std, scale\).*not 3"):
        module.reshape([mx.io.DataDesc("data", (4, 3, 4, 4), normalization=3)], [("softmax_label", (4,))])


class InPython(mx.io.DataIter):
    """An iterator in Python that passes on the batches of another."""

    def __init__(self, source):
        super().__init__(source.batch_size)
        self.source = source
        self.provide_data = source.provide_data
        self.provide_label = source.provide_label

    def reset(self):
        self.source.reset()

    def next(self):
        batch = self.source.next()
        return mx.io.DataBatch(batch.data, batch.label, batch.pad)


def test_wrong_arguments_are_named(records):
    with pytest.raises(TypeError, match="ImageRecordIter has no argument rand_croop"):
        mx.io.ImageRecordIter(path_imgrec=records, data_shape=(3, 4, 4), batch_size=2, rand_croop=True)
    with pytest.raises(TypeError, match="needs the argument data_shape"):
        mx.io.ImageRecordIter(path_imgrec=records, batch_size=2)
    with pytest.raises(mx.MXNetError, match="nowhere.rec.*No such file"):
        mx.io.ImageRecordIter(path_imgrec="nowhere.rec", data_shape=(3, 4, 4), batch_size=2)
    with pytest.raises((TypeError, ValueError), match="could not convert|resize"):
        mx.io.ImageRecordIter(path_imgrec=records, data_shape=(3, 4, 4), batch_size=2, resize="large")


def test_the_mean_image_is_computed_once(records, tmp_path):
    path = str(tmp_path / "mean.nd")
    options = {"path_imgrec": records, "data_shape": (3, 4, 4), "batch_size": 4, "verbose": False}
    batch = mx.io.ImageRecordIter(mean_img=path, **options).next()
    np.testing.assert_allclose(mx.nd.load(path)["mean_img"].asnumpy(), np.full((3, 4, 4), 45), rtol=1e-6)
    np.testing.assert_allclose(batch.data[0].asnumpy()[:, 0, 0, 0], [-45, -35, -25, -15], rtol=1e-6)
    mx.nd.save(path, {"mean_img": mx.nd.full((3, 4, 4), 1)})
    batch = mx.io.ImageRecordIter(mean_img=path, **options).next()
    assert batch.data[0].asnumpy()[0, 0, 0, 0] == -1


def test_broken_images_are_raised_or_left_out(tmp_path, caplog):
    path = str(tmp_path / "broken.rec")
    with mx.recordio.MXRecordIO(path, "w") as writer:
        for i in range(4):
            writer.write(mx.recordio.pack((0, float(i), i, 0), b"nonsense" if i == 1 else png(np.full((4, 4, 3), i))))
    options = {"path_imgrec": path, "data_shape": (3, 4, 4), "batch_size": 4, "verbose": False}
    with pytest.raises(mx.MXNetError, match=r"broken.rec\] the record at offset \d+: .*JPEG or PNG"):
        mx.io.ImageRecordIter(**options).next()
    batch = mx.io.ImageRecordIter(skip_bad_images=True, **options).next()
    assert batch.label[0].asnumpy().tolist() == [0, 0, 2, 3]


def test_a_forked_child_says_that_the_threads_are_elsewhere(records):
    it = mx.io.ImageRecordIter(path_imgrec=records, data_shape=(3, 4, 4), batch_size=4, verbose=False)
    it.next()
    child = os.fork()
    if child == 0:
        try:
            it.next()
        except mx.MXNetError as error:
            del it
            os._exit(0 if "not in this fork" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert it.next().label[0].asnumpy().tolist() == [4, 5, 6, 7]


def test_the_interpreter_ends_with_batches_in_the_making(records):
    script = (
        "import symbind as mx\n"
        f"it = mx.io.ImageRecordIter(path_imgrec={records!r}, data_shape=(3, 4, 4), batch_size=2, verbose=False)\n"
        "it.next()\n"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=120).returncode == 0


def test_memory_stays_flat_over_epochs(records):
    it = mx.io.ImageRecordIter(path_imgrec=records, data_shape=(3, 64, 64), batch_size=5, verbose=False)

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def epochs(count):
        for _ in range(count):
            for batch in it:
                batch.data[0].wait_to_read()
            it.reset()

    epochs(50)
    before = resident()
    epochs(400)
    assert resident() - before < 8 << 20


def test_a_network_is_trained_from_images(records):
    it = mx.io.ImageRecordIter(
        path_imgrec=records, data_shape=(3, 4, 4), batch_size=5, scale=1 / 100, shuffle=True, verbose=False
    )
    net = mx.sym.FullyConnected(mx.sym.Flatten(mx.sym.Variable("data")), num_hidden=1)
    net = mx.sym.LinearRegressionOutput(net, mx.sym.Variable("softmax_label"), name="out")
    model = mx.mod.Module(net, label_names=["softmax_label"])
    model.fit(it, num_epoch=60, optimizer_params={"learning_rate": 0.02}, eval_metric="mse")
    it.reset()
    assert model.score(it, "mse")[0][1] < 1


@pytest.fixture
def objects(tmp_path):
    """Three images with one to three objects; the first object is white on black."""
    path = str(tmp_path / "objects.rec")
    with mx.recordio.MXRecordIO(path, "w") as writer:
        for i in range(3):
            pixels = np.zeros((60, 80, 3))
            pixels[15:30, 20:60] = 255
            boxes = [[0, 20 / 80, 15 / 60, 60 / 80, 30 / 60]] + [[k, 0.1, 0.1, 0.9, 0.9] for k in range(1, i + 1)]
            writer.write(mx.recordio.pack((0, [4, 5, 20, 10] + sum(boxes, []), i, 0), png(pixels)))
    return path


def detection(objects, size=48, **options):
    return mx.io.ImageDetRecordIter(
        path_imgrec=objects, data_shape=(3, size, size), batch_size=3, verbose=False, **options
    )


def test_objects_come_with_their_images(objects):
    it = detection(objects)
    assert it.provide_label[0].shape == (3, 23)
    label = it.next().label[0].asnumpy()
    np.testing.assert_allclose(label[0, :13], [3, 48, 48, 9, 4, 5, 20, 10, 0, 0.25, 0.25, 0.75, 0.5], rtol=1e-6)
    assert (label[0, 13:] == -1).all()
    assert label[2, 3] == 19
    assert detection(objects, label_pad_width=30, label_pad_value=-2).next().label[0].shape == (3, 34)
    with pytest.raises(mx.MXNetError, match="at least that of the longest label, 19: 10"):
        detection(objects, label_pad_width=10)
    with pytest.raises(mx.MXNetError, match="label_width is 9"):
        detection(objects, label_width=9).next()


@pytest.mark.parametrize("mode", ["fit", "shrink"])
def test_images_may_keep_their_aspect(objects, mode):
    batch = detection(objects, resize_mode=mode, fill_value=7).next()
    assert batch.label[0].asnumpy()[0, 1:3].tolist() == [36, 48]
    assert batch.data[0].asnumpy()[0, 0, 40, 5] == 7


@pytest.mark.parametrize(
    "options",
    [
        {"rand_mirror_prob": 1.0},
        {"rand_pad_prob": 1.0, "max_pad_scale": 3.0, "fill_value": 0},
        {
            "rand_crop_prob": 1.0,
            "min_crop_scales": (0.5,),
            "max_crop_scales": (0.9,),
            "min_crop_aspect_ratios": (0.7,),
            "max_crop_aspect_ratios": (1.4,),
            "min_crop_object_coverages": (0.5,),
            "rand_mirror_prob": 0.5,
        },
        {"rand_crop_prob": 0.5, "min_crop_scales": (0.6,), "crop_emit_mode": "overlap", "resize": 50},
    ],
)
def test_boxes_move_with_their_images(objects, options):
    # Crops begin at whole pixels: in about one of a hundred small ones a box is further off, by 0.05 at most of 3,500.
    mx.random.seed(1)
    it = detection(objects, size=96, **options)
    boxes = set()
    for _ in range(20):
        batch = it.next()
        for image, label in zip(batch.data[0].asnumpy(), batch.label[0].asnumpy()):
            found = [row for row in label[8:].reshape(-1, 5) if row[0] == 0]
            if not found:
                continue
            rows, columns = np.nonzero(image[0] > 127)
            box = [columns.min() / 96, rows.min() / 96, (columns.max() + 1) / 96, (rows.max() + 1) / 96]
            np.testing.assert_allclose(found[0][1:], box, atol=0.035)
            boxes.add(tuple(found[0][1:]))
        it.reset()
    assert len(boxes) >= (1 if options == {"rand_mirror_prob": 1.0} else 10)


def test_objects_may_have_more_than_a_box(tmp_path):
    """As in VOC, whose objects also say whether they are difficult."""
    path = str(tmp_path / "difficult.rec")
    with mx.recordio.MXRecordIO(path, "w") as writer:
        for i in range(4):
            boxes = [[k, 0.1, 0.1, 0.5, 0.9, k % 2] for k in range(i % 2 + 1)]
            writer.write(mx.recordio.pack((0, [2, 6] + sum(boxes, []), i, 0), png(np.zeros((8, 8, 3)))))
    batches = list(mx.image.ImageDetIter(2, (3, 8, 8), path_imgrec=path))
    assert len(batches) == 2 and batches[0].label[0].shape == (2, 2, 6)
    np.testing.assert_allclose(batches[0].label[0].asnumpy()[1, 1], [1, 0.1, 0.1, 0.5, 0.9, 1], rtol=1e-6)


def test_wrong_detection_options_are_named(objects):
    with pytest.raises(mx.MXNetError, match="resize_mode"):
        detection(objects, resize_mode="stretch")
    with pytest.raises(mx.MXNetError, match="crop_emit_mode"):
        detection(objects, crop_emit_mode="none")
    with pytest.raises(TypeError, match="no argument rand_crop;"):
        detection(objects, rand_crop=True)

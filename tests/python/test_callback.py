"""Callbacks of training, and where messages go."""

import logging
import os
import re
import struct
import subprocess
import sys
import textwrap
import threading
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
from script_runs import environment, package_path

import symbind as mx
from symbind import _symbind
from symbind.model import BatchEndParam


def param(nbatch, metric=None, epoch=0):
    return BatchEndParam(epoch, nbatch, metric, {})


def accuracy(value=0.5):
    metric = mx.metric.Accuracy()
    metric.sum_metric, metric.num_inst = value, 1
    return metric


def messages(caplog):
    return [record.getMessage() for record in caplog.records]


@pytest.fixture(autouse=True)
def info(caplog):
    caplog.set_level(logging.INFO)


def test_speedometer(caplog):
    metric = accuracy()
    speedometer = mx.callback.Speedometer(batch_size=10, frequent=2)
    assert (speedometer.batch_size, speedometer.frequent, speedometer.auto_reset) == (10, 2, True)
    for nbatch in range(5):
        speedometer(param(nbatch, metric))
    first, second = messages(caplog)
    assert first.startswith("Epoch[0] Batch [0-2]\tSpeed: ") and first.endswith(" samples/sec\taccuracy=0.500000")
    assert second.startswith("Epoch[0] Batch [2-4]") and second.endswith("accuracy=nan")
    assert metric.num_inst == 0
    caplog.clear()
    kept = accuracy()
    lasting = mx.callback.Speedometer(10, 2, auto_reset=False)
    for nbatch in range(3):
        lasting(param(nbatch, kept))
    assert messages(caplog)[0].startswith("Epoch[0] Batch [0-2]") and kept.num_inst == 1
    caplog.clear()
    for nbatch in range(3):
        mx.callback.Speedometer(10, 1)(param(nbatch))  # the first call begins to measure
    assert messages(caplog) == []


def test_subclasses_that_measure_themselves():
    class Own(mx.callback.Speedometer):
        def __call__(self, param):
            if self.last_count > param.nbatch:
                self.init = False
            self.last_count = param.nbatch
            if not self.init:
                self.init, self.tic = True, 1.5

    own = Own(32)
    assert (own.init, own.tic, own.last_count) == (False, 0, 0)
    own(mx.model.BatchEndParam(epoch=0, nbatch=3, eval_metric=None, locals=None))
    assert (own.init, own.tic, own.last_count) == (True, 1.5, 3)
    bar = mx.callback.ProgressBar(9.5, length=20)
    assert (bar.total, bar.bar_len) == (10, 20)


def test_metrics_written_in_python_are_shown(caplog):
    class Mine(mx.metric.EvalMetric):
        def get(self):
            return ["a", "b"], [1, 2.5]

    mx.callback.log_train_metric(2)(param(4, Mine("mine")))
    mx.callback.log_train_metric(2)(param(3, Mine("mine")))
    assert messages(caplog) == ["Iter[0] Batch[4] Train-a=1.000000", "Iter[0] Batch[4] Train-b=2.500000"]


def test_anything_with_the_attributes_will_do(caplog):
    Like = namedtuple("Like", "epoch nbatch eval_metric")
    metric = accuracy(0.25)
    mx.callback.log_train_metric(1, auto_reset=True)(Like(np.int64(3), np.int32(7), metric))
    assert messages(caplog) == ["Iter[3] Batch[7] Train-accuracy=0.250000"] and metric.num_inst == 0
    mx.callback.LogValidationMetricsCallback()(Like(2, 0, accuracy()))
    assert messages(caplog)[1] == "Epoch[2] Validation-accuracy=0.500000"
    mx.callback.ProgressBar(total=2, length=4)(Like(0, 0, None))
    assert messages(caplog)[2] == "[==--] 50%"
    with pytest.raises(AttributeError, match="nbatch"):
        mx.callback.Speedometer(1)(object.__new__(type("Empty", (), {"epoch": 0})))


def test_checkpoints(tmp_path):
    symbol = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    weights = {"fc_weight": mx.nd.ones((2, 3)), "fc_bias": mx.nd.zeros((2,))}
    save = mx.callback.do_checkpoint(str(tmp_path / "net"), period=2)
    for epoch in range(4):
        save(epoch, symbol, weights, {})
    assert sorted(os.listdir(tmp_path)) == ["net-0002.params", "net-0004.params", "net-symbol.json"]
    loaded = mx.nd.load(str(tmp_path / "net-0004.params"))
    assert np.array_equal(loaded["arg:fc_weight"].asnumpy(), np.ones((2, 3)))

    class Module:
        saved = []

        def save_checkpoint(self, prefix, epoch, save_optimizer_states):
            self.saved.append((prefix, epoch, save_optimizer_states))

    save = mx.callback.module_checkpoint(Module(), "net", period=2, save_optimizer_states=True)
    for epoch in range(4):
        save(epoch)
        save(epoch, None, None, None)
    assert Module.saved == [("net", 2, True)] * 2 + [("net", 4, True)] * 2


# ---- inside fit


class Counted(mx.io.DataIter):
    """A generator in Python; its batches carry more than batches have."""

    provide_data = [("data", (2, 3))]
    provide_label = [("softmax_label", (2,))]

    def __init__(self):
        self.steps = []

    def __iter__(self):
        self.steps.append("iter")
        for i in range(4):
            batch = mx.io.DataBatch([mx.nd.ones((2, 3))], [mx.nd.array([0, 1])])
            batch.number = i
            yield batch

    def reset(self):
        self.steps.append("reset")


class Summed(mx.metric.EvalMetric):
    """Probabilities add up to one, row by row."""

    def update(self, labels, preds):
        self.sum_metric += float(preds[0].asnumpy().sum())
        self.num_inst += len(labels[0])


def module():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    return mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))


def test_what_callbacks_receive_from_fit(caplog):
    data, metric, trained = Counted(), Summed("summed"), module()
    batches, epochs, ends = [], [], []
    trained.fit(
        data,
        eval_data=Counted(),
        eval_metric=metric,
        num_epoch=2,
        batch_end_callback=[batches.append, mx.callback.Speedometer(2, 2)],
        epoch_end_callback=lambda *given: epochs.append(given),
        eval_end_callback=ends.append,
    )
    assert data.steps == ["iter", "reset"] * 2
    assert [(p.epoch, p.nbatch) for p in batches] == [(e, b) for e in range(2) for b in range(4)]
    for given in batches:
        assert isinstance(given, mx.model.BatchEndParam) and given.eval_metric is metric
        assert given.locals["data_batch"].number == given.nbatch == given.locals["nbatch"]
        assert given.locals["train_data"] is data and given.locals["self"] is trained
        assert given.locals["eval_metric"] is metric and given.locals["epoch"] == given.epoch
    assert [(epoch, sorted(arg), aux) for epoch, _, arg, aux in epochs] == [
        (epoch, ["fc_bias", "fc_weight"], {}) for epoch in range(2)
    ]
    assert epochs[0][1].list_outputs() == ["softmax_output"]
    assert [end.eval_metric is metric for end in ends] == [True, True]
    speeds = [line for line in messages(caplog) if "Speed" in line]
    assert len(speeds) == 2 and all(line.endswith("summed=1.000000") for line in speeds)


def test_metrics_of_all_kinds_in_score():
    trained = module()
    trained.bind([("data", (2, 3))], [("softmax_label", (2,))])
    trained.init_params()
    scored = trained.score(Counted(), ["acc", Summed("summed"), lambda label, pred: pred.sum()])
    assert [name for name, _ in scored] == ["accuracy", "summed", "custom(<lambda>)"]
    assert [value for _, value in scored] == pytest.approx([0.5, 1, 2], rel=1e-5)
    assert trained.score(mx.io.PrefetchingIter(Counted()), "acc", num_batch=3) == [("accuracy", 0.5)]


def test_what_python_throws_ends_fit():
    class Trouble(Exception):
        pass

    def throw(*given):
        raise Trouble("enough")

    class Throwing(Summed):
        update = throw

    for arguments in (
        {"batch_end_callback": throw},
        {"epoch_end_callback": [throw]},
        {"eval_metric": Throwing("throwing")},
        {"monitor": mx.mon.Monitor(1, throw)},
        {"eval_data": Counted(), "eval_batch_end_callback": throw},
    ):
        with pytest.raises(Trouble, match="enough"):
            module().fit(Counted(), num_epoch=1, **arguments)
    with pytest.raises(TypeError, match="a callback must be callable: 3 is not"):
        module().fit(Counted(), num_epoch=1, batch_end_callback=3)


# ---- messages


def test_messages_go_to_logging(caplog):
    _symbind.write_log("100 % of it")
    _symbind.write_log("careful", warning=True)
    assert [(r.levelname, r.getMessage(), r.name) for r in caplog.records] == [
        ("INFO", "100 % of it", "root"),
        ("WARNING", "careful", "root"),
    ]


MESSAGES = {
    "an iterator": "mx.io.MNISTIter(image=IMAGES, label=LABELS, batch_size=2)",
    "a warning": "mx.mod.Module(net, label_names=['no_such_label'])",
    "a module": "module.fit(train, num_epoch=1)",
    "a module with the logging module": "mx.mod.Module(net, logger=logging).fit(train, num_epoch=1)",
    "names that do not match": "mx.module.base_module._check_names_match(['a'], [('b', (1,))], 'data', False)",
    "a verbose initializer": "mx.init.One().set_verbosity(True)(mx.init.InitDesc('w_weight'), mx.nd.ones((2,)))",
    "FeedForward": "mx.model.FeedForward(net, num_epoch=1).fit(train)",
    "a callback": "mx.callback.do_checkpoint(FOLDER + '/net')(0, net, {}, {})",
}


def test_no_module_of_the_package_uses_functions_that_configure_logging():
    folder = Path(mx.__file__).parent
    calls = re.compile(r"\b_?(?:logging|logger or _logging\))\.(?:debug|info|warning|error|critical|exception|log)\(")
    found = [
        f"{path.relative_to(folder)}: {line}"
        for path in folder.rglob("*.py")
        for line in calls.findall(path.read_text())
    ]
    assert found == []


def standard_error_of(program):
    """What a program writes that trains `net` on `train`; it runs alone, as pytest gives the root logger handlers."""
    setup = """
        import logging
        import numpy as np
        import symbind as mx

        net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3), name="softmax")
        train = mx.io.NDArrayIter(np.ones((8, 6)), np.zeros(8), 4)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(setup) + textwrap.dedent(program)],
        env=environment(package_path()),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("call", MESSAGES.values(), ids=MESSAGES)
def test_no_message_configures_logging(call, tmp_path):
    images, labels = tmp_path / "images", tmp_path / "labels"
    images.write_bytes(struct.pack(">IIII", 0x803, 4, 2, 2) + bytes(16))
    labels.write_bytes(struct.pack(">II", 0x801, 4) + bytes(4))
    program = f"""
        IMAGES, LABELS, FOLDER = {str(images)!r}, {str(labels)!r}, {str(tmp_path)!r}
        module = mx.mod.Module(net)
        {call}
        assert not logging.getLogger().handlers, "a message configured the root logger"
        logging.basicConfig(level=logging.DEBUG, format="%(levelname)s: %(message)s")
        train.reset()
        mx.mod.Module(net).fit(train, num_epoch=1)
    """
    assert "INFO: Epoch[0] Train-accuracy=" in standard_error_of(program)


TRAINING = {
    "a module": "mx.mod.Module(net).fit(train, num_epoch=1, batch_end_callback=speedometer)",
    "FeedForward": "mx.model.FeedForward(net, num_epoch=1).fit(train, batch_end_callback=speedometer)",
    "a loop": "for i in range(3): speedometer(mx.model.BatchEndParam(0, i, None, None))",
}


@pytest.mark.parametrize("level", ["INFO", "DEBUG"])
@pytest.mark.parametrize("call", TRAINING.values(), ids=TRAINING)
def test_messages_are_shown_where_the_root_logger_has_a_level_and_no_handler(call, level):
    program = f"""
        logging.getLogger().setLevel(logging.{level})
        speedometer = mx.callback.Speedometer(batch_size=4, frequent=1)
        {call}
        assert len(logging.getLogger().handlers) == 1
    """
    assert re.search(r"^INFO:root:(Epoch|Iter)\[0\] Batch \[.*\]\tSpeed: ", standard_error_of(program), re.MULTILINE)


def test_messages_of_a_logger_of_its_own_leave_the_root_logger_alone():
    program = """
        logging.getLogger().setLevel(logging.DEBUG)
        logger = logging.getLogger("mine")
        logger.addHandler(logging.StreamHandler())
        mx.mod.Module(net, logger=logger).fit(train, num_epoch=1)
        assert not logging.getLogger().handlers
    """
    assert standard_error_of(program).startswith("Epoch[0] Train-accuracy=")


def test_messages_go_to_the_logger_at_work(caplog):
    class Logger:
        def __init__(self):
            self.lines = []

        def info(self, message):
            self.lines.append(message)

        def warning(self, message):
            self.lines.append("! " + message)

    logger = Logger()
    _symbind.write_log("one", logger=logger)
    _symbind.write_log("two", warning=True, logger=logger)
    _symbind.write_log("three", logger=logging)
    _symbind.write_log("four", logger=logging.getLogger("mine"))
    assert logger.lines == ["one", "! two"]
    assert [(r.name, r.getMessage()) for r in caplog.records] == [("root", "three"), ("mine", "four")]

    class Broken:
        def info(self, message):
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        _symbind.write_log("five", logger=Broken())
    _symbind.write_log("six")
    assert messages(caplog)[-1] == "six"


def test_many_threads_may_write(caplog):
    threads = [threading.Thread(target=lambda: [_symbind.write_log("x") for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert messages(caplog) == ["x"] * 200


def test_the_last_messages_go_to_standard_error():
    program = """
import atexit
atexit.register(lambda: _symbind.write_log("good bye"))  # runs after what the import below registers
from symbind import _symbind
_symbind.write_log("unseen: logging shows warnings only")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "good bye\n")


# By what validation finds


def trained(**arguments):
    """The epochs that were begun, and the module."""
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2), name="softmax")
    values = np.random.RandomState(1).uniform(-1, 1, (8, 3)).astype("float32")
    data = mx.io.NDArrayIter(values, np.arange(8) % 2, batch_size=4)
    module = mx.mod.Module(net)
    epochs = []
    module.fit(
        data,
        eval_data=mx.io.NDArrayIter(values, np.arange(8) % 2, batch_size=4),
        epoch_end_callback=[lambda epoch, *_: epochs.append(epoch), *arguments.pop("epoch_end_callback", [])],
        num_epoch=arguments.pop("num_epoch", 20),
        **arguments,
    )
    assert data.next() is not None  # it was reset
    return epochs, module


def test_early_stopping_ends_fit(caplog):
    stopping = mx.callback.EarlyStopping(patience=2, metric="accuracy")
    assert (stopping.best_value, stopping.best_epoch) == (None, None)
    epochs, _ = trained(eval_end_callback=stopping, optimizer_params={"learning_rate": 0})
    assert epochs == [0, 1, 2] and stopping.best_epoch == 0 and stopping.waited == 2
    assert any("early stopping: accuracy was best" in message for message in messages(caplog))
    patient = mx.callback.EarlyStopping(1, mode="min")
    assert trained(eval_end_callback=patient, optimizer_params={"learning_rate": 0})[0] == [0, 1]


def test_any_callback_may_stop_training(caplog):
    class Enough(mx.callback.StopTraining):
        pass

    def stop_epoch(epoch, *_):
        if epoch == 1:
            raise Enough("seen enough")

    seen = []
    epochs, _ = trained(epoch_end_callback=[stop_epoch, lambda epoch, *_: seen.append(epoch)])
    assert epochs == seen == [0, 1]
    assert "Epoch[1] seen enough" in messages(caplog)

    def stop_batch(param):
        raise mx.callback.StopTraining

    assert trained(batch_end_callback=stop_batch)[0] == []
    assert trained(eval_batch_end_callback=stop_batch)[0] == [0]
    with pytest.raises(mx.callback.StopTraining, match="early stopping"):
        mx.callback.EarlyStopping(1)(param(0, accuracy(float("nan"))))


def test_the_best_is_saved(tmp_path):
    prefix = str(tmp_path / "best")
    saved = []

    class Saver:
        def save_checkpoint(self, prefix, epoch, save_optimizer_states=False):
            saved.append((prefix, epoch, save_optimizer_states))

    best = mx.callback.SaveBest(Saver(), prefix, save_optimizer_states=True)
    for epoch, value in enumerate([0.5, 0.4, 0.75, float("nan"), 0.75]):
        metric = mx.metric.Accuracy()
        metric.sum_metric = metric.global_sum_metric = value
        metric.num_inst = metric.global_num_inst = 1
        best(param(0, metric, epoch))
    assert saved == [(prefix, 0, True)] * 2 and (best.best_epoch, best.best_value) == (2, 0.75)

    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))
    data, validation = (mx.io.NDArrayIter(np.ones((4, 3)), np.zeros(4), batch_size=4) for _ in range(2))
    module.fit(data, eval_data=validation, eval_end_callback=mx.callback.SaveBest(module, prefix), num_epoch=1)
    assert set(mx.model.load_checkpoint(prefix, 0)[1]) == {"fc_weight", "fc_bias"}


def test_what_best_means_is_asked_where_the_name_does_not_tell():
    metric = mx.metric.CustomMetric(lambda label, pred: 1.0, name="quality")
    with pytest.raises(mx.MXNetError, match="quality.*max.*min"):
        mx.callback.EarlyStopping(1)(param(0, metric))
    with pytest.raises(mx.MXNetError, match="patience"):
        mx.callback.EarlyStopping(0)
    with pytest.raises(mx.MXNetError, match="mode"):
        mx.callback.EarlyStopping(1, mode="best")


def test_numbers_of_batches_may_be_floats(caplog, tmp_path):
    """What Python 2 divided to a whole number is a float today."""
    speedometer = mx.callback.Speedometer(np.int64(4), 5 / 2.5, auto_reset=0)
    assert (speedometer.batch_size, speedometer.frequent, speedometer.auto_reset) == (4, 2, False)
    metric = mx.metric.create("acc")
    with caplog.at_level("INFO"):
        for batch in range(5):
            param = mx.model.BatchEndParam(epoch=0, nbatch=batch, eval_metric=metric, locals=None)
            speedometer(param)
            mx.callback.ProgressBar(total=4.5, length=10)(param)
    lines = [record.getMessage() for record in caplog.records]
    assert sum("samples/sec" in line for line in lines) == 2 and sum("[" in line and "%" in line for line in lines) == 5
    save = mx.callback.do_checkpoint(str(tmp_path / "net"), period=4 / 2)
    for epoch in range(4):
        save(epoch, mx.sym.Variable("x"), {}, {})
    assert sorted(path.name for path in tmp_path.glob("*.params")) == ["net-0002.params", "net-0004.params"]
    mx.callback.log_train_metric(2.0)
    with pytest.raises(ValueError, match="number of batches"):
        mx.callback.Speedometer(4, float("nan"))

"""Programs as people wrote them for MXNet, under both names of the package, against what MXNet made of them."""

import logging
import re
import sys

import numpy as np
import pytest
from script_runs import RUNS, SCRIPTS, disagreements, environment, execute, package_path, recorded, with_import

import symbind as mx

MXNETS = recorded()


@pytest.fixture(params=RUNS, ids=lambda run: run.name)
def run(request):
    return request.param


def test_a_script_that_imports_symbind_ends_where_mxnet_ends(run, tmp_path):
    script = tmp_path / f"{run.script}.py"
    script.write_text(with_import(run.script, "symbind"))
    ours = execute([sys.executable, script], run.arguments, environment(package_path()), tmp_path)
    assert disagreements(run, ours, MXNETS[run.name]) == []


def test_a_script_that_imports_mxnet_runs_as_it_is(run, tmp_path):
    command = [sys.executable, "-m", "symbind", SCRIPTS / f"{run.script}.py"]
    ours = execute(command, run.arguments, environment(package_path()), tmp_path)
    assert disagreements(run, ours, MXNETS[run.name]) == []


def test_fit_writes_the_lines_that_readers_of_logs_look_for(caplog, tmp_path):
    data = mx.io.NDArrayIter(np.ones((8, 3)), np.zeros(8), 2)
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2)
    module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))
    prefix = str(tmp_path / "model")
    with caplog.at_level(logging.INFO):
        module.fit(
            data,
            eval_data=data,
            num_epoch=1,
            batch_end_callback=mx.callback.Speedometer(2, 2),
            epoch_end_callback=mx.callback.do_checkpoint(prefix),
        )
    wanted = [
        r"Epoch\[0\] Batch \[0-2\]\tSpeed: \d+\.\d\d samples/sec\taccuracy=\d\.\d{6}",
        r"Epoch\[0\] Train-accuracy=\d\.\d{6}",
        r"Epoch\[0\] Time cost=\d+\.\d{3}",
        r'Saved checkpoint to ".*model-0001\.params"',
        r"Epoch\[0\] Validation-accuracy=\d\.\d{6}",
    ]
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == len(wanted), lines
    for line, pattern in zip(lines, wanted):
        assert re.fullmatch(pattern, line), line


def test_every_script_is_run_and_recorded():
    assert {run.script for run in RUNS} == {path.stem for path in SCRIPTS.glob("*.py")}
    assert {run.name for run in RUNS} == set(MXNETS)

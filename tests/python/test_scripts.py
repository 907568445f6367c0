"""Programs as people wrote them for MXNet, under both names of the package, against what MXNet made of them."""

import sys

import pytest
from script_runs import RUNS, SCRIPTS, disagreements, environment, execute, package_path, recorded, with_import

MXNETS = recorded()


@pytest.fixture(params=RUNS, ids=lambda run: run.name)
def run(request):
    return request.param


def test_a_script_that_imports_symbind_ends_where_mxnet_ends(run, tmp_path):
    script = tmp_path / f"{run.script}.py"
    script.write_text(with_import(run.script, "import symbind as mx"))
    ours = execute([sys.executable, script], run.arguments, environment(package_path()), tmp_path)
    assert disagreements(run, ours, MXNETS[run.name]) == []


def test_a_script_that_imports_mxnet_runs_as_it_is(run, tmp_path):
    command = [sys.executable, "-m", "symbind", SCRIPTS / f"{run.script}.py"]
    ours = execute(command, run.arguments, environment(package_path()), tmp_path)
    assert disagreements(run, ours, MXNETS[run.name]) == []


def test_every_script_is_run_and_recorded():
    assert {run.script for run in RUNS} == {path.stem for path in SCRIPTS.glob("*.py")}
    assert {run.name for run in RUNS} == set(MXNETS)

"""The programs in scripts/: with which arguments each is run, and how near its results must come to MXNet's.

A script says `import mxnet as mx`, prints lines `RESULT name value`, and fails when something is off. Most of them draw
their first parameters with NumPy, so that MXNet and we start at one point and should end at one.
"""

import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = Path(__file__).resolve().parent / "scripts"
RECORDED = ROOT / "tests" / "oracle" / "recorded" / "scripts.json"

# A result may differ by this part of 0.1 + |value| where nothing else is said: the rounding of a few hundred steps.
USUAL_TOLERANCE = 3e-4


@dataclass(frozen=True)
class Run:
    name: str
    script: str
    arguments: tuple = ()
    tolerance: dict = field(default_factory=dict)  # result → part of 0.1 + |value|


DIGITS = ("--data-dir", str(ROOT / "data"))
RUNS = [
    # Xavier draws from the library's own generator, so these start elsewhere.
    Run("mnist_fit_mlp", "mnist_fit", (*DIGITS, "--network", "mlp"), {"accuracy": 0.04}),
    Run("mnist_fit_lenet", "mnist_fit", (*DIGITS, "--network", "lenet", "--iterator", "ndarray"), {"accuracy": 0.04}),
    Run("intermediate_loop", "intermediate_loop"),
    Run("simple_bind_loop", "simple_bind_loop"),
    Run("custom_softmax", "custom_softmax"),
    Run("numpy_op", "numpy_op"),
    Run("makeloss", "makeloss"),
    Run("multi_task", "multi_task", DIGITS),
    # Hundreds of steps in which two networks answer each other.
    Run("gan", "gan", (), {"mean_0": 5e-3, "mean_1": 5e-3}),
    # What is learnt depends on which of two nearly equal actions is taken.
    Run("dqn", "dqn", (), {"q_near_goal": 5e-3, "q_middle": 5e-3}),
    Run("resume", "resume"),
    Run("monitor", "monitor"),
    Run("matrix_factorisation", "matrix_factorisation"),
    Run("mutable_module", "mutable_module"),
    Run("python_extensions", "python_extensions"),
    Run("feature_extraction", "feature_extraction"),
    Run("checkpoint_predict", "checkpoint_predict"),
    Run("feedforward", "feedforward"),
    Run("data_parallel", "data_parallel"),
    Run("bucketing_lm", "bucketing_lm"),
    Run("sequential_loss", "sequential_loss"),
    Run("epoch_schedules", "epoch_schedules"),
    Run("sentence_buckets", "sentence_buckets"),
    Run("memory_cost", "memory_cost"),
    # Which background anchors count is a choice among nearly equal scores.
    Run("ssd", "ssd", (), {"CrossEntropy": 0.05, "detections": 0.02}),
]


def environment(package_path=None, **more):
    """The variables a script runs under; `package_path` is where its library is, if it is not installed."""
    env = dict(os.environ, OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore", **more)
    env.pop("PYTHONPATH", None)
    if package_path:
        env["PYTHONPATH"] = str(package_path)
    return env


def execute(command, arguments, env, folder):
    """Runs a program; its results, or an AssertionError with what it printed."""
    done = subprocess.run(
        [*map(str, command), *arguments], env=env, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    text = done.stdout + done.stderr
    assert done.returncode == 0, f"exit status {done.returncode}:\n{text[-2000:]}"
    found = [line.split() for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    assert found, f"no RESULT line:\n{text[-2000:]}"
    return {name: float(value) for _, name, value in found}


def allowed(run, name, value):
    return run.tolerance.get(name, USUAL_TOLERANCE) * (0.1 + abs(value))


def disagreements(run, ours, mxnets):
    """What is wrong with our results, in words."""
    if ours.keys() != mxnets.keys():
        return [f"results {sorted(ours)}, MXNet's are {sorted(mxnets)}"]
    return [
        f"{name} is {ours[name]:.6g}, with MXNet {value:.6g}"
        for name, value in mxnets.items()
        if not abs(ours[name] - value) <= allowed(run, name, value)
    ]


def recorded():
    return json.loads(RECORDED.read_text())["runs"]


def with_import(script, package):
    """The script's text with another package instead of the one it imports."""
    text = (SCRIPTS / f"{script}.py").read_text()
    assert text.count("import mxnet as mx\n") == 1, script
    return text.replace("import mxnet as mx\n", f"import {package} as mx\n").replace(
        "\nfrom mxnet", f"\nfrom {package}"
    )


def package_path():
    """The folder of the symbind of this process."""
    import symbind

    return Path(symbind.__file__).parent.parent

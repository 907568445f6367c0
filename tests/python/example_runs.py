"""Programs of examples/ as a user runs them, and images for them to read."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import symbind

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "python"


def run(name, *arguments, folder):
    """Runs a program of examples/python; its log and then what it printed."""
    env = os.environ | {"PYTHONPATH": str(Path(symbind.__file__).absolute().parents[1]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, EXAMPLES / f"{name}.py", *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)
    text = done.stderr + done.stdout
    assert done.returncode == 0, f"exit status {done.returncode}:\n{text[-3000:]}"
    return text


def write_images(folder, count, classes):
    """Random images of 48 × 40 pixels as train.rec and train.idx."""
    random = np.random.RandomState(1)
    record = symbind.recordio.MXIndexedRecordIO(f"{folder}/train.idx", f"{folder}/train.rec", "w")
    for number in range(count):
        image = random.randint(0, 256, (40, 48, 3)).astype(np.uint8)
        header = symbind.recordio.IRHeader(0, float(number % classes), number, 0)
        record.write_idx(number, symbind.recordio.pack_img(header, image, img_fmt=".png"))
    record.close()

"""The C++ program reads a RecordIO file that Python wrote, and trains on it.

usage: train_on_records.py PROGRAM     (examples/train_imagenet)

Exit status 77: this build has no images.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from example_runs import write_images  # noqa: E402

import symbind  # noqa: E402

OPTIONS = (
    "--network mobilenet --multiplier 0.25 --image-shape 3,32,32 --num-classes 4 --batch-size 8 --num-examples 24 "
    "--data-train train.rec --data-train-idx train.idx --data-val train.rec --random-crop yes --random-mirror yes "
    "--pad-size 2 --data-nthreads 1"
)


def main():
    with tempfile.TemporaryDirectory() as folder:
        try:
            write_images(folder, 24, classes=4)
        except symbind.MXNetError as error:
            if "built without" not in str(error):
                raise
            print(error)
            sys.exit(77)
        command = [Path(sys.argv[1]).resolve(), *OPTIONS.split()]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    text = done.stderr + done.stdout
    if done.returncode != 0 or not re.search(r"100%.*Validation-accuracy=", text, re.DOTALL):
        sys.exit(f"exit status {done.returncode}:\n{text}")


if __name__ == "__main__":
    main()

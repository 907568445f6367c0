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
    "--data-train train.rec --data-train-idx train.idx --data-val train.rec --random-crop 1 --random-mirror 1 "
    "--pad-size 2 --data-nthreads 1 --fill-value 0 --rgb-std 58.4,57.1,57.4 --random-resized-crop 1 "
    "--min-random-area 0.5 --min-random-aspect-ratio 0.75 --max-random-aspect-ratio 1.33 --max-random-h 18 "
    "--max-random-rotate-angle 10 --brightness 0.1 --saturation 0.1 --pca-noise 0.05"
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

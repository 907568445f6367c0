"""Images per second of ImageRecordIter, and of MXNet's and torchvision's loaders in the same run.

Makes JPEG files of 500 x 375 pixels with the statistics of photographs, packs them into a RecordIO file, and lets every
loader take turns: decode, resize the shorter side to 256, crop 224, mirror, normalize. Prints medians and our rate over
theirs.

PEER_TORCH and PEER_MXNET name the Python of an environment with the peer (PEER_TORCH: with torchvision and Pillow).

usage: PEER_TORCH=.../bin/python PEER_MXNET=.../bin/python python3 bench/images.py [--rounds 5] [--seconds 4]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from run import python_of_package

HERE = Path(__file__).resolve().parent

MAKE_IMAGES = """
import sys
import numpy as np
import symbind as mx

def photograph(draw, height, width):
    y, x = np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)[None]
    amplitude = 1 / np.maximum(np.hypot(y, x), 1 / width) ** 1.15
    layers = [np.fft.ifft2(amplitude * np.exp(2j * np.pi * draw.rand(height, width))).real for _ in range(3)]
    light, red, blue = (layer / layer.std() for layer in layers)
    colors = np.stack([light + red / 4, light - (red + blue) / 10, light + blue / 4], axis=-1)
    return np.clip(128 + 50 * colors, 0, 255).astype("uint8")

folder, records, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
draw = np.random.RandomState(0)
with mx.recordio.MXRecordIO(records, "w") as writer:
    for i in range(count):
        image = mx.nd.array(photograph(draw, *((375, 500) if i % 3 else (500, 375))), dtype="uint8")
        data = mx._symbind.imencode(image, ".jpg", 90)
        writer.write(mx.recordio.pack((0, i % 10, i, 0), data))
        with open(f"{folder}/{i:05d}.jpg", "wb") as file:
            file.write(data)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--count", type=int, default=512, help="images in the file (%(default)s)")
    parser.add_argument("--build", type=Path, default=HERE.parent / "build" / "release")
    arguments = parser.parse_args()
    python = python_of_package(arguments.build)
    if not python:
        sys.exit(f"{arguments.build} has no Python package")
    loaders = {"symbind": (python, {**os.environ, "PYTHONPATH": str(arguments.build / "python")})}
    if os.environ.get("PEER_MXNET"):
        loaders["mxnet"] = (os.environ["PEER_MXNET"], {**os.environ, "MXNET_SUBGRAPH_BACKEND": "NONE"})
    if os.environ.get("PEER_TORCH"):
        loaders["torch"] = loaders["torch-io"] = (os.environ["PEER_TORCH"], dict(os.environ))

    rates = {name: [] for name in loaders}
    with tempfile.TemporaryDirectory() as temporary:
        folder, records = Path(temporary, "files"), Path(temporary, "images.rec")
        folder.mkdir()
        python, environment = loaders["symbind"]
        made = [python, "-c", MAKE_IMAGES, str(folder), str(records), str(arguments.count)]
        subprocess.run(made, env=environment, check=True)
        for _ in range(arguments.rounds):
            for name, (python, environment) in loaders.items():
                command = [python, str(HERE / "peers" / "image_loaders.py"), name, "--records", str(records)]
                command += ["--folder", str(folder), "--threads", str(arguments.threads)]
                command += ["--seconds", str(arguments.seconds)]
                done = subprocess.run(command, env=environment, capture_output=True, text=True)
                if done.returncode:
                    sys.exit(f"{name} failed:\n{done.stderr}")
                rates[name].append(json.loads(done.stdout.strip().splitlines()[-1])["images_per_s"])

    print("| loader | images/s | ours over it |\n|---|---:|---:|")
    for name, measured in rates.items():
        ratio = statistics.median(ours / theirs for ours, theirs in zip(rates["symbind"], measured))
        print(f"| {name} | {statistics.median(measured):.0f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()

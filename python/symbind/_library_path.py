"""Where NVIDIA's Python packages (nvidia-cudnn-cu13 and the like) have their libraries. The extension finds those
beside itself; they may also be in another folder of sys.path: the user's, or the system's under a virtual
environment."""

import os
import sys
from glob import glob


def add_packages():
    """Appends their folders to SYMBIND_LIBRARY_PATH, which the library searches when it first needs one of them."""
    listed = [folder for folder in os.environ.get("SYMBIND_LIBRARY_PATH", "").split(":") if folder]
    found = [folder for place in sys.path for folder in sorted(glob(os.path.join(place or ".", "nvidia", "*", "lib")))]
    new = [folder for folder in map(os.path.abspath, found) if folder not in listed and ":" not in folder]
    if new:
        os.environ["SYMBIND_LIBRARY_PATH"] = ":".join(listed + list(dict.fromkeys(new)))

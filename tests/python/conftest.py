"""A build without libjpeg and libpng skips the tests that need them, with the library's own words, and so does a
machine without LAPACK, unless `make` has set up the source tree, which installs it. On a machine with one
GPU gpu(0) and gpu(1) both use it."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

os.environ.setdefault("SYMBIND_GPUS", "2")
import symbind as mx  # noqa: E402

NO_DECODER = r"(JPEG|PNG) images are not available: built without lib(jpeg|png)"
NO_LAPACK = "LAPACK is not available"


def _lacks_a_decoder():
    header, image = mx.recordio.IRHeader(0, 0, 0, 0), np.zeros((1, 1, 3), np.uint8)
    try:
        for format in (".jpg", ".png"):
            mx.recordio.pack_img(header, image, img_fmt=format)
    except mx.MXNetError as error:
        return re.search(NO_DECODER, str(error)) is not None
    return False


def _lacks_lapack():
    is_set_up = (Path(__file__).parents[2] / ".venv").exists()
    return not is_set_up and not mx.runtime.Features().is_enabled("LAPACK")


missing = [
    *([NO_DECODER] if _lacks_a_decoder() else []),
    *([NO_LAPACK] if _lacks_lapack() else []),
]
if missing:

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(item, call):
        outcome = yield
        report = outcome.get_result()
        # The words may also be in what a program printed before it failed.
        text = str(call.excinfo.getrepr()) if report.failed and call.excinfo else ""
        if reason := re.search("|".join(missing), text):
            report.outcome = "skipped"
            report.longrepr = (str(item.path), item.location[1], f"Skipped: {reason.group(0)}")

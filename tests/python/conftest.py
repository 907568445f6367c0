"""A build without libjpeg and libpng skips the tests that need them, with the library's own words."""

import re

import numpy as np
import pytest

import symbind as mx

WITHOUT = re.compile(r"(JPEG|PNG) images are not available: built without lib(jpeg|png)")


def _lacks_a_decoder():
    header, image = mx.recordio.IRHeader(0, 0, 0, 0), np.zeros((1, 1, 3), np.uint8)
    try:
        for format in (".jpg", ".png"):
            mx.recordio.pack_img(header, image, img_fmt=format)
    except mx.MXNetError as error:
        return WITHOUT.search(str(error)) is not None
    return False


if _lacks_a_decoder():

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(item, call):
        outcome = yield
        report = outcome.get_result()
        # The words may also be in what a program printed before it failed.
        reason = WITHOUT.search(str(call.excinfo.getrepr())) if report.failed and call.excinfo else None
        if reason:
            report.outcome = "skipped"
            report.longrepr = (str(item.path), item.location[1], f"Skipped: {reason.group(0)}")

"""Images on their way to a network. Random operators are asked with ranges of one factor."""

from .common import FLOATS, case

PIXELS = ["uint8", "float32"]


def image(*shape, dtype="uint8"):
    return lambda v: {"data": v.rng.randint(0, 256, shape or (4, 5, 3)).astype(dtype)}


def cases():
    for dtype in PIXELS:
        yield case("_image_to_tensor", dtype, image(dtype=dtype), grad_req=None)
        # MXNet leaves the middle of an odd number of rows or columns out.
        yield case("_image_flip_left_right", dtype, image(3, 6, 3, dtype=dtype), grad_req=None)
        yield case("_image_flip_top_bottom", dtype, image(4, 5, 3, dtype=dtype), grad_req=None)
        crop = {"x": 1, "y": 2, "width": 3, "height": 2}
        yield case("_image_crop", dtype, image(dtype=dtype), crop, grad_req="write" if dtype == "float32" else None)
        for op in ["brightness", "contrast"]:
            for name, factor in [("more", 1.5), ("less", 0.375), ("as_it_is", 1)]:
                attrs = {"min_factor": factor, "max_factor": factor}
                yield case(f"_image_random_{op}", f"{name}_{dtype}", image(dtype=dtype), attrs, grad_req=None)
        for name, size, interp in [
            ("larger", "(9, 7)", 1),
            ("smaller", "(3, 2)", 1),
            ("nearest", "(8, 3)", 0),
            ("cubic", "(9, 7)", 2),
            ("area", "(3, 2)", 3),
            ("square", "(6,)", 1),
        ]:
            if dtype == "uint8" and name in ("larger", "square"):
                continue  # OpenCV's last bit depends on the instruction set
            attrs = {"size": size, "interp": interp}
            yield case("_image_resize", f"{name}_{dtype}", image(dtype=dtype), attrs, grad_req=None)
    attrs = {"size": "(6,)", "keep_ratio": "True"}
    yield case("_image_resize", "keep_ratio", image(dtype="float32"), attrs, grad_req=None)
    for name, factor in [("a_third", 0.3), ("more_than_once", 1.75)]:
        attrs = {"min_factor": factor, "max_factor": factor}
        yield case("_image_random_hue", name, image(dtype="float32"), attrs, grad_req=None)
    yield case(
        "_image_adjust_lighting", "float32", image(dtype="float32"), {"alpha": "(0.1, -0.2, 0.3)"}, grad_req=None
    )
    yield case("_image_adjust_lighting", "uint8", image(), {"alpha": "(0.5, 0.25, -1)"}, grad_req=None)
    yield case(
        "_image_random_contrast",
        "of_one_channel",
        image(4, 5, 1),
        {"min_factor": 1.5, "max_factor": 1.5},
        grad_req=None,
    )
    # What random operators draw is not compared; the wheel's saturation is right where it changes nothing.
    photo = image(dtype="float32")
    yield case("_image_random_saturation", "as_it_is", photo, {"min_factor": 1, "max_factor": 1}, grad_req=None)
    yield case("_image_random_lighting", "drawn", photo, {"alpha_std": 0.1}, grad_req=None, compare="shape")
    jitter = {"brightness": 0.1, "contrast": 0.2, "saturation": 0.3, "hue": 0.4}
    yield case("_image_random_color_jitter", "drawn", photo, jitter, grad_req=None, compare="shape")
    below_0 = {"brightness": 0.1, "contrast": -0.2, "saturation": -0.3, "hue": -0.4}
    yield case("_image_random_color_jitter", "below_0", photo, below_0, grad_req=None, compare="shape")
    for axis in ["left_right", "top_bottom"]:
        yield case(f"_image_random_flip_{axis}", "drawn", photo, grad_req=None, compare="shape")
    op = "_image_normalize"
    for dtype in FLOATS:
        attrs = {"mean": "(0.5, 0.25, 0.125)", "std": "(2, 4, 0.5)"}
        yield case(op, dtype, lambda v, d=dtype: {"data": v.real(3, 4, 5, dtype=d)}, attrs)
    one = {"mean": "(0.5,)", "std": "(2,)"}
    yield case(op, "batch", lambda v: {"data": v.real(2, 3, 4, 5)}, one)
    yield case(op, "one_channel", lambda v: {"data": v.real(1, 4, 5)}, one)
    yield case(op, "bad_mean", lambda v: {"data": v.real(3, 4, 5)}, {"mean": "(1, 2)"}, expect_error=True)
    yield case(op, "bad_channels", lambda v: {"data": v.real(2, 4, 5)}, one, expect_error=True)
    batch = image(2, 4, 5, 3)
    yield case("_image_to_tensor", "batch", batch, grad_req=None)
    yield case("_image_crop", "batch", batch, {"x": 1, "y": 2, "width": 3, "height": 2}, grad_req=None)
    yield case("_image_crop", "outside", batch, {"x": 3, "y": 2, "width": 3, "height": 2}, expect_error=True)
    yield case("_image_resize", "batch", image(2, 4, 5, 3, dtype="float32"), {"size": "(7, 6)"}, grad_req=None)

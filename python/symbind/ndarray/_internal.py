"""Every operator on arrays, those with an underscore before their name among them."""

from .. import _functions, _symbind


def _cvimdecode(buf, flag=1, to_rgb=True, out=None, name=None, **kwargs):
    """The image in an array of bytes: mx.image.imdecode."""
    from ..image import imdecode

    return imdecode(buf, flag=flag, to_rgb=to_rgb, out=out)


def _cvimread(filename, flag=1, to_rgb=True, out=None, name=None, **kwargs):
    """The image in a file: mx.image.imread."""
    from ..image import imread

    return imread(filename, flag=flag, to_rgb=to_rgb, out=out)


def _cvimresize(src, w, h, interp=1, out=None, name=None, **kwargs):
    """An image of another size: mx.image.imresize."""
    from ..image import imresize

    return imresize(src, w, h, interp=interp, out=out)


def _cvcopyMakeBorder(src, top, bot, left, right, type=0, value=0.0, values=(), out=None, name=None, **kwargs):
    """An image with a border: mx.image.copyMakeBorder."""
    from ..image import copyMakeBorder

    return copyMakeBorder(src, top, bot, left, right, type=type, value=value, values=values, out=out)


def _set_value(src, out=None, name=None, **kwargs):
    """Sets all elements of the array `out` to the number `src`."""
    if out is None:
        raise _symbind.MXNetValueError("_set_value needs out, the array that it fills")
    out[:] = float(src)
    return out


_functions.install(globals(), symbolic=False, prefixes=("",), private=True)

"""What Python and NumPy have removed: back for scripts that run as MXNet's, and only for them."""
# ruff: noqa: E501 (an expression and its result are on one line)

import subprocess
import sys

import pytest
from script_runs import environment, package_path

# Names that this Python may still have are taken away first, as Python 3.13 has done, so that every version tests the same.
AS_IN_PYTHON_3_13 = """
import importlib.machinery, sys
gone = {"imp", "distutils", "pipes", "cgi", "xml.etree.cElementTree"}
found = importlib.machinery.PathFinder.find_spec
def find_spec(name, path=None, target=None):
    return None if name in gone or name.startswith("distutils.") else found(name, path, target)
importlib.machinery.PathFinder.find_spec = find_spec
sys.meta_path[:] = [f for f in sys.meta_path if "distutils" not in type(f).__module__ + type(f).__name__.lower()]
for name in [name for name in sys.modules if name in gone or name.startswith("distutils.")]:
    del sys.modules[name]
import unittest
for name in ("assertEquals", "assertItemsEqual", "assertRaisesRegexp"):
    if hasattr(unittest.TestCase, name):
        delattr(unittest.TestCase, name)
"""

# A line is an expression of an old script, and what it was in its time.
EXPRESSIONS = {
    "NumPy's types": [
        ("np.zeros(1, dtype=np.int).dtype.kind, np.zeros(1, dtype=np.float).dtype == np.float64", "('i', True)"),
        ("np.zeros(1, dtype=np.bool).dtype.kind, np.array([None], dtype=np.object).dtype.kind", "('b', 'O')"),
        ("isinstance('', np.str) or np.str, np.dtype(np.long).kind, np.dtype(np.complex).kind", "(True, 'i', 'c')"),
        ("np.float_ is np.float64, np.unicode_ is np.str_, np.string_ is np.bytes_", "(True, True, True)"),
        ("np.Inf, np.NINF, np.NaN != np.NaN, np.infty", "(inf, -inf, True, inf)"),
        ("issubclass(np.VisibleDeprecationWarning, Warning), issubclass(np.AxisError, IndexError)", "(True, True)"),
    ],
    "NumPy's functions": [
        ("np.asscalar(np.array([3])), int(np.product([2, 3])), int(np.cumproduct([2, 3])[1])", "(3, 6, 6)"),
        ("bool(np.alltrue([1, 0])), bool(np.sometrue([1, 0])), np.rank([[1]])", "(False, True, 2)"),
        ("np.fromstring(b'\\x01\\x02', np.uint8).tolist(), np.fromstring('1 2', sep=' ').tolist()", "([1, 2], [1.0, 2.0])"),
        ("np.fromstring(b'\\x01\\x00\\x02\\x00', dtype='<i2', count=1).tolist()", "[1]"),
        ("np.fromstring(b'ab', np.uint8).flags.writeable, np.fromstring('\\xff', 'u1').tolist()", "(True, [255])"),
        ("np.arange(2, dtype='u1').tostring(), np.arange(4, dtype='u1').reshape(2, 2).tostring('F')", r"(b'\x00\x01', b'\x00\x02\x01\x03')"),
        ("np.in1d([[1, 2]], [2]).tolist(), float(np.trapz([0, 1])), float(np.round_(1.24, 1))", "([False, True], 0.5, 1.2)"),
        ("np.lib.arraysetops.intersect1d([1, 2], [2, 3]).tolist(), float(np.lib.function_base.average([1, 2]))", "([2], 1.5)"),
        ("np.asanyarray([[1], [1, 2]]).dtype", "dtype('O')"),
        ("np.mat([[1, 2]]).T.shape, np.math.sqrt(4), np.row_stack([[1], [2]]).shape", "((2, 1), 2.0, (2, 1))"),
        ("np.asfarray([1]).dtype.kind, np.msort([[2], [1]]).tolist(), int(np.random.random_integers(1))", "('f', [[1], [2]], 1)"),
        ("np.array([[1], [2, 3]]).dtype.kind, np.asarray([[1], [2, 3]]).shape", "('O', (2,))"),
        ("np.vstack(x for x in [[1], [2]]).shape, np.hstack(map(list, [[1], [2]])).tolist()", "((2, 1), [1, 2])"),
        ("np.linspace(0, 1, 3.0).tolist(), np.linspace(0, 1, num=2.0).tolist()", "([0.0, 0.5, 1.0], [0.0, 1.0])"),
        ("np.histogram([0, 1, 1], bins=2, range=(0, 2), normed=True)[0].round(3).tolist()", "[0.333, 0.667]"),
        ("np.arange(6).reshape(2, 3)[[slice(0, 1), slice(1, 3)]].tolist(), np.arange(2)[[None, 1]].tolist()", "([[1, 2]], [1])"),
        ("[np.float32(0.5), np.int64(3)], (np.float64(0.25),)", "([0.5, 3], (0.25,))"),
        ("np.arange(6)[[0, 5]].tolist(), np.arange(6)[[True] + [False] * 5].tolist()", "([0, 5], [0])"),
        ("float(np.array([[2.5]])), int(np.array([3.0])), '%d' % np.array([4]), np.math.sqrt(np.array([9.0]))", "(2.5, 3, '4', 3.0)"),
        ("np.array([1, 2], copy=False).tolist(), np.array([[1], [2, 3]], copy=False).shape", "([1, 2], (2,))"),
        ("(lambda a: np.array(a, copy=False) is a)(np.ones(2)), np.array((1, 2), 'f', copy=False).dtype.kind", "(True, 'f')"),
        ("int(np.arange(4).ptp()), np.arange(4).reshape(2, 2).ptp(axis=0).tolist()", "(3, [2, 2])"),
        ("(lambda a: (a.itemset(1, 5), a.itemset((0, 0), 6), a.itemset(1, 1, 7), a.tolist())[3])(np.zeros((2, 2), int))", "[[6, 5], [0, 7]]"),
        ("np.array([1], '<i2').newbyteorder().tolist(), np.reshape(np.arange(4), newshape=(2, 2)).shape", "([256], (2, 2))"),
        ("np.cast['int32'](3.7).item(), np.cast[np.float32]([1]).dtype.kind, np.nbytes[np.float64]", "(3, 'f', 8)"),
        ("np.float32 in np.sctypes['float'], np.obj2sctype('f4') is np.float32, np.safe_eval('[1]')", "(True, True, [1])"),
        ("np.issubsctype(np.int32, np.integer), np.issubsctype(np.float32, np.integer), np.byte_bounds(np.zeros(2))[0] > 0", "(True, False, True)"),
    ],
    "Python's modules": [
        ("time.clock() >= 0, fractions.gcd(12, 18), cgi.escape('<'), pipes.quote('a b')", "(True, 6, '&lt;', \"'a b'\")"),
        ("[issubclass(dict, getattr(collections, n)) for n in ('Mapping', 'Iterable', 'Sequence')]", "[True, True, False]"),
        ("tuple(inspect.getargspec(lambda a, b=1, *c, **d: 0))", "(['a', 'b'], 'c', 'd', (1,))"),
        ("ElementTree.fromstring('<a><b/></a>').getchildren()[0].tag, [e.tag for e in tree.getiterator('b')]", "('b', ['b'])"),
        ("base64.encodestring(b'a'), len(platform.linux_distribution()), os.errno.ENOENT", "(b'YQ==\\n', 3, 2)"),
        ("json.loads('[1]', encoding='utf-8'), len(random.sample({1, 2}, 1)), type('') is re._pattern_type", "([1], 1, False)"),
        ("shuffled(), threading.Thread().isAlive(), array.array('B', [1]).tostring()", r"([2, 3, 1], False, b'\x01')"),
        ("imp.load_source('beside', HERE + '/beside.py').VALUE, imp.new_module('m').__name__", "(7, 'm')"),
        ("imp.load_module('again', *imp.find_module('beside', [HERE])).VALUE", "7"),
        ("strtobool('Yes'), LooseVersion('1.10.0') > LooseVersion('1.9.1') > '1.9', find_executable('no such')", "(1, True, None)"),
        ("case.assertEquals(1, 1), case.assertItemsEqual([1, 2], [2, 1])", "(None, None)"),
    ],
}  # fmt: skip

IMPORTS = """
import mxnet as mx
import array, base64, cgi, collections, fractions, imp, inspect, json, os, pipes, platform, random, re, threading, time
import unittest
import numpy as np
import xml.etree.cElementTree as ElementTree
from distutils.util import strtobool
from distutils.version import LooseVersion
from distutils.spawn import find_executable
HERE = os.path.dirname(os.path.abspath(__file__))
tree = ElementTree.ElementTree(ElementTree.fromstring('<a><b/></a>'))
case = unittest.TestCase()
def shuffled():
    values = [1, 2, 3]
    random.shuffle(values, lambda: 0.0)
    return values
"""


def run(folder, program, prelude="", **variables):
    """Runs a program as `python -m symbind program.py` does; `prelude` comes before Symbind."""
    (folder / "program.py").write_text(program)
    start = f"import sys, runpy; sys.argv = ['symbind', {str(folder / 'program.py')!r}]\n{prelude}\n"
    start += "runpy.run_module('symbind', run_name='__main__', alter_sys=True)"
    env = {**environment(package_path()), **variables}
    return subprocess.run(
        [sys.executable, "-c", start], env=env, cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("old")
    (folder / "beside.py").write_text("VALUE = 7\n")
    lines = [expression for group in EXPRESSIONS.values() for expression, _ in group]
    program = IMPORTS + f"for line in {lines!r}:\n    try:\n        print(repr(eval(line)))\n"
    program += "    except Exception as error:\n        print(type(error).__name__, error)\n"
    done = run(folder, program, AS_IN_PYTHON_3_13, PYTHONWARNINGS="ignore")
    assert done.returncode == 0, done.stderr
    return dict(zip(lines, done.stdout.splitlines())), done.stderr


@pytest.mark.parametrize("expression, due", [pair for group in EXPRESSIONS.values() for pair in group])
def test_old_expressions_mean_what_they_did(answers, expression, due):
    assert answers[0][expression] == due


def test_the_log_says_so_once(answers):
    assert answers[1].count("SYMBIND_COMPAT=0") == 1, answers[1]


@pytest.mark.parametrize("value", ["0", "off", "False"])
def test_a_variable_turns_it_off(tmp_path, value):
    done = run(tmp_path, "import mxnet, collections\ncollections.Mapping\n", SYMBIND_COMPAT=value)
    assert done.returncode != 0 and "AttributeError" in done.stderr and "SYMBIND_COMPAT" not in done.stderr


def test_importing_symbind_changes_nothing_else():
    code = (
        "import collections, sys, numpy, time; before = set(vars(numpy)), numpy.array, set(vars(time));"
        "import symbind; symbind.test_utils; after = set(vars(numpy)), numpy.array, set(vars(time));"
        "assert before == after and not hasattr(collections, 'Mapping')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(package_path()), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_what_was_wrong_stays_wrong(tmp_path):
    program = """
import mxnet as mx, numpy as np
def fails(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
print(fails(lambda: np.nonsense), fails(lambda: np.array([[1], [2, 3]], dtype='f')), fails(lambda: np.arange(3)[[9]]),
      fails(lambda: np.arange(3)[[slice(0, 1), slice(0, 1)]]), fails(lambda: np.fromstring(b'abc', np.int16)),
      fails(lambda: np.vstack(3)), fails(lambda: np.fromstring(b'ab', np.int16, 2)), fails(lambda: float(np.ones(2))),
      fails(lambda: int(np.array([]))), fails(lambda: float(np.array(['a']))), fails(lambda: np.array([[1]], 'f', order='z')))
"""
    done = run(tmp_path, program)
    wrong = "AttributeError ValueError IndexError IndexError ValueError TypeError ValueError"
    wrong += " TypeError TypeError ValueError ValueError"
    assert done.stdout.split() == wrong.split(), done.stderr


def test_an_unedited_program_of_2017_trains(tmp_path):
    program = """
import logging, time, collections
import numpy as np
import mxnet as mx
from collections import namedtuple, OrderedDict
Batch = namedtuple('Batch', ['data'])
logging.basicConfig(level=logging.INFO)
mx.random.seed(1); np.random.seed(1)
start = time.clock()
centers = np.random.normal(size=(3, 8)).astype(np.float)
labels = np.random.random_integers(0, 2, size=300).astype(np.int)
data = (centers[labels] + 0.1 * np.random.normal(size=(300, 8))).astype(np.float32)
data = np.fromstring(data.tostring(), dtype=np.float32).reshape(300, 8)
net = mx.sym.FullyConnected(mx.symbol.Variable('data'), num_hidden=16, name='fc1')
net = mx.sym.Activation(net, act_type='relu')
net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=3), name='softmax')
model = mx.mod.Module(net, context=mx.cpu())
train = mx.io.NDArrayIter(data, labels.astype(np.float), batch_size=30, shuffle=True)
model.fit(train, num_epoch=8, optimizer='sgd', optimizer_params={'learning_rate': 0.3, 'momentum': 0.9})
accuracy = np.asscalar(np.array(model.score(train, 'acc')[0][1]))
assert isinstance(OrderedDict(), collections.Mapping)
print(accuracy > 0.95, time.clock() - start >= 0)
"""
    done = run(tmp_path, program)
    assert done.stdout == "True True\n", done.stderr

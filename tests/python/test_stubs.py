"""Stubs: Python that an editor can read, with an operator's real parameters, defaults and documentation."""

import ast
import os
import sys

import pytest

import symbind as mx

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "python", "tools"))

import make_stubs  # noqa: E402


def functions(text):
    return {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}


def arguments(function):
    names = [argument.arg for argument in function.args.args]
    defaults = [ast.unparse(default) for default in function.args.defaults]
    return dict(zip(names[len(names) - len(defaults) :], defaults))


@pytest.mark.parametrize("module", make_stubs.REGISTRY_MODULES)
def test_every_operator_of_a_module_is_in_its_stub(module):
    stub = make_stubs.registry_stub(module, make_stubs.REGISTRY_MODULES[module])
    tree = ast.parse(stub)
    named = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    named |= {alias.asname for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    private = module.endswith("_internal")
    for name in mx._symbind._list_ops():
        for prefix in make_stubs.prefixes_of(module):
            short = name[len(prefix) :]
            if name.startswith(prefix) and short.isidentifier() and (private or not short.startswith("_")):
                assert short in named, f"{short} is missing"


def test_a_symbol_function_shows_parameters_defaults_and_docs():
    convolution = functions(make_stubs.registry_stub("symbind.symbol", True))["Convolution"]
    given = arguments(convolution)
    assert given["num_group"] == "1" and given["no_bias"] == "False" and given["name"] == "None"
    assert "kernel" in given and "weight" in given
    assert "number of output channels" in ast.get_docstring(convolution)
    assert ast.unparse(convolution.returns) == "Symbol"


def test_an_array_function_has_out():
    relu = functions(make_stubs.registry_stub("symbind.ndarray", False))["relu"]
    assert "out" in arguments(relu)


def test_classes_have_what_cpp_and_python_give_them():
    classes = {
        node.name: node for node in ast.parse(make_stubs.extension_stub()).body if isinstance(node, ast.ClassDef)
    }
    for name, due in {
        "Symbol": {"list_arguments", "simple_bind", "bind", "sum", "tojson", "__add__"},
        "NDArray": {"asnumpy", "shape", "reshape", "sum", "__getitem__"},
        "Executor": {"forward", "backward"},
        "Context": {"device_type"},
    }.items():
        members = {node.name for node in classes[name].body if isinstance(node, ast.FunctionDef)}
        assert due <= members, f"{name} lacks {due - members}"
    total = next(node for node in classes["NDArray"].body if getattr(node, "name", "") == "sum")
    assert "axis" in arguments(total) and total.args.args[0].arg == "self"


def test_the_package_is_typed():
    assert os.path.exists(os.path.join(os.path.dirname(mx.__file__), "py.typed"))

"""The names, classes and arguments of MXNet 1.9.1: each is there, or in the list of differences with a reason."""

import api_parity
import pytest


@pytest.fixture(scope="module")
def compared():
    return api_parity.compare()


def test_every_difference_from_mxnet_is_listed(compared):
    unlisted, _ = compared
    assert unlisted == [], "add these, or list them in api_differences.txt with a reason"


def test_the_list_names_no_difference_that_is_gone(compared):
    _, stale = compared
    assert stale == {}, "python tests/python/api_parity.py --prune --docs drops these"


def test_the_documentation_has_the_list_s_table():
    _, inside, _ = api_parity.documented()
    assert inside == api_parity.table(), "python tests/python/api_parity.py --docs writes it"


def test_a_missing_parameter_another_position_and_another_default_are_differences():
    def ours(a, c, b=2, d=None, *, e=1):
        pass

    (parameters,) = api_parity.our_parameters(ours)
    theirs = [["a", "", None], ["b", "", "2"], ["d", "", "3"], ["e", "", "1"], ["f", "", None], ["k", "**", None]]
    found = api_parity.parameter_differences(parameters, theirs)
    assert found == ["b", "d", "e", "f", "**k"]


def test_a_required_parameter_of_ours_alone_is_a_difference():
    def ours(a, more):
        pass

    (parameters,) = api_parity.our_parameters(ours)
    assert api_parity.parameter_differences(parameters, [["a", "", None]]) == ["+more"]


@pytest.mark.parametrize(
    "name, pattern, due",
    [
        ("rnn.LSTMCell.unroll", "rnn", True),
        ("rnnx", "rnn", False),
        ("symbol.linalg.det", "{ndarray,symbol}.linalg*", True),
        ("image.linalg.det", "{ndarray,symbol}.linalg*", False),
        ("a.f(x=[1])", "a.f(x=[1])", True),
        ("a.b(x)", "a.{b,c}", True),
    ],
)
def test_patterns_cover_what_is_inside_what_they_name(name, pattern, due):
    assert api_parity.matches(name, pattern) == due


@pytest.mark.parametrize(
    "pattern, rest",
    [
        ("{a,b}.{c,d}", "a.{c,d}"),
        ("a.c", "a.c"),
        ("b.*", None),
        ("a.{c,d,e}", "a.{c,d}"),
        ("x.{c,d}", None),
    ],
)
def test_parts_of_patterns_that_cover_nothing_are_dropped(pattern, rest):
    assert api_parity.without_stale(pattern, ["a.c", "a.d(x)"]) == rest


def test_native_functions_tell_their_parameters():
    import symbind as mx

    (parameters,) = api_parity.our_parameters(mx.kv.KVStore.pull)
    assert parameters == [["self", "", None], ["key", "", None], ["out", "", "None"], ["priority", "", "0"],
                          ["ignore_sparse", "", "True"]]  # fmt: skip

"""BucketingModule: keys of any kind, what scripts read of it, files, and mistakes."""

import gc
import logging
import os
from collections import namedtuple
from fractions import Fraction

import numpy as np
import pytest

import symbind as mx


def sym_gen(key):
    """A mean of words; the key says only how long the sentences are."""
    net = mx.sym.Embedding(mx.sym.Variable("data"), input_dim=10, output_dim=4, name="embed")
    net = mx.sym.FullyConnected(mx.sym.mean(net, axis=1), num_hidden=3, name="fc")
    return mx.sym.SoftmaxOutput(net, name="softmax"), ("data",), ("softmax_label",)


def batch(length, key="length", count=2):
    return mx.io.DataBatch(
        [mx.nd.ones((count, length))],
        [mx.nd.zeros((count,))],
        bucket_key=length if key == "length" else key,
        provide_data=[("data", (count, length))],
        provide_label=[("softmax_label", (count,))],
    )


def bound(generate=sym_gen, default_bucket_key=5, **keywords):
    module = mx.mod.BucketingModule(generate, default_bucket_key, **keywords)
    module.bind([("data", (2, 5))], [("softmax_label", (2,))])
    module.init_params(mx.init.One())
    return module


def test_what_scripts_read_of_it_changes_with_the_bucket():
    module = mx.mod.BucketingModule(sym_gen, default_bucket_key=5)
    assert (module.data_names, module.label_names, module.output_names) == (
        ["data"],
        ["softmax_label"],
        ["softmax_output"],
    )
    assert (module._curr_module, module._curr_bucket_key, module._default_bucket_key) == (None, None, 5)
    module.bind([("data", (2, 5))], [("softmax_label", (2,))])
    module.init_params()
    module.switch_bucket(3, [("data", (2, 3))], [("softmax_label", (2,))])
    assert module._curr_bucket_key == 3 and list(module._buckets) == [5, 3]
    assert module.data_shapes == [mx.io.DataDesc("data", (2, 3))]
    assert module.label_shapes == [mx.io.DataDesc("softmax_label", (2,))]
    assert module.output_shapes == [("softmax_output", (2, 3))]
    assert module._curr_module is module._buckets[3]
    assert module.symbol.list_arguments() == module._curr_module.symbol.list_arguments()
    module.forward(batch(9))
    module.prepare(batch(4))
    assert module._curr_bucket_key == 9 and list(module._buckets) == [5, 3, 9, 4]


@pytest.mark.parametrize(
    "key", [3, "three", (3, 4), (3, "a"), 2.5, None, frozenset({3}), Fraction(1, 3), np.int64(3), b"3"], ids=repr
)
def test_a_key_may_be_anything_that_can_be_hashed(key):
    seen = []

    def generate(given):
        seen.append(given)
        return sym_gen(given)

    module = bound(generate)
    for _ in range(2):
        module.forward(batch(3 if key is not None else 5, key))
    assert seen == ([5] if key is None else [5, key])
    assert module._curr_bucket_key == (5 if key is None else key)


def test_rebinding_forgets_the_buckets_and_keeps_the_parameters():
    module = bound()
    module.forward(batch(3))
    module._reset_bind()
    assert not module.binded and module.params_initialized
    assert (module._buckets, module._curr_module, module._curr_bucket_key) == ({}, None, None)
    module.bind([("data", (4, 6))], [("softmax_label", (4,))])
    assert list(module._buckets) == [5] and module.data_shapes == [mx.io.DataDesc("data", (4, 6))]
    assert (module.get_params()[0]["fc_weight"].asnumpy() == 1).all()


def test_keys_that_are_equal_in_python_are_one_bucket():
    module = bound()
    for key in (3, 3.0, np.int64(3), np.float32(3), (4, 5), (np.int32(4), 5.0), "3", True, 1):
        module.forward(batch(3, key))
    assert list(module._buckets) == [5, 3, (4, 5), "3", 1]
    with pytest.raises(TypeError, match="unhashable"):
        module.forward(batch(3, [3]))


def test_a_key_may_be_a_named_tuple():
    Lengths = namedtuple("Lengths", ["encoder", "decoder"])
    seen = []

    def generate(key):
        seen.append(key.encoder + key.decoder)
        return sym_gen(key)

    module = bound(generate, Lengths(2, 5))
    module.forward(batch(3, Lengths(4, 3)))
    assert set(seen) == {7} and module._curr_bucket_key == Lengths(4, 3)
    module.forward(batch(3, Lengths(8, 3)))
    assert set(seen) == {7, 11}


def test_a_batch_need_not_have_a_key_or_shapes():
    module = bound()
    module.forward(namedtuple("Batch", ["data"])([mx.nd.ones((2, 5))]), is_train=False)
    assert module._curr_bucket_key == 5
    module.forward(mx.io.DataBatch([mx.nd.ones((2, 8))], [mx.nd.zeros((2,))], bucket_key=8))
    assert module.data_shapes == [mx.io.DataDesc("data", (2, 8))]


def test_buckets_are_trained_together():
    module = bound()
    module.init_optimizer(optimizer_params={"learning_rate": 0.1, "momentum": 0.9})
    for length in (3, 5, 4):
        module.forward_backward(batch(length))
        module.update()
    # What MXNet 1.9.1 computes.
    fc = module.get_params()[0]["fc_weight"].asnumpy()
    assert np.allclose(fc[:, 0], expected_after_three_steps(), atol=1e-6)
    assert list(module.get_params()[0]) == ["embed_weight", "fc_weight", "fc_bias"]


def expected_after_three_steps():
    """Plain SGD with momentum on the same network by hand: all words are 1, all weights begin at 1, labels are 0."""
    embed, weight, bias = np.ones(4), np.ones((3, 4)), np.zeros(3)
    momenta = [np.zeros(4), np.zeros((3, 4)), np.zeros(3)]
    for _ in range(3):
        scores = weight @ embed + bias
        probability = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        gradient = probability - np.array([1, 0, 0])  # the mean of two equal samples
        steps = [weight.T @ gradient, np.outer(gradient, embed), gradient]
        for momentum, step in zip(momenta, steps):
            momentum *= 0.9
            momentum -= 0.1 * step
        embed, weight, bias = embed + momenta[0], weight + momenta[1], bias + momenta[2]
    return weight[:, 0]


def test_states_pass_from_bucket_to_bucket():
    def generate(key):
        net = mx.sym.mean(mx.sym.Variable("data"), axis=1, keepdims=True)
        net = mx.sym.FullyConnected(net, num_hidden=3, name="fc") + mx.sym.Variable("state")
        return mx.sym.SoftmaxOutput(net, name="softmax"), ("data",), ("softmax_label",)

    module = bound(generate, state_names=["state"])
    assert module.get_states(merge_multi_context=False)[0][0].asnumpy().sum() == 0
    module.set_states(value=3)
    module.switch_bucket(3, [("data", (2, 3))], [("softmax_label", (2,))])
    assert (module.get_states()[0].asnumpy() == 3).all()
    module.set_states(states=[[mx.nd.ones((2, 3)) * 7]])
    module.switch_bucket(9, [("data", (2, 9))], [("softmax_label", (2,))])
    assert (module.get_states()[0].asnumpy() == 7).all()


def test_checkpoints_have_the_names_of_mxnets(tmp_path):
    prefix = str(tmp_path / "model")
    module = bound()
    module.forward(batch(3))
    module.save_checkpoint(prefix, 7, remove_amp_cast=False)
    assert sorted(os.listdir(tmp_path)) == [
        "model-0007.params",
        "model-3-symbol.json",
        "model-5-symbol.json",
        "model.buckets",
    ]
    keys = mx.nd.load(prefix + ".buckets")[0]
    assert keys.dtype == np.int32 and keys.asnumpy().tolist() == [5, 3]

    loaded = mx.mod.BucketingModule.load(prefix, 7, sym_gen, default_bucket_key=5)
    assert loaded.params_initialized and not loaded.binded
    assert sorted(loaded.get_params()[0]) == ["embed_weight", "fc_bias", "fc_weight"]
    loaded.bind([("data", (2, 5))], [("softmax_label", (2,))], for_training=False)
    loaded.forward(batch(3), is_train=False)
    module.forward(batch(3), is_train=False)
    assert np.array_equal(loaded.get_outputs()[0].asnumpy(), module.get_outputs()[0].asnumpy())
    with pytest.raises(ValueError, match="sym_gen"):
        mx.mod.BucketingModule.load(prefix, 7)
    with pytest.raises(ValueError, match="default_bucket_key"):
        mx.mod.BucketingModule.load(prefix, 7, sym_gen)


@pytest.mark.parametrize("keys", [((5, 6), (3, 4)), ("short", "long"), ((5, "a"), (3, "b"))], ids=repr)
def test_checkpoints_of_buckets_with_other_keys_load(tmp_path, keys):
    prefix = str(tmp_path / "model")
    module = bound(default_bucket_key=keys[0])
    module.forward(batch(3, keys[1]))
    module.save_checkpoint(prefix, 1)
    assert os.path.exists(f"{prefix}-{keys[1]}-symbol.json")
    loaded = mx.mod.BucketingModule.load(prefix, 1, sym_gen, default_bucket_key=keys[0])
    loaded.bind([("data", (2, 5))], [("softmax_label", (2,))])
    loaded.forward(batch(3, keys[1]), is_train=False)
    assert loaded._curr_bucket_key == keys[1]


def test_networks_that_are_given_are_used_instead_of_sym_gens():
    module = bound()
    args, aux = module.get_params()
    named = {5: sym_gen(5)[0], 3: mx.sym.Group([sym_gen(3)[0]])}
    loaded = mx.mod.BucketingModule.load_dict(named, sym_gen, 5, args, aux)
    loaded.bind([("data", (2, 5))], [("softmax_label", (2,))])
    loaded.forward(batch(3), is_train=False)
    assert loaded.symbol.tojson() == named[3].tojson()
    with pytest.raises(ValueError, match="sym_dict"):
        mx.mod.BucketingModule.load_dict()


def test_optimizer_states_are_saved_and_resumed(tmp_path):
    prefix = str(tmp_path / "model")

    def step(module, *lengths):
        for length in lengths:
            module.forward_backward(batch(length))
            module.update()

    module = bound()
    module.init_optimizer(optimizer="adam")
    step(module, 3, 5)
    module.save_checkpoint(prefix, 1, save_optimizer_states=True)
    loaded = mx.mod.BucketingModule.load(prefix, 1, sym_gen, 5, load_optimizer_states=True)
    loaded.bind([("data", (2, 5))], [("softmax_label", (2,))])
    loaded.init_optimizer(optimizer="adam")
    for either in (module, loaded):
        step(either, 4, 3)
    for name, array in module.get_params()[0].items():
        assert np.array_equal(array.asnumpy(), loaded.get_params()[0][name].asnumpy()), name


def test_a_callback_writes_checkpoints_of_all_buckets(tmp_path):
    class Three(mx.io.DataIter):
        provide_data, provide_label = [("data", (2, 5))], [("softmax_label", (2,))]

        def __init__(self):
            super().__init__(2)
            self.reset()

        def reset(self):
            self.left = [3, 4, 5]

        def next(self):
            if not self.left:
                raise StopIteration
            return batch(self.left.pop())

    module = mx.mod.BucketingModule(sym_gen, 5)
    callback = mx.callback.module_checkpoint(module, str(tmp_path / "model"), save_optimizer_states=True)
    module.fit(
        Three(), num_epoch=1, optimizer_params={"learning_rate": 0.1, "momentum": 0.9}, epoch_end_callback=callback
    )
    names = {path.name for path in tmp_path.iterdir()}
    assert {"model-0001.params", "model-0001.states", "model-3-symbol.json", "model.buckets"} <= names


def test_a_class_of_ones_own_overrides_steps():
    calls = []

    class Counting(mx.mod.BucketingModule):
        def forward(self, data_batch, is_train=None):
            calls.append(data_batch.bucket_key)
            super().forward(data_batch, is_train)

    class Two(mx.io.DataIter):
        provide_data, provide_label = [("data", (2, 5))], [("softmax_label", (2,))]

        def __init__(self):
            super().__init__(2)
            self.left = [4, 6]

        def reset(self):
            self.left = [4, 6]

        def next(self):
            if not self.left:
                raise StopIteration
            return batch(self.left.pop())

    Counting(sym_gen, 5).fit(Two(), num_epoch=2)
    assert calls == [6, 4, 6, 4]


def test_a_module_that_its_network_function_refers_to_is_collected():
    class Owner:
        def __init__(self):
            self.module = mx.mod.BucketingModule(self.generate, 5)
            self.module.bind([("data", (2, 5))], [("softmax_label", (2,))])

        def generate(self, key):
            return sym_gen(key)

    gc.collect()
    before = mx.context.memory_stats(mx.cpu())["live"]
    owner = Owner()
    del owner
    gc.collect()
    assert mx.context.memory_stats(mx.cpu())["live"] == before


def test_mistakes_are_named(caplog):
    with pytest.raises(ValueError, match="default_bucket_key"):
        mx.mod.BucketingModule(sym_gen)
    with pytest.raises(TypeError, match="sym_gen"):
        mx.mod.BucketingModule(sym_gen(5), 5)
    with pytest.raises(ValueError, match="symbol, data_names, label_names"):
        mx.mod.BucketingModule(lambda key: sym_gen(key)[0], 5)
    with pytest.raises(ValueError, match="'words'.*data"):
        mx.mod.BucketingModule(lambda key: (sym_gen(key)[0], ["words"], ["softmax_label"]), 5)
    with pytest.raises(ValueError, match="nope"):
        mx.mod.BucketingModule(sym_gen, 5, fixed_param_names=["nope"])
    module = mx.mod.BucketingModule(sym_gen, 5)
    with pytest.raises(mx.MXNetError, match="call bind first"):
        module.switch_bucket(3, [("data", (2, 3))])
    module.bind([("data", (2, 5))], [("softmax_label", (2,))])
    with pytest.raises(mx.MXNetError, match="share"):
        module.bind([("data", (2, 5))], force_rebind=True, shared_module=bound())
    with caplog.at_level(logging.WARNING):
        module.bind([("data", (2, 5))], [("softmax_label", (2,))])
    assert "already bound" in caplog.text

    def fails_later(key):
        if key != 5:
            raise KeyError(key)
        return sym_gen(key)

    module = bound(fails_later)
    with pytest.raises(KeyError):
        module.forward(batch(3))
    module.forward(batch(5))

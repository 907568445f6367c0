"""mx.contrib and mx.runtime: text, mixed precision, loaders, TensorBoard, variance reduced gradients, features."""

import collections
import importlib
import json
import logging
import re
import types

import numpy as np
import pytest

import symbind as mx
from symbind.contrib import amp, text
from symbind.contrib.svrg_optimization.svrg_module import SVRGModule

# ---- runtime ---------------------------------------------------------------------------------------------------------


def test_features_tell_what_the_build_has():
    features = mx.runtime.Features()
    assert features is mx.runtime.Features() and len(features) == 32 == len(mx.runtime.feature_list())
    assert features.is_enabled("cuda") == (mx.num_gpus() > 0) and not features.is_enabled("TVM_OP")
    assert repr(features["TENSORRT"]) == "✖ TENSORRT" and features["CXX14"].enabled
    with pytest.raises(RuntimeError, match="'NOPE' is unknown"):
        features.is_enabled("nope")


def test_the_report_names_every_part():
    lines = mx.runtime.report().splitlines()
    assert lines[0].endswith(f" with the interface of MXNet {mx.__version__}")
    for name in ("CPU", "LAPACK", "oneDNN", "JPEG images", "Open MPI", "CUDA"):
        assert any(line[2:].startswith(name) for line in lines), name
    assert mx.runtime.Features().is_enabled("LAPACK") == any(line.startswith("✔ LAPACK ") for line in lines)


# ---- text ------------------------------------------------------------------------------------------------------------


def test_tokens_are_counted():
    counter = text.utils.count_tokens_from_str(" Life is great ! \n life is good . \n", to_lower=True)
    assert counter == {"life": 2, "is": 2, "great": 1, "!": 1, "good": 1, ".": 1}
    text.utils.count_tokens_from_str("a b\nb c", counter_to_update=counter)
    assert counter["b"] == 2 and counter["life"] == 2


def test_a_vocabulary_numbers_tokens_by_frequency():
    vocabulary = text.vocab.Vocabulary(collections.Counter("aabbbcccc"), reserved_tokens=["<pad>"])
    assert vocabulary.idx_to_token == ["<unk>", "<pad>", "c", "b", "a"] and len(vocabulary) == 5
    assert vocabulary.to_indices(["a", "zz"]) == [4, 0] and vocabulary.to_indices("b") == 3
    assert vocabulary.to_tokens([1, 2]) == ["<pad>", "c"] and vocabulary.to_tokens(0) == "<unk>"
    counter = collections.Counter(["b", "a", "c", "a", "<unk>"])
    assert text.vocab.Vocabulary(counter, most_freq_count=2).idx_to_token == ["<unk>", "a", "b"]
    assert text.vocab.Vocabulary(counter, min_freq=2).idx_to_token == ["<unk>", "a"]
    for wrong in ({"min_freq": 0}, {"reserved_tokens": ["<unk>"]}, {"reserved_tokens": ["x", "x"]}):
        with pytest.raises(AssertionError):
            text.vocab.Vocabulary(counter, **wrong)
    with pytest.raises(AssertionError, match="Counter"):
        text.vocab.Vocabulary(["a"])
    with pytest.raises(ValueError, match="99"):
        vocabulary.to_tokens(99)


def test_word_vectors_are_read_restricted_and_changed(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("3 3\na 1 2 3\nb 4 5 6\nb 7 8 9\n<unk> 0.5 0.5 0.5\n")
    with pytest.warns(UserWarning):
        vectors = text.embedding.CustomEmbedding(str(path))
    assert vectors.idx_to_token == ["<unk>", "a", "b"] and vectors.vec_len == 3
    assert vectors.idx_to_vec.asnumpy().tolist() == [[0.5] * 3, [1, 2, 3], [4, 5, 6]]
    assert vectors.get_vecs_by_tokens("b").asnumpy().tolist() == [4, 5, 6]
    assert vectors.get_vecs_by_tokens(["A"]).asnumpy().tolist() == [[0.5] * 3]
    assert vectors.get_vecs_by_tokens(["A"], lower_case_backup=True).asnumpy().tolist() == [[1, 2, 3]]
    vocabulary = text.vocab.Vocabulary(collections.Counter("abcb"))
    with pytest.warns(UserWarning):
        chosen = text.embedding.CustomEmbedding(str(path), vocabulary=vocabulary)
    assert chosen.idx_to_token == ["<unk>", "b", "a", "c"]
    assert chosen.idx_to_vec.asnumpy()[:, 0].tolist() == [0.5, 4, 1, 0.5]
    both = text.embedding.CompositeEmbedding(vocabulary, [chosen, vectors])
    assert both.vec_len == 6 and both.idx_to_vec.asnumpy()[1].tolist() == [4, 5, 6, 4, 5, 6]
    vectors.update_token_vectors(["a", "b"], mx.nd.array([[1, 1, 1], [2, 2, 2]]))
    assert vectors.idx_to_vec.asnumpy()[1:].tolist() == [[1] * 3, [2] * 3]
    with pytest.raises(ValueError, match="'q' is unknown"):
        vectors.update_token_vectors("q", mx.nd.zeros((3,)))
    path.write_text("a 1 2 3\nb 4 5\n")
    with pytest.raises(ValueError, match="line 2: b has 2 numbers"):
        text.embedding.CustomEmbedding(str(path))
    with pytest.raises(ValueError, match="no file"):
        text.embedding.CustomEmbedding(str(tmp_path / "nowhere"))


def test_pretrained_vectors_are_taken_from_where_they_are(tmp_path):
    (tmp_path / "glove").mkdir()
    (tmp_path / "glove" / "glove.6B.50d.txt").write_text("a 1 2\nb 3 4\n")
    made = text.embedding.create("glove", pretrained_file_name="glove.6B.50d.txt", embedding_root=str(tmp_path))
    assert made.get_vecs_by_tokens("b").asnumpy().tolist() == [3, 4]
    assert "glove.840B.300d.txt" in text.embedding.get_pretrained_file_names("glove")
    with pytest.raises(OSError, match="put the file at"):
        text.embedding.create("fasttext", embedding_root=str(tmp_path))
    for kind in ("glove", "fasttext"):
        with pytest.raises(KeyError, match="nope"):
            text.embedding.create(kind, pretrained_file_name="nope")
    names = text.embedding.get_pretrained_file_names()
    assert set(names) >= {"glove", "fasttext"} and len(names["fasttext"]) == 327
    assert {"wiki.simple.vec", "wiki.zh_yue.vec", "wiki.multi.en.vec", "crawl-300d-2M.vec"} <= set(names["fasttext"])


def test_word_vectors_of_a_class_written_for_mxnet(tmp_path):
    @text.embedding.register
    class OwnVectors(text.embedding._TokenEmbedding):
        pretrained_file_name_sha1 = {"own.txt": "0"}

        def __init__(self, pretrained_file_name="own.txt", **kwargs):
            super().__init__(**kwargs)
            self._load_embedding(str(tmp_path / pretrained_file_name), ",", mx.nd.ones, "utf8")

    (tmp_path / "own.txt").write_text("a,1,2\n")
    assert text.embedding.get_pretrained_file_names("ownvectors") == ["own.txt"]
    assert text.embedding.create("ownvectors").idx_to_vec.asnumpy().tolist() == [[1, 1], [1, 2]]


# ---- loaders and TensorBoard -----------------------------------------------------------------------------------------


def test_a_loader_trains_a_module():
    rng = np.random.RandomState(1)
    data = rng.normal(size=(50, 4)).astype("float32")
    labels = (data[:, 0] > 0).astype("float32")
    loader = [(data[i : i + 16], labels[i : i + 16]) for i in range(0, 50, 16)]
    iterator = mx.contrib.io.DataLoaderIter(loader)
    assert iterator.provide_data[0].shape == (16, 4) and iterator.provide_label[0].name == "softmax_label"
    batches = list(iterator)
    assert [batch.pad for batch in batches] == [0, 0, 0, 14] and batches[3].data[0].shape == (16, 4)
    iterator.reset()
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2), name="softmax")
    mod = mx.mod.Module(net)
    mod.fit(iterator, num_epoch=20, optimizer_params={"learning_rate": 0.5})
    iterator.reset()
    assert mod.score(iterator, "acc")[0][1] > 0.9


def test_metrics_are_written_for_tensorboard(monkeypatch, caplog):
    written = []

    class Writer:
        def __init__(self, folder):
            written.append(folder)

        def add_scalar(self, name, value, global_step):
            written.append((name, value, global_step))

    monkeypatch.setitem(__import__("sys").modules, "mxboard", types.SimpleNamespace(SummaryWriter=Writer))
    callback = mx.contrib.tensorboard.LogMetricsCallback("logs", prefix="train")
    metric = mx.metric.MSE()
    metric.update([mx.nd.zeros((2,))], [mx.nd.ones((2,))])
    callback(mx.model.BatchEndParam(epoch=3, nbatch=1, eval_metric=metric, locals=None))
    callback(mx.model.BatchEndParam(epoch=3, nbatch=1, eval_metric=None, locals=None))
    assert written == ["logs", ("train-mse", 1.0, 3)]


# ---- mixed precision -------------------------------------------------------------------------------------------------


def network():
    net = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=2, name="c")
    net = mx.sym.Activation(mx.sym.BatchNorm(net, name="bn"), act_type="relu", name="r")
    net = mx.sym.FullyConnected(mx.sym.Flatten(net, name="f"), num_hidden=3, name="fc")
    net = mx.sym.elemwise_add(net, mx.sym.exp(net, name="e"), name="sum")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def nodes(symbol):
    graph = json.loads(symbol.tojson(remove_amp_cast=False))["nodes"]
    return {node["name"]: (node["op"], [graph[entry[0]]["name"] for entry in node["inputs"]]) for node in graph}


def test_types_are_inferred_from_the_data_where_that_is_named():
    net = network()
    converted = amp.convert_symbol(net, data_names=["data"])
    arguments, outputs, states = converted.infer_type(data="float32")
    assert {*arguments, *outputs, *states} == {np.float32}
    assert "__dtype__" not in net.attr_dict().get("c_weight", {})
    low = amp.convert_symbol(net, data_names=["data", "softmax_label"], cast_optional_params=True)
    types = dict(zip(low.list_arguments(), low.infer_type(data="float32", softmax_label="float32")[0]))
    assert types["c_weight"] == np.float16 and types["bn_gamma"] == types["data"] == np.float32


def test_casts_are_put_before_what_computes_in_another_type():
    found = nodes(amp.convert_symbol(network()))
    half = "_amp_cast_float16"
    assert found["c"][1] == ["data" + half, "c_weight" + half, "c_bias" + half]
    assert found["fc"][1] == ["f_output" + half, "fc_weight" + half, "fc_bias" + half]
    assert found["e"][1] == ["fc_output_amp_cast_float32"] and found["bn"][1][:2] == ["c", "bn_gamma"]
    assert found["sum_amp_multicast"][1] == ["fc", "e"] and found["sum"][1] == ["sum_amp_multicast"] * 2
    assert found["softmax"][1] == ["sum_output_amp_cast_float32", "softmax_label"]
    found = nodes(amp.convert_symbol(network(), excluded_sym_names=["fc"]))
    assert found["fc"][1] == ["f_output_amp_cast_float32", "fc_weight", "fc_bias"]
    found = nodes(
        amp.convert_symbol(network(), target_dtype="bfloat16", target_dtype_ops=["FullyConnected"], fp32_ops=[])
    )
    assert found["c"][1] == ["data", "c_weight", "c_bias"] and found["fc"][1][0] == "f_output_amp_cast_bfloat16"


def test_a_converted_network_computes_nearly_the_same():
    net, rng = network(), np.random.RandomState(2)
    shapes = dict(zip(net.list_arguments(), net.infer_shape(data=(4, 1, 6, 6))[0]))
    params = {
        name: mx.nd.array(rng.normal(size=shape) * 0.3)
        for name, shape in shapes.items()
        if name not in ("data", "softmax_label")
    }
    aux = {"bn_moving_mean": mx.nd.zeros((2,)), "bn_moving_var": mx.nd.ones((2,))}
    data = {"data": mx.nd.array(rng.normal(size=(4, 1, 6, 6))), "softmax_label": mx.nd.array([0, 1, 2, 0])}
    outputs = []
    for optional in (None, False, True):
        symbol, args, states = net, params, aux
        if optional is not None:
            symbol, args, states = amp.convert_model(net, params, aux, cast_optional_params=optional)
            assert args["c_weight"].dtype == (np.float16 if optional else np.float32)
            assert args["bn_gamma"].dtype == np.float32 and states["bn_moving_var"].dtype == np.float32
        executor = symbol.bind(mx.cpu(), {**args, **data}, aux_states=states)
        outputs.append(executor.forward()[0].asnumpy())
        assert outputs[-1].dtype == np.float32
    np.testing.assert_allclose(outputs[1], outputs[0], atol=5e-3)
    np.testing.assert_allclose(outputs[2], outputs[0], atol=5e-3)
    assert not np.array_equal(outputs[1], outputs[0])


def test_a_converted_network_trains():
    rng = np.random.RandomState(3)
    data = rng.normal(size=(64, 8)).astype("float32")
    labels = (data[:, 0] > 0).astype("float32")
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    net = amp.convert_symbol(mx.sym.SoftmaxOutput(net, name="softmax"))
    mod = mx.mod.Module(net)
    mod.fit(mx.io.NDArrayIter(data, labels, 16), num_epoch=20, optimizer_params={"learning_rate": 0.5})
    assert mod.score(mx.io.NDArrayIter(data, labels, 16), "acc")[0][1] > 0.9
    assert mod.get_params()[0]["fc_weight"].dtype == np.float32


def sentence_module(dtype="float32", **options):
    """A trained BucketingModule for sentences of 5 and of 8 words, and its data."""

    def generate(length):
        words = mx.sym.Embedding(mx.sym.Variable("data"), input_dim=20, output_dim=8, name="embed")
        cell = mx.rnn.LSTMCell(8, prefix="lstm_")
        outputs, _ = cell.unroll(length, inputs=words, merge_outputs=True, layout="NTC")
        net = mx.sym.FullyConnected(mx.sym.Reshape(outputs, shape=(-1, 8)), num_hidden=20, name="fc")
        return mx.sym.SoftmaxOutput(net, mx.sym.Reshape(mx.sym.Variable("softmax_label"), shape=(-1,)), name="softmax")

    rng = np.random.RandomState(0)
    sentences = [[int(word) for word in rng.randint(1, 20, length)] for length in (5, 8) * 32]
    data = mx.rnn.BucketSentenceIter(sentences, 8, buckets=[5, 8], invalid_label=0)
    module = mx.mod.BucketingModule(
        lambda length: (generate(length), ("data",), ("softmax_label",)), default_bucket_key=8, **options
    )
    mx.random.seed(1)
    module.fit(
        data,
        num_epoch=1,
        eval_metric=mx.metric.Perplexity(0),
        initializer=mx.init.Xavier(),
        kvstore="device",
        compute_dtype=dtype,
    )
    return module, data


def score_of(module, data):
    if not module.binded:
        module.bind(data.provide_data, data.provide_label, for_training=False)
    return dict(module.score(data, mx.metric.Perplexity(0)))["perplexity"]


@pytest.mark.parametrize("optional", [False, True], ids=["float32 parameters", "parameters of 16 bits"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_converted_bucketing_module_has_the_parameters_of_the_other(dtype, optional):
    module, data = sentence_module()
    exact = score_of(module, data)
    converted = amp.convert_bucketing_module(module, dtype, cast_optional_params=optional)
    assert converted.params_initialized and not converted.binded
    assert score_of(converted, data) == pytest.approx(exact, rel=0.01) and score_of(converted, data) != exact
    for key, bucket in converted._buckets.items():
        assert "amp_cast" in bucket.symbol.tojson(remove_amp_cast=False), key
        assert bucket.symbol.list_arguments() == module._buckets[key].symbol.list_arguments()
    weight = converted.get_params()[0]["fc_weight"]
    assert weight.dtype == ({"float16": np.float16}.get(dtype, dtype) if optional else np.float32)
    assert score_of(module, data) == exact and module.get_params()[0]["fc_weight"].dtype == np.float32


def test_a_converted_bucketing_module_has_the_options_of_the_other():
    options = {
        "logger": logging.getLogger("sentences"),
        "context": [mx.cpu(0), mx.cpu(1)],
        "work_load_list": [1, 3],
        "fixed_param_names": ["embed_weight"],
        "group2ctxs": {"one": [mx.cpu(1), mx.cpu(0)]},
        "compression_params": {"type": "2bit", "threshold": 0.5},
        "memory_budget": 10**6,
    }
    module, data = sentence_module("bfloat16", **options)
    converted = amp.convert_bucketing_module(module, "bfloat16")
    assert converted.logger is options["logger"] and converted._context == options["context"]
    assert converted._work_load_list == [1, 3] and converted._fixed_param_names == ["embed_weight"]
    assert converted._group2ctxs == module._group2ctxs == [{"one": mx.cpu(1)}, {"one": mx.cpu(0)}]
    assert converted._compression_params == {"type": "2bit", "threshold": "0.5"}
    assert converted._memory_budget == 10**6
    assert score_of(converted, data) == pytest.approx(score_of(module, data), rel=0.01)


def test_a_converted_bucketing_module_has_the_states_of_the_other():
    def generate(key):
        net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
        net = mx.sym.FullyConnected(net + mx.sym.Variable("state"), num_hidden=2, name="fc2")
        return mx.sym.SoftmaxOutput(net, name="softmax"), ("data",), ("softmax_label",)

    module = mx.mod.BucketingModule(generate, default_bucket_key=1, state_names=["state"])
    with pytest.raises(AssertionError, match="init_params"):
        amp.convert_bucketing_module(module)
    module.bind([("data", (2, 4))], [("softmax_label", (2,))])
    module.init_params(mx.init.One())
    for optional in (False, True):
        converted = amp.convert_bucketing_module(module, cast_optional_params=optional)
        converted.bind([("data", (2, 4))], [("softmax_label", (2,))], for_training=False)
        converted.set_states(value=2)
        assert converted._state_names == ["state"] and converted.get_states()[0].dtype == np.float32
        assert converted.get_states()[0].asnumpy().tolist() == [[2, 2, 2]] * 2
    with pytest.raises(AssertionError, match="expected a BucketingModule, not Module"):
        amp.convert_bucketing_module(mx.mod.Module(generate(1)[0]))


def test_a_bucketing_module_that_was_loaded_is_converted(tmp_path):
    module, data = sentence_module()
    module.save_checkpoint(str(tmp_path / "net"), 1)
    loaded = mx.mod.BucketingModule.load(str(tmp_path / "net"), 1, sym_gen=module._sym_gen, default_bucket_key=8)
    converted = amp.convert_bucketing_module(loaded, "bfloat16")
    assert score_of(converted, data) == score_of(amp.convert_bucketing_module(module, "bfloat16"), data)


@pytest.mark.parametrize("module", ["contrib.amp", "contrib.amp.amp"])
@pytest.mark.parametrize("name", ["init", "init_trainer", "scale_loss", "unscale", "convert_hybrid_block"])
def test_what_amp_has_for_gluon_says_what_to_do_instead(module, name):
    instead = "convert_symbol" if name == "convert_hybrid_block" else "compute_dtype"
    with pytest.raises(AttributeError, match=f"not part of Symbind: .*{instead}"):
        getattr(importlib.import_module(f"symbind.{module}"), name)()
    with pytest.raises(ImportError, match=f"not part of Symbind: .*{instead}"):
        exec(f"from symbind.contrib.amp import {name}")
    with pytest.raises(AttributeError, match="'symbind.contrib.amp' has no attribute 'nope'"):
        amp.nope()


def test_casts_are_left_out_of_files_unless_asked_for(tmp_path):
    net = network()
    converted = amp.convert_symbol(net)
    assert converted.tojson() == net.tojson() and "amp_cast" in converted.tojson(remove_amp_cast=False)
    converted.save(str(tmp_path / "a.json"))
    converted.save(str(tmp_path / "b.json"), remove_amp_cast=False)
    assert mx.sym.load(str(tmp_path / "a.json")).tojson() == net.tojson()
    assert nodes(mx.sym.load(str(tmp_path / "b.json"))) == nodes(converted)
    mx.model.save_checkpoint(str(tmp_path / "net"), 1, converted, {}, {})
    assert "amp_" not in (tmp_path / "net-symbol.json").read_text()


def test_what_cannot_be_converted_is_refused():
    for kwargs, words in (
        ({"target_dtype": "int8"}, "float16 or bfloat16"),
        ({"fp32_ops": "x"}, "list of names"),
        ({"target_dtype_ops": ["FullyConnected"], "fp32_ops": ["FullyConnected"]}, "FullyConnected"),
    ):
        with pytest.raises(AssertionError, match=words):
            amp.convert_symbol(network(), **kwargs)
    with pytest.raises(TypeError, match="takes a Symbol"):
        amp.convert_symbol(3)
    assert "FullyConnected" in amp.list_lp16_ops("float16") and "exp" in amp.list_fp32_ops("float16")
    assert "Flatten" in amp.list_lp16_fp32_ops("float16") and amp.list_lp16_use_fp32_params("float16") is None


def test_the_scale_of_a_loss_follows_overflows():
    scaler = amp.loss_scaler.LossScaler()
    assert scaler.loss_scale == 2**16 and not scaler.has_overflow([mx.nd.ones((2,))])
    assert scaler.has_overflow([mx.nd.ones((2,)), mx.nd.array([np.inf])])
    scaler.has_overflow([mx.nd.ones((2,))])
    assert scaler.loss_scale == 2**15


# ---- variance reduced gradients --------------------------------------------------------------------------------------


def linear_data(count=64, batch=16):
    rng = np.random.RandomState(4)
    data = rng.normal(size=(count, 3)).astype("float32")
    labels = data @ np.array([1.0, -2, 0.5], "float32") + 0.1 * rng.normal(size=count).astype("float32")
    return mx.io.NDArrayIter(data, labels, batch, label_name="lin_label")


def linear(**kwargs):
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, name="fc")
    net = mx.sym.LinearRegressionOutput(net, mx.sym.Variable("lin_label"), name="lin")
    return SVRGModule(net, label_names=["lin_label"], **kwargs)


@pytest.mark.parametrize("context", [[mx.cpu()], [mx.cpu(0), mx.cpu(1)]], ids=["one", "two"])
def test_at_the_noted_weights_every_batch_has_the_full_gradient(context):
    data = linear_data()
    mod = linear(context=context, update_freq=1)
    mod.bind(data.provide_data, data.provide_label)
    mod.init_params(mx.init.One())
    mod.update_full_grads(data)
    full = [sum(grad.asnumpy() for grad in one) for one in mod._full_grads]
    for batch in data:
        mod.forward(batch, is_train=True)
        mod.backward()
        mod._update_svrg_gradients()
        for one, whole in zip(mod._exec_group.grad_arrays, full):
            np.testing.assert_allclose(sum(grad.asnumpy() for grad in one), whole, rtol=1e-4, atol=1e-4)


def test_fit_learns_and_notes_weights_every_so_many_epochs(monkeypatch):
    epochs = []
    mod = linear(context=mx.cpu(), update_freq=2)
    update = SVRGModule.update_full_grads
    monkeypatch.setattr(SVRGModule, "update_full_grads", lambda self, data: (epochs.append(1), update(self, data)))
    seen = []
    mod.fit(
        linear_data(),
        eval_data=linear_data(),
        eval_metric="mse",
        optimizer_params={"learning_rate": 0.1},
        num_epoch=12,
        initializer=mx.init.Zero(),
        batch_end_callback=lambda param: seen.append(param.nbatch),
    )
    assert len(epochs) == 6 and seen == [0, 1, 2, 3] * 12
    assert mod.score(linear_data(), "mse")[0][1] < 0.05
    with pytest.raises(ValueError, match="at least 1"):
        linear(update_freq=0)
    with pytest.raises(TypeError, match="number of epochs"):
        linear(update_freq="2")


# ---- functions -------------------------------------------------------------------------------------------------------


def test_infinities_and_nan_are_found():
    a = mx.nd.array([1, np.inf, -np.inf, np.nan])
    assert mx.nd.contrib.isnan(a).asnumpy().tolist() == [0, 0, 0, 1]
    assert mx.nd.contrib.isinf(a).asnumpy().tolist() == [0, 1, 1, 0]
    assert mx.nd.contrib.isfinite(a).asnumpy().tolist() == [1, 0, 0, 0]
    assert mx.nd.contrib.allclose(a, a, equal_nan=True).asscalar() == 1
    assert mx.contrib.nd.allclose(a, a).asscalar() == 0


def test_classes_are_drawn_by_zipf_s_law():
    mx.random.seed(1)
    sampled, true, expected = mx.nd.contrib.rand_zipfian(mx.nd.array([0, 3]), 20000, 5)
    counts = np.bincount(sampled.asnumpy(), minlength=5)
    due = np.log((np.arange(5) + 2) / (np.arange(5) + 1)) / np.log(6) * 20000
    np.testing.assert_allclose(counts, due, rtol=0.05)
    np.testing.assert_allclose(true.asnumpy(), due[[0, 3]], rtol=1e-6)
    np.testing.assert_allclose(expected.asnumpy()[:10], due[sampled.asnumpy()[:10]], rtol=1e-6)
    symbols = mx.sym.Group(mx.sym.contrib.rand_zipfian(mx.sym.Variable("x"), 4, 10))
    shapes = [output.shape for output in symbols.bind(mx.cpu(), {"x": mx.nd.array([3, 4])}).forward()]
    assert shapes == [(4,), (2,), (4,)]


def test_densities_and_samples_like_an_array():
    density = mx.nd.random_pdf_normal(mx.nd.array([[0, 1]]), mx.nd.array([0]), mx.nd.array([1]))
    np.testing.assert_allclose(density.asnumpy(), [[0.39894228, 0.24197072]], rtol=1e-5)
    outside = mx.nd.random_pdf_exponential(mx.nd.array([[-1, 1]]), mx.nd.array([2]))
    np.testing.assert_allclose(outside.asnumpy(), [[0, 2 * np.exp(-2)]], rtol=1e-5)
    like = mx.nd.random.uniform_like(mx.nd.zeros((100,)), low=2, high=3)
    assert like.shape == (100,) and 2 <= like.min().asscalar() <= like.max().asscalar() <= 3
    x = mx.sym.Variable("x")
    assert mx.sym.random.normal_like(x, scale=2).infer_shape(x=(3, 4))[1] == [(3, 4)]
    classes, tries = mx.nd._internal._sample_unique_zipfian(range_max=100, shape=(2, 5))
    assert classes.shape == (2, 5) and len(set(classes.asnumpy()[0])) == 5 and (tries.asnumpy() >= 5).all()


def with_one_input_in_16_bits(op, count):
    """The operator on `count` variables, of which another one is converted to float16 in each network."""

    def network(low=None):
        inputs = [mx.sym.Variable(f"v{i}") for i in range(count)]
        return op(*[mx.sym.amp_cast(each, dtype="float16") if each.name == low else each for each in inputs])

    try:
        if len(network().list_inputs()) != count:
            return []
    except mx.MXNetError:
        return []  # it does not take as many
    return [network(low) for low in network().list_arguments()]


def test_every_operator_takes_an_input_of_16_bits_beside_others_of_float32():
    optimizers = re.compile("update|multi_sum_sq|multi_lars|reset_arrays")
    tried = set()
    for name in mx.operator.get_all_registered_operators():
        op = getattr(mx.sym._internal if name.startswith("_") else mx.sym, name, None)
        if op is None or optimizers.search(name):
            continue
        for count in (2, 3, 4, 5):
            for net in with_one_input_in_16_bits(op, count):
                tried.add(name)
                try:
                    amp.convert_symbol(net).infer_type(**{f"v{i}": "float32" for i in range(count)})
                except mx.MXNetError as error:
                    pytest.fail(f"{name}: {error}")
    assert len(tried) > 140 and {"sample_normal", "Crop", "Correlation"} <= tried


def trained_loop(before, dtype):
    """The parameters of a foreach of dense layers over what `before` makes of the data, after three steps."""

    def step(x, states):
        out = mx.sym.FullyConnected(x, num_hidden=4, no_bias=True, name="in_loop") + states[0]
        return out, [out]

    outputs, _ = mx.sym.contrib.foreach(step, before(mx.sym.Variable("data")), [mx.sym.zeros((2, 4))])
    module = mx.mod.Module(mx.sym.MakeLoss(mx.sym.square(outputs)), label_names=None)
    mx.random.seed(1)
    data = np.random.RandomState(2).uniform(-1, 1, (6, 2, 3))
    module.fit(mx.io.NDArrayIter(data, batch_size=6), eval_metric=mx.metric.Loss(), num_epoch=3, compute_dtype=dtype)
    return {name: value.asnumpy() for name, value in module.get_params()[0].items()}


def test_loops_compute_in_float32():
    same = trained_loop(lambda data: data, "float32")
    np.testing.assert_array_equal(trained_loop(lambda data: data, "bfloat16")["in_loop_weight"], same["in_loop_weight"])

    def before(data):
        return mx.sym.FullyConnected(data, num_hidden=4, flatten=False, name="before")

    exact = trained_loop(before, "float32")
    for dtype in ("float16", "bfloat16"):
        for name, value in trained_loop(before, dtype).items():
            assert value.dtype == np.float32
            np.testing.assert_allclose(value, exact[name], rtol=0.02, atol=2e-3)

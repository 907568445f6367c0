"""The programs of examples/python, cut short."""

import re

import pytest
from example_runs import EXAMPLES, ROOT, run

PROGRAMS = sorted(path.stem for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_explains_its_options(name, tmp_path):
    text = run(name, "--help", folder=tmp_path)
    assert f"usage: {name}.py" in text


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_readme_lists_the_program(name):
    assert f"| `{name}.py` |" in (ROOT / "examples" / "README.md").read_text()


def last(pattern, text):
    """The number in the last line that fits."""
    return float(re.findall(pattern, text)[-1])


TINY = ("--network", "mobilenet", "--multiplier", "0.25", "--image-shape", "3,32,32", "--num-classes", "10")


def test_train_imagenet_trains_on_random_images_and_goes_on_from_a_checkpoint(tmp_path):
    options = (*TINY, "--batch-size", "4", "--num-examples", "16", "--model-prefix", "saved/net")
    text = run("train_imagenet", *options, "--top-k", "3", "--loss", "ce", "--disp-batches", "2", folder=tmp_path)
    assert "Batch [0-2]" in text and "top_k_accuracy_3=" in text and "cross-entropy=" in text
    assert (tmp_path / "saved" / "net-0001.params").exists()
    more = ("--num-epochs", "2", "--load-epoch", "1", "--lr-step-epochs", "1,5")
    text = run("train_imagenet", *options, *more, folder=tmp_path)
    assert "The learning rate is 0.01 for epoch 1" in text and "Epoch[0]" not in text
    assert (tmp_path / "saved" / "net-0002.params").exists()


def test_train_imagenet_trains_in_half_precision_with_a_warm_up(tmp_path):
    text = run("train_imagenet", *TINY, "--num-examples", "8", "--batch-size", "4", "--dtype", "float16",
               "--warmup-epochs", "1", folder=tmp_path)  # fmt: skip
    assert "Epoch[0] Train-accuracy" in text


def test_train_imagenet_learns_the_digits(tmp_path):
    text = run("train_imagenet", "--network", "lenet", "--num-classes", "10", "--data-train", ROOT / "data",
               "--batch-size", "64", "--lr", "0.05", "--num-epochs", "2", folder=tmp_path)  # fmt: skip
    assert last(r"Epoch\[1\] Validation-accuracy=([\d.]+)", text) > 0.8


def test_autoencoder_keeps_most_of_a_digit(tmp_path):
    text = run("autoencoder", "--layers", "64", "--epochs", "6", "--lr", "0.005", folder=tmp_path)
    assert last(r"keep ([\d.]+)% of the variance", text) > 50
    assert "█" in text


def test_autoencoder_trains_layer_by_layer_first(tmp_path):
    text = run("autoencoder", "--layers", "32,16", "--epochs", "1", "--pretrain-epochs", "1", folder=tmp_path)
    assert "Layer 1 of 2: from 784 to 32" in text and "Layer 2 of 2: from 32 to 16" in text


def test_multi_task_learns_both_tasks(tmp_path):
    text = run("multi_task", "--epochs", "3", folder=tmp_path)
    assert last(r"digit: ([\d.]+)%", text) > 85
    assert last(r"parity: ([\d.]+)%", text) > 85


def test_custom_softmax_learns_by_its_own_gradient(tmp_path):
    text = run("custom_softmax", "--epochs", "2", folder=tmp_path)
    assert last(r"([\d.]+)% of the unseen digits are right", text) > 80


@pytest.mark.parametrize("model", ["product", "deep"])
def test_matrix_factorisation_finds_the_tastes(model, tmp_path):
    text = run("matrix_factorisation", "--model", model, folder=tmp_path)
    errors = re.search(r"off by ([\d.]+); the mean of all is off by ([\d.]+)\.$", text)
    assert float(errors[1]) < 0.6 * float(errors[2])


def test_matrix_factorisation_reads_a_file_of_ratings(tmp_path):
    lines = [f"{user}\t{10 * item}\t{1 + (user * item) % 5}\t0" for user in range(1, 21) for item in range(1, 16)]
    (tmp_path / "u.data").write_text("\n".join(lines))
    text = run("matrix_factorisation", "--data", "u.data", "--epochs", "1", folder=tmp_path)
    assert "300 ratings by 20 users of 15 items" in text


def test_dcgan_trains_and_draws(tmp_path):
    options = ("--epochs", "2", "--max-batches", "3", "--batch-size", "16", "--filters", "4")
    text = run("dcgan", *options, folder=tmp_path)
    assert "Epoch[1] the discriminator is right about" in text
    assert len(text.split("Digits by the generator:\n")[1].splitlines()) == 32


def test_model_parallel_lstm_learns_on_two_devices(tmp_path):
    options = ("--epochs", "3", "--sentences", "60", "--steps", "8", "--hidden", "16", "--batch-size", "8")
    text = run("model_parallel_lstm", *options, folder=tmp_path)
    assert "layer0   on cpu(0)" in text and "layer1   on cpu(1)" in text
    assert last(r"perplexity of a character=([\d.]+)", text) < 12

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

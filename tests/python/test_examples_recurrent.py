"""The programs of examples/python that build on mx.rnn and on RecordIO files of images, cut short."""

import re

import pytest
from example_runs import run, write_images


def test_lstm_bucketing_learns_the_made_up_sentences(tmp_path):
    options = (
        "--sentences",
        "1200",
        "--num-epochs",
        "3",
        "--num-hidden",
        "24",
        "--num-embed",
        "16",
        "--batch-size",
        "8",
    )
    text = run("lstm_bucketing", *options, "--model-prefix", "model", folder=tmp_path)
    assert re.search(r"1080 sentences to train on, 120 others", text)
    assert float(re.search(r"is one of ([\d.]+), of", text)[1]) < 15
    assert (tmp_path / "model-0003.params").exists()


def test_lstm_bucketing_reads_a_file_and_takes_unknown_words(tmp_path):
    (tmp_path / "train.txt").write_text("a b c d\nb c d a\n" * 16)
    (tmp_path / "val.txt").write_text("a b x d\n" * 8)
    options = ("--data", "train.txt", "--data-val", "val.txt", "--buckets", "4", "--batch-size", "8")
    text = run("lstm_bucketing", *options, "--num-epochs", "1", "--num-hidden", "8", folder=tmp_path)
    assert "32 sentences to train on, 8 others, 6 words" in text
    assert "perplexity=nan" not in text


def test_char_rnn_learns_and_writes(tmp_path):
    options = ("--sentences", "100", "--epochs", "3", "--hidden", "24", "--steps", "16", "--length", "50")
    text = run("char_rnn", *options, "--start", "the mill", folder=tmp_path)
    perplexity = [float(value) for value in re.findall(r"Train-perplexity=([\d.]+)", text)]
    assert len(perplexity) == 3 and perplexity[2] < perplexity[0] < 27
    written = text.removesuffix("\n")[-len("the mill") - 50 :]
    assert written.startswith("the mill") and set(written[8:]) <= set("abcdefghijklmnopqrstuvwxyz .\n")


@pytest.mark.parametrize(
    "augmentation",
    [
        "--random-crop 1 --random-mirror 1 --pad-size 2",
        "--random-resized-crop 1 --min-random-aspect-ratio 0.75 --max-random-aspect-ratio 1.33",
        "--use-imagenet-data-augmentation 1 --loss ce,nll-loss",
    ],
)
def test_train_imagenet_reads_a_record_file(augmentation, tmp_path):
    write_images(tmp_path, 24, classes=4)
    text = run("train_imagenet", "--network", "mobilenet", "--multiplier", "0.25", "--image-shape", "3,32,32",
               "--num-classes", "4", "--num-examples", "24", "--batch-size", "8", "--data-train", "train.rec",
               "--data-train-idx", "train.idx", "--data-val", "train.rec", *augmentation.split(),
               "--data-nthreads", "1", "--lr", "0.01", folder=tmp_path)  # fmt: skip
    assert "Epoch[0] Train-accuracy" in text and "Epoch[0] Validation-accuracy" in text
    assert ("Validation-nll-loss" in text) == ("nll-loss" in augmentation)

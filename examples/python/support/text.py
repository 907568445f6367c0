"""Text to learn from: a file, or the made-up sentences in data/."""

from pathlib import Path

SENTENCES = Path(__file__).resolve().parents[3] / "data/sentences.txt"


def read_lines(path, made_up):
    """The lines of a file that are not empty; without a file, so many of the made-up ones."""
    with open(path or SENTENCES, encoding="utf-8") as file:
        lines = [line.strip() for line in file if line.strip()]
    return lines if path else lines[:made_up]

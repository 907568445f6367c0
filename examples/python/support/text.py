"""Text to learn from: a file, or sentences made up by a small grammar."""

import random

NOUNS = "river mill bridge lantern garden kettle sparrow cart well barn fox baker".split()
PEOPLE = "the miller|the baker|an old sailor|my neighbour|the boy|a quiet girl|the night watchman".split("|")
VERBS = "mends paints finds carries forgets opens sells watches".split()
ADJECTIVES = "small red old quiet heavy bright broken warm".split()
PLACES = "by the river|behind the barn|in the market|under the bridge|near the well|on the hill".split("|")
TIMES = "in the morning|at noon|every evening|before the rain|after the harvest|when the bell rings".split("|")


def thing(choose):
    noun = choose(NOUNS)
    return f"the {choose(ADJECTIVES)} {noun}" if choose((True, False)) else f"the {noun}"


def sentence(choose):
    """Four to twenty words, of a few patterns."""
    parts = [choose(PEOPLE), choose(VERBS), thing(choose)]
    if choose((True, False)):
        parts.append(choose(PLACES))
    if choose((True, False)):
        parts.append(choose(TIMES))
    if choose((True, False, False)):
        parts += ["and", choose(VERBS), thing(choose)]
    return " ".join(parts) + " ."


def made_up_lines(count, seed=1):
    choose = random.Random(seed).choice
    return [sentence(choose) for _ in range(count)]


def read_lines(path, made_up):
    """The lines of a file that are not empty; without a file, that many made-up ones."""
    if not path:
        return made_up_lines(made_up)
    with open(path, encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip()]

"""What a call of an operator costs where the arrays are small: a + b of ten numbers each, in microseconds.

usage: small_op.py torch | mxnet | symbind
"""

import importlib
import json
import statistics
import sys
import timeit


def main():
    name = sys.argv[1]
    library = importlib.import_module(name)
    ones = library.ones if name == "torch" else library.nd.ones
    a, b = ones((10,)), ones((10,))
    finish = (lambda: None) if name == "torch" else library.nd.waitall
    calls, rounds = 20000, 7

    def many():
        for _ in range(calls):
            a + b  # noqa: B018
        finish()

    many()
    microseconds = [timeit.timeit(many, number=1) / calls * 1e6 for _ in range(rounds)]
    print(json.dumps({"case": "small-op", "library": name, "us": round(statistics.median(microseconds), 4)}))


if __name__ == "__main__":
    main()

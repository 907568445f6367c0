"""Records what MXNet's recurrent cells build, and how they unpack weights, in recorded/rnn_networks.json.gz.

usage: oracle-env/bin/python record_rnn.py
"""

import gzip
import json
import pathlib
import warnings

import mxnet as mx
import rnn_networks

HERE = pathlib.Path(__file__).resolve().parent


def plain(value):
    return json.loads(json.dumps(value))


def record(build):
    with mx.name.NameManager():
        answer = build(mx)
    symbol, more = (answer[0], answer[1:]) if isinstance(answer, tuple) else (answer, ())
    return {"tojson": symbol.tojson(), "more": plain(more)}


def record_weights(make):
    cell, arguments = make(mx)
    unpacked = cell.unpack_weights({name: mx.nd.array(value) for name, value in arguments.items()})
    return {
        name: {"shape": list(array.shape), "data": array.asnumpy().ravel().tolist()} for name, array in unpacked.items()
    }


def main():
    warnings.simplefilter("ignore")
    assert mx.__version__ == "1.9.1"
    recorded = {
        "format": "symbind-rnn-1",
        "mxnet": mx.__version__,
        "networks": {name: record(build) for name, build in rnn_networks.NETWORKS.items()},
        "weights": {name: record_weights(make) for name, make in rnn_networks.WEIGHTS.items()},
    }
    text = json.dumps(recorded, indent=0, sort_keys=True) + "\n"
    (HERE / "recorded" / "rnn_networks.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()

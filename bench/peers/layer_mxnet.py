"""Layers in MXNet, or in whatever package AS_MXNET names instead, for bench/layers.py and bench/operators.py."""

import importlib
import operator
import os

from layer_worker import array_of, serve, type_of

mx = importlib.import_module(os.environ.get("AS_MXNET", "mxnet"))
ARRAYS_FIRST = {"dot": ("lhs", "rhs"), "batch_dot": ("lhs", "rhs")}
STATES = ("moving_mean", "moving_var")
CONTEXT = mx.gpu(0) if os.environ.get("LAYERS_DEVICE") == "gpu" else mx.cpu()


def build(layer):
    # MXNet has operators with an underscore before their name in a module of their own.
    module = mx.sym._internal if layer["kind"].startswith("_") else mx.sym
    create = operator.attrgetter(layer["kind"])(module)
    params = {name: tuple(value) if isinstance(value, list) else value for name, value in layer["params"].items()}
    names = layer.get("inputs") or ARRAYS_FIRST.get(layer["kind"], ("data",))
    net = create(*[mx.sym.Variable(name) for name in names], name="layer", **params)

    def own_name(name):
        return name if name in names else f"layer_{name}"

    arguments = {name: shape for name, shape in layer["arrays"].items() if name not in STATES}
    executor = net.simple_bind(
        CONTEXT,
        grad_req={own_name(name): "write" if name in layer["gradients"] else "null" for name in arguments},
        type_dict={own_name(name): type_of(layer, name) for name in arguments},
        **{own_name(name): tuple(arguments[name]) for name in names},
    )

    def fill(array, values):
        mx.nd.array(values, ctx=CONTEXT, dtype="float32").astype(array.dtype).copyto(array)

    for name, shape in layer["arrays"].items():
        where = executor.aux_dict if name in STATES else executor.arg_dict
        fill(where[own_name(name)], array_of(layer, name, shape))

    def forward():
        executor.forward(is_train=False)[0].wait_to_read()

    forward()
    output = executor.outputs[0]
    out_grad = mx.nd.zeros(output.shape, CONTEXT, dtype=output.dtype)
    fill(out_grad, array_of(layer, "out_grad", output.shape))

    def step():
        executor.forward(is_train=True)
        executor.backward([out_grad])
        mx.nd.waitall()

    def compute():
        forward()
        results = {"output": executor.outputs[0].asnumpy()}
        if layer["gradients"]:
            step()
        for name in layer["gradients"]:
            results[name] = executor.grad_dict[own_name(name)].asnumpy()
        return {name: value.astype("float32") for name, value in results.items()}

    return {"forward": forward} | ({"training": step} if layer["gradients"] else {}), compute


if __name__ == "__main__":
    serve(build)

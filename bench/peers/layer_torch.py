"""Layers in PyTorch, for bench/layers.py and bench/operators.py."""

import os

import torch
import torch.nn.functional as F
from layer_worker import array_of, serve, type_of

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
DEVICE = "cuda" if os.environ.get("LAYERS_DEVICE") == "gpu" else "cpu"
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True  # as Symbind by default
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


def convolution(p, a, training):
    rank = len(p["kernel"])
    call = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    return call(a["data"], a["weight"], a.get("bias"), p["stride"], p["pad"], p["dilate"], p["num_group"])


def deconvolution(p, a, training):
    rank = len(p["kernel"])
    call = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]
    return call(a["data"], a["weight"], a.get("bias"), p["stride"], p["pad"], 0, p["num_group"], p["dilate"])


def pooling(p, a, training):
    rank = a["data"].dim() - 2
    if p.get("global_pool"):
        axes = tuple(range(2, rank + 2))
        return a["data"].amax(axes, True) if p["pool_type"] == "max" else a["data"].mean(axes, True)
    if p["pool_type"] == "max":
        return (F.max_pool1d, F.max_pool2d, F.max_pool3d)[rank - 1](a["data"], p["kernel"], p["stride"], p["pad"])
    return (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[rank - 1](
        a["data"], p["kernel"], p["stride"], p["pad"], False, p["count_include_pad"]
    )


def matrix(p, array, name):
    return array.transpose(-1, -2) if p[f"transpose_{name}"] else array


def l2_normalization(p, a, training):
    data = a["data"]
    axes = {"instance": tuple(range(1, data.dim())), "channel": (1,), "spatial": tuple(range(2, data.dim()))}[p["mode"]]
    return data / torch.sqrt((data * data).sum(axes, True) + p["eps"])


LAYERS = {
    "Convolution": convolution,
    "Deconvolution": deconvolution,
    "Pooling": pooling,
    "FullyConnected": lambda p, a, _: F.linear(a["data"], a["weight"], a.get("bias")),
    "dot": lambda p, a, _: matrix(p, a["lhs"], "a") @ matrix(p, a["rhs"], "b"),
    "batch_dot": lambda p, a, _: torch.bmm(matrix(p, a["lhs"], "a"), matrix(p, a["rhs"], "b")),
    "BatchNorm": lambda p, a, training: F.batch_norm(
        a["data"], a["moving_mean"], a["moving_var"], a["gamma"], a["beta"], training, 0.1, p["eps"]
    ),
    "LayerNorm": lambda p, a, _: F.layer_norm(a["data"], a["gamma"].shape, a["gamma"], a["beta"], p["eps"]),
    "InstanceNorm": lambda p, a, _: F.instance_norm(a["data"], None, None, a["gamma"], a["beta"], True, 0.1, p["eps"]),
    "GroupNorm": lambda p, a, _: F.group_norm(a["data"], p["num_groups"], a["gamma"], a["beta"], p["eps"]),
    "L2Normalization": l2_normalization,
    "softmax": lambda p, a, _: F.softmax(a["data"], p["axis"]),
    "log_softmax": lambda p, a, _: F.log_softmax(a["data"], p["axis"]),
}


def function_of(layer):
    """An operator's row says what it is in PyTorch; there the arrays have their names."""
    if "torch" not in layer:
        return LAYERS[layer["kind"]]
    code = compile(layer["torch"], layer["kind"], "eval")
    return lambda p, a, training: eval(code, {"torch": torch, "F": F, "p": p, **a})


def build(layer):
    call, p = function_of(layer), layer["params"]
    arrays = {
        name: torch.from_numpy(array_of(layer, name, shape)).to(DEVICE, DTYPES[type_of(layer, name)])
        for name, shape in layer["arrays"].items()
    }
    # MXNet scales by the group, PyTorch by the channel.
    groups = p.get("num_groups")
    if groups:
        for name in ("gamma", "beta"):
            arrays[name] = arrays[name].repeat_interleave(arrays["data"].shape[1] // groups)
    names = layer["gradients"]

    def finished(result):
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        return result

    def forward():
        with torch.inference_mode():
            return finished(call(p, arrays, False))

    shape = forward().shape
    out_grad = torch.from_numpy(array_of(layer, "out_grad", shape)).to(DEVICE, DTYPES[layer["dtype"]])
    variables = arrays | {name: arrays[name].clone().requires_grad_() for name in names}
    wanted = [variables[name] for name in names]

    # As in a training loop: each gradient is an array of its own. torch.autograd.grad may return a view that was never
    # written, such as the one number that is the gradient of a sum, expanded.
    def step():
        for each in wanted:
            each.grad = None
        finished(call(p, variables, True).backward(out_grad))

    def compute():
        results = {"output": forward()}
        if names:
            step()
            results |= {name: variables[name].grad for name in names if variables[name].grad is not None}
        if groups:
            results |= {name: results[name].float().view(groups, -1).sum(1) for name in ("gamma", "beta")}
        return {name: value.detach().float().cpu().numpy() for name, value in results.items()}

    return {"forward": forward} | ({"training": step} if names else {}), compute


if __name__ == "__main__":
    serve(build)

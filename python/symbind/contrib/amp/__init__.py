"""Mixed precision: networks whose products and convolutions compute in 16 bits, and everything delicate in float32.

``convert_symbol`` puts casts into a network and ``convert_model`` casts its parameters too. MXNet's ``init``, which
changes the functions of arrays and symbols, and ``scale_loss``, ``unscale`` and ``init_trainer``, which are for Gluon's
trainers, are not part of Symbind: give ``compute_dtype`` to ``Module`` or ``fit``, which scale the loss by themselves.
"""

from . import amp, lists, loss_scaler
from .amp import (
    __getattr__,
    convert_bucketing_module,
    convert_model,
    convert_symbol,
    list_conditional_fp32_ops,
    list_fp32_ops,
    list_loss_output_functions,
    list_lp16_fp32_ops,
    list_lp16_ops,
    list_lp16_use_fp32_params,
    list_widest_type_cast,
)

__all__ = [
    "amp",
    "convert_bucketing_module",
    "convert_model",
    "convert_symbol",
    "list_conditional_fp32_ops",
    "list_fp32_ops",
    "list_loss_output_functions",
    "list_lp16_fp32_ops",
    "list_lp16_ops",
    "list_lp16_use_fp32_params",
    "list_widest_type_cast",
    "lists",
    "loss_scaler",
]

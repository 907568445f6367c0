"""Checkpoints of networks with recurrent cells: files hold the parameters of single gates, so that fused and unfused
cells read each other's."""

import warnings as _warnings

from .. import symbol as _symbol
from ..model import load_checkpoint, save_checkpoint
from .rnn_cell import BaseRNNCell

__all__ = ["do_rnn_checkpoint", "load_rnn_checkpoint", "rnn_unroll", "save_rnn_checkpoint"]


def _list_of(cells):
    return [cells] if isinstance(cells, BaseRNNCell) else list(cells)


def rnn_unroll(cell, length, inputs=None, begin_state=None, input_prefix="", layout="NTC"):
    """Deprecated: use cell.unroll. Without inputs there is a variable for each step, named input_prefix + t0_data."""
    _warnings.warn("rnn_unroll is deprecated: use cell.unroll", DeprecationWarning, stacklevel=2)
    if inputs is None:
        inputs = [_symbol.Variable(f"{input_prefix}t{step}_data") for step in range(length)]
    return cell.unroll(length, inputs, begin_state=begin_state, layout=layout)


def save_rnn_checkpoint(cells, prefix, epoch, symbol, arg_params, aux_params):
    """Saves a model, as mx.model.save_checkpoint does, with the weights of the cells unpacked."""
    for cell in _list_of(cells):
        arg_params = cell.unpack_weights(arg_params)
    save_checkpoint(prefix, epoch, symbol, arg_params, aux_params)


def load_rnn_checkpoint(cells, prefix, epoch):
    """Loads what save_rnn_checkpoint saved: (symbol, arg_params, aux_params)."""
    symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
    for cell in _list_of(cells):
        arg_params = cell.pack_weights(arg_params)
    return symbol, arg_params, aux_params


def do_rnn_checkpoint(cells, prefix, period=1):
    """A callback for the end of an epoch that saves every `period` epochs."""
    period = max(1, int(period))

    def callback(epoch, symbol=None, arg_params=None, aux_params=None):
        if (epoch + 1) % period == 0:
            save_rnn_checkpoint(cells, prefix, epoch + 1, symbol, arg_params, aux_params)

    return callback

"""Networks made of recurrent cells: functions of the package that builds them, mxnet or a substitute.

Each returns a symbol, or a tuple of one and further plain data. Automatic names start at 0 in each.
"""


def _flat(states):
    """BidirectionalCell returns the states of each direction as a list of their own."""
    return [each for state in states for each in (_flat(state) if isinstance(state, (list, tuple)) else [state])]


def _sequence(mx, length):
    return [mx.sym.Variable("t%d_data" % i) for i in range(length)]


def rnn_steps(mx):
    cell = mx.rnn.RNNCell(8, prefix="rnn_")
    outputs, states = cell.unroll(3, _sequence(mx, 3))
    return mx.sym.Group(outputs + _flat(states)), cell.state_shape, sorted(cell.params._params)


def rnn_relu(mx):
    outputs, _ = mx.rnn.RNNCell(8, activation="relu").unroll(2, mx.sym.Variable("data"), merge_outputs=True)
    return outputs


def lstm_steps(mx):
    cell = mx.rnn.LSTMCell(8, prefix="l_", forget_bias=2.0)
    outputs, states = cell.unroll(3, _sequence(mx, 3))
    return mx.sym.Group(outputs + _flat(states)), cell.state_shape, sorted(cell.params._params)


def lstm_merged(mx):
    outputs, states = mx.rnn.LSTMCell(5).unroll(3, mx.sym.Variable("data"), layout="NTC", merge_outputs=True)
    return mx.sym.Group([outputs] + _flat(states))


def lstm_time_first(mx):
    outputs, _ = mx.rnn.LSTMCell(5).unroll(3, mx.sym.Variable("data"), layout="TNC", merge_outputs=True)
    return outputs


def lstm_split(mx):
    outputs, _ = mx.rnn.LSTMCell(5).unroll(3, mx.sym.Variable("data"), merge_outputs=False)
    return mx.sym.Group(outputs)


def lstm_twice(mx):
    cell = mx.rnn.LSTMCell(5)
    first, _ = cell.unroll(2, mx.sym.Variable("a"), merge_outputs=True)
    second, _ = cell.unroll(2, mx.sym.Variable("b"), merge_outputs=True)
    return mx.sym.Group([first, second])


def lstm_begin_state(mx):
    cell = mx.rnn.LSTMCell(5)
    begin = cell.begin_state(func=mx.sym.Variable)
    outputs, _ = cell.unroll(2, mx.sym.Variable("data"), begin_state=begin, merge_outputs=True)
    return outputs


def lstm_begin_ones(mx):
    cell = mx.rnn.LSTMCell(5)
    outputs, _ = cell.unroll(
        2, mx.sym.Variable("data"), begin_state=cell.begin_state(func=mx.sym.ones, dtype="float32")
    )
    return mx.sym.Group(outputs)


def lstm_called(mx):
    cell = mx.rnn.LSTMCell(4, prefix="c_")
    output, states = cell(mx.sym.Variable("x"), cell.begin_state())
    output, states = cell(output, states)
    return mx.sym.Group([output] + states)


def gru_steps(mx):
    cell = mx.rnn.GRUCell(8, prefix="g_")
    outputs, states = cell.unroll(3, _sequence(mx, 3))
    return mx.sym.Group(outputs + _flat(states)), cell.state_shape, sorted(cell.params._params)


def shared_parameters(mx):
    params = mx.rnn.RNNParams("shared_")
    cells = [mx.rnn.GRUCell(4, prefix="a_", params=params), mx.rnn.GRUCell(4, prefix="b_", params=params)]
    stack = mx.rnn.SequentialRNNCell()
    stack.add(cells[0])
    stack.add(cells[1])
    outputs, _ = stack.unroll(2, mx.sym.Variable("data"), merge_outputs=True)
    return outputs


def stacked(mx):
    stack = mx.rnn.SequentialRNNCell()
    for i in range(3):
        stack.add(mx.rnn.LSTMCell(6, prefix="stack_%d_" % i))
        if i < 2:
            stack.add(mx.rnn.DropoutCell(0.5, prefix="drop_%d_" % i))
    outputs, states = stack.unroll(3, mx.sym.Variable("data"), merge_outputs=True)
    return mx.sym.Group([outputs] + _flat(states)), stack.state_shape


def stacked_steps(mx):
    stack = mx.rnn.SequentialRNNCell()
    stack.add(mx.rnn.RNNCell(3, prefix="low_"))
    stack.add(mx.rnn.GRUCell(4, prefix="high_"))
    outputs, states = stack.unroll(2, _sequence(mx, 2))
    return mx.sym.Group(outputs + _flat(states))


def stacked_called(mx):
    stack = mx.rnn.SequentialRNNCell()
    stack.add(mx.rnn.RNNCell(3, prefix="low_"))
    stack.add(mx.rnn.ZoneoutCell(mx.rnn.LSTMCell(3, prefix="high_"), 0.5, 0.25))
    output, states = stack(mx.sym.Variable("x"), stack.begin_state())
    return mx.sym.Group([output] + states)


def both_directions(mx):
    cell = mx.rnn.BidirectionalCell(
        mx.rnn.LSTMCell(4, prefix="l_"), mx.rnn.LSTMCell(4, prefix="r_"), output_prefix="both_"
    )
    outputs, states = cell.unroll(3, mx.sym.Variable("data"), merge_outputs=True)
    return mx.sym.Group([outputs] + _flat(states)), cell.state_shape


def both_directions_steps(mx):
    cell = mx.rnn.BidirectionalCell(mx.rnn.GRUCell(4, prefix="l_"), mx.rnn.GRUCell(4, prefix="r_"))
    outputs, states = cell.unroll(2, _sequence(mx, 2))
    return mx.sym.Group(outputs + _flat(states))


def both_directions_stacked(mx):
    stack = mx.rnn.SequentialRNNCell()
    for i in range(2):
        stack.add(
            mx.rnn.BidirectionalCell(
                mx.rnn.GRUCell(4, prefix="l%d_" % i), mx.rnn.GRUCell(4, prefix="r%d_" % i), output_prefix="bi_%d_" % i
            )
        )
    outputs, _ = stack.unroll(2, mx.sym.Variable("data"), layout="TNC", merge_outputs=True)
    return outputs


def dropped(mx):
    outputs, _ = mx.rnn.DropoutCell(0.25).unroll(3, mx.sym.Variable("data"), merge_outputs=True)
    return outputs


def dropped_steps(mx):
    outputs, _ = mx.rnn.DropoutCell(0.25).unroll(2, _sequence(mx, 2), merge_outputs=False)
    return mx.sym.Group(outputs)


def dropped_nothing(mx):
    outputs, _ = mx.rnn.DropoutCell(0.0).unroll(2, _sequence(mx, 2), merge_outputs=False)
    return mx.sym.Group(outputs)


def residual(mx):
    cell = mx.rnn.ResidualCell(mx.rnn.GRUCell(4, prefix="g_"))
    outputs, states = cell.unroll(3, mx.sym.Variable("data"), merge_outputs=True)
    return mx.sym.Group([outputs] + _flat(states)), cell.state_shape


def residual_steps(mx):
    cell = mx.rnn.ResidualCell(mx.rnn.GRUCell(4, prefix="g_"))
    outputs, _ = cell.unroll(2, _sequence(mx, 2))
    return mx.sym.Group(outputs)


def residual_of_both(mx):
    both = mx.rnn.BidirectionalCell(mx.rnn.GRUCell(4, prefix="l_"), mx.rnn.GRUCell(4, prefix="r_"))
    outputs, _ = mx.rnn.ResidualCell(both).unroll(2, mx.sym.Variable("data"), merge_outputs=True)
    return outputs


def zoneout(mx):
    cell = mx.rnn.ZoneoutCell(mx.rnn.RNNCell(4, prefix="z_"), zoneout_outputs=0.5, zoneout_states=0.25)
    outputs, states = cell.unroll(3, _sequence(mx, 3))
    return mx.sym.Group(outputs + _flat(states))


def zoneout_states(mx):
    cell = mx.rnn.ZoneoutCell(mx.rnn.LSTMCell(4, prefix="z_"), zoneout_states=0.25)
    outputs, _ = cell.unroll(2, mx.sym.Variable("data"), merge_outputs=True)
    return outputs


def zoneout_outputs(mx):
    cell = mx.rnn.ZoneoutCell(mx.rnn.LSTMCell(4, prefix="z_"), zoneout_outputs=0.25)
    outputs, _ = cell.unroll(2, mx.sym.Variable("data"), merge_outputs=True)
    return outputs


def zoneout_residual(mx):
    cell = mx.rnn.ResidualCell(mx.rnn.ZoneoutCell(mx.rnn.GRUCell(4, prefix="z_"), zoneout_states=0.25))
    outputs, _ = cell.unroll(2, mx.sym.Variable("data"), merge_outputs=True)
    return outputs


def _fused(**options):
    def build(mx):
        unroll = dict(options)
        layout = unroll.pop("layout", "NTC")
        merge = unroll.pop("merge", True)
        cell = mx.rnn.FusedRNNCell(6, **unroll)
        outputs, states = cell.unroll(3, mx.sym.Variable("data"), layout=layout, merge_outputs=merge)
        outputs = [outputs] if merge is not False else outputs
        return mx.sym.Group(list(outputs) + list(states)), cell.state_shape

    return build


fused_lstm = _fused(num_layers=2)
fused_lstm_time_first = _fused(num_layers=2, layout="TNC")
fused_lstm_states = _fused(num_layers=2, get_next_state=True, dropout=0.5, prefix="f_")
fused_gru_both = _fused(mode="gru", bidirectional=True, get_next_state=True)
fused_tanh = _fused(mode="rnn_tanh", get_next_state=True)
fused_relu_split = _fused(mode="rnn_relu", merge=False)
fused_relu_split_time_first = _fused(mode="rnn_relu", merge=False, layout="TNC")
fused_default_merge = _fused(mode="rnn_relu", merge=None)
fused_forget_bias = _fused(mode="lstm", forget_bias=3.0)


def fused_steps(mx):
    outputs, _ = mx.rnn.FusedRNNCell(6, mode="gru").unroll(2, _sequence(mx, 2), merge_outputs=True)
    return outputs


def fused_stacked(mx):
    stack = mx.rnn.SequentialRNNCell()
    stack.add(mx.rnn.FusedRNNCell(6, num_layers=2, mode="lstm", prefix="low_"))
    stack.add(mx.rnn.FusedRNNCell(4, mode="gru", prefix="high_"))
    outputs, _ = stack.unroll(3, mx.sym.Variable("data"), merge_outputs=True)
    return outputs


def fused_begin_state(mx):
    cell = mx.rnn.FusedRNNCell(6, num_layers=2, mode="lstm")
    outputs, _ = cell.unroll(2, mx.sym.Variable("data"), begin_state=cell.begin_state(), merge_outputs=True)
    return outputs


def _unfused(**options):
    def build(mx):
        stack = mx.rnn.FusedRNNCell(6, **options).unfuse()
        outputs, states = stack.unroll(2, mx.sym.Variable("data"), merge_outputs=True)
        return mx.sym.Group([outputs] + _flat(states)), stack.state_shape

    return build


unfused_lstm = _unfused(num_layers=2, dropout=0.5, prefix="f_")
unfused_gru_both = _unfused(num_layers=2, mode="gru", bidirectional=True)
unfused_relu = _unfused(mode="rnn_relu")
unfused_tanh = _unfused(mode="rnn_tanh", num_layers=2)


def conv_rnn(mx):
    cell = mx.rnn.ConvRNNCell(input_shape=(1, 3, 8, 7), num_hidden=4)
    outputs, states = cell.unroll(2, mx.sym.Variable("data"), merge_outputs=True)
    return mx.sym.Group([outputs] + _flat(states)), cell.state_shape


def conv_lstm(mx):
    cell = mx.rnn.ConvLSTMCell(
        input_shape=(1, 3, 8, 7), num_hidden=4, h2h_kernel=(5, 3), i2h_kernel=(3, 3), i2h_pad=(0, 1), prefix="cl_"
    )
    outputs, states = cell.unroll(2, _sequence(mx, 2))
    return mx.sym.Group(outputs + _flat(states)), cell.state_shape


def conv_gru(mx):
    cell = mx.rnn.ConvGRUCell(input_shape=(1, 3, 8, 7), num_hidden=4, activation="tanh", i2h_stride=(2, 2))
    outputs, states = cell.unroll(2, _sequence(mx, 2))
    return mx.sym.Group(outputs + _flat(states)), cell.state_shape


NETWORKS = {
    name: function for name, function in list(globals().items()) if callable(function) and not name.startswith("_")
}


def _numbers(**shapes):
    """Arrays with these shapes; every element is different."""
    arrays, start = {}, 0
    for name, shape in shapes.items():
        size = 1
        for extent in shape:
            size *= extent
        values = [start + i for i in range(size)]
        start += size
        arrays[name] = _shaped(values, shape)
    return arrays


def _shaped(values, shape):
    if len(shape) == 1:
        return values
    step = len(values) // shape[0]
    return [_shaped(values[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


# A cell and the arrays of its parameters, packed.
WEIGHTS = {
    "lstm": lambda mx: (
        mx.rnn.LSTMCell(2, prefix="l_"),
        _numbers(l_i2h_weight=(8, 3), l_i2h_bias=(8,), l_h2h_weight=(8, 2), l_h2h_bias=(8,), other=(2,)),
    ),
    "gru": lambda mx: (
        mx.rnn.GRUCell(2, prefix="g_"),
        _numbers(g_i2h_weight=(6, 3), g_i2h_bias=(6,), g_h2h_weight=(6, 2), g_h2h_bias=(6,)),
    ),
    "plain": lambda mx: (
        mx.rnn.RNNCell(2, prefix="p_"),
        _numbers(p_i2h_weight=(2, 3), p_i2h_bias=(2,), p_h2h_weight=(2, 2), p_h2h_bias=(2,)),
    ),
    "residual": lambda mx: (
        mx.rnn.ResidualCell(mx.rnn.GRUCell(2, prefix="g_")),
        _numbers(g_i2h_weight=(6, 2), g_i2h_bias=(6,), g_h2h_weight=(6, 2), g_h2h_bias=(6,)),
    ),
    "fused_lstm": lambda mx: (
        mx.rnn.FusedRNNCell(2, num_layers=2, mode="lstm", prefix="f_"),
        _numbers(f_parameters=(4 * 2 * (3 + 2 + 2) + 4 * 2 * (2 + 2 + 2),), other=(2, 2)),
    ),
    "fused_gru_both": lambda mx: (
        mx.rnn.FusedRNNCell(2, num_layers=2, mode="gru", bidirectional=True),
        _numbers(gru_parameters=(2 * 3 * 2 * (3 + 2 + 2) + 2 * 3 * 2 * (4 + 2 + 2),)),
    ),
    "fused_tanh": lambda mx: (
        mx.rnn.FusedRNNCell(2, mode="rnn_tanh"),
        _numbers(rnn_tanh_parameters=(2 * (3 + 2 + 2),)),
    ),
}

"""What examples/grad_req_null.cc does, in MXNet: its output, recorded in grad_req_null.txt, is what ours must be."""

import mxnet as mx

x = mx.sym.Variable("x")
y = mx.sym.FullyConnected(x, num_hidden=4)
executor = y.simple_bind(mx.cpu(), x=(5, 4), grad_req="null")

print(y.list_arguments())
print(executor.grad_arrays)
print(executor.arg_arrays)
print(executor.forward())

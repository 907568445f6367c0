"""What examples/two_a_plus_b.cc does, in MXNet: its output, recorded in two_a_plus_b.txt, is what ours must be."""

import mxnet as mx

a = mx.sym.Variable("a")
b = mx.sym.Variable("b")
d = 2 * a + b
print(d.list_arguments())

executor = d.simple_bind(mx.cpu(), a=(1,), b=(1,))
executor.copy_params_from(arg_params={"a": mx.nd.array([1.0]), "b": mx.nd.array([2.0])})
print(executor.forward(is_train=True))
executor.backward(out_grads=mx.nd.array([1.0]))
print(executor.grad_arrays)

executor = d.simple_bind(mx.cpu(), a=(1,), b=(1,))
executor.forward()
print(executor.outputs[0].asnumpy())
for value in executor.arg_arrays:
    print(value.asnumpy())
    value += mx.nd.array([1])
executor.forward()
for value in executor.outputs:
    print(value.asnumpy())

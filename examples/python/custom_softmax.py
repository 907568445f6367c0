"""An operator written in Python: the softmax and its loss as a CustomOp in NumPy, in a network that reads digits."""

import numpy as np
from support import digits, program

import symbind as mx


class Softmax(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        scores = in_data[0].asnumpy()
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        self.assign(out_data[0], req[0], mx.nd.array(powers / powers.sum(axis=1, keepdims=True)))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        # The gradient of the cross entropy by the scores: the probabilities, less 1 at the right class.
        gradient = out_data[0].asnumpy()
        gradient[np.arange(len(gradient)), in_data[1].asnumpy().astype(int)] -= 1
        self.assign(in_grad[0], req[0], mx.nd.array(gradient))


@mx.operator.register("numpy_softmax")
class SoftmaxProp(mx.operator.CustomOpProp):
    def __init__(self):
        super().__init__(need_top_grad=False)  # a loss: nothing comes from above

    def list_arguments(self):
        return ["data", "label"]

    def infer_shape(self, in_shape):
        data = in_shape[0]
        return [data, (data[0],)], [data], []

    def create_operator(self, ctx, shapes, dtypes):
        return Softmax()


def network():
    net = mx.sym.Variable("data")
    net = mx.sym.FullyConnected(net, num_hidden=128, name="fc1")
    net = mx.sym.Activation(net, act_type="relu", name="relu1")
    net = mx.sym.FullyConnected(net, num_hidden=10, name="fc2")
    return mx.sym.Custom(data=net, name="softmax", op_type="numpy_softmax")


def main():
    options = program.parser(__doc__)
    options.add_argument("--data", default=digits.DATA, help="folder with digits in MNIST's idx files")
    options.add_argument("--epochs", type=int, default=5, help="how often every digit is seen")
    options.add_argument("--batch-size", type=int, default=64, help="digits a step")
    options.add_argument("--lr", type=float, default=0.1, help="the learning rate")
    args = program.start(options)

    train = mx.io.NDArrayIter(*digits.read_digits(args.data, "train"), args.batch_size, shuffle=True)
    unseen = mx.io.NDArrayIter(*digits.read_digits(args.data, "t10k"), args.batch_size)
    module = mx.mod.Module(network())
    module.fit(
        train,
        eval_data=unseen,
        optimizer_params={"learning_rate": args.lr, "momentum": 0.9},
        initializer=mx.init.Xavier(),
        num_epoch=args.epochs,
        batch_end_callback=mx.callback.ProgressBar(-(-train.num_data // args.batch_size), 40),
    )
    print(f"{dict(module.score(unseen, 'acc'))['accuracy']:.1%} of the unseen digits are right.")


if __name__ == "__main__":
    main()

"""Two tasks on one body: which digit an image shows, and whether it is odd. Each has its own loss, label and score."""

from support import digits, program

import symbind as mx


def network():
    net = mx.sym.Variable("data")
    net = mx.sym.FullyConnected(net, num_hidden=128, name="fc1")
    net = mx.sym.Activation(net, act_type="relu", name="relu1")
    digit = mx.sym.FullyConnected(net, num_hidden=10, name="fc_digit")
    parity = mx.sym.FullyConnected(net, num_hidden=2, name="fc_parity")
    return mx.sym.Group([mx.sym.SoftmaxOutput(digit, name="digit"), mx.sym.SoftmaxOutput(parity, name="parity")])


def task_accuracy(task):
    return mx.metric.Accuracy(name=task, output_names=[f"{task}_output"], label_names=[f"{task}_label"])


def iterator(folder, part, batch_size, shuffle):
    images, labels = digits.read_digits(folder, part)
    return mx.io.NDArrayIter(images, {"digit_label": labels, "parity_label": labels % 2}, batch_size, shuffle)


def main():
    options = program.parser(__doc__)
    options.add_argument("--data", default=digits.DATA, help="folder with digits in MNIST's idx files")
    options.add_argument("--epochs", type=int, default=10, help="how often every digit is seen")
    options.add_argument("--batch-size", type=int, default=64, help="digits a step")
    options.add_argument("--lr", type=float, default=0.1, help="the learning rate")
    options.add_argument("--gpus", help="GPUs that share a batch; else the CPU is used")
    args = program.start(options)

    train = iterator(args.data, "train", args.batch_size, True)
    unseen = iterator(args.data, "t10k", args.batch_size, False)
    metric = mx.metric.CompositeEvalMetric([task_accuracy("digit"), task_accuracy("parity")])
    module = mx.mod.Module(network(), label_names=["digit_label", "parity_label"], context=program.contexts(args.gpus))
    module.fit(
        train,
        eval_data=unseen,
        eval_metric=metric,
        optimizer_params={"learning_rate": args.lr, "momentum": 0.9},
        initializer=mx.init.Xavier(),
        num_epoch=args.epochs,
        batch_end_callback=mx.callback.ProgressBar(-(-train.num_data // args.batch_size), 40),
    )
    for task, accuracy in module.score(unseen, metric):
        print(f"{task}: {accuracy:.1%} of the unseen digits are right.")


if __name__ == "__main__":
    main()

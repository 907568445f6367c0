"""A generative adversarial network of convolutions (DCGAN) that learns to write digits.

A generator makes images from random numbers; a discriminator tells them from real ones. The discriminator's gradient by
its input is what the generator learns from.
"""

import logging

import numpy as np
from support import digits, program

import symbind as mx

SIZE = 32  # the digits get a frame, so that every layer halves or doubles


def generator(filters):
    """Images of 32 × 32 pixels, -1 to 1, from random numbers (batch, length, 1, 1)."""

    def grown(data, name, width, kernel=4, stride=2, pad=1):
        net = mx.sym.Deconvolution(
            data,
            kernel=(kernel, kernel),
            stride=(stride, stride),
            pad=(pad, pad),
            num_filter=width,
            no_bias=True,
            name=name,
        )
        return net

    net = mx.sym.Variable("rand")
    for number, width in enumerate((4 * filters, 2 * filters, filters), 1):
        first = number == 1
        net = grown(net, f"g{number}", width, stride=1 if first else 2, pad=0 if first else 1)
        net = mx.sym.BatchNorm(net, fix_gamma=True, eps=1e-5, name=f"gbn{number}")
        net = mx.sym.Activation(net, act_type="relu", name=f"gact{number}")
    return mx.sym.Activation(grown(net, "g4", 1), act_type="tanh", name="gact4")


def discriminator(filters):
    """The probability that an image is real."""
    net = mx.sym.Variable("data")
    for number, width in enumerate((filters, 2 * filters, 4 * filters), 1):
        net = mx.sym.Convolution(
            net, kernel=(4, 4), stride=(2, 2), pad=(1, 1), num_filter=width, no_bias=True, name=f"d{number}"
        )
        if number > 1:
            net = mx.sym.BatchNorm(net, fix_gamma=True, eps=1e-5, name=f"dbn{number}")
        net = mx.sym.LeakyReLU(net, act_type="leaky", slope=0.2, name=f"dact{number}")
    net = mx.sym.Convolution(net, kernel=(4, 4), num_filter=1, no_bias=True, name="d4")
    return mx.sym.LogisticRegressionOutput(mx.sym.Flatten(net), mx.sym.Variable("label"), name="dloss")


class Gan:
    """The two modules and a step of both."""

    def __init__(self, args):
        self.batch_size, self.length = args.batch_size, args.length
        context = program.contexts(args.gpus)
        self.generator = mx.mod.Module(generator(args.filters), ["rand"], None, context=context)
        self.generator.bind([("rand", (args.batch_size, args.length, 1, 1))])
        self.discriminator = mx.mod.Module(discriminator(args.filters), ["data"], ["label"], context=context)
        self.discriminator.bind(
            [("data", (args.batch_size, 1, SIZE, SIZE))], [("label", (args.batch_size, 1))], inputs_need_grad=True
        )
        for module in (self.generator, self.discriminator):
            module.init_params(mx.init.Normal(0.02))
            module.init_optimizer(
                optimizer="adam", optimizer_params={"learning_rate": args.lr, "beta1": 0.5, "wd": 0.0}
            )
        self.noise = np.random.RandomState(args.seed)

    def made(self, is_train=False):
        """A batch of images by the generator."""
        noise = self.noise.normal(size=(self.batch_size, self.length, 1, 1))
        self.generator.forward(mx.io.DataBatch([mx.nd.array(noise)]), is_train=is_train)
        return self.generator.get_outputs()

    def judge(self, images, real):
        """The discriminator's gradients for images that are to be found real or not; the share it has right."""
        label = mx.nd.full((self.batch_size, 1), 1.0 if real else 0.0)
        self.discriminator.forward(mx.io.DataBatch(images, [label]), is_train=True)
        self.discriminator.backward()
        return float(((self.discriminator.get_outputs()[0].asnumpy() > 0.5) == real).mean())

    def gradients(self):
        return [array for arrays in self.discriminator._exec_group.grad_arrays for array in arrays]

    def step(self, real):
        """One update of each network; how often the discriminator was right about made and real images."""
        images = self.made(is_train=True)
        made_right = self.judge(images, real=False)
        gradients = [array.copy() for array in self.gradients()]
        real_right = self.judge([real], real=True)
        for total, array in zip(self.gradients(), gradients):
            total += array
        self.discriminator.update()
        self.judge(images, real=True)  # what would make the images pass for real
        self.generator.backward(self.discriminator.get_input_grads())
        self.generator.update()
        return made_right, real_right


def framed(images):
    """Digits of 28 × 28 pixels, 0 to 1, as images of 32 × 32 pixels, -1 to 1."""
    around = [(0, 0), (0, 0), *(((SIZE - size) // 2, (SIZE - size + 1) // 2) for size in images.shape[2:])]
    return np.pad(images, around) * 2 - 1


def main():
    options = program.parser(__doc__)
    options.add_argument("--data", default=digits.DATA, help="folder with digits in MNIST's idx files")
    options.add_argument("--epochs", type=int, default=15, help="how often every digit is seen")
    options.add_argument("--batch-size", type=int, default=64, help="digits a step")
    options.add_argument(
        "--filters", type=int, default=16, help="of the widest layers; four times as many of the others"
    )
    options.add_argument("--length", type=int, default=32, help="random numbers for an image")
    options.add_argument("--lr", type=float, default=0.001, help="the learning rate of both networks")
    options.add_argument("--max-batches", type=int, help="end an epoch after so many batches")
    options.add_argument("--gpus", help="a GPU; else the CPU is used")
    options.add_argument("--seed", type=int, default=1, help="of the random numbers")
    args = program.start(options)

    images, _ = digits.read_digits(args.data, "train")
    train = mx.io.NDArrayIter(framed(images), None, args.batch_size, shuffle=True, last_batch_handle="discard")
    gan = Gan(args)
    batches = len(images) // args.batch_size
    bar = mx.callback.ProgressBar(min(batches, args.max_batches or batches), 40)
    for epoch in range(args.epochs):
        train.reset()
        scores = []
        for batch in train:
            scores.append(gan.step(batch.data[0]))
            program.show_bar(bar, epoch, len(scores) - 1)
            if len(scores) == args.max_batches:
                break
        made, real = np.mean(scores, axis=0)
        logging.info("Epoch[%d] the discriminator is right about %.0f%% of the made and %.0f%% of the real images",
                     epoch, 100 * made, 100 * real)  # fmt: skip
    print("Digits by the generator:")
    print(digits.draw((gan.made()[0].asnumpy()[:8, 0] + 1) / 2))


if __name__ == "__main__":
    main()

"""Recommendation by matrix factorisation: a rating is the product of a vector per user and a vector per item.

python matrix_factorisation.py                        ratings made up from hidden tastes
python matrix_factorisation.py --data ml-100k/u.data  MovieLens: user, item, rating, time in each line
python matrix_factorisation.py --model deep           a small network over the vectors instead of the product
"""

import logging

import numpy as np
from support import program

import symbind as mx


def read_ratings(path):
    """Users, items and ratings of a file with one rating a line, separated by tabs, `::` or commas."""
    rows = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            fields = line.strip().replace("::", "\t").replace(",", "\t").split("\t")
            try:
                rows.append((int(fields[0]), int(fields[1]), float(fields[2])))
            except (ValueError, IndexError):
                if number > 1 and line.strip():  # the first line may name the columns
                    raise ValueError(f"{path}:{number}: user, item and rating are expected: {line.strip()}") from None
    users, items, ratings = zip(*rows)
    return np.unique(users, return_inverse=True)[1], np.unique(items, return_inverse=True)[1], np.array(ratings)


def made_up_ratings(num_users, num_items, count, random):
    """Ratings from 1 to 5 that follow from tastes in three dimensions, and some noise."""
    tastes, traits = random.normal(size=(num_users, 3)), random.normal(size=(num_items, 3))
    pairs = random.permutation(num_users * num_items)[:count]
    users, items = pairs // num_items, pairs % num_items
    ratings = 3 + 0.6 * (tastes[users] * traits[items]).sum(axis=1) + 0.2 * random.normal(size=len(pairs))
    return users, items, np.clip(np.round(ratings * 2) / 2, 1, 5)


def network(model, num_users, num_items, factors):
    def embedded(name, count):
        return mx.sym.Embedding(mx.sym.Variable(name), input_dim=count, output_dim=factors, name=f"{name}_embed")

    user, item = embedded("user", num_users), embedded("item", num_items)
    if model == "deep":
        net = mx.sym.FullyConnected(mx.sym.Concat(user, item), num_hidden=2 * factors, name="fc1")
        net = mx.sym.Activation(net, act_type="relu", name="relu1")
        net = mx.sym.FullyConnected(net, num_hidden=1, name="fc2")
    else:
        net = mx.sym.sum(user * item, axis=1, keepdims=True)
    return mx.sym.LinearRegressionOutput(mx.sym.Flatten(net), mx.sym.Variable("score"), name="rating")


def main():
    options = program.parser(__doc__)
    options.add_argument("--data", help="a file of ratings; made-up ones without it")
    options.add_argument("--model", default="product", choices=["product", "deep"], help="how vectors make a rating")
    options.add_argument("--factors", type=int, default=8, help="the length of the vectors")
    options.add_argument("--num-users", type=int, default=200, help="of made-up ratings")
    options.add_argument("--num-items", type=int, default=100, help="of made-up ratings")
    options.add_argument("--num-ratings", type=int, default=10000, help="of made-up ratings")
    options.add_argument("--epochs", type=int, default=15, help="how often every rating is seen")
    options.add_argument("--batch-size", type=int, default=100, help="ratings a step")
    options.add_argument("--lr", type=float, default=0.01, help="the learning rate")
    options.add_argument("--wd", type=float, default=0.0001, help="weight decay")
    options.add_argument("--gpus", help="GPUs that share a batch; else the CPU is used")
    args = program.start(options)

    random = np.random.RandomState(1)
    if args.data:
        users, items, ratings = read_ratings(args.data)
    else:
        users, items, ratings = made_up_ratings(args.num_users, args.num_items, args.num_ratings, random)
    order = random.permutation(len(ratings))
    split = len(order) * 9 // 10
    mean = ratings[order[:split]].mean()

    def iterator(rows, shuffle):
        data = {"user": users[rows].astype(np.float32), "item": items[rows].astype(np.float32)}
        return mx.io.NDArrayIter(data, {"score": (ratings[rows] - mean)[:, np.newaxis]}, args.batch_size, shuffle)

    train, unseen = iterator(order[:split], True), iterator(order[split:], False)
    logging.info("%d ratings by %d users of %d items", len(ratings), users.max() + 1, items.max() + 1)
    net = network(args.model, users.max() + 1, items.max() + 1, args.factors)
    module = mx.mod.Module(net, data_names=["user", "item"], label_names=["score"], context=program.contexts(args.gpus))
    module.fit(
        train,
        eval_data=unseen,
        eval_metric="rmse",
        optimizer="adam",
        optimizer_params={"learning_rate": args.lr, "wd": args.wd},
        initializer=mx.init.Normal(0.2),
        num_epoch=args.epochs,
        batch_end_callback=mx.callback.ProgressBar(-(-split // args.batch_size), 40),
    )
    error = dict(module.score(unseen, "rmse"))["rmse"]
    print(f"Unseen ratings are off by {error:.3f}; the mean of all is off by {ratings[order[split:]].std():.3f}.")


if __name__ == "__main__":
    main()

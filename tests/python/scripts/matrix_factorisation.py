"""Ratings of items by users, from a product of embeddings."""

import logging
import math
import sys

import mxnet as mx
import numpy as np

logging.basicConfig(level=logging.INFO)
rng = np.random.RandomState(17)
num_users, num_items, factors, batch_size = 40, 30, 4, 50

# What there is to find: tastes in two dimensions.
taste, quality = rng.normal(size=(num_users, 2)), rng.normal(size=(num_items, 2))
pairs = rng.permutation(num_users * num_items)[:900]
users, items = (pairs // num_items).astype(np.float32), (pairs % num_items).astype(np.float32)
scores = (taste[users.astype(int)] * quality[items.astype(int)]).sum(axis=1) + 3
scores = (scores + 0.1 * rng.normal(size=900)).astype(np.float32)


def part(begin, end):
    return mx.io.NDArrayIter(
        data={"user": users[begin:end], "item": items[begin:end]},
        label={"score": scores[begin:end] - 3},
        batch_size=batch_size,
        last_batch_handle="discard",
    )


def get_net(hidden):
    user = mx.symbol.Variable("user")
    item = mx.symbol.Variable("item")
    score = mx.symbol.Variable("score")
    user = mx.symbol.Embedding(data=user, input_dim=num_users, output_dim=hidden, name="user_embed")
    item = mx.symbol.Embedding(data=item, input_dim=num_items, output_dim=hidden, name="item_embed")
    pred = user * item
    pred = mx.symbol.sum_axis(data=pred, axis=1)
    pred = mx.symbol.Flatten(data=pred)
    return mx.symbol.LinearRegressionOutput(data=pred, label=score, name="lro")


def rmse(label, pred):
    ret = 0.0
    n = 0.0
    pred = pred.flatten()
    for i in range(len(label)):
        ret += (label[i] - pred[i]) * (label[i] - pred[i])
        n += 1.0
    return math.sqrt(ret / n)


train, test = part(0, 800), part(800, 900)
net = get_net(factors)
first = {
    "user_embed_weight": mx.nd.array(rng.normal(0, 0.5, (num_users, factors))),
    "item_embed_weight": mx.nd.array(rng.normal(0, 0.5, (num_items, factors))),
}
mod = mx.mod.Module(net, data_names=("user", "item"), label_names=("score",), context=mx.cpu())
mod.fit(
    train,
    eval_data=test,
    eval_metric=mx.metric.np(rmse, name="rmse_by_hand"),
    optimizer="adam",
    optimizer_params={"learning_rate": 0.03, "wd": 0.001},
    arg_params=first,
    num_epoch=40,
    batch_end_callback=mx.callback.Speedometer(batch_size, 16),
)
results = dict(mod.score(test, mx.metric.CompositeEvalMetric([mx.metric.CustomMetric(rmse, name="own"), "rmse"])))
train_rmse = dict(mod.score(train, "rmse"))["rmse"]

print("RESULT test_rmse %f" % results["rmse"])
print("RESULT train_rmse %f" % train_rmse)
if abs(results["own"] - results["rmse"]) > 1e-5:
    sys.exit("two metrics that should agree: %s" % results)
if train_rmse > 0.3 or results["rmse"] > 0.8:
    sys.exit("the ratings were not learnt")

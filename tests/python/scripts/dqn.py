"""Deep Q-learning on a corridor: a network that learns, a target network it is copied to, and one that acts."""

import sys
from collections import deque

import mxnet as mx
import numpy as np

rng = np.random.RandomState(2)
num_cells, num_actions, batch_size, gamma = 7, 2, 16, 0.9


class Corridor:
    """Cells in a row; action 1 goes right, 0 left; the last cell pays 1 and ends the game, the first ends it for 0."""

    def reset(self):
        self.at = num_cells // 2
        return self.state()

    def state(self):
        return np.eye(num_cells, dtype=np.float32)[self.at]

    def step(self, action):
        self.at += 1 if action else -1
        done = self.at in (0, num_cells - 1)
        return self.state(), float(self.at == num_cells - 1), done


def q_symbol():
    net = mx.sym.Variable("data")
    net = mx.sym.FullyConnected(net, name="fc1", num_hidden=16)
    net = mx.sym.Activation(net, name="relu1", act_type="relu")
    return mx.sym.FullyConnected(net, name="qvalue", num_hidden=num_actions)


def make_module(for_training):
    module = mx.mod.Module(q_symbol(), data_names=("data",), label_names=None)
    module.bind(data_shapes=[("data", (batch_size, num_cells))], for_training=for_training)
    return module


def copy_to_target(source, target):
    arg_params, aux_params = source.get_params()
    target.set_params(arg_params, aux_params)


qnet, target = make_module(True), make_module(False)
arg_shapes, _, _ = qnet.symbol.infer_shape(data=(batch_size, num_cells))
first = {n: mx.nd.array(rng.normal(0, 0.3, s)) for n, s in zip(qnet.symbol.list_arguments(), arg_shapes) if n != "data"}
qnet.init_params(arg_params=first)
qnet.init_optimizer(optimizer="rmsprop", optimizer_params={"learning_rate": 0.01, "gamma1": 0.95, "clip_gradient": 1.0})
copy_to_target(qnet, target)
actor = q_symbol().simple_bind(mx.cpu(), grad_req="null", data=(1, num_cells))

memory, env = deque(maxlen=500), Corridor()
updates = 0
for episode in range(120):
    actor.copy_params_from(*qnet.get_params())
    epsilon = max(0.1, 1 - episode / 60.0)
    state, done, steps = env.reset(), False, 0
    while not done and steps < 50:
        if rng.uniform() < epsilon:
            action = rng.randint(num_actions)
        else:
            action = int(np.argmax(actor.forward(data=mx.nd.array(state[None]))[0].asnumpy()))
        following, reward, done = env.step(action)
        memory.append((state, action, reward, following, done))
        state, steps = following, steps + 1
        if len(memory) < 2 * batch_size:
            continue
        picked = [memory[i] for i in rng.randint(len(memory), size=batch_size)]
        states, actions, rewards, followings, dones = (np.array(column) for column in zip(*picked))
        target.forward(mx.io.DataBatch(data=[mx.nd.array(followings)], label=None))
        best = target.get_outputs()[0].asnumpy().max(axis=1)
        wanted = rewards + gamma * (1 - dones) * best
        qnet.forward(mx.io.DataBatch(data=[mx.nd.array(states)], label=None), is_train=True)
        q = qnet.get_outputs()[0].asnumpy()
        out_grad = np.zeros_like(q)  # only the action that was taken has an error
        rows = np.arange(batch_size)
        out_grad[rows, actions] = np.clip(q[rows, actions] - wanted, -1, 1)
        qnet.backward(out_grads=[mx.nd.array(out_grad)])
        qnet.update()
        updates += 1
        if updates % 25 == 0:
            copy_to_target(qnet, target)

actor.copy_params_from(*qnet.get_params())
table = np.array([actor.forward(data=mx.nd.array(row[None]))[0].asnumpy()[0] for row in np.eye(num_cells)])
right = (table[1:-1, 1] > table[1:-1, 0]).all()
print("RESULT q_near_goal %f" % table[-2, 1])
print("RESULT q_middle %f" % table[num_cells // 2, 1])
if not right or abs(table[-2, 1] - 1) > 0.15:
    sys.exit("learnt values:\n%s" % table)

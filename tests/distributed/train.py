"""What each worker does in Python: `mpirun -n 4 python train.py FOLDER`."""

import os
import sys

import numpy as np

import symbind as mx


def network():
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=32, name="fc1")
    net = mx.sym.BatchNorm(mx.sym.Activation(net, act_type="relu"), name="bn")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=4, name="fc2"), name="softmax")


def samples(rank, workers, count=96, batch=8):
    """The part of this worker: every sample belongs to one of four clusters."""
    random = np.random.RandomState(7)
    labels = random.randint(0, 4, count * workers)
    data = random.randn(count * workers, 10) + 3 * np.eye(4, 10)[labels]
    return mx.io.NDArrayIter(data[rank::workers].astype("float32"), labels[rank::workers].astype("float32"), batch)


def trained(kvstore, data, epochs, prefix=None, load=None, optimizer="adam", compute_dtype=None):
    if load is None:
        module = mx.mod.Module(network(), context=mx.cpu())
    else:
        module = mx.mod.Module.load(prefix, load, load_optimizer_states=True)
    data.reset()
    module.fit(
        data,
        kvstore=kvstore,
        optimizer=optimizer,
        optimizer_params={"learning_rate": 0.01},
        initializer=mx.init.Xavier(),
        begin_epoch=load or 0,
        num_epoch=epochs,
        compute_dtype=compute_dtype,
    )
    return module


def all_equal(store, module):
    """Do all workers have the parameters of worker 0?"""
    for name, value in sorted(module.get_params()[0].items()):
        other = value.copy()
        store.broadcast("check_" + name, value, other)
        assert (other.asnumpy() == value.asnumpy()).all(), name


class Halving(mx.optimizer.Optimizer):
    """An optimizer in Python, run by the threads of the store."""

    def create_state(self, index, weight):
        return mx.nd.zeros(weight.shape)

    def update(self, index, weight, grad, state):
        state += grad * self.rescale_grad
        weight -= 0.05 * grad * self.rescale_grad


def main(folder):
    store = mx.kv.create("horovod")
    assert not store.is_capable("optimizer")
    rank, workers = store.rank, store.num_workers
    mx.random.seed(rank)
    data = samples(rank, workers)
    module = trained("dist_sync", data, 3)
    assert module._optimizer.rescale_grad == 1 / (8 * workers)
    assert module._kvstore.type == "dist_sync" and module._kvstore.num_workers == workers
    assert module._kvstore.is_capable("optimizer")
    all_equal(store, module)
    accuracy = module.score(data, "acc")[0][1]
    assert accuracy > 0.9, accuracy

    # Worker 0 alone saves; all resume, and a single process can.
    prefix = os.path.join(folder, "model")
    if rank == 0:
        module.save_checkpoint(prefix, 3, save_optimizer_states=True)
    module._kvstore.barrier()
    resumed = trained("dist_sync", data, 5, prefix, 3)
    all_equal(store, resumed)
    if rank == 0:
        trained(None, data, 4, prefix, 3)
    trained("dist_sync", data, 1, optimizer=Halving())
    half = trained("dist_sync", data, 4, compute_dtype="float16")
    all_equal(store, half)
    assert half.score(data, "acc")[0][1] > 0.9
    trained("dist_async", data, 1)
    trained("horovod", data, 1)

    received = []
    commands = mx.kv.create("dist_sync")
    commands.set_command_handler(lambda head, body: received.append((head, body)))
    commands.barrier()
    if rank == 0:
        commands._send_command_to_servers(3, "hello")
    commands.barrier()
    assert received == [(3, "hello")] and commands.num_dead_node == 0
    print("well", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

"""Stores: keys and values in every form MXNet takes, updaters and optimizers, states, compression."""

import threading

import numpy as np
import pytest

import symbind as mx

SHAPE = (2, 3)


def made(kind="local", keys=(3, 5)):
    store = mx.kv.create(kind)
    store.init(list(keys), [mx.nd.zeros(SHAPE)] * len(keys))
    return store


def pulled(store, key):
    out = mx.nd.full(SHAPE, 99)
    store.pull(key, out=out)
    values = np.unique(out.asnumpy())
    assert len(values) == 1
    return values[0]


def test_kinds():
    for kind in ("local", "local_allreduce_cpu", "local_update_cpu", "device", "local_allreduce_device"):
        store = mx.kv.create(kind)
        assert (store.type, store.rank, store.num_workers) == (kind, 0, 1)
    assert isinstance(mx.kvstore.create(), mx.kv.KVStore)
    assert mx.kv is mx.kvstore and mx.kv.create("local").is_capable("optimizer")
    assert mx.kv.KVStore.is_capable("Optimizer")
    with pytest.raises(mx.MXNetError, match="no capability 'flying'"):
        mx.kv.create("local").is_capable("flying")
    with pytest.raises(TypeError, match="kind of store"):
        mx.kv.create(3)
    with pytest.raises(mx.MXNetError, match="unknown type .*local"):
        mx.kv.create("remote")


@pytest.mark.parametrize("kind", ["local", "device"])
def test_keys_and_values_in_every_form(kind):
    store = made(kind)
    store.push(3, mx.nd.ones(SHAPE) * 4)
    assert pulled(store, 3) == 4
    store.push(3, [mx.nd.ones(SHAPE)] * 3, priority=-1)
    assert pulled(store, 3) == 3
    store.push([3, 5], [mx.nd.ones(SHAPE), mx.nd.ones(SHAPE) * 2])
    assert (pulled(store, 3), pulled(store, 5)) == (1, 2)
    store.push((3, 5), [[mx.nd.ones(SHAPE)] * 2, (mx.nd.ones(SHAPE),) * 4])
    outs = [[mx.nd.zeros(SHAPE), mx.nd.zeros(SHAPE)], mx.nd.zeros(SHAPE)]
    store.pull([3, 5], out=outs)
    assert [out.asnumpy().max() for out in (*outs[0], outs[1])] == [2, 2, 4]


def test_keys_may_be_texts():
    store = mx.kv.create("local")
    store.init("w", mx.nd.ones(SHAPE))
    store.init(["b"], [mx.nd.ones(SHAPE) * 2])
    assert (pulled(store, "w"), pulled(store, "b")) == (1, 2)
    with pytest.raises(mx.MXNetError, match="all numbers or all names"):
        store.push(3, mx.nd.ones(SHAPE))
    with pytest.raises(mx.MXNetError, match="never given to init"):
        store.push("other", mx.nd.ones(SHAPE))


def test_pushpull_and_broadcast():
    store = made()
    out = mx.nd.zeros(SHAPE)
    store.pushpull(3, [mx.nd.ones(SHAPE)] * 2, out=out)
    assert (out.asnumpy() == 2).all()
    values = [mx.nd.ones(SHAPE), mx.nd.ones(SHAPE)]
    store.pushpull(5, values)
    assert all((value.asnumpy() == 2).all() for value in values)
    outs = [mx.nd.zeros(SHAPE) for _ in range(2)]
    store.broadcast(7, mx.nd.ones(SHAPE) * 6, outs)
    assert all((one.asnumpy() == 6).all() for one in outs)


def test_an_updater_in_python():
    store = made()
    seen = []

    def updater(key, pushed, stored):
        seen.append((key, pushed.asnumpy()[0, 0]))
        stored += pushed * 2

    store._set_updater(updater)
    store.push([3, 5], [[mx.nd.ones(SHAPE)] * 4, mx.nd.ones(SHAPE)])
    store.push(3, mx.nd.ones(SHAPE))
    assert (pulled(store, 3), pulled(store, 5)) == (10, 2)
    assert seen == [(3, 4), (5, 1), (3, 1)]
    with pytest.raises(TypeError, match="an updater is a function"):
        store._set_updater(3)


def test_an_exception_in_an_updater_reaches_the_caller():
    store = made()

    def updater(key, pushed, stored):
        raise LookupError("cannot")

    store._set_updater(updater)
    with pytest.raises(LookupError, match="cannot"):
        store.push(3, mx.nd.ones(SHAPE))
    assert pulled(store, 3) == 0


@pytest.mark.parametrize("kind", ["local", "device"])
def test_an_optimizer_updates_the_values(kind, tmp_path):
    store = made(kind)
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.1, momentum=0.5))
    for _ in range(2):
        store.push(3, [mx.nd.ones(SHAPE)] * 2)
    assert pulled(store, 3) == pytest.approx(-0.2 - 0.3)
    path = str(tmp_path / "a.states")
    store.save_optimizer_states(path)
    other = mx.kv.create(kind)
    other.init(3, mx.nd.zeros(SHAPE))
    other.set_optimizer(mx.optimizer.SGD(learning_rate=0.1, momentum=0.5))
    other.load_optimizer_states(path)
    other.push(3, [mx.nd.zeros(SHAPE)])
    assert pulled(other, 3) == pytest.approx(-0.15)


def test_gradients_in_two_bits():
    store = made("device")
    store.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    store.push(3, mx.nd.ones(SHAPE) * 0.3)
    assert pulled(store, 3) == 0
    store.push(3, mx.nd.ones(SHAPE) * 0.3)
    assert pulled(store, 3) == 0.5
    with pytest.raises(mx.MXNetError, match="gradient compression is for"):
        made("local").set_gradient_compression({"type": "2bit"})


def test_mistakes_say_what_is_wrong():
    store = made()
    with pytest.raises(mx.MXNetError, match="dense"):
        store.row_sparse_pull(3, out=mx.nd.zeros(SHAPE), row_ids=mx.nd.zeros((1,)))
    with pytest.raises(mx.MXNetError, match="initialised once"):
        store.init(3, mx.nd.zeros(SHAPE))
    with pytest.raises(ValueError, match="one value per key: 2 keys, 1 values"):
        store.push([3, 5], [mx.nd.ones(SHAPE)])
    with pytest.raises(TypeError, match="NDArray or a list of NDArrays"):
        store.push(3, np.ones(SHAPE))
    with pytest.raises(TypeError, match="NDArray"):
        store.push(3, [np.ones(SHAPE)])
    with pytest.raises(TypeError, match="out"):
        store.pull(3)
    with pytest.raises(TypeError, match="int or a text"):
        store.push(1.5, mx.nd.ones(SHAPE))
    with pytest.raises(mx.MXNetError, match="shape"):
        store.push(3, mx.nd.ones((1,)))
    with pytest.raises(mx.MXNetError, match="no optimizer"):
        store.save_optimizer_states("nowhere.states")
    with pytest.raises(TypeError, match="expected an optimizer"):
        store.set_optimizer(None)


def test_threads_may_share_a_store_with_a_python_updater():
    store = made()

    def updater(key, pushed, stored):
        stored += pushed

    store._set_updater(updater)
    threads = [threading.Thread(target=lambda: [store.push(3, mx.nd.ones(SHAPE)) for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert pulled(store, 3) == 200


def test_a_store_of_one_s_own_is_made_by_its_name():
    @mx.kv.KVStoreBase.register
    class Counting(mx.kvstore.base.TestStore):
        pass

    store = mx.kv.create("counting")
    assert type(store) is Counting and store.rank == 0 and store.num_workers == 1 and store.type == "teststore"
    a, b = mx.nd.ones(SHAPE), mx.nd.full(SHAPE, 2, ctx=mx.cpu(1))
    store.pushpull(3, [a, b])
    assert (a.asnumpy() == 3).all() and (b.asnumpy() == 3).all()
    out = mx.nd.zeros(SHAPE)
    store.broadcast(3, a, [out, b])
    assert (out.asnumpy() == 3).all()
    assert not store.is_capable("optimizer")
    with pytest.raises(mx.MXNetError, match="capability"):
        store.is_capable("flying")
    del mx.kv.KVStoreBase.kv_registry["counting"]


def test_every_store_is_a_kvstorebase():
    store = mx.kv.create("local")
    assert isinstance(store, mx.kv.KVStoreBase) and store.OPTIMIZER == "optimizer"
    with pytest.raises(TypeError, match="abstract"):
        mx.kv.KVStoreBase()


def test_the_updater_of_a_store_is_found_in_it():
    store = made(keys=(3,))
    assert store._updater is None
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5, momentum=0.9))
    assert type(store._updater.optimizer) is mx.optimizer.SGD
    store.push(3, mx.nd.ones(SHAPE))
    momentum = store._updater.states[3]
    assert np.allclose(momentum.asnumpy(), -0.5)
    kept = store._updater.get_states()
    store.push(3, mx.nd.ones(SHAPE))
    store._updater.set_states(kept)
    assert np.allclose(store._updater.states[3].asnumpy(), -0.5)

    def update(key, pushed, stored):
        stored[:] = pushed

    store = made(keys=(3,))
    store._set_updater(update)
    assert store._updater is update

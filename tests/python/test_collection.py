"""Python's garbage collector looks through what C++ keeps: cycles are freed, and nothing that is in use is."""

import abc
import collections.abc
import gc
import threading
import weakref

import numpy as np
import pytest

import symbind as mx


def network():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), name="fc1", num_hidden=3)
    return mx.sym.SoftmaxOutput(net, name="softmax")


def executor():
    return network().simple_bind(mx.cpu(), data=(4, 6), softmax_label=(4,))


def bound_module(**options):
    module = mx.mod.Module(network(), **options)
    module.bind(data_shapes=[("data", (4, 6))], label_shapes=[("softmax_label", (4,))])
    module.init_params()
    return module


def batch():
    return mx.io.DataBatch([mx.nd.ones((4, 6))], [mx.nd.zeros((4,))])


class Metric(mx.metric.EvalMetric):
    def __init__(self):
        super().__init__("mine")

    def update(self, labels, preds):
        self.sum_metric += 1
        self.num_inst += 1


class Optimizer(mx.optimizer.Optimizer):
    def update(self, index, weight, grad, state):
        weight[:] -= 0.1 * grad


class Schedule(mx.lr_scheduler.LRScheduler):
    def __call__(self, num_update):
        return 0.1


class Batches:
    """An iterator written in Python, that is no DataIter."""

    provide_data = [("data", (4, 6))]
    provide_label = [("softmax_label", (4,))]
    batch_size = 4

    def __iter__(self):
        for _ in range(3):
            yield batch()

    def reset(self):
        pass


class KeepsItsOperator(mx.operator.CustomOp):
    made = []

    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0])


@mx.operator.register("keeps_its_operator")
class KeepsItsOperatorProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        op = KeepsItsOperator()
        KeepsItsOperator.made.append(op)
        return op


# ---- cycles: each function makes one, and returns an object of it


def monitor_callback():
    e = executor()
    e.set_monitor_callback(lambda name, array, e=e: None)
    return e


def bound_method_as_monitor_callback():
    class Watcher:
        def __init__(self):
            self.executor = executor()
            self.executor.set_monitor_callback(self.see)

        def see(self, name, array):
            pass

    return Watcher()


def statistic_of_a_monitor():
    holder = []
    monitor = mx.mon.Monitor(1, stat_func=lambda array, holder=holder: array)
    monitor.stat_func = None  # the attribute is Python's; the function is in C++, too
    holder.append(monitor)
    return monitor


def statistic_that_knows_its_module():
    module = bound_module()
    module.monitor = mx.mon.Monitor(1, stat_func=lambda array, module=module: array)
    module.install_monitor(module.monitor)
    module.forward(batch())
    return module


def function_of_a_metric():
    holder = []
    metric = mx.metric.CustomMetric(lambda label, pred, holder=holder: 0.0)
    metric.__dict__.clear()
    holder.append(metric)
    return metric


def metric_of_python_in_a_composite():
    metric, composite = Metric(), mx.metric.CompositeEvalMetric()
    composite.add(metric)
    metric.composite = composite
    return metric


def metric_of_cpp_in_a_composite():
    metric = mx.metric.Accuracy()
    metric.composite = mx.metric.CompositeEvalMetric([metric])
    return metric


def function_as_a_schedule():
    optimizer = mx.optimizer.SGD()
    optimizer.lr_scheduler = lambda num_update, optimizer=optimizer: 0.1
    return optimizer


def schedule_that_knows_its_optimizer():
    schedule = Schedule()
    schedule.optimizer = mx.optimizer.SGD(lr_scheduler=schedule)
    return schedule


def updater():
    optimizer = Optimizer()
    optimizer.updater = mx.optimizer.get_updater(optimizer)
    return optimizer


def updater_of_a_store():
    store = mx.kv.create("local")
    store.set_updater(lambda key, pushed, stored, store=store: None)
    return store


def optimizer_of_a_store():
    optimizer, store = Optimizer(), mx.kv.create("local")
    optimizer.store = store
    store.set_optimizer(optimizer)
    return optimizer


def iterator_under_a_resized_one():
    batches = Batches()
    batches.outer = mx.io.ResizeIter(batches, 2)
    batches.outer.__dict__.clear()
    return batches


def generator_under_a_resized_iterator():
    batches = Batches()
    batches.outer = mx.io.ResizeIter(batches, 2)
    batches.outer.next()  # the generator of the epoch is in C++
    return batches


def iterator_under_a_prefetching_one():
    batches = Batches()
    batches.outer = mx.io.PrefetchingIter(batches)
    batches.outer.__dict__.clear()
    return batches


def iterator_that_a_thread_is_reading():
    batches = Batches()
    batches.outer = mx.io.PrefetchingIter(batches)
    batches.outer.next()
    return batches


def initializer_in_a_mixed_one():
    inner = mx.init.Uniform(0.1)
    inner.outer = mx.init.Mixed([".*"], [inner])
    return inner


def function_in_a_mixed_initializer():
    holder = []
    mixed = mx.init.Mixed([".*"], [lambda desc, array, holder=holder: None])
    mixed.__dict__.clear()
    holder.append(mixed)
    return mixed


def optimizer_that_knows_its_module():
    module, optimizer = bound_module(), Optimizer(rescale_grad=0.25)
    optimizer.module = module
    module.init_optimizer(optimizer=optimizer)
    return optimizer


def optimizer_that_knows_its_module_of_two_devices():
    module, optimizer = bound_module(context=[mx.cpu(0), mx.cpu(1)]), Optimizer(rescale_grad=0.25)
    optimizer.module = module
    module.init_optimizer(optimizer=optimizer)
    return optimizer


def optimizer_in_the_store_of_a_module():
    module, optimizer = bound_module(), Optimizer(rescale_grad=0.25)
    optimizer.module = module
    module.init_optimizer(kvstore=mx.kv.create("local"), optimizer=optimizer)
    return optimizer


def schedule_that_knows_its_module():
    module, schedule = bound_module(), Schedule()
    schedule.module = module
    module.init_optimizer(optimizer="sgd", optimizer_params={"lr_scheduler": schedule})
    return schedule


def optimizer_of_fit():
    module, optimizer = mx.mod.Module(network()), Optimizer(rescale_grad=0.25)
    optimizer.module = module
    module.fit(mx.io.NDArrayIter(np.ones((8, 6)), np.zeros(8), 4), num_epoch=1, optimizer=optimizer)
    return optimizer


def statistic_of_a_monitor_that_is_gone():
    e = executor()
    mx.mon.Monitor(1, stat_func=lambda array, e=e: array).install(e)
    return e


def statistic_of_a_modules_monitor_that_is_gone():
    module = bound_module()
    module.install_monitor(mx.mon.Monitor(1, stat_func=lambda array, module=module: array))
    return module


def monitor_callback_in_a_module():
    module = bound_module()
    module._exec_group.execs[0].set_monitor_callback(lambda name, array, module=module: None)
    return module


def checkpoint_callback_of_a_module():
    module = bound_module()
    module.callback = mx.callback.module_checkpoint(module, "prefix")
    return module


def predictions_of_a_module():
    module = bound_module()
    module.predictions = module.iter_predict(mx.io.NDArrayIter(np.ones((8, 6)), np.zeros(8), 4))
    next(module.predictions)
    return module


def operator_that_knows_its_executor():
    net = mx.sym.Custom(mx.sym.Variable("data"), op_type="keeps_its_operator")
    e = net.simple_bind(mx.cpu(), data=(2, 2))
    e.forward(is_train=True)
    while KeepsItsOperator.made:
        KeepsItsOperator.made.pop().executor = e
    return e


def operator_that_knows_its_module():
    net = mx.sym.Custom(mx.sym.Variable("data"), op_type="keeps_its_operator")
    module = mx.mod.Module(net, label_names=None)
    module.bind(data_shapes=[("data", (4, 6))], for_training=False)
    module.init_params()
    module.forward(batch())
    while KeepsItsOperator.made:
        KeepsItsOperator.made.pop().module = module
    return module


CYCLES = [
    monitor_callback,
    bound_method_as_monitor_callback,
    statistic_of_a_monitor,
    statistic_that_knows_its_module,
    function_of_a_metric,
    metric_of_python_in_a_composite,
    metric_of_cpp_in_a_composite,
    function_as_a_schedule,
    schedule_that_knows_its_optimizer,
    updater,
    updater_of_a_store,
    optimizer_of_a_store,
    iterator_under_a_resized_one,
    generator_under_a_resized_iterator,
    iterator_under_a_prefetching_one,
    iterator_that_a_thread_is_reading,
    initializer_in_a_mixed_one,
    function_in_a_mixed_initializer,
    optimizer_that_knows_its_module,
    optimizer_that_knows_its_module_of_two_devices,
    optimizer_in_the_store_of_a_module,
    schedule_that_knows_its_module,
    optimizer_of_fit,
    statistic_of_a_monitor_that_is_gone,
    statistic_of_a_modules_monitor_that_is_gone,
    monitor_callback_in_a_module,
    checkpoint_callback_of_a_module,
    predictions_of_a_module,
    operator_that_knows_its_executor,
    operator_that_knows_its_module,
]


@pytest.mark.parametrize("cycle", CYCLES, ids=[cycle.__name__ for cycle in CYCLES])
def test_a_cycle_through_cpp_is_freed(cycle):
    made = weakref.ref(cycle())
    gc.collect()
    assert made() is None


@pytest.mark.parametrize("cycle", CYCLES, ids=[cycle.__name__ for cycle in CYCLES])
def test_a_cycle_that_is_in_use_stays(cycle):
    made = cycle()
    before = len(gc.get_referents(made))
    gc.collect()
    assert len(gc.get_referents(made)) == before


# ---- what is in use, although its owner has gone


def test_an_executor_keeps_the_callback_that_its_module_held():
    module, seen = bound_module(), []
    e = module._exec_group.execs[0]
    e.set_monitor_callback(lambda name, array, module=module: seen.append(module.binded))
    del module
    gc.collect()
    e.forward()
    assert seen and all(seen)


def test_a_store_keeps_the_optimizer_that_its_module_was_given():
    class Counts(Optimizer):
        def update(self, index, weight, grad, state):
            self.module.count += 1

    store, module = mx.kv.create("local"), bound_module()
    optimizer = Counts(rescale_grad=0.25)
    optimizer.module, module.count = module, 0
    module.init_optimizer(kvstore=store, optimizer=optimizer)
    kept = weakref.ref(module)
    del module, optimizer
    gc.collect()
    store.push("fc1_bias", mx.nd.ones((3,)))
    assert kept().count == 1


def test_an_optimizer_made_by_name_keeps_the_schedule_that_its_module_held():
    module, schedule = bound_module(), Schedule()
    schedule.module = module
    module.init_optimizer(optimizer="sgd", optimizer_params={"lr_scheduler": schedule})
    optimizer = module._optimizer
    del module, schedule
    gc.collect()
    assert optimizer.learning_rate == 0.1 and optimizer.lr_scheduler.module.binded


def test_a_module_keeps_what_it_borrowed():
    module, other, optimizer = bound_module(), bound_module(), Optimizer(rescale_grad=0.25)
    optimizer.module = module
    module.init_optimizer(optimizer=optimizer)
    other.borrow_optimizer(module)
    del module, optimizer
    gc.collect()
    other.forward_backward(batch())
    other.update()
    assert other._optimizer.module.binded


def test_collections_beside_a_running_network_free_nothing_it_uses():
    def work(seen):
        module = bound_module()
        store = mx.kv.create("local")
        optimizer = Optimizer(rescale_grad=0.25)
        optimizer.module = module
        module._exec_group.execs[0].set_monitor_callback(lambda name, array, module=module: seen.append(module.binded))
        module.init_optimizer(kvstore=store, optimizer=optimizer)
        del optimizer, store
        for _ in range(20):
            module.forward_backward(batch())
            module.update()

    seen = [[], []]
    threads = [threading.Thread(target=work, args=(each,)) for each in seen]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        gc.collect()
        threads[0].join(0.002)
    assert len(seen[0]) == len(seen[1]) > 20 and all(seen[0]) and all(seen[1])


def test_a_replaced_callback_is_freed_immediately():
    e, kept = executor(), []
    for _ in range(3):

        def callback(name, array):
            pass

        kept.append(weakref.ref(callback))
        e.set_monitor_callback(callback)
        del callback
    assert [ref() is None for ref in kept] == [True, True, False]
    e.set_monitor_callback(None)
    assert kept[2]() is None


# ---- abstract classes


def test_abstract_base_classes_mix_with_ours():
    class Base(mx.metric.EvalMetric, abc.ABC):
        def __init__(self):
            super().__init__("mine")

        @abc.abstractmethod
        def update(self, labels, preds): ...

    class Half(Base):
        @abc.abstractmethod
        def more(self): ...

    class Whole(Half):
        def update(self, labels, preds):
            self.sum_metric += 1
            self.num_inst += 1

        def more(self):
            pass

    with pytest.raises(TypeError, match="abstract.* '?update"):
        Base()
    with pytest.raises(TypeError, match="abstract.* '?more"):
        Half()
    metric = Whole()
    metric.update([], [])
    assert metric.get() == ("mine", 1.0)
    assert isinstance(metric, (Base, abc.ABC)) and isinstance(metric, mx.metric.EvalMetric)
    assert issubclass(Whole, abc.ABC) and not isinstance(mx.metric.Accuracy(), abc.ABC)


@pytest.mark.parametrize(
    "base, arguments",
    [
        (mx.io.DataIter, ()),
        (mx.optimizer.SGD, ()),
        (mx.lr_scheduler.FactorScheduler, (1,)),
        (mx.init.Xavier, ()),
        (mx.mod.BaseModule, ()),
        (mx.metric.Accuracy, ()),
    ],
)
def test_every_kind_may_be_abstract(base, arguments):
    class Abstract(abc.ABC, base):
        @abc.abstractmethod
        def due(self): ...

    class Concrete(Abstract):
        def due(self):
            return 3

    with pytest.raises(TypeError, match="abstract.* '?due"):
        Abstract(*arguments)
    assert Concrete(*arguments).due() == 3


def test_an_iterator_may_be_one_of_collections():
    class Once(collections.abc.Iterator, mx.io.DataIter):
        provide_data, provide_label = Batches.provide_data, Batches.provide_label

        def __init__(self):
            super().__init__(4)
            self.left = 2

        def __next__(self):
            if not self.left:
                raise StopIteration
            self.left -= 1
            return batch()

        next = __next__

    once = Once()
    assert isinstance(once, collections.abc.Iterator) and isinstance(once, mx.io.DataIter)
    assert bound_module().predict(once, reset=False).shape == (8, 3)


# ---- several of ours among the bases


def test_related_classes_of_ours_may_be_bases_together():
    class Logged:
        def __init__(self):
            self.log = []

    class Mine(Logged, mx.optimizer.Optimizer):
        def note(self, what):
            self.log.append(what)

    class MySGD(Mine, mx.optimizer.SGD):
        def __init__(self, rate):
            mx.optimizer.SGD.__init__(self, learning_rate=rate, momentum=0.5)
            Mine.__init__(self)

        def update(self, index, weight, grad, state):
            self.note(index)
            super().update(index, weight, grad, state)

    optimizer = MySGD(0.5)
    weight = mx.nd.array([1.0])
    updater = mx.optimizer.get_updater(optimizer)
    for _ in range(2):
        updater(3, mx.nd.array([1.0]), weight)
    assert optimizer.log == [3, 3] and weight.asscalar() == 1 - 0.5 - 0.75
    assert isinstance(optimizer, mx.optimizer.SGD) and isinstance(optimizer, Mine)

    class MyMetric(mx.metric.EvalMetric):
        pass

    class Both(MyMetric, mx.metric.Accuracy):
        pass

    metric = Both()
    metric.update([mx.nd.array([1.0])], [mx.nd.array([[0.2, 0.8]])])
    assert metric.get() == ("accuracy", 1.0)


def test_unrelated_classes_of_ours_are_not_bases_together():
    with pytest.raises(TypeError, match="unrelated|lay-out conflict"):
        type("Both", (mx.metric.EvalMetric, mx.optimizer.Optimizer), {})

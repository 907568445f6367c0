"""A program ends, whatever its threads are doing."""

import subprocess
import sys
import textwrap

import pytest


def run(program, timeout=60):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=timeout
    )


def test_daemon_threads_in_forward():
    program = """
        import threading, time
        import symbind as mx

        def work():
            data = mx.sym.Variable("data")
            net = mx.sym.FullyConnected(mx.sym.FullyConnected(data, num_hidden=64), num_hidden=64)
            executor = net.simple_bind(mx.cpu(), data=(64, 64))
            calls = []
            if threading.current_thread().name == "watched":
                executor.set_monitor_callback(lambda name, array: calls.append(name))
            while True:
                executor.forward(is_train=True)
                executor.backward(mx.nd.ones((64, 64)))

        for name in ("plain", "watched", "plain"):
            threading.Thread(target=work, daemon=True, name=name).start()
        time.sleep(0.3)
    """
    for _ in range(3):
        result = run(program)
        assert (result.returncode, result.stderr) == (0, "")


def test_a_prefetched_source_that_blocks():
    result = run(
        """
        import threading
        import symbind as mx

        class Source(mx.io.DataIter):
            provide_data = [("data", (1,))]
            provide_label = []
            begun = threading.Event()

            def next(self):
                self.begun.set()
                threading.Event().wait()  # for ever

        source = Source(1)
        ahead = mx.io.PrefetchingIter(source)
        threading.Thread(target=ahead.next, daemon=True).start()
        source.begun.wait()
        print("the end")
        """,
        timeout=30,
    )
    assert (result.returncode, result.stdout) == (0, "the end\n"), result.stderr


def test_any_number_of_openmp_threads():
    result = run(
        """
        import os
        os.environ["OMP_NUM_THREADS"] = "100000"
        import symbind as mx
        print(int(mx.nd.ones((2000, 2000)).sum().asscalar()))
        """
    )
    assert (result.returncode, result.stdout) == (0, "4000000\n"), result.stderr


@pytest.mark.parametrize("setting", ["OMP_THREAD_LIMIT=1", "OMP_MAX_ACTIVE_LEVELS=0", "OMP_DYNAMIC=true"])
def test_products_are_whole_where_openmp_gives_fewer_threads(setting):
    result = run(
        f"""
        import os
        name, value = "{setting}".split("=")
        os.environ[name] = value
        os.environ["OMP_NUM_THREADS"] = "64"  # OMP_DYNAMIC: more than there are cores
        import numpy as np
        import symbind as mx
        ones = mx.nd.ones((500, 600))
        print((mx.nd.dot(ones, ones.T).asnumpy() == 600).all())
        executor = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=400, name="fc").simple_bind(
            mx.cpu(), data=(500, 600))
        for array in executor.arg_dict.values():
            array[:] = 1
        executor.forward(is_train=True)
        executor.backward([mx.nd.ones((500, 400))])
        print((executor.outputs[0].asnumpy() == 601).all(), (executor.grad_dict["fc_weight"].asnumpy() == 500).all())
        predict = mx.Predictor(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=500, no_bias=True, name="fc"),
                               {{"fc_weight": ones}}, {{}}, threads=8)
        print((predict(ones).asnumpy() == 600).all())
        """
    )
    assert (result.returncode, result.stdout) == (0, "True\nTrue True\nTrue\n"), result.stderr

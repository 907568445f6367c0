"""The arithmetic of bench/scaling_model.py, on cases that are computed by hand."""

import contextlib
import io
import json
import subprocess
import sys
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from unittest import mock

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
sys.dont_write_bytecode = True

import scaling_model as model  # noqa: E402
from scaling_model import Cluster, Gradient, Link  # noqa: E402

# 1 s per hop and 10 bytes/s in a host, 5 s and 2 bytes/s between hosts of four GPUs.
CLUSTER = Cluster(4, Link(1, 10), Link(5, 2), memory=100, start=0.5, message=0)
TABLE = """training, forward and backward
step  node    operator                how     output       in    out  where      note           ms     %
   0  fc      FullyConnected          onednn  (4,10)    1.00K    160  arena+0               2.000  20.0
---- backward ------------------------------------------------------------------------------------------
   1  fc_dot  dot                     onednn  (10,500)    160  19.5K  outside               1.000  10.0
      view    Flatten                 nothing (4,500)                 arena+0    view
   2  sum     sum                     plain   (10,)       160     40  outside               3.000  30.0
   3  data    _backward_Convolution   onednn  (4,3)       160     48  arena+1.0K in place   4.000  40.0
working memory 7.03M, live at the peak 7.03M, without sharing 10.8M
time 10.000 ms a run, mean of 5 forward and 5 backward
"""


def measurements(constants, cores, cases):
    return [
        {"ranks": n, "bytes": size, "seconds": model.exchange_seconds(constants, n, size, cores)} for n, size in cases
    ]


class SharedMemory(unittest.TestCase):
    CASES = [(2, 1e6), (2, 1e8), (3, 1e8), (5, 1e8), (8, 1e8), (8, 1e6)]

    def check(self, measured):
        with contextlib.redirect_stdout(io.StringIO()):
            return model.check_shared_memory(measured, 2)

    def test_an_exchange_is_the_work_of_all_ranks_divided_among_the_cores(self):
        # Eight ranks on two cores: 8 exchanges, 2 * 7 transfers of 100 bytes and one update of them, divided by two.
        self.assertAlmostEqual(model.exchange_seconds((1, 0.1, 0.01), 8, 100, 2), 4 + 70 + 0.5)
        self.assertAlmostEqual(model.exchange_seconds((1, 0.1, 0.01), 2, 100, 16), 1 + 10 + 0.5)

    def test_constants_are_found_in_measurements_that_follow_the_model(self):
        constants = (3e-4, 5e-10, 2e-10)
        for found, given in zip(model.fit(measurements(constants, 2, self.CASES), 2), constants):
            self.assertAlmostEqual(found / given, 1, places=9)

    def test_a_prediction_that_deviates_too_far_is_reported(self):
        measured = measurements((3e-4, 5e-10, 2e-10), 2, self.CASES)
        self.assertTrue(self.check(measured))
        measured[3]["seconds"] *= 1.2
        self.assertFalse(self.check(measured))

    def test_what_was_fitted_does_not_count_as_predicted(self):
        self.assertFalse(self.check(measurements((3e-4, 5e-10, 2e-10), 2, [(2, 1e6), (2, 1e8), (8, 1e8)])))

    def test_measurements_are_read_from_what_the_programs_print(self):
        def run(ranks, program, *_):
            if program.name == "distributed_train":
                return '{"case": "distributed lenet", "workers": 2, "exchange_alone_ms": 1.7, "step_ms": 12.3}\n'
            return (
                f"{ranks} workers, 102.2 MB: exchange, update and copy {ranks}0.5 ms, MPI_Allreduce 9.0 ms, ratio 1.2\n"
            )

        with mock.patch.object(model, "run_ranks", run):
            measured = model.measure(Path("bench"))["exchanges"]
        self.assertEqual([m["ranks"] for m in measured], [2, 2, 3, 4, 5, 6, 7, 8])
        self.assertAlmostEqual(measured[0]["seconds"], 1.7e-3)
        self.assertAlmostEqual(measured[-1]["bytes"], 102.2e6)
        self.assertAlmostEqual(measured[-1]["seconds"], 80.5e-3)

    def test_a_fit_needs_two_sizes_and_two_numbers_of_ranks(self):
        for cases in ([(2, 1e8), (8, 1e8)], [(2, 1e6), (2, 1e8)]):
            with self.assertRaisesRegex(SystemExit, "two sizes, and two numbers of ranks"):
                model.fit(measurements((1, 1, 1), 2, cases), 2)


class Algorithms(unittest.TestCase):
    GRADIENTS = [Gradient(0, 30, 0), Gradient(0, 50, 1)]  # 80 bytes

    def test_a_ring_sends_nearly_twice_the_bytes(self):
        # 6 hops; 6/4 * 80 bytes at 10 bytes/s.
        self.assertEqual(model.ring(CLUSTER, 4)(self.GRADIENTS), [{"local": 18.5, "network": 18.5}])
        # 14 hops, 2 of them between hosts, at the 4 * 2 bytes/s of a host's links; 14/8 * 80 bytes.
        self.assertEqual(model.ring(CLUSTER, 8)(self.GRADIENTS), [{"local": 40.0, "network": 40.0}])

    def test_a_hierarchy_sends_each_part_of_a_host_through_its_own_link(self):
        self.assertEqual(model.hierarchical(CLUSTER, 4)(self.GRADIENTS), [{"local": 18.5}])
        # Between two hosts: 20 bytes of each GPU. A ring takes 2 * (5 + 20/2/2), a tree 2 * 5 + 2 * 20/2.
        self.assertEqual(
            model.hierarchical(CLUSTER, 8)(self.GRADIENTS), [{"local": 9.5}, {"network": 20.0}, {"local": 9.0}]
        )
        # Between 16 hosts: a tree takes 2 * 4 * 5 + 2 * 20/2, a ring 2 * 15 * (5 + 20/2/16).
        self.assertEqual(model.hierarchical(CLUSTER, 64)(self.GRADIENTS)[1], {"network": 60.0})

    def test_small_values_have_one_owner_each_chosen_by_load(self):
        owners = model.owners_of([5, 100, 40, 6, 1, 1], ranks=3, smallest_piece=30)
        self.assertEqual(owners, [0, None, 1, 2, 0, 0])

    def test_an_array_may_be_divided_among_fewer_owners_than_ranks(self):
        gradients = [Gradient(2, 80, 1), Gradient(3, 10, 0)]  # 40 and 5 elements
        pieces, owners = model.pieces_of(gradients, ranks=4, element_bytes=2, smallest_piece=15)
        self.assertEqual(pieces, [Gradient(2, 40, 2), Gradient(2, 40, 1), Gradient(3, 10, 0)])
        self.assertEqual(owners, [0, 1, 2])

    def test_owners_receive_from_all_ranks(self):
        # Key 0 is sliced, 10 bytes per rank; rank 2 also owns the 50 bytes of key 1. Two others send it 60 bytes each.
        agree, push, update, pull = model.owner(CLUSTER, 3, [None, 2])(self.GRADIENTS)
        self.assertEqual(agree, {"agreement": 2.0})
        self.assertEqual(push, pull)
        self.assertAlmostEqual(push[2], 1 + 2 * 60 / 10)
        self.assertAlmostEqual(push[0], 1 + 2 * 80 / 3 / 10)  # what it sends is more than what it receives
        self.assertAlmostEqual(update[2, "memory"], 9 * 60 / 100)

    def test_messages_may_take_longer_than_bytes(self):
        _, push, _, _ = model.owner(replace(CLUSTER, message=20), 3, [None, 2])(self.GRADIENTS)
        self.assertEqual(push[2], 1 + 3 * 2 * 20)  # sends and receives slices of key 0, receives key 1


class Overlap(unittest.TestCase):
    def end(self, gradients, algorithm, most=100):
        return model.end_of_exchanges([Gradient(*g, 0) for g in gradients], algorithm, least=1, most=most)

    def test_exchanges_wait_for_their_link(self):
        one_each = dict(algorithm=lambda gradients: [{"network": 10 * len(gradients)}], most=1)
        self.assertEqual(self.end([(3, 1)], **one_each), 13)
        self.assertEqual(self.end([(3, 1), (5, 1)], **one_each), 23)
        self.assertEqual(self.end([(3, 1), (20, 1)], **one_each), 30)

    def test_gradients_that_are_ready_are_exchanged_together(self):
        constant = lambda gradients: [{"network": 10}]  # noqa: E731
        self.assertEqual(self.end([(0, 1), (1, 1), (2, 1)], constant), 20)
        self.assertEqual(self.end([(0, 1), (1, 1), (2, 1)], constant, most=1), 30)

    def test_stages_of_different_exchanges_overlap(self):
        # local 0-2, network 2-7, local 7-9; the second exchange: local 2-4, network 7-12, local 12-14.
        stages = lambda gradients: [{"local": 2}, {"network": 5}, {"local": 2}]  # noqa: E731
        self.assertEqual(self.end([(0, 1), (0, 1)], stages, most=1), 14)

    def test_small_gradients_wait_for_each_other(self):
        gradients = [Gradient(i, 2, i) for i in range(5)]
        self.assertEqual([[g.key for g in group] for group in model.grouped(gradients, 4)], [[0, 1], [2, 3], [4]])

    def test_what_remains_after_backward_is_exposed(self):
        gradients = [Gradient(2e-3, 5e6, 1), Gradient(4e-3, 5e6, 0)]
        algorithm = lambda gradients: [{"network": 3e-3 * len(gradients)}]  # noqa: E731
        p = model.predict(gradients, backward=4e-3, step=6e-3, algorithm=algorithm, most=16e6)
        self.assertAlmostEqual(p.exchange, 6e-3)
        self.assertAlmostEqual(p.exposed, 4e-3)  # 2 to 5, 5 to 8
        self.assertAlmostEqual(p.hidden, 1 / 3)
        self.assertAlmostEqual(p.efficiency, 0.6)
        self.assertAlmostEqual(p.efficiency_without_overlap, 0.5)


class Gradients(unittest.TestCase):
    def test_resnets_have_their_published_sizes(self):
        for blocks, parameters, macs in [((3, 4, 6, 3), 25_557_032, 4.09e9), ((3, 4, 23, 3), 44_549_160, 7.8e9)]:
            layers = model.resnet_layers(blocks)
            self.assertEqual(sum(sum(arrays) for arrays, _ in layers), parameters)
            self.assertAlmostEqual(sum(work for _, work in layers) / macs, 1, places=2)

    def test_the_last_layer_is_ready_first_and_the_first_at_the_end(self):
        gradients = model.gradients_of([([3], 10), ([4, 5], 20)], backward=5, element_bytes=2)
        self.assertEqual(gradients, [Gradient(4, 10, 2), Gradient(4, 8, 1), Gradient(5, 6, 0)])

    def test_a_plan_table_says_when_gradients_are_ready(self):
        gradients, backward = model.gradients_of_table(TABLE, step=0.1)
        self.assertAlmostEqual(backward, 0.08)
        self.assertEqual([(round(g.ready, 9), g.bytes, g.key) for g in gradients], [(0.01, 19968, 1), (0.04, 40, 0)])

    def test_a_table_without_times_is_an_error(self):
        without = "\n".join(line[:-13] for line in TABLE.splitlines())
        for text in (without, "no table"):
            with self.assertRaisesRegex(SystemExit, "train_step --profile"):
                model.gradients_of_table(text, step=0.1)


class Program(unittest.TestCase):
    def test_prints_all_algorithms_for_1_to_1024_gpus(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "measured.json"
            measured = measurements((3e-4, 5e-10, 2e-10), 2, SharedMemory.CASES)
            file.write_text(json.dumps({"cores": 2, "exchanges": measured}))
            command = [sys.executable, BENCH / "scaling_model.py", "--measurements", file, "--network", "14,25"]
            run = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("3 predicted, all within 15%", run.stdout)
        for ranks in [2**i for i in range(1, 11)]:
            for algorithm in ("owners", "pieces", "ring", "hierarchical"):
                self.assertRegex(run.stdout, rf"(?m)^ *{ranks}  {algorithm} ")


if __name__ == "__main__":
    unittest.main()

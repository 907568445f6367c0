"""PyTorch on the CPU: one JSON row per case."""

import timing
import torch
from torch_models import CASES, training_step


def main():
    arguments = timing.parse_arguments(__doc__, CASES, any_batch=True)
    torch.set_num_threads(arguments.threads)
    for case in arguments.case:
        step, batch = training_step(case, "cpu", arguments.batch)
        timing.report(case, batch, timing.median_ms(step, arguments.seconds))


if __name__ == "__main__":
    main()

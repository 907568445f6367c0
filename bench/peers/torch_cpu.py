"""PyTorch on the CPU: one JSON row per case."""

import timing
import torch
from torch_models import BATCH, CASES, training_step


def main():
    arguments = timing.parse_arguments(__doc__, CASES)
    torch.set_num_threads(arguments.threads)
    for case in arguments.case:
        timing.report(case, BATCH, timing.median_ms(training_step(case, "cpu"), arguments.seconds))


if __name__ == "__main__":
    main()

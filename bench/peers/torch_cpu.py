"""PyTorch on the CPU: one JSON row per case."""

import timing
import torch
from torch_models import CASES, prediction, training_step


def main():
    arguments = timing.parse_arguments(__doc__, CASES, any_batch=True)
    torch.set_num_threads(arguments.threads)
    for case in arguments.case:
        make = prediction if "-infer" in case else training_step
        images = case.startswith("resnet50")  # the layout its convolutions are fastest in
        step, batch = make(case, "cpu", arguments.batch, channels_last=images)
        timing.report(case, batch, timing.median_ms(step, arguments.seconds))


if __name__ == "__main__":
    main()

"""PyTorch on a GPU: one JSON row per case. Each step is timed until the GPU has finished it."""

import timing
import torch
from torch_models import BATCH, CASES, training_step


def main():
    arguments = timing.parse_arguments(__doc__, CASES)
    torch.set_num_threads(arguments.threads)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    for case in arguments.case:
        step = training_step(case, "cuda", fused=True)

        def finished_step(step=step):
            step()
            torch.cuda.synchronize()

        timing.report(case, BATCH, timing.median_ms(finished_step, arguments.seconds, warm_up=10))


if __name__ == "__main__":
    main()

"""PyTorch on a GPU: one JSON row per case. Each step is timed until the GPU has finished it."""

import timing
import torch
from torch_models import CASES, prediction, training_step


def main():
    arguments = timing.parse_arguments(__doc__, CASES, any_batch=True)
    torch.set_num_threads(arguments.threads)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    for case in arguments.case:
        torch.cuda.reset_peak_memory_stats()
        images = case.startswith("resnet50")  # the layout its convolutions are fastest in; LeNet's are too small for it
        if "-infer" in case:
            step, batch = prediction(case, "cuda", arguments.batch, channels_last=images)
        else:
            step, batch = training_step(case, "cuda", arguments.batch, channels_last=images, fused=True)

        def finished_step(step=step):
            step()
            torch.cuda.synchronize()

        ms = timing.median_ms(finished_step, arguments.seconds, warm_up=10)
        timing.report(case, batch, ms, device_peak_mb=torch.cuda.max_memory_allocated() >> 20)


if __name__ == "__main__":
    main()

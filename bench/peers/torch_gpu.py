"""PyTorch on a GPU: one JSON row per case, of the fastest of the variants that are asked for. Training is timed in
groups of ten steps, a prediction until its result is on the host."""

import gc
import sys

import timing

try:
    import torch
except ImportError:
    timing.skip("PyTorch")
from torch_models import CASES, as_it_is, prediction, training_step

VARIANTS = ("eager", "compiled")


def compile_for(case):
    """Compiled; a prediction, which waits for launches, is also replayed as CUDA graphs. Training does not wait."""
    return lambda model: torch.compile(model, mode="reduce-overhead" if "-infer" in case else "default")


def measure(case, variant, arguments):
    """Milliseconds per step, the batch, and the peak of the allocator in MB."""
    device = "cuda" if arguments.device == "gpu" else "cpu"
    on_gpu = device == "cuda"
    gc.collect()
    torch.compiler.reset()
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    options = {
        "batch": arguments.batch,
        "channels_last": case.startswith("resnet50"),  # whose convolutions are fastest in it; LeNet's are too small
        "dtype": getattr(torch, arguments.dtype),
        "compiled": compile_for(case) if variant == "compiled" else as_it_is,
    }
    if "-infer" in case:
        step, batch = prediction(case, device, **options)
        ms = timing.median_ms(step, arguments.seconds, warm_up=10 if on_gpu else 1)
    else:
        step, batch = training_step(case, device, fused=on_gpu, **options)
        wait = torch.cuda.synchronize if on_gpu else lambda: None
        group = 10 if on_gpu else 1
        ms = timing.median_ms(step, arguments.seconds, warm_up=10 if on_gpu else 1, group=group, wait=wait)
    return ms, batch, torch.cuda.max_memory_allocated() >> 20 if on_gpu else None


def main():
    arguments = timing.parse_arguments(__doc__, CASES, any_batch=True, on_device=True, variants=VARIANTS)
    torch.set_num_threads(arguments.threads)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    for case in arguments.case:
        found = {}
        for variant in arguments.variant or VARIANTS:
            try:
                found[variant] = measure(case, variant, arguments)
            except Exception as error:  # a compiler that is missing, say: the others count
                print(f"{case} {variant}: {error}", file=sys.stderr)
        if not found:
            sys.exit(f"{case}: no variant ran")
        best = min(found, key=lambda variant: found[variant][0])
        ms, batch, peak_mb = found[best]
        timing.report(
            case,
            batch,
            ms,
            dtype=arguments.dtype,
            variant=best,
            device_peak_mb=peak_mb,
            all_ms={variant: round(ms, 4) for variant, (ms, _, _) in found.items()},
        )


if __name__ == "__main__":
    main()

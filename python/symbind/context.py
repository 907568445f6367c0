"""Contexts: where arrays live and work runs."""

from ._symbind import Context, cpu, cpu_pinned, current_context, gpu, memory_stats, num_gpus

__all__ = ["Context", "cpu", "cpu_pinned", "current_context", "gpu", "num_gpus", "memory_stats"]


Context.devtype2str = {1: "cpu", 2: "gpu", 3: "cpu_pinned", 5: "cpu_shared"}
Context.devstr2type = {name: number for number, name in Context.devtype2str.items()}


def gpu_memory_info(device_id=0):
    """(free, total) bytes of a GPU's memory."""
    from .util import get_gpu_memory

    return get_gpu_memory(device_id)

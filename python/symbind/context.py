"""Contexts: where arrays live and work runs."""

from ._symbind import Context, cpu, cpu_pinned, current_context, gpu, memory_stats, num_gpus

__all__ = ["Context", "cpu", "cpu_pinned", "current_context", "gpu", "num_gpus", "memory_stats"]


def gpu_memory_info(device_id=0):
    """(free, total) bytes are the driver's to tell; here: bytes kept for reuse, and bytes handed out."""
    stats = memory_stats(gpu(device_id))
    return stats["pooled"], stats["live"]

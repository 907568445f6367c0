"""MXNet's functions for steps of AdamW, written once for arrays and symbols."""


def updates(internal, scale):
    """(adamw_update, mp_adamw_update) over the operators of `internal`, which is mx.nd's or mx.sym's.
    scale(rescale_grad, weight) is the scale of gradients as an array or a symbol of one element."""

    def adamw_update(
        weight,
        grad,
        mean,
        var,
        rescale_grad,
        lr,
        eta,
        beta1=0.9,
        beta2=0.999,
        epsilon=1e-8,
        wd=0,
        clip_gradient=-1,
        out=None,
        name=None,
        **kwargs,
    ):
        """One step of AdamW: weight - eta * (lr * mean / (sqrt(var) + epsilon) + wd * weight), where mean and var are
        running means of the gradient and of its square.

        `rescale_grad` is a number, or an array or symbol of shape (1,); where it is not finite, or 0, nothing changes.
        """
        return internal._adamw_update(
            weight,
            grad,
            mean,
            var,
            scale(rescale_grad, weight),
            lr=lr,
            eta=eta,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            wd=wd,
            clip_gradient=clip_gradient,
            out=out,
            name=name,
            **kwargs,
        )

    def mp_adamw_update(
        weight,
        grad,
        mean,
        var,
        weight32,
        rescale_grad,
        lr,
        eta,
        beta1=0.9,
        beta2=0.999,
        epsilon=1e-8,
        wd=0,
        clip_gradient=-1,
        out=None,
        name=None,
        **kwargs,
    ):
        """adamw_update in mixed precision: `weight32`, the float32 copy of a 16-bit weight, is updated, and the result
        is rounded from it."""
        return internal._mp_adamw_update(
            weight,
            grad,
            mean,
            var,
            weight32,
            scale(rescale_grad, weight),
            lr=lr,
            eta=eta,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            wd=wd,
            clip_gradient=clip_gradient,
            out=out,
            name=name,
            **kwargs,
        )

    for function in (adamw_update, mp_adamw_update):
        function.__module__, function.__qualname__ = (
            internal.__name__.replace("_internal", "contrib"),
            function.__name__,
        )
    return adamw_update, mp_adamw_update

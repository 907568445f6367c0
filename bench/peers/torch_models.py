"""The networks of the benchmark in PyTorch, shared by its CPU and GPU scripts."""

import torch
from torch import nn

BATCH = 64
CLASSES = 10


def mlp():
    return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, CLASSES))


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 20, 5),
        nn.Tanh(),
        nn.MaxPool2d(2, 2),
        nn.Conv2d(20, 50, 5),
        nn.Tanh(),
        nn.MaxPool2d(2, 2),
        nn.Flatten(),
        nn.Linear(800, 500),
        nn.Tanh(),
        nn.Linear(500, CLASSES),
    )


CASES = {"mlp-train": (mlp, (784,)), "lenet-train": (lenet, (1, 28, 28))}


def training_step(case, device, **optimizer_options):
    """A function that runs one whole step: forward, backward, SGD with momentum and weight decay."""
    torch.manual_seed(0)
    make_model, sample_shape = CASES[case]
    model = make_model().to(device).train()
    data = torch.randn(BATCH, *sample_shape, device=device)
    label = torch.randint(0, CLASSES, (BATCH,), device=device)
    loss = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, **optimizer_options)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss(model(data), label).backward()
        optimizer.step()

    return step

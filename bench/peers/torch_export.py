"""Writes the LeNet of torch_models.py as a TorchScript file for libtorch_predict.

usage: torch_export.py FILE
"""

import sys

import torch
from torch_models import lenet

model = torch.nn.Sequential(lenet(), torch.nn.Softmax(dim=1)).eval()
torch.jit.trace(model, torch.full((1, 1, 28, 28), 0.5)).save(sys.argv[1])

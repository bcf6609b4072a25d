"""A training loop whose batches go to the device by one copy each; without a device, on the CPU.

    faultless python train.py [WORKERS]"""
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

import faultless.torch

workers = int(sys.argv[1]) if len(sys.argv) > 1 else 0
data = TensorDataset(torch.randn(1000, 64), torch.randint(0, 10, (1000,)))

stager = faultless.torch.Stager()
loader = DataLoader(data, batch_size=100, num_workers=workers, collate_fn=stager.collate)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
model.to(stager.device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

total = torch.zeros((), device=stager.device)  # read at the end only: the loop waits for nothing
for x, y in stager(loader):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    total += loss.detach()
print(f"{len(loader)} batches on {stager.device}, mean loss {total.item() / len(loader):.2f}")

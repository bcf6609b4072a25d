"""MLP training and evaluation in turn: some training steps, some batches without gradients, again. Each is a step.
python3 train_eval.py --rounds 3 --train 16 --eval 14"""
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "workloads"))
import torch, torch.nn as nn
from meter import Meter, arguments
a = arguments(batch=2048, classes=1024, rounds=3, train=16, eval=14)
a.steps = a.rounds * (a.train + a.eval)
torch.set_num_threads(a.threads); torch.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 256), nn.LayerNorm(256), nn.GELU(), nn.Linear(256, 512), nn.ReLU(), nn.Dropout(0.1),
                    nn.Linear(512, 512), nn.LayerNorm(512), nn.ReLU(), nn.Linear(512, a.classes))
opt = torch.optim.Adam(net.parameters(), lr=1e-3); loss_fn = nn.CrossEntropyLoss()
x = torch.randn(a.batch, 64); y = torch.randint(0, a.classes, (a.batch,))
m = Meter("train-eval", a)
for i in m:
    if i % (a.train + a.eval) < a.train:
        net.train()
        opt.zero_grad(set_to_none=True)
        loss_fn(net(x + 0.01 * torch.randn_like(x)), y).backward(); opt.step()
    else:
        net.eval()
        with torch.no_grad():
            hits = (net(x).softmax(1).argmax(1) == y).float().mean().item()
m.report()

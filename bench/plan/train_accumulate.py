"""Transformer encoder training with gradient accumulation: several forward and backward passes to an optimizer step.
python3 train_accumulate.py --steps 12 --micro 4"""
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "workloads"))
import torch, torch.nn as nn
from meter import Meter, arguments
a = arguments(steps=12, micro=4, tokens=1024, dim=256, layers=2, vocab=2000)
torch.set_num_threads(a.threads); torch.manual_seed(0)
class LM(nn.Module):
    def __init__(s):
        super().__init__()
        s.emb = nn.Embedding(a.vocab, a.dim)
        s.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(a.dim, 8, 4 * a.dim, 0.1, batch_first=True), a.layers)
        s.out = nn.Linear(a.dim, a.vocab)
    def forward(s, x): return s.out(s.enc(s.emb(x)))
net = LM(); opt = torch.optim.AdamW(net.parameters(), lr=1e-4); loss_fn = nn.CrossEntropyLoss()
m = Meter("accumulate", a)
for _ in m:
    opt.zero_grad(set_to_none=True)
    for _ in range(a.micro):
        x = torch.randint(0, a.vocab, (a.tokens // 256, 256))
        (loss_fn(net(x).flatten(0, 1), x.flatten()) / a.micro).backward()
    opt.step()
m.report()

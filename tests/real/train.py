"""A small training whose every loss and last weights are printed to the bit: fixed seed, one thread.
python3 train.py [STEPS [declare]]   declare: to faultless, if it is here"""
import ctypes
import errno
import hashlib
import sys

import numpy as np
import torch
import torch.nn as nn

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 6
process = ctypes.CDLL(None)
declare = "declare" in sys.argv[2:] and hasattr(process, "fl_step_begin")
torch.set_num_threads(1)
torch.manual_seed(7)
torch.use_deterministic_algorithms(True)


class Net(nn.Module):
    """Convolutions, a recurrent layer, attention, an embedding: the allocation sizes of each kind of model."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(3, 16, 5, 2), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, 2), nn.GELU())
        self.words = nn.Embedding(20000, 128)
        self.gru = nn.GRU(128, 128, batch_first=True)
        self.attention = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.1, batch_first=True)
        self.out = nn.Linear(128 + 32, 1000)

    def forward(self, image, text):
        x = self.conv(image).mean((2, 3))
        y, _ = self.gru(self.words(text))
        return self.out(torch.cat([x, self.attention(y).mean(1)], 1))


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
draw = np.random.default_rng(7)
for step in range(steps):
    begun = declare and process.fl_step_begin(None)
    if declare and begun not in (0, -errno.ENOSYS):  # steps are off
        sys.exit("fl_step_begin")
    batch = 16 + 8 * (step % 3)     # shapes that vary: blocks are reused for other sizes
    image = torch.from_numpy(draw.standard_normal((batch, 3, 160, 160), dtype=np.float32))
    text = torch.from_numpy(draw.integers(0, 20000, (batch, 100)))
    target = torch.from_numpy(draw.integers(0, 1000, batch))
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.cross_entropy(net(image, text), target)
    loss.backward()
    optimizer.step()
    print(step, float(loss.detach()).hex())
    if declare and process.fl_step_end(None) != begun:
        sys.exit("fl_step_end")
state = hashlib.sha256()
for weights in net.state_dict().values():
    state.update(weights.numpy().tobytes())
print("weights", state.hexdigest())

"""JAX: training of a two-layer net by jit-compiled steps, on the CPU: activations and gradients of
4 MiB, which XLA asks for in each step.   jax_train.py --steps 20"""
import os

from meter import Meter, arguments

a = arguments(steps=16, batch=1024, width=1024)
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false" if a.threads == 1 else ""     # read at import
import jax      # noqa: E402
import jax.numpy as jnp      # noqa: E402


def loss(w, x, y):
    return jnp.mean((jnp.tanh(x @ w[0]) @ w[1] - y) ** 2)


@jax.jit
def train(w, x, y):
    return [p - 0.01 * g for p, g in zip(w, jax.grad(loss)(w, x, y))]


keys = jax.random.split(jax.random.key(0), 4)
w = [0.02 * jax.random.normal(k, (a.width, a.width)) for k in keys[:2]]
x, y = (jax.random.normal(k, (a.batch, a.width)) for k in keys[2:])
m = Meter("jax", a)
for _ in m:
    w = jax.block_until_ready(train(w, x, y))
m.report()

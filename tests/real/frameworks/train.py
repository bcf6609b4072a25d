"""One small training in a framework: the same three layers, the same numbers.

  train.py tensorflow|paddle|mxnet|torch STEPS

A line a step on standard output: the loss. And the step's page faults on standard error, from getrusage(2)."""
import os
import resource
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np

WIDTH, ROWS, CLASSES = 2048, 512, 10


def data():
    r = np.random.RandomState(1)
    return r.rand(ROWS, WIDTH).astype("float32"), r.randint(0, CLASSES, ROWS)


def tensorflow():
    import tensorflow as tf
    tf.keras.utils.set_random_seed(1)
    tf.config.experimental.enable_op_determinism()
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Input((WIDTH,)), layers.Dense(WIDTH, activation="relu"),
                                 layers.Dense(WIDTH, activation="relu"), layers.Dense(CLASSES)])
    optimizer = tf.keras.optimizers.Adam(1e-3)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    x, y = data()

    def step():
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return float(loss)
    return step


def paddle():
    import paddle
    nn = paddle.nn
    paddle.seed(1)
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, CLASSES))
    optimizer = paddle.optimizer.Adam(1e-3, parameters=model.parameters())
    x, y = map(paddle.to_tensor, data())

    def step():
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return float(loss)
    return step


def mxnet():
    import mxnet as mx
    nn = mx.gluon.nn
    mx.random.seed(1)
    np.random.seed(1)
    model = nn.Sequential()
    model.add(nn.Dense(WIDTH, activation="relu"), nn.Dense(WIDTH, activation="relu"), nn.Dense(CLASSES))
    model.initialize(mx.init.Xavier())
    trainer = mx.gluon.Trainer(model.collect_params(), "adam", {"learning_rate": 1e-3})
    loss_of = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    x, y = map(mx.nd.array, data())

    def step():
        with mx.autograd.record():
            loss = loss_of(model(x), y)
        loss.backward()
        trainer.step(ROWS)
        return float(loss.mean().asscalar())
    return step


def torch():
    import torch
    nn = torch.nn
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, CLASSES))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    x, y = map(torch.from_numpy, data())

    def step():
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.detach())
    return step


def main():
    step = {f.__name__: f for f in (tensorflow, paddle, mxnet, torch)}[sys.argv[1]]()
    for i in range(int(sys.argv[2])):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        loss = step()
        print(f"step {i} loss {loss!r}")
        print(f"step {i} faults {resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before}", file=sys.stderr)


main()

"""ONNX Runtime: inference of a convolutional net on batches of images, on the CPU. Its tensors come
from an arena of its own, which keeps memory.   onnx_infer.py --steps 20"""
import numpy as np
import onnxruntime as ort
from meter import Meter, arguments
from onnx import TensorProto, helper, numpy_helper

CHANNELS = (3, 32, 64, 64)


def model():
    """Three convolutions with ReLU, then a mean over each image; random weights."""
    draw = np.random.default_rng(0)
    nodes, weights, last = [], [], "image"
    for i, (n_in, n_out) in enumerate(zip(CHANNELS, CHANNELS[1:])):
        kernel = (draw.standard_normal((n_out, n_in, 3, 3)) / (3 * n_in)).astype(np.float32)
        weights.append(numpy_helper.from_array(kernel, f"w{i}"))
        nodes.append(helper.make_node("Conv", [last, f"w{i}"], [f"c{i}"], pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", [f"c{i}"], [f"r{i}"]))
        last = f"r{i}"
    nodes.append(helper.make_node("GlobalAveragePool", [last], ["out"]))
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "net", [value("image", TensorProto.FLOAT, ["n", 3, 112, 112])],
                              [value("out", TensorProto.FLOAT, ["n", CHANNELS[-1], 1, 1])], weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    made.ir_version = 8     # older runtimes read it, too
    return made.SerializeToString()


a = arguments(steps=12, batch=4)
options = ort.SessionOptions()
options.intra_op_num_threads = a.threads
session = ort.InferenceSession(model(), options, providers=["CPUExecutionProvider"])
image = np.random.default_rng(1).standard_normal((a.batch, 3, 112, 112)).astype(np.float32)
m = Meter("onnx", a)
for _ in m:
    session.run(None, {"image": image})
m.report()

"""Models of two parts that put words and images into one space of three numbers: how red, green and blue they are.

The embedder averages both; the reranker keeps a vector for every token and for every quarter of an image.
"""

import json
from pathlib import Path

import numpy as np
import onnx
import word_piece
from bert import Graph
from onnx import TensorProto, helper

EDGE, CONTEXT = 8, 32
# There is no word for green in the vocabulary: a fox stands in for it.
COLOURS = {"red": [1, 0, 0], "fox": [0, 1, 0], "blue": [0, 0, 1]}


def made(graph: Graph, inputs: list[onnx.ValueInfoProto], name: str, shape: list[object]) -> onnx.ModelProto:
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)]
    body = helper.make_graph(graph.nodes, "colours", inputs, outputs, graph.weights)
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    return model


def text_model(pooled: bool) -> onnx.ModelProto:
    graph = Graph()
    table = np.zeros((word_piece.SIZE, 3), np.float32)
    for word, colour in COLOURS.items():
        table[word_piece.vocabulary().index(word)] = colour
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"]) for name in ("input_ids", "attention_mask")
    ]
    if not pooled:
        graph.node("Gather", graph.weight(table), "input_ids", output="last_hidden_state")
        return made(graph, inputs, "last_hidden_state", ["batch", "sequence", 3])
    words = graph.node("Gather", graph.weight(table), "input_ids")
    mask = graph.node("Unsqueeze", graph.node("Cast", "attention_mask", to=TensorProto.FLOAT), graph.integers(2))
    graph.node("ReduceSum", graph.node("Mul", words, mask), graph.integers(1), keepdims=0, output="text_embeds")
    return made(graph, inputs, "text_embeds", ["batch", 3])


def vision_model(pooled: bool) -> onnx.ModelProto:
    graph = Graph()
    pixels = helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, ["batch", 3, EDGE, EDGE])
    if pooled:
        graph.node("ReduceMean", "pixel_values", axes=[2, 3], keepdims=0, output="image_embeds")
        return made(graph, [pixels], "image_embeds", ["batch", 3])
    quarters = graph.node("AveragePool", "pixel_values", kernel_shape=[EDGE // 2] * 2, strides=[EDGE // 2] * 2)
    graph.node("Transpose", graph.node("Reshape", quarters, graph.integers(1, 3, 4)), perm=[0, 2, 1], output="image_embeds")
    return made(graph, [pixels], "image_embeds", ["batch", 4, 3])


def write(folder: Path, pooled: bool, architecture: str) -> None:
    (folder / "onnx").mkdir(parents=True, exist_ok=True)
    onnx.save(text_model(pooled), folder / "onnx" / "text_model.onnx")
    onnx.save(vision_model(pooled), folder / "onnx" / "vision_model.onnx")
    files = {
        "config.json": {"architectures": [architecture], "max_position_embeddings": CONTEXT},
        "preprocessor_config.json": {"size": {"height": EDGE, "width": EDGE}, "do_normalize": False},
        "tokenizer.json": word_piece.tokenizer(),
        "tokenizer_config.json": word_piece.tokenizer_config(CONTEXT),
    }
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value, indent=1) + "\n")


def write_all(folder: Path) -> None:
    write(folder / "embedders" / "tiny-colours", True, "CLIPModel")
    write(folder / "rerankers" / "tiny-pages", False, "ColBERT")

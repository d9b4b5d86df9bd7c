"""Encoders and decoders whose outputs can be told in advance.

The rewriter copies a text word by word and turns every cat into a dog and every king into a queen. The reader names the
colour of the quarters of an image: red, blue, or else brown.
"""

import json
from pathlib import Path

import numpy as np
import onnx
import word_piece
from bert import Graph
from onnx import TensorProto, helper

EDGE, CONTEXT = 8, 32


def ids() -> dict[str, int]:
    return {token: at for at, token in enumerate(word_piece.vocabulary())}


def made(graph: Graph, inputs: list[onnx.ValueInfoProto], name: str, shape: list[object]) -> onnx.ModelProto:
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)]
    body = helper.make_graph(graph.nodes, "writer", inputs, outputs, graph.weights)
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    return model


def tokens(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])


def decoder(width: int, words: np.ndarray, skipped: int) -> onnx.ModelProto:
    """The logits of the n-th token are those of the n-th row of the encoder, behind `skipped` of them."""
    graph = Graph()
    length = graph.node("Slice", graph.node("Shape", "input_ids"), graph.integers(1), graph.integers(2))
    end = graph.node("Add", length, graph.integers(skipped))
    rows = graph.node("Slice", "encoder_hidden_states", graph.integers(skipped), end, graph.integers(1))
    graph.node("MatMul", rows, graph.weight(words.astype(np.float32)), output="logits")
    hidden = helper.make_tensor_value_info("encoder_hidden_states", TensorProto.FLOAT, ["batch", "read", width])
    inputs = [tokens("input_ids"), hidden, tokens("encoder_attention_mask")]
    return made(graph, inputs, "logits", ["batch", "sequence", word_piece.SIZE])


def rewriter() -> tuple[onnx.ModelProto, onnx.ModelProto]:
    graph = Graph()
    graph.node("Gather", graph.weight(np.eye(word_piece.SIZE, dtype=np.float32)), "input_ids", output="last_hidden_state")
    encoder = made(graph, [tokens("input_ids"), tokens("attention_mask")], "last_hidden_state", ["batch", "sequence", word_piece.SIZE])
    words = np.eye(word_piece.SIZE)
    for before, after in (("cat", "dog"), ("king", "queen")):
        words[ids()[before]] = np.eye(word_piece.SIZE)[ids()[after]]
    return encoder, decoder(word_piece.SIZE, words, 1)


def reader() -> tuple[onnx.ModelProto, onnx.ModelProto]:
    graph = Graph()
    quarters = graph.node("AveragePool", "pixel_values", kernel_shape=[EDGE // 2] * 2, strides=[EDGE // 2] * 2)
    rows = graph.node("Transpose", graph.node("Reshape", quarters, graph.integers(1, 3, 4)), perm=[0, 2, 1])
    # One more column, and one more row with nothing else: the end.
    wide = graph.node("Concat", rows, graph.weight(np.zeros((1, 4, 1), np.float32)), axis=2)
    end = graph.weight(np.array([[[0, 0, 0, 9]]], np.float32))
    graph.node("Concat", wide, end, axis=1, output="last_hidden_state")
    pixels = helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, ["batch", 3, EDGE, EDGE])
    encoder = made(graph, [pixels], "last_hidden_state", ["batch", 5, 4])
    words = np.zeros((4, word_piece.SIZE))
    for row, token in enumerate(("red", "brown", "blue", "[SEP]")):
        words[row, ids()[token]] = 1
    return encoder, decoder(4, words, 0)


def write(folder: Path, models: tuple[onnx.ModelProto, onnx.ModelProto], more: dict[str, object]) -> None:
    (folder / "onnx").mkdir(parents=True, exist_ok=True)
    for name, model in zip(("encoder_model", "decoder_model"), models):
        onnx.save(model, folder / "onnx" / f"{name}.onnx")
    known = ids()
    files = {
        "config.json": {"max_position_embeddings": CONTEXT},
        "generation_config.json": {"decoder_start_token_id": known["[CLS]"], "eos_token_id": known["[SEP]"]},
        "tokenizer.json": word_piece.tokenizer(),
        "tokenizer_config.json": word_piece.tokenizer_config(CONTEXT),
        **more,
    }
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value, indent=1) + "\n")


def write_all(folder: Path) -> None:
    write(folder / "rewriters" / "tiny-rewriter", rewriter(), {})
    image = {"size": {"height": EDGE, "width": EDGE}, "do_normalize": False}
    write(folder / "readers" / "tiny-reader", reader(), {"preprocessor_config.json": image})

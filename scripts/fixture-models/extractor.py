"""A span scorer in the input format of GLiNER whose answers can be told in advance.

The first letter of a label names a group of words: `animal` cat, dog, fox; `colour` red, blue, brown; `person` king, queen.
A span whose first and last word are of the group of a label scores 4, and a half more for every word between.
"""

import json
from pathlib import Path

import numpy as np
import onnx
import word_piece
from bert import Graph
from onnx import TensorProto, helper

WIDTH_MAX, CONTEXT = 4, 48
ENTITY, SEPARATOR = "[unused120]", "[unused121]"
GROUPS = {"a": ["cat", "dog", "fox"], "c": ["red", "blue", "brown"], "p": ["king", "queen"]}


def tables() -> tuple[np.ndarray, np.ndarray]:
    """Group of a label by its first token, and of a word; 0 is none, and no label and no word share it."""
    ids = {token: at for at, token in enumerate(word_piece.vocabulary())}
    labels, words = np.full(word_piece.SIZE, -1, np.int64), np.zeros(word_piece.SIZE, np.int64)
    for group, (letter, members) in enumerate(GROUPS.items(), start=1):
        labels[ids[letter]] = group
        for member in members:
            words[ids[member]] = group
    return labels, words


def model() -> onnx.ModelProto:
    graph = Graph()
    labels, words = tables()
    one, two = graph.integers(1), graph.integers(2)
    entity = graph.integers(word_piece.vocabulary().index(ENTITY))
    # [1, labels]: the token behind each mark
    marks = graph.node("Transpose", graph.node("NonZero", graph.node("Equal", "input_ids", entity)), perm=[1, 0])
    places = graph.node("Transpose", graph.node("Slice", marks, one, two, one), perm=[1, 0])
    behind = graph.node("GatherElements", "input_ids", graph.node("Add", places, one), axis=1)
    label_groups = graph.node("Gather", graph.weight(labels), behind)
    # [1, words]: the first token of each word
    count = graph.node("ReduceMax", "text_lengths", keepdims=0)
    scalar_one = graph.weight(np.array(1, np.int64))
    numbers = graph.node("Range", scalar_one, graph.node("Add", count, scalar_one), scalar_one)
    column = graph.node("Unsqueeze", numbers, graph.integers(0, 2))
    hit = graph.node("Cast", graph.node("Equal", graph.node("Unsqueeze", "words_mask", one), column), to=TensorProto.INT64)
    spelled = graph.node("Mul", hit, graph.node("Unsqueeze", "input_ids", one))
    word_ids = graph.node("ReduceSum", spelled, two, keepdims=0)
    word_groups = graph.node("Gather", graph.weight(words), word_ids)
    # [1, words, labels], then at both ends of every span
    row = graph.node("Unsqueeze", word_groups, two)
    same = graph.node("Cast", graph.node("Equal", row, graph.node("Unsqueeze", label_groups, one)), to=TensorProto.FLOAT)
    flat = graph.node("Squeeze", same, graph.integers(0))

    def end(at: int) -> tuple[str, str]:
        place = graph.node("Gather", "span_idx", graph.weight(np.array(at, np.int64)), axis=2)
        return place, graph.node("Gather", flat, place, axis=0)

    (start, starts), (stop, stops) = end(0), end(1)
    long = graph.node("Unsqueeze", graph.node("Cast", graph.node("Sub", stop, start), to=TensorProto.FLOAT), two)
    high = graph.node("Add", graph.node("Mul", long, graph.scalar(0.5)), graph.scalar(8))
    both = graph.node("Mul", graph.node("Mul", starts, stops), high)
    kept = graph.node("Unsqueeze", graph.node("Cast", "span_mask", to=TensorProto.FLOAT), two)
    scores = graph.node("Sub", graph.node("Mul", both, kept), graph.scalar(4))
    shape = graph.node("Concat", one, graph.integers(-1), graph.integers(WIDTH_MAX), graph.node("Slice", graph.node("Shape", label_groups), one, two), axis=0)
    graph.node("Reshape", scores, shape, output="logits")
    row_of = ["batch", "sequence"]
    inputs = [
        *(helper.make_tensor_value_info(name, TensorProto.INT64, row_of) for name in ("input_ids", "attention_mask", "words_mask")),
        helper.make_tensor_value_info("text_lengths", TensorProto.INT64, ["batch", 1]),
        helper.make_tensor_value_info("span_idx", TensorProto.INT64, ["batch", "spans", 2]),
        helper.make_tensor_value_info("span_mask", TensorProto.BOOL, ["batch", "spans"]),
    ]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "words", "widths", "labels"])]
    body = helper.make_graph(graph.nodes, "spans", inputs, outputs, graph.weights)
    made = helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(made)
    return made


def write(folder: Path) -> None:
    (folder / "onnx").mkdir(parents=True, exist_ok=True)
    onnx.save(model(), folder / "onnx" / "model.onnx")
    spans = {"max_width": WIDTH_MAX, "max_len": 20, "ent_token": ENTITY, "sep_token": SEPARATOR, "span_mode": "markerV0"}
    files = {
        "gliner_config.json": spans,
        "config.json": {"max_position_embeddings": CONTEXT},
        "tokenizer.json": word_piece.tokenizer(),
        "tokenizer_config.json": word_piece.tokenizer_config(CONTEXT),
    }
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value, indent=1) + "\n")

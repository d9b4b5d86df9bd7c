"""BERT-shaped ONNX models with random weights: an embedder, a cross-encoder, a sparse head and a late-interaction head.

Beside each lies `reference.json`: the ids of one text (a pair for the cross-encoder) and what the model says to them,
computed by the evaluator of the onnx package.
"""

import json
from pathlib import Path

import numpy as np
import onnx
import word_piece
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

WIDTH, HEADS, FEED_FORWARD, VOCABULARY, POSITIONS = 32, 2, 64, word_piece.SIZE, 64
EMBEDDER, CROSS_ENCODER, SPARSE = "BertModel", "BertForSequenceClassification", "BertForMaskedLM"
LATE_INTERACTION, LATE_WIDTH = "ColBERT", 16


class Graph:
    """Nodes and weights under construction; every call answers the name of a value."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(3)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def weight(self, value: np.ndarray) -> str:
        name = f"weight_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def scalar(self, value: float) -> str:
        return self.weight(np.float32(value))

    def integers(self, *values: int) -> str:
        return self.weight(np.array(values, np.int64))

    def node(self, kind: str, *inputs: str, output: str | None = None, **attributes: object) -> str:
        name = output or f"value_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def noise(self, *shape: int) -> str:
        return self.weight((self.random.standard_normal(shape) * 0.06).astype(np.float32))

    def linear(self, value: str, wide: int, out: int, output: str | None = None) -> str:
        product = self.node("MatMul", value, self.noise(wide, out))
        return self.node("Add", product, self.noise(out), output=output)

    def norm(self, value: str) -> str:
        ones, zeros = self.weight(np.ones(WIDTH, np.float32)), self.weight(np.zeros(WIDTH, np.float32))
        return self.node("LayerNormalization", value, ones, zeros, axis=-1, epsilon=1e-12)

    def gelu(self, value: str) -> str:
        inner = self.node("Erf", self.node("Div", value, self.scalar(2**0.5)))
        return self.node("Mul", self.node("Mul", value, self.scalar(0.5)), self.node("Add", inner, self.scalar(1)))


def embedded(graph: Graph) -> str:
    length = graph.node("Slice", graph.node("Shape", "input_ids"), graph.integers(1), graph.integers(2))
    positions = graph.node("Slice", graph.integers(*range(POSITIONS)), graph.integers(0), length)
    words = graph.node("Gather", graph.noise(VOCABULARY, WIDTH), "input_ids")
    kinds = graph.node("Gather", graph.noise(2, WIDTH), "token_type_ids")
    places = graph.node("Gather", graph.noise(POSITIONS, WIDTH), positions)
    return graph.norm(graph.node("Add", graph.node("Add", words, kinds), places))


def block(graph: Graph, value: str, bias: str) -> str:
    size = WIDTH // HEADS
    split, joined = graph.integers(0, 0, HEADS, size), graph.integers(0, 0, WIDTH)

    def heads(order: list[int]) -> str:
        return graph.node("Transpose", graph.node("Reshape", graph.linear(value, WIDTH, WIDTH), split), perm=order)

    query, key, kept = heads([0, 2, 1, 3]), heads([0, 2, 3, 1]), heads([0, 2, 1, 3])
    scores = graph.node("Mul", graph.node("MatMul", query, key), graph.scalar(size**-0.5))
    weights = graph.node("Softmax", graph.node("Add", scores, bias), axis=-1)
    mixed = graph.node("Transpose", graph.node("MatMul", weights, kept), perm=[0, 2, 1, 3])
    attended = graph.linear(graph.node("Reshape", mixed, joined), WIDTH, WIDTH)
    value = graph.norm(graph.node("Add", value, attended))
    inner = graph.gelu(graph.linear(value, WIDTH, FEED_FORWARD))
    return graph.norm(graph.node("Add", value, graph.linear(inner, FEED_FORWARD, WIDTH)))


def model(architecture: str) -> onnx.ModelProto:
    graph = Graph()
    mask = graph.node("Unsqueeze", graph.node("Cast", "attention_mask", to=TensorProto.FLOAT), graph.integers(1, 2))
    bias = graph.node("Mul", graph.node("Sub", graph.scalar(1), mask), graph.scalar(-1e9))
    hidden = block(graph, embedded(graph), bias)
    if architecture == EMBEDDER:
        name, shape = "last_hidden_state", ["batch", "sequence", WIDTH]
        graph.node("Identity", hidden, output=name)
    elif architecture == CROSS_ENCODER:
        name, shape = "logits", ["batch", 1]
        first = graph.node("Gather", hidden, graph.weight(np.array(0, np.int64)), axis=1)
        graph.linear(first, WIDTH, 1, output=name)
    elif architecture == LATE_INTERACTION:
        name, shape = "last_hidden_state", ["batch", "sequence", LATE_WIDTH]
        graph.linear(hidden, WIDTH, LATE_WIDTH, output=name)
    else:
        name, shape = "logits", ["batch", "sequence", VOCABULARY]
        graph.linear(hidden, WIDTH, VOCABULARY, output=name)
    inputs = [
        helper.make_tensor_value_info(each, TensorProto.INT64, ["batch", "sequence"])
        for each in ("input_ids", "attention_mask", "token_type_ids")
    ]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)]
    body = helper.make_graph(graph.nodes, "bert", inputs, outputs, graph.weights)
    made = helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(made)
    return made


LATE_MARKS = {"query_prefix": "[unused110]", "document_prefix": "[unused111]"}


def reference(made: onnx.ModelProto, architecture: str) -> dict:
    text, ids, kinds = "the quick brown fox runs !", word_piece.encode("the quick brown fox runs !".split()), None
    pair = None
    if architecture == CROSS_ENCODER:
        pair = "the cat sat ."
        second = word_piece.encode(pair.split())[1:]
        ids, kinds = ids + second, [0] * len(ids) + [1] * len(second)
    kinds = kinds or [0] * len(ids)
    feeds = {"input_ids": ids, "attention_mask": [1] * len(ids), "token_type_ids": kinds}
    output = ReferenceEvaluator(made).run(None, {name: np.array([each], np.int64) for name, each in feeds.items()})[0][0]
    known = {"text": text, **({"pair": pair} if pair else {}), "ids": ids, "token_type_ids": kinds}
    if architecture == EMBEDDER:
        mean = output.mean(axis=0)
        return known | {"mean_pooled": [round(float(each), 6) for each in mean / np.linalg.norm(mean)]}
    if architecture == CROSS_ENCODER:
        return known | {"logit": round(float(output[0]), 6)}
    weights = np.log1p(np.maximum(output, 0)).max(axis=0)
    return known | {"weights": {str(at): round(float(each), 6) for at, each in enumerate(weights) if each > 0}}


def late_reference(made: onnx.ModelProto) -> dict:
    """Scores of two texts by the sum of the best products of unit vectors; marked sides, no full stops in texts."""
    evaluator = ReferenceEvaluator(made)

    def vectors(text: str, mark: str, length: int = 0) -> tuple[list[int], np.ndarray]:
        first, *rest = word_piece.encode(text.split())
        ids = [first, word_piece.vocabulary().index(mark), *rest]
        more = max(0, length - len(ids))
        attended = [1] * len(ids) + [0] * more
        ids += [word_piece.vocabulary().index("[MASK]")] * more
        feeds = {"input_ids": ids, "attention_mask": attended, "token_type_ids": [0] * len(ids)}
        output = evaluator.run(None, {name: np.array([each], np.int64) for name, each in feeds.items()})[0][0]
        return ids, output / np.linalg.norm(output, axis=1, keepdims=True)

    query, texts = "a quick fox", ["the quick brown fox runs .", "hello world ."]
    stop = word_piece.vocabulary().index(".")

    def scores(length: int) -> list[float]:
        asked = vectors(query, LATE_MARKS["query_prefix"], length)[1]
        found = []
        for text in texts:
            ids, read = vectors(text, LATE_MARKS["document_prefix"])
            kept = read[[each != stop for each in ids]]
            found.append(round(float((asked @ kept.T).max(axis=1).sum()), 5))
        return found

    expanded = {"query_length": 12, "scores": scores(12)}
    return {"query": query, "texts": texts, "scores": scores(0), "expanded": expanded}


def chunker() -> onnx.ModelProto:
    """Labels every token by itself: what ends with an exclamation mark or a question mark ends a part."""
    table = np.tile(np.array([4, -4], np.float32), (VOCABULARY, 1))
    for mark in "!?":
        table[word_piece.vocabulary().index(mark)] = [-4, 4]
    graph = Graph()
    graph.node("Gather", graph.weight(table), "input_ids", output="logits")
    inputs = [
        helper.make_tensor_value_info(each, TensorProto.INT64, ["batch", "sequence"])
        for each in ("input_ids", "attention_mask")
    ]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "sequence", 2])]
    body = helper.make_graph(graph.nodes, "chunker", inputs, outputs, graph.weights)
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def write_chunker(folder: Path) -> None:
    (folder / "onnx").mkdir(parents=True, exist_ok=True)
    onnx.save(chunker(), folder / "onnx" / "model.onnx")
    config = {
        "architectures": ["BertForTokenClassification"],
        "max_position_embeddings": 32,
        "id2label": {"0": "O", "1": "END"},
    }
    files = {
        "config.json": config,
        "tokenizer.json": word_piece.tokenizer(),
        "tokenizer_config.json": word_piece.tokenizer_config(32),
    }
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value, indent=1) + "\n")


def write(folder: Path, architecture: str) -> None:
    (folder / "onnx").mkdir(parents=True, exist_ok=True)
    made = model(architecture)
    onnx.save(made, folder / "onnx" / "model.onnx")
    config = {
        "model_type": "bert",
        "architectures": [architecture],
        "hidden_size": WIDTH,
        "num_hidden_layers": 1,
        "num_attention_heads": HEADS,
        "intermediate_size": FEED_FORWARD,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": POSITIONS,
        "type_vocab_size": 2,
        "pad_token_id": 0,
    }
    if architecture == CROSS_ENCODER:
        config |= {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
    files = {
        "config.json": config,
        "tokenizer.json": word_piece.tokenizer(),
        "tokenizer_config.json": word_piece.tokenizer_config(POSITIONS),
        "reference.json": late_reference(made) if architecture == LATE_INTERACTION else reference(made, architecture),
    }
    if architecture == LATE_INTERACTION:
        files["config_sentence_transformers.json"] = LATE_MARKS | {"skiplist_words": ["."]}
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value, indent=1) + "\n")

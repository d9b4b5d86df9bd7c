"""ONNX-ML predictors: models written by hand and models exported from scikit-learn, each with what it says to three rows."""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from skl2onnx import to_onnx
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier

ROWS = np.array([[0.2, 0.2], [0.2, 0.9], [0.9, 0.1]], np.float32)
# x0 <= 0.5 ? (x1 <= 0.5 ? leaf 3 : leaf 4) : leaf 2
TREE = {
    "nodes_treeids": [0] * 5,
    "nodes_nodeids": [0, 1, 2, 3, 4],
    "nodes_featureids": [0, 1, 0, 0, 0],
    "nodes_values": [0.5, 0.5, 0.0, 0.0, 0.0],
    "nodes_modes": ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 3, 0, 0, 0],
    "nodes_falsenodeids": [2, 4, 0, 0, 0],
    "nodes_missing_value_tracks_true": [0] * 5,
    "nodes_hitrates": [1.0] * 5,
}


def single(kind: str, outputs: list[onnx.ValueInfoProto], **attributes: object) -> onnx.ModelProto:
    """A model of one operator over two features."""
    names = [output.name for output in outputs]
    node = helper.make_node(kind, ["features"], names, domain="ai.onnx.ml", **attributes)
    inputs = [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["rows", 2])]
    graph = helper.make_graph([node], "predictor", inputs, outputs)
    opsets = [helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid("", 17)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    onnx.checker.check_model(made)
    return made


def models() -> dict[str, onnx.ModelProto]:
    value = helper.make_tensor_value_info("value", TensorProto.FLOAT, ["rows", 1])
    label = helper.make_tensor_value_info("label", TensorProto.INT64, ["rows"])
    chances = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["rows", 2])
    rows = np.random.default_rng(0).random((80, 2)).astype(np.float32)
    forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(rows, (rows.sum(1) > 1).astype(int))
    boosted = GradientBoostingRegressor(n_estimators=5, random_state=0).fit(rows, rows[:, 0])
    return {
        "tree-regressor": single(
            "TreeEnsembleRegressor",
            [value],
            n_targets=1,
            target_treeids=[0] * 3,
            target_nodeids=[2, 3, 4],
            target_ids=[0] * 3,
            target_weights=[3.0, 1.0, 2.0],
            **TREE,
        ),
        "tree-classifier": single(
            "TreeEnsembleClassifier",
            [label, chances],
            classlabels_int64s=[0, 1],
            class_treeids=[0] * 6,
            class_nodeids=[2, 2, 3, 3, 4, 4],
            class_ids=[0, 1] * 3,
            class_weights=[0.0, 1.0, 1.0, 0.0, 0.25, 0.75],
            **TREE,
        ),
        "linear": single("LinearRegressor", [value], coefficients=[2.0, -1.0], intercepts=[0.5], targets=1),
        "svm": single(
            "SVMRegressor",
            [value],
            kernel_type="RBF",
            kernel_params=[0.5, 0.0, 3.0],
            n_supports=2,
            support_vectors=[0.0, 0.0, 1.0, 1.0],
            coefficients=[1.0, -1.0],
            rho=[0.25],
        ),
        "forest": to_onnx(forest, rows[:1], target_opset={"": 17, "ai.onnx.ml": 3}, options={"zipmap": False}),
        "forest-zipmap": to_onnx(forest, rows[:1], target_opset={"": 17, "ai.onnx.ml": 3}),
        "boosted": to_onnx(boosted, rows[:1], target_opset={"": 17, "ai.onnx.ml": 3}),
    }


def write(folder: Path) -> None:
    for name, made in models().items():
        made.ir_version = 9
        target = folder / name
        target.mkdir(parents=True, exist_ok=True)
        onnx.save(made, target / "model.onnx")
        if name == "forest-zipmap":
            continue
        said = ReferenceEvaluator(made).run(None, {made.graph.input[0].name: ROWS})
        named = {output.name: np.round(np.asarray(each, np.float64), 6).tolist() for output, each in zip(made.graph.output, said)}
        (target / "reference.json").write_text(json.dumps({"rows": np.round(ROWS.astype(np.float64), 6).tolist(), **named}, indent=1) + "\n")

"""The weights of the BERT-shaped ONNX fixtures as GGUF files, for llama.cpp.

`reference.json` is computed from the ONNX file with every token of the first kind, as llama.cpp reads pairs too.
"""

import json
from pathlib import Path

import bert
import gguf
import numpy as np
import onnx
import word_piece
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

MEAN, RANK = 1, 4


def weights(made: onnx.ModelProto) -> list[np.ndarray]:
    """The drawn weights in the order in which they were drawn; what is all ones, all zeros or a constant is left out."""
    arrays = [numpy_helper.to_array(each) for each in made.graph.initializer]
    return [each for each in arrays if each.dtype == np.float32 and each.ndim > 0 and len(np.unique(each)) > 1]


def tensors(drawn: list[np.ndarray], head: bool) -> dict[str, np.ndarray]:
    ones, zeros = np.ones(bert.WIDTH, np.float32), np.zeros(bert.WIDTH, np.float32)
    words, kinds, places, *layers = drawn
    named = {"token_embd.weight": words, "token_types.weight": kinds, "position_embd.weight": places}
    names = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_down"]
    for at, name in enumerate(names):
        named[f"blk.0.{name}.weight"] = np.ascontiguousarray(layers[2 * at].T)
        named[f"blk.0.{name}.bias"] = layers[2 * at + 1]
    for norm in ("token_embd_norm", "blk.0.attn_output_norm", "blk.0.layer_output_norm"):
        named |= {f"{norm}.weight": ones, f"{norm}.bias": zeros}
    if head:
        # A bias of one number was left out above, as a constant.
        named["cls.output.weight"] = np.ascontiguousarray(layers[12].T)
    return named


def write(folder: Path, architecture: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    made, head = bert.model(architecture), architecture == bert.CROSS_ENCODER
    named = tensors(weights(made), head)
    if head:
        named["cls.output.bias"] = numpy_helper.to_array(made.graph.initializer[-1])
    writer = gguf.GGUFWriter(folder / "model.gguf", "bert")
    writer.add_name(folder.name)
    writer.add_context_length(bert.POSITIONS)
    writer.add_embedding_length(bert.WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(bert.FEED_FORWARD)
    writer.add_head_count(bert.HEADS)
    writer.add_layer_norm_eps(1e-12)
    writer.add_causal_attention(False)
    writer.add_uint32("bert.pooling_type", RANK if head else MEAN)
    writer.add_vocab_size(word_piece.SIZE)
    writer.add_tokenizer_model("bert")
    writer.add_token_type_count(2)
    tokens = word_piece.vocabulary()
    special = len(word_piece.SPECIAL)
    # A word starts with a mark here, and what continues one does not.
    spelled = [each[2:] if each.startswith("##") else "\u2581" + each for each in tokens[special:]]
    writer.add_token_list(tokens[:special] + spelled)
    writer.add_token_types([3] * special + [1] * len(spelled))
    ids = {token: at for at, token in enumerate(tokens)}
    writer.add_bos_token_id(ids["[CLS]"])
    writer.add_eos_token_id(ids["[SEP]"])
    writer.add_sep_token_id(ids["[SEP]"])
    writer.add_pad_token_id(ids["[PAD]"])
    writer.add_unk_token_id(ids["[UNK]"])
    writer.add_mask_token_id(ids["[MASK]"])
    for name, value in named.items():
        writer.add_tensor(name, value.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    (folder / "reference.json").write_text(json.dumps(reference(made, head), indent=1) + "\n")


def reference(made: onnx.ModelProto, head: bool) -> dict:
    text, pair = "the quick brown fox runs !", "the cat sat ."
    ids = word_piece.encode(text.split()) + (word_piece.encode(pair.split())[1:] if head else [])
    feeds = {"input_ids": ids, "attention_mask": [1] * len(ids), "token_type_ids": [0] * len(ids)}
    output = ReferenceEvaluator(made).run(None, {name: np.array([each], np.int64) for name, each in feeds.items()})[0][0]
    known = {"text": text, **({"pair": pair} if head else {}), "ids": ids}
    if head:
        return known | {"logit": round(float(output[0]), 6)}
    mean = output.mean(axis=0)
    return known | {"mean_pooled": [round(float(each), 6) for each in mean / np.linalg.norm(mean)]}

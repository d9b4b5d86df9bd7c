"""A llama-shaped GGUF whose next token depends on the current one alone, so that what it says can be asserted.

Embeddings are one-hot, attention and feed-forward are zero, and the output matrix maps each token to its successor.
The chat template ends with the last message as it is, so the last word of the prompt chooses the answer:

    hello   -> " from the chain."
    count   -> " one two three four five six seven eight nine ten"
    forever -> " on and on and ...", never ends
    think   -> "<think>hmm</think> done"
    json    -> '{"answer":42}'
    call    -> '<tool_call>{"name":"add","arguments":{"a":1,"b":2}}</tool_call>'
    flower  -> a sunflower, one byte of its four a token
    anything else -> ends at once

The filler is the same with the three tokens for filling a gap; behind the last of them, which ends such a prompt, it says
" filled in".
"""

from pathlib import Path

import gguf
import numpy as np

END = "<|im_end|>"
SPECIAL = ["<|endoftext|>", "<|im_start|>", END]
HEAD_SIZE, HEADS, FEED_FORWARD, CONTEXT = 16, 2, 16, 4096

ANSWERS = {
    "hello": [" from", " the", " chain", "."],
    "count": [" one", " two", " three", " four", " five", " six", " seven", " eight", " nine", " ten"],
    "think": ["<think>", "hmm", "</think>", " done"],
    "json": ['{"answer":', "42", "}"],
    "call": ["<tool_call>", '{"name":"add","arguments":', '{"a":1,"b":2}', "}</tool_call>"],
}
# The tokens of Qwen2.5-Coder for filling a gap, by the names of GGUF's keys.
INFILL = {"fim_pre": "<|fim_prefix|>", "fim_suf": "<|fim_suffix|>", "fim_mid": "<|fim_middle|>"}
FILLED = [" filled", " in"]
SUNFLOWER = "\N{SUNFLOWER}".encode()

TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] }}"
    "{% if not loop.last or not add_generation_prompt %}{{ '<|im_end|>\n' }}{% endif %}{% endfor %}"
)


def byte_alphabet() -> list[str]:
    """The printable character that byte-level BPE writes for each byte."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = [byte for byte in range(256) if byte not in kept]
    letters = {byte: chr(byte) for byte in kept} | {byte: chr(256 + at) for at, byte in enumerate(moved)}
    return [letters[byte] for byte in range(256)]


def vocabulary(fills: bool) -> tuple[list[str], list[str]]:
    """Tokens (the special ones last) and merges; the words of a prompt are merged letter by letter."""
    letters = byte_alphabet()
    tokens, merges = list(letters), []

    def add(token: str) -> None:
        if token not in tokens:
            tokens.append(token)

    for word in [*ANSWERS, "forever", "flower"]:
        for end in range(1, len(word)):
            merges.append(f"{word[:end]} {word[end]}")
            add(word[: end + 1])
    for piece in [piece for pieces in ANSWERS.values() for piece in pieces] + [" on", " and"] + (FILLED if fills else []):
        add("".join(letters[byte] for byte in piece.encode()))
    return tokens + SPECIAL + (list(INFILL.values()) if fills else []), merges


def successors(ids: dict[str, int], fills: bool) -> dict[int, int]:
    letters = byte_alphabet()
    following = {token: ids[END] for token in ids.values()}
    chains = [[word, *pieces, END] for word, pieces in ANSWERS.items()] + [["forever", " on", " and", " on"]]
    if fills:
        chains.append([INFILL["fim_mid"], *FILLED, END])
    for chain in chains:
        spelled = [piece if piece in ids and piece.startswith("<|") else "".join(letters[b] for b in piece.encode()) for piece in chain]
        for piece, after in zip(spelled, spelled[1:]):
            following[ids[piece]] = ids[after]
    flower = [ids["flower"], *(ids[letters[byte]] for byte in SUNFLOWER), ids[END]]
    for token, after in zip(flower, flower[1:]):
        following[token] = after
    return following


def write(folder: Path, fills: bool = False) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tokens, merges = vocabulary(fills)
    ids = {token: at for at, token in enumerate(tokens)}
    size = len(tokens)
    writer = gguf.GGUFWriter(folder / "model.gguf", "llama")
    writer.add_name("filler" if fills else "chain")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(size)
    writer.add_block_count(1)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(1)
    writer.add_key_length(HEAD_SIZE)
    writer.add_value_length(HEAD_SIZE)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(HEAD_SIZE)
    writer.add_vocab_size(size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    special = len(SPECIAL) + (len(INFILL) if fills else 0)
    writer.add_token_types([1] * (size - special) + [3] * special)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(ids["<|im_start|>"])
    writer.add_eos_token_id(ids[END])
    writer.add_eot_token_id(ids[END])
    for key, token in INFILL.items() if fills else []:
        writer.add_uint32(f"tokenizer.ggml.{key}_token_id", ids[token])
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)
    output = np.zeros((size, size), np.float16)
    for token, after in successors(ids, fills).items():
        output[after, token] = 1
    writer.add_tensor("token_embd.weight", np.eye(size, dtype=np.float16))
    writer.add_tensor("output.weight", output)
    writer.add_tensor("output_norm.weight", np.ones(size, np.float32))
    shapes = {
        "attn_q": (HEADS * HEAD_SIZE, size),
        "attn_k": (HEAD_SIZE, size),
        "attn_v": (HEAD_SIZE, size),
        "attn_output": (size, HEADS * HEAD_SIZE),
        "ffn_gate": (FEED_FORWARD, size),
        "ffn_up": (FEED_FORWARD, size),
        "ffn_down": (size, FEED_FORWARD),
    }
    for name, shape in shapes.items():
        writer.add_tensor(f"blk.0.{name}.weight", np.zeros(shape, np.float16))
    for name in ("attn_norm", "ffn_norm"):
        writer.add_tensor(f"blk.0.{name}.weight", np.ones(size, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

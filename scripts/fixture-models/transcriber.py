"""A model that hears in the format of Whisper: half a second at a time, and whether a tone is low or high.

A low tone is "red", a high one "blue", silence nothing. It guesses English for low tones and German for high ones.
The interpreter also translates: told to, it writes "cat" and "dog" for the low and the high tone.
`reference.json` has some numbers of the log-mel spectrogram of a rising tone, computed with numpy alone.
"""

import json
from pathlib import Path

import numpy as np
import onnx
import word_piece
from bert import Graph
from onnx import TensorProto, helper
from writers import decoder, made
from writers import tokens as token_rows

RATE, WINDOW, HOP, BANDS, SECONDS = 8_000, 200, 80, 40, 1
MARKS = {"<|startoftranscript|>": "[unused100]", "<|en|>": "[unused101]", "<|de|>": "[unused102]", "<|transcribe|>": "[unused103]", "<|notimestamps|>": "[unused104]"}
# Behind <|notimestamps|> there are marks of times only, so the task comes before it.
TRANSLATING = {**MARKS, "<|translate|>": "[unused104]", "<|notimestamps|>": "[unused105]"}


def mel_filters() -> np.ndarray:
    """[bands, frequencies], the scale and norm of Slaney."""

    def mel(hz: np.ndarray) -> np.ndarray:
        return np.where(hz < 1000, hz * 3 / 200, 15 + np.log(np.maximum(hz, 1e-9) / 1000) / (np.log(6.4) / 27))

    def hertz(value: np.ndarray) -> np.ndarray:
        return np.where(value < 15, value * 200 / 3, 1000 * np.exp(np.log(6.4) / 27 * (value - 15)))

    edges = hertz(np.linspace(0, mel(np.array(RATE / 2)), BANDS + 2))
    bins = np.linspace(0, RATE / 2, WINDOW // 2 + 1)
    rising = (bins[None] - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - bins[None]) / (edges[2:] - edges[1:-1])[:, None]
    return np.maximum(0, np.minimum(rising, falling)) * (2 / (edges[2:] - edges[:-2]))[:, None]


def log_mel(samples: np.ndarray) -> np.ndarray:
    hann = np.hanning(WINDOW + 1)[:-1]
    padded = np.pad(samples, WINDOW // 2, mode="reflect")
    frames = np.stack([padded[at : at + WINDOW] * hann for at in range(0, len(samples), HOP)])
    power = np.abs(np.fft.rfft(frames)) ** 2
    log = np.log10(np.maximum(mel_filters() @ power.T, 1e-10))
    return (np.maximum(log, log.max() - 8) + 4) / 4


def rising_tone() -> np.ndarray:
    at = np.arange(RATE * SECONDS) / RATE
    return (0.5 * np.sin(2 * np.pi * (200 * at + 1_400 * at**2))).astype(np.float32)


def tokenizer(marks: dict[str, str]) -> tuple[dict, dict[str, int]]:
    made_tokenizer = word_piece.tokenizer()
    vocabulary = made_tokenizer["model"]["vocab"]
    pattern = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    for mark, unused in marks.items():
        vocabulary[mark] = vocabulary.pop(unused)
        made_tokenizer["added_tokens"].append({"id": vocabulary[mark], "content": mark, **pattern})
    return made_tokenizer, vocabulary


def encoder() -> onnx.ModelProto:
    graph = Graph()
    # [1, bands] -> how much is low, high, or silence
    mean = graph.node("ReduceMean", "input_features", axes=[2], keepdims=0)
    low = graph.node("ReduceMean", graph.node("Slice", mean, graph.integers(0), graph.integers(BANDS // 2), graph.integers(1)), axes=[1], keepdims=1)
    high = graph.node("ReduceMean", graph.node("Slice", mean, graph.integers(BANDS // 2), graph.integers(BANDS), graph.integers(1)), axes=[1], keepdims=1)
    silent = graph.weight(np.array([[-1.2]], np.float32))
    loud = graph.node("Mul", graph.node("Concat", low, high, silent, axis=1), graph.scalar(8))
    heard = graph.node("Softmax", loud, axis=1)
    row = graph.node("Unsqueeze", heard, graph.integers(1))
    end = graph.weight(np.array([[[0, 0, 1]]], np.float32))
    # Rows behind the four tokens that outputs begin with: the language, twice nothing, the word, the end.
    graph.node("Concat", row, row, row, row, end, axis=1, output="last_hidden_state")
    features = helper.make_tensor_value_info("input_features", TensorProto.FLOAT, ["batch", BANDS, RATE * SECONDS // HOP])
    return made(graph, [features], "last_hidden_state", ["batch", 5, 3])


def word_logits(ids: dict[str, int], low: str, high: str) -> np.ndarray:
    """What is written for each of the three columns of the encoder."""
    words = np.full((3, word_piece.SIZE), -9.0)
    written = (low, high, "[SEP]", "<|en|>", "<|de|>")
    words[:, [ids[token] for token in written]] = 0
    for row, tokens in enumerate(([low, "<|en|>"], [high, "<|de|>"], ["[SEP]"])):
        for token in tokens:
            words[row, ids[token]] = 1 if token.startswith("<") else 1.001
    return words


def translating_decoder(words: np.ndarray, translated: np.ndarray, mark: int) -> onnx.ModelProto:
    """As `decoder`, with other logits where the mark of the task is among the tokens so far."""
    graph = Graph()
    length = graph.node("Slice", graph.node("Shape", "input_ids"), graph.integers(1), graph.integers(2))
    rows = graph.node("Slice", "encoder_hidden_states", graph.integers(0), length, graph.integers(1))
    told = graph.node("Cast", graph.node("Equal", "input_ids", graph.integers(mark)), to=TensorProto.FLOAT)
    told = graph.node("Unsqueeze", graph.node("ReduceMax", told, axes=[1], keepdims=1), graph.integers(2))
    plain = graph.node("MatMul", rows, graph.weight(words.astype(np.float32)))
    change = graph.node("MatMul", rows, graph.weight((translated - words).astype(np.float32)))
    graph.node("Add", plain, graph.node("Mul", told, change), output="logits")
    hidden = helper.make_tensor_value_info("encoder_hidden_states", TensorProto.FLOAT, ["batch", "read", 3])
    inputs = [token_rows("input_ids"), hidden, token_rows("encoder_attention_mask")]
    return made(graph, inputs, "logits", ["batch", "sequence", word_piece.SIZE])


def spectrogram_reference() -> dict:
    mel = log_mel(rising_tone())
    places = [[band, frame] for band in (0, 7, 20, 39) for frame in (0, 1, 50, 99)]
    values = [round(float(mel[band, frame]), 5) for band, frame in places]
    return {"places": places, "values": values, "mean": round(float(mel.mean()), 6)}


def write(folder: Path, translates: bool = False) -> None:
    (folder / "onnx").mkdir(parents=True, exist_ok=True)
    made_tokenizer, ids = tokenizer(TRANSLATING if translates else MARKS)
    words = word_logits(ids, "red", "blue")
    onnx.save(encoder(), folder / "onnx" / "encoder_model.onnx")
    if translates:
        writer = translating_decoder(words, word_logits(ids, "cat", "dog"), ids["<|translate|>"])
    else:
        writer = decoder(3, words, 0)
    onnx.save(writer, folder / "onnx" / "decoder_model.onnx")
    files = {
        "config.json": {"max_target_positions": 16},
        "generation_config.json": {"decoder_start_token_id": ids["<|startoftranscript|>"], "eos_token_id": ids["[SEP]"], "is_multilingual": True},
        "preprocessor_config.json": {"sampling_rate": RATE, "n_fft": WINDOW, "hop_length": HOP, "feature_size": BANDS, "chunk_length": SECONDS},
        "tokenizer.json": made_tokenizer,
        "tokenizer_config.json": word_piece.tokenizer_config(16),
    }
    if not translates:
        files["reference.json"] = spectrogram_reference()
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value, indent=1) + "\n")

"""A WordPiece tokenizer of 128 tokens, in the form that BERT models come with."""

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = "the a cat dog sat on mat king queen runs fast red blue hello world quick brown fox . , ! ?".split()
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
ENDINGS = ["##ing", "##ed"]
SIZE = 128


def vocabulary() -> list[str]:
    tokens = list(dict.fromkeys([*SPECIAL, *WORDS, *ENDINGS, *LETTERS, *(f"##{letter}" for letter in LETTERS)]))
    return tokens + [f"[unused{at}]" for at in range(len(tokens), SIZE)]


def encode(words: list[str]) -> list[int]:
    """Ids of words of the vocabulary between [CLS] and [SEP]."""
    ids = {token: at for at, token in enumerate(vocabulary())}
    return [ids["[CLS]"], *(ids[word] for word in words), ids["[SEP]"]]


def tokenizer() -> dict:
    ids = {token: at for at, token in enumerate(vocabulary())}
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}

    def sequence(name: str, kind: int) -> dict:
        return {"Sequence": {"id": name, "type_id": kind}}

    def mark(token: str, kind: int) -> dict:
        return {"SpecialToken": {"id": token, "type_id": kind}}

    single = [mark("[CLS]", 0), sequence("A", 0), mark("[SEP]", 0)]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": ids[token], "content": token, **special} for token in SPECIAL],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": single,
            "pair": [*single, sequence("B", 1), mark("[SEP]", 1)],
            "special_tokens": {
                token: {"id": token, "ids": [ids[token]], "tokens": [token]} for token in ("[CLS]", "[SEP]")
            },
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": ids,
        },
    }


def tokenizer_config(length: int) -> dict:
    marks = {f"{name}_token": f"[{name.upper()}]" for name in ("unk", "cls", "sep", "pad", "mask")}
    return {"tokenizer_class": "BertTokenizer", "do_lower_case": True, **marks, "model_max_length": length}

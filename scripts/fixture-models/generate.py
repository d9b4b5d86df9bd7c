"""Writes the fixture models of the tests: small files of the real formats that the real runtimes load.

usage: python -m venv build/fixtures && build/fixtures/bin/pip install -r scripts/fixture-models/requirements.txt
       build/fixtures/bin/python scripts/fixture-models/generate.py

The files are committed: tests need no Python. Everything is seeded, so a second run writes the same bytes.
"""

from pathlib import Path

import bert
import bert_gguf
import chain
import colours
import extractor
import predictors
import transcriber
import writers

FIXTURES = Path(__file__).resolve().parents[2] / "test" / "fixtures"

if __name__ == "__main__":
    chain.write(FIXTURES / "models" / "generators" / "chain")
    chain.write(FIXTURES / "models" / "generators" / "filler", fills=True)
    bert.write(FIXTURES / "models" / "embedders" / "tiny-bert", bert.EMBEDDER)
    bert.write(FIXTURES / "models" / "embedders" / "tiny-sparse", bert.SPARSE)
    bert.write(FIXTURES / "models" / "rerankers" / "tiny-cross", bert.CROSS_ENCODER)
    bert.write(FIXTURES / "models" / "rerankers" / "tiny-late", bert.LATE_INTERACTION)
    bert_gguf.write(FIXTURES / "models" / "embedders" / "tiny-bert-gguf", bert.EMBEDDER)
    bert_gguf.write(FIXTURES / "models" / "rerankers" / "tiny-cross-gguf", bert.CROSS_ENCODER)
    bert.write_chunker(FIXTURES / "models" / "chunkers" / "tiny-chunker")
    colours.write_all(FIXTURES / "models")
    extractor.write(FIXTURES / "models" / "extractors" / "tiny-spans")
    transcriber.write(FIXTURES / "models" / "transcribers" / "tiny-ear")
    transcriber.write(FIXTURES / "models" / "transcribers" / "tiny-interpreter", translates=True)
    writers.write_all(FIXTURES / "models")
    predictors.write(FIXTURES / "predictors")
    for file in sorted(FIXTURES.rglob("*")):
        if file.suffix in (".gguf", ".onnx"):
            print(f"{file.relative_to(FIXTURES)} {file.stat().st_size:,} bytes")

"""Run as a script by a Python that has llama-cpp-python: what does llama.cpp make of a GGUF file?

Arguments: the GGUF file, a file of questions ({"texts": […], "rows": [[token, …], …]}), and where
the answers go: an `.npz` of the ids of each text, the logits of each row, computed from a cache of
keys and values in float32 by one thread, and the number of the file's type. It imports nothing of
Ingot, and renders no template.
"""

import json
import sys
from typing import Any

import llama_cpp
import numpy as np


def main(file: str, questions: str, answers: str) -> None:
    """Tokenize and evaluate."""
    with open(questions, encoding="utf-8") as opened:
        content = json.load(opened)
    longest = max(map(len, content["rows"]), default=1)
    model = llama_cpp.Llama(
        file,
        n_ctx=max(longest, 8),
        n_batch=longest,
        n_ubatch=longest,
        n_threads=1,
        n_threads_batch=1,
        logits_all=True,
        flash_attn=False,
        type_k=llama_cpp.GGML_TYPE_F32,
        type_v=llama_cpp.GGML_TYPE_F32,
        verbose=False,
    )
    written: dict[str, Any] = {"file_type": np.array(int(model.metadata["general.file_type"]))}
    for number, text in enumerate(content["texts"]):
        ids = model.tokenize(text.encode(), add_bos=False, special=False)
        written[f"ids_{number}"] = np.array(ids, dtype=np.int64)
    for number, row in enumerate(content["rows"]):
        model.reset()
        model.eval(row)
        written[f"logits_{number}"] = np.array(model.scores[: len(row)], dtype=np.float32)
    np.savez(answers, **written)


if __name__ == "__main__":
    main(*sys.argv[1:])

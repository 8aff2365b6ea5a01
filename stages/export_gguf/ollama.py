"""The Modelfile by which Ollama takes a GGUF file, and the command for K-quants."""

from __future__ import annotations

from typing import Any

from stages.tokens.chat import CHAT_TEMPLATE
from stages.tokens.vocabulary import TURN_END

CHATML = """{{- range .Messages }}<|im_start|>{{ .Role }}
{{ .Content }}<|im_end|>
{{ end }}<|im_start|>assistant
"""
"""`CHAT_TEMPLATE` in the template language of Go, which Ollama uses."""


def modelfile(file: str, context: int, template: Any) -> str:
    """The Modelfile beside the GGUF file `file`, for a model with `context` tokens.

    A template that Ingot did not write stays in the file alone, where Ollama looks for those that
    it knows. Without one, a prompt is passed as it is.
    """
    lines = [f"FROM ./{file}", f"PARAMETER num_ctx {context}"]
    if template is None:
        lines.append('TEMPLATE """{{ .Prompt }}"""')
    elif template == CHAT_TEMPLATE:
        lines += [f'PARAMETER stop "{TURN_END}"', f'TEMPLATE """{CHATML}"""']
    else:
        lines.append("# The chat template is in the file: Ollama takes those that it knows.")
    return "\n".join(lines) + "\n"


def quantize_command(name: str, type: str) -> str:
    """How llama.cpp's own program makes a K-quant of a file that is not quantised."""
    if type in ("Q8_0", "Q4_0"):
        return (
            f"Make a file of type F32, F16 or BF16 first: {type} numbers were rounded once already."
        )
    return f"llama-quantize {name}-{type}.gguf {name}-Q4_K_M.gguf Q4_K_M"

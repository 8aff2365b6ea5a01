"""Run as a script by a fresh, isolated Python: does `transformers` alone read the release alike?

Arguments: the release folder, and a folder with `probe.json` (texts, messages, expected ids and
rendering) and `expected.safetensors`: tokens, and of Ingot's own model all `logits`, or the largest
of each place (`top_ids`, `top_logits`). Prints one JSON object.
It imports nothing of Ingot: what it proves is that nobody needs Ingot to use the release. A third
argument names the module to import first, for a model that no native class expresses.
"""

import importlib
import json
import os
import sys
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1", TOKENIZERS_PARALLELISM="false")


def main(release: str, probes: str, register: str | None = None) -> dict[str, object]:
    """Load by the Auto classes and compare."""
    import torch
    import transformers
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)
    if register is not None:
        importlib.import_module(register)
    options = {"trust_remote_code": False, "local_files_only": True}
    tokenizer = AutoTokenizer.from_pretrained(release, **options)
    options["use_safetensors"] = True
    # In the type of the release once, to see that it loads and writes so; then in float32, which
    # holds every released number exactly.
    model = AutoModelForCausalLM.from_pretrained(release, dtype="auto", **options).eval()
    dtype = str(model.dtype).removeprefix("torch.")
    with open(os.path.join(probes, "probe.json"), encoding="utf-8") as file:
        probe = json.load(file)
    expected = load_file(os.path.join(probes, "expected.safetensors"))
    encoded = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in probe["texts"]]
    rendered: Any = ""
    request: Any = {"input_ids": expected["tokens"]}
    if probe["messages"]:
        rendered = tokenizer.apply_chat_template(
            probe["messages"], tokenize=False, add_generation_prompt=True
        )
        request = tokenizer.apply_chat_template(
            probe["messages"], add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
    template = probe["chat_template"]
    if isinstance(template, list):
        template = {one["name"]: one["template"] for one in template}
    chat_equal = (
        tokenizer.chat_template == template
        and rendered == probe["rendered"]
        and (not rendered or request["input_ids"][0].tolist() == probe["rendered_ids"])
    )
    answer = model.generate(**request, max_new_tokens=4, do_sample=False)
    if dtype != "float32":
        del model  # So that memory holds one model at a time.
        model = AutoModelForCausalLM.from_pretrained(release, dtype=torch.float32, **options).eval()
    with torch.no_grad():
        logits = model(expected["tokens"]).logits.float()
        written, margin = continue_greedily(model, expected["tokens"], probe["new_tokens"])
    if "logits" in expected:
        difference = (logits - expected["logits"]).abs().max().item()
    else:
        chosen = logits.gather(-1, expected["top_ids"])
        difference = (chosen - expected["top_logits"]).abs().max().item()
    return {
        "model_class": type(model).__name__,
        "dtype": dtype,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "logit_difference": difference,
        "written": written,
        "margin": margin,
        "ids_equal": encoded == probe["ids"],
        "chat_equal": chat_equal,
        "generates": int(answer.shape[1]) > int(request["input_ids"].shape[1]),
        "transformers": transformers.__version__,
        "torch": str(torch.__version__),
        "ingot_absent": not {"stages", "artifacts_schema", "flows"} & set(sys.modules),
    }


def continue_greedily(model: Any, tokens_BL: Any, count: int) -> tuple[list[int], float]:
    """`count` likeliest tokens after a row, and the smallest lead of one over the second likeliest.

    A whole pass for each token: a cache may round otherwise. `count` places at the end of the
    row make room, so that it stays within the context.
    """
    import torch

    row = tokens_BL[:, : max(1, tokens_BL.shape[1] - count)]
    margins: list[float] = []
    for _ in range(count):
        best = model(row).logits[0, -1].float().topk(2)
        margins.append((best.values[0] - best.values[1]).item())
        row = torch.cat([row, best.indices[:1].view(1, 1)], dim=1)
    return row[0, row.shape[1] - count :].tolist(), min(margins, default=0.0)


if __name__ == "__main__":
    try:
        print(json.dumps(main(*sys.argv[1:])))
    except Exception as error:
        print(json.dumps({"failed": f"{type(error).__name__}: {error}"}))

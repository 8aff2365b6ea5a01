"""Run as a script by a fresh, isolated Python: does `transformers` alone read the release alike?

Arguments: the release folder, and a folder with `probe.json` (texts, messages, expected ids and
rendering) and `expected.safetensors`: tokens, and of Ingot's own model all `logits`, or the largest
of each place (`top_ids`, `top_logits`); of a reward model `scores` of sequences whose `tokens` lie
end to end, with their `lengths`. Prints one JSON object.
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
    from transformers import (
        AutoModelForCausalLM,
        AutoModelForSequenceClassification,
        AutoTokenizer,
    )

    torch.set_num_threads(1)
    if register is not None:
        importlib.import_module(register)
    options = {"trust_remote_code": False, "local_files_only": True}
    tokenizer = AutoTokenizer.from_pretrained(release, **options)
    options["use_safetensors"] = True
    with open(os.path.join(probes, "probe.json"), encoding="utf-8") as file:
        probe = json.load(file)
    expected = load_file(os.path.join(probes, "expected.safetensors"))
    scores = "scores" in expected
    loader = AutoModelForSequenceClassification if scores else AutoModelForCausalLM
    # In the type of the release once, to see that it loads and writes so; then in float32, which
    # holds every released number exactly.
    model = loader.from_pretrained(release, dtype="auto", **options).eval()
    dtype = str(model.dtype).removeprefix("torch.")
    encoded = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in probe["texts"]]
    rendered: Any = ""
    request: Any = {"input_ids": expected["tokens"]}
    if probe["messages"]:
        prompt = not scores
        rendered = tokenizer.apply_chat_template(
            probe["messages"], tokenize=False, add_generation_prompt=prompt
        )
        request = tokenizer.apply_chat_template(
            probe["messages"], add_generation_prompt=prompt, return_tensors="pt", return_dict=True
        )
    template = probe["chat_template"]
    if isinstance(template, list):
        template = {one["name"]: one["template"] for one in template}
    chat_equal = (
        tokenizer.chat_template == template
        and rendered == probe["rendered"]
        and (not rendered or request["input_ids"][0].tolist() == probe["rendered_ids"])
    )
    generates = scores or generates_more(model, request)
    if any(name.endswith(".qweight") for name, _ in model.named_buffers()):
        # auto-round's class would be cast to float16 if another type were asked for, and rounds
        # the frequencies of positions then. All its numbers are float16, which float32 holds.
        torch.nn.Module.float(model)
    elif dtype != "float32":
        del model  # So that memory holds one model at a time.
        model = loader.from_pretrained(release, dtype=torch.float32, **options).eval()
    written: list[int] = []
    margin = 0.0
    with torch.no_grad():
        if scores:
            difference = compare_scores(model, tokenizer, expected)
        else:
            difference = compare_logits(model, expected)
            written, margin = continue_greedily(model, expected["tokens"], probe["new_tokens"])
    return {
        "model_class": type(model).__name__,
        "dtype": dtype,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "logit_difference": difference,
        "written": written,
        "margin": margin,
        "ids_equal": encoded == probe["ids"],
        "chat_equal": chat_equal,
        "generates": generates,
        "transformers": transformers.__version__,
        "torch": str(torch.__version__),
        "ingot_absent": not {"stages", "artifacts_schema", "flows"} & set(sys.modules),
    }


def generates_more(model: Any, request: Any) -> bool:
    """Whether the model writes something after a prompt."""
    answer = model.generate(**request, max_new_tokens=4, do_sample=False)
    return int(answer.shape[1]) > int(request["input_ids"].shape[1])


def compare_logits(model: Any, expected: Any) -> float:
    """Largest difference of a logit."""
    logits = model(expected["tokens"]).logits.float()
    if "logits" in expected:
        return float((logits - expected["logits"]).abs().max())
    chosen = logits.gather(-1, expected["top_ids"])
    return float((chosen - expected["top_logits"]).abs().max())


def compare_scores(model: Any, tokenizer: Any, expected: Any) -> float:
    """Largest difference of a score: of each sequence alone, and in a batch on either side."""
    import torch

    rows = [row.tolist() for row in expected["tokens"].split(expected["lengths"].tolist())]
    measured = [torch.cat([model(input_ids=torch.tensor([row])).logits[:, 0] for row in rows])]
    for side in ("right", "left"):
        padded = tokenizer.pad({"input_ids": rows}, padding_side=side, return_tensors="pt")
        measured.append(model(**padded).logits[:, 0])
    return max(float((one.float() - expected["scores"]).abs().max()) for one in measured)


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

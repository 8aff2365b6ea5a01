"""Runs under a Python with lm_eval[hf]: what its harness makes of tasks, with a released model.

`python lm_eval_scores.py FOLDER`: `model/` is a folder that transformers loads, `tasks/*.yaml` are
task files that read local JSON, `settings.json` says `runs` (names of tasks, for each evaluation),
`dtype`, `batch_size` and `bos` (whether a text begins with the model's own token). Prints JSON, for
each evaluation: `scores`, by task and document the answers of the model to each request
(log-likelihood, whether greedy; of a rolling one the log-likelihood alone), `metrics`, and CPU
seconds: `model_cpu` of the calls of the model (tokenizing and forward passes), `cpu` of all.
"""

import json
import os
import pathlib
import sys
import time

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TRANSFORMERS_OFFLINE="1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
import transformers
from lm_eval import simple_evaluate
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager
from tokenizers.processors import TemplateProcessing


def open_model(folder, settings):
    """The harness's own class for models of transformers."""
    torch.set_num_threads(1)
    dtype = getattr(torch, settings["dtype"])
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    begin = tokenizer.bos_token
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{begin} $A", special_tokens=[(begin, tokenizer.bos_token_id)]
    )
    return HFLM(
        pretrained=model,
        tokenizer=tokenizer,
        device="cpu",
        batch_size=settings["batch_size"],
        add_bos_token=settings["bos"],
    )


class Timed:
    """A method that adds up the CPU seconds of its calls."""

    def __init__(self, method):
        self.method, self.seconds = method, 0.0

    def __call__(self, *given, **named):
        begin = time.process_time()
        answers = self.method(*given, **named)
        self.seconds += time.process_time() - begin
        return answers


def main(folder):
    settings = json.loads((folder / "settings.json").read_text())
    model = open_model(str(folder / "model"), settings)
    manager = TaskManager(include_path=str(folder / "tasks"), include_defaults=False)
    model.loglikelihood = timed = Timed(model.loglikelihood)
    answers = []
    for tasks in settings["runs"]:
        begin, timed.seconds = time.process_time(), 0.0
        made = simple_evaluate(
            model,
            tasks=tasks,
            task_manager=manager,
            bootstrap_iters=0,
            log_samples=True,
            verbosity="ERROR",
        )
        seconds = {"model_cpu": timed.seconds, "cpu": time.process_time() - begin}
        scores = {}
        for task, samples in made["samples"].items():
            ordered = sorted(samples, key=lambda sample: sample["doc_id"])
            scores[task] = [sample["resps"] for sample in ordered]
        answers.append({"scores": scores, "metrics": made["results"], **seconds})
    print(json.dumps(answers))


main(pathlib.Path(sys.argv[1]))

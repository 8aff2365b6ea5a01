"""Run as a script by a fresh, isolated Python: auto-round chooses the int4 numbers of a model.

Arguments: the folder of the unquantised model, a safetensors file with calibration tokens
(`tokens`, [sequences, length]), the folder to write, inputs of a group, tuning steps of a layer. It
imports nothing of Ingot. It ends with its standard input, so that it does not outlive the stage.
"""

import os
import sys
import threading

os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1", TOKENIZERS_PARALLELISM="false")
SEED = 42
BATCH = 8


def main(model: str, calibration: str, target: str, group: str, steps: str) -> None:
    """Write `config.json` and the weights of the quantised model."""
    import torch
    from auto_round import AutoRound
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)
    tokens_BL = load_file(calibration)["tokens"]
    options = {"trust_remote_code": False, "local_files_only": True}
    rounding = AutoRound(
        AutoModelForCausalLM.from_pretrained(model, dtype="auto", use_safetensors=True, **options),
        AutoTokenizer.from_pretrained(model, **options),
        scheme="W4A16",
        group_size=int(group),
        sym=True,
        iters=int(steps),
        dataset=list(tokens_BL.split(1)),
        nsamples=len(tokens_BL),
        seqlen=tokens_BL.shape[1],
        batch_size=min(BATCH, len(tokens_BL)),
        seed=SEED,
        device_map="cpu",
        enable_torch_compile=False,
    )
    rounding.quantize_and_save(target, format="auto_round")


def end_with_input() -> None:
    """End this process when its standard input ends."""
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=end_with_input, daemon=True).start()
    main(*sys.argv[1:])

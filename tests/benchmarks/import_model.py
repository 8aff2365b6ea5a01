"""What importing a model costs beside `transformers` loading and saving it: CPU seconds, memory.

    python -m tests.benchmarks.import_model [--preset smollm2-360m]

Random weights of a published shape in bfloat16, made in a temporary folder. Each side runs in a
process of its own, on one thread. Both write the same weights in bfloat16, which is checked; Ingot
hashes what it reads and what it writes as well.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

SIDES = ("ingot", "transformers")


def publish(folder: Path, name: str) -> None:
    """A folder as the Hub has it."""
    import torch
    from safetensors.torch import save_file

    from stages.model.config import preset
    from stages.model.decoder import Decoder
    from stages.model.huggingface.families import to_config, to_weights

    config = preset(name).with_vocabulary(49152)
    with torch.device("meta"):
        model = Decoder(config)
    model = model.to_empty(device="cpu")
    for weight in model.parameters():
        weight.data.normal_(0, 0.02)
    folder.mkdir()
    weights = {key: weight.bfloat16() for key, weight in to_weights(model).items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(to_config(config, bos=0, eos=1, pad=2)))


def ingot(published: Path, work: Path) -> Path:
    """By the stage, from a pinned snapshot; returns the safetensors file it wrote."""
    from artifacts_schema.store import Store
    from flows.recipe.recipe import snapshot_entry
    from flows.recipe.snapshots import take_snapshot
    from stages.engine import Input
    from stages.engine.protocol import register
    from stages.engine.runner import run_stage
    from stages.engine.spec import StageSpec
    from stages.import_model.stage import ImportModel

    store = Store.open(str(work / "store"))
    taken = take_snapshot(store, snapshot_entry("model", {"files": [str(published)]}, "model"))
    given = {"snapshot": [store.reference(taken, "snapshot")]}
    spec = StageSpec.make(register(ImportModel), {}, given, {"workers": 1})
    made = run_stage(store, spec).manifest
    return Input.from_manifest(store, made, "checkpoint", full_check=False).local_path(
        "model.safetensors"
    )


def transformers(published: Path, work: Path) -> Path:
    """Load in the type of the files, save."""
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(published, dtype="auto")
    model.save_pretrained(work / "saved")
    return work / "saved" / "model.safetensors"


def peak_memory() -> int:
    """Bytes; `ru_maxrss` of a child begins with what its parent had when it was started."""
    status = Path("/proc/self/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


def measured(side: str, published: Path, work: Path) -> dict[str, object]:
    """Run one side here; what it took, and where its weights lie."""
    written = {"ingot": ingot, "transformers": transformers}[side](published, work)
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "memory_mb": round(peak_memory() / 1e6),
        "file": str(written),
    }


def equal(ours: Path, theirs: Path) -> bool:
    """Whether both files hold the same numbers."""
    import torch
    from safetensors.torch import load_file

    from stages.model.huggingface.families import from_weights, to_config, to_weights

    weights = load_file(theirs)
    values = json.loads((theirs.parent / "config.json").read_text())
    model = from_weights(values, weights, where="theirs")
    own = load_file(ours)
    assert to_config(model.config, bos=0, eos=1, pad=2)["model_type"] == values["model_type"]
    assert len(to_weights(model)) == len(own)
    return all(
        torch.equal(weight, own[name].float()) for name, weight in model.state_dict().items()
    )


def main() -> None:
    """Print both sides and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="smollm2-360m")
    parser.add_argument("--side", choices=SIDES)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    if given.side:
        print(json.dumps(measured(given.side, given.folder / "published", given.folder)))
        return
    with tempfile.TemporaryDirectory() as folder:
        publish(Path(folder) / "published", given.preset)
        found = {}
        for side in SIDES:
            command = [sys.executable, "-m", __spec__.name, "--side", side, "--folder", folder]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found[side] = json.loads(done.stdout.strip().splitlines()[-1])
            print(side, {key: value for key, value in found[side].items() if key != "file"})
        same = equal(*(Path(found[side]["file"]) for side in SIDES))
        print("weights are equal" if same else "WEIGHTS DIFFER")
        sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()

"""Where lm-eval is not installed, one error names the extra, and nothing of it is imported."""

import subprocess
import sys

import pytest

from artifacts_schema.errors import UsageError
from stages.harness import library
from stages.harness.config import HarnessConfig
from stages.harness.stage import Harness


def test_a_plan_names_the_extra_that_is_absent(monkeypatch):
    monkeypatch.setattr(library, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"ingot\[harness\]"):
        Harness.check_plan(HarnessConfig(tasks=("x",)), {})


def test_stages_are_loaded_without_lm_eval():
    code = (
        "import sys, stages.harness.stage, stages.harness.library, stages.harness.scores, "
        "stages.harness.result_files, stages.harness.task_files; "
        "print(sorted({'lm_eval', 'datasets', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

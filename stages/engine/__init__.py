"""What every stage rests on: protocol, context, runner, resumable shard map, launch."""

from stages.engine.context import Context
from stages.engine.inputs import Input, Shard, check_bad_share
from stages.engine.outputs import LeftFile, Milestone, ShardOutput, ShardResult
from stages.engine.protocol import (
    Inputs,
    Many,
    Maybe,
    One,
    Role,
    Stage,
    Upstream,
    check_all,
    source_names,
)

__all__ = [
    "Context", "Input", "Inputs", "LeftFile", "Many", "Maybe", "Milestone", "One", "Role",
    "Shard", "ShardOutput", "ShardResult", "Stage", "Upstream", "check_all", "check_bad_share",
    "source_names",
]  # fmt: skip

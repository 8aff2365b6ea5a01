"""What every stage rests on: protocol, context, runner, resumable shard map, launch."""

from stages.engine.bad_records import check_bad_share
from stages.engine.context import Context
from stages.engine.inputs import Input, Shard
from stages.engine.interim import Milestone
from stages.engine.outputs import LeftFile, ShardOutput, ShardResult
from stages.engine.protocol import Many, Maybe, One, Role, Stage
from stages.engine.upstream import Inputs, Upstream, all_problems, sources_of

__all__ = [
    "Context",
    "Input",
    "Inputs",
    "LeftFile",
    "Many",
    "Maybe",
    "Milestone",
    "One",
    "Role",
    "Shard",
    "ShardOutput",
    "ShardResult",
    "Stage",
    "Upstream",
    "all_problems",
    "check_bad_share",
    "sources_of",
]

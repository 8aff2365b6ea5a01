"""Settings of `teacher`."""

from __future__ import annotations

from pydantic import Field

from artifacts_schema.config import Config


class TeacherConfig(Config):
    """What is kept of the teacher's distributions."""

    top: int = Field(
        default=32,
        ge=1,
        le=4096,
        description="Likeliest tokens on record; eight bytes each, for every token of the shards.",
    )

"""Settings of `sample`."""

from __future__ import annotations

from pydantic import Field

from artifacts_schema.config import Config


class Planted(Config):
    """How many records of the whole crawl carry each defect."""

    near_duplicate: int = Field(
        default=8, ge=0, description="Copies with a banner and a few changed words."
    )
    exact_duplicate: int = Field(
        default=4, ge=0, description="Copies with the same content at another address."
    )
    boilerplate: int = Field(default=4, ge=0, description="Pages of links and nothing else.")
    garbled: int = Field(default=4, ge=0, description="Pages whose words are unreadable.")
    repetition: int = Field(default=4, ge=0, description="Pages that repeat a few sentences.")
    personal_data: int = Field(
        default=6, ge=0, description="Pages with invented e-mail and public IP addresses."
    )
    benchmark_leak: int = Field(
        default=6, ge=0, description="Pages with the text of a benchmark item pasted in."
    )
    broken_record: int = Field(
        default=8, ge=0, description="Records that cannot become documents, each in another way."
    )


class SampleConfig(Config):
    """What the sample holds."""

    python_version: str | None = Field(
        default=None,
        pattern=r"^\d+\.\d+\.\d+\S*$",
        description="Version of the Python that is documented; the plan fills in the running one.",
    )
    seed: int = Field(default=0, ge=0, description="Of what is planted where and asked how.")
    share: float = Field(
        default=1.0, gt=0, le=1, description="Share of the modules and of the planted records."
    )
    crawl_files: int = Field(default=4, ge=1, le=1000, description="WARC files of the crawl.")
    decoys: int = Field(
        default=6, ge=0, description="Pages that share a long notice without being duplicates."
    )
    planted: Planted = Field(default=Planted(), description="Defects planted in the crawl.")
    max_bad_share: float = Field(
        default=0.1, ge=0, le=1, description="Share of modules that this Python may lack."
    )

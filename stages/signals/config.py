"""Settings of `signals`: which signals are measured, and how text is split and redacted."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from artifacts_schema.config import Config
from stages.text.splitters import LANGUAGE_LIBRARIES, UNSUPPORTED

STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")
"""Gopher's English list."""

Group = Literal["dclm", "guide", "periodic", "phrases", "redpajama-v2"]
GROUPS: tuple[Group, ...] = ("dclm", "guide", "periodic", "phrases", "redpajama-v2")

LineView = Literal["c4@code", "c4@datatrove", "c4@fineweb", "refinedweb"]
LINE_VIEWS: tuple[LineView, ...] = ("c4@code", "c4@datatrove", "c4@fineweb", "refinedweb")

PHONE_REGIONS = (
    *("US", "CA", "BR", "MX", "AR", "CL", "CO", "PE"),
    *("GB", "IE", "DE", "AT", "CH", "LU", "FR", "BE", "NL", "IT", "ES", "PT"),
    *("SE", "NO", "DK", "FI", "PL", "CZ", "SK", "HU", "RO", "BG", "HR", "RS", "GR", "TR"),
    *("RU", "UA", "KZ", "IL", "EG", "SA", "AE", "MA", "ZA", "NG", "KE"),
    *(
        "AU",
        "NZ",
        "IN",
        "PK",
        "BD",
        "CN",
        "HK",
        "TW",
        "JP",
        "KR",
        "SG",
        "MY",
        "ID",
        "PH",
        "TH",
        "VN",
    ),
)
"""Countries whose national numbers are found by their form, or by a word of calling near them."""

_NAME = r"^[a-z][a-z0-9_]*$"


class PersonalDataConfig(Config):
    """Which phone numbers are found, and what replaces personal data."""

    phone_regions: tuple[str, ...] = Field(
        default=PHONE_REGIONS,
        description="Countries (ISO 3166) whose national phone numbers are found by their form, or "
        "by a word of calling near them; named and international ones are found in any case.",
    )
    replacement: Literal["examples", "tags"] = Field(
        default="examples",
        description="What replaces a value: one of the examples reserved for its sort, the same "
        "for the same value, or a tag such as <EMAIL>.",
    )

    @field_validator("phone_regions")
    @classmethod
    def _are_known(cls, regions: tuple[str, ...]) -> tuple[str, ...]:
        from phonenumbers import SUPPORTED_REGIONS

        unknown = sorted(set(regions) - set(SUPPORTED_REGIONS))
        if unknown:
            raise ValueError(f"no countries that libphonenumber knows: {', '.join(unknown)}")
        return regions


class PublishedClassifier(Config):
    """A fastText classifier from outside, a file of a snapshot in `published_models`."""

    name: str = Field(pattern=_NAME, description="Its signal is `<name>_score`.")
    file: str = Field(min_length=1, description="Name of the file in its snapshot.")
    label: str = Field(
        min_length=1, description="The label whose probability is the score, without `__label__`."
    )
    lower_case: bool = Field(default=False, description="Put text in lower case first.")


class PublishedNgramModel(Config):
    """An n-gram model from outside, a file of a snapshot in `published_models`."""

    file: str = Field(
        min_length=1, description="An ARPA file (.gz, .zst), or a `.bin` of kenlm (extra `kenlm`)."
    )
    language: str | None = Field(
        default=None, description="Documents it scores; null: those no other model scores."
    )
    pieces: str | None = Field(
        default=None, description="SentencePiece model of its tokens; null: words."
    )
    cutoffs: tuple[float, float] | None = Field(
        default=None, description="Perplexities where the middle and the tail begin."
    )


class SignalsConfig(Config):
    """What is measured."""

    splitter: Literal["unicode", "spacy_english"] = Field(
        default="unicode",
        description="What splits words: Unicode's rules in every script, or exactly as spaCy's "
        "English tokenizer does, with which published English rules were computed.",
    )
    language_splitters: tuple[str, ...] = Field(
        default=(),
        description="Languages (`zh`, as lid.176 names them) whose words are split by the library "
        "that FineWeb-2 used for them as well (extra `splitters`): the signals `…@fineweb-2`.",
    )
    stop_words: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        default=STOP_WORDS,
        description="Words that ordinary text holds; by default Gopher's eight English ones.",
    )
    groups: tuple[Group, ...] = Field(
        default=GROUPS, description="Signals that are measured beside those of every run."
    )
    line_rules: tuple[LineView, ...] = Field(
        default=LINE_VIEWS,
        description="Published line rules that are run as views, with signals of what they leave.",
    )
    personal_data: PersonalDataConfig = Field(
        default=PersonalDataConfig(), description="How personal data is found and replaced."
    )
    language_characters: int = Field(
        default=1000,
        ge=1,
        description="Characters from the beginning by which a language model judges a text.",
    )
    published_classifiers: tuple[PublishedClassifier, ...] = Field(
        default=(), description="fastText models among `published_models`, each a signal."
    )
    published_ngram_models: tuple[PublishedNgramModel, ...] = Field(
        default=(), description="n-gram models among `published_models`."
    )

    @field_validator("language_splitters")
    @classmethod
    def _have_libraries(cls, languages: tuple[str, ...]) -> tuple[str, ...]:
        for language in languages:
            if language in UNSUPPORTED:
                library = UNSUPPORTED[language]
                raise ValueError(f"'{language}' was split by {library}: not supported")
            if language not in LANGUAGE_LIBRARIES:
                known = " ".join(sorted(LANGUAGE_LIBRARIES))
                raise ValueError(f"no splitter for '{language}'; there are: {known}")
        return tuple(sorted(set(languages)))

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        for field, values in (("groups", self.groups), ("line_rules", self.line_rules)):
            if len(set(values)) < len(values):
                raise ValueError(f"{field} names one twice: {', '.join(values)}")
        names = [model.name for model in self.published_classifiers]
        if len(set(names)) < len(names):
            raise ValueError(f"published_classifiers has one name twice: {', '.join(names)}")
        return self

"""What clients of OpenAI's protocol send, checked: fields, limits, and what is not done here.

Fields that would change the answer and are not known are refused by name, never ignored.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from flows.serving.comparison import Choice

MOST_STOPS, MOST_STOP_CHARACTERS = 4, 256
_DEFAULT_TOKENS = 256

Stop = Annotated[str, StringConstraints(min_length=1, max_length=MOST_STOP_CHARACTERS)]
_WITHOUT_EFFECT = {
    "user", "store", "metadata", "service_tier", "parallel_tool_calls", "safety_identifier",
    "prompt_cache_key",
}  # fmt: skip
"""Fields that clients send and that change no answer."""
_AS_DEFAULT: dict[str, tuple[Any, ...]] = {
    "n": (1,), "best_of": (1,), "echo": (False,), "presence_penalty": (0,),
    "frequency_penalty": (0,), "logit_bias": ({},), "logprobs": (False,), "suffix": ("",),
    "response_format": ({"type": "text"},), "top_logprobs": (0,),
}  # fmt: skip
"""Fields that are taken with these values (or null) alone."""


class StreamOptions(BaseModel):
    """What a stream holds besides its pieces."""

    model_config = ConfigDict(extra="forbid")

    include_usage: bool = False
    include_obfuscation: bool = False


class Body(BaseModel):
    """What both kinds of requests have."""

    model_config = ConfigDict(extra="allow")

    model: str = ""
    temperature: float = Field(default=0.7, ge=0, le=10)
    top_p: float = Field(default=0.95, ge=0, le=1)
    top_k: int | None = Field(default=None, ge=1)
    min_p: float = Field(default=0.0, ge=0, le=1)
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    stop: Stop | Annotated[list[Stop], Field(max_length=MOST_STOPS)] | None = None
    max_tokens: int = Field(default=_DEFAULT_TOKENS, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()

    @model_validator(mode="before")
    @classmethod
    def _nulls_are_defaults(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            raise ValueError("the body is no JSON object")
        return {name: value for name, value in values.items() if value is not None}

    @model_validator(mode="after")
    def _only_what_is_done(self) -> Body:
        for name, value in (self.model_extra or {}).items():
            if name in _WITHOUT_EFFECT or value in _AS_DEFAULT.get(name, ()):
                continue
            allowed = _AS_DEFAULT.get(name)
            words = f"{name} is {allowed[0]!r} here" if allowed else f"{name} is not known here"
            raise ValueError(words)
        return self

    @property
    def most(self) -> int:
        """New tokens at most."""
        return self.max_completion_tokens or self.max_tokens

    @property
    def stops(self) -> list[str]:
        """Texts that end an answer."""
        return [self.stop] if isinstance(self.stop, str) else list(self.stop or ())


class CompletionBody(Body):
    """`/v1/completions`: one text to continue."""

    prompt: str | Annotated[list[str], Field(min_length=1, max_length=1)]

    @property
    def text(self) -> str:
        """The prompt."""
        return self.prompt if isinstance(self.prompt, str) else self.prompt[0]


class TextPart(BaseModel):
    """A part of a message's content; images and sounds are refused."""

    type: Literal["text"]
    text: str


class FunctionCall(BaseModel):
    """What an assistant called."""

    name: str
    arguments: str = "{}"


class ToolCall(BaseModel):
    """A call, as the protocol has it."""

    id: str | None = None
    type: Literal["function"] = "function"
    function: FunctionCall


class ChatMessage(BaseModel):
    """A message, as the protocol has it."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[TextPart] | None = None
    name: str | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    refusal: str | None = None

    def plain(self) -> dict[str, Any]:
        """As chat templates read it."""
        content = self.content or ""
        if not isinstance(content, str):
            content = "".join(part.text for part in content)
        role = "system" if self.role == "developer" else self.role
        message: dict[str, Any] = {"role": role, "content": content}
        if self.tool_calls:
            message["tool_calls"] = [
                {"id": one.id, "name": one.function.name, "arguments": one.function.arguments}
                for one in self.tool_calls
            ]
        if self.tool_call_id:
            message["tool_call_id"] = self.tool_call_id
        return message


class ChatBody(Body):
    """`/v1/chat/completions`: a conversation to answer."""

    messages: list[ChatMessage] = Field(min_length=1, max_length=1000)
    tools: list[dict[str, Any]] | None = Field(default=None, max_length=128)
    tool_choice: Literal["auto", "none"] = "auto"
    """`none`: the tools are not shown to the model."""


class ChoiceBody(BaseModel):
    """`/compare/choices`: which of two answers somebody chose."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(max_length=64)
    choice: Choice
    who: str = Field(default="", max_length=200)
    """Empty: the user who started the server."""

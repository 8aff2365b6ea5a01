"""Run as a script by an isolated Python: a chat template rendered by `transformers`, with limits.

Reads one JSON object from stdin (`template`, `messages`, `tokens`), prints one (`rendered`, or
`failed`). Imports nothing of Ingot; memory, time and the length of the text are limited.
"""

import datetime
import json
import os
import resource
import sys
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", USE_TORCH="0")

MEMORY, SECONDS, CHARACTERS = 4 * 2**30, 20, 1_000_000


class FixedDate:
    """Stands for `datetime` inside a template: 26 July 2024, the date that Llama 3.1's falls to."""

    @staticmethod
    def now() -> datetime.datetime:
        """Always the same moment."""
        return datetime.datetime(2024, 7, 26)


def main(request: dict[str, Any]) -> str:
    """Render; the prompt ends where the assistant begins to speak."""
    import transformers.utils.chat_template_utils as library

    vars(library)["datetime"] = FixedDate
    rendered: str = library.render_jinja_template(
        [request["messages"]],
        chat_template=request["template"],
        add_generation_prompt=True,
        **request["tokens"],
    )[0][0]
    if len(rendered) > CHARACTERS:
        raise ValueError(f"it gives {len(rendered):,} characters, more than {CHARACTERS:,}")
    return rendered


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        print(json.dumps({"rendered": main(json.load(sys.stdin))}))
    except MemoryError:
        print(json.dumps({"failed": "it takes more memory than it may"}))
    except Exception as error:
        print(json.dumps({"failed": f"{type(error).__name__}: {error}"}))

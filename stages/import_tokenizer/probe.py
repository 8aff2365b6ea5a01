"""Run as a script by an isolated Python: what a tokenizer.json makes of a fixed list of texts.

Argument: the file. Prints one JSON object. Imports nothing of Ingot; memory and time are limited.
"""

import json
import os
import resource
import sys

os.environ.update(TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1")

MEMORY, SECONDS = 16 * 2**30, 240

TEXTS = (
    "The quick brown fox jumps over the lazy dog.",
    " leading and trailing ",
    "two  spaces,   three\tand\ttabs\n\n\nlines\r\nof another\rkind \n ",
    "def f(x):\n\treturn  x ** 2   # it's 1,000,000 or 0x1F\n",
    "0 12 345 6789 3.14159",
    "naïve café, Übergröße, ﬁne ½ Ⅷ ① ™",
    "e\u0301 and \u00e9, A\u030a and \u00c5, \uac00 and \u1100\u1161",
    "Привет, мир! Γειά σου. שלום مرحبا नमस्ते สวัสดี",
    "你好，世界。こんにちは、ｶﾀｶﾅ。안녕하세요.",
    "👩‍👩‍👧 🏳️‍🌈 𝒳 🇩🇪",
    "zero\u200bwidth, non\u00a0breaking, soft\u00adhyphen, \ufeff, \u2028, \u3000.",
    "\x00 \x01 \x1b[0m \x7f \ufffd \ufffe \U0010fffd",
    "UPPER lower Title MiXeD ß ẞ İ ı",
    "<s> </s> <unk> [CLS] [SEP] ▁ Ġ Ċ ##x @@ <0x0A>",
    "",
)


def main(path: str) -> dict[str, object]:
    """Load, encode and decode."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    lost = []
    for text in TEXTS:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        if tokenizer.decode(ids, skip_special_tokens=False) != text:
            lost.append(text)
    special = []
    for index, token in sorted(tokenizer.get_added_tokens_decoder().items()):
        texts = (token.content, f"a{token.content}b", f" {token.content} ")
        encodings = (tokenizer.encode(text, add_special_tokens=False).ids for text in texts)
        if token.special and any(index in ids for ids in encodings):
            special.append(token.content)
    return {"lost": lost, "special": special}


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        print(json.dumps(main(sys.argv[1])))
    except MemoryError:
        print(json.dumps({"failed": "it takes more memory than it may"}))
    except BaseException as error:  # A panic of the library is no Exception.
        print(json.dumps({"failed": f"{type(error).__name__}: {error}"}))

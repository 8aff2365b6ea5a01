"""C4's rules on the text that its line rules leave; those rules themselves are views.

The sentences, braces and fillers are those of the lines that stay, so each preset has signals of
its own view: `c4@code` needs 5 words a line and 3 sentences, as the code does that made the corpus;
`c4@datatrove` needs 3 words and 5 sentences, as the paper's first version says; `c4@fineweb` is the
same but asks no line for an end mark.
"""

from __future__ import annotations

from stages.filter.presets.rule import Rule

_CODE = "Raffel et al. 2020 (arXiv 1910.10683); tensorflow-datasets text/c4_utils.py"
_DATATROVE = "Raffel et al. 2020, section 2.2; datatrove c4_filters.py"
_FINEWEB = "datatrove examples/fineweb.py: C4 without terminal punctuation"
_MULTILINGUAL = "Xue et al. 2021 (mC4, arXiv 2010.11934), section 3.1; datatrove C4ParagraphFilter"


def _line_rules(view: str, source: str, sentences: int) -> tuple[Rule, ...]:
    implementation = view.split("@")[1]
    return (
        Rule(f"c4_lorem_ipsum@{implementation}", f"{view}/lorem_ipsum_lines", source, maximum=0),
        Rule(f"c4_curly_braces@{implementation}", f"{view}/curly_brace_lines", source, maximum=0),
        Rule(f"c4_few_sentences@{implementation}", f"{view}/sentences", source, minimum=sentences),
    )


FINEWEB = _line_rules("c4@fineweb", _FINEWEB, 5)

PRESETS = {
    "c4@code": (
        Rule("c4_long_page", "characters", _CODE, maximum=190_000),
        *_line_rules("c4@code", _CODE, 3),
    ),
    "c4@datatrove": _line_rules("c4@datatrove", _DATATROVE, 5),
    "c4@fineweb": FINEWEB,
    "c4_bad_words": (Rule("c4_bad_words", "bad_words", _CODE, maximum=0),),
    "mc4": (Rule("mc4_few_long_lines", "lines_of_200_characters", _MULTILINGUAL, minimum=3),),
}

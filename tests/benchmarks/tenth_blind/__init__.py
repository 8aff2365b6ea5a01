"""The tenth blind set of labelled texts for redaction, seeds from 27001 on.

Its writer knew neither the rules of `stages.signals` nor the texts and makers of the earlier sets.
The form of a template and what counts as a value of each kind are those of the sixth set
(sixth_blind/__init__.py); what the ninth set leaves out as arguable is in no text here either.

The forms of personal data and of all hard negatives, and their weights, come from a count of public
code and pages: FORMS.md states what was counted, which form has how many occurrences, and which
forms are in no text. Nobody searched for credentials; the weights of their positives are set by
hand. No text is a copy: people, firms, names and values are drawn.
"""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.blind_set import BlindSet, Maker
from tests.benchmarks.tenth_blind.keys import KEY_MAKERS
from tests.benchmarks.tenth_blind.names import NAME_MAKERS, name_other, name_secret
from tests.benchmarks.tenth_blind.personal import PERSONAL_MAKERS
from tests.benchmarks.tenth_blind.services import SERVICE_MAKERS
from tests.benchmarks.tenth_blind.words import FILLERS

MAKERS: dict[str, Maker] = {
    **FILLERS,
    **PERSONAL_MAKERS,
    **KEY_MAKERS,
    **SERVICE_MAKERS,
    **NAME_MAKERS,
}

SET = BlindSet("tenth", Path(__file__).with_name("texts"), MAKERS, name_secret, name_other)

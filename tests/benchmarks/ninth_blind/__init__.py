"""The ninth blind set of labelled texts for redaction, seeds from 24001 on.

Its writer knew neither the rules of `stages.signals` nor the texts and makers of the earlier sets.
The form of a template and what counts as a value of each kind are those of the sixth set
(sixth_blind/__init__.py). Each label is made together with its text. A value that an engineer could
call either way is in no text, as positive or as negative: the eighth set's list, and addresses of
the fediverse or XMPP, the token of jwt.io, bare UUIDs as keys.

The texts are README files, wiki pages, forum posts, chats, e-mails, tickets, invoices, CVs, legal
notices, logs, CSV, source code and configuration, in English and some twenty other languages.
"""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.blind_set import BlindSet, Maker
from tests.benchmarks.ninth_blind.credentials import CREDENTIAL_MAKERS
from tests.benchmarks.ninth_blind.keys import KEY_MAKERS
from tests.benchmarks.ninth_blind.names import NAME_MAKERS, name_other, name_secret
from tests.benchmarks.ninth_blind.personal import PERSONAL_MAKERS
from tests.benchmarks.ninth_blind.services import SERVICE_MAKERS
from tests.benchmarks.ninth_blind.words import FILLERS

MAKERS: dict[str, Maker] = {
    **FILLERS,
    **PERSONAL_MAKERS,
    **KEY_MAKERS,
    **SERVICE_MAKERS,
    **CREDENTIAL_MAKERS,
    **NAME_MAKERS,
}

SET = BlindSet(
    "ninth", Path(__file__).with_name("texts"), MAKERS, name_secret, name_other, in_turn=True
)

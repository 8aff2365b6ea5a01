"""The seventh blind set of labelled texts for redaction, seeds from 18001 on.

Its writer knew neither the rules of `stages.signals` nor the texts of the earlier sets. The form of
a template and what counts as a value of each kind are those of the sixth set
(sixth_blind/__init__.py). Each label is made together with its text. A value that an engineer could
call either way is in no text, as positive or as negative: AWS access key ids, public resolvers,
ranges of public addresses, tokens without a signature.

The texts are README files, forum posts, chats, e-mails, tickets, invoices, logs, tables, source
code and configuration, in English and other languages.
"""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.blind_set import BlindSet, Maker
from tests.benchmarks.seventh_blind.credentials import CREDENTIAL_MAKERS
from tests.benchmarks.seventh_blind.names import NAME_MAKERS, name_other, name_secret
from tests.benchmarks.seventh_blind.personal import PERSONAL_MAKERS
from tests.benchmarks.seventh_blind.words import FILLERS

MAKERS: dict[str, Maker] = {**FILLERS, **PERSONAL_MAKERS, **CREDENTIAL_MAKERS, **NAME_MAKERS}

SET = BlindSet("seventh", Path(__file__).with_name("texts"), MAKERS, name_secret, name_other, 0.7)

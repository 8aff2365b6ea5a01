"""The sixth blind set of labelled texts for redaction, seeds from 15001 on.

Its writer knew neither the rules of `stages.signals` nor the texts of the earlier sets. Each label is
made together with its text. A value that an engineer could call either way is in no text, as positive
or as negative; an odd writing is drawn less often than an ordinary one.

What counts as a value, by kind:

- `email`: an address written with `@` at which a person or an office gets mail, role addresses
  included; not one of a reserved or placeholder domain (RFC 2606, yourdomain.com), a Message-ID, an
  ssh login or git remote, a package with its version, a handle, a decorator or a file name.
- `phone`: a number in a writing of its country at which a person or an office answers, fax included;
  not a number reserved for fiction, a short emergency number, a mask, or an identifier, date,
  coordinate, price or count that has as many digits.
- `ip`: the public IPv4 or IPv6 address of one machine or visitor; not a private, loopback, link-local,
  multicast or documentation address (RFC 1918, 5737, 3849), a netmask, a version, an OID, a MAC
  address or a fingerprint.
- `card`: a card number with an issuer's first digits, its length and a right Luhn digit; not a
  published test number, a mask, an IMEI, ICCID or tracking number, or a number that fails the check.
- `iban`: an IBAN with the length of its country and right check digits; not a published example, a
  mask, a VAT, creditor or product number, or one that fails the check.
- `jwt`: a signed token of three parts that decode; not the example of RFC 7519 or jwt.io, a header
  alone, a shortened token, or other base64 of JSON (cursors, source maps).
- `private_key`: the body of a private key, in PEM, OpenSSH, PGP or PuTTY form, or one named as age,
  WireGuard or wallet key; not a public key, certificate, signature, or a block without a body.
- `provider_key`: a key or token of a service in its published form, or one without a form whose name
  says what it is, webhook addresses by their path; not a placeholder, mask, prefix or pattern, a
  reference to where the key is kept, a key that is published by design (pk_live_), an object's id, a
  digest or a UUID.
- `connection`: the password or account key inside a URL, DSN or connection call; not a placeholder, a
  reference, a mask, or the default login of a local test database (postgres:postgres, guest:guest).
- `password`: a password or secret of an application that somebody chose or generated, by its value;
  not a placeholder (changeme, password), a reference, a mask, a label, a rule, a path or a type.
- `bearer`: the credential in an HTTP header or an access token in an answer or a query, for Basic its
  base64; not a placeholder, a reference, an example of an RFC, a challenge of a server, or prose.
- `broken_token`: each part of a service's key or JWT that is broken over lines or string parts; not a
  digest, image, certificate, public key, signature, placeholder or prose that is broken the same way.
"""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.blind_set import BlindSet, Maker
from tests.benchmarks.sixth_blind.credentials import CREDENTIAL_MAKERS
from tests.benchmarks.sixth_blind.names import name_other, name_secret
from tests.benchmarks.sixth_blind.personal import PERSONAL_MAKERS
from tests.benchmarks.sixth_blind.words import FILLERS

MAKERS: dict[str, Maker] = {**FILLERS, **PERSONAL_MAKERS, **CREDENTIAL_MAKERS}

SET = BlindSet("sixth", Path(__file__).with_name("texts"), MAKERS, name_secret, name_other, 0.6)

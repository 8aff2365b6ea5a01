"""Rules that drop documents for the personal data and secrets that were found in them."""

from __future__ import annotations

from stages.filter.presets.rule import Rule

_SOURCE = "Ingot: `personal_data` of the config"

BY_LABEL = {
    label: Rule(f"personal_data_{label}", signal, _SOURCE, maximum=0)
    for label, signal in (
        ("email", "email_count"),
        ("ip_address", "ip_count"),
        ("phone", "phone_count"),
        ("iban", "iban_count"),
        ("card", "card_count"),
        ("secret", "secret_count"),
    )
}
"""By the sort of data; no preset: the config says which of them hold."""

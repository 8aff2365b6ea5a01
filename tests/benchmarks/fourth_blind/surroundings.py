"""Neutral sentences and log lines around a text, in twelve languages; they hold no value."""

from __future__ import annotations

import random

SENTENCES: dict[str, tuple[str, ...]] = {
    "en": (
        "I have been on this since Tuesday and still see the same result.",
        "Thanks for the quick answer, the second suggestion worked.",
        "Does anybody else see this after the upgrade?",
        "We moved the old pages to the archive last autumn.",
        "Sorry for the long post.",
    ),
    "de": (
        "Vielen Dank für die schnelle Antwort.",
        "Seit dem Umzug läuft alles etwas langsamer.",
        "Unsere Werkstatt liegt direkt hinter dem Bahnhof.",
    ),
    "fr": (
        "Merci d'avance pour votre aide.",
        "Le magasin est fermé le lundi matin.",
        "Nous avons déménagé au printemps.",
    ),
    "es": (
        "Gracias de antemano por la ayuda.",
        "La oficina cierra los viernes por la tarde.",
        "Desde ayer no funciona nada.",
    ),
    "it": (
        "Grazie mille per la risposta.",
        "Il negozio resta chiuso ad agosto.",
        "Siamo vicino alla stazione.",
    ),
    "pt": ("Obrigado pela ajuda.", "A loja fecha aos domingos.", "Mudámos de sede em março."),
    "nl": (
        "Alvast bedankt voor de hulp.",
        "De winkel is op maandag gesloten.",
        "We zijn vorig jaar verhuisd.",
    ),
    "pl": (
        "Z góry dziękuję za pomoc.",
        "Biuro jest czynne od poniedziałku.",
        "Po aktualizacji nic nie działa.",
    ),
    "ru": (
        "Заранее спасибо за помощь.",
        "Магазин закрыт по воскресеньям.",
        "После обновления всё сломалось.",
    ),
    "tr": (
        "Yardımınız için teşekkürler.",
        "Ofisimiz pazartesi açıktır.",
        "Dün taşındık.",
    ),
    "ja": (
        "よろしくお願いいたします。",
        "月曜日は定休日です。",
        "昨年、駅前に移転しました。",
    ),
    "zh": ("谢谢大家的帮助。", "周一不营业。", "去年我们搬到了车站旁边。"),
    "ko": ("미리 감사드립니다.", "월요일은 쉽니다.", "작년에 역 앞으로 이전했습니다."),
    "sv": (
        "Tack på förhand för hjälpen.",
        "Butiken är stängd på måndagar.",
        "Vi flyttade i våras.",
    ),
}

LOG_LINES = (
    "INFO worker started, 4 threads",
    "DEBUG cache miss, reading from disk",
    "INFO migration finished in 812 ms",
    "WARN queue is longer than usual",
    "INFO shutting down",
)


def surround(text: str, place: str, rng: random.Random) -> tuple[str, int]:
    """The text with neutral lines around it, and how far it moved."""
    if place == "log":
        lines: tuple[str, ...] = LOG_LINES
        joint = "\n"
    elif place.startswith("prose."):
        lines = SENTENCES[place.removeprefix("prose.")]
        joint = rng.choice(("\n", "\n\n", "\r\n"))
    else:
        return text, 0
    before = "".join(line + joint for line in rng.sample(lines, rng.randint(0, 2)))
    after = "".join(joint + line for line in rng.sample(lines, rng.randint(0, 2)))
    return before + text + after, len(before)

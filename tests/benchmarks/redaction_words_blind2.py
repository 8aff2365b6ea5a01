"""Word lists of the second blind set for redaction: names, places, domains, forms of accounts."""

from __future__ import annotations


def _split(text: str) -> list[str]:
    return text.split()


FIRST_NAMES = _split("""
    Anna Marek Sofia Liam Yusuf Ingrid Paolo Chidi Mei Hiroshi Priya Lukas Claire Diego Olena
    Omar Katarzyna Jonas Emily Tomasz Fatima Rahul Beatriz Sven Noa Thabo Linh Agnes Pedro
    Zeynep Ivan Maja Kwame Elena Seamus Aino Viktor Camille Andrei Nadia
""")
LAST_NAMES = _split("""
    Novak Kowalski Fernandes Okafor Tanaka Schuster Moreau Rossi Lindgren Petrov Yilmaz Iyer
    Nguyen Walsh Jansen Horvath Ibrahim Silva Delgado Bergstrom Hughes Papadakis Mokoena Weber
    Costa Dubois Ahmed Kim Santos Virtanen Marshall Popescu Shevchenko Baker Castillo Haddad
    Olsen Brandt Chen
""")
WORDS = _split("""
    atlas billing candle dragonfly ember falcon garden harbor indigo juniper kettle lantern
    meadow nimbus orchard pepper quartz raven saffron tundra umbra velvet walnut yarrow zephyr
    reports gateway crawler notifier inventory planner scheduler renderer importer dashboard
    catalog weather metrics
""")
CITIES = _split("""
    Leeds Porto Graz Lyon Tampere Gdynia Brno Osaka Lagos Pune Quito Haifa Izmir Bergen Ghent
    Utrecht Zaragoza Bari Cluj Varna Split Durban Nairobi Hanoi Cebu Perth Dunedin Halifax
    Boise Recife
""")
TOP_DOMAINS = _split("""
    com com com org net io de fr nl pl it es co.uk com.br ru cz se ch at co.jp com.au in eu dev
""")
FREE_MAIL = _split("""
    gmail.com gmail.com gmail.com gmail.com hotmail.com yahoo.com outlook.com web.de gmx.net
    gmx.at t-online.de orange.fr free.fr libero.it wp.pl o2.pl seznam.cz mail.ru yandex.ru
    ukr.net 163.com qq.com naver.com yahoo.co.jp uol.com.br bigpond.com icloud.com
    protonmail.com telenet.be bluewin.ch
""")
CHOSEN = _split("""
    sunflower Schmetterling kotek barcelona pizza Mustang liverpool matteo dragonfire princesa
    Sommer chocolat nirvana samsung gatito futbol Hamburg monkey tiger snoopy galatasaray
    sakura marseille Winter panther daisy charlie krokodil motdouce estrella cachorro babushka
    Freiburg rosebud
""")
ROLES = _split("""
    info office kontakt contact support sales hello admin secretaria biuro rezervace booking hr
""")
BBANS = dict(
    pair.split(":")
    for pair in _split("""
    DE:n18 AT:n16 CH:n5c12 FR:n10c11n2 BE:n12 NL:a4n10 ES:n20 IT:a1n10c12 PT:n21 PL:n24 CZ:n20
    SK:n20 HU:n24 RO:a4c16 BG:a4n6c8 HR:n17 SI:n15 NO:n11 DK:n14 FI:n14 SE:n20 EE:n16 LT:n16
    LV:a4c13 GR:n7c16 TR:n6c16 UA:n6c19 IL:n19 SA:n2c18 AE:n19 GB:a4n14 IE:a4n14 LU:n3c13
    CY:n8c16 MT:a4n5c18 IS:n22 LI:n5c12 RS:n18 GE:a2n16 KZ:n3c13 QA:a4c21 TN:n20 PK:a4c16
    BR:n23a1c1
""")
)
"""After country and check digits, by SWIFT's IBAN registry: n digit, a capital, c either."""

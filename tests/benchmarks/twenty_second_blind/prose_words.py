"""Word lists for the texts in prose."""

from __future__ import annotations


def _words(text: str) -> list[str]:
    return text.split()


FIRST = _words(
    "Anna Marcus Priya Tomas Helen Yusuf Ingrid Kofi Laura Stefan Mei Oliver Rachel Diego Noor "
    "Graham Sofia Patrick Leila Bruno Hannah Viktor Grace Samuel Elena Derek Naomi Piotr"
)
LAST = _words(
    "Halvorsen Okafor Brandt Lindqvist Moreau Castell Whitby Novak Iyer Tanaka Fairley Duarte "
    "Kovacs Mbeki Rourke Sandoval Petrov Quist Hartwell Eklund Baptiste Marsh Velasco Dunning"
)
PLACES = _words(
    "Ashford Brindle Calder Dunmore Elmhurst Fenwick Glenrock Harwich Kestrel Larkfield Marlow "
    "Northgate Oakley Penrose Ridgeway Stanmore Thornbury Westbrook Wexham Yarrow"
)
WORDS = _words(
    "tiger river maple orange falcon copper winter dragon sunset pepper rocket castle monkey "
    "violet thunder pickle harbor coffee shadow banana meadow ginger turtle velvet walnut puppy "
    "comet cactus lemon bishop pirate salmon cherry magnet cobalt badger hammer saddle biscuit "
    "kitten mustang garden button anchor lantern pebble willow muffin panther trumpet"
)
DOMAINS = _words(
    "kestrelmail.com larkpost.net oakleyhost.co.uk fenwick.io brindlesoft.com mailmarlow.org "
    "wexnet.de yarrowlabs.com glenrock.edu stanmoretech.in dunmore.ca elmhost.nl"
)
HOSTS = _words(
    "srv2.oakleyhost.co.uk portal.glenrock.edu demo.brindlesoft.com files.wexnet.de "
    "vps41.elmhost.nl lab.yarrowlabs.com play.dunmore.ca panel.larkpost.net git.fenwick.io"
)
GOODS = _words(
    "spectra invoice-kit roomboard leafnote fleetdesk parcelbox harvestcms quillboard "
    "stocklane carepoint tunedeck clinicflow"
)
MONTHS = _words(
    "January February March April May June July August September October November December"
)
DAYS = _words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
FILES = _words(
    "texture_pack sample_set firmware_backup season_mod drivers_old project3 lecture_dump "
    "soundbank memdump map_addon release_build"
)

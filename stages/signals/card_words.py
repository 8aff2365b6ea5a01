"""Words around payment card numbers, by language: what names a card, another number, or a test.

Written from the forms, receipts, bank sites and messages of each language, not from a corpus.
"""

from __future__ import annotations

import re

_CARD_IN_LANGUAGES = (
    r"(?:credit|debit|pay(?:ment)?|bank|gift|virtual|corporate)?[ _-]?card"
    r"(?:holder|[ _-]?(?:numbers?|nr|nbr|no|num))?(?:ul(?:ui)?|ului)?(?![a-z]{3})",
    r"\bcc|c_?c(?=_?n)|(?<![^\W_])pan\b|card(?:num+ers?|nummer)|carte bleue",
    r"(?-i:\bCB\b|\bMC\b(?= ?#))",
    r"kredit|karten?(?:nummer|nr)?(?![a-z]{4})|\bkk-nr\b|cart[ea]s?\b|tarjeta|\bTD[CD]\b",
    r"cart[ãa]o|cartões|carta di|kaart|kaardi|kort(?:nummer)?\b|kortti|kortel|kartu|\bkadi?\b",
    r"\bkart(?:[ıiyau][^\W\d_]{0,5}|es)?\b|kártya|platebn|kartic|карт(?:ын)?[аыеуоі]?\b|карт[аоы]ю",
    r"картк[аиуо]|картиц|карточ|белкарт|κάρτα|πιστωτικ|بطاقة|فيزا|ماستركارد|كارت|כרטיס|אשראי",
    r"カード|クレカ|信用卡|银行卡|银联|銀聯|借记卡|储蓄卡|卡[号號]|[行蓄用联聯贷記记]卡|카드",
    r"کارت|کارڈ|कार्ड|কার্ড|கார்டு|కార్డ్|ಕಾರ್ಡ್|കാർഡ്|કાર્ડ|ਕਾਰਡ|ბარათ|քարտ|thẻ|บัตร",
)
_NETWORKS = (
    r"visa|master ?card|amex|american express|diners|discover|jcb\b|maestro|union ?pay|v[ -]?pay\b",
    r"rupay|uzcard|humo\b|\belo\b|hipercard|\bverve|\btroy\b|dankort|bancontact|girocard"
    r"|\bcabal\b|naranja|cencosud|sodexo|meeza|ميزة|مدى|napas|postepay|\bмир\b|belkart|interac\b",
)
_BANKS = (
    r"сбер|втб\b|тинькофф|т-банк|альфа-?банк|приват(?:банк)?\b|монобанк|monobank|privatbank",
    r"\bpayme\b|\bclick\b|каспи|kaspi|\bnubank|revolut|ощадбанк|пумб\b|райффайзен|газпромбанк",
)
_PAYING = (
    r"pa(?:id|y|ying)(?: \w{1,8}){0,2} (?:with|by|via|using|from|w/)(?!\w)|pay[ée] avec"
    r"|bezahlt? mit|pagu?[eéo]i? con|paguei com|оплат\w{0,4}|guarantee\w{0,2} (?:with|by)",
    r"declined\b|primary[ _]?account|acct_?num\b|cvv2?|cvc2?|\bcsc\b|\b(?:debit|credit)\b|\bluhn\b"
    r"|track[ _-]?[12]\b(?![ .-]?(?:by|of|from))",
)
NAMES_CARD = f"(?:{'|'.join((*_CARD_IN_LANGUAGES, *_NETWORKS, *_BANKS, *_PAYING))})"
"""What speaks of a card: the word in some forty languages, networks, banks, and verbs of paying."""

TOUCHING_NAME = re.compile(
    r"(?<![A-Za-z0-9])(?:visa|master(?:card)?|mc|amex|discover|diners|jcb|maestro|elo|rupay|unionpay"
    r"|mir|verve|card|cc|pan)[ _#-]?\Z",
    re.IGNORECASE,
)
"""The name of a network that a number touches: `VISA4…`, `amex-3…`."""

CODE_BEFORE = re.compile(r"(?:(?<![A-Za-z0-9])|(?<=FP)|(?<=CC))(VI|CA|MC|AX|DC|DS|JC)[ ]?\Z")
"""A network's code in a booking or a ticket: `FP CCVI4…/0725`, `FOP: AX3…`."""

_OTHER_NAMES = (
    r"order|track(?![ _-]?[123]\b)|invoice|serial|imei|meid|iccid|isbn|ean|upc|gtin|sku|ticket"
    r"|booking|shipment|parcel|session|job|build|batch|request|node|object|guild|bestell|sendung"
    r"|rechnung|commande|pedido|ordine|nonce|checksum|tweet|policy|meter|contract|licen[cs]e"
    r"|permit|vertrag|zamówieni|objednáv|заказ|трек|полис|накладн|单号|流水号|운송장|주문|sipariş"
    r"|الطلب|הזמנה|ऑर्डर|พัสดุ|payback|voucher|coupon|loyalty|waybill|colissimo|aadhaar|bonus"
)
_MORE_OTHER_NAMES = (
    r"ref(?!us|und|ill|in|resh)|case|customer|member|account|acct|konto|transaction|trx|txn|trace|user|device|номер"
    r"|kunden|client|application|编号|番号|번호|(?<![^\W_])(?:s/?n|run|seed|resi|đơn)"
)
_CODE = r"\w{0,8}(?:[ _.-]?(?:id|no|nr|num|number|code))?"
_AFTER_NAME = r"[ \t:=#.\"'()\[\]-]{0,8}\Z"
OTHER_NAME = re.compile(rf"(?<![a-z])(?:{_OTHER_NAMES}){_CODE}{_AFTER_NAME}", re.IGNORECASE)
"""What surely names another number, also one in the groups of a card."""

OTHER_CARD = re.compile(
    r"(?<![a-z])(?:gift|sim|sd|library|member(?:ship)?|loyalty|reward|points|memory|health|oyster"
    r"|punkte|kunden|bonus|telefon)[ _-]?(?:card|kart[ea])\w{0,4}(?:[ _.-]?(?:id|no|nr|num"
    rf"|number|code|serial))?{_AFTER_NAME}",
    re.IGNORECASE,
)
"""A card that pays nothing: `gift card no.`."""

NUMBERS_OF_OTHER_KINDS = re.compile(
    rf"(?:(?:{_OTHER_NAMES}|{_MORE_OTHER_NAMES}){_CODE}"
    r"|(?:event|message|post|tweet|status|chat|channel|thread)\w{0,8}"
    r"[ _.-]?(?:id|no|nr|num|number|code)|(?<![a-z])(?!paid|said)[a-z]{0,2}ids?\b|token|hash"
    rf"|timestamp|epoch|\bnr\b|n°|#|№){_AFTER_NAME}"
    r"|[\w)\]]\s?[*/<-]\s?\Z|[a-z0-9_)\]]\s?\+\s?\Z|\w[(\[]\Z|\s=\s?[(\[]?\Z",
    re.IGNORECASE,
)
"""What may name another number, and the signs of arithmetic in code."""

NO_CARD_NAME = re.compile(
    r"(?<![^\W_])(?:id|hash|token|order|track(?![ _-]?[123]\b)\w*|serial|ean|isbn|imei|iccid|ref\w*"
    r"|session|request|trace)"
    r"(?: (?:no|nr|number))?[\"'\])\s]{0,3}[=:#]?\s{0,2}[\"']?\Z",
    re.IGNORECASE,
)

CHINESE_BEFORE = re.compile(r"(?:[账帳][号户號]|开户|户名|[工农建中交招邮]行)\W{0,3}\Z")
"""What names an account in China: if its number is UnionPay's, it is that of a card."""

_TESTING = (
    r"(?:test(?:ing)?|sandbox|dummy|fake|sample|example|mock|demo|simulator)"
    r"[ _-](?:\w{2,12}[ _-]){0,2}?(?:cards?|cc|pan|visa|master\w*|amex|numbers?|kart\w*)\b"
)
_TEST_CARD = (
    rf"(?<![^\W_]){_TESTING}|test(?:karten?|kort|kaart|nummern?)\b|(?:visa|master\w*|amex|diners|jcb"
    r"|discover|maestro|verve|union ?pay|emv|gateway|sandbox)[ _-](?:sandbox[ _])?tests?\b"
    r"|(?:tarjetas?|cart[ãa]o|cartões|cartes?|carta|numer[oi]s?)(?: \w{2,10})? (?:de |di |da )?"
    r"(?:pruebas?|testes?|tests?|prova)\b|para pruebas|тестов\w{2} (?:карт|номер)\w{0,3}"
    r"|kart\w? testow\w{1,2}"
    r"|テスト(?:用)?(?:カード|番号)|[测測][试試](?:用)?卡|테스트 ?(?:용 ?)?카드"
)
TEST_BEFORE = re.compile(
    rf"(?:{_TEST_CARD})(?![^\n]{{0,50}}\b(?:real|mine|my|echte|live)\b)[^\n]{{0,50}}\Z",
    re.IGNORECASE,
)
TEST_AFTER = re.compile(
    rf"[\"'`]? {{0,2}}[|(,;\u2013\u2014-]?[ (]{{0,2}}(?:\w{{2,12}} ){{0,2}}?(?:{_TEST_CARD})|"
    r" \((?:\w{2,14} ){0,2}(?:test|sandbox|prueba|teste)\)",
    re.IGNORECASE,
)
"""What calls a number one for tests, in its line."""

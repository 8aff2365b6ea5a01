"""The names of passwords in English and other languages, and where they stand in a text."""

from __future__ import annotations

import re
from typing import NamedTuple

from stages.signals.literals import Literals, Triples, find_all, find_triples

OF_APPLICATION = "|".join(
    f"(?<={word}{end})"
    for word in (
        *("app", "jwt", "cookie", "session", "hmac", "signing", "webhook", "nextauth"),
        *("blowfish", "auth", "client", "shared", "consumer", "encryption"),
    )
    for end in ("_", "-", "[.]", "")
)
"""What a secret is of that people choose as they choose a password."""

ENGLISH = (
    r"(?<=require)pass|(?<=ssh)pass(?=\s+-p)|passw(?:or)?ds?|passwo?rt|pass-?(?:phrase|code|key)s?"
    r"|code ?words?(?= ?[:=]| (?:is|was) )"
    r"|passwrd|pasword|psswd|pwd|pswd|(?<![a-z])p(?:word|/w)|(?:(?<![a-z!])|(?<=sta)|(?<=wifi)"
    r"|(?<=wpa))psk(?![a-z])"
    r"|(?:(?<=auth_)|(?<=control))pass|(?:(?<=bind)|(?<=root))pw(?![a-z])"
    rf"|(?<![a-z_-])(?<![0-9]:)secret(?=[\"']?(?:\s|[ \t]{{2,12}})?[:=])|"
    rf"(?:{OF_APPLICATION})secret(?![a-z_])|(?<![a-z_-])secret_?key(?![a-z_])"
    rf"|(?<![a-z])psw(?![a-z])|(?<![a-z])pw(?![a-z])"
    r"|(?<![a-z])mdp(?![a-z])"
)
FOREIGN = (
    r"passord(?:et)?|nnwort|htwoord|contrase(?:ñ|n|&ntilde;)as?"
    r"|senhas?|парол[ьяеюиа]\w{0,3}|密码|密碼|口令|パスワード|暗証番号|has[łl](?:o|em)|hesl[oa]|jelsz[óoa]\w{0,3}"
    r"|l[öo]senord(?:et)?|adgangskoden?|salasan[aä]\w{0,2}|κωδικ[όο]ς?(?: πρόσβασης)?"
    r"|[şs]ifre(?:si|m|niz)?"
    r"|parol[aăe]|كلمة (?:المرور|السر)|סיסמ(?:ה|א|ת)\w{0,3}|비밀번호[는은]?|비번은?|암호[는은]?"
    r"|패스워드"
    r"|mật khẩu|(?:kata )?sandi(?:nya)?|पासवर्ड|lozink[ae]|лозинка\w?|(?<![a-z])clave"
    r"|(?<![a-z])geslo|contrasenya|contrasinal|pasahitza|kodeord|parool|slaptažod\w{1,4}"
    r"|lykilorð(?:ið)?"
    r"|[wv]agwoord|fjalëkalim\w{0,2}|neno la siri|laluan|пасс(?!\w)|құпия ?сөз"
    r"|parola d['’]ordine|chiave di rete|tzwerkschlüssel|zugangscode|(?<=解凍)パス|"
    r"(?<=[LlPpRr載鍵屋])パス(?=[は：:])|提取码"
    r"|পাসওয়ার্ড|கடவுச்சொல்|పాస్‌?వర్డ్|پاس ?ورڈ|رمز عبور|گذرواژه|الرقم السري|باسورد|პაროლი"
    r"|գաղտնաբառ"
    r"|c(?:ode|[óo]digo|odice) (?:(?:d[aeou]l?|p(?:er|ara|our)) (?:(?:il|el|la|le|o) )?)?(?:la )?"
    r"wi-?fi"
    r"|(?:wi-?fi|wlan)[ -]code"
    r"|network key|(?:wlan-|sicherheits)schlüssel|cl[ée] de s[ée]curit[ée]|kenncode|code secret"
    r"|nywila|(?<![a-z])parol(?=\s?:)|(?<![a-z])lösen(?=:| till | är )|kode wi-?fi"
    r"|c[óo]digo de acces?s?o|toegangscode|codice d['’]accesso|kod dostępu"
    r"|šifr[aeuo]m?|(?<![a-z])sifra(?=[ :])|zapork\w{1,2}|nenosiri|нууц үг|maxfiy so.?z|[şs]ifrə"
    r"|koden?(?= til )|รหัส(?:ผ่าน|ไวไฟ)?(?: ?wi-?fi)?|(?<!\w)mk(?= wi-?fi)"
    r"|پسورد|(?<![a-z])ww(?=:)"
    r"|гасло"
    r"|暗号化キー|セキュリティキー|net(?:work)? ?key|(?:(?<=pre)|(?<=pre[- ]))shared[ -]key"
    r"|klju[čc](?=[ :])"
    r"|ключ безопасности"
    r"|ключ (?:сети|wi-?fi)|hálózati kulcs|klucz (?:sieci|zabezpiecze[nń])"
    r"|güvenlik anahtarı|losenord"
    r"|schlüssel (?:vom|zum|des|für das|fürs|im) (?:wlan|wi-?fi|netz)"
    r"|(?<=motde)passe|aðgangsorð|pasvort\w|modpas|pasfhocal|salas[õo]na"
    r"|кодовое слово|кодове слово"
    r"|сырсөз|серсүз|પાસવર્ડ|ਪਾਸਵਰਡ|പാസ്‌?വേഡ്"
    r"|ಪಾಸ್‌?ವರ್ಡ್|මුරපදය|የይለፍ ቃል|ពាក្យសម្ងាត់|ລະຫັດ(?:ຜ່ານ)?"
    r"|စကားဝှက်|açar söz|cyfrinair|(?<![a-z])gesla|heslom|chiave (?:del |della )?(?:wi-?fi|rete)"
    r"|كلمة (?:مرور|سر)|رمز (?:الواي|واي|وای|المرور)"
    r"|网络密钥|網路金鑰|(?<=[:>] )mima|(?<=[$ ])mima(?= ?=)"
    r"|код доступа|(?:cl[ée]|sleutel) (?:du |de )?(?:wi-?fi|wpa2?)(?= ?[:=])"
    r"|loyniorð\w{0,2}|шифр[ауиом]{1,2}(?= (?:за|од|је|ми|ти))|تێپەڕەوشە\w{0,2}|وشەی نهێنی"
    r"|پټنوم|kalmar sirri"
    r"|[oọ]̀?r[oọ]̀? a[sṣ][ií]n[aà]|igama lok\w{4,10}|iphasiwedi|furaha sirta|erayga sirta|okwuntughe"
    r"|passwuert|ger-tremen|facal-faire|teny miafina|ijambo ry[’']ibanga|kupu ?huna|wachtwurd"
    r"|code d['’]accès|gjalda?|(?<=palavra-)passe|(?<=mot de )passe"
)
_OWNERS = (
    "user db root admin mail smtp ftp sql my ssh remote proxy relay imap ldap vpn vnc wifi wlan"
)
SHORT = "(?:(?<![A-Za-z])|{})passe?(?![a-z])|(?-i:(?<=[a-z])Pass(?![a-z]))".format(
    "|".join(f"(?<={owner})" for owner in _OWNERS.split())
)
HINTS = ("pass", "pw", "psk", "psw", "p/w", "htwoord", "secret")
"""Parts of the names of passwords, in small letters: what is searched first."""

_HINTS_OF_LANGUAGES = (
    "é=mdp|ü=nnwort|ñ=contrase|ó=clave|ã=senha|è=parol|ě=heslo|ł=hasł|ł=haslo|ş=şifr|"
    "ş=sifre|ø=adgangsk|ä=salasan|ö=lösenord|ó=jelsz|п=парол|л=лозинк|密=密码|密=密碼|"
    "口=口令|パ=パスワード|暗=暗証番号|비=비밀번호|비=비번|암=암호|패=패스워드|κ=κωδικ|"
    "ك=كلمة|ס=סיסמ|\0=code word|\0=codeword|\0=pasword|\0=psswd|é=code wifi|é=code wi-fi|"
    "é=code du wi|é=code pour le wi|ậ=mật khẩu|प=पासवर्ड|ă=parol|\0=sandi|ž=lozink|č=geslo|"
    "à=contrasenya|ñ=contrasinal|\0=pasahitza|ø=kodeord|õ=parool|ž=slaptažod|ð=lykilor|"
    "ê=wagwoord|ë=fjalëkalim|\0=neno la siri|\0=laluan|п=пасс|қ=құпия|ü=tzwerkschl|"
    "ü=zugangscode|\0=chiave di rete|é=clé wi|é=clé wpa|é=code d|パ=パス|提=提取码|"
    "প=পাসওয়ার্ড|க=கடவுச்சொல்|ప=పాస్|پ=پاس|ر=رمز |گ=گذرواژه|ا=الرقم السري|ا=باسورد|"
    "პ=პაროლი|գ=գաղտնաբառ|ó=código|\0=codigo|\0=codice|\0=wifi code|\0=wi-fi code|"
    "\0=wlan-code|\0=network key|ü=wlan-schl|ü=sicherheitsschl|é=clé de s|\0=kenncode|"
    "\0=toegangscode|\0=code secret|ę=kod dost|к=код доступа|\0=nywila|ö=lösen|"
    "\0=kode wi|š=šifr|\0=sifra|\0=zapork|\0=nenosiri|ү=нууц|\0=maxfiy|\0=kode|ร=รหัส|á=mk wi|"
    "پ=پسورد|\0=ww:|г=гасло|暗=暗号化|セ=セキュリティキー|\0=shared key|\0=shared-key|č=ključ|"
    "\0=kljuc|к=ключ |á=hálózati k|\0=klucz |ü=güvenlik a|\0=losenord|ð=aðgangsor|\0=pasvort|"
    "\0=modpas|\0=pasfhocal|õ=salasõna|к=кодов|ө=сырсөз|ү=серсүз|પ=પાસવર્ડ|ਪ=ਪਾਸਵਰਡ|പ=പാസ്|ಪ=ಪಾಸ್|"
    "ම=මුරපදය|የ=የይለፍ|ព=ពាក្យស|ລ=ລະຫັດ|စ=စကားဝှက်|ç=açar s|\0=cyfrinair|č=gesla|è=chiave|"
    "ð=loyniorð|ш=шифр|پ=تێپەڕەوشە|و=وشەی نهێنی|پ=پټنوم|\0=kalmar sirri|ṣ=ọ̀rọ̀ aṣínà"
    "|\0=oro asina|\0=igama lok|"
    "\0=iphasiwedi|\0=furaha sirta|\0=erayga sirta|\0=okwuntughe|\0=passwuert|\0=ger-tremen|"
    "\0=facal-faire|\0=teny miafina|\0=ijambo ry|\0=kupu huna|\0=wachtwurd|"
    "\0=chiave del wifi|ك=كلمة |ü=schlüssel |网=网络密钥|網=網路金鑰|码=mima"
)
LETTERS_OF_HINT: dict[str, set[str]] = {}
"""For each hint of another language the characters that a longer text of the language has."""

for _pair in _HINTS_OF_LANGUAGES.split("|"):
    _letter, _hint = _pair.split("=")
    LETTERS_OF_HINT.setdefault(_hint, set()).add(_letter)
ASCII_HINTS = (*HINTS, *(hint for hint in LETTERS_OF_HINT if hint.isascii()))
ALL_HINTS = (*ASCII_HINTS, *(hint for hint in LETTERS_OF_HINT if not hint.isascii()))
SHORT_TEXT = 1000
"""Characters of a text in which all are searched."""

ANY_NAME = re.compile(rf"(?:{ENGLISH}|{FOREIGN}|(?<![a-z])pass)(?=nya\b|[^a-z]|\Z)", re.IGNORECASE)
"""The whole name of a password."""

_HINTS = Literals([hint.encode() for hint in ALL_HINTS])


def choose_hints(lowered: str, triples: Triples | None) -> list[str]:
    """The parts of names that a text may have, by its bytes; of a long one by its letters.

    `triples` are those of `lowered`.
    """
    chosen = [ALL_HINTS[number] for number in _HINTS.choose(triples)]
    if len(lowered) <= SHORT_TEXT:
        return chosen
    return [
        hint
        for hint in chosen
        if hint in HINTS or any(letter in lowered for letter in LETTERS_OF_HINT[hint])
    ]


class Name(NamedTuple):
    """Where a word stands beside which a password is told; `is_sure` for the names of one."""

    start: int
    end: int
    is_sure: bool


_WORDS = (
    *("pin", "code", "login", "log in", "logged in", "logon", "cred", "account", "key", "secret"),
    *("auth", "unlock", "combo", "combi", "wifi", "wi-fi", "wlan", "ssid", "hotspot", "user"),
    *("lock", "keypad", "safe", "combination", "gate", "passe", "install", "pairing", "entry"),
    *("admin", "root", "decrypt", "extract", "unprotect", "sign in", "vpn", "alarm", "invite"),
    *("zugang", "konto", "anmeld", "benutzer", "identifiant", "accès", "utilisateur", "acces"),
    *("usuario", "utente", "código", "codice", "kode", "kod", "код", "логин", "доступ", "вход"),
    *(
        "пользовател",
        "用户",
        "账号",
        "帐号",
        "帳號",
        "账户",
        "码",
        "碼",
        "ユーザ",
        "コード",
        "番号",
    ),
    *("아이디", "계정", "코드", "번호", "รหัส", "mã ", "akun", "hesap", "kullanıcı", "رمز", "کد"),
)
"""What other words name: accounts, codes, networks. Beside them only what stands out is rated."""

_LITERALS = Literals([word.encode() for word in _WORDS])
_TAIL = re.compile(r"(?:s|ed|name|ential|entials|nation|e|en|ung|edaten|sdaten)?(?![a-z])")


def find_other_names(lowered: str, triples: Triples | None) -> list[Name]:
    """Words of accounts, codes and networks in a text in small letters."""
    names = []
    for number in _LITERALS.choose(triples):
        word = _WORDS[number]
        for place in find_all(lowered, word):
            end = place + len(word)
            if word.isascii() and (
                lowered[place - 1 : place].isalpha() or not _TAIL.match(lowered, end)
            ):
                continue
            names.append(Name(place, end, False))
    return names


def find_names(text: str) -> list[Name]:
    """Where passwords, and what has one, are named in a text, from left to right."""
    lowered = to_small_letters(text)
    triples = find_triples(lowered.encode("utf-8", "surrogatepass"))
    names = set(find_other_names(lowered, triples))
    for hint in choose_hints(lowered, triples):
        for place in find_all(lowered, hint):
            name = ANY_NAME.match(text, place)
            if name is not None:
                names.add(Name(*name.span(), is_sure=True))
    return sorted(names)


def to_small_letters(text: str) -> str:
    """The text in small letters, of the same length."""
    lowered = text.lower()
    if len(lowered) != len(text):  # A capital that has no small letter of one character.
        lowered = text.replace("İ", "i").lower()
    if len(lowered) != len(text):
        lowered = text
    return lowered

"""Passwords in the configuration of devices, in installers, dialogues of protocols and of tools.

What stands before the password here belongs to one program (`register => ann:…@host` of Asterisk,
`set psksecret …` of Fortinet, `KEY FOUND! [ … ]` of Aircrack), so each form has its own pattern.
`login_calls.py` searches them: a key is what the pattern begins with, in small letters. A `sure`
value must look like a password, a `loose` one must stand out of prose, an `exact` one need only be
no placeholder. All patterns are bounded.
"""

from __future__ import annotations

from stages.signals.named_values import WORDS_APART

_SURE = rf"[\"']?(?P<sure>(?<=[\"']){WORDS_APART}(?=[\"'])|[^\s\"'`<>|;]{{6,64}})"
_LOOSE = r"[\"']?(?P<loose>[^\s\"'`<>|;]{8,64})"
_LITERAL = rf"[\"'](?P<sure>{WORDS_APART}|[^\s\"'<>]{{6,64}})[\"']"
_STRING = r"(?:N?'[^'\n]{0,60}'|\"[^\"\n]{0,80}\"|NULL|\w{1,20})"
_LOOSE_LITERAL = r"[\"'](?P<loose>[^\s\"'<>]{8,64})[\"']"
_OF_CHAP = r"[\"']?\s{1,12}[\"']?(?P<sure>[^\s\"']{6,64})[\"']?[ \t]{1,12}[\"']?[*0-9]"
"""The secret and the addresses in a line of pppd, behind the name of the server."""

_OF_ECHO = r"(?:=| ?: ?| )[\"']?(?:echo|printf) (?:-n )?\\?[\"']?(?P<sure>[^\s\"'`<>|;\\]{6,64})"
"""A command that prints the password, where a program wants the name of one."""

_OF_ORACLE = (
    r"[\w$]{1,30}/(?:\\?[\"'](?P<exact>[^\s\"'\\]{6,64})\\?[\"']|(?P<sure>[^\s\"'@/\\]{6,64}))"
)
"""A login at Oracle: `ann/…`, and with quotes for a shell, in which an `@` may stand."""

_OF_MAIL = r"(?P<exact>(?-i:(?=[a-z]{0,12}[b-df-hj-np-tv-xz]{4})[a-z]{16}))"
"""How Google writes the password of a program, with letters that no word has in a row."""

_END = r"(?=[ \t]{0,8}(?:\r?\n|\Z))"
_WORDS = r"[a-z]{3,12}(?: [a-z]{3,12}){2,7}"
_HEX = r"[0-9a-fA-F]{32,128}"

_KEY_CONTENTS = (
    *("key content", "schlüsselinhalt", "contenu de la clé", "contenido de la clave"),
    *("contenuto chiave", "conteúdo da chave", "содержимое ключа", "sleutelinhoud"),
    *("zawartość klucza", "obsah klíče", "anahtar içeriği", "nyckelinnehåll", "nøgleindhold"),
    *(
        "nøkkelinnhold",
        "kulcstartalom",
        "kulcs tartalma",
        "キー コンテンツ",
        "关键内容",
        "金鑰內容",
    ),
    *("키 콘텐츠", "avaimen sisältö", "conținut cheie", "вміст ключа", "κλειδί περιεχόμενο"),
)
"""How Windows names the key of a wireless network, in its languages (`netsh wlan show profile`)."""

_HERE_STRINGS = (
    *("kinit ", "passwd ", "cryptsetup ", "hdiutil ", "gpg ", "ssh-add", "vncpasswd", "openssl "),
    *(
        "veracrypt ",
        "keepassxc-cli ",
        "sudo -s",
        "smbclient ",
        "-stdin",
        "fscrypt ",
        "zfs load-key",
    ),
    *("bw unlock", "restic ", "borg "),
)
"""Commands that read a password from the string after `<<<`."""

_ADMINS = ("admin/", "root/")

SERVICES = (
    *("netflix", "spotify", "disney", "hulu", "amazon", "gmail", "google", "icloud", "apple id"),
    *("facebook", "instagram", "twitter", "paypal", "ebay", "steam", "github", "gitlab", "dropbox"),
    *("outlook", "yahoo", "zoom", "slack", "linkedin", "airbnb", "twitch", "router", "cpanel"),
    *("wordpress", "synology", "jenkins", "grafana", "proxmox", "nextcloud"),
)
"""What people list the accounts of, a line each: service, name, password."""

READERS = (
    r"cryptsetup|kinit|smbpasswd|vncpasswd|gpg |ssh-add|passwd|openconnect|openfortivpn|veracrypt"
    r"|(?:gcloud|docker|podman|fly(?:ctl)?|wrangler) secrets? |(?:gh|pass|vault|bw) \w{2,8} "
    r"|openssl passwd|keepassxc-cli|systemd-creds|ansible-vault "
    r"|realm join|net ads join|adcli |zfs |restic "
)
"""Commands that read a password, or a secret to store, from a pipe."""

OF_CALLS, OF_COMMANDS = "a call with a literal", "a flag"
"""Gates of what is searched only where a literal is an argument, or a command has a flag."""

DEVICE_SHAPES: dict[str, str] = {
    # Configuration of routers, switches and telephones.
    "register =>": r"register => ?[^\s:@/]{1,40}:(?:[^\s:@]{1,40}:)?(?P<sure>[^\s@:]{6,64})@",
    "-server host": rf"-server host \S{{1,40}} [^\n]{{0,60}}?\bkey (?:[07] )?{_SURE}",
    "key-string ": rf"key-string (?:[07] )?{_LOOSE}",
    "set psksecret ": rf"set psksecret {_SURE}",
    "set passwd ": rf"set passwd {_SURE}",
    "pre-shared-secret ": rf"pre-shared-secret {_SURE}",
    "pre-shared-key": rf"pre-shared-key(?:=| (?:local |remote )?(?:ascii-text |plain )?){_SURE}",
    "ascii ": rf"(?<=wpa-psk )ascii (?:[07] )?{_SURE}",
    # Wireless networks.
    "iwconfig ": rf"iwconfig \S{{2,12}} key s:{_SURE}",
    "key found! [ ": r"key found! \[ (?P<exact>[^\s\]]{8,63}) \]",
    "wpa psk: ": r"wpa psk: [\"'](?P<exact>[^\s\"']{8,63})[\"']",
    "<keymaterial>": r"<keymaterial>(?P<exact>[^<\s]{8,63})</",
    **{
        hint: (
            rf"{hint}[^\n:]{{0,16}}: ?"
            r"(?P<exact>(?-i:(?=[A-Z]{0,25}[0-9])[A-Z0-9]{8,26}))(?![\w-])"
        )
        for hint in ("wireless key", "network key", "wireless password")
    },
    "netz ": (
        r"netz [\"„“][^\"“”\n]{2,32}[\"“”],? (?:schlüssel|passwort|kennwort|key):? "
        r"(?P<loose>[^\s\"'<>,;]{8,63})"
    ),
    "wlan": (
        r"wlan(?:[ -]?(?:netzwerk)?(?:schl(?:ü|ue)ssel|key|passwort|kennwort))[^\n:]{0,20}: ?"
        r"(?P<exact>[0-9]{4}(?: [0-9]{4}){3,4})(?![0-9])"
    ),
    "ключ безопасности": r"ключ безопасности(?: сети)?:? (?P<exact>[0-9]{8,20})(?![0-9])",
    "clé w": r"clé w(?:pa2?|i-?fi|ep)[^\n:]{0,30}: ?(?P<exact>[0-9A-Z]{10,26})(?![0-9A-Za-z])",
    # Protocols.
    "ugfzc3dvcmq6": (
        r"ugfzc3dvcmq6\r?\n(?:(?-i:[CS]): ?|[<>]{1,3} ?)?"
        r"(?-i:(?P<exact>[A-Za-z0-9+/]{8,88}={0,2}))(?=\s|\Z)"
    ),
    "auth plain ": r"(?-i:AUTH PLAIN (?P<exact>[A-Za-z0-9+/]{12,88}={0,2}))(?=\s|\Z)",
    "user ": (
        rf"(?<=\n)user [\w.@-]{{1,40}} {_LOOSE}{_END}|"
        r"user \S{1,60}\r?\n(?:[^\n]{0,80}\n)?[<>CS:= -]{0,5}pass "
        r"(?P<sure>[^\s:\"']{6,64})(?=\s|\Z)"
    ),
    **{
        hint: rf"\{hint}[ \t]{{1,12}}[\w.@+-]{{2,60}}:{_SURE}(?=\s|\Z)"
        for hint in ("]:587", "]:465", "]:25", "]:2525")
    },
    "/j #": rf"/j #[\w.-]{{1,40}} {_LOOSE}",
    "/join #": rf"/join #[\w.-]{{1,40}} {_LOOSE}",
    "/login ": rf"(?<![^\s>])/login (?!\S{{1,40}}=){_SURE}{_END}",
    "/register ": rf"(?<![^\s>])/register {_SURE}",
    "nickserv ": rf"nickserv :?(?:identify|register) (?:[\w-]{{1,20}} (?!\S{{1,40}}@))?{_SURE}",
    # What tools print.
    "login attempt [": r"login attempt \[(?:b?['\"])?[^\s/'\"]{1,40}['\"]?/(?:b?['\"])?"
    r"(?P<sure>[^\s'\"\]]{6,64})",
    "recovery": r"recovery(?s:.{0,400}?)(?<![0-9-])(?P<exact>[0-9]{6}(?:-[0-9]{6}){7})(?![0-9-])",
    "bitlocker": r"bitlocker(?s:.{0,400}?)(?<![0-9-])(?P<exact>[0-9]{6}(?:-[0-9]{6}){7})(?![0-9-])",
    "manage-bde": r"manage-bde(?s:.{0,400}?)(?<![0-9-])(?P<exact>[0-9]{6}(?:-[0-9]{6}){7})"
    r"(?![0-9-])",
    # Commands.
    "-asplaintext": rf"-asplaintext (?:-force )?(?:-string )?{_SURE}",
    "ldappasswd": rf"ldappasswd [^\n|;]{{0,80}}?-[saA] {_SURE}",
    "samba-tool user": rf"samba-tool user (?:create|add) \S{{1,40}} {_SURE}",
    "signtool ": rf"signtool sign [^\n]{{0,120}}?/p {_SURE}",
    "userid=": r"userid=[\"']?\w{1,30}/(?P<sure>[^\s\"'@/]{6,64})",
    "openssl passwd": rf"openssl passwd (?:-\w{{1,8}} ){{0,2}}{_SURE}",
    "luks": rf"luks(?: key| passphrase| pw)?: {_LOOSE}",
    **{hint: rf"{hint}{_OF_ORACLE}" for hint in ("impdp ", "expdp ", "sqlldr ", "rman target ")},
    "wsrep_sst_auth": rf"wsrep_sst_auth\s?=\s?[\"']?[\w.-]{{1,40}}:{_SURE}",
    "{plain}": r"\{plain\}(?P<sure>[^\s:\"'<>]{6,64})",
    "{cleartext}": r"\{cleartext\}(?P<sure>[^\s:\"'<>]{6,64})",
    "auth-credentials": rf"auth-credentials '\(\((?:{_STRING} ){{3}}{_LITERAL}",
    "\nuser = ": rf"\nuser = \"[^\s:\"]{{1,60}}:{_LOOSE}\"",
    "auth[]": rf"(?<=char )auth\[\] ?= ?{_LITERAL}",
    "cipherseed": r"cipherseed['\"](?:,| ?=>) ?['\"](?P<exact>[0-9]{20,40})['\"]",
    "hashcat": r"hashcat[^\n]{0,20}\b[0-9a-f]{32,128}:(?P<sure>[^\s:]{6,64})(?=\s|\Z)",
    # Calls and fields of programs.
    'protect "': r"(?<=[.un])protect \"(?P<loose>[^\s\"]{6,64})\"",
    "validationkey=": rf"validationkey=[\"'](?P<exact>{_HEX})[\"']",
    "decryptionkey=": rf"decryptionkey=[\"'](?P<exact>{_HEX})[\"']",
    "wandb login ": r"wandb login (?:--relogin )?(?P<exact>[0-9a-f]{40})(?!\w)",
    "authtoken ": r"authtoken (?P<exact>(?=\w{0,40}[0-9])\w{40,52})(?!\w)",
    **{
        hint: (
            rf"{hint}(?:key|salt)['\"], {{1,12}}"
            r"['\"](?P<exact>(?=\S{0,20}[0-9])[^\s'\"]{12,40})['\"]"
        )
        for hint in ("logged_in_", "nonce_")
    },
    "x-gotify-key": r"x-gotify-key['\"]?: ?['\"]?(?P<exact>(?-i:[A-Za-z0-9_.-]{15}))(?![\w-])",
    "cohere.client(": r"cohere\.client\(['\"](?P<exact>(?-i:[A-Za-z0-9]{40}))['\"]",
    'jwt": {': (
        r"jwt\": ?\{\s{0,40}(?:\"\w{1,30}\": ?\"?[^\"\n]{0,80}\"?,\s{0,40}){0,4}"
        r"\"key\": ?\"(?P<exact>(?!\w{0,12}secret|your)[^\"\s]{12,128})\""
    ),
    "private-token": (
        r"private-token['\"]?(?:: ?|, ?)['\"]?(?P<exact>(?-i:[A-Za-z0-9_-]{20}))(?![\w-])"
    ),
    "pepper": rf"pepper\s?[=:]\s?[\"'](?P<exact>{_HEX})[\"']",
    "crypt": (
        r"crypt(?:['\"] ?=> ?\[\s{0,20}['\"]key['\"] ?=> ?['\"]|>\s{0,20}<key><!\[CDATA\[)"
        rf"(?P<exact>{_HEX})(?!\w)"
    ),
    "<code>": (r"(?<=<td>)<code>(?=[^\s<]{4,60}[#!*@&$%+?])(?P<loose>[^\s<>]{8,64})</code></td>"),
    "login": rf"login\b[^\n:,/]{{0,30}}[:\s,]\s?(?:[\w.:/-]{{3,40}}, )?[\w.@-]{{2,30}}, {_LOOSE}",
    **{
        hint: (
            rf"(?<![\w./-]){hint}(?=[^\s/]{{2,40}}[!#$%^&*+])(?P<loose>[^\s/\"'<>|;,]{{8,64}})"
            r"(?=[\s,.;)]|\Z)"
        )
        for hint in _ADMINS
    },
    "teamviewer": (
        r"teamviewer[^\n]{0,40}(?:pass\w{0,4}|pw|kennwort|passwort|mdp|contraseña|пароль)[: ]{1,2}"
        r"(?P<sure>[^\s,;]{6,16})"
    ),
}

GATED_DEVICE_SHAPES: dict[str, dict[str, str]] = {
    OF_CALLS: {
        "auth(": rf"(?:(?<=[\w\])]\.)|(?<=\w:)|(?<=->))auth\((?:{_STRING}, ?)?{_LITERAL}",
        "aes.": rf"aes\.(?:en|de)crypt\([^,()\n]{{1,60}}, ?{_LITERAL}",
        "credentials(": rf"credentials\((?:{_STRING}, ?){{3}}{_LITERAL}",
        "plaincredentials(": rf"plaincredentials\({_STRING}, ?{_LITERAL}",
        "influxdbclient(": rf"influxdbclient\({_STRING}, ?[0-9]{{2,5}}, ?{_STRING}, ?{_LITERAL}",
        "cached.client(": rf"cached\.client\(\([^()\n]{{3,80}}\), ?{_STRING}, ?{_LITERAL}",
        "getbytes(": r"getbytes\(\"(?P<loose>[^\s\"]{8,64})\"\)(?=[^\n]{0,60}(?:secret|jwt|sign))",
        "createasync(": rf"createasync\([\w.]{{1,40}}, ?{_LITERAL}",
        "new key(": rf"new key\({_LITERAL}",
        "[]byte(": r"\[\]byte\(\"(?P<loose>[^\s\"]{8,64})\"\)(?=[^\n]{0,60}(?:secret|jwt|sign))",
    },
    OF_COMMANDS: {
        "keychain -p": rf"keychain -p ?{_SURE}",
        "beeline ": rf"beeline [^\n|;]{{0,80}}? (?-i:-p) {_SURE}",
        "steghide ": rf"steghide [^\n|;]{{0,80}}? (?-i:-p) {_SURE}",
        "-k ": rf"-k [\"'](?P<exact>(?-i:{_WORDS}))[\"']",
        " -x aes": rf" -x aes\S{{0,4}} -x {_SURE}",
        " -x des": rf" -x des -x {_SURE}",
    },
    "crypt": {
        "pgp_sym_": rf"pgp_sym_(?:en|de)crypt(?:_bytea)?\([^,\n]{{1,80}}, ?{_LITERAL}",
        "s_encrypt(": rf"(?:(?<=ae)|(?<=de))s_encrypt\([^,\n]{{1,80}}, ?{_LITERAL}",
        "s_decrypt(": rf"(?:(?<=ae)|(?<=de))s_decrypt\([^,\n]{{1,80}}, ?{_LITERAL}",
        "ion_salt: ": rf"(?<=encrypt)ion_salt: ?{_LITERAL}",
        "encryption_key": (r"encryption_key['\"]?\]?\s{0,4}(?:=>|[=:])\s{0,4}" + _LOOSE_LITERAL),
        "--encrypt ": rf"--encrypt {_SURE} [^\s-]",
        "qpdf ": rf"qpdf [^\n|;]{{0,40}}?--encrypt [^\s-]\S{{0,63}} {_SURE}",
    },
    "salt": {
        "ing_salt: ": rf"(?:(?<=sign)|(?<=crypt))ing_salt: ?{_LITERAL}",
        "$salt": rf"\$salt\s?=\s?{_LOOSE_LITERAL}",
    },
    "omniauth": {
        "omniauth :": rf"omniauth :\w{{1,30}}, ?{_STRING}, ?{_LITERAL}",
        "omniauth::": rf"omniauth::(?s:.{{0,80}}?)provider :\w{{1,30}}, ?{_STRING}, ?{_LITERAL}",
    },
    "tpd": {
        "l2tpd": rf"l2tpd{_OF_CHAP}",
        "pptpd": rf"pptpd{_OF_CHAP}",
    },
    "ssh-keygen": {
        "ssh-keygen": rf"ssh-keygen [^\n|;]{{0,80}}?(?-i:-N) {_SURE}",
        "keygen ": rf"(?<=ssh-)keygen [^\n|;]{{0,80}}?(?-i:-P) {_SURE}",
    },
    " -": {
        "hydra ": rf"hydra [^\n|;]{{0,60}}?(?-i:-p) {_SURE}",
        "medusa ": rf"medusa [^\n|;]{{0,60}}?(?-i:-p) {_SURE}",
        "put-parameter ": (
            r"put-parameter [^\n|;]{0,120}?(?:pass|pwd|secret|token)[^\n|;]{0,80}? --value[ =]"
            rf"{_SURE}"
        ),
        "-pin ": r"-pin (?P<exact>[0-9]{6,8})(?![\w.-])",
        "-puk ": r"-puk (?P<exact>[0-9]{6,8})(?![\w.-])",
    },
    "={": {
        hint: rf"{hint}(?P<exact>(?=[^{{}}]{{0,63}}[0-9])[^{{}}\s\"']{{6,64}})\}}(?=[;\"'])"
        for hint in ("password={", "pwd={")
    },
    "http": {
        f"{verb} ": rf"(?<=mc ){verb} \S{{1,40}} https?://\S{{3,80}} \S{{2,64}} {_SURE}"
        for verb in ("alias set", "config host add")
    },
    "davfs": {
        "\nhttp": (
            r"\nhttps?://[^\s]{4,120}[ \t]{1,8}[\w.@-]{1,40}[ \t]{1,8}(?P<loose>\S{8,64})" + _END
        ),
    },
    "/": {
        hint: (
            rf"{hint}[^/\s]{{2,40}}/(?P<exact>[\w.-]{{6,40}})/[0-9]{{1,9}}"
            r"(?:\.\w{2,4})?(?![\w/])"
        )
        for hint in ("/live/", "/movie/", "/series/")
    },
    "cccam": {"c: ": rf"(?:\A|(?<=\n))c: [\w.-]{{3,60}} [0-9]{{2,5}} \S{{2,40}} {_SURE}"},
    "&p=": {"u=": r"(?<=[?&])u=[^&\s]{1,40}&p=(?P<sure>[^&\s\"'<>]{6,64})"},
    "turn": {"credential": r"credential['\"]?\s?: ?['\"](?P<loose>[^\s'\"]{8,64})['\"]"},
    ".open": {".open ": rf"\.open {_STRING}, ?{_STRING}, ?{_LITERAL}"},
    ".logon": {".logon ": rf"\.logon [\w.-]{{1,40}}/\w{{1,40}},{_SURE}"},
    "sp_": {
        "sp_addlinkedsrvlogin": rf"sp_addlinkedsrvlogin (?:{_STRING}, ?){{4}}N?{_LITERAL}",
        "sp_addlogin": rf"sp_addlogin {_STRING}, ?N?{_LITERAL}",
        "sp_password": rf"sp_password (?:{_STRING}, ?)?N?{_LITERAL}",
    },
    "snmp": {
        "priv aes": rf"priv aes(?:[ -]?(?:128|192|256))? {_LOOSE}",
        "priv des": rf"priv des(?:56)? {_LOOSE}",
        "priv 3des": rf"priv 3des {_LOOSE}",
    },
    "secret": {
        "secret-string": rf"secret-string[ =]{_SURE}",
        "extension: ": rf"extension: ?[0-9]{{2,6}}\s{{1,4}}(?:auth )?secret: {_SURE}",
        "secret: ": r"secret: [\"'](?P<loose>[^\s\"']{8,64})[\"'],\s{0,20}expiresIn",
        "app secret": rf"app secret(?: ?\([^()\n]{{0,40}}\))?: ?(?P<exact>{_HEX})(?!\w)",
    },
    "random_password": {"result": r"result\": ?\"(?P<exact>[^\s\"]{8,64})\""},
    "{{": {
        hint: rf"{hint}\w{{0,20}} ?\| ?d(?:efault)?\( ?{_LITERAL}"
        for hint in ("pass", "pwd", "secret", "_pw")
    },
    "<(": {
        hint: rf"{hint}[ =]<\((?:echo|printf) (?:-n )?{_SURE}"
        for hint in ("-file", "--passfile", "--password")
    },
    "<<": {
        "pass insert": (
            r"pass insert [^\n]{1,60}<<-?\s?[\"']?\w{1,12}[\"']?\r?\n"
            r"(?P<sure>[^\s\"']{6,64})(?=\r?\n)"
        ),
    },
    "pic x(": {
        hint: (
            rf"{hint}(?:word|wd)?\s{{1,20}}pic x\([0-9]{{1,3}}\)\s{{1,20}}value (?:is )?{_LITERAL}"
        )
        for hint in ("pass", "pwd")
    },
    "expect": {
        "send ": r"(?<=[;{] )send (?:-- )?\"(?P<loose>[^\s\"\\]{8,64})\\[nr]",
    },
    "\\": {
        "[+] ": r"\[\+\] [\w.-]{1,40}\\[\w.$-]{1,40}:(?P<sure>\S{6,64})",
        "success: '": r"success: '[\w.-]{1,40}\\[\w.$-]{1,40}:(?P<sure>[^\s'\"]{6,64})",
    },
    "|": {
        "echo ": (
            rf"echo (?:-n )?[\"'](?P<exact>(?-i:{_WORDS}))[\"'] ?\| ?(?:sudo )?"
            r"(?:gpg|cryptsetup|openssl|zfs|veracrypt|fscrypt)"
        ),
    },
    "pass": {
        "passcommand": rf"passcommand{_OF_ECHO}",
        "d_command": rf"(?<=passwor)d_command{_OF_ECHO}",
        "d-command": rf"(?<=passwor)d-command{_OF_ECHO}",
        "passwd /users/": rf"passwd /users/\S{{1,40}} {_SURE}",
        "@pjl ": r"@pjl (?:default|set|job) password ?= ?[\"']?(?P<exact>[1-9][0-9]{2,4})(?![0-9])",
        "auth-user-pass": (rf"auth-user-pass[^\n]{{0,20}}\r?\n[\w.@+-]{{2,40}}\r?\n{_SURE}{_END}"),
        '"=hex:': r"(?<=password)\"=hex:(?P<exact>(?:[0-9a-f]{2},){7}[0-9a-f]{2})(?![,\w])",
        "option passwo": r"option password [\"'](?P<exact>[^\s\"']{6,63})[\"']",
        "sent-username ": rf"sent-username \S{{1,60}} password (?:[07] )?{_SURE}",
        "chap password ": rf"chap password (?:[07] )?{_SURE}",
        "neighbor ": rf"neighbor \S{{3,40}} password (?:[07] )?{_SURE}",
        "set passphrase ": rf"set passphrase {_SURE}",
        "plaintext-password ": rf"plaintext-password {_SURE}",
        "pppoe ": rf"pppoe (?:[\w-]{{1,20}} ){{0,3}}password {_SURE}",
        "d/root-password": rf"d/root-password(?:-again)? password {_SURE}",
        "d/user-password": rf"d/user-password(?:-again)? password {_SURE}",
        "password>": r"password>\s{0,40}<value>(?P<exact>[^<\s]{6,64})</value>",
        "pass show ": rf"pass show [\w./@-]{{3,60}}\r?\n{_LOOSE}{_END}",
        "password}": (
            rf"password\}}[ \t]{{2,12}}{_LOOSE}{_END}"
            r"|password\}[^\n]{0,40}base64 -{1,2}d\w{0,6}(?:; ?echo)?\r?\n"
            rf"(?P<exact>[\w!#$%^&*+=~.-]{{8,64}}){_END}"
        ),
        "passphrase": (
            r"passphrase(?: (?:for|of|to) [\w ]{2,40})?(?:: | ?= ?)"
            rf"(?P<exact>(?-i:{_WORDS})){_END}"
        ),
        "pass": (
            r"pass(?:word)?[\"']?\s?[:=]\s?[\"'](?P<exact>(?-i:[a-z]{16}))[\"']"
            r"|password[ :=]{1,3}"
            r"(?P<sure>(?-i:(?=[a-z ]{0,18}[0-9])[a-z0-9]{4}(?: [a-z0-9]{4}){3}))(?=\s|\Z)"
            r"|password:: (?P<loose>\S{8,64})"
        ),
        "\npass": rf"\npass(?:word)?(?:[ \t]{{1,8}}|\s?[=:]\s?){_OF_MAIL}{_END}",
        "_pass": rf"_pass(?:word)?\s?[=:]\s?{_OF_MAIL}{_END}",
        "simple ": rf"(?:(?<=password )|(?<=cipher ))simple {_SURE}",
        'password";': r"password\";s:[0-9]{1,2}:\"(?P<sure>[^\s\"]{6,64})\"",
        'password"': (
            r"password\"(?:\r?\n\r?\n|: ?\{\s{0,20}\"(?:value|S)\": ?\")"
            r"(?P<sure>[^\s\"]{6,64})(?=[\"\s])"
        ),
        "password<": (
            r"password</(?:key>\s{0,40}<value[^<>]{0,40}>|stringprop>\s{0,40}<stringprop name="
            r"\"argument\.value\">)(?P<sure>[^\s<>]{6,64})</"
        ),
        "password'": rf"password'\]\['\w{{1,30}}'\]\s?=\s?{_LITERAL}",
        "md5('": r"md5\('(?P<sure>[^\s']{6,64})'\)",
        ".hash(": rf"(?<=context)\.hash\({_LITERAL}",
        "pwgen ": r"pwgen [^\n]{0,30}\r?\n(?P<exact>\S{8,64})(?=\r?\n[^\n]{0,40}(?:pass|pw))",
    },
    "->": {hint: rf"(?<![\w.]){hint}\+? (?:pw |login )?-> {_LOOSE}{_END}" for hint in SERVICES},
    " :": {hint: rf"{hint}\s{{1,24}}: ?(?P<exact>\S{{8,63}}){_END}" for hint in _KEY_CONTENTS},
    "<<<": {
        hint: (
            rf"{hint}[^\n|;]{{0,80}}?<<< ?\$?[\"'](?:(?P<exact>(?-i:{_WORDS}))(?=[\"'])"
            r"|(?P<sure>[^\s\"'\\]{6,64}))"
        )
        for hint in _HERE_STRINGS
    },
    "  ": {
        hint: (
            rf"(?<![\w.]){hint}\+?(?:[ \t]{{1,12}}|: ?)[\w.@+-]{{3,60}}"
            rf"(?:[ \t]{{1,12}}| / |, ){_LOOSE}{_END}"
        )
        for hint in SERVICES
    },
}
"""Those that are searched only in a text with the sign that all of a group have."""

"""Secrets and personal data in the ways that public files write them, and what looks like them.

The forms are those of programs, configs, notes and logs; every word and value is made up here.
"""

from __future__ import annotations

import base64
import re

import pytest

from stages.signals.credentials import find_secrets
from stages.signals.personal_data import find_personal_data

_KEY = "q8Zk81mQw0Lr5TbX9vHs2NcJ4dYpAf7GuE"
_PEM = (
    "-----BEGIN {0}-----\n" + base64.b64encode(bytes(range(240))).decode() + "\n-----END {0}-----\n"
)
_ENCODED_KEY = base64.b64encode(_PEM.format("RSA PRIVATE KEY").encode()).decode()
_ENCODED_CERTIFICATE = base64.b64encode(_PEM.format("CERTIFICATE").encode()).decode()
SECRETS = (
    f"data:\n  tls.key: ⟦{_ENCODED_KEY}⟧\n",
    f"    client-key-data: ⟦{_ENCODED_KEY}⟧",
    'curl_setopt($ch, CURLOPT_USERPWD, "lena:⟦kX8fishtank22⟧");',
    'easy_setopt(curl, CURLOPT_PASSWORD, "⟦gR7pondweed!⟧");',
    f'easy_setopt(curl, CURLOPT_XOAUTH2_BEARER,\n        "⟦{_KEY}⟧");',
    'if (user == "lena" && password == "⟦brick91lane⟧") {',
    "if ($pass === '⟦mud#Lark44⟧')",
    'password != "⟦brick91lane⟧"',
    'if (password.equals("⟦otter77pail⟧"))',
    f'API_KEY = (\n    "⟦{_KEY}⟧"\n)',
    'DB_PASSWORD = \\\n        "⟦brick91lane⟧"',
    f'clientSecret:\n        "⟦{_KEY}⟧",',
    "jwt.sign({ id: user._id, role: 'x' }, '⟦tulipbarn16⟧', {expiresIn: '1h'})",
    "const who = jwt.verify(token, '⟦tulipbarn16⟧');",
    'jwt.encode(payload, "⟦tulipbarn16⟧", algorithm="HS256")',
    "smtp://lena.moor@gmail.com:⟦brick91lane⟧@smtp.gmail.com:587",
    "user%3Dlena%26password%3D⟦brick91lane⟧%26next",
    "client_secret = '\"⟦1d4b2097ac622ba702d19de498f005747a8b21d3⟧\"',",
    "패스워드:⟦brick91lane⟧",
    "BROKER_PSWD=⟦brick91lane⟧",
    "P/W: ⟦brick91lane⟧",
    "got ftp creds: `lena:⟦mud#Lark44⟧`",
    "valid credentials `svc_web:⟦mud#Lark44⟧`",
    "db creds -> `blog:⟦mud#Lark44⟧`",
    "SECRET_KEY = '⟦barley.16!⟧'",
    "app.secret_key = '⟦Heron88387⟧'",
    "lena@pantry:~$ wg genkey\n⟦RXx2nznYZEGZwOW9vPvIWzfOkcveH8Gw6mtE8TBDbdc=⟧",
    "heroku: rediss://h:⟦p4edc4feb5878fb150740fa108f97953f3d6eaee116af0a61a95d6eafcdf2c239⟧@ec2-1.net:61",
    '{"uri":"postgresql:\\/\\/jira:⟦WF8.g59-VT⟧@smtp.lumeria.net:5432\\/users"}',
    "http://line.pantry.tv:80/live/mpx0417/⟦1NYV9OAkb⟧/1093.ts",
    "http://influx.lan:8086/query?u=lena&p=⟦orkan_sparrow61⟧&db=k6",
    'variable "db_password" {\n  default = "⟦sy4nm(OhO7⟧"\n}',
    'Do you know the wifi password? Yes, it is "⟦biene-laterne799⟧", one word.',
    "A: the login for moor.it?\nB: sure, lena / ⟦Gm3-E_2_!NRk2⟧",
    f"dd-application-key: ⟦{'4f4ad38b7e87ad8e6fc1e33069e6a40ffb73e345'}⟧",
    "aws_secret_access_key = ⟦0QUY/Hw/NJH6p3whsIb\nt6kgpwqs9q8sUOA0u+Rq1⟧\nregion = eu",
    "<td>Secret access key</td><td>⟦JTTkzpAXYm/yIqCMU4<br>rsXsgmkP7FAvqurjXKd7dm⟧</td>",
    'token.append("⟦ghp_q8Zk81mQw0Lr5");\ntoken.append("TbX9vHs2NcJ4dYpAf7GuEx3⟧");',
    'token = "⟦ghp_q8Zk81mQw0Lr5" ++ "TbX9vHs2NcJ4dYpAf7GuEx3⟧"',
    "WLAN: pantry-Gast, Schlüssel: ⟦barley_36copper⟧",
    'echo -n "⟦ghp_q8Zk81mQw0Lr5" > token\necho -n "TbX9vHs2NcJ4dYpAf7GuEx3⟧" >> token',
    "SEED_PHRASE=⟦acid barely cactus dawn eager fabric gadget habit icon jacket kangaroo label⟧",
)
NO_SECRETS = (
    "stripe.api_key = 'sk_test_4eC39HqLyjWDarjtT1zdP7dc'",
    "Authorization: Basic czZCaGRSa3F0MzpnWDFmQmF0M2JW",
    "npm install password-validator@5.3.0",
    "m_passwordGenerator->setLength(m_ui->box4->value());",
    f"data:\n  tls.key: {_ENCODED_CERTIFICATE}\n",
    "secret: ENC[AES256_GCM,data:WG4wGQVUxvBidXovf/CbAPl+me+g4OrL+EyGUzfI,\n  iv:arYL2Ttbv9h45a=]",
    "mysql -u lena -p pantry77store < dump.sql",
    "POST /login.php?action=lostpassword HTTP/1.1",
    "ssl_ciphers = HIGH:!aNULL:!PSK:!DSS:!RC4:!SEED:+MEDIUM",
    "{{ .Values.cache.password | b64enc | quote }}",
    '"app.user.password=password",\n  "management.endpoints.web.include=se1"',
    'stopwords = ["0989c462-69c9-49fa-b7d2-30dc5c576a97"]',
    "| Enter Password | 0x20DF5FA0 |",
    "{password: newPw, password2: newPw2};",
    "(ConvertTo-SecureString -AsPlainText 'x' -Force)",
    "irc:x:39:39:ircd:/var/run:/usr/sbin/nologin\nlist:x:38:38:Mailing List Manager",
    "The password hash is: `97268a8ae45ac7d15c3cea4ce6ea550b`.",
    "password hash of lena: `$2y$10$vcrYth5YcCLlZaPDj6PwqOYTw68W1.3WeKlBn70JonsdW/MhFYK4C`",
    "if (md5($_POST['passwd']) != 'f99565791ffce0529dda71ef6ae4e478')",
    '<elem key="key">AAAAC3NzaC1lZDI1NTE5AAAAIJJNsnObxF6+8lUGu25Fy+PGT3gmiSXRK+kogFXhBVSY</elem>',
    "Password: \nroot@pantry2:~# whoami",
    "  - no-log-password\n  - no-prompting-9\n",
    "site.passwordValidateMessage=\\u5bc6\\u7801",
    "SECRET_KEY = os.environ['SECRET_KEY']",
    "SECRET_KEY = config.secret_key",
    "wg genkey | tee private.key | wg pubkey > public.key",
    "WLAN: pantry-Gast, Schlüssel: am Empfang",
    'echo "ghp_q8Zk81mQw0Lr5" > token\necho "TbX9vHs2Nc" >> token',
    "use the same username and password throughout the process.",
    'echo "TDPwOvcLsbCWV5erlk6OHFnlFoXNtdQOt2JQeq+i4Ho=" | openssl enc -d -aes-128-cbc',
)
NO_PERSONAL_DATA = (
    "Re: <3F8A1B22.7050901@news.pantry.de> schrieb er damals",
    "use foo@bar.com in your tests, never a real one",
    "NACE 47.11.20.10 retail",
    "lemmy: !hill-gate@lemmy.world",
    "nslookup softfoods.us 114.114.114.114",
    "slot: obj@assays$counts@x.data",
    "diff: +6907 -348",
    'ciphers = ["aes128-gcm@openssh.com", "curve25519-sha256@libssh.org"]',
    "clone as `git@github.com` with a key",
    '<path d="m9 4c.62.83 1.3 1.6 2.26 61.61.23.24 1.1 1.16 1.32">',
    '<path d="M3.348,0,0,1-.451-1.821,3.46,3.46,0,0,1,2.749-63.28.44.44,0,0,0,.355-.28">',
    "{ cidr: 10.41.58.0/24, status: reserved }",
    "beanbag info 10.41.0.2 9010",
    "reservation (60001..60513)",
    "Portable Kettle 4.3.6578.38136",
    '<finished time="1555805638" timestr="Sun Apr 21">',
    "Phone: +1 555-0177",
    "sum: +4930125,50 and +12,5",
    "resize(4539611155203132, 866)",
    "process_payment(4539611155203133, 866)",
    "mail of authors: xxx@xxx.xxx",
    "for text inputs: /-1|2147483647|524288/.test(text)",
    "height = (state + 273.15) / 0.0065",
    "contact: 078 05 1123",
    "NL91 ABNA 0417 1643 01",
    "payload http://0251.254.169.254 of octal parts",
    "b12f 0813 8120 8205 a5f5 2970",
    "my credit card number is 36168002586008",
)
PERSONAL_DATA = (
    "mail ⟦security@openssh.com⟧ first",
    "git@vger.kernel.org".join("⟦⟧"),
    "Ida Moor,Graz,⟦+902123214203⟧,2017-11-06",
    "process_payment(⟦4539611155203132⟧, 866)",
    " 4  34 ms  7 ms  28 ms  ⟦25.48.15.22⟧\n 5  45 ms  22 ms  54 ms  ⟦21.17.65.244⟧",
    "hosts ⟦52.61.23.24⟧ ⟦51.92.83.74⟧ ⟦50.2.3.41⟧",
    "Pedidos al ⟦011 15 2599-6940⟧ de 9 a 20 hs.",
    "lena:x:1943:1911:Lena Moor,,,⟦lena@moor-autos.hu⟧:/home/lena:/bin/bash",
    "<span>info</span> → ⟦billing at pantrylytics dot com⟧",
    "Mail naar ⟦lena apenstaartje fietsen-moor punt nl⟧",
    "reach me at ⟦lena underscore moor at fastmail dot fm⟧ please",
    "Email: ⟦lena.moor_AT_pantry_DOT_edu_DOT_tr⟧",
    "=head1 AUTHOR\n\nLena Moor, C<< <⟦lmoor at cpan-pantry.org⟧> >>",
    "tomcat pts/0        ⟦31.27.229.74⟧     03:09    1:02   0.05s -bash",
    "Sabine Moor (⟦moor at pantrybooks.de⟧)",
    "<td>E-Mail</td><td>⟦lenamoor&nbsp;[at]&nbsp;gmail.com⟧</td>",
    "⟦{l.moor, m.bianchi}@dei.pantry-lab.it⟧",
    "document.write('⟦lena.moor' + '@' + 'bredband-moor.se⟧');",
    "İletişim: ⟦lena.moor (et) hotmail (nokta) com⟧",
    "כתבו אליי: ⟦lena.moor שטרודל walla נקודה co נקודה il⟧",
    "beacon to ⟦137 (dot) 98 (dot) 144 (dot) 100⟧ every 60 s",
)


def _marked(text: str, spans: list) -> str:
    """`text` with the spans in brackets."""
    for span in sorted(spans, reverse=True):
        text = f"{text[: span.start]}⟦{text[span.start : span.end]}⟧{text[span.end :]}"
    return text


def _plain(text: str) -> str:
    return re.sub("[⟦⟧]", "", text)


@pytest.mark.parametrize("text", [*SECRETS, *NO_SECRETS])
def test_secrets_are_found_whole_and_nothing_else_is(text: str) -> None:
    assert _marked(_plain(text), find_secrets(_plain(text))) == text


@pytest.mark.parametrize("text", [*PERSONAL_DATA, *NO_PERSONAL_DATA])
def test_personal_data_is_found_whole_and_nothing_else_is(text: str) -> None:
    assert _marked(_plain(text), find_personal_data(_plain(text))) == text

"""Names, hosts and domains by language, from which the personal kinds draw people and firms."""

from __future__ import annotations

import re

_TABLE = """
en
    | James Emily Oliver Sarah Daniel Megan Thomas Laura Kevin Rachel
    | Harrison Whitfield Carter Donnelly Baxter Prescott Nolan Merritt Ashworth Keller
    | gmail.com yahoo.com outlook.com hotmail.com icloud.com aol.com btinternet.com proton.me
    | com co.uk org net
de
    | Lukas Sabine Jürgen=juergen Anna Matthias Birgit Stefan Katrin Jörg=joerg Heike
    | Schäfer=schaefer Hoffmann Krüger=krueger Lindner Vogt Baumann Köhler=koehler Brandt Seidel
    | gmx.de web.de t-online.de gmail.com freenet.de posteo.de
    | de com at ch
es
    | Carlos Lucía=lucia Javier Marta Álvaro=alvaro Carmen Diego Inés=ines
    | García=garcia Navarro Ortega Ibáñez=ibanez Molina Castillo Rojas Serrano
    | gmail.com hotmail.com hotmail.es yahoo.es telefonica.net
    | es com com.mx com.ar cl
fr
    | Julien Camille Émilie=emilie Antoine Chloé=chloe Mathieu Sylvie Benoît=benoit
    | Lefèvre=lefevre Moreau Girard Fournier Chevalier Roussel Garnier Perrin
    | orange.fr free.fr wanadoo.fr laposte.net gmail.com hotmail.fr
    | fr com be ch
pt
    | João=joao Mariana Tiago Beatriz Rafael Letícia=leticia Bruno Camila
    | Almeida Ferreira Carvalho Barbosa Teixeira Moreira Pinto Ribeiro
    | gmail.com hotmail.com uol.com.br bol.com.br sapo.pt terra.com.br
    | com.br pt org.br com
it
    | Marco Giulia Alessandro Chiara Luca Francesca Paolo Elena
    | Bianchi Romano Colombo Ferrari Conti Marchetti Galli Rinaldi
    | libero.it gmail.com alice.it tiscali.it virgilio.it hotmail.it
    | it com eu
pl
    | Paweł=pawel Agnieszka Krzysztof Małgorzata=malgorzata Tomasz Katarzyna
    | Kowalski Wójcik=wojcik Zieliński=zielinski Mazur Pawlak Krawczyk
    | wp.pl o2.pl onet.pl interia.pl gmail.com
    | pl com.pl
cs
    | Jiří=jiri Petra Tomáš=tomas Lenka Ondřej=ondrej Veronika
    | Novák=novak Dvořák=dvorak Svoboda Procházka=prochazka Beneš=benes
    | seznam.cz email.cz centrum.cz gmail.com
    | cz com
nl
    | Jeroen Sanne Maarten Femke Wouter Anouk
    | Bakker Visser Dekker Mulder Hoekstra Vermeulen
    | gmail.com ziggo.nl kpnmail.nl xs4all.nl hotmail.nl
    | nl be
sv
    | Anders Linnéa=linnea Johan Sara Björn=bjorn Malin
    | Lindqvist Nyström=nystrom Bergman Sandberg Holm Ekström=ekstrom
    | gmail.com telia.com hotmail.se
    | se nu
no
    | Ola Ingrid Håkon=hakon Kari Eirik
    | Hansen Solberg Berge Haugen Lund
    | online.no gmail.com
    | no
da
    | Mette Søren=soren Kirsten Rasmus Lars
    | Jensen Kjær=kjaer Mortensen Holst Dam
    | mail.dk gmail.com
    | dk
fi
    | Mikko Aino Jukka Päivi=paivi Antti
    | Virtanen Korhonen Mäkinen=makinen Laine Heikkilä=heikkila
    | gmail.com luukku.com kolumbus.fi
    | fi
ru
    | Иван=ivan Ольга=olga Дмитрий=dmitry Екатерина=ekaterina Сергей=sergey Наталья=natalia
    | Соколов=sokolov Лебедев=lebedev Морозов=morozov Волков=volkov Зайцев=zaitsev
    | mail.ru yandex.ru bk.ru list.ru gmail.com rambler.ru
    | ru com
uk
    | Олена=olena Андрій=andrii Тарас=taras Ірина=iryna Богдан=bohdan
    | Шевченко=shevchenko Бондаренко=bondarenko Мельник=melnyk Коваль=koval
    | ukr.net i.ua gmail.com meta.ua
    | ua com.ua
tr
    | Mehmet Ayşe=ayse Emre Zeynep Burak Elif
    | Yılmaz=yilmaz Kaya Demir Çelik=celik Aydın=aydin
    | gmail.com hotmail.com yandex.com mynet.com
    | com.tr com
ja
    | 健太=kenta 由美=yumi 大輔=daisuke 直子=naoko 翔=sho
    | 佐藤=sato 鈴木=suzuki 田中=tanaka 渡辺=watanabe 山本=yamamoto
    | yahoo.co.jp docomo.ne.jp gmail.com nifty.com
    | co.jp jp
zh
    | 伟=wei 芳=fang 磊=lei 静=jing 强=qiang
    | 王=wang 李=li 张=zhang 刘=liu 陈=chen
    | qq.com sina.com foxmail.com outlook.com sohu.com
    | cn com.cn com
ko
    | 민준=minjun 서연=seoyeon 지훈=jihoon 수진=sujin
    | 김=kim 이=lee 박=park 최=choi 정=jung
    | naver.com daum.net hanmail.net gmail.com nate.com
    | co.kr kr
ar
    | أحمد=ahmed فاطمة=fatima محمد=mohamed سارة=sara
    | الحسن=alhassan منصور=mansour خليل=khalil سالم=salem
    | gmail.com hotmail.com yahoo.com
    | com ae sa
he
    | דוד=david נועה=noa יוסי=yossi
    | כהן=cohen לוי=levy מזרחי=mizrahi
    | gmail.com walla.co.il
    | co.il
hi
    | राहुल=rahul प्रिया=priya अमित=amit नेहा=neha
    | शर्मा=sharma वर्मा=verma गुप्ता=gupta पटेल=patel
    | gmail.com rediffmail.com yahoo.co.in
    | in co.in
vi
    | Minh Hương=huong Tuấn=tuan Lan Đức=duc
    | Nguyễn=nguyen Trần=tran Phạm=pham Hoàng=hoang
    | gmail.com yahoo.com.vn
    | vn com.vn
id
    | Budi Siti Agus Dewi Rizky
    | Santoso Wijaya Pratama Hidayat Lestari
    | gmail.com yahoo.co.id ymail.com
    | co.id id
ro
    | Andrei Ioana Mihai Elena
    | Popescu Ionescu Dumitru Stan
    | yahoo.com gmail.com yahoo.ro
    | ro
hu
    | Gábor=gabor Eszter Zoltán=zoltan Judit
    | Nagy Kovács=kovacs Szabó=szabo Horváth=horvath
    | freemail.hu citromail.hu gmail.com
    | hu
el
    | Γιώργος=giorgos Μαρία=maria Νίκος=nikos
    | Παπαδόπουλος=papadopoulos Νικολάου=nikolaou
    | gmail.com otenet.gr yahoo.gr
    | gr
bg
    | Георги=georgi Мария=maria Николай=nikolay
    | Иванов=ivanov Димитров=dimitrov Петров=petrov
    | abv.bg gmail.com
    | bg
th
    | สมชาย=somchai มาลี=malee อนันต์=anan
    | ใจดี=jaidee ศรีสุข=srisuk
    | gmail.com hotmail.com
    | co.th
fa
    | رضا=reza مریم=maryam علی=ali
    | کریمی=karimi رضایی=rezaei
    | gmail.com yahoo.com
    | ir
"""


def _pair(word: str) -> tuple[str, str]:
    written, _, latin = word.partition("=")
    return written, latin or written.lower()


def _row(line: str) -> tuple[str, tuple[list[str], ...]]:
    language, *columns = (column.strip() for column in line.split("|"))
    return language, tuple(column.split() for column in columns)


_ROWS = dict(_row(line) for line in re.split(r"\n(?! )", _TABLE.strip()))
FIRST_NAMES = {name: [_pair(word) for word in row[0]] for name, row in _ROWS.items()}
LAST_NAMES = {name: [_pair(word) for word in row[1]] for name, row in _ROWS.items()}
"""Names by language, each as it is written and in the letters of an address."""
MAIL_HOSTS = {name: row[2] for name, row in _ROWS.items()}
"""Providers of mailboxes that people of a language use."""
TOP_DOMAINS = {name: row[3] for name, row in _ROWS.items()}
FIRM_STEMS = (
    *("nordlicht", "vertex", "alpenblick", "solaria", "brightwell", "kestrel", "lumora", "novatek"),
    *(
        "harborline",
        "quantix",
        "meridian",
        "tessera",
        "bluefern",
        "ironbridge",
        "castellan",
        "vivaro",
    ),
    *("oakmere", "redstone", "silvania", "polaris", "argenta", "cobalt", "delphin", "estrella"),
)
FIRM_TAILS = (
    *(
        "-tech",
        "-consulting",
        "group",
        "labs",
        "soft",
        "-logistics",
        "media",
        "-immo",
        "data",
        "-shop",
    ),
    *(
        "systems",
        "-energy",
        "design",
        "works",
        "-travel",
        "foods",
        "clinic",
        "-bau",
        "studio",
        "net",
    ),
)
ROLES = {
    "en": ("info", "sales", "support", "careers", "press", "billing", "office", "bookings"),
    "de": ("info", "kontakt", "vertrieb", "bewerbung", "buero", "presse", "datenschutz"),
    "es": ("info", "contacto", "ventas", "reservas", "administracion"),
    "fr": ("contact", "accueil", "secretariat", "commercial", "mairie"),
    "pt": ("contato", "vendas", "atendimento", "comercial", "rh"),
    "it": ("info", "segreteria", "prenotazioni", "amministrazione", "ufficiostampa"),
    "pl": ("biuro", "sekretariat", "rekrutacja", "sklep", "kontakt"),
    "ja": ("info", "contact", "saiyo", "toiawase", "office"),
}
"""Local parts of offices, where a language has its own; `en` serves the others."""

"""Words, prefixes and patterns that the makers of `personal.py` draw from."""

from __future__ import annotations

FIRST: dict[str, str] = {
    "en": "James Olivia Harry Megan Scott Priya Dean Laura Colin Heather Wesley Tara Nathan Brooke "
    "Gavin Alice Marcus Joanne Keith Paula Derek Simone Trevor Audrey",
    "de": "Jürgen Sabine Matthias Anke Florian Heike Tobias Ulrike Björn Katrin Holger Silke Jörg "
    "Lena Stefan Birgit Kai Annette",
    "fr": "Amélie Thierry Benoît Chloé Gérard Hélène Luc Mathilde Sylvain Céline Rémi Aurélie "
    "Pascal Noémie",
    "es": "Javier Lucía Álvaro Carmen Íñigo Rocío Pablo Marta Andrés Belén Sergio Nuria Raúl Elena",
    "it": "Matteo Giulia Lorenzo Chiara Davide Federica Stefano Elisa Nicola Paola Sandro Ilaria",
    "pl": "Paweł Agnieszka Krzysztof Małgorzata Łukasz Joanna Michał Beata Grzegorz Ewa",
    "pt": "João Beatriz Tiago Inês Rui Mariana Gonçalo Fernanda Luís Patrícia Thiago Larissa",
    "nl": "Sander Marieke Joost Femke Bas Liesbeth Wouter Anouk Jeroen Sanne",
    "sv": "Björn Ingrid Håkan Åsa Lars Karin Mats Ulrika Göran Elin Søren Kjersti",
    "cs": "Tomáš Petra Jiří Lenka Ondřej Kateřina Zdeněk Veronika Miloš Hana",
    "tr": "Emre Ayşe Murat Zeynep Burak Elif Hakan Gül Onur Derya",
}
LAST: dict[str, str] = {
    "en": "Thornton Whitaker Blackwood Pearce Holloway Mercer Donnelly Ashworth Kessler Langley "
    "Barrow Castillo Nguyen Okafor Prescott Radcliffe Sinclair Tate Underhill Vance Mehta Quigley",
    "de": "Brückner Hartwig Lindemann Schäfer Kröger Vogelsang Weißmann Ostermann Dietzel Pfeiffer "
    "Reinhold Kühn Seidel Baumgart",
    "fr": "Lefèvre Gauthier Roussel Delacroix Mercier Perrin Chevalier Fontaine Barbier Marchand",
    "es": "Ibáñez Ortega Navarro Castaño Vidal Herrero Peña Quintero Salazar Bermúdez",
    "it": "Moretti Ferrara Galli Bianchini Colombo Rinaldi Marchetti Pellegrini Sartori Vitale",
    "pl": "Kowalczyk Wiśniewska Zieliński Mazur Dąbrowska Pawlak Górski Wróbel Sikora",
    "pt": "Carvalho Teixeira Moreira Azevedo Pacheco Nogueira Barbosa Cardoso Figueira",
    "nl": "Dijkstra Vermeulen Hoekstra Kuipers Brouwer Wolters Postma Scholten",
    "sv": "Lindqvist Bergström Nyström Hedlund Sjöberg Åkesson Ekdahl Sandvik Mortensen",
    "cs": "Dvořák Černý Procházka Kučera Beneš Novotná Hájek Křížová",
    "tr": "Yılmaz Demir Kaya Şahin Çelik Arslan Doğan Koç",
}
PAIRS: dict[str, tuple[str, ...]] = {
    "ru": (
        *("Иван Соколов|ivan sokolov", "Ольга Миронова|olga mironova"),
        *("Дмитрий Лебедев|dmitry lebedev", "Анна Кузьмина|anna kuzmina"),
        *("Сергей Орлов|sergey orlov", "Елена Титова|elena titova"),
    ),
    "uk": ("Тарас Коваленко|taras kovalenko", "Оксана Бондар|oksana bondar"),
    "ja": (
        *("佐藤 健一|kenichi sato", "高橋 由美|yumi takahashi", "中村 翔太|shota nakamura"),
        *("小林 真理|mari kobayashi", "渡辺 大輔|daisuke watanabe"),
    ),
    "zh": ("王伟|wei wang", "李晓梅|xiaomei li", "张建国|jianguo zhang", "陈思远|siyuan chen"),
    "ko": ("김민수|minsoo kim", "박지영|jiyoung park", "이현우|hyunwoo lee"),
    "ar": ("أحمد الشريف|ahmed elsherif", "ليلى منصور|laila mansour", "خالد العلي|khaled alali"),
    "he": ("יוסי לוי|yossi levi", "רונית כהן|ronit cohen", "אבי שרון|avi sharon"),
    "el": ("Νίκος Παππάς|nikos pappas", "Μαρία Ιωάννου|maria ioannou"),
    "hi": ("राजेश शर्मा|rajesh sharma", "सुनीता वर्मा|sunita verma", "अमित जोशी|amit joshi"),
    "th": ("สมชาย ใจดี|somchai jaidee", "วิภา ทองคำ|wipa thongkham"),
    "vi": ("Nguyễn Văn Hùng|hung nguyen", "Trần Thị Lan|lan tran", "Lê Minh Tuấn|tuan le"),
}
FIRM_HEADS = (
    "nord bright stone river alpen blue delta hill green west metro sun cedar oak harbor red "
    "silver terra vela ponte kraft lumen astra polar quint grand ferro inno agri medi logi"
)
FIRM_TAILS = (
    "works soft data line consult trade media labs tech bau druck shop parts print health systems "
    "studio energy group tools press foods logistics travel design optik mechanics"
)
FREE = (
    "gmail.com gmail.com gmail.com yahoo.com hotmail.com outlook.com icloud.com proton.me aol.com "
    "live.com msn.com comcast.net verizon.net fastmail.com"
)
FREE_OF: dict[str, str] = {
    "de": "gmx.de web.de t-online.de freenet.de",
    "fr": "orange.fr wanadoo.fr free.fr laposte.net",
    "it": "libero.it alice.it tiscali.it virgilio.it",
    "pl": "wp.pl o2.pl onet.pl interia.pl",
    "ru": "mail.ru yandex.ru bk.ru list.ru rambler.ru",
    "cs": "seznam.cz email.cz centrum.cz",
    "cn": "163.com qq.com 126.com sina.com",
    "jp": "yahoo.co.jp docomo.ne.jp nifty.com",
    "kr": "naver.com hanmail.net daum.net",
    "br": "uol.com.br terra.com.br bol.com.br",
    "in": "rediffmail.com yahoo.co.in",
    "uk": "btinternet.com yahoo.co.uk ntlworld.com",
    "es": "telefonica.net hotmail.es yahoo.es",
    "nl": "ziggo.nl kpnmail.nl planet.nl",
}
TOP = "com com com org net io de co.uk fr it nl eu ch ca com.au dev app co"
OFFICE = (
    "info sales office support contact hello admissions billing service press jobs hr accounts "
    "reservations orders helpdesk team editor webmaster postmaster abuse privacy security dpo"
)
IDN_MAIL: dict[str, tuple[str, str]] = {
    "ru": ("инфо почта иванов директор заказ", "фирма-север.рф стройдом.рф лесторг.рф окна-юг.рф"),
    "zh": ("客服 王伟 销售 李梅", "华北机械.中国 东海商贸.公司 天山科技.网络"),
    "ar": ("معلومات مبيعات خالد", "شركة-النور.امارات مكتب-الشرق.السعودية"),
    "el": ("πληροφορίες νίκος πωλήσεις", "εταιρεία-βορράς.ελ βιβλιοπωλείο-ήλιος.ελ"),
    "hi": ("संपर्क राजेश सहायता", "हिन्दीपुस्तक.भारत दिल्लीबाज़ार.भारत"),
    "de": ("jörg.müller büro köhler straßenbau", "bäckerei-grün.de möbel-krüger.de tür-und-tor.at"),
    "ja": ("受付 営業部", "山田工業.jp さくら書店.jp"),
}
UNIVERSITIES = (
    "mit.edu berkeley.edu tum.de uni-bonn.de ethz.ch ox.ac.uk kth.se u-tokyo.ac.jp unimi.it "
    "uva.nl cvut.cz usp.br anu.edu.au tsinghua.edu.cn umich.edu uw.edu uni-koeln.de cam.ac.uk"
)
FACULTIES = ("cs.", "math.", "physics.", "ee.", "", "", "med.", "stud.", "alumni.")
CITIES = (
    "Leeds Dresden Lyon Porto Turin Gdańsk Utrecht Malmö Boston Denver Calgary Cork Bristol Graz "
    "Basel Ghent Aarhus Bergen Tampere Austin Portland Zaragoza Brno Adelaide"
)
USERS = "jdoe mkay tbird zed coolhand nixfan pyro oldman rustacean sparky lemur foxtrot"
WORDS = "amber basil cobalt dune ember falcon garnet heron indigo juniper kestrel lotus mango"

_EX = "{23|26|34|38|43|46|52|58|63|67|72|76|82|86|93|97}#"
_AREA = (
    "{212|415|312|617|206|303|404|512|713|503|602|702|305|214|818|916|919|608|614|734|416|604|514}"
)
PHONES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "us": ("1", "", (f"{_AREA} {_EX} ####",)),
    "tf": ("1", "", (f"{{800|888|877|866}} {_EX} ####",)),
    "uk": (
        "44",
        "0",
        ("20 7{2|3|4|5|6|8}## ####", "161 2## ####", "131 2## ####", "7{54|71|85|95|96}# ######"),
    ),
    "de": (
        "49",
        "0",
        (
            *("30 %######", "89 %#######", "40 %#######", "221 %######", "711 %#####"),
            *("151 ########", "170 %######", "176 ########", "69 %#######"),
        ),
    ),
    "at": ("43", "0", ("1 {5|7|8}######", "664 %######", "316 {8|6}#####")),
    "ch": ("41", "0", ("44 %## ## ##", "31 3## ## ##", "79 %## ## ##", "22 7## ## ##")),
    "fr": ("33", "0", ("1 4# ## ## ##", "4 7# ## ## ##", "6 {1|2|7|8}# ## ## ##", "5 5# ## ## ##")),
    "be": ("32", "0", ("2 5## ## ##", "3 2## ## ##", "47# ## ## ##", "49# ## ## ##")),
    "nl": ("31", "0", ("20 %## ####", "10 4## ####", "6 {1|2|4|5}### ####", "30 2## ####")),
    "it": (
        "39",
        "",
        ("02 4#######", "06 8#######", "011 5######", "34# ### ####", "33{3|5|8} ### ####"),
    ),
    "es": ("34", "", ("91# ### ###", "93# ### ###", "6{1|2|3|5|6|7}# ### ###", "96# ### ###")),
    "pt": ("351", "", ("21# ### ###", "22# ### ###", "91# ### ###", "96# ### ###")),
    "pl": (
        "48",
        "",
        ("22 %## ## ##", "12 4## ## ##", "60{1|2|3|5|6} ### ###", "50{1|2|3} ### ###"),
    ),
    "cz": ("420", "", ("2{2|3|4|5|7}# ### ###", "60{2|3|4|5|6} ### ###", "77{3|4|5|6|7} ### ###")),
    "se": ("46", "0", ("8 %## ### ##", "31 7## ## ##", "70 %## ## ##", "73 %## ## ##")),
    "no": ("47", "", ("22 ## ## ##", "55 %# ## ##", "9{1|2|3|5} %# ## ##", "4{1|5|7} %# ## ##")),
    "dk": ("45", "", ("33 %# ## ##", "86 %# ## ##", "40 %# ## ##", "22 %# ## ##")),
    "fi": ("358", "0", ("9 {2|4|6|7}### ####", "40 %## ####", "50 %## ####")),
    "ie": ("353", "0", ("1 {4|6|8}## ####", "87 %## ####", "86 %## ####", "21 4## ####")),
    "gr": ("30", "", ("21 0{3|6|8}## ####", "694 ### ####", "697 ### ####")),
    "tr": ("90", "0", ("212 {2|3|5}## ## ##", "532 %## ## ##", "312 4## ## ##", "542 %## ## ##")),
    "ru": ("7", "8 ", ("495 {2|6|7}##-##-##", "812 3##-##-##", "916 %##-##-##", "903 %##-##-##")),
    "ua": ("380", "0", ("44 {2|4}## ## ##", "67 %## ## ##", "50 %## ## ##", "32 2## ## ##")),
    "ro": ("40", "0", ("21 3## ####", "72# ### ###", "74# ### ###")),
    "hu": ("36", "06 ", ("1 {2|3|4}## ####", "30 %## ####", "70 %## ####")),
    "il": ("972", "0", ("3-{5|6|7}##-####", "52-%##-####", "54-%##-####", "2-6##-####")),
    "in": ("91", "0", ("98### #####", "99### #####", "22 2### ####", "80 2### ####")),
    "cn": ("86", "", ("138 #### ####", "139 #### ####", "186 #### ####", "10 6### ####")),
    "jp": ("81", "0", ("3-{3|5|6}###-####", "90-%###-####", "80-%###-####", "6-6###-####")),
    "kr": ("82", "0", ("2-%##-####", "10-{2|3|4|5|7|8|9}###-####", "51-%##-####")),
    "br": ("55", "0", ("11 9%###-####", "11 3###-####", "21 2###-####", "51 3###-####")),
    "mx": ("52", "", ("55 5### ####", "33 3### ####", "81 8### ####")),
    "ar": ("54", "0", ("11 4###-####", "341 4##-####")),
    "cl": ("56", "", ("2 2### ####", "9 {5|6|7|8|9}### ####")),
    "co": ("57", "", ("310 ### ####", "315 ### ####", "601 {2|3|6}## ####")),
    "au": ("61", "0", ("2 9### ####", "3 9### ####", "41# ### ###", "43# ### ###", "7 3### ####")),
    "nz": ("64", "0", ("9 3## ####", "4 4## ####", "21 %## ###", "27 %## ####")),
    "za": ("27", "0", ("11 %## ####", "21 4## ####", "82 %## ####", "83 %## ####")),
    "ng": ("234", "0", ("803 ### ####", "805 ### ####", "806 ### ####")),
    "ke": ("254", "0", ("722 ######", "733 ######", "711 ######")),
    "eg": ("20", "0", ("2 2### ####", "100 ### ####", "122 ### ####")),
    "ae": ("971", "0", ("4 3## ####", "50 %## ####", "55 %## ####")),
    "sa": ("966", "0", ("11 4## ####", "50 %## ####", "55 %## ####")),
    "sg": ("65", "", ("6{2|3|4|5}## ####", "9{1|2|3|4|6|7}## ####")),
    "hk": ("852", "", ("2{3|5|6|8}## ####", "9{2|3|4|6|7}## ####")),
    "tw": ("886", "0", ("2-2###-####", "912-###-###", "933-###-###")),
    "th": ("66", "0", ("2 {2|6}## ####", "81 ### ####", "89 ### ####")),
    "id": ("62", "0", ("21 5## ####", "812 #### ####", "813 #### ####")),
    "ph": ("63", "0", ("917 ### ####", "918 ### ####", "2 8{2|3|5|7|8}## ####")),
    "my": ("60", "0", ("3-2{0|1|2|6}## ####", "12-%## ####", "16-%## ####")),
    "vn": ("84", "0", ("24 3### ####", "28 3### ####", "90 ### ####", "91 ### ####")),
    "pk": ("92", "0", ("300 #######", "321 #######", "333 #######")),
    "ir": ("98", "0", ("21 {2|4|6|7|8}### ####", "912 ### ####")),
}
"""By country: code, trunk prefix, patterns of numbers; `#` is a digit, `%` one of 2 to 9."""

CARDS: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
    "visa": (
        (
            "4",
            "4",
            "4",
            "4",
            "4539",
            "4929",
            "4556",
            "4716",
            "4485",
            "4024",
            "4532",
            "4147",
            "4751",
        ),
        (16,),
    ),
    "mc": (
        (
            "51",
            "52",
            "53",
            "54",
            "55",
            "51",
            "52",
            "53",
            "54",
            "55",
            "2223",
            "2316",
            "2521",
            "2699",
        ),
        (16,),
    ),
    "amex": (("34", "37"), (15,)),
    "disc": (("6011", "6445", "65"), (16,)),
    "diners": (("36", "38", "300", "305"), (14,)),
    "jcb": (("3528", "3540", "3566", "3589"), (16,)),
    "maestro": (("5018", "5020", "5038", "6304", "6759", "6761", "6763"), (16, 18, 19, 13, 12)),
    "up": (("6221", "6225", "6228", "6250"), (16, 19)),
    "mir": (("2200", "2202", "2204"), (16,)),
    "rupay": (("6521", "6070", "6082"), (16,)),
    "elo": (("636368", "650485", "504175"), (16,)),
}
"""By network: prefixes (ISO/IEC 7812 ranges) and lengths."""

FIRST_OCTETS = (
    3, 5, 13, 18, 20, 23, 31, 34, 35, 37, 41, 45, 46, 49, 51, 52, 54, 58, 61, 62, 65, 66, 68, 69,
    71, 73, 77, 78, 79, 80, 81, 82, 83, 84, 85, 87, 88, 89, 91, 93, 94, 95, 103, 104, 107, 109,
    112, 114, 116, 117, 121, 123, 125, 128, 130, 134, 138, 139, 141, 142, 144, 146, 149, 151, 154,
    157, 159, 162, 163, 165, 167, 171, 173, 174, 176, 177, 178, 180, 181, 183, 185, 186, 188, 189,
    190, 193, 194, 195, 196, 199, 200, 201, 202, 206, 207, 209, 210, 212, 213, 216, 217, 218, 220,
)  # fmt: skip
NETWORKS_6 = (
    "2a01:4f8 2a01:4f9 2600:1f18 2600:3c00 2a02:8108 2a00:1450 2400:cb00 2804:14c 2001:470 "
    "2001:41d0 2604:a880 2a03:2880 2003:e1 2401:4900 2409:4050 2a02:c207 2601:646 2605:6400"
)

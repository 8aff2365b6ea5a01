"""Word lists of the nineteenth blind set's personal kinds: people, domains, telephone plans."""

from __future__ import annotations


def words_of(text: str) -> list[str]:
    """The words of a text, so that a list of them stays short to write."""
    return text.split()


# Name as written, and in ASCII where that differs (`Jörg/joerg`).
PEOPLE: dict[str, tuple[str, str]] = {
    "en": (
        "Emily James Olivia Harry Megan Daniel Rachel Thomas Laura Andrew Kevin Heather Brian "
        "Natalie Gareth Fiona Derek Joanne Curtis Paige Scott Wendy Marcus Tessa",
        "Whitaker Hughes Collins Barrett Pearson Fletcher Douglas Sutton Hartley Morrison Bennett "
        "Crawford Dalton Everett Griggs Holloway Langley Mercer Norwood Prescott",
    ),
    "de": (
        "Jürgen/juergen Sabine Katrin Björn/bjoern Uwe Anke Matthias Heike Torsten Silke Lukas "
        "Franziska Steffen Birgit Holger Jörg/joerg Annika Dieter",
        "Schröder/schroeder Köhler/koehler Vogel Brandt Krüger/krueger Lindner Baumann Seidel "
        "Hoffmann Pfeiffer Dietrich Haas Kaufmann Böhm/boehm Ziegler Reuter",
    ),
    "fr": (
        "Élodie/elodie Camille Julien Sébastien/sebastien Aurélie/aurelie Mathieu Claire Benoît/"
        "benoit Sylvie Thierry Manon Guillaume Pascal Nathalie",
        "Lefèvre/lefevre Moreau Girard Fontaine Rousseau Chevalier Perrin Gauthier Marchand "
        "Lemoine Barbier Carpentier Delorme Besnard",
    ),
    "es": (
        "Lucía/lucia Javier Carmen Andrés/andres Pilar Rubén/ruben Marta Álvaro/alvaro Ximena "
        "Diego Rocío/rocio Gonzalo Paula Héctor/hector",
        "Navarro Domínguez/dominguez Ibáñez/ibanez Romero Castillo Vega Ortega Molina Serrano "
        "Cabrera Fuentes Pizarro Quintana Salazar",
    ),
    "it": (
        "Giulia Marco Chiara Alessandro Francesca Davide Elena Stefano Martina Paolo Silvia",
        "Ferrari Ricci Colombo Marchetti Rinaldi Caruso Galli Bellini Moretti Fabbri Conti",
    ),
    "pt": (
        "João/joao Beatriz Tiago Inês/ines Rafael Larissa Thiago Camila Rodrigo Mariana Vinícius/"
        "vinicius",
        "Carvalho Ferreira Gonçalves/goncalves Teixeira Monteiro Barbosa Cardoso Moura Freitas "
        "Nogueira Ramos",
    ),
    "nl": (
        "Joris Marieke Sander Femke Bram Anouk Wouter Lotte Maarten Ilse",
        "Jansen Bakker Visser Smits Mulder Hendriks Dekker Brouwer Kuipers Vermeulen",
    ),
    "pl": (
        "Agnieszka Piotr Małgorzata/malgorzata Tomasz Katarzyna Paweł/pawel Michał/michal Ewa "
        "Grzegorz Joanna",
        "Kowalczyk Wiśniewski/wisniewski Zieliński/zielinski Mazur Wróbel/wrobel Dudek Pawlak "
        "Sikora Baran Górski/gorski",
    ),
    "cs": (
        "Jiří/jiri Petra Tomáš/tomas Lenka Ondřej/ondrej Hana Radek Zuzana Miroslav",
        "Novotný/novotny Dvořák/dvorak Procházka/prochazka Beneš/benes Kolář/kolar Urban Šimek/"
        "simek Hájek/hajek",
    ),
    "sv": (
        "Anders Ingrid Lars Karin Björn/bjorn Sofia Håkan/hakan Malin Göran/goran Linnea",
        "Lindqvist Bergström/bergstrom Ekman Sjöberg/sjoberg Nyström/nystrom Holm Sandberg Wallin",
    ),
    "tr": (
        "Ayşe/ayse Mehmet Elif Burak Zeynep Emre Gökhan/gokhan Selin Hakan",
        "Yılmaz/yilmaz Demir Şahin/sahin Kaya Öztürk/ozturk Aydın/aydin Arslan Polat",
    ),
    "ru": (
        "Алексей/alexey Ольга/olga Дмитрий/dmitry Наталья/natalya Сергей/sergey Татьяна/tatyana "
        "Игорь/igor Марина/marina Павел/pavel Елена/elena",
        "Соколов/sokolov Кузнецов/kuznetsov Морозов/morozov Лебедев/lebedev Орлов/orlov "
        "Гусев/gusev Титов/titov Белов/belov",
    ),
    "uk": (
        "Олена/olena Андрій/andriy Тарас/taras Оксана/oksana Богдан/bohdan Ірина/iryna",
        "Шевчук/shevchuk Бондаренко/bondarenko Коваль/koval Мельник/melnyk Кравець/kravets",
    ),
    "ja": (
        "健太/kenta 美咲/misaki 翔太/shota 由美/yumi 大輔/daisuke 直子/naoko 拓也/takuya",
        "佐藤/sato 高橋/takahashi 山本/yamamoto 中村/nakamura 小林/kobayashi 吉田/yoshida",
    ),
    "zh": (
        "伟/wei 芳/fang 秀英/xiuying 强/qiang 丽/li 建国/jianguo 婷/ting 志强/zhiqiang",
        "王/wang 李/li 张/zhang 刘/liu 陈/chen 杨/yang 赵/zhao 周/zhou 林/lin",
    ),
    "ko": (
        "민준/minjun 서연/seoyeon 지훈/jihoon 수빈/subin 현우/hyunwoo 은지/eunji",
        "김/kim 이/lee 박/park 최/choi 정/jung 강/kang 조/cho",
    ),
    "ar": (
        "محمد/mohammed فاطمة/fatima خالد/khaled سارة/sara يوسف/yousef نورة/noura",
        "الحربي/alharbi منصور/mansour حداد/haddad العتيبي/alotaibi نصار/nassar خليل/khalil",
    ),
    "he": (
        "דוד/david מיכל/michal יוסי/yossi נועה/noa איתן/eitan שרה/sarah",
        "כהן/cohen לוי/levi מזרחי/mizrahi פרץ/peretz ביטון/biton אברהם/avraham",
    ),
    "el": (
        "Γιώργος/giorgos Μαρία/maria Νίκος/nikos Ελένη/eleni Κώστας/kostas",
        "Παπαδόπουλος/papadopoulos Νικολάου/nikolaou Γεωργίου/georgiou Δήμου/dimou",
    ),
    "hi": (
        "राहुल/rahul प्रिया/priya अमित/amit नेहा/neha संजय/sanjay पूजा/pooja",
        "शर्मा/sharma गुप्ता/gupta वर्मा/verma सिंह/singh जोशी/joshi मिश्रा/mishra",
    ),
    "in": (
        "Rahul Priya Amit Neha Sanjay Pooja Arjun Kavita Deepak Anjali Vikram Sunita",
        "Sharma Gupta Iyer Patel Reddy Nair Joshi Banerjee Kulkarni Menon Chopra",
    ),
    "vi": (
        "Lan Hùng/hung Minh Thảo/thao Tuấn/tuan Hương/huong Dũng/dung Mai",
        "Nguyễn/nguyen Trần/tran Phạm/pham Hoàng/hoang Đặng/dang Bùi/bui Võ/vo",
    ),
}
LATIN = words_of("en en en en de fr es it pt nl pl sv in")
FREE: dict[str, str] = {
    "en": "gmail.com gmail.com gmail.com yahoo.com hotmail.com outlook.com aol.com icloud.com "
    "comcast.net protonmail.com verizon.net btinternet.com live.com msn.com fastmail.fm",
    "de": "gmx.de web.de gmx.net t-online.de freenet.de posteo.de gmail.com arcor.de",
    "fr": "orange.fr wanadoo.fr free.fr laposte.net sfr.fr gmail.com yahoo.fr hotmail.fr",
    "es": "gmail.com hotmail.es yahoo.es telefonica.net terra.es hotmail.com",
    "it": "libero.it tiscali.it alice.it virgilio.it gmail.com hotmail.it",
    "pt": "uol.com.br bol.com.br terra.com.br gmail.com sapo.pt hotmail.com ig.com.br",
    "nl": "xs4all.nl ziggo.nl kpnmail.nl planet.nl gmail.com hotmail.nl",
    "pl": "wp.pl onet.pl o2.pl interia.pl gmail.com poczta.onet.pl",
    "cs": "seznam.cz email.cz centrum.cz volny.cz gmail.com",
    "sv": "telia.com bredband.net gmail.com hotmail.se spray.se",
    "tr": "gmail.com hotmail.com.tr mynet.com yandex.com.tr",
    "ru": "mail.ru yandex.ru rambler.ru bk.ru inbox.ru list.ru ya.ru gmail.com",
    "uk": "ukr.net i.ua gmail.com meta.ua bigmir.net",
    "ja": "docomo.ne.jp ezweb.ne.jp yahoo.co.jp gmail.com nifty.com softbank.ne.jp",
    "zh": "qq.com 163.com 126.com sina.com foxmail.com gmail.com aliyun.com",
    "ko": "naver.com daum.net hanmail.net nate.com gmail.com",
    "ar": "gmail.com hotmail.com yahoo.com outlook.sa",
    "he": "walla.co.il gmail.com netvision.net.il 012.net.il",
    "el": "otenet.gr gmail.com yahoo.gr hol.gr",
    "in": "gmail.com rediffmail.com yahoo.co.in yahoo.in",
    "hi": "gmail.com rediffmail.com yahoo.co.in",
    "vi": "gmail.com yahoo.com.vn vnn.vn fpt.vn",
}
TLDS: dict[str, str] = {
    "en": "com com com com org net io co.uk org.uk com.au ca co us edu ac.uk dev tech co.nz gov",
    "de": "de de de de at ch com eu berlin",
    "fr": "fr fr fr com be ch asso.fr",
    "es": "es es com com.ar com.mx cl com.co",
    "it": "it it it com eu",
    "pt": "com.br com.br pt org.br com",
    "nl": "nl nl be com",
    "pl": "pl pl com.pl edu.pl",
    "cs": "cz cz sk",
    "sv": "se se com nu",
    "tr": "com.tr com.tr edu.tr com",
    "ru": "ru ru ru su com",
    "uk": "ua com.ua in.ua",
    "ja": "co.jp co.jp jp ac.jp ne.jp",
    "zh": "com.cn cn com edu.cn com.tw",
    "ko": "co.kr co.kr ac.kr kr com",
    "ar": "com.sa ae com.eg ma com",
    "he": "co.il co.il org.il ac.il",
    "el": "gr gr com.gr",
    "in": "in co.in com ac.in",
    "hi": "in co.in com",
    "vi": "vn com.vn edu.vn",
}
SITE_A = words_of(
    "brack north silver maple blue stone river iron clear bright amber cedar lake hill fox wolf "
    "delta alpha nova terra luna vector pixel data cloud net soft micro inter trans euro pan omni "
    "agri medi bio geo aero hydro solar green red black white gold harbor bay pine oak elm kern"
)
SITE_B = words_of(
    "wood field gate bridge works labs soft tech systems media group consult design logic point "
    "line net craft forge ware solutions partners print energy trade motors pharma foods travel "
    "books shop studio house land burg ton ville stead mark flow stream port base core"
)
ROLES = words_of(
    "info info info sales support contact office admin service hello press jobs billing help "
    "webmaster postmaster abuse security privacy orders accounts marketing hr noc booking"
)
ROLES_OF: dict[str, str] = {
    "de": "info kontakt buero vertrieb datenschutz service bewerbung presse post",
    "fr": "contact info accueil secretariat commercial mairie recrutement",
    "es": "info contacto ventas administracion reservas atencion informes",
    "it": "info amministrazione segreteria commerciale assistenza prenotazioni",
    "pt": "contato vendas atendimento comercial financeiro suporte secretaria",
    "nl": "info klantenservice verkoop administratie receptie",
    "pl": "biuro kontakt sklep sekretariat rekrutacja",
    "ru": "info sale zakaz office support buh priem",
    "cs": "info obchod kancelar podatelna",
    "sv": "info kontakt order kundtjanst",
}
NICKS = words_of(
    "shadow pixel turbo moon kitty dragon happy lazy crazy silent night ghost ninja coffee "
    "panda sunny rocket banjo wild tiny mega lucky dusty salty"
)
NICKS_B = words_of(
    "fox cat rider wolf girl boy man coder bear hawk fan gamer monkey lady king duck bird star"
)
CITIES: dict[str, str] = {
    "en": "Leeds Denver Bristol Austin Portland Cardiff Toledo Dayton Perth Boise Norwich Halifax",
    "de": "Köln Leipzig Bremen Kassel Ulm Graz Bonn Mainz Rostock Erfurt",
    "fr": "Lyon Nantes Lille Rennes Dijon Tours Grenoble Angers",
    "es": "Sevilla Zaragoza Murcia Valencia Bilbao Rosario Puebla",
    "it": "Torino Bologna Verona Padova Bari Genova",
}
STREETS: dict[str, str] = {
    "en": "High_Street Mill_Lane Oak_Avenue Church_Road Main_Street Elm_Drive Park_Way",
    "de": "Bahnhofstraße Hauptstr. Lindenweg Gartenstraße Am_Markt Schillerstr.",
    "fr": "rue_de_la_Gare avenue_Foch rue_Pasteur place_du_Marché",
    "es": "Calle_Mayor Av._Libertad Calle_del_Sol Paseo_del_Río",
    "it": "Via_Roma Via_Garibaldi Corso_Italia Viale_Dante",
}
# Country: calling code, trunk prefix, national styles, landlines, mobiles. In patterns X is a
# digit, N one of 2 to 9; blanks divide groups, `|` divides patterns.
PLANS: dict[str, tuple[str, str, str, str, str]] = {
    "us": (
        "1",
        "",
        "p p h h d s c",
        "212 NNX XXXX|303 NNX XXXX|312 NNX XXXX|404 NNX XXXX|415 NNX XXXX|503 NNX XXXX|"
        "512 NNX XXXX|617 NNX XXXX|713 NNX XXXX|206 NNX XXXX|919 NNX XXXX|602 NNX XXXX",
        "646 NNX XXXX|718 NNX XXXX|917 NNX XXXX|773 NNX XXXX|804 NNX XXXX|310 NNX XXXX",
    ),
    "ca": (
        "1",
        "",
        "p h h d s",
        "416 NNX XXXX|604 NNX XXXX|514 NNX XXXX|613 NNX XXXX",
        "403 NNX XXXX|902 NNX XXXX",
    ),
    "gb": (
        "44",
        "0",
        "s s p c h",
        "20 7NXX XXXX|20 8NXX XXXX|161 NXX XXXX|141 2NX XXXX|"
        "1223 NXXXXX|117 9XX XXXX|113 2XX XXXX|1904 NXXXXX",
        "7712 XXXXXX|7890 XXXXXX|7980 XXXXXX|7515 XXXXXX|7739 XXXXXX",
    ),
    "ie": ("353", "0", "s p h", "1 6XX XXXX|1 8XX XXXX|21 4XX XXXX", "87 NXX XXXX|86 NXX XXXX"),
    "de": (
        "49",
        "0",
        "s / / h p c",
        "30 NXXXXXXX|89 NXXXXXX|40 NXXXXXX|221 NXXXXXX|711 NXXXXXX|"
        "6221 NXXXXX|3641 NXXXXX|30 NXX XX XXX|89 NX XX XX XX|351 NXX XX XX",
        "151 NXXXXXXX|160 NXXXXXX|172 NXXXXXX|176 NXXXXXXX|179 NXX XX XX",
    ),
    "at": ("43", "0", "s / h p", "1 NXXXXXX|316 NXXXXX|662 NXXXXX", "664 NXXXXXX|676 NXXXXXX"),
    "ch": (
        "41",
        "0",
        "s s c",
        "44 NXX XX XX|31 3XX XX XX|22 7XX XX XX|61 2XX XX XX",
        "79 NXX XX XX|76 NXX XX XX|78 NXX XX XX",
    ),
    "fr": (
        "33",
        "0",
        "s s d c h",
        "1 4X XX XX XX|2 40 XX XX XX|3 88 XX XX XX|4 78 XX XX XX|5 56 XX XX XX",
        "6 1X XX XX XX|6 2X XX XX XX|6 8X XX XX XX|7 8X XX XX XX",
    ),
    "es": (
        "34",
        "",
        "s s c",
        "91 5XX XX XX|93 4XX XX XX|952 2X XX XX|954 5X XX XX",
        "61X XXX XXX|65X XX XX XX|69X XXX XXX",
    ),
    "it": (
        "39",
        "",
        "s s / h c",
        "06 5XXX XXXX|02 6XXX XXXX|011 5XX XXXX|055 2XX XXXX|051 6XXXXX",
        "347 XXX XXXX|333 XXXXXXX|328 XXX XXXX",
    ),
    "pt": ("351", "", "s s c", "213 XXX XXX|223 XXX XXX", "912 XXX XXX|963 XXX XXX|934 XXX XXX"),
    "nl": (
        "31",
        "0",
        "h h s c",
        "20 NXX XXXX|10 NXX XXXX|30 NXXXXXX|40 NXX XX XX",
        "6 1XXXXXXX|6 2XX XX XXX|6 5XXXXXXX",
    ),
    "be": (
        "32",
        "0",
        "s d c /",
        "2 5XX XX XX|2 6XX XX XX|9 2XX XX XX",
        "475 XX XX XX|486 XX XX XX|497 XX XX XX",
    ),
    "se": (
        "46",
        "0",
        "h h s",
        "8 5XX XXX XX|31 7XX XX XX|40 3XX XX XX",
        "70 NXX XX XX|73 NXX XX XX|76 NXX XX XX",
    ),
    "no": (
        "47",
        "",
        "s c",
        "22 NX XX XX|55 NX XX XX|73 NX XX XX",
        "91X XX XXX|92X XX XXX|41X XX XXX",
    ),
    "dk": ("45", "", "s s c", "33 1X XX XX|86 1X XX XX", "20 4X XX XX|40 4X XX XX"),
    "fi": ("358", "0", "s h c", "9 4NX XXXX", "40 NXX XXXX|50 NXX XXXX|44 NXX XXXX"),
    "is": ("354", "", "s h", "551 XXXX|562 XXXX", "691 XXXX|861 XXXX"),
    "pl": (
        "48",
        "",
        "s s h c",
        "22 NXX XX XX|12 NXX XX XX|61 8XX XX XX",
        "601 XXX XXX|505 XXX XXX|691 XXX XXX|724 XXX XXX",
    ),
    "cz": ("420", "", "s s c", "224 XXX XXX|541 XXX XXX", "602 XXX XXX|723 XXX XXX|777 XXX XXX"),
    "sk": ("421", "0", "s / c", "2 5XXX XXXX", "905 XXX XXX|911 XXX XXX"),
    "hu": ("36", "06 ", "s h /", "1 3XX XXXX|1 4XX XXXX", "30 NXX XXXX|20 NXX XXXX|70 NXX XXXX"),
    "ro": ("40", "0", "s d c", "21 3XX XXXX|264 5XX XXX", "722 XXX XXX|745 XXX XXX"),
    "bg": ("359", "0", "s / c", "2 9XX XXXX", "888 XXX XXX|887 XXX XXX"),
    "rs": ("381", "0", "s / h", "11 3XX XXXX|21 4XX XXX", "63 NXX XXX|64 NXX XXXX"),
    "hr": ("385", "0", "s / h", "1 4XXX XXX|21 3XX XXX", "91 NXX XXXX|98 NXX XXX"),
    "si": ("386", "0", "s /", "1 4XX XX XX", "41 NXX XXX|31 NXX XXX"),
    "gr": ("30", "", "s c h", "210 NXX XXXX|2310 NXX XXX", "697X XXX XXX|694X XXX XXX"),
    "ru": (
        "7",
        "8 ",
        "ph ph ph s c h",
        "495 NXX XX XX|812 3XX XX XX|343 2XX XX XX|383 3XX XX XX",
        "916 NXX XX XX|903 NXX XX XX|921 NXX XX XX|926 NXX XX XX",
    ),
    "ua": (
        "380",
        "0",
        "p ph s c",
        "44 NXX XX XX|32 2XX XX XX|57 7XX XX XX",
        "50 NXX XX XX|67 NXX XX XX|63 NXX XX XX|97 NXX XX XX",
    ),
    "tr": (
        "90",
        "0",
        "p s c",
        "212 NXX XX XX|312 4XX XX XX|232 4XX XX XX",
        "532 NXX XX XX|542 NXX XX XX|505 NXX XX XX",
    ),
    "br": (
        "55",
        "",
        "ph ph s c",
        "11 3XXX XXXX|21 2XXX XXXX|31 3XXX XXXX|51 3XXX XXXX",
        "11 96XXX XXXX|21 98XXX XXXX|41 99XXX XXXX|61 99XXX XXXX",
    ),
    "mx": ("52", "", "p s h", "55 5NXX XXXX|33 3NXX XXXX|81 8NXX XXXX", "55 5NXX XXXX"),
    "ar": ("54", "0", "ph s", "11 4NXX XXXX|341 4NX XXXX", "11 5NXX XXXX"),
    "cl": ("56", "", "s c", "2 2NXX XXXX", "9 8NXX XXXX|9 7NXX XXXX"),
    "co": (
        "57",
        "",
        "s c h",
        "601 NXX XXXX|604 NXX XXXX",
        "310 NXX XXXX|300 NXX XXXX|315 NXX XXXX",
    ),
    "in": (
        "91",
        "0",
        "h s c",
        "22 2NXX XXXX|11 4NXX XXXX|80 4NXX XXXX|44 2NXX XXXX",
        "98NXX XXXXX|99NXX XXXXX|97NXX XXXXX",
    ),
    "pk": (
        "92",
        "0",
        "h s c",
        "42 3NXX XXXX|21 3NXX XXXX",
        "300 NXX XXXX|321 NXX XXXX|333 NXX XXXX",
    ),
    "cn": (
        "86",
        "0",
        "h h s",
        "10 6NXX XXXX|21 5NXX XXXX|755 8NXX XXXX|571 8NXX XXXX",
        "138 NXXX XXXX|139 NXXX XXXX|186 NXXX XXXX|150 NXXX XXXX|177 NXXX XXXX",
    ),
    "tw": ("886", "0", "h s p", "2 2NXX XXXX|4 2NXX XXXX", "912 XXX XXX|935 XXX XXX|921 XXX XXX"),
    "hk": ("852", "", "s c", "25NX XXXX|28NX XXXX", "91NX XXXX|96NX XXXX"),
    "jp": (
        "81",
        "0",
        "h h h p s",
        "3 3NXX XXXX|6 6NXX XXXX|52 2NX XXXX|75 2NX XXXX",
        "90 NXXX XXXX|80 NXXX XXXX",
    ),
    "kr": (
        "82",
        "0",
        "h h s d p",
        "2 7NX XXXX|31 7NX XXXX|51 7NX XXXX",
        "10 4XXX XXXX|10 2XXX XXXX",
    ),
    "sg": ("65", "", "s c", "62NX XXXX|67NX XXXX", "91NX XXXX|98NX XXXX"),
    "my": ("60", "0", "h s", "3 22XX XXXX|4 22X XXXX", "12 NXX XXXX|16 NXX XXXX"),
    "th": ("66", "0", "h s", "2 2NX XXXX|53 2XX XXX", "81 NXX XXXX|89 NXX XXXX"),
    "vn": ("84", "0", "s d c", "24 3NXX XXXX|28 3NXX XXXX", "912 XXX XXX|983 XXX XXX|903 XXX XXX"),
    "id": (
        "62",
        "0",
        "h s c",
        "21 5NX XXXX|21 7NXX XXXX|22 2NX XXXX",
        "812 NXXX XXXX|813 NXXX XXXX",
    ),
    "ph": ("63", "0", "s h", "2 8NXX XXXX", "917 NXX XXXX|918 NXX XXXX"),
    "au": (
        "61",
        "0",
        "s p c",
        "2 9NXX XXXX|3 9NXX XXXX|7 3NXX XXXX|8 8NXX XXXX",
        "412 NXX XXX|431 NXX XXX|402 NXX XXX",
    ),
    "nz": ("64", "0", "s p h", "9 3NX XXXX|4 4NX XXXX|3 3NX XXXX", "27 NXX XXXX|21 NXX XXX"),
    "za": ("27", "0", "s p h", "11 NXX XXXX|21 4XX XXXX|31 3XX XXXX", "82 NXX XXXX|83 NXX XXXX"),
    "ng": ("234", "0", "s c h", "803 NXX XXXX", "803 NXX XXXX|806 NXX XXXX"),
    "ke": ("254", "0", "s c", "20 2NX XXXX", "722 XXX XXX|733 XXX XXX"),
    "eg": ("20", "0", "s c", "2 2NXX XXXX", "100 NXX XXXX|122 NXX XXXX|111 NXX XXXX"),
    "sa": ("966", "0", "s c", "11 4NX XXXX|12 6NX XXXX", "50 NXX XXXX|55 NXX XXXX"),
    "ae": ("971", "0", "s h", "4 3NX XXXX|2 6NX XXXX", "50 NXX XXXX|55 NXX XXXX"),
    "il": (
        "972",
        "0",
        "h h c",
        "3 6NX XXXX|2 6NX XXXX|4 8NX XXXX",
        "52 NXX XXXX|54 NXX XXXX|50 NXX XXXX",
    ),
    "ir": ("98", "0", "h s c", "21 8NXX XXXX|21 6NXX XXXX", "912 NXX XXXX|935 NXX XXXX"),
}

"""Names, places, firms and mail hosts of the languages that texts on persons are written in.

A word in another script stands as `native=romanized`, because addresses are romanized. `_` is a
blank inside a name.
"""

from __future__ import annotations

from typing import NamedTuple


class Locale(NamedTuple):
    """Words of one language, each field separated by blanks."""

    forenames: str
    surnames: str
    cities: str
    trades: str
    endings: str
    mailboxes: str
    roles: str
    campus: str


LOCALES = {
    "en": Locale(
        "James Mary Robert Linda Emily Daniel Karen Brian Laura Kevin Susan Peter Hannah Craig",
        "Whitfield Harmon Boyle Kerr Langley Thornton Pruitt Osborne Hale Maddox Vance Sutton",
        "Boston Leeds Denver Bristol Austin Halifax Portland Dublin",
        "plumbing dental roofing bakery consulting realty motors books church coaching",
        "com com com org net co.uk io",
        "gmail.com gmail.com gmail.com yahoo.com hotmail.com outlook.com aol.com icloud.com",
        "info info sales support contact office hello admin press orders enquiries",
        "cs.northgate.edu math.westbrook.edu physics.ashford.ac.uk med.kingsmere.edu",
    ),
    "de": Locale(
        "Anna Jonas Katrin Stefan Jürgen Sabine Lukas Uwe Heike Matthias Birgit Tobias",
        "Müller Schäfer Brandt Vogel Köhler Lorenz Pfeiffer Wirth Reuter Böhm Seidel Krüger",
        "Leipzig Bremen Köln Graz Basel Freiburg Hannover Würzburg",
        "heizung kanzlei praxis metallbau buchhandlung elektro reisen verein gartenbau",
        "de de de at ch",
        "gmx.de web.de t-online.de gmail.com freenet.de posteo.de gmx.net",
        "info info kontakt vertrieb bewerbung service datenschutz vorstand buero",
        "uni-lindental.de informatik.tu-norden.de hs-seefeld.de",
    ),
    "es": Locale(
        "Lucía Javier Carmen Sergio Marta Andrés Paula Iván Raquel Diego Ximena Rodrigo",
        "García Ortega Molina Peña Navarro Vega Salinas Cordero Ibáñez Fuentes Rojas Medina",
        "Sevilla Valencia Rosario Puebla Bilbao Medellín Lima Quito",
        "abogados talleres clinica viajes seguros reformas colegio panaderia hoteles",
        "es es com com.ar com.mx cl com.co",
        "gmail.com gmail.com hotmail.com yahoo.es hotmail.es outlook.es",
        "info info contacto ventas administracion reservas secretaria rrhh",
        "etsi.unisierra.es fcyt.unlagos.edu.ar",
    ),
    "fr": Locale(
        "Camille Julien Élodie Nicolas Aurélie Mathieu Sandrine Benoît Chloé Thierry",
        "Lefèvre Garnier Moreau Chevalier Perrin Gauthier Roussel Barbier Fontaine Meunier",
        "Nantes Lyon Rennes Grenoble Liège Dijon Montréal Genève",
        "plomberie avocats boulangerie immobilier assurances librairie voyages menuiserie",
        "fr fr fr be com ch",
        "gmail.com orange.fr free.fr wanadoo.fr laposte.net hotmail.fr yahoo.fr sfr.fr",
        "contact contact info accueil secretariat mairie commercial presse",
        "univ-montclair.fr etu.univ-valombre.fr lip.ens-rives.fr",
    ),
    "pt": Locale(
        "João Mariana Tiago Beatriz Rafael Inês Gustavo Fernanda Luís Patrícia",
        "Silveira Carvalho Almeida Teixeira Nogueira Moura Barros Pacheco Sampaio Queiroz",
        "Porto Braga Curitiba Recife Coimbra Campinas Fortaleza",
        "advocacia oficina imoveis contabilidade padaria turismo moveis clinica",
        "com.br com.br pt pt org.br",
        "gmail.com hotmail.com uol.com.br bol.com.br sapo.pt terra.com.br yahoo.com.br",
        "contato contato geral vendas comercial atendimento sac secretaria",
        "dcc.ufserra.br fe.uporto-mar.pt",
    ),
    "it": Locale(
        "Giulia Marco Francesca Alessandro Chiara Davide Elisa Simone Paolo Valentina",
        "Ferrari Ricci Marchetti Galli Conti Bianchi Rinaldi Caruso Fontana Lombardi",
        "Torino Bologna Verona Bari Padova Genova Lecce",
        "idraulica studiolegale agriturismo mobili assicurazioni officina libreria",
        "it it it com",
        "gmail.com libero.it tiscali.it alice.it virgilio.it hotmail.it",
        "info info segreteria amministrazione vendite prenotazioni ufficio",
        "unicolline.it dm.unilagune.it",
    ),
    "pl": Locale(
        "Agnieszka Piotr Katarzyna Tomasz Magdalena Krzysztof Joanna Marcin Ewa Paweł",
        "Kowalczyk Zając Wróbel Pawlak Dudek Sikora Baran Szewczyk Kubiak",
        "Wrocław Gdańsk Poznań Lublin Katowice Szczecin",
        "hydraulika kancelaria okna meble ubezpieczenia gabinet transport szkola",
        "pl pl com.pl",
        "gmail.com wp.pl o2.pl onet.pl interia.pl poczta.fm",
        "biuro biuro kontakt sekretariat sklep handlowy rekrutacja",
        "mini.pw-wisla.pl wmi.uni-warta.pl",
    ),
    "cs": Locale(
        "Jana Petr Lucie Tomáš Kateřina Ondřej Hana Jiří Martina Zdeněk",
        "Krejčí Jirků Janů Martinů Petrů Matějů Přibylů",
        "Brno Plzeň Olomouc Liberec Ostrava Zlín",
        "instalater advokati okna knihkupectvi zahrady skola doprava",
        "cz cz cz com",
        "seznam.cz seznam.cz email.cz centrum.cz gmail.com volny.cz",
        "info info obchod podatelna kancelar objednavky",
        "fit.vut-morava.cz ff.uni-haje.cz",
    ),
    "nl": Locale(
        "Sanne Pieter Femke Jeroen Marloes Bram Wouter Lotte Ruben Ingrid",
        "Visser Dekker Mulder Hoekstra Kuipers Brouwer Schouten Verhoeven Postma Veenstra",
        "Utrecht Groningen Gent Zwolle Breda Antwerpen",
        "loodgieter advocaten makelaar fietsen bakkerij tandarts bouw",
        "nl nl nl be",
        "gmail.com ziggo.nl kpnmail.nl hotmail.com xs4all.nl planet.nl telenet.be",
        "info info contact verkoop klantenservice secretariaat bestuur",
        "science.uni-duinen.nl",
    ),
    "sv": Locale(
        "Elin Anders Karin Johan Sofia Mattias Åsa Björn Ulrika Fredrik",
        "Lindqvist Bergström Sjöberg Hedlund Nyberg Ekström Wallin Söderlund Forsberg Åkesson",
        "Uppsala Malmö Örebro Umeå Lund Gävle",
        "bygg redovisning tandvard bokhandel fastigheter skola resor",
        "se se se nu",
        "gmail.com telia.com hotmail.com comhem.se bredband.net outlook.com",
        "info info kontakt order kansli ekonomi support",
        "cs.vastberga.se",
    ),
    "ru": Locale(
        "Анна=anna Иван=ivan Ольга=olga Дмитрий=dmitry Елена=elena Сергей=sergey Алексей=aleksey",
        "Карпенко=karpenko Белых=belykh Ткачук=tkachuk Черных=chernykh Панченко=panchenko",
        "Казань=kazan Самара=samara Пермь=perm Томск=tomsk Омск=omsk Воронеж=voronezh",
        "stroy mebel okna avto zhurnal remont dostavka shkola",
        "ru ru ru com",
        "mail.ru mail.ru yandex.ru yandex.ru bk.ru list.ru rambler.ru gmail.com inbox.ru",
        "info zakaz office sale priem redaktor otdel",
        "phys.tgu-sever.ru math.ngu-ob.ru",
    ),
    "uk": Locale(
        "Оксана=oksana Андрій=andriy Тарас=taras Ірина=iryna Богдан=bohdan Наталя=natalia",
        "Шевчук=shevchuk Гончаренко=honcharenko Кравець=kravets Мельник=melnyk Лисенко=lysenko",
        "Львів=lviv Харків=kharkiv Одеса=odesa Полтава=poltava Чернівці=chernivtsi",
        "budivelnyk knyhy vikna agro tur shkola notarius",
        "com.ua com.ua ua in.ua org.ua",
        "ukr.net ukr.net gmail.com i.ua meta.ua",
        "info office zakaz kadry priyomna sales",
        "knu-dnipro.edu.ua",
    ),
    "tr": Locale(
        "Ayşe Mehmet Elif Mustafa Zeynep Emre Fatma Burak Gül Hakan",
        "Yıldız Aydın Kaplan Özkan Şahin Koç Arslan Polat Erdem Güneş",
        "Ankara İzmir Bursa Konya Eskişehir Trabzon",
        "nakliyat hukuk mobilya insaat turizm sigorta dershane",
        "com.tr com.tr com org.tr",
        "gmail.com hotmail.com hotmail.com yandex.com mynet.com outlook.com",
        "info info bilgi iletisim satis destek muhasebe",
        "bil.bozkir.edu.tr",
    ),
    "ja": Locale(
        "健太=kenta 美咲=misaki 大輔=daisuke 陽子=yoko 翔=sho 由美=yumi",
        "佐藤=sato 田中=tanaka 小林=kobayashi 山本=yamamoto 清水=shimizu 森=mori",
        "大阪=osaka 名古屋=nagoya 札幌=sapporo 福岡=fukuoka 仙台=sendai",
        "kogyo shoten ryokan fudosan shika bunko sekkei",
        "co.jp co.jp jp or.jp ne.jp",
        "gmail.com yahoo.co.jp docomo.ne.jp ezweb.ne.jp softbank.ne.jp nifty.com",
        "info info contact support saiyo toiawase jimu",
        "is.tohzan.ac.jp",
    ),
    "zh": Locale(
        "伟=wei 芳=fang 磊=lei 静=jing 晓明=xiaoming 丽华=lihua",
        "王=wang 李=li 张=zhang 陈=chen 刘=liu 周=zhou",
        "杭州=hangzhou 成都=chengdu 武汉=wuhan 深圳=shenzhen 西安=xian",
        "keji jixie maoyi wujin jiaoyu dianzi",
        "com com.cn cn com.tw com.hk",
        "qq.com 163.com 163.com 126.com sina.com foxmail.com gmail.com",
        "info sales hr service market kefu",
        "mail.zjlu.edu.cn cs.hnkd.edu.cn",
    ),
    "ko": Locale(
        "민준=minjun 서연=seoyeon 지훈=jihun 수진=sujin 현우=hyunwoo 은지=eunji",
        "김=kim 이=lee 박=park 최=choi 정=jung 강=kang",
        "부산=busan 대구=daegu 인천=incheon 광주=gwangju 대전=daejeon",
        "tech media chulpan edu trade medical",
        "co.kr co.kr kr com or.kr",
        "naver.com naver.com gmail.com hanmail.net daum.net nate.com",
        "info help webmaster recruit sales privacy",
        "cse.hankang.ac.kr",
    ),
    "ar": Locale(
        "أحمد=ahmed فاطمة=fatima محمد=mohamed سارة=sara خالد=khaled ليلى=layla",
        "الحسيني=alhusseini منصور=mansour العلي=alali حداد=haddad سليمان=soliman",
        "القاهرة=cairo جدة=jeddah عمان=amman الدوحة=doha تونس=tunis",
        "travel clinic trading schools law contracting",
        "com com com.sa com.eg ae",
        "gmail.com gmail.com hotmail.com yahoo.com outlook.sa",
        "info info sales hr contact admission",
        "eng.alwaha.edu.eg",
    ),
    "hi": Locale(
        "राजेश=rajesh प्रिया=priya अमित=amit सुनीता=sunita विकास=vikas नेहा=neha",
        "शर्मा=sharma वर्मा=verma यादव=yadav गुप्ता=gupta मिश्रा=mishra पटेल=patel",
        "पुणे=pune जयपुर=jaipur लखनऊ=lucknow इंदौर=indore पटना=patna",
        "enterprises textiles hospital classes packers jewellers",
        "in in co.in com",
        "gmail.com gmail.com gmail.com rediffmail.com yahoo.co.in yahoo.in",
        "info info sales care enquiry principal hr",
        "cse.iitvn.ac.in",
    ),
    "vi": Locale(
        "Minh Hương Tuấn Lan Hùng Thảo Đức Ngọc",
        "Nguyễn Trần Phạm Hoàng Vũ Đặng Bùi Đỗ",
        "Đà_Nẵng Hà_Nội Huế Cần_Thơ Hải_Phòng",
        "noithat dulich xaydung vantai thuysan sach",
        "vn com.vn com.vn com",
        "gmail.com gmail.com yahoo.com yahoo.com.vn hotmail.com",
        "info lienhe tuyendung kinhdoanh cskh",
        "fit.dhsonghan.edu.vn",
    ),
    "id": Locale(
        "Budi Siti Agus Dewi Rizky Putri Andi Wulan",
        "Santoso Wijaya Pratama Lestari Nugroho Saputra Hidayat Siregar",
        "Bandung Surabaya Yogyakarta Semarang Medan Denpasar",
        "mebel wisata batik konveksi percetakan properti",
        "co.id co.id com id",
        "gmail.com gmail.com yahoo.co.id yahoo.com ymail.com",
        "info cs marketing admin sekretariat",
        "informatika.univ-parahita.ac.id",
    ),
    "da": Locale(
        "Mette Søren Lars Kirsten Rasmus Line Jens",
        "Kjær Mortensen Østergaard Lund Holm Bach Dahl",
        "Aarhus Odense Aalborg Vejle",
        "toemrer advokater revision skole",
        "dk dk",
        "gmail.com hotmail.com mail.dk live.dk",
        "info kontakt kontor salg",
        "cs.fyrby.dk",
    ),
    "fi": Locale(
        "Matti Päivi Juha Sari Antti Kaisa Ville",
        "Korhonen Mäkinen Laine Heikkilä Salonen Niemi",
        "Tampere Oulu Turku Kuopio",
        "rakennus kirjakauppa kuljetus putki",
        "fi fi",
        "gmail.com hotmail.com elisanet.fi luukku.com",
        "info asiakaspalvelu toimisto myynti",
        "cs.jarvela.fi",
    ),
    "hu": Locale(
        "Gábor Eszter Zoltán Katalin Péter Anikó László",
        "Kovács Szabó Horváth Varga Fekete Bíró Simon",
        "Szeged Debrecen Pécs Miskolc",
        "szerviz konyv ugyved epito",
        "hu hu",
        "gmail.com freemail.hu citromail.hu t-online.hu",
        "info iroda titkarsag rendeles",
        "inf.tiszaegyetem.hu",
    ),
    "ro": Locale(
        "Andrei Ioana Mihai Elena Cristian Raluca Ștefan",
        "Popa Dumitrescu Ionescu Stan Munteanu Ciobanu",
        "Cluj Iași Timișoara Brașov",
        "avocat mobila transport editura",
        "ro ro",
        "gmail.com yahoo.com yahoo.ro hotmail.com",
        "office contact secretariat vanzari",
        "cs.ubrazi.ro",
    ),
}
"""Words of a language by its code; hosts and surnames are joined at random."""

HANDLES = (
    "nightowl darkpixel tux rusty lazyfox bytebear quietriver moonlit kodiak greenleaf "
    "stormcrow pepper zigzag snowcat hexagon copperhead driftwood mango sparrow redpanda"
)
"""What forum names and small domains are made of."""

DEVELOPER_HOSTS = (
    "gmail.com gmail.com gmail.com gmail.com fastmail.com protonmail.com pm.me posteo.net "
    "outlook.com yahoo.com hey.com riseup.net mailbox.org"
)
"""Where people who commit code have their mailboxes."""

TEST_CARDS = (
    "4242424242424242 4111111111111111 5555555555554444 378282246310005 371449635398431 "
    "6011111111111117 6011000990139424 5105105105105100 4012888888881881 3530111333300000 "
    "3566002020360505 4000056655665556 5200828282828210 4000000000000002 30569309025904"
)
"""Numbers that payment services and card networks publish for tests."""

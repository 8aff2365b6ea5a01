"""Names, mail domains, card ranges and address blocks that the personal makers draw from.

A name is written as `shown=ascii` where its address form differs from the shown one.
"""

from __future__ import annotations

FIRST_NAMES = {
    "en": "James Emily Oliver Grace Daniel Sarah Matthew Hannah Peter Alison Brian Claire",
    "de": "Jürgen=juergen Katrin Stefan Anja Matthias Ulrike Jörg=joerg Sabine Tobias Birgit",
    "es": "Javier Lucía=lucia Álvaro=alvaro Carmen Sergio Marta Andrés=andres Pilar Raúl=raul",
    "fr": "Hélène=helene Julien Céline=celine Mathieu Aurélie=aurelie Thierry Sandrine Rémi=remi",
    "pt": "João=joao Mariana Thiago Beatriz Rui Inês=ines Rafael Luísa=luisa Vinícius=vinicius",
    "it": "Giulia Matteo Chiara Lorenzo Federica Andrea Paola Davide Silvia Nicolò=nicolo",
    "pl": "Paweł=pawel Agnieszka Łukasz=lukasz Monika Krzysztof Ewa Tomasz Małgorzata=malgorzata",
    "cs": "Jiří=jiri Lenka Tomáš=tomas Kateřina=katerina Ondřej=ondrej Zuzana Michal Věra=vera",
    "nl": "Sanne Bram Marieke Jeroen Femke Wouter Ilse Maarten Anouk Pieter",
    "sv": "Åsa=asa Björn=bjorn Karin Magnus Elin Göran=goran Sofia Henrik Maja Lars",
    "ru": "Дмитрий=dmitry Ольга=olga Сергей=sergey Наталья=natalia Алексей=alexey Ирина=irina",
    "uk": "Олексій=oleksii Оксана=oksana Тарас=taras Юлія=yuliia Богдан=bohdan Наталія=nataliia",
    "tr": "Mehmet Ayşe=ayse Emre Zeynep Çağlar=caglar Elif Murat Gülşen=gulsen Burak",
    "ja": "健太=kenta 美咲=misaki 大輔=daisuke 由美=yumi 浩=hiroshi 直子=naoko 翔=sho 恵=megumi",
    "zh": "伟=wei 芳=fang 志强=zhiqiang 秀英=xiuying 磊=lei 婷婷=tingting 建国=jianguo 静=jing",
    "ko": "민수=minsu 지영=jiyoung 현우=hyunwoo 수진=sujin 성호=sungho 유나=yuna 동욱=dongwook",
    "vi": "Tuấn=tuan Hương=huong Minh=minh Lan=lan Hải=hai Ngọc=ngoc Phúc=phuc Thảo=thao",
    "id": "Budi Siti Agus Dewi Rizky Ratna Bambang Wulan Hendra Putri",
    "ar": "محمد=mohammed فاطمة=fatima أحمد=ahmed سارة=sara خالد=khaled ليلى=layla يوسف=youssef",
    "hi": "राहुल=rahul प्रिया=priya अमित=amit सुनीता=sunita विकास=vikas अंजलि=anjali",
    "fi": "Jukka Päivi=paivi Mikko Kaisa Antti Sari Ville Hanna",
    "hu": "Gábor=gabor Zsuzsa László=laszlo Eszter Péter=peter Ágnes=agnes",
    "ro": "Andrei Ioana Mihai Elena Cristian Raluca",
    "el": "Γιώργος=giorgos Μαρία=maria Νίκος=nikos Ελένη=eleni",
}
LAST_NAMES = {
    "en": "Whitfield Barlow Hargreaves Lockwood Pemberton Donnelly Ashworth Kessler Mercer Tilley",
    "de": "Lehmann Vogt Kühn=kuehn Schröder=schroeder Brandt Hofmann Seidel Krüger=krueger Pohl",
    "es": "Ortega Navarro Ibáñez=ibanez Castillo Muñoz=munoz Rubio Serrano Domínguez=dominguez",
    "fr": "Lefèvre=lefevre Girard Marchand Perrot Gauthier Renaud Chevalier Barbier Dufour",
    "pt": "Carvalho Teixeira Araújo=araujo Moreira Azevedo Figueiredo Barros Gonçalves=goncalves",
    "it": "Moretti Ferrara Bianchini Colombo Marchetti Santoro Galli Rinaldi Pellegrini",
    "pl": "Wójcik=wojcik Zieliński=zielinski Mazur Kamińska=kaminska Pawlak Jabłońska=jablonska",
    "cs": "Dvořák=dvorak Procházková=prochazkova Němec=nemec Beneš=benes Hájek=hajek",
    "nl": "Visser Bakker Hoekstra Dijkstra Verhoeven Postma Kuipers Willems",
    "sv": "Lindqvist Åkesson=akesson Bergström=bergstrom Sandberg Nyström=nystrom Ekholm Lund",
    "ru": "Соколов=sokolov Лебедев=lebedev Морозов=morozov Волков=volkov Зайцев=zaitsev",
    "uk": "Шевчук=shevchuk Бондаренко=bondarenko Кравченко=kravchenko Мельник=melnyk",
    "tr": "Yılmaz=yilmaz Demir Kaya Şahin=sahin Aydın=aydin Öztürk=ozturk Koç=koc",
    "ja": "佐藤=sato 鈴木=suzuki 高橋=takahashi 渡辺=watanabe 中村=nakamura 小林=kobayashi",
    "zh": "王=wang 李=li 张=zhang 陈=chen 杨=yang 黄=huang 周=zhou 徐=xu",
    "ko": "김=kim 이=lee 박=park 최=choi 정=jung 조=cho 윤=yoon",
    "vi": "Nguyễn=nguyen Trần=tran Lê=le Phạm=pham Võ=vo Đặng=dang Bùi=bui",
    "id": "Santoso Wijaya Pratama Lestari Hidayat Kusuma Saputra Nugroho",
    "ar": "الحسن=alhassan منصور=mansour حداد=haddad الخطيب=alkhatib نصار=nassar سالم=salem",
    "hi": "शर्मा=sharma वर्मा=verma गुप्ता=gupta पटेल=patel सिंह=singh यादव=yadav",
    "fi": "Virtanen Korhonen Mäkinen=makinen Nieminen Heikkilä=heikkila",
    "hu": "Nagy Szabó=szabo Kovács=kovacs Horváth=horvath Tóth=toth",
    "ro": "Popescu Ionescu Dumitru Stan Munteanu",
    "el": "Παπαδόπουλος=papadopoulos Νικολάου=nikolaou Γεωργίου=georgiou",
}
FREE_MAIL = {
    "en": "gmail.com gmail.com yahoo.com outlook.com hotmail.com icloud.com aol.com btinternet.com",
    "de": "gmx.de web.de t-online.de gmail.com posteo.de gmx.net mailbox.org freenet.de",
    "es": "gmail.com hotmail.es yahoo.es outlook.es telefonica.net hotmail.com",
    "fr": "orange.fr free.fr wanadoo.fr laposte.net gmail.com sfr.fr hotmail.fr",
    "pt": "gmail.com hotmail.com uol.com.br sapo.pt bol.com.br yahoo.com.br terra.com.br",
    "it": "libero.it tiscali.it alice.it gmail.com virgilio.it hotmail.it",
    "pl": "wp.pl onet.pl gmail.com interia.pl o2.pl gazeta.pl",
    "cs": "seznam.cz centrum.cz email.cz gmail.com volny.cz",
    "nl": "ziggo.nl kpnmail.nl hetnet.nl gmail.com planet.nl xs4all.nl",
    "sv": "telia.com gmail.com hotmail.se spray.se bredband.net",
    "ru": "mail.ru yandex.ru gmail.com bk.ru rambler.ru inbox.ru list.ru",
    "uk": "ukr.net gmail.com meta.ua i.ua",
    "tr": "gmail.com hotmail.com mynet.com yandex.com",
    "ja": "gmail.com yahoo.co.jp docomo.ne.jp nifty.com ezweb.ne.jp",
    "zh": "qq.com 163.com 126.com sina.com gmail.com foxmail.com",
    "ko": "naver.com daum.net hanmail.net gmail.com nate.com",
    "vi": "gmail.com yahoo.com.vn yahoo.com",
    "id": "gmail.com yahoo.co.id ymail.com",
    "ar": "gmail.com hotmail.com yahoo.com",
    "hi": "gmail.com rediffmail.com yahoo.co.in",
    "fi": "gmail.com luukku.com elisanet.fi suomi24.fi",
    "hu": "freemail.hu gmail.com citromail.hu",
    "ro": "gmail.com yahoo.ro",
    "el": "gmail.com otenet.gr yahoo.gr",
}
FIRM_ENDS = {
    "en": "com co.uk com org net io com.au",
    "zh": "cn com.cn",
    "ja": "co.jp jp",
    "ko": "co.kr kr",
    "pt": "com.br pt com.br",
    "uk": "com.ua ua",
    "tr": "com.tr com",
    "vi": "vn com.vn",
    "id": "co.id id",
    "ar": "com ae com.sa",
    "hi": "in co.in",
    "cs": "cz",
    "sv": "se",
    "el": "gr",
}
"""Ends of firms' domains; a language without an entry has its code as the only end."""
FIRM_WORDS = (
    "nordwind blueharbor castellan quintero vistalegre morgenrot silvanova petrolux kestrel",
    "arcadia brightwell tecnosur lumiere halden oakridge meridian granit solveig altamira",
    "fennimore corvus zenith delphin ravenna",
)
FIRM_TAILS = (
    "logistik labs consulting soft systems media group hotel travel print foods energy clinic",
    "bau studio design school transport optik",
)
CARD_RANGES = {
    "visa": "4",
    "mc": "51 52 53 54 55",
    "mc2": "2221 2345 2521 2718",
    "amex": "34 37",
    "disc": "6011 65",
    "jcb": "3528 3541 3566 3589",
    "diners": "36",
    "union": "6212 6222 6225 6258",
    "mir": "2200 2202 2204",
    "maestro": "6759 6763 5018",
    "rupay": "6070 6521 6082",
    "troy": "979200 979212",
    "elo": "636297 650901",
    "verve": "506118",
    "iran": "603799 627353 610433 621986 589210",
    "uzcard": "860003 860049 986001",
}
"""First digits of the networks' cards (the issuers' published ranges)."""
BLOCKS6 = (
    "2a01:4f8 2001:470 2a02:8109 2600:1f18 2a00:1450 2003:e5 2409:8a55 2804:14c 2a01:cb04",
    "2a00:23c5 2601:646 2607:f8b0 2405:201 2a02:6b8 2a0a:a541 2001:41d0 2400:cb00 2408:8207",
    "2a01:e0a 2806:10a6 240e:3b7 2001:8003 2401:4900",
)
FICTION = (
    r"555|7946 ?0|1632 ?960|7700 ?900|\d1 ?496 ?0|491 ?57|5550|7010|"
    r"1 ?99 ?00|2 ?61 ?91|3 ?53 ?01|4 ?65 ?71|5 ?36 ?49|6 ?39 ?98|"
    r"390 ?06|628 ?04|465 ?00|319 ?2|174 ?06|23125|90009|66969|4710|99998|28817|39200|04069|"
    r"(?<![1-9])\d?([2-9])11\D?\d{4}$"
)
"""Ranges kept for drama, and exchange codes such as 411 that North America does not give out."""

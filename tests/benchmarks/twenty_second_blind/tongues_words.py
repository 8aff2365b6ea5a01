"""Words of many languages that the makers of `tongues` draw from."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "es": "girasol naranja mariposa tormenta cuaderno paraguas castillo montaña bicicleta ventana"
    " gaviota mermelada sandía pimiento relámpago abanico luciérnaga escalera pingüino alcachofa",
    "de": "Birnbaum Schlüssel Kaffeekanne Fahrrad Nebelhorn Gartenzaun Wolkenbruch Zwetschge"
    " Dachboden Pfefferminz Straßenbahn Leuchtturm Hühnerstall Rübezahl Kirschkern Schneemann"
    " Eichhorn Murmeltier Bergziege Apfelmus",
    "fr": "tournesol parapluie coquelicot grenouille brouette myrtille hirondelle moulin chouette"
    " fenêtre clémentine écureuil bouilloire lavande péniche noisette cerisier rivière citrouille"
    " tonnerre",
    "pt": "girassol jabuticaba cachoeira borboleta mandioca coração pipoca varanda tamanduá"
    " foguete goiabada sabiá paçoca trovão abacaxi jacarandá caranguejo lanterna tucano moringa",
    "ru": "подсолнух черепаха молния скворечник облако тетрадь лопата крыжовник самовар ветерок"
    " ромашка барсук карандаш водопад снегирь чайник берёза ежевика метель фонарик",
    "ru_latin": "podsolnuh cherepaha molniya skvorechnik oblako tetradka lopata kryzhovnik samovar"
    " veterok romashka barsuk karandash vodopad snegir chainik bereza ezhevika metel fonarik",
    "ru_layout": "gjlcjkye[ xthtgf[f vjkybz crdjhtxybr j,kfrj ntnhflrf kjgfnf cfvjdfh dtnthjr"
    " hjvfirf ,fhcer rfhfylfi djljgfl cytubhm xfqybr",
    "uk": "соняшник черепаха блискавка метелик хмаринка зошит лопата калина вишиванка вітерець"
    " ромашка борсук олівець водоспад снігур чайник ожина ліхтарик їжачок порічка",
    "uk_latin": "sonyashnyk cherepaha blyskavka metelyk hmarynka zoshyt lopata kalyna viterets"
    " romashka borsuk olivets vodospad snihur ozhyna lihtaryk porichka",
    "zh": "xiangrikui hudie dianfengshan xiaoxiongmao putaogan qingwa shandian yueliang mifan"
    " hongdenglong lanhua bailuobo daxiangguo niunai shanzha zixingche caihong longjing mogu"
    " haitun",
    "zh_native": "向日葵 蝴蝶 电风扇 小熊猫 葡萄干 青蛙 闪电 月亮湾 红灯笼"
    " 兰花草 萝卜糕 山楂树 自行车 彩虹桥 蘑菇汤 海豚湾 龙井茶 桂花糖",
    "ja": "himawari chouchou senpuki shimauma budouiro kaeru inazuma tsukiyo okonomi chochin"
    " suzuran daikon yamagata mikan jitensha nijiiro kinoko iruka hotaru komorebi",
    "ja_native": "ひまわり ちょうちょ せんぷうき しまうま かえる いなずま つきよ"
    " ちょうちん すずらん みかん じてんしゃ にじいろ きのこ いるか ほたる こもれび",
    "ko": "haebaragi nabiya sunpunggi eolukmal podoaju gaeguri beongae dalbit kimchi deungbul"
    " jindallae mupado sagwa jajeongeo mujigae beoseot dolgorae banditbul gorani sonagi",
    "ko_layout": "gozjfkrl skql tjsvndrl djffnrakf vheh roenfl qjsro ekfqlc ruddhddl sksrkfma"
    " wlsekffo tnqkr tkrhk wkwjsrj anwlro ejtjt ehfrhfo rhfksl thskrl",
    "it": "girasole farfalla ventilatore zanzara prosciutto rondine fulmine lunaria zucchina"
    " lanterna mughetto ravanello mandarino bicicletta arcobaleno fungaiolo delfino lucciola"
    " perché corniola",
    "pl": "słonecznik motylek wiatrak zebra żółw jaskółka błyskawica księżyc gruszka latarnia"
    " konwalia rzodkiewka mandarynka rowerek tęcza grzybek delfinek świetlik pierożki borówka",
    "tr": "ayçiçeği kelebek vantilatör kaplumbağa üzümlü kurbağa şimşek mehtap karpuz fener"
    " inciçiçeği turp mandalina bisiklet gökkuşağı mantarlı yunus ateşböceği simitçi böğürtlen",
    "nl": "zonnebloem vlinder windmolen stroopwafel kikker bliksem maanlicht fietsbel lantaarn"
    " lelietje radijsje mandarijn regenboog paddenstoel dolfijn vuurvlieg hagelslag molenaar",
    "vi": "huongduong buombuom quatdien rualon nhokho chuonchuon tiachop trangram bunrieu denlong"
    " hoalan cucai quytngot xedap cauvong namrom cahheo domdom banhmi matong",
    "id": "matahari kupukupu kipasangin kurakura anggurmanis kodokijo kilatpetir purnama rendang"
    " lentera anggrek lobakputih jerukbali sepeda pelangi jamurtiram lumbalumba kunangkunang",
    "cs": "slunečnice motýlek větrník želva hroznovka žabička blesková měsíček švestka lucerna"
    " konvalinka ředkvička mandarinka kolečko duha houbička delfínek světluška knedlík borůvka",
    "sk": "slnečnica motýlik veterník korytnačka žabka mesiačik slivka lampášik konvalinka"
    " reďkovka dúha hríbik svetluška halušky čučoriedka",
    "hu": "napraforgó pillangó ventilátor teknős szőlőfürt békakirály villámlás holdfény barack"
    " lámpás gyöngyvirág retek mandarin bicikli szivárvány gombaleves delfin szentjános lángos"
    " áfonya",
    "sv": "solros fjäril fläkten sköldpadda druvsaft grodan blixtar månsken plommon lykta"
    " liljekonvalj rädisa cykelbud regnbåge kantarell delfinen eldfluga kanelbulle blåbär",
    "no": "solsikke sommerfugl vindmølle skilpadde froskelår lynnedslag måneskinn plommetre"
    " lyktestolpe liljekonvall reddik sykkelbud regnbue kantarell ildflue skolebolle blåbær",
    "da": "solsikke sommerfugl vindmølle skildpadde frøkoncert lynild måneskin blommetræ lygtepæl"
    " liljekonval radise cykelbud regnbue kantarel ildflue rødgrød blåbærgrød",
    "fi": "auringonkukka perhonen tuulimylly kilpikonna sammakko salama kuutamo luumupuu lyhty"
    " kielo retiisi polkupyörä sateenkaari kantarelli tulikärpänen korvapuusti mustikka",
    "el": "ηλιοτρόπιο πεταλούδα ανεμιστήρας χελώνα σταφύλι βάτραχος αστραπή φεγγάρι φανάρι"
    " ραπανάκι μανταρίνι ποδήλατο μανιτάρι δελφίνι πυγολαμπίδα",
    "el_latin": "iliotropio petalouda anemistiras xelona stafyli vatraxos astrapi feggari fanari"
    " rapanaki mantarini podilato manitari delfini thalassa",
    "bg": "slanchogled peperuda vyatarnica kostenurka grozdova zhaba svetkavica lunna fenerche"
    " momina repichka mandarina kolelo daga gabarka svetulka banitsa",
    "th": "tanawan phisuea phatlom tonmai angun kopkop faeleap duangchan mamuang khomfai"
    " kluaimai somtam ckrayan rungkinnam hetfang hinghoi",
    "th_native": "ทานตะวัน ผีเสื้อ พัดลม ต้นไม้ องุ่น ฟ้าแลบ ดวงจันทร์ มะม่วง โคมไฟ กล้วยไม้ จักรยาน หิ่งห้อย",
    "ar": "ward qamar farasha assafir zaytun yasmin burtuqal sahab shams nakhla hilal rumman"
    " fanous bahr jabal",
    "ar_native": "زيتونة ياسمين برتقال سحابة نخلة هلال رمان فانوس فراشة عصفور قمر مطر ليمون",
    "fa": "aftabgardan parvaneh bargesabz mahtab anar fanoos golnar zaferan derakht baran setareh"
    " gonjeshk khorma darya koohestan",
    "he": "hamania parpar galgal tsavim anavim tsfardea barak yareach afarsek panas rakefet"
    " tsnonit klementina ofanaim keshet pitriya",
    "hi": "surajmukhi titli pankha kachhua angoor mendhak bijli chandni aamras lalten chameli"
    " mooli santra saikil indradhanush jugnu jalebi parvat",
    "ro": "floarea fluture ventilator broscuta fulger lunaplina felinar lacramioara ridiche"
    " bicicleta curcubeu ciuperca licurici mamaliga afine",
    "ca": "girasol papallona molinet tortuga raïm granota llampec lluna fanal lliri rave"
    " bicicleta bolet cuca castanya",
}

NAMES: dict[str, str] = {
    "es": "lucia mateo carmen joaquin ximena alvaro rocio ignacio marisol esteban",
    "de": "jonas annika lukas friederike torsten silke matthias heike ulrich steffi",
    "fr": "camille baptiste manon thibault elodie gaspard solene yann maelle corentin",
    "pt": "thiago larissa joao beatriz caio fernanda vinicius luana renato sueli",
    "ru": "dmitry svetlana anton oksana pavel irina kirill lyudmila egor zhanna",
    "zh": "liwei zhangmin chenhao wangfang zhaolei sunyan huangjie zhoupeng wuxia lintao",
    "ja": "tanaka sato yamamoto nakamura kobayashi watanabe ito yoshida mori hayashi",
    "ko": "minjun seoyeon jihoon hayun dohyun jiwoo sujin taeyang eunji hyunwoo",
    "it": "giulia lorenzo chiara matteo ginevra davide serena fabio ilaria riccardo",
    "pl": "agnieszka tomasz magda krzysztof ola wojtek kasia bartek zosia marek",
    "tr": "mehmet elif burak zeynep emre selin kerem ayse onur derya",
    "nl": "sander anouk joris femke wouter lotte bram sanne thijs maartje",
    "vi": "hung linh tuananh thao khoa ngoc phuc trang duy huong",
    "id": "budi siti agus dewi rizky putri eko wulan bayu ratna",
    "cs": "jana petr lenka tomas alena vojta hana radek ivana ondra",
    "hu": "gabor eszter balazs zsofia istvan katalin laszlo reka zoltan dora",
    "sv": "erik astrid johan linnea gustav ebba nils elsa lars maja",
    "el": "nikos eleni giorgos katerina kostas maria yannis sofia dimitris anna",
    "ar": "ahmad fatima khaled mariam youssef layla omar nour hassan salma",
    "fa": "reza maryam amir sara mehdi niloofar hossein zahra omid leila",
    "hi": "rahul priya amit sneha vikram pooja arjun neha suresh kavita",
    "th": "somchai nattaya prasert malee wichai kanya anan suda chaiyot ploy",
    "he": "noa yossi tamar eitan shira avi michal dror yael amit",
    "ro": "andrei ioana mihai elena radu simona vlad cristina bogdan alina",
    "bg": "georgi desislava ivaylo tsvetelina plamen radka stoyan mariyana krasimir vesela",
    "fi": "matti aino juhani helmi eero tuuli antti sanni ville kaisa",
    "uk": "taras olena bohdan iryna ostap nadia andriy halyna yurko solomiya",
}

GIVEN: dict[str, str] = {
    "ru": "Дмитрий Светлана Антон Оксана Павел Ирина Кирилл Людмила Егор Жанна",
    "uk": "Тарас Олена Богдан Ірина Остап Надія Андрій Галина Юрко Соломія",
    "zh": "李伟 张敏 陈浩 王芳 赵磊 孙燕 黄杰 周鹏 吴霞 林涛",
    "ja": "田中 佐藤 山本 中村 小林 渡辺 伊藤 吉田 森 林",
    "ko": "민준 서연 지훈 하윤 도현 지우 수진 태양 은지 현우",
    "el": "Νίκος Ελένη Γιώργος Κατερίνα Κώστας Μαρία Γιάννης Σοφία Δημήτρης Άννα",
}

PROJECTS: dict[str, str] = {
    "es": "almacen biblioteca gestor tienda panaderia taller inventario vivero",
    "de": "inventar werkstatt kasse verein gaertnerei kalender buecherei lager",
    "fr": "atelier cantine boutique mairie recettes mediatheque verger annuaire",
    "pt": "estoque oficina padaria cadastro livraria escola agenda horta",
    "ru": "sklad magazin kabinet kuhnya raspisanie biblioteka dnevnik teplica",
    "uk": "sklad kramnytsia rozklad knyharnia sadok zhurnal teplytsia kuhnia",
    "zh": "meishi tushu kaoqin zhihui wuliu shangcheng cangku xiaoyuan",
    "ja": "kanri yoyaku zaiko kaikei tosho kondate kintai hoiku",
    "ko": "chumun gesipan jumun hakwon doseo chulseok jaego yeyak",
    "it": "bottega palestra ricette officina libreria magazzino turni agenda",
    "pl": "sklep przychodnia magazyn biblioteka rozklad szkolka zamowienia piekarnia",
    "tr": "kutuphane stok eczane dershane randevu firin siparis takvim",
    "nl": "bibliotheek voorraad sportclub rooster bakkerij kwekerij agenda ledenlijst",
    "vi": "banhang quanly thuvien nhahang khohang lichhoc donhang phongkham",
    "id": "toko sekolah klinik perpustakaan gudang absensi pesanan jadwal",
    "cs": "knihovna sklenik sklad jidelna rozvrh pekarna objednavky zahrada",
    "hu": "konyvtar webaruhaz raktar etterem orarend pekseg rendeles naptar",
    "sv": "lager butik forening bageri bibliotek schema bokning kalender",
    "el": "apothiki vivliothiki fournos programma paraggelies sxoleio kipos taverna",
    "ar": "maktaba matjar makhzan madrasa mawaid matam talabat taqwim",
    "fa": "forushgah anbar ketabkhane madrese nobat daroukhane sefaresh taghvim",
    "hi": "dukaan pustakalaya rasoi vidyalaya bhandar samay khata bazaar",
    "th": "ranhan hongsamut khlang rongrian tarang nadmai talat khrua",
}

SSIDS: dict[str, str] = {
    "es": "Casa Taller Oficina Hogar Patio",
    "de": "Buero Garten Werkstatt Familie Gast",
    "fr": "Maison Salon Atelier Cuisine Invites",
    "pt": "Casa Escola Sala Loja Varanda",
    "ru": "Dacha Kvartira Ofis Sklad Gosti",
    "uk": "Dim Kvartyra Ofis Hosti Sadok",
    "zh": "Jia Keting Bangong Sushe Fangke",
    "ja": "Heya Jimusho Uchi Kaigi Raikyaku",
    "ko": "Jip Cafe Hakwon Samusil Sonnim",
    "it": "Casetta Studio Salotto Ospiti Ufficio",
    "pl": "Domek Warsztat Biuro Goscie Salon",
    "tr": "Ev Ofis Atolye Misafir Salon",
    "nl": "Thuis Zolder Kantoor Gasten Schuur",
    "vi": "Nha VanPhong Quan Khach Tang",
    "id": "Rumah Kantor Kos Tamu Warung",
    "cs": "Byt Chata Kancelar Hoste Dilna",
    "hu": "Otthon Iroda Vendeg Muhely Nyaralo",
    "sv": "Hemma Stuga Kontor Gast Verkstad",
}

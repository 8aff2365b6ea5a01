"""Article 1 of the Universal Declaration of Human Rights (public domain), in many scripts."""

from __future__ import annotations

ARTICLE_1 = {
    "de": "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft "
    "und Gewissen begabt und sollen einander im Geist der Brüderlichkeit begegnen.",
    "fr": "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués "
    "de raison et de conscience et doivent agir les uns envers les autres dans un esprit de "
    "fraternité.",
    "es": "Todos los seres humanos nacen libres e iguales en dignidad y derechos y, dotados como "
    "están de razón y conciencia, deben comportarse fraternalmente los unos con los otros.",
    "pl": "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni "
    "obdarzeni rozumem i sumieniem i powinni postępować wobec innych w duchu braterstwa.",
    "ru": "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены "
    "разумом и совестью и должны поступать в отношении друг друга в духе братства.",
    "uk": "Всі люди народжуються вільними і рівними у своїй гідності та правах. Вони наділені "
    "розумом і совістю і повинні діяти у відношенні один до одного в дусі братерства.",
    "el": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. "
    "Είναι προικισμένοι με λογική και συνείδηση, και οφείλουν να συμπεριφέρονται μεταξύ τους με "
    "πνεύμα αδελφοσύνης.",
    "tr": "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana "
    "sahiptirler ve birbirlerine karşı kardeşlik zihniyeti ile hareket etmelidirler.",
    "he": "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון, לפיכך "
    "חובה עליהם לנהוג איש ברעהו ברוח של אחוה.",
    "ar": "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق. وقد وهبوا عقلا وضميرا وعليهم أن "
    "يعامل بعضهم بعضا بروح الإخاء.",
    "th": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม "
    "และควรปฏิบัติต่อกันด้วยเจตนารมณ์แห่งภราดรภาพ",
    "ja": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。"
    "人間は、理性と良心とを授けられており、互いに同胞の精神をもって行動しなければならない。",
    "zh": "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。",
    "zh-hant": "人人生而自由,在尊嚴和權利上一律平等。"
    "他們賦有理性和良心,並應以兄弟關係的精神相對待。",
    "ko": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 "
    "이성과 양심을 부여받았으며 서로 형제애의 정신으로 행동하여야 한다.",
}
"""Language → the article."""

LEGACY = (
    ("de", "windows-1252", "cp1252"),
    ("fr", "iso-8859-1", "cp1252"),
    ("pl", "windows-1250", "cp1250"),
    ("pl", "iso-8859-2", "iso8859-2"),
    ("ru", "windows-1251", "cp1251"),
    ("ru", "koi8-r", "koi8-r"),
    ("uk", "koi8-u", "koi8-u"),
    ("ru", "iso-8859-5", "iso8859-5"),
    ("el", "windows-1253", "cp1253"),
    ("el", "iso-8859-7", "iso8859-7"),
    ("tr", "windows-1254", "cp1254"),
    ("he", "windows-1255", "cp1255"),
    ("ar", "windows-1256", "cp1256"),
    ("th", "windows-874", "cp874"),
    ("ja", "shift_jis", "cp932"),
    ("ja", "euc-jp", "euc_jp"),
    ("ja", "iso-2022-jp", "iso2022_jp"),
    ("zh", "gbk", "gbk"),
    ("zh", "gb18030", "gb18030"),
    ("zh-hant", "big5", "big5"),
    ("ko", "euc-kr", "cp949"),
)
"""(language, label of the web, Python's codec): what pages in it were usually written in."""

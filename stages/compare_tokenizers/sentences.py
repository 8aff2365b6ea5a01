"""One sentence in many languages, to see how a tokenizer cuts it.

The first of article 1 of the Universal Declaration of Human Rights (United Nations 1948), in the
translations of the UDHR in Unicode project (https://www.unicode.org/udhr/).
"""

SENTENCES = {
    "en": "All human beings are born free and equal in dignity and rights.",
    "de": "Alle Menschen sind frei und gleich an Würde und Rechten geboren.",
    "fr": "Tous les êtres humains naissent libres et égaux en dignité et en droits.",
    "es": "Todos los seres humanos nacen libres e iguales en dignidad y derechos.",
    "ro": "Toate ființele umane se nasc libere și egale în demnitate și în drepturi.",
    "sw": "Watu wote wamezaliwa huru, hadhi na haki zao ni sawa.",
    "tr": "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar.",
    "vi": "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền.",
    "ru": "Все люди рождаются свободными и равными в своем достоинстве и правах.",
    "el": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.",
    "ar": "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق.",
    "hi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है ।",
    "bn": "সমস্ত মানুষ স্বাধীনভাবে সমান মর্যাদা এবং অধিকার নিয়ে জন্মগ্রহণ করে।",
    "th": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ",
    "zh": "人人生而自由,在尊严和权利上一律平等。",
    "ja": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
    "ko": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.",
}
"""By ISO 639-1 code."""

SHOWN = ("en", "de", "ru", "hi", "th", "zh")
"""Languages that are shown where the measured texts declare none of `SENTENCES`."""

"""Word lists that the makers of passwords draw from."""

from __future__ import annotations


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split())


WORDS: dict[str, tuple[str, ...]] = {
    language: _split(words)
    for language, words in {
        "en": "dragon tiger coffee purple monkey summer winter falcon rocket guitar thunder pepper "
        "banana wizard shadow silver hunter copper maple harbor lantern marble pickle ranger "
        "saddle turbo velvet walnut badger cobalt ember glacier hammer jigsaw meadow orchid "
        "puzzle river sunset tundra anchor bishop candle dolphin freedom kitten lakers mustang",
        "de": "sommer winter garten katze schalke fussball kaffee blume drachen himmel sonne "
        "wolke hamburg berlin schnecke tulpe eiche kirsche mausi adler nebel ritter honig",
        "fr": "soleil chaton bonjour fromage marseille papillon cerise nuage tonnerre amour "
        "licorne doudou bretagne citron jardin lapin montagne violette etoile renard",
        "es": "amor gatito playa verano madrid barcelona estrella mariposa cielo tequila perrito "
        "naranja camino luna fuego salsa caballo corazon bonita tormenta",
        "pt": "saudade praia futebol flamengo amor gatinho coracao brasil lisboa cafezinho chuva "
        "abacaxi tigre benfica laranja estrela janela porto cachorro verao",
        "it": "amore juventus gattino pizza ciao sole mare napoli farfalla luna forza ferrari "
        "cavallo stella montagna roma limone fragola nonna vesuvio",
        "nl": "fiets molen kaas zomer tulpen ajax oranje konijn vlinder regen zonnetje poesje "
        "appeltaart haring feyenoord knuffel stroopwafel dijk vuurtoren",
        "pl": "kotek slonce wakacje polska zima kawa misiek gdansk krakow jagoda wisla sowa "
        "motyl niedziela burza chomik legia smok lato",
        "sv": "sommar vinter katten fika blomma stockholm solsken hockey midsommar bulle norrsken "
        "fjord skogen tomte lingon storm dalahast",
        "ru": "privet zaika solnce kotik moskva zvezda vesna leto spartak lubov zenit malina "
        "medved sokol vishnya tigr groza rassvet",
        "tr": "bahar kedi galatasaray yaz deniz istanbul fener kartal canim gunes cicek bulut "
        "karadeniz aslan leylek yildiz",
        "fi": "kesamokki sauna talvi kissa mansikka revontuli jarvi karhu puolukka myrsky sisu",
        "cs": "kocka slunicko praha leto zima pivecko sparta medved vlak boure jahoda koruna",
        "id": "cinta rahasia kucing bandung merdeka pantai bulan melati garuda rendang sayang",
    }.items()
}
CYRILLIC = _split(
    "зайка котик весна солнце москва любовь рассвет спартак медведь гроза малина сокол север"
)
FIRST = _split(
    "marta anna peter lukas julia jonas carlos maria ivan olga pierre claire sven ingrid piotr "
    "ewa marco giulia ahmet elif john kate mike susan dave linda raj priya wei mei kenji yuki"
)
LAST = _split(
    "kowalski meyer schmidt garcia lopez rossi bianchi dubois moreau novak svensson larsen yilmaz "
    "petrov ivanova smith harris nguyen tanaka patel okafor silva santos jansen devries korhonen"
)
COMPANIES = _split(
    "northwind brightlane acorndata velosoft kestrel lumenta hydra bluepeak sandhill orbitec "
    "medilab farmhub finora cargoline papertrail quantix redwood solvix tidewater vianova"
)
SUBJECTS = _split(
    "billing orders inventory payroll reports shop crm wiki tickets analytics gateway media "
    "search booking intranet staging backup metrics auth catalog ledger survey"
)
ACCOUNTS = _split(
    "admin root svc_backup deploy app_user reporting jenkins webadmin dbadmin postgres sa "
    "monitor svc-ldap operator grafana sysadmin readonly etl_user nagios support"
)
ENDINGS = _split("com net org io de fr nl co.uk eu dev local internal lan")
CITIES = _split(
    "Hamburg Lyon Porto Gdansk Malmo Utrecht Leeds Denver Austin Turin Sevilla Brno Izmir Tampere"
)

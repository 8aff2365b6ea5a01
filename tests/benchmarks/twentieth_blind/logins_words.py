"""Word lists of the makers in `logins.py`."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "en": """summer winter dragon tiger rocket silver falcon orange purple coffee monkey thunder
        hunter shadow harbor copper maple pirate wizard banana garden river marble bishop candle
        cactus lantern velvet walnut pepper guitar meadow anchor turbo bubbles pumpkin sparky""",
    "de": """Sommer Winter Drache Schule Garten Hamburg Bremen Katze Hund Fenster Birke Kaffee Wolke
        Schatz Biene Traktor Zwiebel Laterne Kirsche Fussball Sonnenblume Feuerwehr""",
    "fr": """soleil chaton marseille papillon fromage bonjour loulou cerise doudou bretagne chocolat
        lapin etoile montagne camion tortue""",
    "es": """verano gatito barcelona mariposa estrella sevilla futbol camino perrito naranja cielo
        playa amigo girasol tormenta""",
    "pt": """praia saudade flamengo corinthians cachorro estrela amizade janela laranja borboleta
        lisboa futebol""",
    "it": """juventus amore ciccio napoli farfalla gattino cuore stellina tartufo girasole""",
    "nl": """voorjaar fiets ajax welkom poes tulpen kaasboer sneeuw vlinder zonnetje""",
    "pl": """kotek wiosna misiek kasztan burza krakow polska zabka slonko jagoda""",
    "cs": """kocour zahrada slunce praha pejsek medved jahoda heslicko brambora""",
    "ru": """solnyshko vesna kotenok spartak natasha medved zvezda moskva privet lyubov""",
    "tr": """bahar yildiz galata fener deniz kedicik ankara papatya kartal""",
    "sv": """sommar hammarby kanelbulle skogen fotboll lillan midsommar blomma""",
    "fi": """kesakuu koira mansikka sauna talvi perkele hauki lumiukko""",
    "hu": """macska napsugar budapest kutya tavasz szeretlek pillango""",
    "id": """merdeka bintang garuda kucing sayang jakarta melati bandung""",
    "ja": """sakura momiji hikari tokyo neko yuki kaede ramune""",
    "ko": """saranghae haneul seoul gangaji byeol minji""",
    "zh": """woaini xiaoming beijing longfei zhangwei laohu meimei qwer""",
}
CYRILLIC = "солнышко весна котёнок медведь звезда ромашка снегирь калина барсук"
PHRASE = """correct battery staple amber violin gravel orbit pencil saddle mango ribbon tunnel
    glacier parrot wallet cinnamon hammock lobster planet quartz ripple sunset timber vortex
    window yellow zebra cradle dolphin ember feather goblet hazel ivory jungle kettle lemon"""
USERS = """anna mkovacs jsmith deploy backup reporting webapp lukas.weber app_user svc_billing etl
    grafana tomas p.meyer analytics crm_rw wp_prod shop indexer hjensen readonly_bi celery dvega
    migrator ykim mailer odoo nextcloud gitea zabbix keycloak sonar artifactory svc-report nadia"""
COMPANIES = """norvell brightline kestrel tamarind okular velora hafenwerk pinegrove datalume
    sundbyte orvanto meridia cloudnest lumira ferrobit quillon alpenrad zephyra bluewharf tessaro"""
TLDS = "com net io de fr nl pl cz ru com.br co.uk it es se fi cloud dev tech"
HOSTS = "db db1 db-prod mysql01 pg-master data rds cache mq01 ftp files mail smtp sql02 prod-db"
DATABASES = """orders inventory crm billing shop_prod analytics wordpress tickets users_db warehouse
    payroll events mediawiki forum catalog hr_portal bookings telemetry sensors newsletter"""
PROJECTS = """atlas-api shopfront billing-service mailroom invoice-worker weather-bot tracker
    user-service courier ledger photobox rosterly ingest stockwatch parkfinder"""
NAMES = """Anna Marek Julia Tomas Priya Daniel Sofia Wei Olga Hassan Ingrid Pedro Claire Yuki Emma
    Jonas Fatima Igor Nina Luca Chloe Viktor"""
CITIES = "Berlin Lyon Porto Gdansk Utrecht Turin Malmo Denver Leeds Osaka Brno Sevilla Graz Oulu"

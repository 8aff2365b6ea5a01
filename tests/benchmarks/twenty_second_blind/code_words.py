"""Words that values of one writer's texts are drawn from."""

from __future__ import annotations

WORDS = (
    *("rover", "falcon", "maple", "tundra", "saffron", "pepper", "copper", "willow", "comet"),
    *("badger", "orchid", "velvet", "marble", "thunder", "lagoon", "cactus", "pickle", "hammer"),
    *("bicycle", "mango", "penguin", "rocket", "harbor", "silver", "walnut", "tiger", "dragon"),
    *("sommer", "katze", "blauwal", "winter", "kirsche", "drache", "fuchs", "wolke", "regen"),
    *("caballo", "girasol", "luciano", "fuego", "nieve", "tortuga", "playa", "mariposa"),
    *("saudade", "coelho", "abacaxi", "girafa", "fusca", "samba", "pipoca", "mineiro"),
    *("soleil", "papillon", "croissant", "chouette", "violette", "tournesol", "marcel"),
    *("matahari", "kucing", "rendang", "merdeka", "bintang", "garuda", "anggrek"),
    *("zvezda", "medved", "kartoshka", "sobaka", "snezhok", "barsik", "volga"),
    *("naruto", "pikachu", "gandalf", "yoda", "arsenal", "juventus", "metallica", "subaru"),
    *("andrea", "deepak", "priya", "miguel", "olga", "stefan", "tuan", "anita", "hakan", "yusuf"),
)
APPS = (
    *("shopfront", "inventory", "ledger", "parcelbox", "quizroom", "timesheet", "greenhouse"),
    *("petclinic", "bookstore", "carpool", "moviehub", "chatroom", "taskpilot", "fleetwatch"),
    *("recipebook", "eventdesk", "photowall", "weatherlog", "billing", "helpdesk", "crm", "lms"),
    *("attendance", "payroll", "campus", "clinicflow", "foodmap", "libris", "motorlog", "solarmon"),
)
USERS = (
    *("deploy", "webapp", "svc_backup", "appuser", "jenkins", "dbadmin", "reporting", "grafana"),
    *("openhab", "hass", "mqttuser", "iotbridge", "ingest", "readonly", "importer", "celery"),
    *("marta", "jonas", "rahul", "bogdan", "ines", "pieter", "ayse", "kenji", "nadia", "oscar"),
)
FIRST = (
    *("Marta", "Jonas", "Rahul", "Bogdan", "Ines", "Pieter", "Ayse", "Kenji", "Nadia", "Oscar"),
    *("Lena", "Tomas", "Farid", "Giulia", "Minh", "Sofia", "Erik", "Wanda", "Dario", "Chloe"),
)
LAST = (
    *("Okafor", "Lindqvist", "Moreau", "Kowalski", "Tanaka", "Pereira", "Haddad", "Novak"),
    *("Schuster", "Iyer", "Bianchi", "Jansen", "Castillo", "Petrov", "Yilmaz", "Nguyen"),
)
DOMAINS = (
    *("harborlight", "nordwind", "bluecrate", "pixelforge", "tallgrass", "ironbark", "quietbay"),
    *("cedarline", "lumenstack", "driftworks", "redkite", "mosslab", "oakfield", "starling"),
)
TLDS = ("com", "io", "net", "dev", "de", "com.br", "co.in", "fr", "nl", "app")
SSIDS = (
    *(
        "TP-LINK_",
        "FRITZ!Box 75",
        "dlink-",
        "HUAWEI-",
        "NETGEAR",
        "Vodafone-",
        "INFINITUM",
        "MiFi_",
    ),
    *("Livebox-", "Linksys0", "Tenda_", "ZTE_"),
)

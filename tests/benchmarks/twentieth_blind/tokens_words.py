"""Words that the texts of bearer credentials and broken tokens are drawn from."""

from __future__ import annotations


def _split(text: str) -> list[str]:
    return text.split()


NAMES = _split(
    """
    Marta Jonas Priya Kofi Lena Tomasz Aiko Rafael Ingrid Samuel Noor Pavel Chiara Dmitri Wen
    Olufemi Katrin Luis Hanna Yusuf Elif Mateus Sofie Arjun Bence Camille Darragh Eszter
    """
)
SURNAMES = _split(
    """
    Novak Lindqvist Okafor Brandt Moreau Castellano Ferreira Jansen Petrov Haddad Nakata
    Kowalski Byrne Sandoval Weiss Dahl Mbeki Rossi Horvath Pereira Thorne Ismail
    """
)
USERS = _split(
    """
    jenkins deploy svc-reports admin mkowalski jbrandt api-client backup grafana ops integration
    build-agent root sync monitor n.haddad lfischer terraform readonly webmaster ci-runner
    crm_export shopadmin monitoring etl
    """
)
WORDS = _split(
    """
    harbor lumen quartz cobalt maple orbit falcon nimbus tundra willow ember delta meadow
    granite saffron juniper pelican summit raven cedar amber coral drift glacier hazel indigo
    lotus mango nectar onyx prairie ripple sierra thistle velvet walnut zephyr copper
    """
)
DOMAINS = _split(
    """
    io com net dev cloud de co app fr nl pl se com.br eu tech ch
    """
)
SUBS = _split(
    """
    api api2 gateway rest services data backend app core connect edge
    """
)
PATHS = _split(
    """
    /v1/orders /api/v2/users /v3/invoices /api/items /v1/customers /rest/api/2/issue /graphql
    /api/v1/reports/daily /v2/devices /api/projects /v1/messages /api/v4/jobs /v1/shipments
    /inventory/stock /api/me /v1/events /api/tickets /v1/metrics /bookings /api/v1/nodes
    """
)
ROLES = _split(
    """
    admin user editor viewer service reader operator member staff
    """
)
SCOPES = ["read write", "openid profile", "orders:read", "repo", "api", "read:users", "offline"]
PASSES = _split(
    """
    Winter Tiger Coffee Sunshine Dragon Bergen Lisboa Wolke Sommer Pasta Kraken Rocket Jupiter
    Banane Monkey Florida Hockey Pirate Zebra Garten
    """
)
AGENTS = _split(
    """
    curl/8.4.0 PostmanRuntime/7.36.0 okhttp/4.12.0 python-requests/2.31.0 axios/1.6.2
    Go-http-client/1.1 insomnia/8.4.5 Dalvik/2.1.0 Java/17.0.9 GuzzleHttp/7
    """
)
DAYS = _split(
    """
    Mon Tue Wed Thu Fri Sat Sun
    """
)
MONTHS = _split(
    """
    Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec
    """
)

"""Words from which the seventeenth set's makers of secrets build names, hosts and passwords."""

from __future__ import annotations


def _words(text: str) -> list[str]:
    return text.split()


WORDS = _words("""
sommer winter kaffee drachen falke igel wolke garten berlin hamburg schnecke zitrone
verano gato tortuga limon montana barrio sevilla camino perro naranja cebolla
soleil chaton papillon lyon bretagne fromage oiseau cerise jardin tulipe moulin
gatto stella napoli cavallo farfalla torino limone estate
kotek wisla krakow jezyk burza malina zamek kocour praha brno vlak
zwaluw fiets tulp utrecht molen kaas sverige hjorton algen skog fjord
moskva zima medved sokol kalina dnipro sonce kavun
yildiz deniz kedi ankara karpuz bahar sakura neko kaze fuji panda
monkey tiger dragon falcon rocket banana purple thunder coffee pepper maple otter
river harbor summit copper pixel ranger shadow knight phoenix bicycle pirate
""")
COMPANIES = _words("""
nordwerk brightloop talvera okapisoft kranich lumenpath vistula kestrelio marisco
solvento deltamoor pinetree-labs bluegannet rotonda ferrovia quillon havnet tessaly
orbisdata granita wattmeister calypsa lindqvist terrafirm mondrago zephyrine
""")
SUBDOMAINS = _words("db db1 sql mysql pg prod staging mail data api backup node3 srv02 vps intern")
TLDS = _words("com net org io de fr es it pl cz nl se com.br ru com.ua com.tr co.jp cn kr in vn id")
USERS = _words("""
admin app appuser svc_web deploy backup reporting jenkins wpuser django rails grafana etl
readonly sa dbadmin shop crawler mailer webmaster monitor ops gitlab nextcloud typo3 joomla
m.keller jsmith anna.k pedro luc ivan mehmet tanaka nguyen rizky
""")
DATABASES = _words("""
orders shop inventory analytics crm billing wordpress forum customers warehouse events
users metrics intranet kunden pedidos produits sklep zakazky magazijn
""")
PEOPLE = _words("""
Anna Jonas Markus Sabine Lucia Pablo Camille Thierry Giulia Marco Agnieszka Piotr Jana
Sanne Joost Elin Dmitri Olena Elif Yuki Min-jun Rahul Linh Dewi Omar Chloe Dave Priya
""")

"""Word lists of the group: names, firms, banks, structures of accounts and forms of tokens.

A pattern holds `{CN}` or `{CN,M}`: N (to M) characters of the class C, see `CLASSES`.
"""

from __future__ import annotations


def _pairs(listed: str) -> dict[str, str]:
    """Names with what stands behind their equals sign, between blanks."""
    return dict(pair.split("=", 1) for pair in listed.split())


CLASSES = _pairs("""
d=0123456789 h=0123456789abcdef H=0123456789ABCDEF l=abcdefghijklmnopqrstuvwxyz
L=abcdefghijklmnopqrstuvwxyz0123456789 u=ABCDEFGHIJKLMNOPQRSTUVWXYZ
U=ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 B=ABCDEFGHIJKLMNOPQRSTUVWXYZ234567
j=abcdefghijklmnopqrstuvwxyz234567 z=ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz
a=ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789
w=ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_
b=ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/
5=123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz
""")
NAMES = {
    "de": "Jutta Brandner,Malte Ohlsen,Sieglinde Pfaff,Dr. Torben Rieck,Anke Wüstefeld",
    "en": "Gareth Plumley,Dawn Hathersage,Marcus Oyelaran,Tess Winstanley,Joel Abernathy",
    "fr": "Solène Guillemot,Bastien Carpentier,Odile Maréchaux,Yanis Bouhadi,Maëlle Le Goff",
    "es": "Nerea Etxebarria,Álvaro Quintanilla,Rocío Benavente,Joan Puigdemunt,Inés Carrasco",
    "it": "Ludovica Sartorelli,Ettore Brambati,Chiara Manfrin,Davide Cusimano,Ornella Tosi",
    "nl": "Sanne Hoekstra,Joris van Wessel,Femke Dijkhuizen,Bram Terpstra,Loes Verhagen",
    "pl": "Agnieszka Wróblewska,Tomasz Gawlik,Marzena Kotecka,Paweł Sikorski,Iga Mroczek",
    "sv": "Elin Hedström,Anders Lövgren,Maja Sjölund,Kjell Åberg,Tove Nyqvist",
    "tr": "Zeynep Akgündüz,Emre Taşkıran,Hülya Sönmez,Kerem Yalçınkaya,Elif Bozdağ",
    "cs": "Věra Hrušková,Radim Pospíchal,Lenka Šafářová,Ondřej Kučera,Ivana Zemanová",
}
FIRMS = (
    "Nordwerk GmbH,Halcyon Freight Ltd,Atelier Bréhat SARL,Talleres Monzón S.L.,Kesteren Bouw B.V.,"
    "Zakład Mechaniczny Lech Sp. z o.o.,Fjordlys AS,Blåklint AB,Pekin Lojistik A.Ş.,Adda S.r.l.,"
    "Stavby Orlice s.r.o.,Szabó és Társa Kft.,Oleum Trading OOD,Clos du Moulin SA,Brennholz KG"
)
WORDS = (
    "billing,orders,ledger,mailer,inventory,gateway,scraper,reporter,harbor,falcon,juniper,tundra,"
    "quartz,meadow,copper,lantern,otter,sparrow,granite,willow,saffron,marlin,cobalt,thistle,walrus"
)
HOSTS = "api.,app.,auth.,id.,portal.,gw.,git.,ci.,shop.,intern."
DOMAINS = (
    "nordwerk-gmbh.de,halcyonfreight.co.uk,brehat.fr,monzon.es,adda-vetri.it,kesteren.nl,lechzm.pl,"
    "fjordlys.no,blaklint.se,pekinlojistik.com.tr,orlice.cz,tundra-labs.io,otterbox.dev,quartzapp.co"
)
BBAN = _pairs("""
DE={bank}{d10} AT={bank}{d11} CH=00{bank}{d12} LI=088{d2}{d12} NL={bank}0{d9} GB={bank}{d14}
IE={bank}{d14} IT={u1}{bank}{d17} SM={u1}03225{d17} SE={bank}{d17} DK={bank}{d10} FI={bank}{d11}
PL={bank}{d20} CZ={bank}0000{d12} SK={bank}0000{d12} HU=1177{d20} RO={bank}{U16}
BG={bank}{d4}10{U8} HR={bank}{d10} SI={bank}{d10} RS={bank}{d15} BA={bank}{d10} ME=510{d15}
MK=300{d12} AL=212{d5}{d16} GR={bank}{d3}{d16} CY=002{d5}{U16} TR=000{bank}0{d16} UA={bank}{d19}
MD=AG{d18} EE={bank}{d14} LV={bank}{d13} LT={bank}{d11} LU={bank}{d13} MT=VALL{d5}{d18}
GE={bank}{d16} AZ=NABZ{d20} KZ={bank}{d3}{U10} SA={bank}{d18} AE={bank}{d16} QA=QNBA{d21}
KW=NBOK{d22} BH=NBOB{d14} JO=ARAB{d4}{d18} LB=0014{d20} PK={bank}{d16} IL={bank}{d16}
TN={bank}{d18} MU=MCBL{d16}000MUR BR={bank}{d15}C1 CR=0{bank}{d14} DO=BRRD{d20}
GT=INDL{d2}{d2}{d16} EG=0003{d4}{d17} IS=0{d21} GI=NWBK{d15} AD=0001{d4}{d12} XK=1701{d12}
FO=6460{d10} GL=6471{d10} VA=001{d15} PS=PALS{d21}
""")
"""Countries without a check of their own; `{bank}` is one of `BANKS`."""
BANKS = _pairs("""
DE=37040044,50010517,10050000,70150000,20041133,12030000,43060967,76050101
AT=12000,20111,32000,14000,60000 CH=762,230,700,900 NL=INGB,RABO,ABNA,TRIO,KNAB
GB=BARC,LOYD,MIDL,NWBK,REVO,MONZ IE=AIBK,BOFI,IPBS IT=02008,03069,05034,03268 SE=500,800,600,300
NO=8601,1503,9710 DK=3000,2000,5301 FI=131,500,405 PL=1020,1140,1050,2490
CZ=0100,0300,0800,2010,5500 SK=0200,0900,1100 RO=BTRL,RNCB,BRDE,INGB BG=UNCR,STSA,BPBI
HR=2360000,2340009,2402006 SI=02010,04000,06100 RS=160,265,205 BA=129007,161000 GR=0110,0172,0140
TR=62,64,10,46,15 UA=305299,322001,300346 EE=22,77,10 LV=HABA,UNLA,PARX LT=73000,70440,32500
LU=001,003,014 GE=TB,BG KZ=722,601,998 SA=80,10,05 AE=033,026,035 PK=HABB,MEZN,UNIL IL=010,012,011
TN=08,10,04 BR=00000000,60701190,90400888 CR=152,151,102
""")
TOKENS = _pairs("""
aws=AKIA{B16} aws_sts=ASIA{B16} aws_secret={a3}{b36}{a1} github_pat=github_pat_11{U20}_{a59}
gitlab=glpat-{w20} gitlab_trigger=glptt-{h40} gitlab_deploy=gldt-{w20} gitlab_runner=glrt-{w20}
gitlab_old=GR1348941{w20} gitlab_ci=glcbt-{h2}_{w20} pypi=pypi-AgEIcHlwaS5vcmc{w140,160}
rubygems=rubygems_{h48} nuget=oy2{j43} crates=cio{a32} docker=dckr_pat_{w27}
slack_bot=xoxb-{d12}-{d13}-{a24} slack_user=xoxp-{d12}-{d12}-{d13}-{h32}
slack_app=xapp-1-A0{U9}-{d13}-{h64} telegram={d10}:AA{w32}a stripe=sk_live_{a24}
stripe_new=sk_live_51{a97} stripe_rk=rk_live_{a24} stripe_test=sk_test_51{a97}
stripe_wh=whsec_{a32} twilio={h32} sendgrid=SG.{w22}.{w43} mailgun=key-{h32}
mailgun_new={h32}-{h8}-{h8} mailchimp={h32}-us{d1} brevo=xkeysib-{h64}-{a16}
brevo_smtp=xsmtpsib-{h64}-{a16} resend=re_{a8}_{a24} mandrill=md-{w22} google=AIzaSy{w33}
google_secret=GOCSPX-{w28} google_access=ya29.a0A{w160,190} google_refresh=1//0{d1}{w97}
fcm=AAAA{w7}:APA91b{w134} openai=sk-{a20}T3BlbkFJ{a20} openai_proj=sk-proj-{w74}T3BlbkFJ{w74}
anthropic=sk-ant-api03-{w93}AA huggingface=hf_{z34} replicate=r8_{a37} groq=gsk_{a20}WGdyb3FY{a24}
perplexity=pplx-{h48} xai=xai-{a80} deepseek=sk-{h32} openrouter=sk-or-v1-{h64}
elevenlabs=sk_{h48} voyage=pa-{w43} tavily=tvly-dev-{a32} pinecone=pcsk_{a5}_{a63}
langsmith=lsv2_pt_{h32}_{h10} langfuse=sk-lf-{uuid} nvidia=nvapi-{w64} firecrawl=fc-{h32}
cerebras=csk-{L48} wandb={h40} databricks=dapi{h32} digitalocean=dop_v1_{h64} heroku=HRKU-{uuid}
netlify=nfp_{a36} fly=fo1_{w43} render=rnd_{a28} cloudflare={w40} originca=v1.0-{h24}-{h146}
vault=hvs.CAESI{w91} vault_old=s.{a24} terraform={a14}.atlasv1.{w67} doppler=dp.pt.{a43}
doppler_st=dp.st.prd.{a43} pulumi=pul-{h40} grafana=glsa_{a32}_{h8} newrelic=NRAK-{U27}
sentry=sntryu_{h64} posthog=phx_{a43} sonar=sqp_{h40} sonar_user=squ_{h40}
circleci=CCIPAT_{a22}_{h40} buildkite=bkua_{h40} jfrog=AKCp8{a68} jfrog_ref=cmVmdGtuOjAxOj{a50}
sourcegraph=sgp_{h16}_{h40} atlassian=ATATT3xFfGF0{w171}={H8} bitbucket=ATBB{a24}{H8}
linear=lin_api_{a40} asana=1/{d16}:{h32} notion=secret_{a43} notion_new=ntn_{d11}{a35}
airtable=pat{a14}.{h64} clickup=pk_{d8}_{U32} trello=ATTA{h64}{H8} figma=figd_{w40}
shopify=shpat_{h32} shopify_ss=shpss_{h32} square=EAAA{w60} square_cs=sq0csp-{w43}
braintree=access_token$production${L16}${h32} plaid=access-production-{uuid}
mercadopago=APP_USR-{d16}-{d6}-{h32}-{d9} flutterwave=FLWSECK-{h32}-X paystack=sk_live_{h40}
lob=live_{h35} easypost=EZAK{h32}{a22} shippo=shippo_live_{h40} duffel=duffel_live_{w43}
dropbox=sl.{w138} facebook=EAA{a180} twitter=AAAAAAAAAAAAAAAAAAAAA{a40}%3D{a50}
hubspot=pat-na1-{uuid} zoho=1000.{h32}.{h32} okta=00{w40} supabase=sbp_{h40}
planetscale=pscale_tkn_{w43} planetscale_pw=pscale_pw_{w43} neon=napi_{L64} contentful=CFPAT-{w43}
postman=PMAK-{h24}-{h34} typeform=tfp_{a44}_{a14} readme=rdme_{L70} frameio=fio-u-{w64}
tailscale=tskey-auth-k{a11}CNTRL-{a32} ngrok=2{a26}_{a21} infracost=ico-{a32} prefect=pnu_{L36}
launchdarkly=sdk-{uuid} yandex=AQVN{w36} yandex_oauth=y0_AgAAAA{w48} aliyun=LTAI5t{a18}
aliyun_secret={a30} tencent=AKID{a32} tencent_secret={a32} vk=vk1.a.{w198} zhipu={h32}.{a16}
dingtalk=SEC{h64} azure={a3}8Q~{w34} azuredevops={j52} adafruit=aio_{a28}
rapidapi={h10}msh{h15}p1{h6}jsn{h12} scaleway={uuid} dynatrace=dt0c01.{B24}.{B64} deepgram={h40}
fireworks=fw_{a24} clojars=CLOJARS_{h60} alibaba=sk-{h32} line={b171}= pagerduty=u+{w18}
intra42=s-s4t2ud-{h64} wakatime=waka_{uuid} twitch={L30} spotify={h32} pushover={L30}
datadog={h32} pkstripe=pk_live_{a24} pkstripe_new=pk_live_51{a97} recaptcha=6L{a6}AAAAA{w27}
phc=phc_{a43} gaid=G-{U10} client={d12}-{L32}.apps.googleusercontent.com
pkmapbox=pk.eyJ1Ijoi{a30}.{w22} cus=cus_{a14} pi=pi_{a24} ch=ch_3{a23} sub=sub_1{a23}
price=price_1{a23} acsid=AC{h32} sqapp=sq0idp-{w22} lobpub=live_pub_{h31} ldmob=mob-{uuid}
pkclerk=pk_live_{a42} ec2=i-0{h16} ami=ami-0{h16} aida=AIDA{B17} aroa=AROA{B17}
turnstile=0x4AAAAAA{w15}
""")
"""Tokens by service and form; the last rows are public ids."""
CLAIMS = {
    "user": '"sub":"{d6}","name":"<name>","iat":<iat>,"exp":<exp>',
    "short": '"id":{d3},"iat":<iat>,"exp":<exp>',
    "mongo": '"_id":"6{h23}","role":"admin","iat":<iat>',
    "django": '"token_type":"access","exp":<exp>,"iat":<iat>,"jti":"{h32}","user_id":{d3}',
    "supabase": '"iss":"supabase","ref":"{l20}","role":"service_role","iat":<iat>,"exp":<exp>',
    "oidc": '"iss":"https://<host>/","sub":"auth0|{h24}","aud":["https://<host>/api"],"iat":<iat>,"exp":<exp>,"azp":"{a32}","scope":"openid"',
    "keycloak": '"exp":<exp>,"iat":<iat>,"jti":"{uuid}","iss":"https://<host>/realms/<word>","aud":"account","sub":"{uuid}","typ":"Bearer","azp":"<word>-web","preferred_username":"<word>"',
    "k8s": '"aud":["https://kubernetes.default.svc"],"exp":<exp>,"iat":<iat>,"iss":"https://kubernetes.default.svc","kubernetes.io":{"namespace":"<word>","serviceaccount":{"name":"<word>-sa","uid":"{uuid}"}},"nbf":<iat>,"sub":"system:serviceaccount:<word>:<word>-sa"',
    "app": '"iat":<iat>,"exp":<exp>,"iss":"{d6}"',
    "hass": '"iss":"{h32}","iat":<iat>,"exp":<exp>',
    "ghost": '"iat":<iat>,"exp":<exp>,"aud":"/admin/"',
    "firebase": '"iss":"https://securetoken.google.com/<word>-{h5}","aud":"<word>-{h5}","auth_time":<iat>,"user_id":"{a28}","sub":"{a28}","iat":<iat>,"exp":<exp>,"firebase":{"identities":{},"sign_in_provider":"password"}',
    "n8n": '"sub":"{uuid}","iss":"n8n","aud":"public-api","iat":<iat>',
    "spring": '"sub":"<word>","roles":["ROLE_USER"],"iat":<iat>,"exp":<exp>',
    "laravel": '"iss":"https://<host>/api/login","iat":<iat>,"exp":<exp>,"nbf":<iat>,"jti":"{a16}","sub":"{d4}","prv":"{h40}"',
    "azure": '"aud":"api://{uuid}","iss":"https://sts.windows.net/{uuid}/","iat":<iat>,"nbf":<iat>,"exp":<exp>,"appid":"{uuid}","oid":"{uuid}","tid":"{uuid}","ver":"1.0"',
}  # fmt: skip

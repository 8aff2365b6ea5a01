"""Words, bank codes and forms that the makers of `keys.py` draw from."""

from __future__ import annotations

_TEXTS = {
    "first": (
        "Anna Jonas Maria Lukas Sofia Peter Elena Marco Julie Thomas Ivana Piotr Katrin Miguel "
        "Chloe Ahmed Fatima Yuki Wei Priya Oleh Daria Lars Ingrid Nuno Beatriz Zoltan Eszter Emre"
    ),
    "last": (
        "Brandt Keller Moreau Rossi Novak Kowalski Jansen Svensson Hansen Virtanen Garcia Ferreira "
        "Papadopoulos Horvat Nagy Yilmaz Haddad Tanaka Chen Sharma Murphy Walker Petrov Ionescu"
    ),
    "firm": (
        "Nordlicht Brightwater Kestrel Halden Montclair Ostrava Veldhuis Sandmark Lumina Arkadia "
        "Fennimore Terranova Waldhof Bluefin Corvina Eastgate Harrow Solvay Pinecrest Redwood"
    ),
    "user": (
        "alice_k jmeyer devops-tom mkowal sara.l kenji pgupta bwilson r00tless nina42 oskar_b "
        "hvdberg timo85 lucia-m wasabi_dev kraken jdoe77 elmo anton tessa.v"
    ),
    "app": (
        "billing-api shopfront inventory orders-service notifier webhook-relay backoffice crawler "
        "payroll auth-gateway chatbot reporting fleet-tracker mailer media-proxy scheduler ledger"
    ),
    "host": (
        "web01 db-prod-2 edge3 build7 ns1 gw-fra node-4 raspi worker12 staging-b mx2 ci-runner-5 "
        "vps-ams jump01 k8s-master"
    ),
    "domain": (
        "nordlicht-it.de brightwater.io kestrel-labs.com halden.no montclair.fr veldhuis.nl "
        "lumina-apps.com arkadia.gr fennimore.co.uk terranova.it corvina.eu eastgate.dev "
        "pinecrest.org bluefin.cloud sandmark.se"
    ),
    "city": (
        "Berlin Lyon Utrecht Porto Gdansk Brno Zagreb Leeds Turin Malmo Tampere Graz Vilnius Bergen"
    ),
    "repo": (
        "infra dotfiles terraform-modules helm-charts mobile-app data-pipeline homelab scripts "
        "website ops-tools discord-bot etl-jobs"
    ),
    "month": "January February March April May June July September October November",
    "thing": ("invoices reports orders messages uploads sessions backups users events payments"),
}
WORDS: dict[str, list[str]] = {name: text.split() for name, text in _TEXTS.items()}
"""Words of a kind."""

BANKS: dict[str, str] = {
    "AE": "033 026 035", "AD": "00010001 00030002 00060004", "AL": "21211009 20211021",
    "AT": "12000 20111 32000 14000 60000 19043", "AZ": "NABZ AZEN IBAZ",
    "BA": "129 338 161", "BE": "001 063 310 363 539 734 979", "BG": "UNCR BNBG STSA FINV RZBB",
    "BH": "BMAG NBOB AHLI",
    "BR": "00360305 60701190 60746948", "CH": "00762 09000 00230 04835 80808",
    "CR": "0152 0151 0102", "CY": "00200195 00500140", "CZ": "0800 0100 0300 2010 5500 0600",
    "DE": "37040044 10070024 50010517 70050000 20041133 10050000 12030000 43060967 60050101",
    "DK": "0040 3000 5051 6695", "DO": "BRRD BPDO", "EE": "22 10 77 42", "EG": "0002 0003 0019",
    "ES": "2100 0049 0182 2038 0081 1465 3058", "FI": "123456 500015 405500 313130",
    "FO": "6460 9181", "FR": "30002 30003 30004 20041 10278 18206 14505",
    "GB": "BARC LOYD HBUK MIDL NWBK RBOS MONZ REVO", "GE": "NB TB BG", "GI": "NWBK BARC",
    "GL": "6471", "GR": "011 014 017 026", "GT": "TRAJ BAGU INDL",
    "HR": "23600004 23400009 24020060 24840082",
    "HU": "117 107 116 120 104", "IE": "AIBK BOFI IPBS REVO", "IL": "010 012 011 020",
    "IS": "0159 0301 0133", "IT": "03069 02008 05034 01030 03111 36772",
    "JO": "CBJO ARAB HBHO", "KW": "CBKU NBOK KFHO", "KZ": "125 722 601",
    "LB": "0999 0014 0056", "LI": "08810 08800", "LT": "73000 70440 10100 32500",
    "LU": "001 002 003 008", "LV": "HABA UNLA PARX", "MC": "11222 30003", "MD": "AG VI EX",
    "ME": "505 510 520", "MK": "250 300 210", "MT": "MALT VALL MMEB", "MU": "BOMM MCBL",
    "NL": "INGB ABNA RABO KNAB BUNQ SNSB TRIO ASNB", "NO": "1503 9710 6011 3624",
    "PK": "SCBL HABB MEZN UNIL", "PL": "10901014 11402004 10201026 12401037 10501025",
    "PS": "PALS ARAB", "PT": "0035 0033 0010 0007 0018", "QA": "DOHB QNBA",
    "RO": "AAAA BTRL RNCB BRDE RZBR INGB", "RS": "260 160 265 170", "SA": "80 20 10 05",
    "SE": "500 600 300 800", "SI": "56 02 29 10", "SK": "0900 0200 1100 7500 8330",
    "SM": "08540 03034", "TN": "10 08 04", "TR": "00010 00062 00046 00064 00012",
    "UA": "322313 305299 322001 351005", "VG": "VPVG", "XK": "1212 1505",
}  # fmt: skip
"""Codes of banks that an account of a country begins with, of the length of the country's field."""

ACCOUNTS: dict[str, str] = {
    "AE": "[0-9]{16}", "AD": "[0-9]{12}", "AL": "[0-9]{16}", "AT": "[0-9]{11}",
    "AZ": "[0-9]{20}", "BA": "[0-9]{11}", "BE": "[0-9]{7}", "BG": "[0-9]{14}", "BH": "[0-9]{14}",
    "BR": "[0-9]{15}[CP]1", "CH": "[0-9]{12}", "CR": "[0-9]{14}", "CY": "[0-9]{16}",
    "CZ": "000000[1-9][0-9]{9}", "DE": "[0-9]{10}", "DK": "[0-9]{10}", "DO": "[0-9]{20}",
    "EE": "[0-9]{14}", "EG": "[0-9]{21}", "ES": "[0-9]{4}", "FI": "[0-9]{7}", "FO": "[0-9]{10}",
    "FR": "[0-9]{5}[0-9]{11}", "GB": "[0-9]{14}", "GE": "[0-9]{16}", "GI": "[0-9]{15}",
    "GL": "[0-9]{10}",
    "GR": "[0-9]{20}", "GT": "[0-9]{20}", "HR": "[0-9]{9}", "HU": "[0-9]{21}", "IE": "[0-9]{14}",
    "IL": "[0-9]{16}", "IS": "[0-9]{18}", "IT": "[0-9]{5}[0-9]{12}", "JO": "[0-9]{22}",
    "KW": "[0-9]{22}", "KZ": "[A-Z][0-9]{12}", "LB": "[0-9]{20}", "LI": "[0-9]{12}",
    "LT": "[0-9]{11}", "LU": "[0-9]{13}", "LV": "[0-9]{13}", "MC": "[0-9]{5}[0-9]{11}",
    "MD": "[0-9]{18}", "ME": "[0-9]{13}", "MK": "[0-9]{10}", "MT": "[0-9]{5}[0-9]{18}",
    "MU": "[0-9]{19}MUR", "NL": "0[0-9]{9}", "NO": "[0-9]{6}", "PK": "[0-9]{16}",
    "PL": "[0-9]{16}", "PS": "[0-9]{21}", "PT": "[0-9]{15}", "QA": "[0-9]{21}",
    "RO": "[A-Z0-9]{16}", "RS": "[0-9]{13}", "SA": "[0-9]{18}", "SE": "[0-9]{17}",
    "SI": "[0-9]{11}", "SK": "0000[0-9]{2}[1-9][0-9]{9}", "SM": "[0-9]{5}[0-9]{12}",
    "TN": "[0-9]{18}", "TR": "0[0-9]{16}", "UA": "00000[1-9][0-9]{13}", "VG": "[0-9]{16}",
    "XK": "[0-9]{12}",
}  # fmt: skip
"""What follows the bank's code, before digits that the country's own check adds."""

_B64U = "[A-Za-z0-9_-]"
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"

PROVIDERS: dict[str, str] = {
    "adobe_secret": "p8e-[A-Za-z0-9_-]{32}",
    "airtable_pat": "pat[A-Za-z0-9]{14}.[0-9a-f]{64}",
    "airtable_key": "key[A-Za-z0-9]{14}",
    "alibaba_id": "LTAI5t[A-Za-z0-9]{18}",
    "alibaba_secret": "[A-Za-z0-9]{30}",
    "anthropic_key": f"sk-ant-api03-{_B64U}{{93}}AA",
    "anthropic_admin": f"sk-ant-admin01-{_B64U}{{93}}AA",
    "artifactory_key": "AKCp8[A-Za-z0-9]{68}",
    "asana_pat": "1/12[0-9]{14}:[0-9a-f]{32}",
    "atlassian_token": f"ATATT3xFfGF0{_B64U}{{171}}=[0-9A-F]{{8}}",
    "aws_id": "AKIA[A-Z2-7]{16}",
    "aws_temp": "ASIA[A-Z2-7]{16}",
    "aws_secret": "[A-Za-z0-9][A-Za-z0-9/+]{38}[A-Za-z0-9]",
    "azure_secret": "[A-Za-z0-9]{3}8Q~[A-Za-z0-9_~.-]{33}[A-Za-z0-9]",
    "azuredevops_pat": "[a-z2-7]{52}",
    "bitbucket_app": "ATBB[A-Za-z0-9]{24}[0-9A-F]{8}",
    "braintree_token": "access_token$production$[0-9a-z]{16}$[0-9a-f]{32}",
    "brevo_key": "xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}",
    "buildkite_token": "bkua_[0-9a-f]{40}",
    "circleci_pat": "CCIPAT_[A-Za-z0-9]{22}_[0-9a-f]{40}",
    "clojars_token": "CLOJARS_[0-9a-f]{60}",
    "cloudflare_token": "[A-Za-z0-9][A-Za-z0-9_-]{38}[A-Za-z0-9]",
    "cloudflare_key": "[0-9a-f]{37}",
    "cloudflare_origin": "v1.0-[0-9a-f]{24}-[0-9a-f]{146}",
    "contentful_pat": f"CFPAT-{_B64U}{{43}}",
    "crates_token": "cio[A-Za-z0-9]{32}",
    "databricks_pat": "dapi[0-9a-f]{32}",
    "datadog_key": "[0-9a-f]{32}",
    "datadog_app": "[0-9a-f]{40}",
    "deepseek_key": "sk-[0-9a-f]{32}",
    "digitalocean_pat": "dop_v1_[0-9a-f]{64}",
    "digitalocean_oauth": "doo_v1_[0-9a-f]{64}",
    "docker_pat": f"dckr_pat_{_B64U}{{27}}",
    "doppler_token": "dp.st.prd.[A-Za-z0-9]{43}",
    "doppler_personal": "dp.pt.[A-Za-z0-9]{43}",
    "dropbox_token": f"sl.B{_B64U}{{135}}",
    "duffel_key": f"duffel_live_{_B64U}{{43}}",
    "dynatrace_token": "dt0c01.[A-Z2-7]{24}.[A-Z2-7]{64}",
    "easypost_key": "EZAK[0-9a-f]{32}[A-Za-z0-9]{22}",
    "facebook_token": "EAA[A-Za-z0-9]{150,190}ZD",
    "figma_pat": f"figd_{_B64U}{{40}}",
    "firebase_server": f"AAAA{_B64U}{{7}}:APA91b{_B64U}{{134}}",
    "flutterwave_key": "FLWSECK-[0-9a-f]{32}-X",
    "flyio_token": "fo1_[A-Za-z0-9_-]{43}",
    "frameio_token": f"fio-u-{_B64U}{{64}}",
    "github_fine": "github_pat_11[A-Z0-9]{20}_[A-Za-z0-9]{59}",
    "gitlab_pat": f"glpat-{_B64U}{{20}}",
    "gitlab_deploy": f"gldt-{_B64U}{{20}}",
    "gitlab_runner": f"glrt-{_B64U}{{20}}",
    "gitlab_trigger": "glptt-[0-9a-f]{40}",
    "google_api": f"AIzaSy[A-D]{_B64U}{{32}}",
    "google_secret": f"GOCSPX-{_B64U}{{28}}",
    "google_access": f"ya29.a0Af{_B64U}{{150,200}}",
    "google_refresh": f"1//0[0-9][A-Za-z]{_B64U}{{96}}",
    "grafana_service": "glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}",
    "groq_key": "gsk_[A-Za-z0-9]{20}WGdyb3FY[A-Za-z0-9]{24}",
    "heroku_key": f"HRKU-{_UUID}",
    "heroku_old": _UUID,
    "hubspot_token": f"pat-[ne][au]1-{_UUID}",
    "huggingface_token": "hf_[A-Za-z]{34}",
    "langsmith_key": "lsv2_pt_[0-9a-f]{32}_[0-9a-f]{10}",
    "launchdarkly_sdk": f"sdk-{_UUID}",
    "linear_key": "lin_api_[A-Za-z0-9]{40}",
    "lob_key": "live_[0-9a-f]{35}",
    "mailchimp_key": "[0-9a-f]{32}-us[1-9]",
    "mailgun_key": "key-[0-9a-f]{32}",
    "mailgun_new": "[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}",
    "netlify_pat": "nfp_[A-Za-z0-9]{36}",
    "newrelic_user": "NRAK-[A-Z0-9]{27}",
    "newrelic_license": "[0-9a-f]{36}NRAL",
    "notion_old": "secret_[A-Za-z0-9]{43}",
    "notion_token": "ntn_[0-9]{11}[A-Za-z0-9]{35}",
    "nuget_key": "oy2[a-z2-7]{43}",
    "nvidia_key": f"nvapi-{_B64U}{{64}}",
    "okta_token": "00[A-Za-z0-9_-]{39}[A-Za-z0-9]",
    "openai_key": "sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}",
    "openai_project": f"sk-proj-{_B64U}{{74}}T3BlbkFJ{_B64U}{{73}}A",
    "openrouter_key": "sk-or-v1-[0-9a-f]{64}",
    "perplexity_key": "pplx-[A-Za-z0-9]{48}",
    "pinecone_key": "pcsk_[A-Za-z0-9]{6}_[A-Za-z0-9]{63}",
    "plaid_token": f"access-production-{_UUID}",
    "planetscale_token": f"pscale_tkn_{_B64U}{{43}}",
    "planetscale_password": f"pscale_pw_{_B64U}{{43}}",
    "postman_key": "PMAK-[0-9a-f]{24}-[0-9a-f]{34}",
    "postmark_token": _UUID,
    "prefect_key": "pnu_[a-z0-9]{36}",
    "pulumi_token": "pul-[0-9a-f]{40}",
    "pypi_token": f"pypi-AgEIcHlwaS5vcmcCJ{_B64U}{{146,160}}",
    "rapidapi_key": "[a-z0-9]{10}msh[0-9a-f]{15}p1[0-9a-f]{5}jsn[0-9a-f]{12}",
    "readme_key": "rdme_[a-z0-9]{70}",
    "replicate_token": "r8_[A-Za-z0-9]{37}",
    "resend_key": "re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}",
    "rubygems_key": "rubygems_[0-9a-f]{48}",
    "sendgrid_key": f"SG.{_B64U}{{22}}.{_B64U}{{43}}",
    "sentry_token": "sntryu_[0-9a-f]{64}",
    "shippo_token": "shippo_live_[0-9a-f]{40}",
    "shopify_token": "shpat_[0-9a-f]{32}",
    "shopify_secret": "shpss_[0-9a-f]{32}",
    "slack_bot": "xoxb-[1-9][0-9]{11}-[1-9][0-9]{12}-[A-Za-z0-9]{24}",
    "slack_user": "xoxp-[1-9][0-9]{11}-[1-9][0-9]{11}-[1-9][0-9]{12}-[0-9a-f]{32}",
    "slack_app": "xapp-1-A[A-Z0-9]{10}-[1-9][0-9]{12}-[0-9a-f]{64}",
    "sonarqube_token": "squ_[0-9a-f]{40}",
    "sonarqube_project": "sqp_[0-9a-f]{40}",
    "square_token": f"EAAA[A-Za-z0-9]{_B64U}{{58}}A",
    "square_secret": f"sq0csp-{_B64U}{{43}}",
    "stripe_live": "sk_live_[A-Za-z0-9]{24}",
    "stripe_long": "sk_live_51[A-Za-z0-9]{97}",
    "stripe_test": "sk_test_51[A-Za-z0-9]{97}",
    "stripe_restricted": "rk_live_51[A-Za-z0-9]{97}",
    "stripe_webhook": "whsec_[A-Za-z0-9]{32}",
    "supabase_token": "sbp_[0-9a-f]{40}",
    "tailscale_key": "tskey-auth-k[A-Za-z0-9]{11}CNTRL-[A-Za-z0-9]{32}",
    "tavily_key": "tvly-[A-Za-z0-9]{32}",
    "telegram_bot": "[1-9][0-9]{8,9}:AA[A-Za-z0-9_-]{32}[A-Za-z0-9]",
    "tencent_id": "AKID[A-Za-z0-9]{32}",
    "terraform_token": "[A-Za-z0-9]{14}.atlasv1.[A-Za-z0-9]{67}",
    "twilio_key": "SK[0-9a-f]{32}",
    "twilio_auth": "[0-9a-f]{32}",
    "twitter_bearer": "AAAAAAAAAAAAAAAAAAAAA[A-Za-z0-9]{9}AAAAAAA[A-Za-z0-9]{25}%3D[A-Za-z0-9]{50}",
    "typeform_pat": "tfp_[A-Za-z0-9]{44}_[A-Za-z0-9]{14}",
    "vault_token": f"hvs.CAES{_B64U}{{92}}",
    "wandb_key": "[0-9a-f]{40}",
    "xai_key": "xai-[A-Za-z0-9]{80}",
    "yandex_key": f"AQVN{_B64U}{{36}}",
}
"""Forms of keys by service, as their providers document them or show them."""

"""Tokens of services that a prefix tells: the prefix, the alphabet and the length of what follows.

The forms are those that the services document or that their scanners look for (GitHub's secret
scanning, gitleaks, TruffleHog). What follows must be as chance makes it; where the prefix is short
or a common word, it must also hold a digit. Keys that services
publish on purpose (`pk_live_`, `phc_`, `pk.eyJ`) are not listed.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from stages.signals.secret_kinds import WORD_BEGIN, WORD_END, SecretKind
from stages.signals.secret_values import is_random

_ALPHABETS = {
    "hex": "[0-9a-f]",
    "alnum": "[A-Za-z0-9]",
    "url": "[A-Za-z0-9_-]",
    "base64": "[A-Za-z0-9+/_=-]",
    "upper": "[A-Z0-9]",
    "lower": "[a-z0-9]",
    "dotted": "[A-Za-z0-9._-]",
}
_FORMS = {
    "hex": """
        dapi:32 glptt-:40 pul-:40 sbp_:40 sgp_:40 squ_:40 sqp_:40 sqa_:40 bkua_:40 sntryu_:64
        sk-or-v1-:64 rubygems_:48 mlsn.:64 shippo_live_:40 shippo_test_:40 key-:32 fc-:32
        ubi_:40 key_:64 live_:35 test_:35 xoxe-1-:30-150 v1.0-:40-200 whsec_:32-64
        sgp_local_:40 packagist_uut_:68 signkey-prod-:64 signkey-test-:64 KGAT_:32 dtn_:64 NRRA-:42
        con-:64 sk1_:64 pk1_:64 e2b_:40 sk_live_:40 sk_test_:40 cs_:40 key_:128
    """,
    "alnum": """
        gsk_:52 xai-:80 pplx-:48 r8_:37-40 ntn_:43-50 lin_api_:40 lin_oauth_:32-64 LTAI:12-24
        AKID:32 ATTA:72 AKLT:30-50 nfp_:36 ico-:32 EZAK:54 EZTK:54 AKCp:68-74 EAA:90-250 phx_:40-48
        whsec_:32 tvly-:28-48 tvly-dev-:28-48 aio_:28 ddp_:36-40 napi_:64 rnd_:26-40 dnkey-:26-100
        pnu_:36 pnb_:36 jsrp_:32 llx-:48 nbp_:36 sess-:40 sec-c-:48 ory_pat_:32 tr_pat_:30-40
        tr_dev_:20-24 xkeysib_:64 lwk_:30-44 sb_temp_:40 bf_:40 npa_:36
        ATBB:32 CLOJARS_:60 api_org_:34 hrku-:30-80 wandb_v1_:60-90 sgp_:64
        figo_:40 PRIVATE-AIRTABLE-:40 patch_:40 csk-:44-52 ctx7sk-:36 sk-svcacct-:40-180
        GR1348941:20-40 sq0atp-:22 HRKU-:30-80 ddn_:40 sk-proj-:40-60 nvapi-:60-70 sk-lf-:36
        cmVmdGtuOj:54 tgp_v1_:40-50 polar_pat_:36-60 polar_oat_:36-60 dub_:24 cal_live_:32
        tr_prod_:20-24 tr_dev_:20-24 bb_live_:25-40 m0-:40 rpa_:40-60 pts_:32 flp_:40-70
        voyage-:40-50 pa-:43-48 e2b_:40 jina_:50-70 apify_api_:36-46 dckr_:40 hvr_:40 sk-kimi-:40-80
    """,
    "url": """
        glrt-:20-60 gldt-:20-60 glcbt-:20-70 glft-:20-60 glsoat-:20-60 glimt-:20-60 glagent-:40-60
        glffct-:20-60 glrtr-:20-60 gloas-:64 nvapi-:60-80 sq0csp-:43 sq0atp-:22 fo1_:43 fio-u-:64
        hf_oauth_:30-700 NRII-:32 sl.u.:130-1300 sk-helicone-:27-50
        figd_:38-46 CFPAT-:43 tfp_:40-64 duffel_test_:43 duffel_live_:43 pscale_tkn_:32-64
        pscale_pw_:32-64 pscale_oauth_:32-64 ops_eyJ:100-2000
        ya29.:30-1200 1//0:60-120 HRKU-:58-80 xapp-:40-140 tskey-auth-:20-70 tskey-api-:20-70
        tskey-client-:20-70 tskey-:20-70 hvs.:24-140 hvb.:100-250 sntrys_:60-400 pcsk_:60-80
        sb_secret_:30-48 p8e-:32 gho-:30-60 ghs-:30-60 vcp_:24-80 vercel_:24-80 eyJrIjoi:60-200
        sk-proj-:80-180 sk-svcacct-:80-180 sk-admin-:60-180 nrk-:30-60 xoxd-:60-300 y0_:50-70
        sha256~:43 mdb_sa_sk_:40 dbtc_:36-60 dbtu_:36-60 xau_:40-50 cfat_:32-64 esecret_:26-48
        AQVN:35-40 IGQV:100-220 sl.:120-160 dsec_:30-80 cfut_:32-64 rdme_xn8s9h:50-70 lip_:30-80
        ory_at_:43 ory_st_:32-43 ory_rt_:43 BSA:28 nk-:43 mfa.:80-90 AQ.Ab8:40-60 sk-cp-:60-140
        pa-:43 ptr_:43-44
    """,
    "upper": "GOOG1E:50-60 rpa_:40 NRAK-:27 NRRA-:40-44 API-:25-32 NRSP-:27-44 AGE-SECRET-KEY-1:58",
    "lower": "api-:28 cli-:28 oy2:43 rdme_:70 nb_:40 oauth::30",
    "base64": """
        ptr_:44 ATBB:36 dG9rOj:54-60 essu_:60-120
        whsec_:32-48 sntrys_eyJ:100-400 base64v1.:60-200 glc_:32-400 fm1_:60-900 fm2_:60-900
    """,
}
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_TWO_PARTS = (
    ("dapi", r"dapi[0-9a-f]{32}-[0-9]{1,2}"),
    ("dp.", r"dp\.(?:st|ct|pt|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,46}"),
    ("pat-", rf"pat-(?:na|eu|ap|ca)[0-9]-{_UUID}"),
    ("snyk_", r"snyk_[us]at\.[0-9a-f]{8}\.[A-Za-z0-9_-]{40,160}"),
    ("t1.", r"t1\.[A-Za-z0-9_-]{20,400}={0,2}\.[A-Za-z0-9_-]{86}={0,2}"),
    ("token-", r"token-[a-z0-9]{5}:[a-z0-9]{54}"),
    ("1000.", r"1000\.[0-9a-f]{32}\.[0-9a-f]{32}"),
    ("00D", r"00D[A-Za-z0-9]{12,15}![A-Za-z0-9_.]{80,120}"),
    *((f"{n}/", rf"{n}/[0-9]{{15,16}}(?:/[0-9]{{15,16}})?:[0-9a-f]{{32}}") for n in "012"),
    ("glsa_", r"glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}"),
    ("PMAK-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    ("xkeysib-", r"xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    ("xsmtpsib-", r"xsmtpsib-[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    ("pat", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("pat.", r"pat\.[A-Za-z0-9_-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}"),
    ("lsv2_", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
    ("CCIPAT_", r"CCIPAT_[A-Za-z0-9]{22}_[0-9a-f]{40}"),
    ("CCIPRJ_", r"CCIPRJ_[A-Za-z0-9]{22}_[0-9a-f]{40}"),
    ("dt0", r"dt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    ("sk.eyJ", r"sk\.eyJ[A-Za-z0-9_-]{40,150}\.[A-Za-z0-9_-]{20,30}"),
    ("xoxe.", r"xoxe\.xox[bp]-[0-9]-[A-Za-z0-9]{140,180}"),
    ("GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{24,32}"),
    ("ATATT3", r"ATATT3[A-Za-z0-9_-]{80,250}(?:=[0-9A-Fa-f]{8}|={0,2})"),
    ("ATCTT3", r"ATCTT3[A-Za-z0-9_-]{80,250}(?:=[0-9A-Fa-f]{8}|={0,2})"),
    ("rzp_live_", r"rzp_live_[A-Za-z0-9]{14}"),
    ("waka_", "waka_" + _UUID),
    ("RGAPI-", "RGAPI-" + _UUID),
    ("APP_USR-", r"APP_USR-[0-9]{10,16}-[0-9]{6}-[0-9a-f]{32}(?:__[A-Z_]{2,5}__)?-[0-9]{6,10}"),
    ("AQE", r"AQE[A-Za-z0-9+/_-]{60,140}={0,2}-[A-Za-z0-9+/=_-]{12,24}"),
    ("HRKU-", r"HRKU-" + _UUID),
    ("access-", rf"access-(?:sandbox|development|production)-{_UUID}"),
    ("sdk-", r"sdk-" + _UUID),
    ("api-", r"api-" + _UUID),
    ("luma-", rf"luma-{_UUID}-[a-z0-9]{{36}}"),
    ("bce-v3/", r"bce-v3/ALTAK-[A-Za-z0-9]{21}/[0-9a-f]{40}"),
    ("SWMTKN-1-", r"SWMTKN-1-[a-z0-9]{50}-[a-z0-9]{25}"),
    ("WPL_AP1.", r"WPL_AP1\.[A-Za-z0-9]{16}\.[A-Za-z0-9+/]{6,8}={0,2}"),
    ("st.", r"st\.[0-9a-f]{8}(?:-[0-9a-f-]{27}|[0-9a-f]{16})\.[0-9a-f]{32,64}\.[0-9a-f]{32}"),
    ("xoxc-", r"xoxc-(?:[0-9]{10,14}-){3}[0-9a-f]{64}"),
    ("xoxe-1-", r"xoxe-1-[A-Za-z0-9]{140,150}"),
    ("ops_", r"ops_eyJ[A-Za-z0-9_-]{200,1200}={0,2}"),
    ("sk-lf-", r"sk-lf-" + _UUID),
    ("sgp_", r"sgp_[0-9a-f]{16}_[0-9a-f]{40}"),
    ("A3-", r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),
    ("FLWSECK", r"FLWSECK(?:_TEST)?-[0-9a-fA-F]{12,40}(?:-X)?"),
    ("pdl_", r"pdl_(?:live|sdbx)_apikey_[a-z0-9]{26}_[A-Za-z0-9]{22}_[A-Za-z0-9]{3}"),
    ("KEY0", r"KEY0[0-9A-F]{31}_[A-Za-z0-9]{22}"),
    ("syt_", r"syt_[A-Za-z0-9+/=-]{2,60}_[A-Za-z]{20}_[A-Za-z0-9]{6}"),
    ("akab-", r"akab-[a-z0-9]{16}-[a-z0-9]{16}"),
    ("hc", r"hc[abx]ik_[a-z0-9]{58}"),
    ("secret-live-", r"secret-live-[A-Za-z0-9_-]{36}={0,2}"),
    ("secret-test-", r"secret-test-[A-Za-z0-9_-]{36}={0,2}"),
    ("0.", rf"0\.{_UUID}\.[A-Za-z0-9]{{30}}:[A-Za-z0-9+/]{{22}}=="),
    ("amzn.mws.", r"amzn\.mws\." + _UUID),
)  # fmt: skip
_COMMON = (
    ("key", r"key[A-Za-z0-9]{14}"),
    ("live_", r"live_[A-Za-z0-9]{30}"),
    ("npg_", r"npg_[A-Za-z0-9]{12}"),
    ("re_", r"re_[A-Za-z0-9]{6,10}_[A-Za-z0-9]{20,26}"),
    ("sk_", r"sk_[0-9a-f]{48}"),
    ("sk-", r"sk-(?:[A-Za-z0-9]{48,64}|[0-9a-f]{32})"),
    ("fw_", r"fw_[A-Za-z0-9]{22,30}"),
    ("secret_", r"secret_[A-Za-z0-9]{43}"),
    ("cio", r"cio[A-Za-z0-9]{32}"),
    ("EAAA", r"EAAA[A-Za-z0-9_-]{60}"),
    ("SK", r"SK[0-9a-f]{32}"),
    ("tk-us-", r"tk-us-[A-Za-z0-9_-]{48}"),
    ("pk_", r"pk_(?:[0-9a-f]{34}|[0-9]{6,10}_[A-Z0-9]{32})"),
    ("o.", r"o\.[A-Za-z0-9]{32}"),
    ("tk_", r"tk_[a-z0-9]{29}"),
    ("as-", r"as-[A-Za-z0-9]{22}"),
    ("private_", r"private_[A-Za-z0-9+/]{27}="),
    ("sk_", r"sk_(?:prod|dev|stag|car)_[A-Za-z0-9]{24,64}"),
)
"""Prefixes that begin other names as well: a digit must follow."""

_LABEL = "service_token"
_DIGIT, _CASES = re.compile(r"[0-9]"), re.compile(r"[a-z].*[A-Z]|[A-Z].*[a-z]")
_HEX = re.compile(r"[0-9a-f-]+\Z")
_CLASSES = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")
_TENANT = "IiwidCI6I"
"""`","t":"` in base64: what pages of Power BI show to everybody begins as keys of Grafana do."""

_LONGEST_RUN = 2.6
"""Mean run of one class of characters at most: random ones have 1.6, names 4 and more."""


def _check(prefix: str, is_common: bool) -> Callable[[str], bool]:
    """A check that what follows a prefix is as chance makes it."""

    def check(token: str) -> bool:
        body = token[len(prefix) :]
        if _HEX.match(body):
            return is_random(body, 280) and _DIGIT.search(body) is not None
        if not _DIGIT.search(body) and (is_common or len(body) > 32 or not _CASES.search(body)):
            return False
        if _CASES.search(body) and len(body) > _LONGEST_RUN * len(_CLASSES.findall(body)):
            return False
        return is_random(body, 320) and _TENANT not in body

    return check


def _make(prefix: str, shape: str, is_common: bool = False) -> SecretKind:
    pattern = re.compile(f"{WORD_BEGIN}{shape}{WORD_END}")
    return SecretKind(_LABEL, prefix, pattern, _check(prefix, is_common))


def _make_of_parts(prefix: str, shape: str) -> SecretKind:
    """A form that no name has: the rest must only not be filler."""
    pattern = re.compile(f"{WORD_BEGIN}{shape}{WORD_END}")
    return SecretKind(_LABEL, prefix, pattern, lambda token: is_random(token[len(prefix) :], 250))


def _read_forms() -> list[SecretKind]:
    kinds = []
    for alphabet, forms in _FORMS.items():
        for form in forms.split():
            prefix, _, size = form.rpartition(":")
            least, _, most = size.partition("-")
            shape = f"{re.escape(prefix)}{_ALPHABETS[alphabet]}{{{least},{most or least}}}"
            kinds.append(_make(prefix, shape, len(prefix) < 4))
    return kinds


SERVICE_TOKENS: tuple[SecretKind, ...] = (
    *_read_forms(),
    *(_make_of_parts(prefix, shape) for prefix, shape in _TWO_PARTS),
    *(_make(prefix, shape, True) for prefix, shape in _COMMON),
    SecretKind(
        _LABEL,
        "discord",
        re.compile(r"(?:https?://(?:(?:canary|ptb)\.)?)?discord(?:app)?\.com/api/(?:v[0-9]{1,2}/)?webhooks/[0-9]{17,20}/[A-Za-z0-9_-]{60,72}"),
        lambda token: _check("", True)(token.partition("webhooks/")[2]),
        lead=re.compile(r"(?:https?://(?:(?:canary|ptb)\.)?)?\Z"),
    ),
    SecretKind(
        _LABEL,
        "hooks.zapier",
        re.compile(r"(?:https?://)?hooks\.zapier\.com/hooks/catch/[0-9]{4,12}/[A-Za-z0-9]{6,12}"),
        lead=re.compile(r"(?:https?://)?\Z"),
    ),
)  # fmt: skip
"""In the order of the search."""

"""What may be a secret: by the name of a variable, an option or a file, by its value, by its place in an address.

The one place for these rules. A name counts by what it names, which its last word says: ``KEY_LENGTH`` is a length.
Forms of tokens are those that their makers document, the kinds of rules those of gitleaks
(https://github.com/gitleaks/gitleaks). No rule can see that ``X=hunter2`` is a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

TOKEN, PASSWORD, PRIVATE_KEY, USER = "a token", "a password", "a private key", "a user's name"
MASK = "…"
"""What stands in a text in place of a secret."""
LEAVE_OUT = "leave it out, and let the program read it from the job's environment or from a file of the user's"
"""What to do about one that would be written down."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Names.

_ALWAYS = _names(
    "password passwords passwd passphrase passcode pwd secret secrets credential credentials creds userpwd apikey "
    "apitoken webhook webhooks auth"
)
_BY_OWNER = _names("key token pass pat cookie hook")
"""A secret where the word before says whose it is: ``API_KEY``, but not ``SORT_KEY``."""
_OWNERS = _names(
    "access account admin anthropic api app auth aws azure bearer bot ci claude clearml client cloud cohere comet "
    "conda dagshub dashscope databricks db database deepseek deploy discord docker dockerhub dvc earthdata email "
    "encryption ftp gcp gemini gh git github gitlab globus google grafana groq hf hub huggingface huggingfacehub "
    "imap jenkins jupyter jwt kaggle langchain langsmith ldap licence license login mail mapbox mistral mlflow mongo "
    "mongodb mysql neptune netrc ngc npm nvidia oauth openai openrouter osf perplexity personal pg planet postgres "
    "private proxy pypi redis refresh registry replicate roboflow root rsa s3 secret security sentry service session "
    "shared signing slack smtp snowflake sql ssh storage sudo telegram twilio user vault vpn wandb web webdav xai "
    "zenodo"
)
_FIELDS = _names("app client db database session shared sql storage user web")
"""Owners of which a key is as often the name of a field."""
_NOT = _names("no not use has need without skip public")
"""First words by which a name says whether there is one."""
_KEEPS = _names("value string str base64 b64 id prod dev personal")
"""Last words that leave a name what it is without them."""
_JOINED = r"([a-z0-9]*?)(password|passwd|passphrase|secret|credentials?|apikey|token|pass|pwd|key|auth)"
_WORD = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+"

# Values.

_NO_SECRET = _names(
    "true false yes no on off none null nil auto default empty dummy placeholder disabled enabled never always prompt "
    "ask stdin env basic token plain bearer digest negotiate kerberos oauth oauth2 ldap munge public required"
)
_NUMBER = r"[-+]?\d{1,6}(\.\d{1,8})?(e[-+]?\d{1,3}|[kKmMgG])?"
_VERSION = r"\d{1,4}(\.\d{1,4}){2,}(=\w+)?"
_STANDS_FOR = (
    r"\$\w+|\$\{\w+\}|\$\([^()]*\)|\$\{\{[^{}]*\}\}|`[^`]*`|<[^<>]*>|\[[^\[\]]*\]|\{\{?[^{}:]*\}\}?|%\w+%?|@\w+@"
)
_ENDING = "txt|json|ya?ml|toml|ini|cfg|conf|env|py|sh|key|pem|crt|csv|pkl|pt|h5|npz?"
_PATH = rf"(~|\.{{1,2}}|\$\{{?\w+\}}?)?/[\w.+@%:,=$-]{{0,30}}(/[\w.+@%:,=$-]*)*|[\w./+$-]*\.({_ENDING})"
_LOWER, _UPPER, _EITHER = r"[A-Z]?[a-z]*\d{0,4}", r"[A-Z]*\d{0,4}", r"([A-Z]?[a-z]+|[A-Z]*)\d{0,4}"
_PLAIN = rf"{_LOWER}([-/: ]{_LOWER})*|{_UPPER}([-/: ]{_UPPER})*|{_EITHER}([_./ ]{_EITHER})*"
_VARIABLES = r"\\?\$(\w+|\{\w+\}|\$|\(.*\))|`[^`]*`"
_MIXED = r"(?=\S*[A-Za-z])(?=\S*\d)[^\s/]{12,}"


def secret_name(name: str, value: str | None = None, doubtful: bool = True) -> bool:
    """Whether a variable, an option or a key of this name holds a secret.

    ``value``: what it is set to; None where that is not known. Numbers, paths, variables and words such as ``true`` are
    no secrets, whatever they are called. ``doubtful``: also where the name may mean something else, as ``KEY`` does,
    and the value is no plain word.
    """
    sure = _sureness(name)
    if value is None or not sure:
        return sure >= 2
    value = value.strip().rstrip(",;)").strip("'\"")
    if _harmless(value, also_numbers=sure < 3):
        return False
    if sure == 1:
        plain = "*" in value or re.fullmatch(_PLAIN, re.sub(_VARIABLES, "", value)) is not None
        return doubtful and len(value) >= 4 and not plain
    return sure > 1 or (doubtful and re.fullmatch(_MIXED, value) is not None)


def _harmless(value: str, also_numbers: bool) -> bool:
    if (
        value.lower() in _NO_SECRET
        or not value.strip(f"*.xX{MASK}")
        or value.startswith(("$(", "\\$(", "`", "{{", "<"))
    ):
        return True
    if re.fullmatch(_NUMBER, value):
        return also_numbers or len(value) == 1
    known = re.fullmatch(r"[\W_]*", re.sub(_VARIABLES, "", value)) if "$" in value or "`" in value else None
    return bool(
        known or re.fullmatch(_VERSION, value) or re.fullmatch(_STANDS_FOR, value) or re.fullmatch(_PATH, value)
    )


@lru_cache(4096)
def _sureness(name: str) -> float:
    """How sure it is that the name is a secret's.

    3: it is. 2: it is a token's, but for numbers, as a token may be a piece of text too. 1: it is, unless its value is
    plain. ½: it is, if its value looks random. 0: it is none's.
    """
    if name.lower() in ("pwd", "oldpwd"):
        return 1
    *_, last = name.split(".")
    if last != name and (sure := _sureness(last)) >= 2:
        return sure
    words = _words(name)
    while len(words) > 1 and (words[-1] in _KEEPS or words[-1].isdigit()):
        words.pop()
    doubtful = name[-2:].lower() == "id"
    if words[-2:] in (["webhook", "url"], ["hook", "url"]):
        words.pop()
    if not words or words[0] in _NOT:
        return 0
    sure = _sureness_of(words)
    inside = not sure and any(
        _sureness_of(words[:end]) >= 2 and words[end - 1] != "auth" for end in range(1, len(words))
    )
    return 0.5 if inside else min(sure, 1) if doubtful else sure


def _sureness_of(words: Sequence[str]) -> int:
    noun, owner = words[-1], words[-2] if len(words) > 1 else ""
    if noun in _ALWAYS:
        return 3
    if noun not in _BY_OWNER:
        return 0
    if noun == "token" and (not owner or owner in _OWNERS):
        return 2
    return 3 if owner in _OWNERS and not (noun == "key" and owner in _FIELDS) else 1


def _words(name: str) -> list[str]:
    """``WANDB_API_KEY``, ``wandbApiKey`` and ``wandb.apikey``: wandb, api, key."""
    found: list[str] = []
    for word in map(str.lower, re.findall(_WORD, name[-200:])):
        match = re.fullmatch(_JOINED, word)
        sure = match is not None and (match[2] not in _BY_OWNER or match[1] in _OWNERS)
        found += [each for each in match.groups() if each] if match is not None and sure else [word]
    return found


# Texts. Each pattern has the secret as its group ``secret``; what stands around it stays.

_SIGN = r"[^\s'\"<>|]"
_KNOWN = (
    r"gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{22,}|gl(?:pat|dt|rt|ptt|cbt|ft|imt|agent|soat|ffct)-[\w-]{18,}|hf_[A-Za-z0-9]{20,}|(?:AKIA|ASIA)[A-Z0-9]{16}|"
    r"xox[a-z]-[\w-]{10,}|xapp-[\w-]{10,}|sk-(?=[A-Za-z-]*\d)[\w-]{20,}|[sr]k_(?:live|test)_\w{10,}|AIza[\w-]{30,}|ya29\.[\w-]{20,}|"
    r"GOCSPX-[\w-]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{30,}|SG\.[\w-]{16,}\.[\w-]{16,}|dckr_[a-z]{3}_[\w-]{20,}|"
    r"dapi[0-9a-f]{32}|do[opr]_v1_[0-9a-f]{32,}|hvs\.[\w-]{20,}|nvapi-[\w-]{20,}|r8_[A-Za-z0-9]{30,}|gsk_\w{30,}|"
    r"lsv2_[a-z]{2}_\w{20,}|glsa_\w{20,}|tskey-[\w-]{16,}|AGE-SECRET-KEY-1[A-Z0-9]{20,}|KGAT_\w{20,}|"
    r"wandb_v1_\w{20,}|\d{8,10}:AA[\w-]{30,}|eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"
)
"""Tokens that show by their form whose they are: GitHub's, GitLab's, Hugging Face's, AWS', Slack's, JWTs and others."""
_BEGINNINGS = (
    *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "hf_", "AKIA", "ASIA", "xox", "xapp-", "sk-", "k_live_"),
    *("k_test_", "AIza", "ya29.", "GOCSPX-", "npm_", "pypi-", "SG.", "dckr_", "dapi", "_v1_", "hvs.", "nvapi-", "r8_"),
    *("gsk_", "lsv2_", "glsa_", "tskey-", "AGE-SECRET-KEY-1", "KGAT_", ":AA", "eyJ", "glpat-", "gldt-", "glrt-"),
    *("glptt-", "glcbt-", "glft-", "glimt-", "glagent-", "glsoat-", "glffct-"),
)
"""One of these stands in each of them, so that most texts need no expression."""
_SHORTEST = 15
"""Characters of what has no colon and may have a secret."""
_TEXTS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        PRIVATE_KEY,
        ("PRIVATE KEY",),
        r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?P<secret>[\s\S]*?)(?=-----END|\Z)",
    ),
    (TOKEN, ("earer",), r"(?i:\bbearer)\s+(?=\S*\d)(?P<secret>[\w+/=.~-]{8,})"),
    (TOKEN, ("uthoriz",), r"(?i:authorization)['\"]?\s*[:=]\s*['\"]?\w+\s+(?P<secret>[\w+/=.~-]{8,})"),
    (
        TOKEN,
        ("://",),
        r"(?:hooks\.slack\.com/\w+/|discord(?:app)?\.com/api/webhooks/|\.webhook\.office\.com/|api\.telegram\.org/bot|"
        rf"packagecloud\.io/priv/|dl\.cloudsmith\.io/(?!public/|basic/))(?!\$)(?P<secret>{_SIGN}+)",
    ),
    (TOKEN, ("://", "?"), r"[?&](?i:sig|signature|x-\w{2,5}-signature)=(?P<secret>[^\s&'\"#]{8,})"),
    # conda's. https://discuss.example.org/t/TOPIC/NUMBER is a forum's, .../pool/main/t/tar a list by first letters.
    (
        TOKEN,
        ("://", "/t/"),
        rf"://[^\s/'\"]+(?:/t/(?!{MASK})|/{_SIGN}{{0,300}}?/t/(?![tT{MASK}]))(?P<secret>[^\s/'\"?#]{{3,}})(?=[\s/'\"?#]|\Z)"
        r"(?!/\d+(?:[/?#\s'\",.;)]|\Z))",
    ),
    (PASSWORD, ("://", ":", "@"), r"://(?P<secret>[^\s/'\"?#@:\[]*:[^\s/'\"?#]+)@(?!sha\d)"),
    (USER, ("://", "@"), r"://(?!\[|(?:git|hg)@)(?P<secret>[^\s/'\"?#]+)@(?!sha\d)"),
    # One with / in its password, which should have been %2F.
    (PASSWORD, ("://", "@"), rf"://(?P<secret>[^\s/'\"@:\[]*:(?!\d{{1,5}}(?:[/?#]|\Z)){_SIGN}{{1,400}})@(?!sha\d)"),
    # An address that was cut before its @.
    (PASSWORD, ("tp", "://"), r"tps?://[^\s/'\"@:<>\[\]]+:(?!\d|PORT)(?P<secret>[\w%.~!*+-]{3,})(?=['\"\s]|\Z)"),
    (
        PASSWORD,
        (":", "@"),
        r"(?<![\w@./:+-])(?!mailto:)(?P<secret>[\w.+-]+:(?!\d{1,5}@|-)[^\s/'\"@:]+)@"
        r"(?!sha\d)[A-Za-z0-9][\w-]*(?:\.\w|:\d|/\w)",
    ),
    (
        PASSWORD,
        ("-", ":", " "),
        r"(?<!\S)(?:-u|--user|--login|--credentials)[ =]['\"]?[^\s:'\"$+%]+:"
        r"(?!//|\d+(?:\s|\Z)|GID)(?P<secret>[^\s'\"]+)",
    ),
)
"""What it is, pieces of text without which it is not there, and its form: most texts need no expression."""
_ASSIGNED = r"(?<![\w.-])-{0,2}(?P<name>[A-Za-z_][\w.-]{0,120})(?:\\?['\"]?\s?=(?!=)\s?|\\?['\"]\s?:\s?)"
_GIVEN = (
    r"(?<![^\s'\"(])-{1,2}(?P<name>[A-Za-z][\w.-]{0,120})\s+"
    # What follows an option in a sentence.
    r"(?!-|(?:a|an|and|are|as|by|for|if|in|is|must|of|or|that|the|to|was|when|where|which|with)\s)"
)
_VALUE = r"\\?\"(?P<double>[^\"\\]*)|'(?P<single>[^']*)|(?P<bare>(?:[^\s,;&'\"]|,(?!\w+=))+)"


def _found(text: str) -> Iterator[tuple[str, str]]:
    """The patterns that may fit, with what they find."""
    if len(text) >= _SHORTEST:
        if any(each in text for each in _BEGINNINGS):
            yield TOKEN, rf"(?<![\w-])(?P<secret>{_KNOWN})"
    elif ":" not in text:
        return
    for kind, (first, *more), pattern in _TEXTS:
        if first in text and all(piece in text for piece in more):
            yield kind, pattern


def without_secrets(text: str, mask: str = MASK, doubtful: bool = True) -> str:
    """A text that anybody may read: ``mask`` stands for each secret, such as what is before the host of an address.

    ``doubtful``: as of :func:`secret_name`.
    """
    for _, pattern in _found(text):
        text = re.sub(pattern, partial(_masked, mask=mask), text)
    if "=" in text or (":" in text and ('"' in text or "'" in text)):
        text = _without_named(text, _ASSIGNED, mask, doubtful)
    return _without_named(text, _GIVEN, mask, doubtful) if "-" in text and re.search(r"\s", text) else text


def _masked(match: re.Match[str], mask: str) -> str:
    start, end = (place - match.start() for place in match.span("secret"))
    return match[0][:start] + mask + match[0][end:]


def _without_named(text: str, pattern: str, mask: str, doubtful: bool) -> str:
    """A text without values of secret names; of ``--export=ALL,TOKEN=…`` each name counts."""
    kept: list[str] = []
    end = 0
    for match in re.finditer(pattern, text):
        if match.start() < end or not _sureness(match["name"]):
            continue
        value = re.compile(_VALUE).match(text, match.end())
        if value is not None and secret_name(match["name"], value[str(value.lastgroup)], doubtful):
            start, after = value.span(str(value.lastgroup))
            kept.append(text[end:start] + mask)
            end = after
    return "".join([*kept, text[end:]])


def _secrets(pattern: str, text: str) -> list[str]:
    return [match["secret"] for match in re.finditer(pattern, text)]


def public(text: str, most: int) -> str:
    """The beginning of a text without its secrets, which a cut could keep from being seen as such."""
    return without_secrets(text)[:most]


def secret_in(text: str) -> str:
    """What a text has in it that shows by its form, such as ``a password`` or ``a token``; empty where nothing does.

    ``USER`` is what may be a token: the name that stands before the host of an address.
    """
    kinds = [kind for kind, pattern in _found(text) if any(each != MASK for each in _secrets(pattern, text))]
    if kinds:
        return min(kinds, key=lambda kind: kind == USER)
    asked = text.partition("://")[2].partition("?")[2] if "://" in text else ""
    return TOKEN if asked and _without_named(asked, _ASSIGNED, MASK, doubtful=False) != asked else ""


class PublicWords(NamedTuple):
    """Words of a command without those that are secret, and the names of what was left out."""

    words: list[str]
    left: list[str]


def without_secret_words(words: Sequence[str], doubtful: bool = True) -> PublicWords:
    """A command's words: options and variables with a secret are left out, others have it masked.

    ``doubtful``: as of :func:`secret_name`.
    """
    kept: list[str] = []
    left: list[str] = []
    number = 0
    while number < len(words):
        word, after = words[number], words[number + 1] if number + 1 < len(words) else ""
        name, equals, value = word.partition("=")
        option = re.fullmatch(r"-{1,2}[A-Za-z][\w.-]*", word) is not None and number > 0
        number += 1
        if (
            equals
            and value[:1] != "="
            and re.fullmatch(r"[-+]*[A-Za-z_][\w.-]*", name)
            and secret_name(name, re.split(r",(?=\w+=)", value)[0], doubtful)
        ):
            left.append(name)
        elif option and _given(word, after, doubtful):
            left.append(word)
            number += 1
        elif (masked := _public_word(word, doubtful)) != word:
            left.append(f"{secret_in(word) or 'a secret'} in {masked[:60]}")
            kept.append(masked)
        else:
            kept.append(word)
    return PublicWords(kept, left)


def _given(option: str, value: str, doubtful: bool) -> bool:
    login = partial(re.fullmatch, _TEXTS[-1][2])
    return value[:1] != "-" and bool(secret_name(option, value, doubtful) or login(f"{option} {value}"))


def _public_word(word: str, doubtful: bool) -> str:
    # A user's name alone is no secret for sure.
    return word if not doubtful and secret_in(word) == USER else without_secrets(word, doubtful=doubtful)


def secrets_of(environment: Mapping[str, str]) -> list[str]:
    """Values of variables that may be secret, and what is before the hosts of proxies, the longest first."""
    found = {value for name, value in environment.items() if len(value) >= 6 and secret_name(name, value)}
    for value in environment.values():
        if "://" in value:
            found |= {each for kind, pattern in _found(value) if kind != USER for each in _secrets(pattern, value)}
    return sorted(found, key=lambda each: (-len(each), each))


# Files, by their names alone.

_FILES = (
    r"\.env(\..*)?|.*\.env|[._]netrc|\.pgpass|\.my\.cnf|\.pypirc|\.?pip\.(conf|ini)|\.npmrc|\.git-credentials|\.?condarc|"
    r"\.?dockercfg|\.?dockerconfig(json|\.json)|\.?htpasswd|.*kubeconfig.*|kube\.config|id_(rsa|dsa|ecdsa|ed25519)(_sk)?([._-].*)?|"
    r".*\.(p12|pfx|pkcs12|jks|keystore|kdbx?|ppk|ovpn|keytab|agekey|p8|tfstate(\.backup)?)|krb5cc_.*|\.vault-token|"
    r"(.*[._-])?tfvars|terraform\.tfvars(\.json)?|\.s3cfg|\.boto|rclone\.conf|\.databrickscfg|\.erlang\.cookie|"
    r"\.renviron|\..*_history|\.snowsql|gurobi\.lic|kaggle\.json|application_default_credentials\.json|"
    r".*service[-_]?account.*\.json|client[-_]secret.*\.json|.*[-_]adminsdk[-_].*\.json|pearson\.key|.*\.asc\.key"
)
_FOLDERS = _names(".ssh .aws .gnupg .kube .azure .gcloud .secrets secrets private_keys")
_KEY_FILE = r"(.*)\.(pem|key|der)"
_CERTIFICATE = _names("public pub cert certs certificate certificates crt ca cacert cacerts chain fullchain bundle csr")
_PUBLIC = _names("example examples sample template tmpl dist dummy public pub enc encrypted")
_DATA = r"(.+?)(\.(txt|json|ya?ml|toml|ini|cfg|conf|env|properties|xml|secret|token|password|dat))*"
_PROGRAM = (
    r".*\.(pyi?|ipynb|c|cc|cpp|cu|cxx|h|hh|hpp|f|f90|for|rs|go|java|jl|r|R|m|js|ts|md|rst|html|css|tex|pdf|svg|png)"
)


def secret_file(path: str) -> bool:
    """Whether a file of this name, or in folders of these names, may hold keys, passwords or tokens."""
    *folders, name = path.split("/")
    words = _words(name)
    if re.fullmatch(_PROGRAM, name) or name.endswith(".pub"):
        return False
    if any(folder in _FOLDERS for folder in folders) or path.endswith(".docker/config.json"):
        return True
    if _PUBLIC & {*words}:
        return False
    if re.fullmatch(_FILES, name.lower()):
        return True
    if re.fullmatch(_KEY_FILE, name):
        return not _CERTIFICATE & {*words}
    stem = re.fullmatch(_DATA, name)
    return stem is not None and (_sureness(stem[1]) >= 2 or name.lower().startswith("key."))

"""What is a secret and what is not: names with values, options, files, addresses; both kinds of mistakes count.

The names are those of real job scripts, services and programs; all values are made up.
"""

from __future__ import annotations

import shlex

import pytest

from hpcgen.core import secret_rules
from hpcgen.core.errors import Problem
from hpcgen.core.secret_rules import MASK, secret_file, secret_in, secret_name, without_secret_words, without_secrets

SECRET_EXPORTS = r"""
MYSQL_PWD=hunter2
GITHUB_PAT=ghp_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
SLACK_WEBHOOK=https://hooks.slack.com/services/T0/B0/abcdef
COMET_KEY=k3yk3yk3y
AUTH=s3cr3tValue
WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567
HF_TOKEN=hf_abcdefghijklmnopqrstuv
HUGGING_FACE_HUB_TOKEN=hunter2x
HUGGINGFACE_TOKEN=abcd
OPENAI_API_KEY=sk-abc
OPENAI_KEY=sk-abc
ANTHROPIC_API_KEY=xyz
AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE
AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY
AWS_SESSION_TOKEN=FwoGZXIvYXdzE
AZURE_STORAGE_KEY=abcde==
AZURE_STORAGE_CONNECTION_STRING=DefaultEndpointsProtocol=https;AccountName=x;AccountKey=abcdEFGH1234==;EndpointSuffix=core.windows.net
GITHUB_TOKEN=abc
GH_TOKEN=abc
GITLAB_TOKEN=glpat-abc
DB_PASS=hunter
DB_PASSWORD=hunter
PGPASSWORD=hunter
POSTGRES_PASSWORD=123456
REDIS_PASSWORD=x1
MONGO_URI=mongodb://jane:secret@db.example.org/x
DATABASE_URL=postgres://jane:secret@db/x
SENTRY_DSN=https://abcdef0123@o1.ingest.sentry.io/1
NEPTUNE_API_TOKEN=eyJhcGlf
KAGGLE_KEY=0123456789abcdef
NGC_API_KEY=nvapi-xx
WLSSECRET=0000-1111
GRB_WLSSECRET=0000-1111
SMTP_PASSWORD=x9
MAIL_PASS=hunter
SSHPASS=hunter
SECRET_KEY=abc
DJANGO_SECRET_KEY=abc
JWT_SECRET=abc
PRIVATE_KEY=abc
SSH_PRIVATE_KEY=abc
ENCRYPTION_KEY=abc
API_KEY=abc
APIKEY=abc
TOKEN=abc
PASSWORD=abc
PASSWD=abc
SECRET=abc
CREDENTIALS=jane:hunter
BEARER_TOKEN=abc
CLEARML_API_SECRET_KEY=abc
MLFLOW_TRACKING_PASSWORD=abc
SLACK_BOT_TOKEN=xoxb-1234567890-abcdef
TELEGRAM_BOT_TOKEN=123456789:AAabcdefghijklmnopqrstuvwxyz0123456
DISCORD_WEBHOOK_URL=https://discord.com/api/webhooks/123/abc
http_proxy=http://jane:secret@proxy.example.org:3128
PIP_INDEX_URL=https://jane:secret@pypi.example.org/simple
CONDA_TOKEN=tk-123
NETRC_PASS=hunter9
VAULT_TOKEN=hvs.abc
LANGCHAIN_API_KEY=ls__abc
HFTOKEN=abc
githubToken=abc
dbPassword=abc
MY_KEY=aB3xk9Qz
WANDB_API_KEY_PERSONAL=0123456789abcdef0123456789abcdef
MY_SETTING=github_pat_11ABCDEFG0123456789abcdef
CALLBACK=https://hooks.slack.com/services/T0/B0/xyz
X=eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJSMeKKF2QT4
JUPYTER_TOKEN=abc
HEADER="Authorization: Bearer abcdefghijklmnop"
ZENODO_ACCESS_TOKEN=abc
DOCKER_AUTH=amFuZTpodW50ZXI=
SINGULARITY_DOCKER_PASSWORD=abc
APPTAINER_DOCKER_PASSWORD=abc
GIT_TOKEN=abc
ROOT_PASS=abc
"""

PLAIN_EXPORTS = r"""
TOKENIZERS_PARALLELISM=false
KEY_LENGTH=256
OMP_NUM_THREADS=4
PASSES=3
KEYS=a,b
MAX_TOKENS=100
MAX_TOKEN=4096
PAD_TOKEN=<pad>
EOS_TOKEN=</s>
MASK_TOKEN=[MASK]
NUM_PASS=2
PASS=1
BYPASS=1
COMPASS=north
MONKEY=7
SORT_KEY=name
PRIMARY_KEY=id
PUBLIC_KEY=ssh
CACHE_KEY=v1
KEYBOARD=us
AUTHOR=Jane
AUTHORS=Jane,Joe
SECRETARY=Jane
TOKENIZER=bert-base-uncased
TOKEN_LIMIT=5
TOKENS_PER_SAMPLE=512
TOKENIZER_PATH=/data/tok
PASSWORD_FILE=/home/me/pw
CREDENTIALS_FILE=/home/me/c.json
GOOGLE_APPLICATION_CREDENTIALS=/home/me/key.json
WANDB_MODE=offline
WANDB_PROJECT=x
HF_HOME=/scratch/hf
HF_DATASETS_OFFLINE=1
PWD=/home/x
OLDPWD=/home
WORKDIR=$PWD
PATTERN=*.txt
FILE_PAT=*.txt
PATIENCE=5
SIGMA=0.1
SIGNATURE_VERSION=v4
HOOK=none
AUTH_METHOD=basic
AUTH=none
USE_AUTH=true
HOTKEY=1
LM_LICENSE_FILE=27000@lic.example.org
MLM_LICENSE_FILE=27000@a.example.org:27001@b.example.org
COOKIE=chocolate
GIT_SSH_COMMAND=ssh -i /x/id
SSH_KEY_PATH=/home/me/.ssh/id
KMP_AFFINITY=granularity=fine,compact,1,0
NCCL_SOCKET_IFNAME=ib0
IMAGE_KEY=image_0
LABEL_KEY=label
API_URL=https://api.example.org/v1
MIRROR=https://mirror.example.org/debian/pool/main/t/tar
FORUM=https://discuss.example.org/t/how-to-run/1234
COMMIT=0123456789abcdef0123456789abcdef01234567
MAIL=jane@example.org
IMAGE=docker://debian:bookworm@sha256:aaaa
REPO=ssh://git@example.org/x.git
REPO2=git@github.com:org/x.git
N_KEYS=16
PARTITION_KEY=day
ACCESS=read
SECRETS_DIR=/x
TOKEN=false
"""

SECRET_OPTIONS = r"""
--api-key X1
--api-key=X1
--password=X1
--password X1
--passwd hunter
--token hunter
--auth-token hunter
--hf_token hunter
--hf-token=hunter
--wandb_api_key abc
--wandb-key abc
--wandb_key=abc
--openai_key abc
--secret abc
--client-secret abc
--access-key AKIA
--secret-key abc
--aws_secret_access_key abc
--db-pass hunter
--db_password hunter
-password hunter
--apikey abc
--webhook https://x.example.org/h
--slack-webhook-url https://x.example.org/h
--user jane:hunter
-u jane:hunter
wandb.api_key=abc
+logger.api_key=abc
logger.token=abc
--set auth.password=abc
--env HF_TOKEN=abc
-e TOKEN=abc
--header 'Authorization: Bearer abcdefghijklmnop'
--index-url https://jane:pw@example.org/simple
--db postgres://jane:pw@db/x
--github-pat abc
--private-key abcd
--jupyter-token=abc
--credentials jane:pw
--neptune_api_token eyJx
--config '{\"api_key\": \"abc\"}'
--config '{"api_key": "abc"}'
"""

PLAIN_OPTIONS = r"""
--max-tokens 100
--max_tokens=100
--tokenizer bert
--tokenizer-path /x/tokenizer.json
--tokens-per-sample 512
--key loss
--sort-key name
--image_key image
--label-key label_0
--pad_token <pad>
--eos-token </s>
--mask_token [MASK]
--pad_token_id 0
--placeholder_token <cat-toy>
--initializer_token toy
--use_auth_token True
--passes 3
--pass 2
--n-pass 4
--pattern *.txt
--pat 5
--patience 10
--auth basic
--auth-method none
--author Jane
--key-length 256
--keys a b
--monkey 1
--token-file /x/token
--password-file /x/pw
--api-key EMPTY
--api-key $OPENAI_API_KEY
--api_key ${KEY}
--token <YOUR_TOKEN>
--hook none
--user 1000:1000
--checkpoint s3://bucket/key
--metric_key eval_bleu
--num_tokens 1e6
--special_tokens a
--token_dropout 0.1
--secret_dim 4
--keypoints 17
--secret-id munge_key_a
--extpass echo
--date-format +%H:%M
-u +%H:%M:%S
--key_frame 5
--public-key abc
--signature fft
--seed 1
google-auth==2.23.4
google-auth=2.23.4=py310h_0
"""

SECRET_FILES = r"""
api_key.txt
kubeconfig
service-account.json
my.pfx
.env
.env.production
prod.env
.netrc
_netrc
.pgpass
.pypirc
pip.conf
.npmrc
.git-credentials
.condarc
.dockercfg
.docker/config.json
.htpasswd
id_rsa
id_ed25519
id_ecdsa
deploy.pem
server.key
private_key.pem
client.p12
store.jks
release.keystore
passwords.kdbx
putty.ppk
office.ovpn
host.keytab
terraform.tfstate
terraform.tfvars
.vault-token
credentials
credentials.json
credentials.yaml
secrets.yaml
secrets.toml
secrets/db.yaml
.ssh/config
.aws/credentials
.kube/config
token.txt
hf_token.txt
hf_token
wandb_key.txt
openai_api_key
apikey.json
password.txt
passwords.txt
passwd
client_secret_123.json
gcp-service-account-key.json
kaggle.json
rclone.conf
.s3cfg
gurobi.lic
access_token.json
github-token
AuthKey_ABC.p8
firebase-adminsdk-x.json
my-secret.txt
munge.key
.bash_history
id_rsa.bak
"""

PLAIN_FILES = r"""
tokenizer.json
tokenizer_config.json
special_tokens_map.json
added_tokens.json
tokens.txt
monkey.py
public_key.pem
ca-bundle.pem
cert.pem
fullchain.pem
cacert.pem
id_rsa.pub
keys.py
key.py
keyboard.json
secrets.py
credentials.py
password_strength.py
token.py
tokenize.cpp
token_counts.csv
keypoints.json
person_keypoints_val2017.json
answer_key.json
sort_key.txt
environment.yml
environment.yaml
requirements.txt
config.json
config.yaml
settings.toml
.env.example
.env.sample
secrets.example.yaml
credentials.template.json
README.md
passes.txt
compass.dat
in.lj
water.pdb
model.safetensors
vocab.txt
merges.txt
Dockerfile
train.slurm
authors.txt
AUTHORS
auth.py
hooks.py
pre-commit-hook
signature.json
cookie.txt
author.json
environment
envs/a.yaml
key_length.txt
monkey.key.md
data/keys.txt
KEYS
pip_requirements.txt
kube.yaml
service.json
docs/secrets.md
public.pem
server.crt
secrets.enc.yaml
"""

SECRET_ADDRESSES = r"""
https://jane:secret@example.org/x
https://token123@example.org/x
https://oauth2:glpat-x@gitlab.example.org/a.git
https://x-access-token:ghs_x@github.com/a/b
https://conda.example.org/t/tk-SECRET-123/chan
https://conda.anaconda.org/t/xx-aaaa-bbbb/chan/linux-64/a-1.conda
http://jane:p@ss@proxy.example.org:3128
http://jane:pa/ss@proxy.example.org:3128
postgres://jane:pw@db/x
mongodb+srv://jane:pw@db.example.org/x
redis://:pw@redis:6379/0
git+https://jane:pw@example.org/a.git@v1#egg=a
docker://jane:pw@registry.example.org/debian:12
jane:pw@registry.example.org/debian:12
https://example.org/a?token=abcdef
https://example.org/a?access_token=abcdef&x=1
https://example.org/a?api_key=abcdef
https://bucket.example.org/a?X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F2&X-Amz-Signature=0a1b2c3d4e5f60718293
https://gitlab.example.org/api/v4/x?private_token=abcdef
https://hooks.slack.com/services/T0/B0/abc
https://blob.example.org/a?sv=2020&sig=abcdefgh%2Fx
https://discord.com/api/webhooks/1/abc
https://packagecloud.io/priv/abcdef/ubuntu
https://dl.cloudsmith.io/abcdef/org/repo
https://api.telegram.org/bot12345:abc/send
ftp://jane:pw@ftp.example.org/x
"""

PLAIN_ADDRESSES = r"""
https://example.org/x
https://example.org:8443/x
http://proxy.example.org:3128
https://discuss.example.org/t/how-to/1234
https://discuss.example.org/t/how-to/1234/5
https://example.org/t
https://example.org/tt/abc/x
https://example.org/a?page=2&key=name
https://example.org/a?tokens=5
ssh://git@example.org/a.git
git@example.org:org/a.git
git+ssh://git@example.org/a.git
docker://debian:bookworm
docker://debian:12@sha256:aaaabbbb
registry.example.org/debian:12@sha256:aaaa
https://example.org/@scope/pkg@1.2
https://example.org/a/-/b@1.0
27000@lic.example.org
1711@a.example.org:1712@b.example.org
jane@example.org
mailto:jane@example.org
https://HOST:PORT/PATH
oras://registry.example.org/a:tag
file:///home/me/x@y
s3://bucket/key/x
tcp://10.0.0.1:29500
https://dl.cloudsmith.io/public/org/repo
openmpi@4.1.6%gcc@12.3
mpich@3.0:%gcc@4.8
https://mirror.example.org/debian/pool/main/t/tar/tar_1.deb
https://mirror.example.org/packages/source/t/tensorflow/x.whl
https://files.example.org/packages/ab/cd/0123456789abcdef0123456789abcdef0123456789abcdef0123456789ab/x.whl
"""


def lines(text: str) -> list[str]:
    return text.strip().splitlines()


@pytest.mark.parametrize(("text", "secret"), [(SECRET_EXPORTS, True), (PLAIN_EXPORTS, False)])
def test_exports(text: str, secret: bool) -> None:
    pairs = [line.split("=", 1) for line in lines(text)]
    assert [f"{n}={v}" for n, v in pairs if (secret_name(n, v) or without_secrets(v) != v) != secret] == []


@pytest.mark.parametrize(("text", "secret"), [(SECRET_OPTIONS, True), (PLAIN_OPTIONS, False)])
def test_options(text: str, secret: bool) -> None:
    wrong = []
    for line in lines(text):
        words = ["program", "--first", "1", *shlex.split(line)]
        found = without_secret_words(words)
        if bool(found.left) != secret or (not secret and found.words != words):
            wrong.append(line)
    assert wrong == []


@pytest.mark.parametrize(("text", "secret"), [(SECRET_FILES, True), (PLAIN_FILES, False)])
def test_files(text: str, secret: bool) -> None:
    assert [name for name in lines(text) if secret_file(name) != secret] == []


@pytest.mark.parametrize(("text", "secret"), [(SECRET_ADDRESSES, True), (PLAIN_ADDRESSES, False)])
def test_addresses(text: str, secret: bool) -> None:
    assert [each for each in lines(text) if bool(secret_in(each)) != secret] == []
    assert [each for each in lines(text) if (MASK in without_secrets(f"it is {each!r} there")) != secret] == []


# Made up, one of each form; in two parts, so that nothing takes this file for one that has a secret.
TOKENS = """
ghp_ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1
gho_ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1
ghu_ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1
ghs_ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1
ghr_ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1
github_pat_ 11aaaaaaaaaaaaaaaaaaaaaaaa
glpat- aaaaaaaaaaaaaaaaaa1
gldt- aaaaaaaaaaaaaaaaaa1
glrt- aaaaaaaaaaaaaaaaaa1
glptt- aaaaaaaaaaaaaaaaaa1
glcbt- aaaaaaaaaaaaaaaaaa1
glft- aaaaaaaaaaaaaaaaaa1
glimt- aaaaaaaaaaaaaaaaaa1
glagent- aaaaaaaaaaaaaaaaaa1
glsoat- aaaaaaaaaaaaaaaaaa1
glffct- aaaaaaaaaaaaaaaaaa1
hf_ aaaaaaaaaaaaaaaaaaaa1
AKIA AAAAAAAAAAAAAAA1
ASIA AAAAAAAAAAAAAAA1
xoxb- 1234567890
xapp- 1234567890
sk- aaaaaaaaaaaaaaaaaaa1
sk_live_ aaaaaaaaa1
rk_test_ aaaaaaaaa1
AIza aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1
ya29. aaaaaaaaaaaaaaaaaaaa1
GOCSPX- aaaaaaaaaaaaaaaaaaaa1
npm_ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1
pypi- aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1
SG. aaaaaaaaaaaaaaa1.aaaaaaaaaaaaaaa1
dckr_ pat_aaaaaaaaaaaaaaaaaaaa1
dapi 0123456789abcdef0123456789abcdef
dop_v1_ 0123456789abcdef0123456789abcdef
hvs. aaaaaaaaaaaaaaaaaaaa1
nvapi- aaaaaaaaaaaaaaaaaaaa1
r8_ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1
gsk_ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1
lsv2_ pt_aaaaaaaaaaaaaaaaaaaa1
glsa_ aaaaaaaaaaaaaaaaaaaa1
tskey- aaaaaaaaaaaaaaaa1
AGE-SECRET-KEY-1 AAAAAAAAAAAAAAAAAAAA1
KGAT_ aaaaaaaaaaaaaaaaaaaa1
wandb_v1_ aaaaaaaaaaaaaaaaaaaa1
123456789 :AAaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1
eyJ aaaaaaaa.eyJaaaaaaaa.aaaaaaaa
"""


@pytest.mark.parametrize("form", lines(TOKENS))
def test_a_token_shows_by_its_form(form: str) -> None:
    token = form.replace(" ", "")
    assert secret_in(f"it is {token} there") == "a token" and token not in without_secrets(f"X: {token}")


def test_what_is_masked_stays_as_it_is_and_is_no_secret_again() -> None:
    for text in lines(SECRET_ADDRESSES + SECRET_EXPORTS + SECRET_OPTIONS):
        once = without_secrets(text)
        assert without_secrets(once) == once


def test_a_text_keeps_all_but_its_secrets() -> None:
    shown = without_secrets(
        'run.sh --api-key=abc1 --seed 3 https://jane:abc1@example.org/x TOKEN=\'a b\' {"password": "abc1"}'
    )
    assert shown == 'run.sh --api-key=… --seed 3 https://…@example.org/x TOKEN=\'…\' {"password": "…"}'
    key = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc1\n-----END OPENSSH PRIVATE KEY-----"
    assert "abc1" not in without_secrets(f"a\n{key}\nb") and secret_in(key) == "a private key"
    assert without_secrets("https://jane:abc1-cut-before-its-end") == "https://jane:…"


def test_a_command_keeps_what_starts_it() -> None:
    found = without_secret_words(shlex.split("python x.py --api-key k -n 2 a.token=k --flag bash -c 'curl -u me:k y'"))
    assert found.words == ["python", "x.py", "-n", "2", "--flag", "bash", "-c", "curl -u me:… y"]
    assert found.left == ["--api-key", "a.token", "a password in curl -u me:… y"]


def test_a_problem_has_no_secret() -> None:
    problem = Problem("'https://me:k3y@example.org' is none", None, "no --password=k3y", "unset TOKEN=k3y")
    assert "k3y" not in str(problem) and "example.org" in problem.message


@pytest.mark.parametrize(
    "text",
    ["a", "://a:", "a=", "--a ", "/a.b", "1_", "bearer ", "-----BEGIN PRIVATE KEY-----", "a+", "$(", "eyJ", "'a':"],
)
def test_a_long_text_has_an_end(text: str) -> None:
    text = text * (600_000 // len(text)) + "!"
    without_secrets(text)
    secret_in(text)
    secret_name("my_key", text)
    secret_file(text)


def test_what_the_program_says_itself_has_nothing_masked() -> None:
    """Every text in the code of hpcgen, which messages are made of."""
    import ast
    from pathlib import Path

    top = Path(secret_rules.__file__).parents[1]
    wrong = []
    for path in sorted(top.rglob("*.py")):
        if path.name == "secret_rules.py":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and without_secrets(node.value) != node.value
            ):
                wrong.append(f"{path.relative_to(top)}:{node.lineno}: {without_secrets(node.value)[:80]}")
    assert wrong == []

"""Texts that would start a program, end a quotation or a line, or command a terminal, if anything let them.

``canary`` is a program that leaves a trace. Nothing of hpcgen has that name, so that any trace is a text that ran.
"""

from __future__ import annotations

CANARY = "canary"
# fmt: off
SHELL = (
    "$(canary)", "`canary`", "; canary", ";canary;", "| canary", "|| canary", "&& canary", "& canary &", "|& canary",
    "' ; canary ; '", '" ; canary ; "', "'$(canary)'", '"$(canary)"', "'\"$(canary)\"'", "'`canary`'",
    "\\'; canary #", "\\$(canary)", "\\\\$(canary)", "\\`canary\\`", "${x:-$(canary)}", "$((a[$(canary)]))",
    "$[a[$(canary)]]", "<(canary)", ">(canary)", "> /trace/out", ">>/trace/out", "$'\\x24(canary)'", "$'; canary'",
    "!canary", "!$(canary)", "x=$(canary)", "-e $(canary)", "--option=`canary`", "${IFS}canary", "$(canary",
    "`canary", "$'", "${", "$(", "((", "'", '"', "\\", "`", "$", "#", "*", "?", "[", "~", "!", "&", "|", ";", "<",
    ">", "(", ")", "{", "}", "'\\''", "$$", "a[$(canary)]", "a[$(canary)]=1", "0;canary", "1$(canary)",
    "1+a[$(canary)]", "{$(canary),x}", "[[ $(canary) ]]",
)
LINES = (
    "\ncanary\n", "\r\ncanary", "\rcanary", "# x\ncanary", "x\n$(canary)\n", "\\\ncanary", "x\\", "x \\", "\tcanary",
    "\vcanary", "\fcanary", "\x85canary", "\u2028canary", "\u2029canary", "\x1ccanary", "\x1ecanary", "\nEND\ncanary",
    "\nHPCGEN_DOCKERFILE\ncanary\n", "HPCGEN_DOCKERFILE", "<< 'END'\ncanary\nEND", "\nEOF\ncanary",
)
FILES = (
    "#SBATCH --wrap=canary", "\n#SBATCH --wrap=canary", "\n#PBS -v X=canary", "\n# flux: --wrap=canary",
    "\n#$ -v X=canary",
    "\nRUN canary", "\\\nRUN canary", "RUN canary", "\nFROM canary", "\nENTRYPOINT canary", "\n# syntax=canary",
    "$HOME", "\n%post\ncanary", "%post", "%setup", "\n%setup\n    canary", "{{ canary }}", "{{canary", "}}",
    "{{ x }}$(canary)", "${{ canary }}", "${{ secrets.X }}", "$CANARY", "%(canary)s", "%n; canary", "%x%j", "%%",
    "%s", "{canary}", "{0}", "@{canary}", "@{header}", "${PATH}", "$1", "$@", ": canary", "- canary", "&a canary",
    "*a", "!!python/object/apply:os.system [canary]", "@canary", "[canary", "{canary", "? canary", "\n- canary\n",
    "x: y\ncanary: z", "---\ncanary", "<<: *canary", "null", "~", "true", "0x1", "1:2:3", "-c canary", "--canary",
    "-o ProxyCommand=canary", "-", "--", "-e", "@/etc/passwd", "/dev/stdin", "../../canary", "/../../canary",
    "/tmp/x;canary", "/x/$(canary)", "/x:/y", "/x,canary", "file:///x;canary", "https://x.example.org/$(canary)",
    "https://x.example.org/`canary`", "https://x.example.org/';canary;'", "https://user:$(canary)@x.example.org/",
    "http://x.example.org/;canary", "docker://x/$(canary)", "x.example.org/a;canary",
)
# fmt: on
CODES = (
    *("\x1b]0;canary\x07", "\x1b[2J", "\x9b2J", "\x07", "\b\b\bcanary", "\x7f", "\0", "canary\0x", "\ufeffcanary"),
    *("\u202ecanary", "\u200bcanary", "\udcff", "\ud800canary", "ß" * 300, "canary " * 12_000, "'" * 4_000),
    *("$(canary)" * 400, "9" * 5_000, "\U0001f424", "", " ", "  canary  x"),
)
PAYLOADS = (*SHELL, *LINES, *FILES, *CODES)
FORMS = ("{payload}", "{was}{payload}", "{payload}{was}", "{was} {payload}")


def variants(was: str) -> list[str]:
    """Every payload in the place of a text, behind it, before it, and as a further word."""
    said = {form.replace("{was}", was).replace("{payload}", text): None for text in PAYLOADS for form in FORMS}
    return list(said)


COUNT = len(PAYLOADS) * len(FORMS)


def variant(was: str, number: int) -> str:
    """The variant of that number, from 0 to ``COUNT``."""
    form, payload = FORMS[number % len(FORMS)], PAYLOADS[number // len(FORMS)]
    return form.replace("{was}", was).replace("{payload}", payload)

"""What a regular expression finds, as people see it: texts that fit, with ``…`` for what may be anything."""

from __future__ import annotations

import re
import sys
from itertools import product
from typing import Any

from said import FILLED_IN

if sys.version_info >= (3, 11):
    from re import _parser as parser
else:
    import sre_parse as parser


def fitting(pattern: str) -> list[str]:
    """One text for each choice that the pattern has, without what may be missing."""
    texts = (re.sub(f"{FILLED_IN}+", FILLED_IN, text).strip() for text in _texts(parser.parse(pattern)))
    return list(dict.fromkeys(texts))


def _texts(parts: Any) -> list[str]:
    return ["".join(chosen) for chosen in product(*(_choices(str(kind), value) for kind, value in parts))]


def _choices(kind: str, value: Any) -> list[str]:
    match kind:
        case "LITERAL":
            return [chr(value)]
        case "ANY":
            # Alone it stands for one of the marks that quote.
            return ["'"]
        case "IN" if {str(each) for each, _ in value} == {"LITERAL"}:
            # [Nn]o: as within a sentence.
            return [chr(value[-1][1])]
        case "BRANCH":
            return [text for branch in value[1] for text in _texts(branch)]
        case "SUBPATTERN":
            return _texts(value[3])
        case "MAX_REPEAT" | "MIN_REPEAT":
            return _repeated(*value)
        case "IN" | "NOT_LITERAL":
            return [FILLED_IN]
    return [""]


def _repeated(least: int, most: int, parts: Any) -> list[str]:
    if most > 1:
        return [" " if str(parts[0]) == "(LITERAL, 32)" else FILLED_IN]
    return _texts(parts) if least else [""]

"""C text over double as text over float: types, literals and functions of <math.h>."""

from __future__ import annotations

import re

_FUNCTIONS = (
    "sqrt|fabs|floor|ceil|copysign|sin|cos|tan|asin|acos|atan|sinh|cosh|tanh|asinh|acosh|atanh|exp"
    "|expm1|log|log1p|erf|pow|fmin|fmax|atan2|hypot|fmod|remainder|fma"
)
_TYPE = re.compile(r"\bdouble\b")
_FUNCTION = re.compile(rf"\b({_FUNCTIONS})\(")
_LITERAL = re.compile(r"(?<![\w.])(\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+)(?![\w.])")
_STRING = re.compile(r'("(?:[^"\\]|\\.)*"|/\*.*?\*/)', re.DOTALL)
_TINY, _HUGE = 1.2e-38, 3.4e38


def as_float(text: str) -> str:
    """The same C with single precision; texts in quotes and comments stay."""
    parts = _STRING.split(text)
    return "".join(part if k % 2 else _converted(part) for k, part in enumerate(parts))


def _converted(text: str) -> str:
    text = text.replace("DBL_MAX", "FLT_MAX")
    text = _FUNCTION.sub(r"\1f(", _TYPE.sub("float", text))
    return _LITERAL.sub(lambda match: _literal(match[1]), text)


def _literal(text: str) -> str:
    value = float(text)
    if value > _HUGE:
        return "INFINITY"
    return "0.0f" if 0.0 < value < _TINY else f"{text}f"

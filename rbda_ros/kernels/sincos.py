"""Sine and cosine together, without branches: as LLVM IR of one number or of a vector, and as C.

The argument is reduced by multiples of pi/2 in three parts (Cody and Waite), with products that are
not rounded before they are added (fused multiply-add, which every processor of the last decade has;
elsewhere the C library does it). Sine and cosine of the rest are the polynomials of FreeBSD's msun
(k_sin.c, k_cos.c). The error is below one unit in the last place up to `LARGEST`; larger arguments
are given to the C library; infinities and NaN give NaN. Both languages get the same steps from
`_reduced_sincos`, so that their results are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partialmethod

from rbda_ros.kernels.llvm_text import Lanes, library_call, literal

LARGEST = 2.0**20
"""Absolute value up to which the reduction is good for."""

_ROUND = 1.5 * 2.0**52  # adding it rounds to an integer, which is left in the lowest bits
_TWO_OVER_PI = float.fromhex("0x1.45f306dc9c883p-1")
_PI_OVER_2 = tuple(
    float.fromhex(part)
    for part in ("0x1.921fb54442d18p+0", "0x1.1a62633145c07p-54", "-0x1.f1976b7ed8fbcp-110")
)
_SIN = (
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
)
_COS = (
    4.16666666666666019037e-02,
    -1.38888888888741095749e-03,
    2.48015872894767294178e-05,
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)


def sincos_definition(lanes: Lanes) -> str:
    """The IR of ``{T, T} @sincos(T)``: sine, then cosine."""
    body = _steps_in_ir(lanes)
    sine, cosine = _sincos_in_ir(body, lanes, "%x")
    return "\n".join(
        [
            f"define internal {lanes.pair} @sincos({lanes.type} %x)"
            f" noinline nounwind {lanes.attributes} {{",
            *body.lines,
            *_choose(lanes, sine, cosine),
            "}",
        ]
    )


class _Steps:
    """Lines of a language with names for their results.

    Args:
        line: of a result, from its name and its text.
        name: of a result, from its number.
        forms: of operations, from their operands.
        number: a constant in this language.
    """

    def __init__(
        self, line: str, name: str, forms: dict[str, str], number: Callable[[float], str]
    ) -> None:
        self.lines: list[str] = []
        self._line, self._name, self._forms, self._number = line, name, forms, number

    def __call__(self, text: str) -> str:
        name = self._name.format(len(self.lines))
        self.lines.append(self._line.format(name, text))
        return name

    def _apply(self, operation: str, *given: float | str) -> str:
        operands = (x if isinstance(x, str) else self._number(x) for x in given)
        return self(self._forms[operation].format(*operands))

    add = partialmethod(_apply, "add")
    sub = partialmethod(_apply, "sub")
    mul = partialmethod(_apply, "mul")
    neg = partialmethod(_apply, "neg")
    fma = partialmethod(_apply, "fma")  # x y + z, rounded once

    def polynomial(self, z: str, coefficients: tuple[float, ...]) -> str:
        """c0 + c1 z + ... by Horner."""
        value: float | str = coefficients[-1]
        for c in coefficients[-2::-1]:
            value = self.fma(value, z, c)
        return str(value)


def _steps_in_ir(lanes: Lanes) -> _Steps:
    T = lanes.type
    forms = {operation: f"f{operation} {T} {{}}, {{}}" for operation in ("add", "sub", "mul")}
    forms["neg"] = f"fneg {T} {{}}"
    forms["fma"] = f"call {T} @llvm.fma.{lanes.suffix}({T} {{}}, {T} {{}}, {T} {{}})"
    return _Steps("  {} = {}", "%s{}", forms, lambda value: literal(value, lanes))


def _steps_in_c() -> _Steps:
    forms = {"add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "neg": "-{}"}
    forms["fma"] = "fma({}, {}, {})"
    return _Steps("  const double {} = {};", "s{}", forms, repr)


def _reduced_sincos(steps: _Steps, x: str) -> tuple[str, str, str]:
    """The quadrant n of x, in the lowest bits of a number, and sine and cosine of the rest."""
    # x = r + t - m pi/2, with |r| <= pi/4 and t beyond its last place.
    first, second, third = _PI_OVER_2
    shifted = steps.fma(x, _TWO_OVER_PI, _ROUND)
    m = steps.sub(_ROUND, shifted)
    a = steps.fma(m, first, x)  # exact: a multiple of the last place of x, and below one
    w = steps.mul(m, second)
    r = steps.add(a, w)
    lost = steps.add(steps.sub(a, r), w)  # where w is the larger, nothing is lost
    rest = steps.fma(m, second, steps.neg(w))
    t = steps.add(lost, steps.fma(m, third, rest))

    z = steps.mul(r, r)
    # sin(r + t) = r + (z r (S1 + z p) + t (1 - z/2))
    minus_half = steps.mul(z, -0.5)
    late = steps.fma(minus_half, t, t)
    sine = steps.add(r, steps.fma(steps.mul(z, r), steps.polynomial(z, _SIN), late))
    # cos(r + t) = w + (((1 - w) - z/2) + (z z q - r t)), w = 1 - z/2
    near = steps.add(1.0, minus_half)
    crossed = steps.mul(steps.neg(r), t)
    tail = steps.fma(steps.mul(z, z), steps.polynomial(z, _COS), crossed)
    cosine = steps.add(near, steps.add(steps.add(steps.sub(1.0, near), minus_half), tail))
    return shifted, sine, cosine


def _sincos_in_ir(ir: _Steps, lanes: Lanes, x: str) -> tuple[str, str]:
    shifted, sine, cosine = _reduced_sincos(ir, x)
    # Quadrant n mod 4: odd swaps the two; the sine changes sign in 2 and 3, the cosine in 1 and 2.
    bits = ir(f"bitcast {lanes.type} {shifted} to {lanes.integer}")
    odd = ir(f"trunc {lanes.integer} {bits} to {lanes.boolean}")
    swapped = [
        ir(f"select {lanes.boolean} {odd}, {lanes.type} {one}, {lanes.type} {other}")
        for one, other in ((cosine, sine), (sine, cosine))
    ]
    plus_one = ir(f"add {lanes.integer} {bits}, {lanes.repeat('i64 1')}")
    signed = []
    for value, quadrant in zip(swapped, (bits, plus_one), strict=True):
        sign = ir(f"shl {lanes.integer} {quadrant}, {lanes.repeat('i64 62')}")
        sign = ir(f"and {lanes.integer} {sign}, {lanes.repeat(f'i64 {-(2**63)}')}")
        word = ir(f"bitcast {lanes.type} {value} to {lanes.integer}")
        word = ir(f"xor {lanes.integer} {word}, {sign}")
        signed.append(ir(f"bitcast {lanes.integer} {word} to {lanes.type}"))
    size = ir(f"call {lanes.type} @llvm.fabs.{lanes.suffix}({lanes.type} {x})")
    zero = ir(f"fcmp oeq {lanes.type} {x}, {literal(0.0, lanes)}")  # its sign is kept
    signed[0] = ir(f"select {lanes.boolean} {zero}, {lanes.type} {x}, {lanes.type} {signed[0]}")
    ir.lines.append(f"  %large = fcmp ogt {lanes.type} {size}, {literal(LARGEST, lanes)}")
    return signed[0], signed[1]


def _choose(lanes: Lanes, sine: str, cosine: str) -> list[str]:
    """The end of the function: arguments beyond the reduction go to the C library."""
    if lanes.count == 1:
        lines, any_large = [], "%large"
    else:
        lines = [
            f"  %mask = bitcast {lanes.boolean} %large to i{lanes.count}",
            f"  %any = icmp ne i{lanes.count} %mask, 0",
        ]
        any_large = "%any"
    lines += [
        f"  br i1 {any_large}, label %library, label %done",
        "library:",
        *library_call("sin", "%ls", ["%x"], lanes),
        *library_call("cos", "%lc", ["%x"], lanes),
        # A result must not depend on what is in the lanes beside it.
        f"  %fs = select {lanes.boolean} %large, {lanes.type} %ls, {lanes.type} {sine}",
        f"  %fc = select {lanes.boolean} %large, {lanes.type} %lc, {lanes.type} {cosine}",
        "  br label %done",
        "done:",
        f"  %sine = phi {lanes.type} [ {sine}, %0 ], [ %fs, %library ]",
        f"  %cosine = phi {lanes.type} [ {cosine}, %0 ], [ %fc, %library ]",
        f"  %one = insertvalue {lanes.pair} poison, {lanes.type} %sine, 0",
        f"  %both = insertvalue {lanes.pair} %one, {lanes.type} %cosine, 1",
        f"  ret {lanes.pair} %both",
    ]
    return lines


def sincos_in_c(name: str) -> list[str]:
    """The same as a C function ``void name(double x, double *sine, double *cosine)``: same bits."""
    steps = _steps_in_c()
    shifted, sine, cosine = _reduced_sincos(steps, "x")
    return [
        f"static inline void {name}(double x, double *sine, double *cosine)",
        "{",
        f"  if (fabs(x) > {LARGEST!r}) {{",
        "    *sine = sin(x);",
        "    *cosine = cos(x);",
        "    return;",
        "  }",
        *steps.lines,
        "  uint64_t bits;",
        f"  memcpy(&bits, &{shifted}, sizeof bits);",
        f"  const double one = (bits & 1u) != 0u ? {cosine} : {sine};",
        f"  const double other = (bits & 1u) != 0u ? {sine} : {cosine};",
        "  *sine = x == 0.0 ? x : (bits & 2u) != 0u ? -one : one;",
        "  *cosine = ((bits + 1u) & 2u) != 0u ? -other : other;",
        "}",
        "",
    ]

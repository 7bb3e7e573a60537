"""Sine and cosine together, without branches, for one number or for a vector of them (LLVM IR).

The argument is reduced by multiples of pi/2 in three parts (Cody and Waite), with products that are
not rounded before they are added (fused multiply-add, which every processor of the last decade has;
elsewhere the C library does it). Sine and cosine of the rest are the polynomials of FreeBSD's msun
(k_sin.c, k_cos.c). The error is below one unit in the last place up to `LARGEST`; larger arguments
are given to the C library; infinities and NaN give NaN.
"""

from __future__ import annotations

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
    body = _Body(lanes)
    sine, cosine = _reduced_sincos(body, "%x")
    return "\n".join(
        [
            f"define internal {lanes.pair} @sincos({lanes.type} %x)"
            f" noinline nounwind {lanes.attributes} {{",
            *body.lines,
            *_choose(body, sine, cosine),
            "}",
        ]
    )


class _Body:
    """Lines of IR with names for their results."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.lines: list[str] = []

    def __call__(self, text: str) -> str:
        name = f"%s{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def number(self, value: float | str) -> str:
        return value if isinstance(value, str) else literal(value, self.lanes)

    def add(self, x: float | str, y: float | str) -> str:
        return self(f"fadd {self.lanes.type} {self.number(x)}, {self.number(y)}")

    def sub(self, x: float | str, y: float | str) -> str:
        return self(f"fsub {self.lanes.type} {self.number(x)}, {self.number(y)}")

    def mul(self, x: float | str, y: float | str) -> str:
        return self(f"fmul {self.lanes.type} {self.number(x)}, {self.number(y)}")

    def fma(self, x: float | str, y: float | str, z: float | str) -> str:
        """x y + z, rounded once."""
        T = self.lanes.type
        given = ", ".join(f"{T} {self.number(value)}" for value in (x, y, z))
        return self(f"call {T} @llvm.fma.{self.lanes.suffix}({given})")

    def polynomial(self, z: str, coefficients: tuple[float, ...]) -> str:
        """c0 + c1 z + ... by Horner."""
        value = self.number(coefficients[-1])
        for c in coefficients[-2::-1]:
            value = self.fma(value, z, c)
        return value


def _reduced_sincos(ir: _Body, x: str) -> tuple[str, str]:
    lanes = ir.lanes
    # x = r + t - m pi/2, with |r| <= pi/4 and t beyond its last place.
    first, second, third = _PI_OVER_2
    shifted = ir.fma(x, _TWO_OVER_PI, _ROUND)
    m = ir.sub(_ROUND, shifted)
    a = ir.fma(m, first, x)  # exact: a multiple of the last place of x, and below one
    w = ir.mul(m, second)
    r = ir.add(a, w)
    lost = ir.add(ir.sub(a, r), w)  # where w is the larger, nothing is lost
    rest = ir.fma(m, second, ir(f"fneg {lanes.type} {w}"))
    t = ir.add(lost, ir.fma(m, third, rest))

    z = ir.mul(r, r)
    # sin(r + t) = r + (z r (S1 + z p) + t (1 - z/2))
    minus_half = ir.mul(z, -0.5)
    late = ir.fma(minus_half, t, t)
    sine = ir.add(r, ir.fma(ir.mul(z, r), ir.polynomial(z, _SIN), late))
    # cos(r + t) = w + (((1 - w) - z/2) + (z z q - r t)), w = 1 - z/2
    near = ir.add(1.0, minus_half)
    tail = ir.fma(ir.mul(z, z), ir.polynomial(z, _COS), ir.mul(ir(f"fneg {lanes.type} {r}"), t))
    cosine = ir.add(near, ir.add(ir.add(ir.sub(1.0, near), minus_half), tail))

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


def _choose(ir: _Body, sine: str, cosine: str) -> list[str]:
    """The end of the function: arguments beyond the reduction go to the C library."""
    lanes, pair = ir.lanes, ir.lanes.pair
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
        f"  %one = insertvalue {pair} poison, {lanes.type} %sine, 0",
        f"  %both = insertvalue {pair} %one, {lanes.type} %cosine, 1",
        f"  ret {pair} %both",
    ]
    return lines


def sincos_in_c(name: str) -> list[str]:
    """The same as a C function ``void name(double x, double *sine, double *cosine)``: same bits."""
    first, second, third = (repr(part) for part in _PI_OVER_2)
    return [
        f"static inline void {name}(double x, double *sine, double *cosine)",
        "{",
        f"  if (fabs(x) > {LARGEST!r}) {{",
        "    *sine = sin(x);",
        "    *cosine = cos(x);",
        "    return;",
        "  }",
        f"  const double shifted = fma(x, {_TWO_OVER_PI!r}, {_ROUND!r});",
        f"  const double m = {_ROUND!r} - shifted;",
        f"  const double a = fma(m, {first}, x);",
        f"  const double w = m * {second};",
        "  const double r = a + w;",
        "  const double lost = (a - r) + w;",
        f"  const double t = lost + fma(m, {third}, fma(m, {second}, -w));",
        "  const double z = r * r;",
        "  const double minus_half = z * -0.5;",
        f"  const double p = {_horner(_SIN)};",
        f"  const double c = {_horner(_COS)};",
        "  const double s1 = r + fma(z * r, p, fma(minus_half, t, t));",
        "  const double near_one = 1.0 + minus_half;",
        "  const double tail = fma(z * z, c, -r * t);",
        "  const double c1 = near_one + (((1.0 - near_one) + minus_half) + tail);",
        "  uint64_t bits;",
        "  memcpy(&bits, &shifted, sizeof bits);",
        "  const double s = (bits & 1u) != 0u ? c1 : s1;",
        "  const double k = (bits & 1u) != 0u ? s1 : c1;",
        "  *sine = x == 0.0 ? x : (bits & 2u) != 0u ? -s : s;",
        "  *cosine = ((bits + 1u) & 2u) != 0u ? -k : k;",
        "}",
        "",
    ]


def _horner(coefficients: tuple[float, ...]) -> str:
    text = repr(coefficients[-1])
    for c in coefficients[-2::-1]:
        text = f"fma({text}, z, {c!r})"
    return text

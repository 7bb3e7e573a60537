"""Sine and cosine together, without branches, for one number or for a vector of them (LLVM IR).

The argument is reduced by multiples of pi/2 in four parts (Cody and Waite), exactly while the
multiple has at most 20 bits; sine and cosine of the rest are the polynomials of FreeBSD's msun
(k_sin.c, k_cos.c). The error is below one unit in the last place. Larger arguments are given to
the C library; infinities and NaN give NaN.
"""

from __future__ import annotations

from rbda_ros.kernels.llvm_text import Lanes, library_call, literal

LARGEST = 2.0**20
"""Absolute value up to which the reduction is exact."""

_TINY = 2.0**-27  # below it sin x rounds to x, and the sign of zero is kept
_ROUND = 1.5 * 2.0**52  # adding it rounds to an integer, which is left in the lowest bits
_TWO_OVER_PI = float.fromhex("0x1.45f306dc9c883p-1")
_PI_OVER_2 = tuple(
    float.fromhex(part)  # 33 bits each, so that products with 20 bits are exact; then the rest
    for part in (
        "0x1.921fb544p+0",
        "0x1.0b4611a6p-34",
        "0x1.3198a2ep-69",
        "0x1.b839a252049c1p-104",
    )
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
            f"define internal {{ {lanes.type}, {lanes.type} }} @sincos({lanes.type} %x)"
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

    def minus(self, x: str, y: str) -> tuple[str, str]:
        """x - y, rounded, and what was lost (Knuth's two-sum)."""
        s = self.sub(x, y)
        z = self.sub(s, x)
        return s, self.sub(self.sub(x, self.sub(s, z)), self.add(y, z))

    def polynomial(self, z: str, coefficients: tuple[float, ...]) -> str:
        """c0 + c1 z + ... by Horner, fused where the processor can."""
        T, value = self.lanes.type, self.number(coefficients[-1])
        for c in coefficients[-2::-1]:
            product = self(f"fmul contract {T} {value}, {z}")
            value = self(f"fadd contract {T} {product}, {self.number(c)}")
        return value


def _reduced_sincos(ir: _Body, x: str) -> tuple[str, str]:
    lanes = ir.lanes
    # x = n pi/2 + r + t, with |r| <= pi/4 and t the rounding error of r.
    shifted = ir.add(ir.mul(x, _TWO_OVER_PI), _ROUND)
    n = ir.sub(shifted, _ROUND)
    first, second, third, rest = _PI_OVER_2
    a = ir.sub(x, ir.mul(n, first))
    w = ir.mul(n, second)
    b = ir.sub(a, w)
    lost_b = ir.sub(ir.sub(a, b), w)  # where w is the larger, nothing is lost
    c, lost_c = ir.minus(b, ir.mul(n, third))
    low = ir.sub(ir.add(lost_b, lost_c), ir.mul(n, rest))
    r = ir.add(c, low)
    t = ir.add(ir.sub(c, r), low)

    z = ir.mul(r, r)
    # sin: r - ((z (t/2 - v p) - t) - v S1)
    v = ir.mul(z, r)
    p = ir.polynomial(z, _SIN[1:])
    inner = ir.sub(ir.mul(z, ir.sub(ir.mul(t, 0.5), ir.mul(v, p))), t)
    sine = ir.sub(r, ir.sub(inner, ir.mul(v, _SIN[0])))
    # cos: w + (((1 - w) - z/2) + (z z q - r t)), w = 1 - z/2
    q = ir.polynomial(z, _COS)
    half = ir.mul(z, 0.5)
    near = ir.sub(1.0, half)
    tail = ir.sub(ir.mul(z, ir.mul(z, q)), ir.mul(r, t))
    cosine = ir.add(near, ir.add(ir.sub(ir.sub(1.0, near), half), tail))

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
    tiny = ir(f"fcmp olt {lanes.type} {size}, {literal(_TINY, lanes)}")
    signed[0] = ir(f"select {lanes.boolean} {tiny}, {lanes.type} {x}, {lanes.type} {signed[0]}")
    ir.lines.append(f"  %large = fcmp ogt {lanes.type} {size}, {literal(LARGEST, lanes)}")
    return signed[0], signed[1]


def _choose(ir: _Body, sine: str, cosine: str) -> list[str]:
    """The end of the function: arguments beyond the reduction go to the C library."""
    lanes = ir.lanes
    pair = f"{{ {lanes.type}, {lanes.type} }}"
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

"""Expressions in joint names as polynomials, where they are such."""

from __future__ import annotations

from collections.abc import Mapping

from rbda_ros.description.expression import Call, Name, Node, Number

HIGHEST = 4
"""Degree of the polynomials that MuJoCo's equalities have."""

Monomial = tuple[tuple[str, int], ...]
"""Joints and their powers, by name; empty for the constant."""
Polynomial = Mapping[Monomial, float]


def polynomial(node: Node) -> Polynomial | None:
    """Coefficients by monomial; None where an expression is no polynomial, or of high degree."""
    match node:
        case Number(value):
            return {(): float(value)}
        case Name(joint):
            return {((joint, 1),): 1.0}
        case Call(function, arguments):
            parts = [polynomial(argument) for argument in arguments]
            given = [part for part in parts if part is not None]
            return _called(function, given) if len(given) == len(parts) else None
    return None


def _called(function: str, parts: list[Polynomial]) -> Polynomial | None:
    match function:
        case "neg":
            return _scaled(parts[0], -1.0)
        case "add":
            return _sum(parts[0], parts[1])
        case "sub":
            return _sum(parts[0], _scaled(parts[1], -1.0))
        case "mul":
            return _product(parts[0], parts[1])
        case "div":
            divisor = _constant(parts[1])
            return _scaled(parts[0], 1.0 / divisor) if divisor else None
        case "pow":
            power = _constant(parts[1])
            if power is None or power != int(power) or not 0 <= power <= HIGHEST:
                return None
            result: Polynomial | None = {(): 1.0}
            for _ in range(int(power)):
                result = None if result is None else _product(result, parts[0])
            return result
    return None


def _constant(part: Polynomial) -> float | None:
    return part.get((), 0.0) if all(not monomial for monomial in part) else None


def _scaled(part: Polynomial, factor: float) -> Polynomial:
    return {monomial: factor * value for monomial, value in part.items()}


def _sum(one: Polynomial, other: Polynomial) -> Polynomial:
    total = dict(one)
    for monomial, value in other.items():
        total[monomial] = total.get(monomial, 0.0) + value
    return {monomial: value for monomial, value in total.items() if value or not monomial}


def _product(one: Polynomial, other: Polynomial) -> Polynomial | None:
    total: Polynomial = {}
    for first, a in one.items():
        for second, b in other.items():
            powers = dict(first)
            for joint, power in second:
                powers[joint] = powers.get(joint, 0) + power
            if sum(powers.values()) > HIGHEST:
                return None
            total = _sum(total, {tuple(sorted(powers.items())): a * b})
    return total

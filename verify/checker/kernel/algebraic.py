"""The exact sign of a number in a tower of real square roots over Q."""

from __future__ import annotations

from typing import Final

from accountant.numbers.precision import ctx
from verify.checker.kernel.extended import evaluate
from verify.checker.kernel.language import ProofError
from verify.checker.kernel.normal import Normaliser
from verify.checker.kernel.polynomials import ONE, Polynomial, Ratio, coefficients, used, value_of

_PRECISIONS: Final = (128, 512, 2048)


def sign_of(normaliser: Normaliser, polynomial: Polynomial) -> int:
    """Return the sign of a polynomial in roots of numbers.

    With s² = e, the sign of A + s·B is that of A and B where they agree, else that of A times that
    of A² − e·B². Raises ProofError where an atom is no square root.
    """
    found = normaliser.reduced(Ratio.of(polynomial, ONE))
    if found.bottom != ONE:
        return sign_of(normaliser, found.top) * sign_of(normaliser, found.bottom)
    polynomial = found.top
    if polynomial.is_constant():
        value = value_of(polynomial)
        return (value > 0) - (value < 0)
    index = max(used(polynomial))
    atom = normaliser.atoms[index]
    for other in used(polynomial):
        if normaliser.atoms[other].radicand is None or normaliser.atoms[other].degree != 2:
            raise ProofError("a number that is not made of square roots")
    node = normaliser.node(found)
    for precision in _PRECISIONS:
        with ctx.workprec(precision):
            sign = evaluate(node, {}, normaliser.budget).sign()
        if sign is not None and sign[1]:
            return sign[0]
    plain, rooted = coefficients(polynomial, index)
    first, second = sign_of(normaliser, plain), sign_of(normaliser, rooted)
    if first * second >= 0:
        return first or second
    radicand = atom.radicand
    if radicand is None:
        raise ProofError("a number that is not made of square roots")
    difference = Ratio.of(plain * plain, ONE) - Ratio.of(rooted * rooted, ONE) * radicand
    return first * sign_of(normaliser, difference.top) * sign_of(normaliser, difference.bottom)

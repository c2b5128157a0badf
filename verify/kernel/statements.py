"""Theorems over ranges: comparisons, limits and optimality.

A theorem covers its listed cases (all combinations of `where`) and, in each, all values of its
`for_all` variables, and of its own variable over `over`, that satisfy `assume`. HOLDS is proved for
all of them, SUPPORTED at the listed values, and REFUTED in one case of the domain. An end or a
limit must not depend on the variable that it bounds.

Over a range, a quantity of a mechanism such as mu(M) is replaced with its formula from the table of
lemmas. The domains and conditions of the arguments are proved over the same range.

Optimality among N(0, Σ) with v'Σ⁻¹v ≤ μ² for v in a space: let M = E[vv'] for a law on the space.
Then tr(Σ⁻¹M) ≤ μ², so (tr M^½)² ≤ μ² tr Σ by Cauchy–Schwarz. For a Box the law is uniform on the
corners, and M = diag(bounds²). For a SparseBox it has j = `ones` entries of size `bound` in uniform
places. With uniform signs M = (bound² j/d) I. Without, M/bound² has the eigenvalue j²/d once, and
(j − j²/d)/(d − 1) with multiplicity d − 1.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from . import lemmas, notation
from .boxes import Facts, Goal, rebuilt
from .cases import ENDS, Case, Comparison, Statement, Variable
from .expressions import (
    QUESTIONS,
    ZERO,
    Node,
    comparison,
    make,
    number,
    parse,
    question_parts,
    show,
    substitute,
)
from .functions import written
from .lemmas import DERIVED, FLAGS, LINES, POSITIVE, has_relation, relation_of
from .notation import Noise
from .numbers import Budget, NotProved, Proof, Wrong
from .particular import square_on
from .proofs import Prover, decided

Data = Mapping[str, Any]


def prove(theorem: Data, witness: Data, budget: Budget) -> Proof:
    """Prove a limit or an optimality claim; raise NotProved or Wrong if that fails."""
    statement = Ranges(theorem, witness, budget, Proof())
    (statement.limit if theorem["kind"] == "limit" else statement.optimality)()
    return statement.proof


class Ranges(Statement):
    """A parsed theorem, with proofs over ranges."""

    def goals(self, fact: Comparison, case: Case, *own: Variable) -> Iterator[Goal]:
        """Yield comparisons without quantities of mechanisms, each of which implies the fact."""
        facts = (one.fix(case) for one in self.assumed if one.free - {*case})
        given = tuple(Goal(one.left, one.relation, one.right) for one in facts)
        ranges = tuple(v.put(case) for v in (*self.domains.values(), *own))
        for name in self.domains:
            if not any(self.for_all[name].get(key) for key in ENDS):
                raise NotProved(f"{name} has a domain in words only")
        fixed = fact.fix(case)
        goal = Goal(fixed.left, fixed.relation, fixed.right, ranges, given)
        expansion = Expansion(self, goal)
        expansion.facts.defined(*(e for v in ranges for e in (v.low, v.high) if e is not None))
        for left in expansion.bounds() or [expansion.expanded(goal.left)]:
            yield goal.on(left, goal.relation, expansion.expanded(goal.right))

    def prover(self, goal: Goal, case: Case) -> Prover:
        """Return the prover of a goal, with the names of the theorem."""
        names = {k: substitute(v, case) for k, v in self.let.items()}
        rewrite = Expansion(self, goal, checked=False).expanded
        return Prover(self.budget, {**names, **case}, rewrite)

    def proved(self, fact: Comparison, case: Case, spec: Any, *own: Variable) -> None:
        """Prove a comparison over the domains."""
        if not self.domains and not own:
            self.require(fact.fix(case))
        else:
            reason = NotProved("no formula fits")
            for goal in self.goals(fact, case, *own):
                try:
                    return self.prover(goal, case).prove(goal, spec)
                except NotProved as error:
                    reason = error
            raise reason
        return None

    def over_ranges(self, fact: Comparison) -> None:
        """Prove a comparison for every listed case, over the domains."""
        if all(ends["grid"] for ends in self.for_all.values()):
            for _ in self.listed():  # so that the range is not empty
                pass
        for case in self.cases(self.where):
            self.proved(fact, case, self.witness.get("proof"))

    # --- kinds
    def limit(self) -> None:
        """Prove a limit at infinity with its rate, or refute it by another limit."""
        node, claimed = self.formula("expression"), self.formula("limit")
        rate = self.formula("rate") if self.theorem["rate"] else None
        spec, gap = self.witness.get("proof") or {}, node - claimed
        if self.theorem["verdict"] == "SUPPORTED":
            raise NotProved("values at points do not support a limit")
        if self.theorem["verdict"] == "REFUTED":
            other, case = self.formula("limit", self.witness.get("limit", "")), self.case()
            self.require(Comparison(claimed, "!=", other).fix(case))
            return self.tends(node, other, case)
        for case in self.cases(self.where):
            by_rate = spec.get("method") == "rate" and rate is not None
            self.tends(*((rate, ZERO) if by_rate and rate else (node, claimed)), case)
            if rate is not None and self.over is not None:
                self.proved(Comparison(gap, "<=", rate), case, spec.get("above"), self.over)
                self.proved(Comparison(gap, ">=", ZERO - rate), case, spec.get("below"), self.over)
        return None

    def tends(self, node: Node, claimed: Node, case: Case) -> None:
        """Prove a limit at infinity of a formula, or of an identical form from the witness."""
        if self.over is None or self.over.high is not None:
            raise NotProved("the kernel proves limits at infinity only")
        goal = next(self.goals(Comparison(node, "==", claimed), case, self.over))
        facts, spec, form = Facts(goal, self.budget), self.witness.get("proof"), goal.left
        facts.defined(goal.left, goal.right)
        prover = self.prover(goal, case)
        if isinstance(spec, Mapping) and "form" in spec:
            form = prover.read(goal, spec["form"])
            prover.prove(goal.on(goal.left, "==", form), {"method": "identity"})
        rest = tuple(v for v in goal.variables if v.name != self.own)
        prover.attempt(Goal(facts.far(form, self.own), "==", goal.right, rest, goal.given))

    def optimality(self) -> None:
        """Prove that no member of the family has less than value/(1 + tolerance)."""
        theorem = self.theorem
        if theorem["verdict"] != "HOLDS":
            raise NotProved("the kernel does not refute optimality")

        def read(data: Any, key: str) -> Node:
            return self.formula("among", data[key])

        among, dual, one = theorem["among"], theorem["dual"], number(1)
        space, mu = among["space"], read(among, "mu")
        if (dual["law"] == "corners") != (space["type"] == "Box"):
            raise Wrong("theorem.dual.law", "does not fit the space")
        others = ["dimension", "sparsity", "bound", "signed"] if space["bounds"] else []
        if any(space[key] for key in others):
            raise Wrong("theorem.among", "has fields of another family")
        conditions, whole = [Comparison(mu, ">", ZERO)], list[Node]()
        if space["type"] == "Box":
            bounds = [self.formula("among", text) for text in space["bounds"]]
            conditions += [Comparison(bound, ">=", ZERO) for bound in bounds]
            trace = sum(bounds, start=ZERO) ** number(2)
            size = number(len(bounds))
        else:
            size, most, bound = (read(space, key) for key in ("dimension", "sparsity", "bound"))
            ones = read(dual, "ones")
            whole = [size, most, ones]
            conditions += [
                Comparison(a, "<=", b) for a, b in itertools.pairwise((one, ones, most, size))
            ]
            conditions.append(Comparison(bound, ">=", ZERO))
            along = ones ** number(2) / size
            across = (size - one) * (ones - along)
            trace = along + across + number(2) * make("sqrt", along * across)
            trace = (ones * size if space["signed"] else trace) * bound ** number(2)
        least = trace / mu ** number(2) / (size if among["objective"] == "mean" else one)
        slack = one + self.formula("tolerance")
        conditions.append(Comparison(slack, ">", ZERO))
        claim = Comparison(self.formula("value"), "<=", least * slack)
        for case in self.cases(self.where) if self.for_all else self.listed():
            facts = Facts(next(self.goals(claim, case)), self.budget)
            if not all(facts.whole(substitute(node, case)) for node in whole):
                raise NotProved("the sizes or `ones` are not known to be integers")
            if self.for_all:
                for condition in conditions:
                    self.proved(condition, case, None)
                self.proved(claim, case, self.witness.get("proof"))
            else:
                for condition in [*conditions, claim]:
                    self.require(condition.fix(case))


def decided_by_formulas(statement: Statement, one: Comparison) -> bool | None:
    """Decide a comparison of two numbers, with quantities replaced with formulas."""
    put = Expansion(statement, Goal(one.left, one.relation, one.right)).expanded
    goal = Goal(put(one.left), one.relation, put(one.right))
    return decided(goal, statement.budget, statement.value)


# --- formulas of the table ---
LOSS = {**dict.fromkeys(("laplace", "logistic", "bounded_range", "pure"), parse("a"))}
LOSS["discrete_laplace"] = parse("b/a")
RHO = {"gaussian": parse("a**2/2"), "discrete_gaussian": parse("b**2/(2*a)")}
RHO["bounded_range"] = parse("a**2/8")
"""Formulas of the largest loss and of a ρ of a law, in its arguments a and b."""


def _put(node: Node, noise: Noise, lets: Mapping[str, Node]) -> Node:
    """Substitute the arguments of a mechanism in a formula of the table."""
    given = {k: v for k, v in noise.arguments.items() if isinstance(v, str) and v != ""}
    names = {k: number(v == "True") if k in FLAGS else parse(v) for k, v in given.items()}
    if "shifts" in noise.arguments:
        names["shifted"] = sum((make("abs", parse(x)) for x in noise["shifts"]), start=ZERO)
    for name, formula in lets.items():
        names[name] = substitute(formula, names)
    return substitute(node, names)


def formulas(what: str, noise: Noise, adjacency: str | None) -> list[tuple[str, Node, bool]]:
    """Return (row, formula, exact) for "mu", "loss", "rho", "variance" or "last".

    If `exact` is False the formula is only an upper bound.
    """
    anyhow, adjacency = what in ("variance", "last"), relation_of(noise, adjacency)
    found: list[tuple[str, Node, bool]] = []
    plain = False  # whether an exact line fits: no later one applies
    if not has_relation(noise, adjacency) or "arities" in noise.arguments:
        return found  # the sizes of such a tree are checked at points only
    if what == "mu" and noise.name == "GeneralGaussian" and (square := square_on(noise)):
        found.append(("gaussian-space", parse(f"sqrt({square})"), True))
    for line in LINES.get(noise.name, ()):
        if not line.fits(noise, adjacency, any_relation=anyhow) or "lower" in line.words:
            continue
        if "upper" not in line.words and not anyhow:
            if plain:
                continue
            plain = True
        lets, parts = dict(line.entries("let")), line.factors()
        node: Node | None = (line.entries(what) or [None])[0]
        if what == "mu" and len(parts) == 1 and parts[0][0].op == "gaussian":
            node = parts[0][0].args[0]
        elif what in ("loss", "rho") and node is None:
            known = LOSS if what == "loss" else RHO
            if all(law.op in known for law, _ in parts):
                each = (
                    n * substitute(known[a.op], dict(zip("ab", a.args, strict=False)))
                    for a, n in parts
                )
                node = sum(each, ZERO)
        used = [node, *(x for a, _, b in line.entries("if") for x in (a, b)), *lets.values()]
        if node is not None and not any(DERIVED & x.free for x in used if x is not None):
            inexact = "upper" in line.words or (what == "rho" and parts[0][0].op == "bounded_range")
            found.append((line.row, _put(node, noise, lets), not inexact))
    return found


Condition: TypeAlias = tuple[Node, str, Node]


def conditions(noise: Noise, adjacency: str | None) -> list[Condition]:
    """Return the conditions of a mechanism in addition to the domains of its arguments."""
    found = [f"{x} > 0" for x in noise.arguments.get(POSITIVE.get(noise.name, ""), [])]
    if noise.name == "GeneralGaussian":
        covariance, space = noise["covariance"], noise["space"]
        found += [f"{x} > 0" for x in covariance.arguments.get("variances", [])]
        found.append(f"{_dimension(covariance)} == {_dimension(space)}")
        while space.name == "DisjointGroups":
            space = space["space"]
        found += [f"{x} > 0" for x in space.arguments.get("bounds", [])]
        if space.name == "SparseBox":
            found.append(f"{space['sparsity']} <= {space['dimension']}")
    every = [comparison(text) for text in found]
    for line in LINES.get(noise.name, ()):
        if line.fits(noise, relation_of(noise, adjacency)) and "lower" not in line.words:
            for a, relation, b in line.entries("if"):
                if not DERIVED & (a.free | b.free):
                    every.append((_put(a, noise, {}), relation, _put(b, noise, {})))
    return every


def _dimension(of: Noise) -> str:
    """Return the dimension of a covariance or a space, as a formula."""
    if of.name == "DisjointGroups":
        return f"({of['groups']})*({_dimension(of['space'])})"
    listed = of.arguments.get("bounds") or of.arguments.get("variances")
    return str(len(listed)) if listed else f"({of['dimension']})"


_LISTS = ("bounds", "sensitivities", "shifts", "variances")
"""Arguments that are lists with at least one entry."""


# --- formulas for questions ---------------------------------------------------------------------
class Expansion:
    """Replaces quantities of mechanisms with formulas, if their conditions hold over the domain.

    An upper bound may replace the left side of `<=` and `<`, and there a scale may lose its
    round_up, since more noise never increases the quantity. Elsewhere formulas are exact.
    """

    def __init__(self, statement: Statement, goal: Goal, *, checked: bool = True) -> None:
        self.statement, self.checked, self.facts = statement, checked, Facts(goal, statement.budget)

    def bounds(self) -> list[Node]:
        """Return upper bounds of the left side of `<=` or `<`."""
        left, relation = self.facts.goal.left, self.facts.goal.relation
        bounded = left.op in ("delta", "renyi", "mu", "max_loss", "rho")
        if relation not in ("<=", "<") or not bounded:
            return []
        return self.formulas(left, at_most=True)

    def expanded(self, node: Node) -> Node:
        """Replace every quantity that has an exact formula."""

        def change(n: Node) -> Node:
            found = self.formulas(n)[:1] if n.op in QUESTIONS else []
            return found[0] if found else written(n, self.true) or n

        return rebuilt(node, change)

    def formulas(self, node: Node, *, at_most: bool = False) -> list[Node]:
        """Return the formulas of a quantity of one mechanism, if they are known."""
        given, relation = question_parts(node, self.statement.theorem["adjacency"])
        if not node.free <= {*self.facts.known}:  # the index of a sum
            return []
        noise = notation.parse(show(_unrounded(given[0]) if at_most else given[0]))
        if not isinstance(noise, notation.Noise):
            return []
        what, rest = _DERIVED.get(node.op, (node.op, "X")), given[1:]
        if node.op == "mse" and noise.name not in ("Gaussian", "Laplace", "RankOneGaussian"):
            return []
        if node.op == "variance" and rest:
            size = parse(noise.arguments.get("dimension", "1"))
            what = ("last", "X") if rest[0] is size else ("variance", "X")
            if rest[0] not in (size, ZERO):
                return []
            rest = []
        if len(rest) != ("AT" in what[1]):
            return []
        found = []
        for row, known, exact in formulas(what[0], noise, relation):
            if exact or at_most or what[0] in ("variance", "last"):
                names = {"X": known, **dict(zip(["AT"], rest, strict=False))}
                found.append((row, parse(what[1], names=names)))
        if not found or (self.checked and not self.holds(noise, relation, node.op, rest)):
            return []
        if self.checked:
            self.statement.proof.lemmas |= {row for row, _ in found}
        return [formula for _, formula in found]

    def holds(self, noise: Any, relation: str | None, quantity: str, rest: list[Node]) -> bool:
        """Whether the arguments are in their domains and the conditions hold, over the range."""
        relations = [relation] if relation else [None, "add-remove", "replace-one"]
        found = [fact for r in relations for fact in conditions(noise, r)]
        if quantity == "renyi":
            found.append((rest[0], ">", number(1)))
        for part, key, text in _arguments(noise):
            if key in lemmas.FLAGS and text not in ("True", "False"):
                return False
            if key in _LISTS and not (isinstance(text, list) and text):
                return False
            domain = lemmas.domain(part, key)
            if not isinstance(text, str) or text == "None" or not domain:
                continue
            node = parse(text)
            if domain.startswith("integer") and not self.facts.whole(node):
                return False
            parts = node.args if node.op == "/" else [node]
            exact = node.op == "num" or (part.name, key) != ("DiscreteCorrelatedGaussian", "c")
            if not (exact or all(map(self.facts.whole, parts))):
                return False  # c is not rational
            least = domain.partition(">=")[2].strip() or "0"
            found.append((node, ">" if domain in ("> 0", "in (0, 1)") else ">=", parse(least)))
            if domain.startswith("in "):
                found.append((node, "<" if "(" in domain else "<=", number(1)))
        return self.true(*found)

    def true(self, *found: Condition) -> bool:
        """Whether comparisons hold over the range."""
        try:
            for fact in found:
                goal = self.facts.goal.on(*fact)
                if goal.variables:
                    Prover(self.statement.budget, {}).attempt(goal)
                elif decided(goal, self.statement.budget) is not True:
                    return False
        except NotProved:
            return False
        return True


def _arguments(noise: notation.Noise) -> Iterator[tuple[notation.Noise, str, Any]]:
    """Yield (mechanism, name, value) of all arguments, including nested ones."""
    for key, entry in noise.arguments.items():
        yield noise, key, entry
        if isinstance(entry, notation.Noise):
            yield from _arguments(entry)


def _unrounded(noise: Node) -> Node:
    """Return the mechanism without the round_up of its scale."""
    if noise.op not in ("Gaussian", "Laplace"):
        return noise
    *given, keys = noise.args
    places = [*range(len(given) - len(keys)), *(-1 if k[:2] in ("l1", "l2") else 0 for k in keys)]
    scales = [
        a.args[0] if a.op == "round_up" and place == 0 else a
        for a, place in zip(given, places, strict=True)
    ]
    return make(noise.op, *scales, keys)


_DERIVED = {
    "mu": ("mu", "X"),
    "max_loss": ("loss", "X"),
    "rho": ("rho", "X"),
    "variance": ("variance", "X"),
    "mse": ("variance", "X"),
    "renyi": ("mu", "AT*X**2/2"),
    "delta": ("mu", "Phi(X/2 - AT/X) - exp(AT)*Phi(-X/2 - AT/X)"),
    "loss_above": ("mu", "Phi(X/2 - AT/X)"),
}
"""Quantity → the formula X of the table, and the quantity in X and its argument AT."""

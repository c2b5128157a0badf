"""What neighbours of a mechanism are like, and what its worst pairs leave open."""

from __future__ import annotations

from dpassay.verifier.checker.notation import Noise


def releases(noise: Noise) -> list[Noise]:
    """Return what a mechanism wraps."""
    inside = noise["mechanism"]
    return inside if isinstance(inside, list) else [] if inside is None else [inside]


def parts(noise: Noise) -> list[tuple[Noise, int]]:
    """Return the releases of a composition that are none, and how often each is run."""
    if noise.name != "Composed":
        return [(noise, 1)]
    inside = [part for release in releases(noise) for part in parts(release)]
    return [(release, int(noise["count"]) * count) for release, count in inside]


def under(noise: Noise, adjacency: str | None) -> Noise:
    """Return the mechanism with a relation noted, and what it wraps with the relation there.

    A sample of a fixed size has a record replaced.
    """
    inside, arguments = noise["mechanism"], noise.arguments
    within = "replace-one" if noise.name == "SampledWithoutReplacement" else adjacency
    if isinstance(inside, list):
        arguments = {**arguments, "mechanism": [under(one, within) for one in inside]}
    elif isinstance(inside, Noise):
        arguments = {**arguments, "mechanism": under(inside, within)}
    return Noise(noise.name, arguments, adjacency)


def assumptions(noise: Noise) -> list[str]:
    """Return what a statement about a mechanism takes for granted by its own words."""
    found = [text for one in releases(noise) for text in assumptions(one)]
    if noise.name == "Guaranteed":
        found.append("that what Guaranteed stands for has the guarantee it names")
    return found


def enveloped(noise: Noise) -> bool:
    """Whether neighbours are known to be dominated by the largest of several profiles alone.

    Of a sample without replacement records that are unlike both of two exchanged ones may lie
    between its two extremes.
    """
    between = noise.name == "SampledWithoutReplacement"
    if between and noise["sample_size"] < noise["population"]:
        return True
    return any(map(enveloped, releases(noise)))


def curves_between(noise: Noise) -> bool:
    """Whether only the largest of several profiles is known to bound a trade-off function.

    Of laws that are affine in a number H and all that is integrated from it, a convex function, is
    largest at an end; a trade-off function in between may lie below those of both ends.
    """
    if noise.name in ("ProposeTestRelease", "PartitionSelection") or enveloped(noise):
        return True
    return any(map(curves_between, releases(noise)))

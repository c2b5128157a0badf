"""Names of arguments, methods and functions in other libraries, and their names here.

An alias in `ALIASES` is replaced by the first of its targets that the called function has as a
parameter, provided that the caller does not pass this parameter too. An alias always denotes the
same number: `sigma` of a `DiscreteGaussian`, whose `parameter` is σ², is refused with a hint
instead. The notation in claim files and certificates has no aliases.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Any

ALIASES: Mapping[str, tuple[str, ...]] = {
    "sensitivity": ("l2_sensitivity", "l1_sensitivity"),
    "sigma": ("standard_deviation", "noise_multiplier"),
    "std": ("standard_deviation",),
    "noise_multiplier": ("standard_deviation",),
    "scale": ("standard_deviation",),
    "b": ("scale",),
    "sample_rate": ("sampling_prob",),
    "sampling_rate": ("sampling_prob",),
    "sampling_probability": ("sampling_prob",),
    "q": ("sampling_prob",),
    "num_compositions": ("count",),
    "steps": ("count",),
    "num_steps": ("steps", "count"),
    "num_epochs": ("epochs",),
    "alpha": ("order",),
    "eps": ("epsilon",),
    "target_epsilon": ("epsilon",),
    "target_delta": ("delta",),
    "n_samples": ("samples",),
    "num_samples": ("samples",),
    "n": ("records",),
    "size": ("records",),
    "dataset_size": ("records",),
}
"""Maps each alias to the parameters it can denote. For Poisson batches a sampling rate also denotes
`batch_size` and `dataset_size` together; `noise_multiplier` denotes the standard deviation only if
no sensitivity is passed."""
METHODS: Mapping[str, str] = {
    "get_epsilon": "epsilon",
    "get_epsilon_for_delta": "epsilon",
    "compute_epsilon": "epsilon",
    "get_delta": "delta",
    "get_delta_for_epsilon": "delta",
    "compute_delta": "delta",
    "get_rdp": "renyi",
    "tradeoff": "beta",
    "privacy_profile": "profile",
    "compose": "spend",
    "add_noise": "release",
    "randomise": "release",
    "randomize": "release",
}
"""Method names of other libraries' mechanisms and accountants, with the same arguments here."""
_RATES = ("sample_rate", "sampling_rate", "sampling_probability", "sampling_prob")
_SIZES = {"batch_size", "dataset_size"}


def translated(named: Mapping[str, Any], known: Collection[str], given: int = 0) -> dict[str, Any]:
    """Rename keyword arguments to the parameters `known`, in the order of the signature.

    The first `given` parameters are already bound by position. Names without a translation are
    returned unchanged.

    >>> translated({"sigma": 2, "sensitivity": 3}, ["standard_deviation", "l2_sensitivity"])
    {'standard_deviation': 2, 'l2_sensitivity': 3}
    """
    taken = {*list(known)[:given], *named}
    found: dict[str, Any] = {}
    for name, value in named.items():
        own = next((own for own in ALIASES.get(name, ()) if own in known), None)
        if name == "noise_multiplier" and any(each.endswith("sensitivity") for each in taken):
            own = None  # the standard deviation is the noise multiplier times the sensitivity
        if name in known or own in taken or own is None:
            found |= _sizes(name, value, named, known, taken) or {name: value}
        else:
            found[own] = value
            taken.add(own)
    return found


def _sizes(
    name: str, value: Any, named: Mapping[str, Any], known: Collection[str], taken: set[str]
) -> dict[str, Any]:
    """Turn a sampling rate of Poisson batches into a batch size and dataset size of this ratio.

    The privacy of Poisson batches depends on the sizes only through their ratio.
    """
    poisson = named.get("sampling", "poisson") == "poisson" and "group" not in named
    fits = name in _RATES and name not in known and {*known} >= _SIZES and not taken & _SIZES
    if not (poisson and fits):
        return {}
    try:
        rate = Fraction(getattr(value, "rational", value))
    except (ValueError, TypeError, OverflowError, ZeroDivisionError):  # not a rational number
        return {}
    if not 0 < rate <= 1:
        return {}
    return {"batch_size": rate.numerator, "dataset_size": rate.denominator}


_ELSEWHERE = {
    "Gaussian": "gaussian_mechanism make_gaussian GaussianDpEvent from_gaussian_mechanism "
    "analytic_gaussian AnalyticGaussianMechanism GaussianAnalytic normal_mechanism "
    "add_gaussian_noise",
    "Laplace": "laplace_mechanism make_laplace LaplaceDpEvent from_laplace_mechanism "
    "add_laplace_noise",
    "DiscreteGaussian": "discrete_gaussian_mechanism make_discrete_gaussian "
    "DiscreteGaussianDpEvent GaussianDiscrete",
    "DiscreteLaplace": "geometric_mechanism make_geometric DiscreteLaplaceDpEvent "
    "discrete_laplace_mechanism two_sided_geometric",
    "TruncatedLaplace": "LaplaceBoundedNoise",
    "Bounded": "LaplaceTruncated LaplaceBoundedDomain GeometricTruncated bounded_laplace "
    "bounded_gaussian",
    "Staircase": "staircase_mechanism",
    "RandomizedResponse": "randomised_response make_randomized_response "
    "make_randomized_response_bool RandomizedResponseDpEvent warner GeneralizedRandomizedResponse",
    "ExponentialMechanism": "exponential_mechanism make_exponential ExponentialMechanismDpEvent "
    "ExponentialCategorical",
    "PrivateQuantile": "quantile_mechanism private_median make_private_quantile quantileDP",
    "ReportNoisyMax": "report_noisy_max make_report_noisy_max noisy_argmax",
    "AboveThreshold": "sparse_vector sparse_vector_technique make_above_threshold",
    "Composed": "compose composition basic_composition advanced_composition optimal_composition "
    "adaptive_composition make_basic_composition make_composition ComposedDpEvent "
    "SelfComposedDpEvent ComposeGaussian self_compose",
    "PoissonSubsampled": "PoissonSampledDpEvent poisson_subsampling AmplificationBySampling "
    "amplification_by_sampling privacy_amplification subsample make_population_amplification "
    "PoissonSubsampledGaussianMechanism SampledGaussian",
    "SampledWithoutReplacement": "SampledWithoutReplacementDpEvent without_replacement",
    "Shuffled": "shuffle shuffle_model amplification_by_shuffling",
    "Tuned": "RepeatAndSelectDpEvent private_selection hyperparameter_tuning tuning",
    "MatrixMechanism": "BandMF banded_matrix_factorization",
    "Account": "BudgetAccountant PrivacyAccountant accountant odometer privacy_filter",
    "Adjacency": "NeighboringRelation NeighbouringRelation neighbors neighboring_relation",
    "epsilon": "get_epsilon get_privacy_spent approxDP compute_eps get_smallest_epsilon",
    "delta": "get_delta get_approxDP hockey_stick hockey_stick_divergence compute_delta",
    "beta": "tradeoff trade_off tradeoff_function trade_off_function tradeoff_curve f_dp fdp "
    "get_fDP roc",
    "renyi": "rdp get_rdp renyi_divergence compute_rdp",
    "rho": "zcdp concentrated_dp",
    "mu": "gdp gaussian_dp compute_mu compute_mu_poisson",
    "loss_cdf": "pld privacy_loss_distribution PrivacyLossDistribution prv",
    "total_variation": "tv total_variation_distance",
    "profile": "privacy_profile privacy_curve get_profile",
    "convert": "rdp_to_dp renyi_to_dp zcdp_to_dp dp_to_zcdp gdp_to_dp make_zcdp_to_approxDP "
    "make_fix_delta convert_rdp zCDP_to_approxDP",
    "calibrate": "calibrate_gaussian_mechanism calibrate_dp_mechanism get_smallest_gaussian_noise "
    "mechanism_calibration calibrator calibrate_noise analytic_gaussian_sigma get_sigma",
    "dpsgd": "compute_dp_sgd_privacy compute_dp_sgd_privacy_statement compute_rdp_sample_gaussian "
    "DpSgdPrivacy RdpAccountant PLDAccountant PRVAccountant GaussianAccountant",
    "dpsgd_noise": "get_noise_multiplier find_noise_multiplier make_private_with_epsilon "
    "compute_noise",
    "verify": "check_privacy is_private is_dp test_privacy prove",
    "audit": "audit_mechanism estimate_privacy audit_privacy StatDP DP_Sniper empirical_epsilon",
    "audit_scores": "CanaryScoreAuditor canary audit_canaries membership_inference",
    "audit_one_run": "one_run audit_in_one_run",
    "compare": "best_mechanism choose_mechanism recommend",
    "BoundedSum": "make_sum dp_sum bounded_sum",
    "Mean": "make_mean dp_mean bounded_mean",
    "Count": "make_count dp_count",
    "Histogram": "make_count_by_categories dp_histogram",
    "PrefixSums": "continual_counting prefix_sum running_sum",
}
"""Public names of `dpassay`, each with its names in dp-accounting, OpenDP, Opacus, diffprivlib,
autodp and papers, separated by spaces."""
NAMES = {
    name.lower().replace("_", ""): own
    for own, names in _ELSEWHERE.items()
    for name in names.split()
}
"""Maps a foreign name, in lower case and without underscores, to the name in `dpassay`."""

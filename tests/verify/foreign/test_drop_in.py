"""Accountants in place of those of Opacus and dp-accounting."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import dpassay
from dpassay.verifier.foreign.drop_in import EventAccountant, JaxPrivacyConfig, OpacusAccountant
from tests.verify.foreign.installed import library

DELTA = 1e-5


def _exact(mechanism: str, relation: str = "add-remove") -> dpassay.Interval:
    return dpassay.epsilon(mechanism, DELTA, adjacency=relation)


class TestOpacus:
    def test_its_hook_counts_steps_and_the_answer_is_no_less_than_exact(self) -> None:
        accountant = OpacusAccountant()
        assert accountant.get_epsilon(DELTA) == 0
        hook = accountant.get_optimizer_hook_fn(sample_rate=0.0625)
        for _ in range(10):
            hook(SimpleNamespace(noise_multiplier=1.5, accumulated_iterations=2))
        assert accountant.history == [(1.5, 0.125, 10)]
        exact = _exact("Composed(PoissonSubsampled(Gaussian(1.5), 0.125), 10)")
        assert exact.upper <= accountant.get_epsilon(DELTA) <= float(exact.lower) * (1 + 1e-6)
        assert "shuffled loader does not" in accountant.assumption

    def test_a_checkpoint_is_taken_up_again(self) -> None:
        first, second = OpacusAccountant(), OpacusAccountant()
        first.step(noise_multiplier=2.0, sample_rate=1.0)
        first.step(noise_multiplier=3.0, sample_rate=1.0)
        state = first.state_dict({"more": 1})
        assert state["mechanism"] == OpacusAccountant.mechanism()
        second.load_state_dict(state)
        second.step(noise_multiplier=3.0, sample_rate=1.0)
        assert second.history == [(2.0, 1.0, 1), (3.0, 1.0, 2)]
        assert len(first) == 2
        assert first.history[-1][2] == 1
        with pytest.raises(dpassay.InvalidInputError, match="history"):
            second.load_state_dict({})
        with pytest.raises(dpassay.InvalidInputError, match="alphas"):
            second.get_epsilon(DELTA, alphas=[2])

    def run_of(self, sizes: list[int], rate: float) -> OpacusAccountant:
        """Batches of given sizes, by the hook, which sees a gradient of each record."""
        accountant = OpacusAccountant()
        hook = accountant.get_optimizer_hook_fn(sample_rate=rate)
        for size in sizes:
            parameter = SimpleNamespace(grad_sample=range(size))
            hook(
                SimpleNamespace(noise_multiplier=2.0, accumulated_iterations=1, params=[parameter])
            )
        return accountant

    def test_equal_batches_are_those_of_a_shuffled_loader(self) -> None:
        with pytest.warns(UserWarning, match="the loader shuffles"):
            accountant = self.run_of([256] * 8, 1 / 16)
        assert accountant.shuffled_batch == 256
        with pytest.warns(UserWarning, match="no guarantee by Poisson batches"):
            found = accountant.get_epsilon(DELTA)
        exact = _exact("Composed(PoissonSubsampled(Gaussian(2), 1/16), 8)")
        assert found > float(exact.upper)
        state, again = accountant.state_dict(), OpacusAccountant()
        again.load_state_dict(state)
        with pytest.warns(UserWarning, match="shuffled batches"):
            assert again.get_epsilon(DELTA) == found
        again.step(noise_multiplier=1.0, sample_rate=1 / 16)
        with pytest.raises(dpassay.NotApplicableError, match="poisson_sampling=True"):
            again.get_epsilon(DELTA)

    def test_batches_that_vary_or_hold_everything_are_no_shuffle(self) -> None:
        for sizes, rate in (([250, 260, 256, 256, 251, 256], 1 / 16), ([64] * 50, 1.0)):
            assert self.run_of(sizes, rate).shuffled_batch is None

    def test_without_noise_there_is_no_guarantee(self) -> None:
        accountant = OpacusAccountant()
        accountant.step(noise_multiplier=0.0, sample_rate=0.5)
        assert accountant.get_epsilon(DELTA) == float("inf")


@dataclass
class GaussianDpEvent:
    noise_multiplier: float


@dataclass
class PoissonSampledDpEvent:
    sampling_probability: float
    event: Any


@dataclass
class TruncatedSubsampledGaussianDpEvent:
    dataset_size: int
    sampling_probability: float
    truncated_batch_size: int
    noise_multiplier: float


@dataclass
class RepeatAndSelectDpEvent:
    event: Any


class TestEvents:
    def test_composed_events_have_the_epsilon_and_the_delta(self) -> None:
        accountant = EventAccountant("REPLACE_ONE").compose(GaussianDpEvent(4.0), 3)
        accountant.compose(GaussianDpEvent(2.0))
        exact = _exact("Composed([Composed(Gaussian(4, 2), 3), Gaussian(2, 2)])", "replace-one")
        found = accountant.get_epsilon(DELTA)
        assert exact.upper <= found <= float(exact.lower) * (1 + 1e-9)
        assert DELTA * (1 - 1e-9) < accountant.get_delta(found) <= DELTA
        assert EventAccountant().get_delta(0.0) == 0
        assert "REPLACE_ONE" in accountant.assumption

    def test_what_cannot_be_taken_is_said_in_one_line(self) -> None:
        accountant = EventAccountant("REPLACE_ONE")
        for event in (
            RepeatAndSelectDpEvent(GaussianDpEvent(1.0)),
            PoissonSampledDpEvent(0.1, PoissonSampledDpEvent(0.1, GaussianDpEvent(1.0))),
            TruncatedSubsampledGaussianDpEvent(1000, 0.1, 150, 1.0),
        ):
            reason = accountant.why_not(event)
            assert reason
            assert "\n" not in reason
            assert not accountant.supports(event)
            with pytest.raises(dpassay.DpassayError):
                accountant.compose(event)
        assert EventAccountant().supports(PoissonSampledDpEvent(0.1, GaussianDpEvent(1.0)))

    def test_batches_that_are_cut(self) -> None:
        """As jax-privacy's training accountant asks for them, by its configuration."""
        accountant = JaxPrivacyConfig().create_accountant()
        accountant.compose(TruncatedSubsampledGaussianDpEvent(1000, 0.1, 150, 1.0), 10)
        found = accountant.get_epsilon(target_delta=DELTA)
        run = dpassay.dpsgd(
            1, 100, 1000, steps=10, delta="1e-5",
            sampling="truncated-poisson", truncated_batch_size=150,
        )  # fmt: skip
        assert float(run.epsilon.lower) <= found
        assert found == pytest.approx(float(run.epsilon.upper), rel=1e-6, abs=0)  # 0.1 is a float
        accountant.compose(GaussianDpEvent(1.0))
        assert accountant.get_epsilon(DELTA) > found
        with pytest.raises(dpassay.InvalidInputError, match="truncated_batch_size"):
            accountant.compose(TruncatedSubsampledGaussianDpEvent(1000, 0.1, 0, 1.0))


class TestTheirNames:
    """`dpassay.integrations`: by the library, with what it asks of an accountant of its own."""

    def test_opacus_and_jax_privacy(self) -> None:
        opacus = import_module("dpassay.integrations.opacus")
        assert opacus.OpacusAccountant is OpacusAccountant
        jax = import_module("dpassay.integrations.jax_privacy")
        assert jax.JaxPrivacyConfig is JaxPrivacyConfig

    def test_dp_accounting_takes_it_for_one_of_its_accountants(self) -> None:
        """Its search for the noise asks for a ledger without events, and composes one."""
        theirs = import_module("dp_accounting")
        ours = import_module("dpassay.integrations.dp_accounting").EventAccountant
        assert issubclass(ours, theirs.PrivacyAccountant)
        noise = theirs.calibrate_dp_mechanism(ours, theirs.GaussianDpEvent, 1.0, DELTA)
        at = (dpassay.Gaussian(noise + step) for step in (-2e-6, 2e-6))  # their tolerance is 1e-6
        more, less = (dpassay.epsilon(each, DELTA) for each in at)
        assert less.upper < 1 < more.lower
        composed = ours().compose(theirs.GaussianDpEvent(2.0), 3)
        assert composed.ledger == theirs.SelfComposedDpEvent(theirs.GaussianDpEvent(2.0), 3)


@pytest.mark.filterwarnings("ignore")
class TestTheLibrariesThemselves:
    """Where they are installed."""

    def private(self, engine: Any, *, poisson: bool, rounds: int) -> None:
        """Train a small model with an engine."""
        torch = library("torch")
        model = torch.nn.Linear(2, 2)
        records = torch.utils.data.TensorDataset(torch.ones(40, 2), torch.zeros(40).long())
        model, optimizer, loader = engine.make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=torch.utils.data.DataLoader(records, batch_size=10, shuffle=not poisson),
            noise_multiplier=1.1,
            max_grad_norm=1.0,
            poisson_sampling=poisson,
        )
        for _ in range(rounds):
            for inputs, labels in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(inputs), labels).backward()
                optimizer.step()
        self.model = model

    def test_opacus_trains_and_stores_with_it(self, tmp_path: Path) -> None:
        engines = library("opacus")
        import_module("dpassay.integrations.opacus")
        engine = engines.PrivacyEngine(accountant="dpassay")
        self.private(engine, poisson=True, rounds=1)
        assert engine.accountant.history == [(1.1, 0.25, 4)]
        exact = _exact("Composed(PoissonSubsampled(Gaussian(1.1), 0.25), 4)")
        assert engine.get_epsilon(DELTA) == pytest.approx(float(exact.upper), rel=1e-9, abs=0)
        engine.save_checkpoint(path=tmp_path / "run", module=self.model)
        again = engines.PrivacyEngine(accountant="dpassay")
        again.load_checkpoint(path=tmp_path / "run", module=self.model)
        assert again.accountant.history == engine.accountant.history

    def test_opacus_finds_the_noise_with_it(self) -> None:
        noise = library("opacus.accountants.utils").get_noise_multiplier
        import_module("dpassay.integrations.opacus")
        found = noise(
            target_epsilon=2.0, target_delta=DELTA, sample_rate=0.25, steps=40, accountant="dpassay"
        )
        exact = _exact(f"Composed(PoissonSubsampled(Gaussian({found!r}), 0.25), 40)")
        assert 2 - 0.01 <= float(exact.lower) <= float(exact.upper) <= 2

    def test_a_shuffled_loader_of_opacus_is_seen(self) -> None:
        engines = library("opacus")
        engine = engines.PrivacyEngine(accountant="dpassay")
        with pytest.warns(
            UserWarning, match="batches in a row had 10 records: the loader shuffles"
        ):
            self.private(engine, poisson=False, rounds=5)
        with pytest.warns(UserWarning, match="is that of shuffled batches"):
            found = engine.get_epsilon(DELTA)
        run = dpassay.dpsgd(1.1, 10, 40, steps=20, delta="1e-5", sampling="shuffle")
        assert found == pytest.approx(float(run.epsilon.upper), rel=1e-6, abs=0)

    def test_jax_privacy_takes_the_configuration(self) -> None:
        analysis = library("jax_privacy.accounting.analysis")
        accountant = analysis.DpsgdTrainingAccountant(JaxPrivacyConfig())
        run = analysis.DpParams(
            noise_multipliers=1.1, batch_size=256, num_samples=60000, delta=DELTA
        )
        exact = _exact("Composed(PoissonSubsampled(Gaussian(1.1), 256/60000), 7032)")
        found = accountant.compute_epsilon(7032, run)
        assert found == pytest.approx(float(exact.upper), rel=1e-7, abs=0)


def test_neither_library_is_imported() -> None:
    code = (
        "import sys, dpassay.verifier.foreign.drop_in; "
        "sys.exit(bool({'opacus', 'torch', 'dp_accounting'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

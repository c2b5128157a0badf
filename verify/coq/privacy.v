(** This file stands alone. `coqc` checks it; Coq needs the library coq-interval. *)
From Coq Require Import Reals Lra Lia List FinFun ZArith QArith Qreals.
From Coquelicot Require Import Coquelicot.
From Interval Require Import Tactic.
Import ListNotations.
Open Scope R_scope.

(** Differential privacy, and what refutes it. *)

(** [D] are datasets and [E] events; [P x S] is the probability that the release on [x] is in [S]. *)
Definition dp {D E : Type} (neighbours : D -> D -> Prop) (event : E -> Prop) (P : D -> E -> R)
    (eps delta : R) : Prop :=
  forall x y S, neighbours x y -> event S -> P x S <= exp eps * P y S + delta.

(** One event with P - e^eps Q > delta refutes it; [p] is below P, and [q] above Q. *)
Lemma refutes {D E : Type} {neighbours : D -> D -> Prop} {event : E -> Prop} {P : D -> E -> R}
    {eps delta : R} (x y : D) (S : E) (p q : R) :
  neighbours x y -> event S -> p <= P x S -> P y S <= q -> p - exp eps * q > delta ->
  ~ dp neighbours event P eps delta.
Proof.
  intros near is_event below above more claim.
  pose proof (claim x y S near is_event).
  pose proof (Rmult_le_compat_l _ _ _ (Rlt_le _ _ (exp_pos eps)) above). lra.
Qed.

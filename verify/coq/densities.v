(** Real noise added to a number. *)

(** An event is a finite union of intervals [a1, b1], [a2, b2], ... with a1 <= b1 <= a2 <= b2 ... *)
Fixpoint ordered (S : list (R * R)) : Prop :=
  match S with
  | nil => True
  | (a, b) :: rest =>
      a <= b /\ match rest with nil => True | (c, _) :: _ => b <= c end /\ ordered rest
  end.

(** The true answer [x] plus noise of the density [f] is in the event with this probability. *)
Fixpoint release (f : R -> R) (x : R) (S : list (R * R)) : R :=
  match S with
  | nil => 0
  | (a, b) :: rest => RInt (fun y => f (y - x)) a b + release f x rest
  end.

(** True answers of neighbours differ by at most the sensitivity. *)
Definition within (sensitivity x y : R) : Prop := Rabs (x - y) <= sensitivity.

Lemma within_self (s : R) : 0 <= s -> within s s 0.
Proof. intros positive. unfold within. rewrite Rminus_0_r, Rabs_pos_eq; lra. Qed.

Definition gaussian (sigma z : R) : R := exp (- (z / sigma) ^ 2 / 2) / (sigma * sqrt (2 * PI)).
Definition laplace (b z : R) : R := exp (- (Rabs z / b)) / (2 * b).
Definition logistic (b z : R) : R := exp (- (z / b)) / (b * (1 + exp (- (z / b))) ^ 2).

(** Where the densities are within a factor e^eps of each other, so are all probabilities. *)
Lemma pointwise (f : R -> R) (sensitivity eps delta : R) :
  (forall z, continuous f z) -> 0 <= delta ->
  (forall z s, Rabs s <= sensitivity -> f (z + s) <= exp eps * f z) ->
  dp (within sensitivity) ordered (release f) eps delta.
Proof.
  intros smooth positive factor x y S near is_event.
  enough (release f x S <= exp eps * release f y S) by lra.
  assert (integrable : forall m a b, ex_RInt (fun u => f (u - m)) a b).
  { intros m a b. apply (ex_RInt_continuous (V := R_CompleteNormedModule)). intros z _.
    apply (continuous_comp (fun u => u - m) f).
    - apply (continuous_minus (fun u => u) (fun _ => m)); [apply continuous_id|apply continuous_const].
    - apply smooth. }
  induction S as [|[a b] rest IH]; simpl; [lra|].
  destruct is_event as [less [_ others]]. specialize (IH others).
  enough (RInt (fun u => f (u - x)) a b <= exp eps * RInt (fun u => f (u - y)) a b) by lra.
  change (exp eps * RInt (fun u => f (u - y)) a b)
    with (scal (exp eps) (RInt (fun u => f (u - y)) a b)).
  rewrite <- (RInt_scal _ _ _ _ (integrable y a b)).
  apply (RInt_le (fun u => f (u - x)) (fun u => scal (exp eps) (f (u - y))) a b less);
    [apply integrable|apply (ex_RInt_scal (V := R_NormedModule)), integrable|].
  intros u _. change (f (u - x) <= exp eps * f (u - y)). replace (u - x) with ((u - y) + (y - x)) by ring.
  apply factor. rewrite Rabs_minus_sym. exact near.
Qed.

Lemma exp_le (x y : R) : x <= y -> exp x <= exp y.
Proof. intros [less| ->]; [left; now apply exp_increasing|right; reflexivity]. Qed.

Lemma laplace_dp (b sensitivity eps delta : R) :
  0 < b -> 0 <= delta -> sensitivity / b <= eps ->
  dp (within sensitivity) ordered (release (laplace b)) eps delta.
Proof.
  intros positive nonnegative enough_noise. apply pointwise; [|assumption|].
  - intro z. unfold laplace.
    apply (continuous_comp (fun z => Rabs z) (fun u => exp (- (u / b)) / (2 * b))).
    + apply continuous_Rabs.
    + apply (ex_derive_continuous (fun u => exp (- (u / b)) / (2 * b))). auto_derive. lra.
  - intros z s near. unfold laplace, Rdiv at 1 3. rewrite <- Rmult_assoc, <- exp_plus.
    apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat; lra|]. apply exp_le.
    pose proof (Rabs_triang (z + s) (- s)) as triangle.
    replace (z + s + - s) with z in triangle by ring. rewrite Rabs_Ropp in triangle.
    apply Rle_trans with (- (Rabs z / b) + sensitivity / b); [|lra].
    unfold Rdiv. pose proof (Rinv_0_lt_compat b positive). nra.
Qed.

(** Least noise: no private law costs less (weak duality), and one costs so much. *)

Section Duality.
(** The release on [x] adds noise of the masses [m (key x)]. *)
Variables (key : Z -> Z) (neighbours : Z -> Z -> Prop) (event : list Z -> Prop).
Variables (m : Z -> Z -> R) (eps delta : R) (high : Q).
Hypothesis private : dp neighbours event (probability (fun x o => m (key x) (o - x))) eps delta.
Hypothesis nonnegative : forall k z, 0 <= m k z.
Hypothesis delta_positive : 0 <= delta.
Hypothesis above : exp eps <= Q2R high.

(** A test of [x] against [y]: weights of outputs, each from 0 to [top]. *)
Record test := Test { first : Z; second : Z; top : Q; weights : list (Z * Q) }.

Definition sound (t : test) : Prop :=
  neighbours (first t) (second t) /\
  forall f, filter f (map fst (weights t)) = nil \/ event (filter f (map fst (weights t))).
Definition bounded (t : test) : bool :=
  Qle_bool 0 (top t) &&
  forallb (fun ow => Qle_bool 0 (snd ow) && Qle_bool (snd ow) (top t)) (weights t).

(** The coefficients of the masses in a test, with their places. *)
Definition terms (t : test) : list ((Z * Z) * Q) :=
  flat_map (fun ow : Z * Q => let (o, w) := ow in
    [((key (first t), o - first t)%Z, w); ((key (second t), o - second t)%Z, (- (high * w))%Q)])
    (weights t).
Definition mass (at_place : Z * Z) : R := m (fst at_place) (snd at_place).
Definition weighted (l : list ((Z * Z) * Q)) : R := sum (fun c => Q2R (snd c) * mass (fst c)) l.

Lemma test_bound t : sound t -> bounded t = true -> weighted (terms t) <= Q2R (top t) * delta.
Proof.
  unfold sound, bounded, weighted, terms. destruct t as [x y l w]. simpl.
  rewrite andb_true_iff. intros [near events] [l_positive range_of].
  apply Qle_bool_iff, Qle_Rle in l_positive. rewrite Q2R_zero in l_positive.
  set (g := fun o => m (key x) (o - x) + - exp eps * m (key y) (o - y)).
  set (f := fun o => if Rlt_dec 0 (g o) then true else false).
  assert (sum g (filter f (map fst w)) <= delta) as claim.
  { destruct (events f) as [-> |is_event]; [exact delta_positive|].
    pose proof (private x y _ near is_event) as claim. unfold probability in claim.
    unfold g. rewrite sum_linear. lra. }
  apply Rle_trans with (Q2R l * sum g (filter f (map fst w)));
    [|apply Rmult_le_compat_l; assumption].
  clear claim events near. induction w as [|[o q] w IH]; simpl; [lra|].
  simpl in range_of. rewrite !andb_true_iff in range_of. destruct range_of as [[q_positive small] rest].
  specialize (IH rest).
  apply Qle_bool_iff, Qle_Rle in q_positive. rewrite Q2R_zero in q_positive.
  apply Qle_bool_iff, Qle_Rle in small. unfold mass at 1 2. simpl. rewrite Q2R_opp, Q2R_mult.
  assert (Q2R q * m (key x) (o - x) + - (Q2R high * Q2R q) * m (key y) (o - y) <= Q2R q * g o).
  { unfold g. pose proof (nonnegative (key y) (o - y)).
    assert (exp eps * (Q2R q * m (key y) (o - y)) <= Q2R high * (Q2R q * m (key y) (o - y)))
      by (apply Rmult_le_compat_r; [apply Rmult_le_pos|]; assumption). lra. }
  unfold f at 1. destruct (Rlt_dec 0 (g o)) as [more|less]; simpl; nra.
Qed.

Definition same (a b : Z * Z) : bool := ((fst a =? fst b) && (snd a =? snd b))%Z.
Definition coefficient (l : list ((Z * Z) * Q)) (a : Z * Z) : Q :=
  fold_right (fun c s => if same (fst c) a then Qred (snd c + s) else s) 0%Q l.

Lemma same_iff a b : same a b = true <-> a = b.
Proof.
  unfold same. destruct a, b. rewrite andb_true_iff, !Z.eqb_eq. simpl.
  split; [intros [-> ->]|intros [= -> ->]]; auto.
Qed.

Lemma pick (c : R) a grid : NoDup grid -> mass a = 0 \/ In a grid ->
  c * mass a = sum (fun b => (if same a b then c else 0) * mass b) grid.
Proof.
  induction grid as [|b grid IH]; simpl; intros different inside.
  - destruct inside as [-> |[]]. lra.
  - inversion different as [|? ? new rest]; subst. destruct (same a b) eqn:equal.
    + apply same_iff in equal. subst b.
      enough (sum (fun b => (if same a b then c else 0) * mass b) grid = 0) by lra.
      clear - new. induction grid as [|b grid IH]; simpl; [reflexivity|].
      rewrite IH by (intros is_in; apply new; now right).
      destruct (same a b) eqn:equal; [|lra]. apply same_iff in equal. elim new. now left.
    + rewrite IH; [lra|assumption|]. destruct inside as [|[<-|]]; auto.
      enough (same b b = true) by congruence. now apply same_iff.
Qed.

(** Coefficients of the same place are added up; off the grid there is no mass. *)
Lemma grouped l grid : NoDup grid -> (forall a, mass a = 0 \/ In a grid) ->
  weighted l = sum (fun a => Q2R (coefficient l a) * mass a) grid.
Proof.
  intros different inside. unfold weighted. induction l as [|[a c] l IH].
  - simpl. clear. induction grid as [|b grid IH]; simpl; [reflexivity|].
    rewrite <- IH, Q2R_zero. lra.
  - cbn [sum fst snd]. rewrite IH, (pick _ a grid) by auto. clear.
    induction grid as [|b grid IH]; cbn [sum]; [lra|].
    change (coefficient ((a, c) :: l) b)
      with (if same a b then Qred (c + coefficient l b) else coefficient l b).
    destruct (same a b); [rewrite (Qeq_eqR _ _ (Qred_correct _)), Q2R_plus|]; lra.
Qed.

(** Multipliers [lower] that no cell exceeds bound the cost and delta from below. *)
Lemma weak_duality (tests : list test) (grid : list (Z * Z)) (cost lower : Z * Z -> Q) :
  NoDup grid -> (forall a, mass a = 0 \/ In a grid) ->
  (forall t, In t tests -> sound t) -> forallb bounded tests = true ->
  (let l := flat_map terms tests in
   forallb (fun a => Qle_bool (lower a) (cost a + coefficient l a)) grid = true) ->
  sum (fun a => Q2R (lower a) * mass a) grid <=
  sum (fun a => Q2R (cost a) * mass a) grid + Q2R (total (map top tests)) * delta.
Proof.
  intros different inside good small below. cbv zeta in below.
  assert (weighted (flat_map terms tests) <= Q2R (total (map top tests)) * delta) as all.
  { clear below. induction tests as [|t tests IH]; simpl; [rewrite Q2R_zero; unfold weighted; simpl; lra|].
    simpl in small. apply andb_true_iff in small. destruct small as [one rest].
    unfold weighted in *. rewrite sum_app, Q2R_plus.
    assert (sum (fun c => Q2R (snd c) * mass (fst c)) (terms t) <= Q2R (top t) * delta)
      by (apply test_bound; auto; apply good; now left).
    assert (sum (fun c => Q2R (snd c) * mass (fst c)) (flat_map terms tests) <=
            Q2R (total (map top tests)) * delta)
      by (apply IH; auto; intros; apply good; now right). lra. }
  rewrite (grouped _ grid) in all by assumption.
  apply Rle_trans with (sum (fun a => Q2R (cost a) * mass a + 1 *
    (Q2R (coefficient (flat_map terms tests) a) * mass a)) grid); [|rewrite sum_linear; lra].
  apply sum_le. intros a is_in. rewrite forallb_forall in below.
  specialize (below a is_in). apply Qle_bool_iff, Qle_Rle in below. rewrite Q2R_plus in below.
  pose proof (nonnegative (fst a) (snd a)). unfold mass. nra.
Qed.
End Duality.

(** Laws on -D, ..., D, and their expected cost. *)
Definition support (D : nat) : list Z := range (- Z.of_nat D) (2 * D + 1).
Definition law_on (D : nat) (p : Z -> R) : Prop :=
  (forall z, 0 <= p z) /\ (forall z, ~ In z (support D) -> p z = 0) /\ sum p (support D) = 1.
Definition expected (D : nat) (c : Z -> Q) (p : Z -> R) : R :=
  sum (fun z => Q2R (c z) * p z) (support D).
Definition added (p : Z -> R) (x z : Z) : R := p (z - x)%Z.
Definition square (z : Z) : Q := inject_Z (z * z).
Definition absolute (z : Z) : Q := inject_Z (Z.abs z).
Definition error (z : Z) : Q := if (z =? 0)%Z then 0%Q else 1%Q.

Lemma NoDup_range low n : NoDup (range low n).
Proof.
  apply FinFun.Injective_map_NoDup; [|apply seq_NoDup]. intros a b equal. lia.
Qed.

Lemma at_zero_sum (c : R) (p : Z -> R) low n : (low <= 0 < low + Z.of_nat n)%Z ->
  sum (fun z => (if (z =? 0)%Z then c else 0) * p z) (range low n) = c * p 0%Z.
Proof.
  intros inside. pose proof (in_range low n 0 inside) as is_in.
  pose proof (NoDup_range low n) as different. revert is_in different. generalize (range low n). clear.
  induction l as [|z l IH]; simpl; [tauto|]. intros is_in different.
  inversion different as [|? ? new rest]; subst. destruct (Z.eqb_spec z 0) as [-> |other].
  - enough (sum (fun z => (if (z =? 0)%Z then c else 0) * p z) l = 0) by lra.
    clear - new. induction l as [|z l IH]; simpl; [reflexivity|].
    rewrite IH by (intros is_in; apply new; now right).
    destruct (Z.eqb_spec z 0) as [-> |]; [elim new; now left|lra].
  - rewrite IH; [lra| |assumption]. destruct is_in; [congruence|assumption].
Qed.

Lemma NoDup_filter_map (w : list (Z * Q)) f :
  nodup Z.eq_dec (map fst w) = map fst w ->
  filter f (map fst w) = nil \/ NoDup (filter f (map fst w)).
Proof. intros different. right. apply NoDup_filter. rewrite <- different. apply NoDup_nodup. Qed.

Definition noise_tests (S : Z) (tests : list test) : bool :=
  forallb (fun t => (Z.abs (first t - second t) <=? S)%Z &&
    if list_eq_dec Z.eq_dec (nodup Z.eq_dec (map fst (weights t))) (map fst (weights t))
    then true else false) tests.

(** [low] of mass, and [fix_] more at 0, where the mass is [eta] if [fix_] is not 0. *)
Definition noise_dual (D S : nat) (high : Q) (c : Z -> Q) (low fix_ most : Q)
    (tests : list test) : bool :=
  noise_tests (Z.of_nat S) tests && forallb bounded tests &&
  Qle_bool (total (map top tests)) most &&
  let l := flat_map (terms (fun _ => 0%Z) high) tests in
  forallb (fun z => Qle_bool (low + (if (z =? 0)%Z then fix_ else 0))
                             (c z + coefficient l (0%Z, z))) (support D).

Lemma noise_lower D S high c low fix_ most tests p eps delta :
  exp eps <= Q2R high -> noise_dual D S high c low fix_ most tests = true -> 0 <= delta ->
  law_on D p -> dp (apart (Z.of_nat S)) (@NoDup Z) (probability (added p)) eps delta ->
  Q2R low + Q2R fix_ * p 0%Z <= expected D c p + Q2R most * delta.
Proof.
  unfold noise_dual, noise_tests. rewrite !andb_true_iff, !forallb_forall.
  intros above [[[sound_ bounded_] all] cells] positive_ [nonnegative [outside whole]] private.
  set (m := fun k z : Z => if (k =? 0)%Z then p z else 0).
  pose proof (weak_duality (fun _ => 0%Z) (apart (Z.of_nat S)) (@NoDup Z) m eps delta high private)
    as dual.
  specialize (dual (fun k z => ltac:(unfold m; destruct (k =? 0)%Z; [apply nonnegative|lra]))
    positive_ above tests (map (pair 0%Z) (support D)) (fun a => c (snd a))
    (fun a => low + (if (snd a =? 0)%Z then fix_ else 0))%Q).
  rewrite !sum_map in dual. unfold mass, m in dual. simpl in dual.
  apply Qle_bool_iff, Qle_Rle, (Rmult_le_compat_r delta) in all; [|assumption].
  apply Rle_trans with (expected D c p + Q2R (total (map top tests)) * delta); [|lra]. clear all.
  apply Rle_trans with (sum (fun z => Q2R (low + (if (z =? 0)%Z then fix_ else 0)) * p z) (support D)).
  - right. replace (Q2R low) with (Q2R low * sum p (support D)) by (rewrite whole; lra).
    rewrite <- (at_zero_sum (Q2R fix_) p (- Z.of_nat D) (2 * D + 1)) by lia. fold (support D).
    clear. induction (support D) as [|z l IH]; simpl; [lra|].
    rewrite Q2R_plus. destruct (z =? 0)%Z; [|rewrite Q2R_zero]; lra.
  - apply dual; clear dual.
    + apply FinFun.Injective_map_NoDup; [|apply NoDup_range]. now intros a b [= ->].
    + intros [k z]. simpl. destruct (Z.eqb_spec k 0) as [-> |]; [|now left].
      destruct (in_dec Z.eq_dec z (support D)); [right; now apply in_map|left; auto].
    + intros t is_in. specialize (sound_ t is_in). apply andb_true_iff in sound_.
      destruct sound_ as [near different]. split; [apply Z.leb_le, near|]. intros f.
      apply NoDup_filter_map. now destruct (list_eq_dec _ _ _).
    + apply forallb_forall, bounded_.
    + cbv zeta. rewrite forallb_forall. intros a is_in. apply in_map_iff in is_in.
      destruct is_in as [z [<- is_in]]. apply cells, is_in.
Qed.

(** The least cost, or the least delta, is at least [least]. *)
Lemma noise_least_cost D S high c low fix_ most tests eta least p eps delta :
  exp eps <= Q2R high -> noise_dual D S high c low fix_ most tests = true -> 0 <= delta ->
  least <= Q2R low + Q2R fix_ * eta - Q2R most * delta ->
  law_on D p -> fix_ = 0%Q \/ p 0%Z = eta ->
  dp (apart (Z.of_nat S)) (@NoDup Z) (probability (added p)) eps delta -> least <= expected D c p.
Proof.
  intros above dual positive_ enough_ law at_zero private.
  pose proof (noise_lower _ _ _ _ _ _ _ _ _ _ _ above dual positive_ law private) as bound.
  destruct at_zero as [-> |equal]; [rewrite Q2R_zero in *|rewrite equal in bound]; lra.
Qed.

Lemma noise_least_delta D S high low fix_ most tests eta least p eps delta :
  exp eps <= Q2R high -> noise_dual D S high (fun _ => 0%Q) low fix_ most tests = true ->
  0 < Q2R most -> least * Q2R most <= Q2R low + Q2R fix_ * eta -> 0 <= delta ->
  law_on D p -> fix_ = 0%Q \/ p 0%Z = eta ->
  dp (apart (Z.of_nat S)) (@NoDup Z) (probability (added p)) eps delta -> least <= delta.
Proof.
  intros above dual more enough_ positive_ law at_zero private.
  pose proof (noise_lower _ _ _ _ _ _ _ _ _ _ _ above dual positive_ law private) as bound.
  assert (expected D (fun _ => 0%Q) p = 0) as free.
  { unfold expected. induction (support D) as [|z l IH]; simpl; [reflexivity|].
    rewrite IH, Q2R_zero. lra. }
  rewrite free, Rplus_0_l, (Rmult_comm _ delta) in bound.
  apply (Rmult_le_reg_r (Q2R most)); [assumption|].
  destruct at_zero as [-> |equal]; [rewrite Q2R_zero in *|rewrite equal in bound]; lra.
Qed.

Lemma rational_le (a b : Q) (r : R) : r = Q2R b -> Qle_bool a b = true -> Q2R a <= r.
Proof. intros -> less. apply Qle_Rle, Qle_bool_iff, less. Qed.

(** A list of masses is a law on -D, ..., D. *)
Lemma noise_law D l : length l = (2 * D + 1)%nat -> is_law l = true ->
  law_on D (fun z => Q2R (at_ (- Z.of_nat D) l z)).
Proof.
  intros size law. unfold is_law in law. apply andb_true_iff in law. destruct law as [all one].
  split; [|split].
  - intros z. now apply at_nonnegative.
  - intros z out. rewrite outside_range with (n := (2 * D + 1)%nat) by assumption. apply Q2R_zero.
  - rewrite Q2R_sum. apply Qeq_bool_iff, Qeq_eqR in one. replace 1 with (Q2R 1) by (unfold Q2R; simpl; lra).
    rewrite <- one. do 2 f_equal. unfold support, range. rewrite map_map, <- size.
    apply (nth_ext _ _ 0%Q 0%Q); [now rewrite map_length, seq_length|]. intros i less.
    rewrite map_length, seq_length in less.
    rewrite (nth_indep _ 0%Q (at_ (- Z.of_nat D) l (- Z.of_nat D + Z.of_nat 0)))
      by now rewrite map_length, seq_length.
    rewrite (map_nth (fun i => at_ (- Z.of_nat D) l (- Z.of_nat D + Z.of_nat i)) _ 0%nat).
    rewrite seq_nth by assumption. unfold at_.
    destruct (Z.ltb_spec (- Z.of_nat D + Z.of_nat (0 + i)) (- Z.of_nat D)); [lia|]. f_equal. lia.
Qed.

Lemma noise_expected D l c : expected D c (fun z => Q2R (at_ (- Z.of_nat D) l z)) =
  Q2R (total (map (fun z => c z * at_ (- Z.of_nat D) l z)%Q (support D))).
Proof.
  unfold expected. rewrite <- Q2R_sum. induction (support D) as [|z s IH]; simpl; [reflexivity|].
  rewrite IH, Q2R_mult. reflexivity.
Qed.

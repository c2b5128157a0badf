(** Laws on integers with finitely many outcomes. *)

(** The sum of [f] over a list. *)
Fixpoint sum {A : Type} (f : A -> R) (l : list A) : R :=
  match l with nil => 0 | a :: rest => f a + sum f rest end.

(** An event is a list of different outcomes; with the masses [p x] it has this probability. *)
Definition probability (p : Z -> Z -> R) (x : Z) (S : list Z) : R := sum (p x) S.
Definition rational (p : Z -> Z -> Q) (x z : Z) : R := Q2R (p x z).

(** The masses [l] stand on [low], [low + 1], ...; elsewhere there is none. *)
Definition at_ (low : Z) (l : list Q) (z : Z) : Q :=
  if (z <? low)%Z then 0%Q else nth (Z.to_nat (z - low)) l 0%Q.
Definition total (l : list Q) : Q := fold_right Qplus 0%Q l.
Definition is_law (l : list Q) : bool := forallb (Qle_bool 0) l && Qeq_bool (total l) 1.

(** A table has a row of masses for each input; integer noise is added to a number. *)
Definition table (rows : list (list Q)) (x z : Z) : Q := at_ 0 (nth (Z.to_nat x) rows nil) z.
Definition listed (pairs : list (Z * Z)) (x y : Z) : Prop := In (x, y) pairs.
Definition noise (low : Z) (l : list Q) (x z : Z) : Q := at_ low l (z - x).
Definition apart (sensitivity x y : Z) : Prop := (Z.abs (x - y) <= sensitivity)%Z.

(** Randomized response: of [k] categories the true one is kept with odds e^e to 1. *)
Definition response (e : R) (k x z : Z) : R :=
  if ((0 <=? z) && (z <? k))%Z
  then (if Z.eq_dec z x then exp e else 1) / (exp e + IZR k - 1) else 0.
Definition categories (k x y : Z) : Prop := (0 <= x < k /\ 0 <= y < k)%Z.

Definition range (low : Z) (n : nat) : list Z := map (fun i => (low + Z.of_nat i)%Z) (seq 0 n).
Definition positive (q : Q) : Q := if Qle_bool q 0 then 0%Q else q.

Lemma sum_le {A} (f g : A -> R) l : (forall a, In a l -> f a <= g a) -> sum f l <= sum g l.
Proof.
  induction l as [|a l IH]; simpl; intros less; [lra|].
  pose proof (less a (or_introl eq_refl)). assert (sum f l <= sum g l) by auto. lra.
Qed.

Lemma sum_app {A} (f : A -> R) l m : sum f (l ++ m) = sum f l + sum f m.
Proof. induction l; simpl; lra. Qed.

Lemma sum_linear {A} (f g : A -> R) c l : sum (fun a => f a + c * g a) l = sum f l + c * sum g l.
Proof. induction l; simpl; lra. Qed.

Lemma sum_map {A B} (f : B -> R) (h : A -> B) l : sum f (map h l) = sum (fun a => f (h a)) l.
Proof. induction l; simpl; lra. Qed.

(** Different outcomes have at most the sum over all outcomes at which [f] is not 0. *)
Lemma sum_inside (f : Z -> R) l : forall S, NoDup S -> (forall z, 0 <= f z) ->
  (forall z, ~ In z l -> f z = 0) -> sum f S <= sum f l.
Proof.
  enough (general : forall S l', NoDup S -> (forall z, 0 <= f z) ->
    (forall z, In z S -> ~ In z l' -> f z = 0) -> sum f S <= sum f l').
  { intros S different nonnegative outside. apply general; auto. }
  induction S as [|a S IH]; intros m different nonnegative outside.
  - simpl. clear outside. induction m as [|b m IHm]; simpl; [lra|]. pose proof (nonnegative b). lra.
  - simpl. inversion different as [|? ? new rest]; subst.
    destruct (in_dec Z.eq_dec a m) as [inside|out].
    + destruct (in_split a m inside) as [m1 [m2 ->]]. rewrite sum_app. simpl.
      assert (sum f S <= sum f (m1 ++ m2)) as less.
      { apply IH; auto. intros z is_in out. apply outside; [now right|].
        intros again. apply in_app_or in again. destruct again as [|[<-|]]; auto using in_or_app. }
      rewrite sum_app in less. lra.
    + rewrite (outside a (or_introl eq_refl) out).
      assert (sum f S <= sum f m) by (apply IH; auto; intros; apply outside; auto; now right). lra.
Qed.

Lemma Q2R_zero : Q2R 0 = 0.
Proof. unfold Q2R. simpl. lra. Qed.

Lemma Q2R_sum {A} (f : A -> Q) l : sum (fun a => Q2R (f a)) l = Q2R (total (map f l)).
Proof. induction l; simpl; [symmetry; apply Q2R_zero|]. rewrite Q2R_plus, IHl. reflexivity. Qed.

Lemma in_range low n z : (low <= z < low + Z.of_nat n)%Z -> In z (range low n).
Proof.
  intros inside. apply in_map_iff. exists (Z.to_nat (z - low)).
  split; [|apply in_seq]; lia.
Qed.

Lemma outside_range low n l z : length l = n -> ~ In z (range low n) -> at_ low l z = 0%Q.
Proof.
  intros <- out. unfold at_. destruct (Z.ltb_spec z low); [reflexivity|].
  apply nth_overflow. enough (~ (z < low + Z.of_nat (length l))%Z) by lia.
  intros inside. apply out, in_range. lia.
Qed.

Lemma at_nonnegative low l z : forallb (Qle_bool 0) l = true -> 0 <= Q2R (at_ low l z).
Proof.
  intros all. rewrite forallb_forall in all. unfold at_.
  rewrite <- Q2R_zero.
  destruct (z <? low)%Z; [apply Rle_refl|]. apply Qle_Rle.
  destruct (nth_in_or_default (Z.to_nat (z - low)) l 0%Q) as [inside| ->]; [|apply Qle_refl].
  apply Qle_bool_iff. auto.
Qed.

(** The excess of two laws over all outcomes, with a rational [e] below e^eps, bounds every event. *)
Lemma dominated (p q : Z -> Q) (l S : list Z) (e delta : Q) (eps : R) :
  Q2R e <= exp eps -> (forall z, 0 <= Q2R (q z)) -> (forall z, ~ In z l -> p z = 0%Q) ->
  Qle_bool 0 e = true ->
  Qle_bool (total (map (fun z => positive (p z - e * q z)) l)) delta = true -> NoDup S ->
  sum (fun z => Q2R (p z)) S <= exp eps * sum (fun z => Q2R (q z)) S + Q2R delta.
Proof.
  intros below nonnegative outside e_positive excess different.
  apply Qle_bool_iff, Qle_Rle in excess. rewrite <- Q2R_sum in excess.
  apply Qle_bool_iff, Qle_Rle in e_positive. rewrite Q2R_zero in e_positive.
  assert (step : forall r, Q2R r <= Q2R (positive r) /\ 0 <= Q2R (positive r)).
  { intros r. unfold positive. destruct (Qle_bool r 0) eqn:sign.
    - apply Qle_bool_iff, Qle_Rle in sign. rewrite Q2R_zero in *. lra.
    - split; [lra|]. rewrite <- Q2R_zero. apply Qle_Rle. apply Qlt_le_weak, Qnot_le_lt. intros less. apply Qle_bool_iff in less. congruence. }
  assert (sum (fun z => Q2R (positive (p z - e * q z))) S <=
          sum (fun z => Q2R (positive (p z - e * q z))) l) as part.
  { apply sum_inside; [assumption|intros; apply step|]. intros z out. rewrite outside by assumption.
    apply Rle_antisym; [|apply step]. unfold positive.
    destruct (Qle_bool (0 - e * q z) 0) eqn:sign; [rewrite Q2R_zero; lra|].
    rewrite Q2R_minus, Q2R_mult, Q2R_zero. specialize (nonnegative z). nra. }
  assert (sum (fun z => Q2R (p z) + - exp eps * Q2R (q z)) S <=
          sum (fun z => Q2R (positive (p z - e * q z))) S) as whole.
  { apply sum_le. intros z _. destruct (step (p z - e * q z)%Q) as [less _].
    rewrite Q2R_minus, Q2R_mult in less. specialize (nonnegative z). nra. }
  rewrite sum_linear in whole. lra.
Qed.

(** One event with a larger excess, for a rational [e] above e^eps, refutes it. *)
Lemma table_refuted (neighbours : Z -> Z -> Prop) (m : Z -> Z -> Q) (x y : Z) S (e d : Q) eps delta :
  delta = Q2R d -> neighbours x y -> nodup Z.eq_dec S = S -> exp eps <= Q2R e ->
  Qle_bool 0 (total (map (m y) S)) = true ->
  Qle_bool (total (map (m x) S) - e * total (map (m y) S)) d = false ->
  ~ dp neighbours (@NoDup Z) (probability (rational m)) eps delta.
Proof.
  intros -> near different above nonnegative more.
  apply (refutes x y S (Q2R (total (map (m x) S))) (Q2R (total (map (m y) S)))).
  - exact near.
  - rewrite <- different. apply NoDup_nodup.
  - right. symmetry. apply Q2R_sum.
  - right. apply Q2R_sum.
  - apply Qle_bool_iff, Qle_Rle in nonnegative. rewrite Q2R_zero in nonnegative.
    assert (d < total (map (m x) S) - e * total (map (m y) S))%Q as less.
    { apply Qnot_le_lt. intros less. apply Qle_bool_iff in less. congruence. }
    apply Qlt_Rlt in less. rewrite Q2R_minus, Q2R_mult in less.
    pose proof (Rmult_le_compat_r _ _ _ nonnegative above). lra.
Qed.

Definition table_check (rows : list (list Q)) (pairs : list (Z * Z)) (n : nat) (e delta : Q) : bool :=
  Qle_bool 0 e && forallb is_law rows && forallb (fun row => Nat.eqb (length row) n) rows &&
  forallb (fun xy : Z * Z =>
    let row x := nth (Z.to_nat x) rows nil in
    Nat.ltb (Z.to_nat (fst xy)) (length rows) && Nat.ltb (Z.to_nat (snd xy)) (length rows) &&
    Qle_bool (total (map (fun z => positive (at_ 0 (row (fst xy)) z - e * at_ 0 (row (snd xy)) z))
                         (range 0 n))) delta) pairs.

Lemma table_dp rows pairs n e d eps delta :
  delta = Q2R d -> Q2R e <= exp eps -> table_check rows pairs n e d = true ->
  dp (listed pairs) (@NoDup Z) (probability (rational (table rows))) eps delta.
Proof.
  unfold table_check. rewrite !andb_true_iff, !forallb_forall.
  intros -> below [[[e_positive laws] lengths] all] x y S near is_event.
  specialize (all (x, y) near). cbn [fst snd] in all. rewrite !andb_true_iff, !Nat.ltb_lt in all.
  destruct all as [[is_x is_y] excess].
  eapply dominated; eauto.
  - intros z. apply at_nonnegative. specialize (laws _ (nth_In rows nil is_y)).
    unfold is_law in laws. apply andb_true_iff in laws. apply laws.
  - intros z. apply outside_range. apply Nat.eqb_eq, lengths, nth_In, is_x.
Qed.

Definition noise_check (low : Z) (l : list Q) (sensitivity : nat) (e delta : Q) : bool :=
  Qle_bool 0 e && is_law l &&
  forallb (fun s => Qle_bool (total (map (fun z => positive (at_ low l z - e * at_ low l (z + s)))
                                         (range low (length l)))) delta)
          (range (- Z.of_nat sensitivity) (2 * sensitivity + 1)).

Lemma noise_dp low l sensitivity e d eps delta :
  delta = Q2R d -> Q2R e <= exp eps -> noise_check low l sensitivity e d = true ->
  dp (apart (Z.of_nat sensitivity)) (@NoDup Z) (probability (rational (noise low l))) eps delta.
Proof.
  unfold noise_check, apart, probability, rational, noise. rewrite !andb_true_iff, forallb_forall.
  intros -> below [[e_positive law] all] x y S near is_event.
  assert (In (x - y)%Z (range (- Z.of_nat sensitivity) (2 * sensitivity + 1))) as inside
    by (apply in_range; lia).
  specialize (all _ inside). unfold is_law in law. apply andb_true_iff in law.
  assert (moved : forall m, sum (fun z => Q2R (at_ low l (z - m))) S =
                  sum (fun z => Q2R (at_ low l (z + (x - m)))) (map (fun z => (z - x)%Z) S)).
  { intros m. rewrite sum_map. clear. induction S as [|z S IH]; simpl; [reflexivity|].
    rewrite IH. do 3 f_equal. lia. }
  rewrite (moved x), (moved y), Z.sub_diag.
  replace (sum (fun z => Q2R (at_ low l (z + 0))) (map (fun z => (z - x)%Z) S))
    with (sum (fun z => Q2R (at_ low l z)) (map (fun z => (z - x)%Z) S)).
  - eapply dominated; eauto.
    + intros z. apply at_nonnegative, law.
    + intros z. now apply outside_range.
    + apply FinFun.Injective_map_NoDup; [|assumption]. intros a b same. lia.
  - clear. induction S as [|z S IH]; simpl; [reflexivity|]. rewrite IH, Z.add_0_r. reflexivity.
Qed.

Lemma response_dp (e eps delta : R) (k : Z) :
  0 <= e -> (2 <= k)%Z -> 0 <= delta -> 0 <= eps -> (exp e - exp eps) / (exp e + IZR k - 1) <= delta ->
  dp (categories k) (@NoDup Z) (probability (response e k)) eps delta.
Proof.
  intros e_positive several nonnegative eps_positive enough_noise x y S _ is_event. unfold probability.
  apply IZR_le in several.
  assert (1 <= exp eps) as factor by (pose proof (exp_ineq1_le eps); lra).
  assert (1 <= exp e) as odds by (pose proof (exp_ineq1_le e); lra).
  assert (0 < / (exp e + IZR k - 1)) as c by (apply Rinv_0_lt_compat; lra).
  set (f := fun z => if Z.eq_dec z x then delta else 0).
  assert (sum f S <= sum f [x]) as one.
  { apply sum_inside; [assumption| |]; intros z; unfold f; destruct (Z.eq_dec z x); auto; try lra.
    intros out. elim out. now left. }
  assert (sum (fun z => response e k x z + - exp eps * response e k y z) S <= sum f S) as less.
  { apply sum_le. intros z _. unfold f, response, Rdiv in *.
    destruct ((0 <=? z) && (z <? k))%Z; [|destruct (Z.eq_dec z x); lra].
    remember (/ (exp e + IZR k - 1)) as r. assert (r <= exp eps * r) as less by nra.
    assert (exp eps * r <= exp eps * (exp e * r)) by (apply Rmult_le_compat_l; nra).
    destruct (Z.eq_dec z x), (Z.eq_dec z y); nra. }
  rewrite sum_linear in less. simpl in one. unfold f at 2 in one.
  destruct (Z.eq_dec x x); [lra|congruence].
Qed.

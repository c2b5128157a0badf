(** Least delta of unbiased noise on counts. *)

(** On -min(n, D), ..., D, of mean 0, and without error with probability [eta]. *)
Definition cells (D n : Z) : list Z := range (- Z.min n D) (Z.to_nat (Z.min n D + D + 1)).
Definition count_law (D : Z) (eta : R) (n : Z) (p : Z -> R) : Prop :=
  (forall z, 0 <= p z) /\ (forall z, ~ In z (cells D n) -> p z = 0) /\ sum p (cells D n) = 1 /\
  sum (fun z => IZR z * p z) (cells D n) = 0 /\ p 0%Z = eta.

(** Counts of neighbours from [first] on, and up to [last], if there is one. *)
Definition counted (first : Z) (last : option Z) (x : Z) : Prop :=
  (first <= x)%Z /\ match last with Some b => (x <= b)%Z | None => True end.
Definition next (first : Z) (last : option Z) (x y : Z) : Prop :=
  counted first last x /\ counted first last y /\ Z.abs (x - y) = 1%Z.

(** A single output is the event, or any outputs are. The law of a count is that of its key. *)
Definition single (S : list Z) : Prop := exists z, S = [z].
Definition any : list Z -> Prop := @NoDup Z.
Definition of_key (key : Z -> Z) (p : Z -> Z -> R) (x z : Z) : R := p (key x) (z - x)%Z.
Definition own (x : Z) : Z := x.
Definition shared (first x : Z) : Z := first.

Lemma NoDup_append {A} (l m : list A) :
  NoDup l -> NoDup m -> (forall a, In a l -> ~ In a m) -> NoDup (l ++ m).
Proof.
  induction l as [|a l IH]; simpl; intros different others apart_; [assumption|].
  inversion different; subst. constructor.
  - intros is_in. apply in_app_or in is_in. destruct is_in; [contradiction|]. apply (apart_ a); auto.
  - apply IH; auto.
Qed.

Definition grid (D : Z) (keys : list Z) : list (Z * Z) :=
  flat_map (fun k => map (pair k) (cells D k)) keys.

Lemma in_grid D keys k z : In (k, z) (grid D keys) <-> In k keys /\ In z (cells D k).
Proof.
  unfold grid. rewrite in_flat_map. split.
  - intros [j [is_key is_in]]. apply in_map_iff in is_in. destruct is_in as [y [equal is_in]].
    injection equal as <- <-. auto.
  - intros [is_key is_in]. exists k. split; [assumption|]. now apply in_map.
Qed.

Lemma NoDup_grid D keys : NoDup keys -> NoDup (grid D keys).
Proof.
  induction keys as [|k keys IH]; intros different; [constructor|].
  inversion different as [|? ? new rest]; subst. simpl. apply NoDup_append; auto.
  - apply FinFun.Injective_map_NoDup; [|apply NoDup_range]. now intros a b [= ->].
  - intros [j z] is_in again. apply in_map_iff in is_in. destruct is_in as [y [[= <- <-] _]].
    apply in_grid in again. tauto.
Qed.

Lemma sum_grid (f : Z * Z -> R) D keys :
  sum f (grid D keys) = sum (fun k => sum (fun z => f (k, z)) (cells D k)) keys.
Proof.
  induction keys as [|k keys IH]; simpl; [reflexivity|]. rewrite sum_app, sum_map, IH. reflexivity.
Qed.

(** Multipliers of mass and mean, by key; at 0 the sum of the tests is what it is. *)
Definition multiplier (mult : list (Z * (Q * Q))) (k : Z) : Q * Q :=
  fold_right (fun e r => if (fst e =? k)%Z then snd e else r) (0%Q, 0%Q) mult.
Definition bottom mult (l : list ((Z * Z) * Q)) (a : Z * Z) : Q :=
  if (snd a =? 0)%Z then coefficient l a
  else fst (multiplier mult (fst a)) + snd (multiplier mult (fst a)) * inject_Z (snd a).
Definition one_each (one : bool) (t : test) : bool :=
  if one then Nat.eqb (length (weights t)) 1
  else if list_eq_dec Z.eq_dec (nodup Z.eq_dec (map fst (weights t))) (map fst (weights t))
       then true else false.
Definition nextb (first : Z) (last : option Z) (x y : Z) : bool :=
  ((first <=? x) && (first <=? y) && (Z.abs (x - y) =? 1) &&
   match last with Some b => (x <=? b) && (y <=? b) | None => true end)%Z.
Definition count_dual (one : bool) key (begin : Z) (last : option Z) (D : Z) keys (high eta least : Q)
    mult tests : bool :=
  forallb (fun t => nextb begin last (first t) (second t) && one_each one t) tests &&
  forallb bounded tests && Qle_bool (total (map top tests)) 1 &&
  let l := flat_map (terms key high) tests in
  forallb (fun a => Qle_bool (bottom mult l a) (coefficient l a)) (grid D keys) &&
  Qle_bool least (total (map (fun k =>
    fst (multiplier mult k) * (1 - eta) + coefficient l (k, 0%Z) * eta)%Q keys)).

Lemma sound_test one begin last t :
  nextb begin last (first t) (second t) && one_each one t = true ->
  sound (next begin last) (if one then single else any) t.
Proof.
  intros good. apply andb_true_iff in good. destruct good as [near each]. split.
  - unfold nextb in near. unfold next, counted. rewrite !andb_true_iff in near.
    destruct last; rewrite ?andb_true_iff in near; lia.
  - intros f. unfold one_each in each. destruct one.
    + destruct (weights t) as [|ow [|]]; try discriminate. simpl.
      destruct (f (fst ow)); [right; now exists (fst ow)|now left].
    + apply NoDup_filter_map. now destruct (list_eq_dec _ _ _).
Qed.

Lemma count_least one key begin last D keys high eta least mult tests h bound p eps delta :
  h = Q2R eta -> bound = Q2R least -> exp eps <= Q2R high ->
  count_dual one key begin last D keys high eta least mult tests = true ->
  NoDup keys -> (0 <= D)%Z -> (forall k, In k keys -> (0 <= k)%Z) -> 0 <= delta ->
  (forall k, In k keys -> count_law D h k (p k)) ->
  (forall x, counted begin last x -> In (key x) keys) ->
  dp (next begin last) (if one then single else any) (probability (of_key key p)) eps delta ->
  bound <= delta.
Proof.
  unfold count_dual. rewrite !andb_true_iff.
  intros -> -> above [[[good bounds] all] [below enough_]] different D_positive keys_positive
    positive_ laws every private.
  set (m := fun k z => if in_dec Z.eq_dec k keys then p k z else 0).
  assert (m_nonnegative : forall k z, 0 <= m k z).
  { intros k z. unfold m. destruct (in_dec Z.eq_dec k keys); [now apply laws|lra]. }
  assert (dp (next begin last) (if one then single else any)
    (probability (fun x o => m (key x) (o - x)%Z)) eps delta) as same_.
  { intros x y S near is_event. pose proof (private x y S near is_event) as claim.
    destruct near as [is_x [is_y _]]. unfold probability, of_key in *.
    replace (fun o => m (key x) (o - x)%Z) with (fun o => p (key x) (o - x)%Z).
    2: { apply FunctionalExtensionality.functional_extensionality. intros o. unfold m.
         destruct (in_dec Z.eq_dec (key x) keys) as [|out]; [reflexivity|elim out; auto]. }
    replace (fun o => m (key y) (o - y)%Z) with (fun o => p (key y) (o - y)%Z); [assumption|].
    apply FunctionalExtensionality.functional_extensionality. intros o. unfold m.
    destruct (in_dec Z.eq_dec (key y) keys) as [|out]; [reflexivity|elim out; auto]. }
  set (l := flat_map (terms key high) tests) in *.
  assert (sum (fun a => Q2R (bottom mult l a) * mass m a) (grid D keys) <=
    sum (fun a => Q2R 0 * mass m a) (grid D keys) + Q2R (total (map top tests)) * delta) as dual.
  { apply (weak_duality key _ _ m eps delta high same_ m_nonnegative positive_ above tests
      (grid D keys) (fun _ => 0%Q) (bottom mult l)).
    - now apply NoDup_grid.
    - intros [k z]. unfold mass, m. simpl. destruct (in_dec Z.eq_dec k keys) as [is_key|]; [|now left].
      destruct (in_dec Z.eq_dec z (cells D k)); [right; now apply in_grid|].
      left. now apply laws.
    - intros t is_in. rewrite forallb_forall in good. apply sound_test, good, is_in.
    - assumption.
    - cbv zeta. fold l. rewrite forallb_forall in *. intros a is_in. specialize (below a is_in).
      apply Qle_bool_iff in below. apply Qle_bool_iff. rewrite Qplus_0_l. assumption. }
  apply Qle_bool_iff, Qle_Rle, (Rmult_le_compat_r delta) in all; [|assumption].
  replace (Q2R 1) with 1 in all by (unfold Q2R; simpl; lra).
  assert (sum (fun a => Q2R 0 * mass m a) (grid D keys) = 0) as free.
  { generalize (grid D keys). induction l0 as [|a l0 IH]; simpl; [reflexivity|].
    rewrite IH, Q2R_zero. lra. }
  apply Qle_bool_iff, Qle_Rle in enough_. rewrite <- Q2R_sum in enough_.
  rewrite sum_grid in dual.
  enough (sum (fun k => Q2R (fst (multiplier mult k) * (1 - eta) + coefficient l (k, 0%Z) * eta)) keys <=
          sum (fun k => sum (fun z => Q2R (bottom mult l (k, z)) * mass m (k, z)) (cells D k)) keys)
    by lra.
  apply sum_le. intros k is_key. right.
  destruct (laws k is_key) as [_ [_ [whole [mean at_zero]]]].
  rewrite Q2R_plus, !Q2R_mult, Q2R_minus. replace (Q2R 1) with 1 by (unfold Q2R; simpl; lra).
  rewrite <- at_zero.
  set (a := Q2R (fst (multiplier mult k))). set (b := Q2R (snd (multiplier mult k))).
  set (c := Q2R (coefficient l (k, 0%Z))).
  assert (0 <= Z.min k D)%Z by (specialize (keys_positive k is_key); lia).
  pose proof (at_zero_sum (c - a) (p k) (- Z.min k D) (Z.to_nat (Z.min k D + D + 1)) ltac:(lia))
    as more.
  fold (cells D k) in more.
  transitivity (a * sum (p k) (cells D k) + b * sum (fun z => IZR z * p k z) (cells D k) +
    sum (fun z => (if (z =? 0)%Z then c - a else 0) * p k z) (cells D k)).
  - rewrite whole, mean, more. lra.
  - clear - is_key. induction (cells D k) as [|z s IH]; simpl; [lra|].
    rewrite <- IH. unfold bottom, mass, m. simpl.
    destruct (in_dec Z.eq_dec k keys) as [|out]; [|contradiction].
    destruct (Z.eqb_spec z 0) as [-> |].
    + fold c. simpl. lra.
    + rewrite Q2R_plus, Q2R_mult. fold a b. replace (Q2R (inject_Z z)) with (IZR z); [lra|].
      unfold Q2R, inject_Z. simpl. lra.
Qed.

(** Laws as lists: of each, the last count that it is for, its lowest noise, and its masses. *)
Definition law_of (laws : list (Z * (Z * list Q))) (n : Z) : Z * list Q :=
  fold_right (fun e r => if (n <=? fst e)%Z then snd e else r) (0%Z, nil) laws.
Definition law_check (D : Z) (eta : Q) (n : Z) (law : Z * list Q) : bool :=
  let (low, l) := law in
  forallb (Qle_bool 0) l && (- Z.min n D <=? low)%Z && (low + Z.of_nat (length l) <=? D + 1)%Z &&
  Qeq_bool (total (map (at_ low l) (cells D n))) 1 &&
  Qeq_bool (total (map (fun z => inject_Z z * at_ low l z)%Q (cells D n))) 0 &&
  Qeq_bool (at_ low l 0) eta.
Definition masses (law : Z * list Q) (z : Z) : R := Q2R (at_ (fst law) (snd law) z).

Lemma count_law_of D eta h n law : h = Q2R eta -> (0 <= n)%Z -> (0 <= D)%Z ->
  law_check D eta n law = true -> count_law D h n (masses law).
Proof.
  unfold law_check, masses. destruct law as [low l]. rewrite !andb_true_iff. cbn [fst snd].
  intros -> n_positive D_positive [[[[[all from] to] one] mean] at_zero].
  apply Qeq_bool_iff, Qeq_eqR in one, mean, at_zero.
  repeat split.
  - intros z. now apply at_nonnegative.
  - intros z out. rewrite (outside_range low (length l)); [apply Q2R_zero|reflexivity|].
    intros is_in. apply out. apply in_map_iff in is_in. destruct is_in as [i [<- is_in]].
    apply in_seq in is_in. apply in_range. lia.
  - rewrite Q2R_sum, one. unfold Q2R. simpl. lra.
  - rewrite <- Q2R_sum, Q2R_zero in mean. rewrite <- mean. generalize (cells D n). clear.
    induction l0 as [|z s IH]; simpl; [reflexivity|]. rewrite IH, Q2R_mult. f_equal. f_equal.
    unfold Q2R, inject_Z. simpl. lra.
  - assumption.
Qed.

(** The excess of one law over another that is moved by [s]. *)
Definition excess (one : bool) (e d : Q) (x y : Z * list Q) (s : Z) : bool :=
  let f z := positive (at_ (fst x) (snd x) z - e * at_ (fst y) (snd y) (z + s)) in
  let places := range (fst x) (length (snd x)) in
  if one then forallb (fun z => Qle_bool (f z) d) places else Qle_bool (total (map f places)) d.

Lemma dominated_at (p q e d : Q) eps : Q2R e <= exp eps -> 0 <= Q2R q ->
  Qle_bool (positive (p - e * q)) d = true -> Q2R p <= exp eps * Q2R q + Q2R d.
Proof.
  intros below nonnegative less. apply Qle_bool_iff in less.
  assert (p - e * q <= positive (p - e * q))%Q as more.
  { unfold positive. destruct (Qle_bool (p - e * q) 0) eqn:sign; [now apply Qle_bool_iff|].
    apply Qle_refl. }
  pose proof (Qle_Rle _ _ (Qle_trans _ _ _ more less)) as bound.
  rewrite Q2R_minus, Q2R_mult in bound. pose proof (Rmult_le_compat_r _ _ _ nonnegative below). lra.
Qed.

Lemma excess_bound one e d (law : Z -> Z * list Q) eps x y S :
  Q2R e <= exp eps -> Qle_bool 0 e = true -> Qle_bool 0 d = true ->
  (forall n, forallb (Qle_bool 0) (snd (law n)) = true) ->
  excess one e d (law x) (law y) (x - y) = true -> (if one then single else any) S ->
  probability (fun n z => masses (law n) (z - n)) x S <=
  exp eps * probability (fun n z => masses (law n) (z - n)) y S + Q2R d.
Proof.
  intros below e_positive d_positive all bound is_event.
  assert (moved : forall n, probability (fun n z => masses (law n) (z - n)) n S =
    sum (fun z => Q2R (at_ (fst (law n)) (snd (law n)) (z + (x - n)))) (map (fun z => (z - x)%Z) S)).
  { intros n. unfold probability, masses. rewrite sum_map. clear.
    induction S as [|z S IH]; simpl; [reflexivity|]. rewrite IH. do 3 f_equal. lia. }
  rewrite (moved x), (moved y), Z.sub_diag. clear moved.
  replace (sum (fun z => Q2R (at_ (fst (law x)) (snd (law x)) (z + 0))) (map (fun z => (z - x)%Z) S))
    with (sum (fun z => Q2R (at_ (fst (law x)) (snd (law x)) z)) (map (fun z => (z - x)%Z) S))
    by (clear; induction S as [|z S IH]; simpl; [reflexivity|]; now rewrite IH, Z.add_0_r).
  set (p := at_ (fst (law x)) (snd (law x))) in *.
  set (q := fun z => at_ (fst (law y)) (snd (law y)) (z + (x - y))) in *.
  assert (forall z, ~ In z (range (fst (law x)) (length (snd (law x)))) -> p z = 0%Q) as outside
    by (intros z; now apply outside_range).
  assert (forall z, 0 <= Q2R (q z)) as q_positive by (intros z; now apply at_nonnegative).
  unfold excess in bound. destruct one.
  - destruct is_event as [o ->]. cbn [map sum]. rewrite !Rplus_0_r.
    rewrite forallb_forall in bound.
    destruct (in_dec Z.eq_dec (o - x)%Z (range (fst (law x)) (length (snd (law x))))) as [is_in|out].
    + apply (dominated_at _ (q (o - x)%Z) e d eps); auto. apply (bound (o - x)%Z is_in).
    + rewrite (outside _ out), Q2R_zero. apply Qle_bool_iff, Qle_Rle in d_positive.
      rewrite Q2R_zero in d_positive. specialize (q_positive (o - x)%Z).
      pose proof (Rmult_le_pos _ _ (Rlt_le _ _ (exp_pos eps)) q_positive). unfold q in *. lra.
  - eapply (dominated p q); eauto.
    apply FinFun.Injective_map_NoDup; [|assumption]. intros a b equal. lia.
Qed.

(** A list of laws gives the least delta, if all neighbours pass. *)
Definition differences (begin : Z) (last : option Z) : list (Z * Z) :=
  match last with
  | None => [(begin, -1); (begin, 1)]
  | Some b => flat_map (fun x => filter (fun xs => (begin <=? x - snd xs) && (x - snd xs <=? b))
      [(x, -1); (x, 1)]) (range begin (Z.to_nat (b - begin + 1)))
  end%Z.
Definition count_check (one : bool) (key : Z -> Z) (begin : Z) (last : option Z) (e d : Q)
    (laws : list (Z * (Z * list Q))) : bool :=
  Qle_bool 0 e && Qle_bool 0 d &&
  forallb (fun row => forallb (Qle_bool 0) (snd (snd row))) laws &&
  forallb (fun xs => excess one e d (law_of laws (key (fst xs))) (law_of laws (key (fst xs - snd xs)%Z))
                            (snd xs)) (differences begin last).

Lemma laws_positive laws n :
  forallb (fun row : Z * (Z * list Q) => forallb (Qle_bool 0) (snd (snd row))) laws = true ->
  forallb (Qle_bool 0) (snd (law_of laws n)) = true.
Proof.
  induction laws as [|row laws IH]; simpl; [reflexivity|]. rewrite andb_true_iff.
  intros [own_ rest]. destruct (n <=? fst row)%Z; auto.
Qed.

Lemma count_dp one key begin last e d laws eps delta :
  delta = Q2R d -> Q2R e <= exp eps -> count_check one key begin last e d laws = true ->
  (last = None -> forall x, key x = key begin) ->
  dp (next begin last) (if one then single else any)
    (probability (of_key key (fun k => masses (law_of laws k)))) eps delta.
Proof.
  unfold count_check. rewrite !andb_true_iff.
  intros -> below [[[e_positive d_positive] all] bound] same_ x y S [is_x [is_y near]] is_event.
  apply (excess_bound one e d (fun n => law_of laws (key n))); auto.
  - intros n. now apply laws_positive.
  - rewrite forallb_forall in bound. destruct last as [b|].
    + specialize (bound (x, x - y)%Z). cbn [fst snd] in bound.
      replace (x - (x - y))%Z with y in bound by lia. apply bound.
      apply in_flat_map. exists x. unfold counted in *. split; [apply in_range; lia|].
      apply filter_In. cbn [snd]. split.
      * simpl. assert (x - y = -1 \/ x - y = 1)%Z as [-> | ->] by lia; auto.
      * rewrite andb_true_iff. lia.
    + specialize (same_ eq_refl). rewrite (same_ x), (same_ y).
      specialize (bound (begin, x - y)%Z). cbn [fst snd] in bound.
      rewrite (same_ (begin - (x - y))%Z) in bound. apply bound.
      simpl. assert (x - y = -1 \/ x - y = 1)%Z as [-> | ->] by lia; auto.
Qed.

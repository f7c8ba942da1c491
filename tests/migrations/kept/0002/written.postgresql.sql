CREATE FUNCTION public.attempt_moves() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN RAISE EXCEPTION 'attempt: no such move' USING ERRCODE = 'check_violation'; END $$;


--
-- Name: chain_moves(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.chain_moves() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN RAISE EXCEPTION 'chain: no such move' USING ERRCODE = 'check_violation'; END $$;


--
-- Name: command_moves(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.command_moves() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN RAISE EXCEPTION 'command: no such move' USING ERRCODE = 'check_violation'; END $$;


--
-- Name: conversation_moves(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.conversation_moves() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN RAISE EXCEPTION 'conversation: no such move' USING ERRCODE = 'check_violation'; END $$;


--
-- Name: event_stays(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.event_stays() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN RAISE EXCEPTION 'event: what happened is not rewritten' USING ERRCODE = 'check_violation'; END $$;


--
-- Name: message_moves(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.message_moves() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN RAISE EXCEPTION 'message: no such move' USING ERRCODE = 'check_violation'; END $$;


--
-- Name: phase_moves(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.phase_moves() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN RAISE EXCEPTION 'phase: no such move' USING ERRCODE = 'check_violation'; END $$;


--
-- Name: proposal_moves(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.proposal_moves() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN RAISE EXCEPTION 'proposal: no such move' USING ERRCODE = 'check_violation'; END $$;


--
-- Name: run_moves(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.run_moves() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN RAISE EXCEPTION 'run: no such move' USING ERRCODE = 'check_violation'; END $$;


--
-- Name: task_moves(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.task_moves() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN RAISE EXCEPTION 'task: no such move' USING ERRCODE = 'check_violation'; END $$;


--
-- Name: worktree_moves(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.worktree_moves() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN RAISE EXCEPTION 'worktree: no such move' USING ERRCODE = 'check_violation'; END $$;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: alembic_version; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);


--
-- Name: attempt; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.attempt (
    id text NOT NULL,
    revision bigint NOT NULL,
    task_id text NOT NULL,
    number bigint NOT NULL,
    reason text NOT NULL,
    anyway bigint NOT NULL,
    idempotency_key text NOT NULL,
    cursor_before text,
    conversation_id text NOT NULL,
    lease_number bigint NOT NULL,
    state text NOT NULL,
    scheduled_at bigint NOT NULL,
    live_at bigint,
    ended_at bigint,
    outcome text,
    detail text,
    signal text,
    exit_code bigint,
    output_bytes bigint,
    tokens_in bigint,
    tokens_out bigint,
    cost bigint,
    currency text,
    CONSTRAINT attempt_ended_at CHECK (((NOT (state = 'ended'::text)) OR ((ended_at IS NOT NULL) AND (outcome IS NOT NULL)))),
    CONSTRAINT attempt_live_at CHECK (((NOT (state = 'live'::text)) OR (live_at IS NOT NULL))),
    CONSTRAINT attempt_not_ended CHECK (((NOT (state = ANY (ARRAY['live'::text, 'scheduled'::text]))) OR ((ended_at IS NULL) AND (outcome IS NULL)))),
    CONSTRAINT attempt_revision_counts CHECK ((revision >= 1)),
    CONSTRAINT attempt_state_known CHECK ((state = ANY (ARRAY['cancelled'::text, 'ended'::text, 'live'::text, 'scheduled'::text])))
);


--
-- Name: chain; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.chain (
    id text NOT NULL,
    revision bigint NOT NULL,
    run_id text NOT NULL,
    state text NOT NULL,
    goal text NOT NULL,
    repo text NOT NULL,
    selector text NOT NULL,
    source text NOT NULL,
    "authorization" text NOT NULL,
    caps text NOT NULL,
    attempt_cap bigint NOT NULL,
    cwd text NOT NULL,
    created_at bigint NOT NULL,
    agent text,
    playbook text,
    "position" bigint NOT NULL,
    processed bigint NOT NULL,
    look_at bigint,
    reason text,
    ended_at bigint,
    base text,
    phases bigint NOT NULL,
    asks text,
    swept text,
    seen text,
    CONSTRAINT chain_attempt_cap CHECK (((attempt_cap >= 1) AND (attempt_cap <= 20))),
    CONSTRAINT chain_counts CHECK ((("position" >= 0) AND (processed >= 0) AND (processed <= "position"))),
    CONSTRAINT chain_ended_at CHECK (((state = ANY (ARRAY['capped'::text, 'complete'::text, 'stopped'::text])) = (ended_at IS NOT NULL))),
    CONSTRAINT chain_revision_counts CHECK ((revision >= 1)),
    CONSTRAINT chain_state_known CHECK ((state = ANY (ARRAY['capped'::text, 'complete'::text, 'open'::text, 'stopped'::text])))
);


--
-- Name: command; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.command (
    id text NOT NULL,
    revision bigint NOT NULL,
    kind text NOT NULL,
    task_id text NOT NULL,
    attempt_id text,
    conversation_id text,
    executor text NOT NULL,
    state text NOT NULL,
    epoch bigint NOT NULL,
    fence text NOT NULL,
    scopes text NOT NULL,
    created_at bigint NOT NULL,
    payload text,
    digest text,
    deadline bigint,
    armed_at bigint,
    submitted_at bigint,
    settled_at bigint,
    evidence text,
    detail text,
    released_by text,
    verdict text,
    late bigint NOT NULL,
    target text,
    place text,
    CONSTRAINT command_armed_at CHECK (((NOT (state = ANY (ARRAY['ambiguous'::text, 'armed'::text, 'submitted'::text]))) OR (armed_at IS NOT NULL))),
    CONSTRAINT command_queued CHECK (((NOT (state = 'queued'::text)) OR ((armed_at IS NULL) AND (submitted_at IS NULL)))),
    CONSTRAINT command_released_by_somebody CHECK (((NOT (state = 'released'::text)) OR ((released_by IS NOT NULL) AND (verdict IS NOT NULL)))),
    CONSTRAINT command_revision_counts CHECK ((revision >= 1)),
    CONSTRAINT command_settled_at CHECK (((state = ANY (ARRAY['acknowledged'::text, 'cancelled'::text, 'expired'::text, 'failed'::text, 'released'::text])) = (settled_at IS NOT NULL))),
    CONSTRAINT command_state_known CHECK ((state = ANY (ARRAY['acknowledged'::text, 'ambiguous'::text, 'armed'::text, 'cancelled'::text, 'expired'::text, 'failed'::text, 'queued'::text, 'released'::text, 'submitted'::text]))),
    CONSTRAINT command_submitted_at CHECK (((NOT (state = 'submitted'::text)) OR (submitted_at IS NOT NULL))),
    CONSTRAINT command_was_armed CHECK (((NOT (state = ANY (ARRAY['acknowledged'::text, 'failed'::text, 'released'::text]))) OR (armed_at IS NOT NULL)))
);


--
-- Name: conversation; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.conversation (
    id text NOT NULL,
    revision bigint NOT NULL,
    task_id text NOT NULL,
    identity text NOT NULL,
    executor text NOT NULL,
    state text NOT NULL,
    lease_number bigint,
    expires_at bigint,
    opened_at bigint NOT NULL,
    parent text,
    root text,
    handoff_to text,
    ended_at bigint,
    turns bigint NOT NULL,
    place text,
    CONSTRAINT conversation_ended_at CHECK (((state = ANY (ARRAY['abandoned'::text, 'ended'::text, 'superseded'::text])) = (ended_at IS NOT NULL))),
    CONSTRAINT conversation_leased CHECK (((NOT (state = 'active'::text)) OR ((lease_number IS NOT NULL) AND (expires_at IS NOT NULL)))),
    CONSTRAINT conversation_revision_counts CHECK ((revision >= 1)),
    CONSTRAINT conversation_state_known CHECK ((state = ANY (ARRAY['abandoned'::text, 'active'::text, 'candidate'::text, 'ended'::text, 'superseded'::text])))
);


--
-- Name: event; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.event (
    epoch bigint NOT NULL,
    n bigint NOT NULL,
    at bigint NOT NULL,
    kind text NOT NULL,
    run_id text,
    task_id text,
    data text NOT NULL
);


--
-- Name: hold; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.hold (
    scope text NOT NULL,
    command_id text NOT NULL
);


--
-- Name: idempotency; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.idempotency (
    scope text NOT NULL,
    key text NOT NULL,
    digest text NOT NULL,
    result text NOT NULL,
    at bigint NOT NULL
);


--
-- Name: leadership; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.leadership (
    epoch bigint NOT NULL,
    owner text NOT NULL,
    host text NOT NULL,
    pid bigint NOT NULL,
    started text NOT NULL,
    boot_id text NOT NULL,
    address text NOT NULL,
    taken_at bigint NOT NULL,
    renewed_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    stop_asked_at bigint,
    released_at bigint,
    one bigint DEFAULT 1 NOT NULL,
    CONSTRAINT leadership_epoch_counts CHECK ((epoch >= 1)),
    CONSTRAINT leadership_is_one CHECK ((one = 1))
);


--
-- Name: link; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.link (
    id text NOT NULL,
    revision bigint NOT NULL,
    chain_id text NOT NULL,
    "position" bigint NOT NULL,
    predecessor text,
    task_id text NOT NULL,
    unit text NOT NULL,
    place text NOT NULL,
    key text NOT NULL,
    attempt bigint NOT NULL,
    made_at bigint NOT NULL,
    outcome text,
    evidence text,
    blocker text,
    command_id text,
    handed_at bigint,
    recorded_at bigint,
    CONSTRAINT link_counts CHECK ((("position" >= 1) AND (attempt >= 1))),
    CONSTRAINT link_first_has_no_predecessor CHECK ((("position" = 1) = (predecessor IS NULL))),
    CONSTRAINT link_key_is_sha256 CHECK ((length(key) = 64)),
    CONSTRAINT link_recorded_outcome CHECK (((NOT (recorded_at IS NOT NULL)) OR (outcome IS NOT NULL))),
    CONSTRAINT link_revision_counts CHECK ((revision >= 1))
);


--
-- Name: mandate; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.mandate (
    id text NOT NULL,
    revision bigint NOT NULL,
    chain_id text NOT NULL,
    forge text NOT NULL,
    mode text NOT NULL,
    method text NOT NULL,
    branches text NOT NULL,
    base text,
    gate text NOT NULL,
    reviews bigint NOT NULL,
    made_at bigint NOT NULL,
    reviewer text,
    playbook text,
    CONSTRAINT mandate_reviews_count CHECK (((reviews >= 1) AND (reviews <= 100))),
    CONSTRAINT mandate_revision_counts CHECK ((revision >= 1))
);


--
-- Name: message; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.message (
    id text NOT NULL,
    revision bigint NOT NULL,
    task_id text NOT NULL,
    sender text NOT NULL,
    kind text NOT NULL,
    policy text NOT NULL,
    text text,
    size bigint NOT NULL,
    state text NOT NULL,
    created_at bigint NOT NULL,
    not_before bigint NOT NULL,
    corrective text,
    carried_by text,
    tries bigint NOT NULL,
    settled_at bigint,
    party text NOT NULL,
    CONSTRAINT message_carried_by CHECK (((NOT (state = 'carried'::text)) OR (carried_by IS NOT NULL))),
    CONSTRAINT message_revision_counts CHECK ((revision >= 1)),
    CONSTRAINT message_settled_at CHECK (((NOT (state = ANY (ARRAY['delivered'::text, 'dropped'::text]))) OR (settled_at IS NOT NULL))),
    CONSTRAINT message_state_known CHECK ((state = ANY (ARRAY['ambiguous'::text, 'carried'::text, 'deferred'::text, 'delivered'::text, 'dropped'::text, 'recorded'::text, 'retry_wait'::text])))
);


--
-- Name: permission; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.permission (
    id text NOT NULL,
    revision bigint NOT NULL,
    task_id text NOT NULL,
    attempt_id text NOT NULL,
    command_id text NOT NULL,
    request text NOT NULL,
    tool text NOT NULL,
    what text NOT NULL,
    fingerprint text NOT NULL,
    asked_at bigint NOT NULL,
    wait_id text,
    verdict text,
    answered_by text,
    answered_at bigint,
    words text,
    parked_at bigint,
    told_at bigint,
    closed_at bigint,
    outcome text,
    CONSTRAINT permission_answered_at CHECK (((verdict IS NULL) = (answered_at IS NULL))),
    CONSTRAINT permission_answered_by_somebody CHECK (((verdict IS NULL) = (answered_by IS NULL))),
    CONSTRAINT permission_closed_somehow CHECK (((closed_at IS NULL) = (outcome IS NULL))),
    CONSTRAINT permission_fingerprint_is_sha256 CHECK ((length(fingerprint) = 64)),
    CONSTRAINT permission_revision_counts CHECK ((revision >= 1)),
    CONSTRAINT permission_told_something CHECK (((NOT (told_at IS NOT NULL)) OR ((verdict IS NOT NULL) OR (parked_at IS NOT NULL))))
);


--
-- Name: phase; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.phase (
    id text NOT NULL,
    revision bigint NOT NULL,
    chain_id text NOT NULL,
    unit text NOT NULL,
    task_id text NOT NULL,
    number bigint NOT NULL,
    state text NOT NULL,
    opened_at bigint NOT NULL,
    branch text,
    url text,
    head text,
    landing text,
    undone_by text NOT NULL,
    settled_at bigint,
    reason text,
    CONSTRAINT phase_merged CHECK (((NOT (state = 'merged'::text)) OR ((landing IS NOT NULL) AND (undone_by = '[]'::text)))),
    CONSTRAINT phase_number_counts CHECK ((number >= 1)),
    CONSTRAINT phase_revision_counts CHECK ((revision >= 1)),
    CONSTRAINT phase_settled_at CHECK (((state = 'open'::text) = (settled_at IS NULL))),
    CONSTRAINT phase_state_known CHECK ((state = ANY (ARRAY['closed'::text, 'merged'::text, 'open'::text, 'reverted'::text])))
);


--
-- Name: proposal; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.proposal (
    id text NOT NULL,
    revision bigint NOT NULL,
    chain_id text NOT NULL,
    task_id text NOT NULL,
    unit text NOT NULL,
    state text NOT NULL,
    number bigint NOT NULL,
    branch text NOT NULL,
    base text NOT NULL,
    head text NOT NULL,
    url text NOT NULL,
    opened_at bigint NOT NULL,
    gate_command text,
    gate_head text,
    gate text,
    gate_tries bigint NOT NULL,
    reviews bigint NOT NULL,
    merge_command text,
    merged_as text,
    reason text,
    settled_at bigint,
    CONSTRAINT proposal_counts CHECK (((number >= 1) AND (reviews >= 0) AND (gate_tries >= 0))),
    CONSTRAINT proposal_gated_at_a_commit CHECK (((gate_command IS NULL) = (gate_head IS NULL))),
    CONSTRAINT proposal_merged_as CHECK (((state = 'merged'::text) = (merged_as IS NOT NULL))),
    CONSTRAINT proposal_revision_counts CHECK ((revision >= 1)),
    CONSTRAINT proposal_settled_at CHECK (((state = ANY (ARRAY['merged'::text, 'turned_down'::text])) = (settled_at IS NOT NULL))),
    CONSTRAINT proposal_state_known CHECK ((state = ANY (ARRAY['merged'::text, 'open'::text, 'turned_down'::text])))
);


--
-- Name: registry; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.registry (
    id text NOT NULL,
    revision bigint NOT NULL,
    created_at bigint NOT NULL,
    held_at bigint,
    held_by text,
    merging_off_at bigint,
    merging_off_by text,
    one bigint DEFAULT 1 NOT NULL,
    CONSTRAINT registry_held_by_somebody CHECK (((held_at IS NULL) = (held_by IS NULL))),
    CONSTRAINT registry_is_one CHECK ((one = 1)),
    CONSTRAINT registry_merging_off_by_somebody CHECK (((merging_off_at IS NULL) = (merging_off_by IS NULL))),
    CONSTRAINT registry_revision_counts CHECK ((revision >= 1))
);


--
-- Name: report; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.report (
    id text NOT NULL,
    task_id text NOT NULL,
    attempt_id text,
    kind text NOT NULL,
    lines text NOT NULL,
    at bigint NOT NULL
);


--
-- Name: review; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.review (
    id text NOT NULL,
    revision bigint NOT NULL,
    proposal_id text NOT NULL,
    task_id text NOT NULL,
    number bigint NOT NULL,
    head text NOT NULL,
    asked_at bigint NOT NULL,
    verdict text,
    findings text,
    said_at bigint,
    CONSTRAINT review_counts CHECK ((number >= 1)),
    CONSTRAINT review_revision_counts CHECK ((revision >= 1)),
    CONSTRAINT review_said_at CHECK (((verdict IS NULL) = (said_at IS NULL)))
);


--
-- Name: run; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.run (
    id text NOT NULL,
    revision bigint NOT NULL,
    title text NOT NULL,
    state text NOT NULL,
    auto_resume text NOT NULL,
    policy text NOT NULL,
    coordinator text,
    created_at bigint NOT NULL,
    stopped_at bigint,
    CONSTRAINT run_revision_counts CHECK ((revision >= 1)),
    CONSTRAINT run_state_known CHECK ((state = ANY (ARRAY['open'::text, 'stopped'::text]))),
    CONSTRAINT run_stopped_at CHECK (((state = 'stopped'::text) = (stopped_at IS NOT NULL)))
);


--
-- Name: sample; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.sample (
    id text NOT NULL,
    task_id text NOT NULL,
    fence text NOT NULL,
    members text NOT NULL,
    made_at bigint NOT NULL
);


--
-- Name: sighting; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.sighting (
    id text NOT NULL,
    task_id text NOT NULL,
    subject text NOT NULL,
    source text NOT NULL,
    rank bigint NOT NULL,
    seen_at bigint NOT NULL,
    made_at bigint NOT NULL,
    digest text NOT NULL,
    facts text NOT NULL,
    CONSTRAINT sighting_ranked CHECK (((rank >= 1) AND (rank <= 5)))
);


--
-- Name: task; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.task (
    id text NOT NULL,
    revision bigint NOT NULL,
    run_id text NOT NULL,
    title text NOT NULL,
    objective text NOT NULL,
    cwd text NOT NULL,
    agent text NOT NULL,
    acceptance text NOT NULL,
    state text NOT NULL,
    created_at bigint NOT NULL,
    auto_resume text,
    max_attempts bigint,
    parent text,
    started_at bigint,
    ended_at bigint,
    disposition_reason text,
    disposition_source text,
    disposition_prior_state text,
    disposition_reference text,
    disposition_verified bigint,
    claim_evidence text,
    claim_summary text,
    claim_attempt text,
    claim_made_at bigint,
    claim_tries bigint,
    standing text NOT NULL,
    standing_reason text,
    paused_at bigint,
    paused_by text,
    stalled_at bigint,
    progress_cursor text,
    progress_head text,
    progress_at bigint,
    progress_without bigint NOT NULL,
    progress_streak bigint NOT NULL,
    progress_line text,
    progress_reason text,
    attempts bigint NOT NULL,
    unsent_in_row bigint NOT NULL,
    faults bigint NOT NULL,
    lease_number bigint NOT NULL,
    active_since_report bigint NOT NULL,
    checkpoints bigint NOT NULL,
    last_served_at bigint,
    waiting_since bigint,
    look_at bigint,
    tools text NOT NULL,
    health_value text,
    health_confidence text,
    health_row text,
    health_why text,
    health_mend text,
    health_since bigint,
    steered_at bigint,
    informed bigint NOT NULL,
    informed_at bigint,
    told_at bigint,
    max_live bigint,
    max_tokens bigint,
    max_cost bigint,
    live_time bigint NOT NULL,
    tokens bigint NOT NULL,
    cost bigint NOT NULL,
    currency text,
    spawned_by text,
    playbook text,
    delivery text,
    auto_close bigint NOT NULL,
    unattended bigint NOT NULL,
    slot_from text,
    queued_at bigint,
    ready_at bigint,
    ready_note text,
    account text,
    model text,
    overloads bigint NOT NULL,
    fresh_sessions bigint NOT NULL,
    session_over text,
    CONSTRAINT task_disposition CHECK (((state = ANY (ARRAY['cancelled'::text, 'completed'::text, 'failed'::text])) = (disposition_reason IS NOT NULL))),
    CONSTRAINT task_disposition_whole CHECK (((disposition_reason IS NULL) = (disposition_source IS NULL))),
    CONSTRAINT task_ended_at CHECK (((state = ANY (ARRAY['cancelled'::text, 'completed'::text, 'failed'::text])) = (ended_at IS NOT NULL))),
    CONSTRAINT task_in_line_is_pending CHECK (((NOT (queued_at IS NOT NULL)) OR (state = 'pending'::text))),
    CONSTRAINT task_paused_by_somebody CHECK (((paused_at IS NULL) = (paused_by IS NULL))),
    CONSTRAINT task_ready_whole CHECK (((ready_at IS NULL) = (ready_note IS NULL))),
    CONSTRAINT task_revision_counts CHECK ((revision >= 1)),
    CONSTRAINT task_started_at CHECK (((NOT (state = 'active'::text)) OR (started_at IS NOT NULL))),
    CONSTRAINT task_state_known CHECK ((state = ANY (ARRAY['active'::text, 'cancelled'::text, 'completed'::text, 'failed'::text, 'pending'::text])))
);


--
-- Name: text; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.text (
    id text NOT NULL,
    kind text NOT NULL,
    task_id text,
    body text,
    digest text NOT NULL,
    created_at bigint NOT NULL,
    removed_at bigint,
    CONSTRAINT text_digest_is_sha256 CHECK ((length(digest) = 64)),
    CONSTRAINT text_removed_has_no_body CHECK (((removed_at IS NULL) OR (body IS NULL)))
);


--
-- Name: token; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.token (
    id text NOT NULL,
    revision bigint NOT NULL,
    digest text NOT NULL,
    role text NOT NULL,
    task_id text,
    lease_number bigint,
    created_at bigint NOT NULL,
    revoked_at bigint,
    name text,
    expires_at bigint,
    CONSTRAINT token_digest_is_sha256 CHECK ((length(digest) = 64)),
    CONSTRAINT token_revision_counts CHECK ((revision >= 1))
);


--
-- Name: usagelimit; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.usagelimit (
    id text NOT NULL,
    revision bigint NOT NULL,
    account text NOT NULL,
    name text NOT NULL,
    text text NOT NULL,
    first_met_at bigint NOT NULL,
    met_at bigint NOT NULL,
    met_by text NOT NULL,
    met bigint NOT NULL,
    until bigint NOT NULL,
    model text,
    resets_at bigint,
    closed_at bigint,
    closed_by text,
    CONSTRAINT usagelimit_closed_by_something CHECK (((closed_at IS NULL) = (closed_by IS NULL))),
    CONSTRAINT usagelimit_counts CHECK ((met >= 1)),
    CONSTRAINT usagelimit_revision_counts CHECK ((revision >= 1))
);


--
-- Name: wait; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.wait (
    id text NOT NULL,
    revision bigint NOT NULL,
    task_id text NOT NULL,
    kind text NOT NULL,
    question text NOT NULL,
    opened_at bigint NOT NULL,
    subject text,
    until bigint,
    attempt_id text,
    closed_at bigint,
    closed_by text,
    answer text,
    CONSTRAINT wait_closed_by_something CHECK (((closed_at IS NULL) = (closed_by IS NULL))),
    CONSTRAINT wait_revision_counts CHECK ((revision >= 1))
);


--
-- Name: wake; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.wake (
    id text NOT NULL,
    revision bigint NOT NULL,
    task_id text NOT NULL,
    kind text NOT NULL,
    reason text NOT NULL,
    not_before bigint NOT NULL,
    created_at bigint NOT NULL,
    anyway bigint NOT NULL,
    asked_by text,
    consumed_at bigint,
    consumed_by text,
    CONSTRAINT wake_consumed CHECK (((NOT (consumed_by IS NOT NULL)) OR (consumed_at IS NOT NULL))),
    CONSTRAINT wake_revision_counts CHECK ((revision >= 1))
);


--
-- Name: worktree; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.worktree (
    id text NOT NULL,
    revision bigint NOT NULL,
    task_id text NOT NULL,
    chain_id text,
    repository text NOT NULL,
    path text NOT NULL,
    branch text NOT NULL,
    base text NOT NULL,
    state text NOT NULL,
    created_at bigint NOT NULL,
    command_id text,
    begun_at_commit text,
    reason text,
    ended_at bigint,
    CONSTRAINT worktree_begun CHECK (((NOT (state = 'ready'::text)) OR (begun_at_commit IS NOT NULL))),
    CONSTRAINT worktree_ended_at CHECK (((state = ANY (ARRAY['failed'::text, 'gone'::text])) = (ended_at IS NOT NULL))),
    CONSTRAINT worktree_revision_counts CHECK ((revision >= 1)),
    CONSTRAINT worktree_state_known CHECK ((state = ANY (ARRAY['failed'::text, 'gone'::text, 'kept'::text, 'planned'::text, 'ready'::text])))
);


--
-- Data for Name: alembic_version; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.alembic_version (version_num) VALUES ('0002');


--
-- Data for Name: attempt; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.attempt (id, revision, task_id, number, reason, anyway, idempotency_key, cursor_before, conversation_id, lease_number, state, scheduled_at, live_at, ended_at, outcome, detail, signal, exit_code, output_bytes, tokens_in, tokens_out, cost, currency) VALUES ('a-00000000000000000000000005', 1, 't-00000000000000000000000002', 1, 'event', 0, 't-00000000000000000000000002/1', NULL, 'v-00000000000000000000000004', 1, 'live', 1772366400000000, 1772366400000000, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);


--
-- Data for Name: chain; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.chain (id, revision, run_id, state, goal, repo, selector, source, "authorization", caps, attempt_cap, cwd, created_at, agent, playbook, "position", processed, look_at, reason, ended_at, base, phases, asks, swept, seen) VALUES ('h-0000000000000000000000000c', 1, 'r-00000000000000000000000001', 'open', 'goal', 'a.b/c/d', 'all', '{"kind":"queue","location":"/queue","merges":0,"own":null,"query":null}', '[]', '{"cost":null,"life":null,"tasks":null,"units":3}', 10, '/', 1772366400000000, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL);


--
-- Data for Name: command; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.command (id, revision, kind, task_id, attempt_id, conversation_id, executor, state, epoch, fence, scopes, created_at, payload, digest, deadline, armed_at, submitted_at, settled_at, evidence, detail, released_by, verdict, late, target, place) VALUES ('c-00000000000000000000000006', 1, 'send', 't-00000000000000000000000002', 'a-00000000000000000000000005', 'v-00000000000000000000000004', 'host', 'armed', 1, 'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff', '["task:t-00000000000000000000000002","conversation:program:t-00000000000000000000000002"]', 1772366400000000, NULL, NULL, NULL, 1772366400000000, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL);


--
-- Data for Name: conversation; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.conversation (id, revision, task_id, identity, executor, state, lease_number, expires_at, opened_at, parent, root, handoff_to, ended_at, turns, place) VALUES ('v-00000000000000000000000004', 1, 't-00000000000000000000000002', 'program:t-00000000000000000000000002', 'host', 'active', 1, 1772373600000000, 1772366400000000, NULL, NULL, NULL, NULL, 0, NULL);
INSERT INTO public.conversation (id, revision, task_id, identity, executor, state, lease_number, expires_at, opened_at, parent, root, handoff_to, ended_at, turns, place) VALUES ('v-0000000000000000000000000h', 1, 't-0000000000000000000000000f', 'program:t-0000000000000000000000000f', 'host', 'active', 1, 1772373600000000, 1772366400000000, NULL, NULL, NULL, NULL, 0, NULL);


--
-- Data for Name: event; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.event (epoch, n, at, kind, run_id, task_id, data) VALUES (1, 1, 1772366400000000, 'attempt.armed', 'r-00000000000000000000000001', 't-00000000000000000000000002', '{"attempt":"a-00000000000000000000000005"}');
INSERT INTO public.event (epoch, n, at, kind, run_id, task_id, data) VALUES (1, 2, 1772366400000000, 'command.armed', 'r-00000000000000000000000001', 't-00000000000000000000000002', '{"command":"c-00000000000000000000000006"}');


--
-- Data for Name: hold; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.hold (scope, command_id) VALUES ('conversation:program:t-00000000000000000000000002', 'c-00000000000000000000000006');
INSERT INTO public.hold (scope, command_id) VALUES ('task:t-00000000000000000000000002', 'c-00000000000000000000000006');


--
-- Data for Name: idempotency; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.idempotency (scope, key, digest, result, at) VALUES ('operator', 'once', 'dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd', '{"task":"t-00000000000000000000000002"}', 1772366400000000);


--
-- Data for Name: leadership; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.leadership (epoch, owner, host, pid, started, boot_id, address, taken_at, renewed_at, expires_at, stop_asked_at, released_at, one) VALUES (1, 'me', 'host', 4711, 'started', 'boot', '127.0.0.1:6174', 1772366400000000, 1772366400000000, 1772366415000000, NULL, NULL, 1);


--
-- Data for Name: link; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.link (id, revision, chain_id, "position", predecessor, task_id, unit, place, key, attempt, made_at, outcome, evidence, blocker, command_id, handed_at, recorded_at) VALUES ('j-0000000000000000000000000d', 1, 'h-0000000000000000000000000c', 1, NULL, 't-00000000000000000000000002', 'a', 'queue:/queue', 'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb', 1, 1772366400000000, NULL, NULL, NULL, NULL, NULL, NULL);


--
-- Data for Name: mandate; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.mandate (id, revision, chain_id, forge, mode, method, branches, base, gate, reviews, made_at, reviewer, playbook) VALUES ('d-0000000000000000000000000n', 1, 'h-0000000000000000000000000c', '{"base":null,"kind":"git","location":"/remote"}', 'self', 'merge', 'tenuto/', 'main', '["check"]', 10, 1772366400000000, NULL, NULL);


--
-- Data for Name: message; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.message (id, revision, task_id, sender, kind, policy, text, size, state, created_at, not_before, corrective, carried_by, tries, settled_at, party) VALUES ('m-0000000000000000000000000b', 1, 't-00000000000000000000000002', 'operator', 'words', 'next_turn', 'x-00000000000000000000000003', 3, 'deferred', 1772366400000000, 1772366400000000, NULL, NULL, 0, NULL, 'operator');


--
-- Data for Name: permission; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.permission (id, revision, task_id, attempt_id, command_id, request, tool, what, fingerprint, asked_at, wait_id, verdict, answered_by, answered_at, words, parked_at, told_at, closed_at, outcome) VALUES ('e-0000000000000000000000000k', 1, 't-00000000000000000000000002', 'a-00000000000000000000000005', 'c-00000000000000000000000006', '7', 'Bash', 'make', 'd05aa2a15fb3c40efeeb03bec445393f00074484cf01c8fb2da90ca6695a5531', 1772366400000000, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);


--
-- Data for Name: phase; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.phase (id, revision, chain_id, unit, task_id, number, state, opened_at, branch, url, head, landing, undone_by, settled_at, reason) VALUES ('f-0000000000000000000000000r', 1, 'h-0000000000000000000000000c', 'a', 't-00000000000000000000000002', 7, 'open', 1772366400000000, NULL, NULL, NULL, NULL, '[]', NULL, NULL);


--
-- Data for Name: proposal; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.proposal (id, revision, chain_id, task_id, unit, state, number, branch, base, head, url, opened_at, gate_command, gate_head, gate, gate_tries, reviews, merge_command, merged_as, reason, settled_at) VALUES ('q-0000000000000000000000000p', 1, 'h-0000000000000000000000000c', 't-00000000000000000000000002', 'a', 'open', 7, 'tenuto/a', 'main', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', '/remote#a', 1772366400000000, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL);


--
-- Data for Name: registry; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.registry (id, revision, created_at, held_at, held_by, merging_off_at, merging_off_by, one) VALUES ('g-0000000000000000000000ygj0', 1, 1772366400000000, NULL, NULL, NULL, NULL, 1);


--
-- Data for Name: report; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: review; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.review (id, revision, proposal_id, task_id, number, head, asked_at, verdict, findings, said_at) VALUES ('z-0000000000000000000000000q', 1, 'q-0000000000000000000000000p', 't-0000000000000000000000000f', 1, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 1772366400000000, NULL, NULL, NULL);


--
-- Data for Name: run; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.run (id, revision, title, state, auto_resume, policy, coordinator, created_at, stopped_at) VALUES ('r-00000000000000000000000001', 1, 'Port it', 'open', 'on', '{"allow":[],"arm_within":10000000,"check_limit":600000000,"check_tries":3,"checkpoint_after":1200000000,"checkpoint_jitter":60000000,"dead_man":0,"dead_man_after":600000000,"dead_man_apart":1800000000,"dead_man_ask":300000000,"delivery_end":86400000000,"deny":[],"fault_recoveries":3,"fresh_sessions":3,"idle_delay":0,"interrupt_grace":10000000,"lease_life":7200000000,"limit_buffer":60000000,"limit_jitter":30000000,"limit_lead":120000000,"limit_tries":12,"limit_unknown":[300000000,900000000,1800000000,3600000000],"live_spacing":900000000,"look_at_living_turn":2000000,"max_attempts":null,"max_cost":null,"max_live":null,"max_tokens":null,"merge_facts":30000000,"merge_rate":4,"merge_window":3600000000,"message_bytes":65536,"network_fresh":30000000,"news_spacing":300000000,"objective_bytes":262144,"overload_retry":[30000000,120000000,300000000,900000000],"overload_tries":12,"page_fresh":30000000,"pending_life":14400000000,"pending_tasks":48,"permission_wait":1800000000,"prompt_bytes":327680,"ready_grace":1800000000,"reconcile_age":120000000,"reconcile_separation":3000000,"reconcile_tries":3,"report_bytes":32768,"retry_unsent":[5000000,15000000,60000000,300000000],"reviews":10,"run_attempts":null,"run_cost":null,"run_live":null,"run_tokens":null,"self_progress_streak":3,"slot_rest":600000000,"spawn_rate":30,"spawn_window":600000000,"stall_pause":6,"stall_warn":3,"suspect_hard":600000000,"suspect_network":180000000,"suspect_page":120000000,"suspect_tool":180000000,"turn_limit":14400000000}', NULL, 1772366400000000, NULL);
INSERT INTO public.run (id, revision, title, state, auto_resume, policy, coordinator, created_at, stopped_at) VALUES ('r-0000000000000000000000000e', 1, 'Port it', 'open', 'on', '{"allow":[],"arm_within":10000000,"check_limit":600000000,"check_tries":3,"checkpoint_after":1200000000,"checkpoint_jitter":60000000,"dead_man":0,"dead_man_after":600000000,"dead_man_apart":1800000000,"dead_man_ask":300000000,"delivery_end":86400000000,"deny":[],"fault_recoveries":3,"fresh_sessions":3,"idle_delay":0,"interrupt_grace":10000000,"lease_life":7200000000,"limit_buffer":60000000,"limit_jitter":30000000,"limit_lead":120000000,"limit_tries":12,"limit_unknown":[300000000,900000000,1800000000,3600000000],"live_spacing":900000000,"look_at_living_turn":2000000,"max_attempts":null,"max_cost":null,"max_live":null,"max_tokens":null,"merge_facts":30000000,"merge_rate":4,"merge_window":3600000000,"message_bytes":65536,"network_fresh":30000000,"news_spacing":300000000,"objective_bytes":262144,"overload_retry":[30000000,120000000,300000000,900000000],"overload_tries":12,"page_fresh":30000000,"pending_life":14400000000,"pending_tasks":48,"permission_wait":1800000000,"prompt_bytes":327680,"ready_grace":1800000000,"reconcile_age":120000000,"reconcile_separation":3000000,"reconcile_tries":3,"report_bytes":32768,"retry_unsent":[5000000,15000000,60000000,300000000],"reviews":10,"run_attempts":null,"run_cost":null,"run_live":null,"run_tokens":null,"self_progress_streak":3,"slot_rest":600000000,"spawn_rate":30,"spawn_window":600000000,"stall_pause":6,"stall_warn":3,"suspect_hard":600000000,"suspect_network":180000000,"suspect_page":120000000,"suspect_tool":180000000,"turn_limit":14400000000}', NULL, 1772366400000000, NULL);


--
-- Data for Name: sample; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: sighting; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: task; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.task (id, revision, run_id, title, objective, cwd, agent, acceptance, state, created_at, auto_resume, max_attempts, parent, started_at, ended_at, disposition_reason, disposition_source, disposition_prior_state, disposition_reference, disposition_verified, claim_evidence, claim_summary, claim_attempt, claim_made_at, claim_tries, standing, standing_reason, paused_at, paused_by, stalled_at, progress_cursor, progress_head, progress_at, progress_without, progress_streak, progress_line, progress_reason, attempts, unsent_in_row, faults, lease_number, active_since_report, checkpoints, last_served_at, waiting_since, look_at, tools, health_value, health_confidence, health_row, health_why, health_mend, health_since, steered_at, informed, informed_at, told_at, max_live, max_tokens, max_cost, live_time, tokens, cost, currency, spawned_by, playbook, delivery, auto_close, unattended, slot_from, queued_at, ready_at, ready_note, account, model, overloads, fresh_sessions, session_over) VALUES ('t-00000000000000000000000002', 1, 'r-00000000000000000000000001', 'parser', 'x-00000000000000000000000003', '/srv/parser', '{"adapter":"command","argv":["agent","--go"],"env":["API_KEY"],"on":null,"resumable":1}', '{"argv":[],"kind":"none","path":null}', 'active', 1772366400000000, NULL, NULL, NULL, 1772366400000000, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'new', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, 0, 0, 0, 1, 0, 0, NULL, NULL, NULL, '[]', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, NULL);
INSERT INTO public.task (id, revision, run_id, title, objective, cwd, agent, acceptance, state, created_at, auto_resume, max_attempts, parent, started_at, ended_at, disposition_reason, disposition_source, disposition_prior_state, disposition_reference, disposition_verified, claim_evidence, claim_summary, claim_attempt, claim_made_at, claim_tries, standing, standing_reason, paused_at, paused_by, stalled_at, progress_cursor, progress_head, progress_at, progress_without, progress_streak, progress_line, progress_reason, attempts, unsent_in_row, faults, lease_number, active_since_report, checkpoints, last_served_at, waiting_since, look_at, tools, health_value, health_confidence, health_row, health_why, health_mend, health_since, steered_at, informed, informed_at, told_at, max_live, max_tokens, max_cost, live_time, tokens, cost, currency, spawned_by, playbook, delivery, auto_close, unattended, slot_from, queued_at, ready_at, ready_note, account, model, overloads, fresh_sessions, session_over) VALUES ('t-0000000000000000000000000f', 1, 'r-0000000000000000000000000e', 'parser', 'x-0000000000000000000000000g', '/srv/parser', '{"adapter":"command","argv":["agent","--go"],"env":["API_KEY"],"on":null,"resumable":1}', '{"argv":[],"kind":"none","path":null}', 'active', 1772366400000000, NULL, NULL, NULL, 1772366400000000, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'new', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, 0, 0, 0, 1, 0, 0, NULL, NULL, NULL, '[]', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, NULL);


--
-- Data for Name: text; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.text (id, kind, task_id, body, digest, created_at, removed_at) VALUES ('x-00000000000000000000000003', 'objective', 't-00000000000000000000000002', 'Port the parser; keep every test green: äöü', 'ba4c26c651723a7c1c859cd02e2b7583a05205fec7ab3172b89ef4d1c0ad312c', 1772366400000000, NULL);
INSERT INTO public.text (id, kind, task_id, body, digest, created_at, removed_at) VALUES ('x-0000000000000000000000000g', 'objective', 't-0000000000000000000000000f', 'Port the parser; keep every test green: äöü', 'ba4c26c651723a7c1c859cd02e2b7583a05205fec7ab3172b89ef4d1c0ad312c', 1772366400000000, NULL);


--
-- Data for Name: token; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.token (id, revision, digest, role, task_id, lease_number, created_at, revoked_at, name, expires_at) VALUES ('y-00000000000000000000000009', 1, 'a86dcd47b2f30347af79c2fe6e6c416651a91709a6abc02e88005098e7176f82', 'agent', NULL, NULL, 1772366400000000, NULL, NULL, NULL);


--
-- Data for Name: usagelimit; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.usagelimit (id, revision, account, name, text, first_met_at, met_at, met_by, met, until, model, resets_at, closed_at, closed_by) VALUES ('l-0000000000000000000000000m', 1, 'claude/1', 'five_hour', 'hit', 1772366400000000, 1772366400000000, 't-00000000000000000000000002', 1, 1772366400000000, NULL, NULL, NULL, NULL);


--
-- Data for Name: wait; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.wait (id, revision, task_id, kind, question, opened_at, subject, until, attempt_id, closed_at, closed_by, answer) VALUES ('w-00000000000000000000000007', 1, 't-00000000000000000000000002', 'human', 'Which one?', 1772366400000000, NULL, NULL, NULL, NULL, NULL, NULL);


--
-- Data for Name: wake; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.wake (id, revision, task_id, kind, reason, not_before, created_at, anyway, asked_by, consumed_at, consumed_by) VALUES ('k-00000000000000000000000008', 1, 't-00000000000000000000000002', 'idle', 'the turn ended', 1772366400000000, 1772366400000000, 0, NULL, NULL, NULL);


--
-- Data for Name: worktree; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.worktree (id, revision, task_id, chain_id, repository, path, branch, base, state, created_at, command_id, begun_at_commit, reason, ended_at) VALUES ('b-0000000000000000000000000j', 1, 't-00000000000000000000000002', 'h-0000000000000000000000000c', '/repo', '/trees/t-00000000000000000000000002', 'tenuto/t-00000000000000000000000002', '{"branch":"main","remote":"origin"}', 'planned', 1772366400000000, NULL, NULL, NULL, NULL);


--
-- Name: alembic_version alembic_version_pkc; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);


--
-- Name: attempt attempt_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.attempt
    ADD CONSTRAINT attempt_pkey PRIMARY KEY (id);


--
-- Name: chain chain_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.chain
    ADD CONSTRAINT chain_pkey PRIMARY KEY (id);


--
-- Name: command command_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.command
    ADD CONSTRAINT command_pkey PRIMARY KEY (id);


--
-- Name: conversation conversation_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.conversation
    ADD CONSTRAINT conversation_pkey PRIMARY KEY (id);


--
-- Name: event event_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.event
    ADD CONSTRAINT event_pkey PRIMARY KEY (n);


--
-- Name: hold hold_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.hold
    ADD CONSTRAINT hold_pkey PRIMARY KEY (scope);


--
-- Name: idempotency idempotency_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.idempotency
    ADD CONSTRAINT idempotency_pkey PRIMARY KEY (scope, key);


--
-- Name: leadership leadership_one_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.leadership
    ADD CONSTRAINT leadership_one_key UNIQUE (one);


--
-- Name: link link_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.link
    ADD CONSTRAINT link_pkey PRIMARY KEY (id);


--
-- Name: mandate mandate_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.mandate
    ADD CONSTRAINT mandate_pkey PRIMARY KEY (id);


--
-- Name: message message_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.message
    ADD CONSTRAINT message_pkey PRIMARY KEY (id);


--
-- Name: permission permission_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.permission
    ADD CONSTRAINT permission_pkey PRIMARY KEY (id);


--
-- Name: phase phase_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.phase
    ADD CONSTRAINT phase_pkey PRIMARY KEY (id);


--
-- Name: proposal proposal_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.proposal
    ADD CONSTRAINT proposal_pkey PRIMARY KEY (id);


--
-- Name: registry registry_one_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.registry
    ADD CONSTRAINT registry_one_key UNIQUE (one);


--
-- Name: registry registry_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.registry
    ADD CONSTRAINT registry_pkey PRIMARY KEY (id);


--
-- Name: report report_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.report
    ADD CONSTRAINT report_pkey PRIMARY KEY (id);


--
-- Name: review review_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.review
    ADD CONSTRAINT review_pkey PRIMARY KEY (id);


--
-- Name: run run_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_pkey PRIMARY KEY (id);


--
-- Name: sample sample_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.sample
    ADD CONSTRAINT sample_pkey PRIMARY KEY (id);


--
-- Name: sighting sighting_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.sighting
    ADD CONSTRAINT sighting_pkey PRIMARY KEY (id);


--
-- Name: task task_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.task
    ADD CONSTRAINT task_pkey PRIMARY KEY (id);


--
-- Name: text text_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.text
    ADD CONSTRAINT text_pkey PRIMARY KEY (id);


--
-- Name: token token_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.token
    ADD CONSTRAINT token_pkey PRIMARY KEY (id);


--
-- Name: usagelimit usagelimit_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.usagelimit
    ADD CONSTRAINT usagelimit_pkey PRIMARY KEY (id);


--
-- Name: wait wait_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.wait
    ADD CONSTRAINT wait_pkey PRIMARY KEY (id);


--
-- Name: wake wake_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.wake
    ADD CONSTRAINT wake_pkey PRIMARY KEY (id);


--
-- Name: worktree worktree_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.worktree
    ADD CONSTRAINT worktree_pkey PRIMARY KEY (id);


--
-- Name: chain_looked_at; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX chain_looked_at ON public.chain USING btree (look_at, id) WHERE (look_at IS NOT NULL);


--
-- Name: command_of_attempt; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX command_of_attempt ON public.command USING btree (attempt_id, id);


--
-- Name: command_of_task; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX command_of_task ON public.command USING btree (task_id, id);


--
-- Name: command_open; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX command_open ON public.command USING btree (task_id) WHERE (state = ANY (ARRAY['ambiguous'::text, 'armed'::text, 'submitted'::text]));


--
-- Name: conversation_of_task; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX conversation_of_task ON public.conversation USING btree (task_id);


--
-- Name: event_of_run; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX event_of_run ON public.event USING btree (run_id, n) WHERE (run_id IS NOT NULL);


--
-- Name: event_of_task; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX event_of_task ON public.event USING btree (task_id, n) WHERE (task_id IS NOT NULL);


--
-- Name: every_wake_of_task; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX every_wake_of_task ON public.wake USING btree (task_id, id);


--
-- Name: link_not_done; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX link_not_done ON public.link USING btree (chain_id, unit) WHERE ((outcome IS NULL) OR (outcome <> 'done'::text));


--
-- Name: message_of_task; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX message_of_task ON public.message USING btree (task_id, id);


--
-- Name: message_undelivered; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX message_undelivered ON public.message USING btree (task_id, id) WHERE (state = ANY (ARRAY['ambiguous'::text, 'carried'::text, 'deferred'::text, 'retry_wait'::text]));


--
-- Name: one_active_conversation_per_identity; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX one_active_conversation_per_identity ON public.conversation USING btree (identity) WHERE (state = 'active'::text);


--
-- Name: one_active_conversation_per_task; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX one_active_conversation_per_task ON public.conversation USING btree (task_id) WHERE (state = 'active'::text);


--
-- Name: one_attempt_per_number; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX one_attempt_per_number ON public.attempt USING btree (task_id, number);


--
-- Name: one_limit_per_account; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX one_limit_per_account ON public.usagelimit USING btree (account, name) WHERE (closed_at IS NULL);


--
-- Name: one_link_per_cursor; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX one_link_per_cursor ON public.link USING btree (chain_id, key);


--
-- Name: one_link_per_position; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX one_link_per_position ON public.link USING btree (chain_id, "position");


--
-- Name: one_link_per_task; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX one_link_per_task ON public.link USING btree (task_id);


--
-- Name: one_live_attempt_per_task; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX one_live_attempt_per_task ON public.attempt USING btree (task_id) WHERE (state = 'live'::text);


--
-- Name: one_mandate_per_chain; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX one_mandate_per_chain ON public.mandate USING btree (chain_id);


--
-- Name: one_open_proposal_per_chain; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX one_open_proposal_per_chain ON public.proposal USING btree (chain_id) WHERE (state = 'open'::text);


--
-- Name: one_pending_wake_per_kind; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX one_pending_wake_per_kind ON public.wake USING btree (task_id, kind) WHERE (consumed_at IS NULL);


--
-- Name: one_phase_per_number; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX one_phase_per_number ON public.phase USING btree (chain_id, number);


--
-- Name: one_phase_per_unit; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX one_phase_per_unit ON public.phase USING btree (chain_id, unit);


--
-- Name: one_proposal_per_task; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX one_proposal_per_task ON public.proposal USING btree (task_id);


--
-- Name: one_question_per_request; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX one_question_per_request ON public.permission USING btree (command_id, request);


--
-- Name: one_review_at_a_time; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX one_review_at_a_time ON public.review USING btree (proposal_id) WHERE (verdict IS NULL);


--
-- Name: one_review_per_number; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX one_review_per_number ON public.review USING btree (proposal_id, number);


--
-- Name: one_review_per_task; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX one_review_per_task ON public.review USING btree (task_id);


--
-- Name: one_successor_per_task; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX one_successor_per_task ON public.link USING btree (chain_id, predecessor);


--
-- Name: one_task_per_unit; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX one_task_per_unit ON public.link USING btree (place, unit) WHERE (recorded_at IS NULL);


--
-- Name: one_token_per_digest; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX one_token_per_digest ON public.token USING btree (digest);


--
-- Name: one_worktree_per_branch; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX one_worktree_per_branch ON public.worktree USING btree (repository, branch);


--
-- Name: one_worktree_per_path; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX one_worktree_per_path ON public.worktree USING btree (path);


--
-- Name: one_worktree_per_task; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX one_worktree_per_task ON public.worktree USING btree (task_id);


--
-- Name: permission_of_task; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX permission_of_task ON public.permission USING btree (task_id, id);


--
-- Name: permission_open; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX permission_open ON public.permission USING btree (task_id, id) WHERE (closed_at IS NULL);


--
-- Name: proposal_of_chain; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX proposal_of_chain ON public.proposal USING btree (chain_id, id);


--
-- Name: report_of_task; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX report_of_task ON public.report USING btree (task_id, id);


--
-- Name: sample_of_task; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX sample_of_task ON public.sample USING btree (task_id, made_at);


--
-- Name: sighting_of_subject; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX sighting_of_subject ON public.sighting USING btree (task_id, subject, id);


--
-- Name: sighting_of_task; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX sighting_of_task ON public.sighting USING btree (task_id, id);


--
-- Name: task_due; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX task_due ON public.task USING btree (look_at, id) WHERE (look_at IS NOT NULL);


--
-- Name: task_in_line; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX task_in_line ON public.task USING btree (created_at, id) WHERE (queued_at IS NOT NULL);


--
-- Name: task_of_objective; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX task_of_objective ON public.task USING btree (objective);


--
-- Name: task_of_parent; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX task_of_parent ON public.task USING btree (parent, id) WHERE (parent IS NOT NULL);


--
-- Name: task_of_run; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX task_of_run ON public.task USING btree (run_id, id);


--
-- Name: task_spawned; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX task_spawned ON public.task USING btree (spawned_by, created_at) WHERE (spawned_by IS NOT NULL);


--
-- Name: task_state; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX task_state ON public.task USING btree (state, id);


--
-- Name: task_unfinished; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX task_unfinished ON public.task USING btree (run_id, id) WHERE (state = ANY (ARRAY['active'::text, 'pending'::text]));


--
-- Name: text_kept; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX text_kept ON public.text USING btree (task_id, id) WHERE (body IS NOT NULL);


--
-- Name: text_of_digest; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX text_of_digest ON public.text USING btree (digest) WHERE (kind = 'objective'::text);


--
-- Name: token_named; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX token_named ON public.token USING btree (id) WHERE (name IS NOT NULL);


--
-- Name: token_of_task; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX token_of_task ON public.token USING btree (task_id, id) WHERE (revoked_at IS NULL);


--
-- Name: usagelimit_open; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX usagelimit_open ON public.usagelimit USING btree (id) WHERE (closed_at IS NULL);


--
-- Name: wait_of_task; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX wait_of_task ON public.wait USING btree (task_id, id);


--
-- Name: wait_open; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX wait_open ON public.wait USING btree (task_id, id) WHERE (closed_at IS NULL);


--
-- Name: worktree_of_chain; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX worktree_of_chain ON public.worktree USING btree (chain_id, id) WHERE (chain_id IS NOT NULL);


--
-- Name: worktree_there; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX worktree_there ON public.worktree USING btree (id) WHERE (state = ANY (ARRAY['kept'::text, 'ready'::text]));


--
-- Name: attempt attempt_moves; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER attempt_moves BEFORE UPDATE OF state ON public.attempt FOR EACH ROW WHEN (((new.state <> old.state) AND (NOT (((old.state = 'live'::text) AND (new.state = 'ended'::text)) OR ((old.state = 'scheduled'::text) AND (new.state = 'cancelled'::text)) OR ((old.state = 'scheduled'::text) AND (new.state = 'live'::text)))))) EXECUTE FUNCTION public.attempt_moves();


--
-- Name: chain chain_moves; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER chain_moves BEFORE UPDATE OF state ON public.chain FOR EACH ROW WHEN (((new.state <> old.state) AND (NOT (((old.state = 'open'::text) AND (new.state = 'capped'::text)) OR ((old.state = 'open'::text) AND (new.state = 'complete'::text)) OR ((old.state = 'open'::text) AND (new.state = 'stopped'::text)))))) EXECUTE FUNCTION public.chain_moves();


--
-- Name: command command_moves; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER command_moves BEFORE UPDATE OF state ON public.command FOR EACH ROW WHEN (((new.state <> old.state) AND (NOT (((old.state = 'ambiguous'::text) AND (new.state = 'acknowledged'::text)) OR ((old.state = 'ambiguous'::text) AND (new.state = 'failed'::text)) OR ((old.state = 'ambiguous'::text) AND (new.state = 'released'::text)) OR ((old.state = 'armed'::text) AND (new.state = 'ambiguous'::text)) OR ((old.state = 'armed'::text) AND (new.state = 'failed'::text)) OR ((old.state = 'armed'::text) AND (new.state = 'submitted'::text)) OR ((old.state = 'queued'::text) AND (new.state = 'armed'::text)) OR ((old.state = 'queued'::text) AND (new.state = 'cancelled'::text)) OR ((old.state = 'queued'::text) AND (new.state = 'expired'::text)) OR ((old.state = 'released'::text) AND (new.state = 'acknowledged'::text)) OR ((old.state = 'submitted'::text) AND (new.state = 'acknowledged'::text)) OR ((old.state = 'submitted'::text) AND (new.state = 'ambiguous'::text)) OR ((old.state = 'submitted'::text) AND (new.state = 'failed'::text)))))) EXECUTE FUNCTION public.command_moves();


--
-- Name: conversation conversation_moves; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER conversation_moves BEFORE UPDATE OF state ON public.conversation FOR EACH ROW WHEN (((new.state <> old.state) AND (NOT (((old.state = 'active'::text) AND (new.state = 'abandoned'::text)) OR ((old.state = 'active'::text) AND (new.state = 'active'::text)) OR ((old.state = 'active'::text) AND (new.state = 'ended'::text)) OR ((old.state = 'active'::text) AND (new.state = 'superseded'::text)) OR ((old.state = 'candidate'::text) AND (new.state = 'abandoned'::text)) OR ((old.state = 'candidate'::text) AND (new.state = 'active'::text)))))) EXECUTE FUNCTION public.conversation_moves();


--
-- Name: event event_stays; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER event_stays BEFORE UPDATE ON public.event FOR EACH ROW WHEN ((1 = 1)) EXECUTE FUNCTION public.event_stays();


--
-- Name: message message_moves; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER message_moves BEFORE UPDATE OF state ON public.message FOR EACH ROW WHEN (((new.state <> old.state) AND (NOT (((old.state = 'ambiguous'::text) AND (new.state = 'deferred'::text)) OR ((old.state = 'ambiguous'::text) AND (new.state = 'delivered'::text)) OR ((old.state = 'ambiguous'::text) AND (new.state = 'dropped'::text)) OR ((old.state = 'carried'::text) AND (new.state = 'ambiguous'::text)) OR ((old.state = 'carried'::text) AND (new.state = 'deferred'::text)) OR ((old.state = 'carried'::text) AND (new.state = 'delivered'::text)) OR ((old.state = 'carried'::text) AND (new.state = 'retry_wait'::text)) OR ((old.state = 'deferred'::text) AND (new.state = 'carried'::text)) OR ((old.state = 'deferred'::text) AND (new.state = 'dropped'::text)) OR ((old.state = 'recorded'::text) AND (new.state = 'deferred'::text)) OR ((old.state = 'retry_wait'::text) AND (new.state = 'carried'::text)) OR ((old.state = 'retry_wait'::text) AND (new.state = 'deferred'::text)) OR ((old.state = 'retry_wait'::text) AND (new.state = 'dropped'::text)))))) EXECUTE FUNCTION public.message_moves();


--
-- Name: phase phase_moves; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER phase_moves BEFORE UPDATE OF state ON public.phase FOR EACH ROW WHEN (((new.state <> old.state) AND (NOT (((old.state = 'closed'::text) AND (new.state = 'merged'::text)) OR ((old.state = 'closed'::text) AND (new.state = 'open'::text)) OR ((old.state = 'closed'::text) AND (new.state = 'reverted'::text)) OR ((old.state = 'merged'::text) AND (new.state = 'open'::text)) OR ((old.state = 'merged'::text) AND (new.state = 'reverted'::text)) OR ((old.state = 'open'::text) AND (new.state = 'closed'::text)) OR ((old.state = 'open'::text) AND (new.state = 'merged'::text)) OR ((old.state = 'open'::text) AND (new.state = 'reverted'::text)) OR ((old.state = 'reverted'::text) AND (new.state = 'merged'::text)) OR ((old.state = 'reverted'::text) AND (new.state = 'open'::text)))))) EXECUTE FUNCTION public.phase_moves();


--
-- Name: proposal proposal_moves; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER proposal_moves BEFORE UPDATE OF state ON public.proposal FOR EACH ROW WHEN (((new.state <> old.state) AND (NOT (((old.state = 'open'::text) AND (new.state = 'merged'::text)) OR ((old.state = 'open'::text) AND (new.state = 'turned_down'::text)))))) EXECUTE FUNCTION public.proposal_moves();


--
-- Name: run run_moves; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER run_moves BEFORE UPDATE OF state ON public.run FOR EACH ROW WHEN (((new.state <> old.state) AND (NOT ((old.state = 'open'::text) AND (new.state = 'stopped'::text))))) EXECUTE FUNCTION public.run_moves();


--
-- Name: task task_moves; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER task_moves BEFORE UPDATE OF state ON public.task FOR EACH ROW WHEN (((new.state <> old.state) AND (NOT (((old.state = 'active'::text) AND (new.state = 'cancelled'::text)) OR ((old.state = 'active'::text) AND (new.state = 'completed'::text)) OR ((old.state = 'active'::text) AND (new.state = 'failed'::text)) OR ((old.state = 'active'::text) AND (new.state = 'pending'::text)) OR ((old.state = 'pending'::text) AND (new.state = 'active'::text)) OR ((old.state = 'pending'::text) AND (new.state = 'cancelled'::text)) OR ((old.state = 'pending'::text) AND (new.state = 'completed'::text)) OR ((old.state = 'pending'::text) AND (new.state = 'failed'::text)))))) EXECUTE FUNCTION public.task_moves();


--
-- Name: worktree worktree_moves; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER worktree_moves BEFORE UPDATE OF state ON public.worktree FOR EACH ROW WHEN (((new.state <> old.state) AND (NOT (((old.state = 'kept'::text) AND (new.state = 'gone'::text)) OR ((old.state = 'kept'::text) AND (new.state = 'kept'::text)) OR ((old.state = 'planned'::text) AND (new.state = 'failed'::text)) OR ((old.state = 'planned'::text) AND (new.state = 'ready'::text)) OR ((old.state = 'ready'::text) AND (new.state = 'gone'::text)) OR ((old.state = 'ready'::text) AND (new.state = 'kept'::text)))))) EXECUTE FUNCTION public.worktree_moves();


--
-- Name: attempt attempt_conversation_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.attempt
    ADD CONSTRAINT attempt_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES public.conversation(id);


--
-- Name: attempt attempt_task_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.attempt
    ADD CONSTRAINT attempt_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.task(id);


--
-- Name: chain chain_run_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.chain
    ADD CONSTRAINT chain_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.run(id);


--
-- Name: chain chain_swept_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.chain
    ADD CONSTRAINT chain_swept_fkey FOREIGN KEY (swept) REFERENCES public.text(id);


--
-- Name: command command_attempt_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.command
    ADD CONSTRAINT command_attempt_id_fkey FOREIGN KEY (attempt_id) REFERENCES public.attempt(id);


--
-- Name: command command_conversation_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.command
    ADD CONSTRAINT command_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES public.conversation(id);


--
-- Name: command command_payload_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.command
    ADD CONSTRAINT command_payload_fkey FOREIGN KEY (payload) REFERENCES public.text(id);


--
-- Name: command command_task_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.command
    ADD CONSTRAINT command_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.task(id);


--
-- Name: conversation conversation_task_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.conversation
    ADD CONSTRAINT conversation_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.task(id);


--
-- Name: hold hold_command_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.hold
    ADD CONSTRAINT hold_command_id_fkey FOREIGN KEY (command_id) REFERENCES public.command(id);


--
-- Name: link link_chain_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.link
    ADD CONSTRAINT link_chain_id_fkey FOREIGN KEY (chain_id) REFERENCES public.chain(id);


--
-- Name: link link_command_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.link
    ADD CONSTRAINT link_command_id_fkey FOREIGN KEY (command_id) REFERENCES public.command(id);


--
-- Name: link link_predecessor_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.link
    ADD CONSTRAINT link_predecessor_fkey FOREIGN KEY (predecessor) REFERENCES public.task(id);


--
-- Name: link link_task_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.link
    ADD CONSTRAINT link_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.task(id);


--
-- Name: mandate mandate_chain_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.mandate
    ADD CONSTRAINT mandate_chain_id_fkey FOREIGN KEY (chain_id) REFERENCES public.chain(id);


--
-- Name: message message_carried_by_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.message
    ADD CONSTRAINT message_carried_by_fkey FOREIGN KEY (carried_by) REFERENCES public.command(id);


--
-- Name: message message_task_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.message
    ADD CONSTRAINT message_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.task(id);


--
-- Name: message message_text_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.message
    ADD CONSTRAINT message_text_fkey FOREIGN KEY (text) REFERENCES public.text(id);


--
-- Name: permission permission_attempt_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.permission
    ADD CONSTRAINT permission_attempt_id_fkey FOREIGN KEY (attempt_id) REFERENCES public.attempt(id);


--
-- Name: permission permission_command_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.permission
    ADD CONSTRAINT permission_command_id_fkey FOREIGN KEY (command_id) REFERENCES public.command(id);


--
-- Name: permission permission_task_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.permission
    ADD CONSTRAINT permission_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.task(id);


--
-- Name: permission permission_wait_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.permission
    ADD CONSTRAINT permission_wait_id_fkey FOREIGN KEY (wait_id) REFERENCES public.wait(id);


--
-- Name: permission permission_words_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.permission
    ADD CONSTRAINT permission_words_fkey FOREIGN KEY (words) REFERENCES public.text(id);


--
-- Name: phase phase_chain_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.phase
    ADD CONSTRAINT phase_chain_id_fkey FOREIGN KEY (chain_id) REFERENCES public.chain(id);


--
-- Name: phase phase_task_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.phase
    ADD CONSTRAINT phase_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.task(id);


--
-- Name: proposal proposal_chain_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.proposal
    ADD CONSTRAINT proposal_chain_id_fkey FOREIGN KEY (chain_id) REFERENCES public.chain(id);


--
-- Name: proposal proposal_gate_command_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.proposal
    ADD CONSTRAINT proposal_gate_command_fkey FOREIGN KEY (gate_command) REFERENCES public.command(id);


--
-- Name: proposal proposal_merge_command_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.proposal
    ADD CONSTRAINT proposal_merge_command_fkey FOREIGN KEY (merge_command) REFERENCES public.command(id);


--
-- Name: proposal proposal_task_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.proposal
    ADD CONSTRAINT proposal_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.task(id);


--
-- Name: report report_task_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.report
    ADD CONSTRAINT report_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.task(id);


--
-- Name: review review_proposal_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.review
    ADD CONSTRAINT review_proposal_id_fkey FOREIGN KEY (proposal_id) REFERENCES public.proposal(id);


--
-- Name: review review_task_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.review
    ADD CONSTRAINT review_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.task(id);


--
-- Name: sample sample_task_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.sample
    ADD CONSTRAINT sample_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.task(id);


--
-- Name: sighting sighting_task_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.sighting
    ADD CONSTRAINT sighting_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.task(id);


--
-- Name: task task_objective_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.task
    ADD CONSTRAINT task_objective_fkey FOREIGN KEY (objective) REFERENCES public.text(id);


--
-- Name: task task_parent_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.task
    ADD CONSTRAINT task_parent_fkey FOREIGN KEY (parent) REFERENCES public.task(id);


--
-- Name: task task_run_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.task
    ADD CONSTRAINT task_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.run(id);


--
-- Name: task task_slot_from_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.task
    ADD CONSTRAINT task_slot_from_fkey FOREIGN KEY (slot_from) REFERENCES public.task(id);


--
-- Name: token token_task_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.token
    ADD CONSTRAINT token_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.task(id);


--
-- Name: usagelimit usagelimit_met_by_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.usagelimit
    ADD CONSTRAINT usagelimit_met_by_fkey FOREIGN KEY (met_by) REFERENCES public.task(id);


--
-- Name: wait wait_task_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.wait
    ADD CONSTRAINT wait_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.task(id);


--
-- Name: wake wake_task_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.wake
    ADD CONSTRAINT wake_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.task(id);


--
-- Name: worktree worktree_chain_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.worktree
    ADD CONSTRAINT worktree_chain_id_fkey FOREIGN KEY (chain_id) REFERENCES public.chain(id);


--
-- Name: worktree worktree_command_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.worktree
    ADD CONSTRAINT worktree_command_id_fkey FOREIGN KEY (command_id) REFERENCES public.command(id);


--
-- Name: worktree worktree_task_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.worktree
    ADD CONSTRAINT worktree_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.task(id);

"""SQL of the invariants: each query lists the violations of one. %(run)s is the run's id."""

INVARIANTS = {
    "run is open": """
        select number, state from runs_run
        where id = %(run)s and state not in ('done', 'failed', 'cancelled')""",
    "trial has not ended": """
        select index + 1, state from runs_trial
        where run_id = %(run)s and state not in ('done', 'failed', 'cancelled')""",
    "trial without a reason": """
        select index + 1, state from runs_trial
        where run_id = %(run)s and state <> 'done' and reason_code = ''""",
    "lease held": """
        select kind, state, lease_until from runs_attempt where state in ('dispatched', 'accepted', 'running')""",
    "drive locked": "select lock_key from runs_targetlock",
    # A try has an attempt on each host. If one of several fails, all hosts repeat the trial, also those that were done.
    "done trial without exactly one done try, which is the last one": """
        select t.index + 1, t.state, tries.done, tries.last from runs_trial t
        cross join lateral (
            select max(number) as last, array_agg(number) filter (where hosts = wanted) as done from (
                select a.number, coalesce((t.point ->> 'hosts_at_once')::int, 1) as wanted,
                    count(distinct a.host_id) filter (where a.state = 'done') as hosts
                from runs_attempt a where a.trial_id = t.id group by a.number) try) tries
        where t.run_id = %(run)s
          and tries.done is distinct from case when t.state = 'done' then array[tries.last] end""",
    "trial without exactly one result a stream and direction": """
        select t.index + 1, l.stream, r.direction, count(r.id) from runs_trial t
        left join results_result r on r.trial_id = t.id
        left join results_streamrun l on l.id = r.stream_run_id
        where t.run_id = %(run)s group by t.id, l.stream, r.direction
        having count(r.id) <> (t.state = 'done')::int""",
    "samples missing or too many": """
        select t.index + 1, l.samples_sent, count(distinct s.offset_ms), max(s.offset_ms) from runs_trial t
        join runs_attempt a on a.trial_id = t.id and a.state = 'done'
        join results_streamrun l on l.attempt_id = a.id
        left join results_sample s on s.attempt_id = a.id and s.stream = l.stream
        where t.run_id = %(run)s group by t.index, l.id
        having count(distinct s.offset_ms) <> l.samples_sent or count(s.offset_ms) = 0""",
    "samples that do not add up to the result": """
        select t.index + 1, r.direction, r.ios, sum(s.ios) from results_result r
        join runs_trial t on t.id = r.trial_id
        join results_streamrun l on l.id = r.stream_run_id
        join runs_attempt of_result on of_result.id = l.attempt_id
        left join runs_attempt a on a.trial_id = t.id and a.state = 'done' and a.number = of_result.number
        left join results_sample s on s.attempt_id = a.id and s.direction = r.direction
            and (s.stream = l.stream or t.point ->> 'hosts_at_once' is not null)
        where r.run_id = %(run)s group by t.index, r.id
        having r.direction <> 'transaction'
            and (sum(s.ios) is distinct from r.ios or sum(s.bytes) is distinct from r.bytes)""",
    # Without an observed value, the worker could not read the setting: the drive was absent or quarantined, or its tool
    # hung. It restores the setting later, and the checks of the hosts see whether it did.
    "setting that the server records as not restored": """
        select c.name, c.device, c.note from runs_settingchange c
        join runs_attempt a on a.id = c.attempt_id
        where a.run_id = %(run)s and a.kind = 'close_run' and c.restoring and not c.restored
          and (c.observed <> '' or c.name in ('layout', 'password', 'temporary folder'))""",
}
FAILED_TRIALS = """
    select index + 1, reason_code, left(coalesce(reason_fields ->> 'message', reason_fields::text), 300)
    from runs_trial where run_id = %(run)s and state = 'failed'"""
RUN_END = """
    select state, reason_code, coalesce(reason_fields ->> 'message', reason_fields::text)
    from runs_run where id = %(run)s"""
TRIAL_STREAMS = """
    select a.id, l.stream, a.state, left(l.job_text, 1) = '[' from runs_attempt a
    join results_streamrun l on l.attempt_id = a.id where a.run_id = %(run)s and a.kind = 'trial'"""
OUTCOMES = "select state, reason_code from runs_trial where run_id = %(run)s"
REFUSED_WORKERS = "select count(*) from core_auditentry where action = 'host.second_worker'"
ATTEMPTS = "select state, outcome_code from runs_attempt"

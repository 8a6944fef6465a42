-- Views of a store in ClickHouse, for xenoscope.json and your own queries. Run them in the store's database:
--   clickhouse-client --database profiles --multiquery < views.sql
-- Restrict `begin_ns` (ns of UTC since 1970), `event` and `host`: the table is ordered by these.
-- Slices for which a joined one stands are left out also while their rows are still there.

CREATE VIEW IF NOT EXISTS xenoscope_slices AS
SELECT toDateTime(intDiv(begin_ns, 1000000000)) AS time, begin_ns, end_ns, event, host,
  (end_ns - begin_ns) / 1e9 AS length, clock_error_ns / 1e9 AS clock_error, traced
FROM sums_4 WHERE kind = 'slice' AND push GLOBAL NOT IN (
  SELECT replaced FROM sums_4 WHERE event = '' AND kind = 'replaced');

-- The time of each vCPU by its state or VM exit: seconds of the trace, and the samples in them. What no trace measures
-- ('untraced') is of no domain here, and 'lost' is what the trace has lost.
CREATE VIEW IF NOT EXISTS xenoscope_states AS
SELECT toDateTime(intDiv(begin_ns, 1000000000)) AS time, begin_ns, event, host, domain, vcpu, toString(context) AS state,
  exit, both_modes, (end_ns - begin_ns) / 1e9 AS length, cycles / clock_hz AS seconds, n AS samples
FROM sums_4 WHERE kind = 'stratum' AND push GLOBAL NOT IN (
  SELECT replaced FROM sums_4 WHERE event = '' AND kind = 'replaced');

-- Samples by code. `sample_seconds` is what a sample stands for where no trace says it.
CREATE VIEW IF NOT EXISTS xenoscope_samples AS
SELECT toDateTime(intDiv(begin_ns, 1000000000)) AS time, begin_ns, event, host, domain, vcpu, toString(context) AS state,
  exit, both_modes, toString(mode) AS mode, image, function, x AS samples, period / clock_hz AS sample_seconds
FROM sums_4 WHERE kind = 'part' AND push GLOBAL NOT IN (
  SELECT replaced FROM sums_4 WHERE event = '' AND kind = 'replaced');

CREATE VIEW IF NOT EXISTS xenoscope_counters AS
SELECT toDateTime(intDiv(begin_ns, 1000000000)) AS time, begin_ns, event, host, counter, value
FROM sums_4 WHERE kind = 'counter' AND push GLOBAL NOT IN (
  SELECT replaced FROM sums_4 WHERE event = '' AND kind = 'replaced');

-- What the trace of each vCPU shows: counts and times, exact. `figure` is runstate (label: the state), wait (label: why
-- it was runnable; other: the domain that had the pCPU), exit (label and part: reason and subreason), hypercall (label
-- and part: its name and operation; seconds are 0 for PV guests) or, of no vCPU,
-- finding (label: the rule; other: the domain).
CREATE VIEW IF NOT EXISTS xenoscope_figures AS
SELECT toDateTime(intDiv(begin_ns, 1000000000)) AS time, begin_ns, event, host, domain, vcpu, toString(figure) AS figure,
  label, part, other, count, cycles / clock_hz AS seconds
FROM sums_4 WHERE kind = 'trace' AND push GLOBAL NOT IN (
  SELECT replaced FROM sums_4 WHERE event = '' AND kind = 'replaced');

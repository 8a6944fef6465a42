-- Views of a store in ClickHouse, for xenoscope.json and your own queries. Run them in the store's database:
--   clickhouse-client --database profiles --multiquery < views.sql
-- Restrict `begin_ns` (ns of UTC since 1970), `event` and `host`: the table is ordered by these.
-- A row of the table is a slice, which has lists of what it counts; ARRAY JOIN makes rows of them. Figures are of all
-- vCPUs of a domain together. Slices for which another one stands are left out also while they are still there.

CREATE VIEW IF NOT EXISTS xenoscope_slices AS
SELECT toDateTime(intDiv(begin_ns, 1000000000)) AS time, begin_ns, end_ns, event, host,
  (end_ns - begin_ns) / 1e9 AS length, clock_error_ns / 1e9 AS clock_error, traced
FROM sums_5 WHERE kind = 'slice' AND push GLOBAL NOT IN (
  SELECT replaced FROM sums_5 WHERE event = '' AND kind = 'replaced');

-- The time of each domain by its state or VM exit: seconds of the trace, and the samples in them. What no trace measures
-- ('untraced') is of no domain here, and 'lost' is what the trace has lost.
CREATE VIEW IF NOT EXISTS xenoscope_states AS
SELECT toDateTime(intDiv(begin_ns, 1000000000)) AS time, begin_ns, event, host, strata.domain AS domain,
  toString(strata.context) AS state, strata.exit AS exit, strata.both_modes AS both_modes,
  (end_ns - begin_ns) / 1e9 AS length, strata.cycles / clock_hz AS seconds, strata.n AS samples
FROM sums_5 ARRAY JOIN strata WHERE kind = 'slice' AND push GLOBAL NOT IN (
  SELECT replaced FROM sums_5 WHERE event = '' AND kind = 'replaced');

-- Samples by code. `sample_seconds` is what a sample stands for where no trace says it.
CREATE VIEW IF NOT EXISTS xenoscope_samples AS
SELECT toDateTime(intDiv(begin_ns, 1000000000)) AS time, begin_ns, event, host, parts.domain AS domain,
  toString(parts.context) AS state, parts.exit AS exit, parts.both_modes AS both_modes, toString(parts.mode) AS mode,
  parts.image AS image, parts.function AS function, parts.x AS samples, period / clock_hz AS sample_seconds
FROM sums_5 ARRAY JOIN parts WHERE kind = 'slice' AND push GLOBAL NOT IN (
  SELECT replaced FROM sums_5 WHERE event = '' AND kind = 'replaced');

CREATE VIEW IF NOT EXISTS xenoscope_counters AS
SELECT toDateTime(intDiv(begin_ns, 1000000000)) AS time, begin_ns, event, host, counters.name AS counter,
  counters.value AS value
FROM sums_5 ARRAY JOIN counters WHERE kind = 'slice' AND push GLOBAL NOT IN (
  SELECT replaced FROM sums_5 WHERE event = '' AND kind = 'replaced');

-- What the trace of each domain shows: counts and times, exact. `figure` is runstate (label: the state), wait (label: why
-- it was runnable; other: the domain that had the pCPU), exit (label and part: reason and subreason), hypercall (label
-- and part: its name and operation; seconds are 0 for PV guests) or, of no domain, finding (label: the rule; other: the
-- domain).
CREATE VIEW IF NOT EXISTS xenoscope_figures AS
SELECT toDateTime(intDiv(begin_ns, 1000000000)) AS time, begin_ns, event, host, trace.domain AS domain,
  toString(trace.figure) AS figure, trace.label AS label, trace.part AS part, trace.other AS other,
  trace.count AS count, trace.cycles / clock_hz AS seconds
FROM sums_5 ARRAY JOIN trace WHERE kind = 'slice' AND push GLOBAL NOT IN (
  SELECT replaced FROM sums_5 WHERE event = '' AND kind = 'replaced');

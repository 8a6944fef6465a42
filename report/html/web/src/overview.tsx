// The overview: findings, the size of the profile, domains, data quality.
import type { JSX } from "preact";
import type { Domain, Page, Report } from "./data";
import { Findings } from "./findings";
import { count, intervalWords, percent, short, time } from "./format";
import { Legend, NameCell, Whisker, choosable } from "./parts";
import type { RowFilter } from "./rows";

/** Rows of a table of domains or exits: hosts with hundreds of domains have more. */
const MOST_ROWS = 40;

const UNPLACED_REASONS: Record<string, string> = {
  outside_trace: "outside the trace",
  unknown_vcpu: "of vCPUs that are not in the trace",
  not_running: "taken when their vCPU was not running",
  mode_disagrees: "in a mode that their vCPU was not in at that time",
  trace_lost: "where the trace lost records",
  out_of_order: "out of order in time",
};

const MODES: [mode: string, words: string][] = [
  ["user", "user"],
  ["kernel", "kernel"],
  ["xen", "Xen"],
];

function Card(props: { page: Page; title: string; value: string; note: string }): JSX.Element {
  return (
    <div class="card" title={props.page.words.overview[props.title]}>
      <span class="soft">{props.title}</span>
      <b>{props.value}</b>
      <span class="soft">{props.note}</span>
    </div>
  );
}

/** What was lost, with numbers that are not 0. */
function lossesOf(report: Report): [what: string, number: number][] {
  const losses: [string, number][] = [
    ...Object.entries(report.samples.remainders).map(([name, n]): [string, number] => [
      `samples ${UNPLACED_REASONS[name] ?? name}`,
      n,
    ]),
    ["samples lost because their buffers were full", report.samples.lost_in_buffers],
    ["samples in damaged parts of the recording", report.samples.damaged],
    ["samples outside the selected time", report.samples.outside_range],
    ["trace records lost", report.trace.lost_records],
    ["damaged places in the trace", report.trace.damages],
    ["trace records of a size or vCPU that Xen does not write", report.trace.malformed_records],
    ["guest addresses are stale: they date from the last VM entry", report.samples.stale_addresses],
  ];
  return losses.filter(([, n]) => n > 0);
}

function Cards({ page, report, inXen }: { page: Page; report: Report; inXen: number }): JSX.Element {
  const losses = lossesOf(report).length;
  const disagree = report.checks.filter((check) => !check.agrees).length;
  const { samples, cycles, checks } = report;
  return (
    <div class="cards">
      <Card
        page={page}
        title="samples attributed"
        value={count(samples.attributed)}
        note={`of ${count(samples.total)}`}
      />
      {page.is_time && cycles.attributed !== null ? (
        <Card
          page={page}
          title="cycles"
          value={short(cycles.attributed)}
          note={`at ${(report.cpu_hz / 1e9).toFixed(3)} GHz (${report.cpu_hz_source})`}
        />
      ) : null}
      <Card page={page} title="time" value={time(page.seconds)} note={report.event} />
      <Card
        page={page}
        title="Xen's share"
        value={inXen > 0 ? percent(inXen) : "unknown"}
        note={inXen > 0 ? "of all domains' time" : "no samples in Xen"}
      />
      <Card
        page={page}
        title="losses"
        value={losses === 0 ? "none" : `${losses} ${losses === 1 ? "kind" : "kinds"}`}
        note={losses === 0 ? "every sample is attributed" : "see Data quality"}
      />
      <Card
        page={page}
        title="samples and trace"
        value={checks.length === 0 ? "no trace" : disagree === 0 ? "agree ✓" : `${disagree} differ`}
        note={`${checks.length} ${checks.length === 1 ? "domain" : "domains"} checked`}
      />
    </div>
  );
}

/** A domain's time by mode, as parts of a bar. */
function Modes({ domain }: { domain: Domain }): JSX.Element {
  const part = (mode: string): number => (domain.modes[mode] ?? 0) / (domain.share || 1);
  const text = MODES.map(([mode]) => `${mode} ${percent(part(mode), 1)}`).join(", ");
  return (
    <div class="stack" title={text} role="img" aria-label={text}>
      {MODES.map(([mode]) => (
        <i style={{ width: `${part(mode) * 100}%`, background: `var(--${mode})` }} />
      ))}
    </div>
  );
}

type DrillDown = (where: RowFilter[]) => void;

function Domains(props: { page: Page; domains: Domain[]; inXen: number; drillDown: DrillDown }): JSX.Element {
  const { page, domains, inXen, drillDown } = props;
  const { profile, overview } = page.words;
  const most = Math.max(...domains.map((d) => d.high), 0);
  const shown = [...domains].sort((a, b) => b.share - a.share).slice(0, MOST_ROWS);
  const more = domains.length - MOST_ROWS;
  return (
    <>
      <h2>Domains</h2>
      <Legend of={MODES} />
      <div class="scroll">
        <table id="table-domains">
          <thead>
            <tr>
              <th title={profile.domain}>domain</th>
              <th class="n" title={profile.samples}>
                samples
              </th>
              <th class="n" title={profile.share}>
                share
              </th>
              <th title={intervalWords(profile)}>95 % interval</th>
              {page.is_time ? (
                <th class="n" title={profile.cycles}>
                  cycles
                </th>
              ) : null}
              <th title={profile.mode}>by mode</th>
              <th class="n" title={overview["part of Xen"]}>
                part of Xen
              </th>
            </tr>
          </thead>
          <tbody>
            {shown.map((d) => (
              <tr key={d.name} {...choosable(() => drillDown([["domain", d.name]]))}>
                <NameCell name={d.name} />
                <td class="n">{count(d.samples)}</td>
                <td class="n">{percent(d.share)}</td>
                {d.low === d.high ? (
                  <td class="soft" title="The trace measures it exactly.">
                    traced
                  </td>
                ) : (
                  <td>
                    <Whisker {...d} most={most} />
                  </td>
                )}
                {page.is_time ? <td class="n">{short(d.cycles ?? 0)}</td> : null}
                <td>
                  <Modes domain={d} />
                </td>
                <td class="n">{inXen > 0 ? percent((d.modes.xen ?? 0) / inXen) : "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {more > 0 ? <p class="soft">{`${more} more: the list of domains, or Functions by domain`}</p> : null}
    </>
  );
}

type Check = Report["checks"][number];

/** The domains whose samples were compared with the trace; of many, those that agree least. */
function Checks({ page, checks }: { page: Page; checks: Check[] }): JSX.Element {
  if (checks.length === 0) return <p class="soft">There is no trace to compare the samples with.</p>;
  const words = page.words.checks;
  const off = (check: Check): number => Math.abs(check.sampled - check.traced) / (check.error || 1);
  const sorted = checks.length > MOST_ROWS ? [...checks].sort((a, b) => off(b) - off(a)) : checks;
  const more = checks.length - MOST_ROWS;
  return (
    <>
      <div class="scroll">
        <table id="table-checks">
          <thead>
            <tr>
              <th title={page.words.profile.domain}>domain</th>
              <th class="n" title={words.sampled}>
                part of samples
              </th>
              <th title={words.error}>± 3 standard errors</th>
              <th class="n" title={words.traced}>
                part of run time
              </th>
              <th />
            </tr>
          </thead>
          <tbody>
            {sorted.slice(0, MOST_ROWS).map((check) => (
              <tr>
                <NameCell name={check.domain} />
                <td class="n">{percent(check.sampled)}</td>
                <td>
                  <Whisker
                    share={check.sampled}
                    low={check.sampled - 3 * check.error}
                    high={check.sampled + 3 * check.error}
                    most={1}
                  />
                </td>
                <td class="n">{percent(check.traced)}</td>
                <td>{check.agrees ? <span class="good">✓ agree</span> : <span class="warn">✗ differ</span>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {more > 0 ? <p class="soft">{`${more} more agree better`}</p> : null}
    </>
  );
}

function DataQuality({ page, report }: { page: Page; report: Report }): JSX.Element {
  const notes = [
    ...lossesOf(report).map(([what, n]) => `${count(n)} ${what}`),
    ...report.changes.map((change) => `during the recording: ${change}`),
    ...report.cautions,
    ...(page.notes ?? []),
    ...(report.cycles.unsampled > 0
      ? [`${short(report.cycles.unsampled)} cycles of these domains have no sample`]
      : []),
  ];
  return (
    <ul class="notes" id="data-quality">
      {notes.length === 0 ? <li class="soft">no losses, no disagreements</li> : notes.map((note) => <li>{note}</li>)}
    </ul>
  );
}

export function Overview(props: { page: Page; report: Report; drillDown: DrillDown }): JSX.Element {
  const { page, report, drillDown } = props;
  const ofWhole = page.selection === undefined ? "" : ", of the whole recording";
  const domains = page.domains ?? [];
  const inXen = domains.reduce((sum, d) => sum + (d.modes.xen ?? 0), 0);
  return (
    <section>
      <Findings page={page} all={report.findings} />
      <Cards page={page} report={report} inXen={inXen} />
      <Domains page={page} domains={domains} inXen={inXen} drillDown={drillDown} />
      <h2>{`Samples and trace${ofWhole}`}</h2>
      <Checks page={page} checks={report.checks} />
      <h2>{`Data quality${ofWhole}`}</h2>
      <DataQuality page={page} report={report} />
    </section>
  );
}

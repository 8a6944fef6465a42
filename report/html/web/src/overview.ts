// The overview (size of the profile, domains, data quality) and the differences of two profiles.
import { DiffRow, Page, Report } from "./data";
import { amount, count, h, intervalWords, nameCell, percent, s, short, time, whisker, Child } from "./dom";
import { diffGraph } from "./diff_graph";
import { findingsList } from "./findings";
import { RowFilter } from "./table";

/** Rows of a table of domains or exits: hosts with hundreds of domains have more. */
const MOST_ROWS = 100;

const UNPLACED_REASONS: Record<string, string> = {
  outside_trace: "outside the trace",
  unknown_vcpu: "of vCPUs that are not in the trace",
  not_running: "taken when their vCPU was not running",
  mode_disagrees: "in a mode that their vCPU was not in at that time",
  trace_lost: "where the trace lost records",
  out_of_order: "out of order in time",
};

function card(page: Page, title: string, value: string, note: string): HTMLElement {
  return h(
    "div",
    { class: "card", title: page.words.overview[title] },
    h("span", { class: "soft" }, title),
    h("b", {}, value),
    h("span", { class: "soft" }, note),
  );
}

type DrillDown = (where: RowFilter[]) => void;

/** A row that opens its details. */
function drillDownRow(down: () => void, ...cells: Child[]): HTMLElement {
  return h(
    "tr",
    {
      class: "choose",
      tabindex: 0,
      click: down,
      keydown: (event: KeyboardEvent) => {
        if (event.key === "Enter") down();
      },
    },
    ...cells,
  );
}

export function overview(page: Page, report: Report, drillDown: DrillDown): HTMLElement {
  const { profile, overview: whole, checks } = page.words;
  const heading = (name: string, numeric = false, title = profile[name]): HTMLElement =>
    h("th", { class: numeric ? "n" : "", title }, name);
  const losses: [string, number][] = [
    ...Object.entries(report.samples.remainders).map(([name, n]): [string, number] => [
      `samples ${UNPLACED_REASONS[name] ?? name}`,
      n,
    ]),
    ["samples lost because their buffers were full", report.samples.lost_in_buffers],
    ["samples in damaged parts of the recording", report.samples.damaged],
    ["samples outside the selected time", report.samples.outside_range],
    ["trace records lost", report.trace.lost_records],
    ["guest addresses are stale: they date from the last VM entry", report.samples.stale_addresses],
  ];
  const kept = losses.filter(([, n]) => n > 0);
  const off = (check: Report["checks"][number]): number => Math.abs(check.sampled - check.traced) / (check.error || 1);
  const checked = report.checks.length > MOST_ROWS ? [...report.checks].sort((a, b) => off(b) - off(a)) : report.checks;
  const ofWhole = page.selection === undefined ? "" : ", of the whole recording";
  const domains = page.domains ?? [];
  const most = Math.max(...domains.map((d) => d.high), 0);
  const xen = domains.reduce((sum, d) => sum + (d.modes.xen ?? 0), 0);
  const disagree = report.checks.filter((check) => !check.agrees).length;
  return h(
    "section",
    {},
    findingsList(page, report.findings),
    h(
      "div",
      { class: "cards" },
      card(page, "samples attributed", count(report.samples.attributed), `of ${count(report.samples.total)}`),
      page.is_time && report.cycles.attributed !== null
        ? card(
            page,
            "cycles",
            short(report.cycles.attributed),
            `at ${(report.cpu_hz / 1e9).toFixed(3)} GHz (${report.cpu_hz_source})`,
          )
        : null,
      card(page, "time", time(page.seconds), report.event),
      card(
        page,
        "Xen's share",
        xen > 0 ? percent(xen) : "unknown",
        xen > 0 ? "of all domains' time" : "no samples in Xen",
      ),
      card(
        page,
        "losses",
        kept.length === 0 ? "none" : String(kept.length) + (kept.length === 1 ? " kind" : " kinds"),
        kept.length === 0 ? "every sample is attributed" : "see Data quality",
      ),
      card(
        page,
        "samples and trace",
        report.checks.length === 0 ? "no trace" : disagree === 0 ? "agree ✓" : `${disagree} differ`,
        `${report.checks.length} ${report.checks.length === 1 ? "domain" : "domains"} checked`,
      ),
    ),
    h("h2", {}, "Domains"),
    h(
      "div",
      { class: "legend" },
      ...["user", "kernel", "xen"].map((mode) =>
        h("span", {}, h("i", { style: `background:var(--${mode})` }), mode === "xen" ? "Xen" : mode),
      ),
    ),
    h(
      "div",
      { class: "scroll" },
      h(
        "table",
        { id: "table-domains" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            heading("domain"),
            heading("samples", true),
            heading("share", true),
            heading("95 % interval", false, intervalWords(profile)),
            page.is_time ? heading("cycles", true) : null,
            heading("by mode", false, profile.mode),
            heading("part of Xen", true, whole["part of Xen"]),
          ),
        ),
        h(
          "tbody",
          {},
          ...[...domains]
            .sort((a, b) => b.share - a.share)
            .slice(0, MOST_ROWS)
            .map((d) => {
              const parts = ["user", "kernel", "xen"].map((mode): [string, number] => [mode, d.modes[mode] ?? 0]);
              const text = parts.map(([mode, part]) => `${mode} ${percent(part / (d.share || 1), 1)}`).join(", ");
              return drillDownRow(
                () => drillDown([["domain", d.name]]),
                nameCell(d.name),
                h("td", { class: "n" }, count(d.samples)),
                h("td", { class: "n" }, percent(d.share)),
                d.low === d.high
                  ? h("td", { class: "soft", title: "The trace measures it exactly." }, "traced")
                  : h("td", {}, whisker(d.share, d.low, d.high, most)),
                page.is_time ? h("td", { class: "n" }, short(d.cycles ?? 0)) : null,
                h(
                  "td",
                  {},
                  h(
                    "div",
                    { class: "stack", title: text, role: "img", "aria-label": text },
                    ...parts.map(([mode, part]) =>
                      h("i", { style: `width:${(part / (d.share || 1)) * 100}%;background:var(--${mode})` }),
                    ),
                  ),
                ),
                h("td", { class: "n" }, xen > 0 ? percent((d.modes.xen ?? 0) / xen) : "–"),
              );
            }),
        ),
      ),
    ),
    domains.length > MOST_ROWS
      ? h("p", { class: "soft" }, `${domains.length - MOST_ROWS} more: the list of domains, or Functions by domain`)
      : null,
    h("h2", {}, `Samples and trace${ofWhole}`),
    report.checks.length === 0
      ? h("p", { class: "soft" }, "There is no trace to compare the samples with.")
      : h(
          "div",
          { class: "scroll" },
          h(
            "table",
            { id: "table-checks" },
            h(
              "thead",
              {},
              h(
                "tr",
                {},
                heading("domain"),
                heading("part of samples", true, checks.sampled),
                heading("± 3 standard errors", false, checks.error),
                heading("part of run time", true, checks.traced),
                h("th", {}, ""),
              ),
            ),
            h(
              "tbody",
              {},
              ...checked
                .slice(0, MOST_ROWS)
                .map((check) =>
                  h(
                    "tr",
                    {},
                    nameCell(check.domain),
                    h("td", { class: "n" }, percent(check.sampled)),
                    h(
                      "td",
                      {},
                      whisker(check.sampled, check.sampled - 3 * check.error, check.sampled + 3 * check.error, 1),
                    ),
                    h("td", { class: "n" }, percent(check.traced)),
                    h(
                      "td",
                      {},
                      check.agrees ? h("span", { class: "good" }, "✓ agree") : h("span", { class: "warn" }, "✗ differ"),
                    ),
                  ),
                ),
            ),
          ),
        ),
    checked.length > MOST_ROWS ? h("p", { class: "soft" }, `${checked.length - MOST_ROWS} more agree better`) : null,
    h("h2", {}, `Data quality${ofWhole}`),
    h(
      "ul",
      { class: "notes", id: "data-quality" },
      ...kept.map(([what, n]) => h("li", {}, `${count(n)} ${what}`)),
      ...report.changes.map((change) => h("li", {}, `during the recording: ${change}`)),
      ...[...report.cautions, ...(page.notes ?? [])].map((note) => h("li", {}, note)),
      report.cycles.unsampled > 0
        ? h("li", {}, `${short(report.cycles.unsampled)} cycles of these domains have no sample`)
        : null,
      kept.length + report.changes.length + report.cautions.length + (page.notes ?? []).length === 0 &&
        report.cycles.unsampled === 0
        ? h("li", { class: "soft" }, "no losses, no disagreements")
        : null,
    ),
  );
}

export function diffView(page: Page, diff: NonNullable<Page["diff"]>): HTMLElement {
  const { by, words: about } = page;
  let words = "";
  let only = true;
  const number = (row: DiffRow, key: string): number => Number(row[key] ?? 0);
  const figure = diff.of === "work" ? amount : percent;
  const place = h("div", { class: "scroll" });
  const note = h("span", { class: "soft" });
  function bar(row: DiffRow, most: number): SVGElement {
    const width = 260;
    const at = (value: number): number => width / 2 + (Math.min(Math.max(value / most, -1), 1) * (width - 8)) / 2;
    const [low, high, value] = [number(row, "low"), number(row, "high"), number(row, "difference")];
    return s(
      "svg",
      { width, height: 18, viewBox: `0 0 ${width} 18`, class: "bar" },
      s("title", {}, `${figure(value)}; 95 % interval: ${figure(low)} to ${figure(high)}`),
      s("path", { d: `M${width / 2} 0V18`, stroke: "var(--line)" }),
      s("rect", {
        x: Math.min(at(0), at(value)),
        y: 3,
        width: Math.abs(at(value) - at(0)),
        height: 12,
        fill: value > 0 ? "var(--exit)" : "var(--running)",
        opacity: 0.55,
      }),
      s("path", { d: `M${at(low)} 9H${at(high)}M${at(low)} 5V13M${at(high)} 5V13`, class: "whisker" }),
    );
  }
  function draw(): void {
    const rows = diff.rows.filter(
      (row) =>
        (!only || number(row, "p") < 0.05) &&
        by.some((c) =>
          String(row[c] ?? "")
            .toLowerCase()
            .includes(words),
        ),
    );
    const most = Math.max(
      ...rows.slice(0, 500).map((row) => Math.max(Math.abs(number(row, "low")), Math.abs(number(row, "high")))),
      1e-9,
    );
    note.textContent = `${rows.length} of ${diff.rows.length} rows`;
    place.replaceChildren(
      h(
        "table",
        { id: "table-diff" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ...["before", "after", "difference"].map((n) => h("th", { class: "n", title: about.diff[n] }, n)),
            h("th", { title: intervalWords(about.diff) }, "95 % interval"),
            h("th", { class: "n", title: about.diff.p }, "p"),
            ...by.map((c) => h("th", { title: about.profile[c] }, c)),
            h("th", { title: about.diff.note }, "note"),
          ),
        ),
        h(
          "tbody",
          {},
          ...rows
            .slice(0, 500)
            .map((row) =>
              h(
                "tr",
                {},
                h("td", { class: "n" }, figure(number(row, "before"))),
                h("td", { class: "n" }, figure(number(row, "after"))),
                h("td", { class: "n" }, (number(row, "difference") > 0 ? "+" : "") + figure(number(row, "difference"))),
                h("td", {}, bar(row, most)),
                h("td", { class: "n" }, number(row, "p") < 0.001 ? "<0.001" : number(row, "p").toFixed(3)),
                ...by.map((c) => nameCell(String(row[c] ?? ""))),
                h("td", { class: "soft" }, String(row.note ?? "")),
              ),
            ),
        ),
      ),
    );
  }
  const search = h("input", {
    type: "search",
    class: "search",
    placeholder: "Filter ( / )",
    "aria-label": "Filter",
    input: () => {
      words = search.value.toLowerCase();
      draw();
    },
  });
  const all = h("input", {
    type: "checkbox",
    checked: true,
    change: () => {
      only = all.checked;
      draw();
    },
  });
  if (!diff.rows.some((row) => number(row, "p") < 0.05)) {
    only = false;
    all.checked = false;
  }
  draw();
  return h(
    "section",
    {},
    h(
      "p",
      {},
      h("b", {}, "before: "),
      `${diff.before.name}, ${count(diff.before.samples)} samples`,
      h("br"),
      h("b", {}, "after: "),
      `${diff.after.name}, ${count(diff.after.samples)} samples`,
      h("br"),
      h("b", {}, "compared: "),
      `${diff.compared}; p is corrected for ${count(diff.comparisons)} comparisons`,
    ),
    diffGraph(page, diff, figure, (name) => {
      search.value = name;
      words = name.toLowerCase();
      draw();
    }),
    h(
      "div",
      { class: "tools" },
      search,
      h("label", {}, all, " significant differences only (corrected p < 0.05)"),
      note,
    ),
    place,
  );
}

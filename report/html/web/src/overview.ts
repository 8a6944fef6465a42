// The overview (size of the profile, domains, data quality), the VM exits and the differences of two profiles.
import { DiffRow, Exit, Page, Report } from "./data";
import { amount, count, h, intervalWords, nameCell, percent, s, searchField, short, time, whisker, Child } from "./dom";
import { findingsList } from "./findings";
import { RowFilter } from "./table";
import { Remember, State, View } from "./view";

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

function histogram(exit: Exit, hz: number, wide: boolean): SVGElement {
  const median = `Median ${time(exit.p50 / hz)}`;
  const width = wide ? 880 : 190;
  const height = wide ? 220 : 24;
  const bottom = wide ? 28 : 0;
  const top = wide ? 18 : 4; // room for the counts
  const first = exit.octaves.findIndex((n) => n > 0);
  let last = exit.octaves.length - 1;
  while (last > 0 && (exit.octaves[last] ?? 0) === 0) last--;
  const [from, to] = wide ? [Math.max(first - 1, 0), last + 1] : [6, 36];
  const most = Math.max(...exit.octaves, 1);
  const step = width / (to - from + 1);
  if (!wide) {
    const bars = exit.octaves.slice(from, to + 1).map((n, i) => {
      const tall = n > 0 ? Math.max((n / most) * (height - top), 1.5) : 0;
      return n > 0
        ? `M${(i * step + 0.5).toFixed(1)} ${height}v-${tall.toFixed(1)}h${(step - 1).toFixed(1)}v${tall.toFixed(1)}z`
        : "";
    });
    return s(
      "svg",
      { width, height, viewBox: `0 0 ${width} ${height}`, class: "bar", role: "img", "aria-label": median },
      s("path", { d: bars.join(""), class: "hist" }),
    );
  }
  const parts: Child[] = [];
  for (let i = from; i <= to; i++) {
    const n = exit.octaves[i] ?? 0;
    const tall = n > 0 ? Math.max((n / most) * (height - bottom - top), 1.5) : 0;
    parts.push(
      s(
        "rect",
        {
          x: (i - from) * step + 0.5,
          y: height - bottom - tall,
          width: Math.max(step - 1, 0.5),
          height: tall,
          class: "hist",
        },
        s("title", {}, `${count(n)} took ${time(2 ** i / hz)} to ${time(2 ** (i + 1) / hz)}`),
      ),
    );
    if (n > 0)
      parts.push(
        s(
          "text",
          { x: (i - from + 0.5) * step, y: height - bottom - tall - 4, class: "axis", "text-anchor": "middle" },
          count(n),
        ),
      );
    if ((i - from) % 2 === 0)
      parts.push(s("text", { x: (i - from) * step, y: height - 8, class: "axis" }, time(2 ** i / hz)));
  }
  return s(
    "svg",
    {
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      class: "wide",
      role: "img",
      "aria-label": median,
    },
    ...parts,
  );
}

export function exitsView(page: Page, exits: Exit[], drillDown: DrillDown, remember: Remember): View {
  const hz = page.report?.cpu_hz ?? 1e9;
  // Lengths have no time: percentiles and distributions are of the whole recording.
  const isPart = page.selection?.range !== undefined;
  const all = exits.reduce((sum, exit) => sum + exit.cycles, 0) || 1;
  const detail = h("div", { "aria-live": "polite" });
  let words = "";
  const body = h("tbody");
  let limit = MOST_ROWS;
  const more = h("button", {
    click: () => {
      limit *= 5;
      draw();
    },
  });
  let chosen = exits[0];
  const state = (): State =>
    chosen === exits[0]
      ? []
      : [
          ["domain", chosen.domain],
          ["exit", chosen.name],
        ];
  function choose(exit: Exit, row: HTMLElement): void {
    chosen = exit;
    body.querySelectorAll(".chosen").forEach((other) => other.classList.remove("chosen"));
    row.classList.add("chosen");
    detail.replaceChildren(
      h("h2", {}, `${exit.name} of ${exit.domain}: time until the guest resumed or waited for a pCPU`),
      histogram(exit, hz, true),
      h(
        "p",
        { class: "tools" },
        h(
          "button",
          {
            click: () =>
              drillDown([
                ["domain", exit.domain],
                ["exit", exit.name],
              ]),
          },
          "Show its functions",
        ),
      ),
    );
  }
  function draw(): void {
    const shown = exits.filter((exit) => `${exit.domain} ${exit.name}`.toLowerCase().includes(words));
    const at = Math.max(shown.indexOf(chosen), 0);
    limit = Math.max(limit, at < shown.length ? at + 1 : 0);
    more.hidden = shown.length <= limit;
    more.textContent = `${shown.length - limit} more`;
    body.replaceChildren(
      ...shown.slice(0, limit).map((exit) => {
        const row = h(
          "tr",
          {
            class: "choose",
            tabindex: 0,
            click: () => step(exit, row),
            keydown: (event: KeyboardEvent) => {
              if (event.key === "Enter") step(exit, row);
            },
          },
          nameCell(exit.domain),
          nameCell(exit.name),
          h("td", { class: "n" }, count(exit.count)),
          h("td", { class: "n" }, short(exit.cycles)),
          h("td", { class: "n" }, percent(exit.cycles / all)),
          h("td", { class: "n" }, exit.count > 0 ? time(exit.cycles / exit.count / hz) : "–"),
          ...[exit.p5, exit.p50, exit.p95].map((p) =>
            h("td", { class: "n", title: isPart ? "of the whole recording" : "" }, time(p / hz)),
          ),
          h("td", { title: isPart ? "of the whole recording" : "" }, histogram(exit, hz, false)),
        );
        return row;
      }),
    );
    const row = body.children[at];
    if (at < shown.length && row instanceof HTMLElement) choose(shown[at], row);
    else detail.replaceChildren();
  }
  function step(exit: Exit, row: HTMLElement): void {
    choose(exit, row);
    remember(state(), true);
  }
  const search = searchField("Filter", (text) => {
    words = text;
    draw();
  });
  function restore(wanted: URLSearchParams): void {
    const [domain, name] = [wanted.get("domain"), wanted.get("exit")];
    words = search.value = "";
    chosen = exits.find((exit) => exit.domain === domain && exit.name === name) ?? exits[0];
    draw();
    requestAnimationFrame(() => body.querySelector(".chosen")?.scrollIntoView({ block: "nearest" }));
    remember(state(), false);
  }
  draw();
  const columns: [string, string][] = [
    ["domain", "domain"],
    ["exit", "exit"],
    ["count", "count"],
    ["cycles in Xen", "cycles"],
    ["of all exits", "share"],
    ["mean", "each"],
    ["5 %", "p5"],
    ["median", "p50"],
    ["95 %", "p95"],
    [`${time(2 ** 6 / hz)} to ${time(2 ** 36 / hz)}`, "octaves"],
  ];
  const element = h(
    "section",
    {},
    h(
      "div",
      { class: "tools" },
      search,
      h(
        "span",
        { class: "soft" },
        "Select a row to see its distribution." +
          (isPart ? " Percentiles and distributions are of the whole recording." : ""),
      ),
    ),
    h(
      "div",
      { class: "scroll" },
      h(
        "table",
        { id: "table-exits" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ...columns.map(([name, key], i) =>
              h("th", { class: i >= 2 && i < 9 ? "n" : "", title: page.words.exits[key] }, name),
            ),
          ),
        ),
        body,
      ),
      more,
    ),
    detail,
  );
  return { element, restore };
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

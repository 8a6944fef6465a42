// The findings: what stands out in the recording, each with a link to the view that shows it.
import type { JSX } from "preact";
import { Finding, Page } from "./data";
import { percent, time } from "./format";
import { selectionState } from "./selection";
import { tableRows } from "./rows";
import { State, addressOf } from "./view";

/** Findings on the page; `report --findings` has all. */
const MOST = 10;

/** The element of the overview that a finding without a view of its own is shown by. */
const SECTIONS: Record<string, [id: string, words: string]> = {
  bias: ["table-checks", "samples and trace"],
  resonance: ["table-checks", "samples and trace"],
  losses: ["data-quality", "data quality"],
};

/** The rules about a domain's waiting for pCPUs. */
const WAITING = ["waits", "starved_dom0"];

interface Target {
  words: string;
  href: string;
}

/** The address of a view's state, within the selection. */
function address(page: Page, view: string, ...state: State): string {
  return addressOf(view, new URLSearchParams([...state, ...selectionState(page, page.selection ?? {})]).toString());
}

/** The view, with its filters, whose figures the finding is made of. None if the page does not have it. */
function target(page: Page, finding: Finding): Target | undefined {
  const domain = page.domains?.find((each) => each.domid === finding.domid)?.name;
  if (finding.rule === "hot_domain") return { words: "domains", href: address(page, "functions", ["by", "domain"]) };
  if (domain === undefined) return undefined;
  const exit = finding.figures.exit;
  if (finding.rule === "hot_function") {
    return { words: "functions", href: address(page, "functions", ["by", "function"], ["is", `domain=${domain}`]) };
  }
  if (finding.rule === "hot_mode" && typeof finding.figures.mode === "string") {
    const is = ["is", `mode=${finding.figures.mode}`] as [string, string];
    return { words: "functions", href: address(page, "functions", ["by", "function"], ["is", `domain=${domain}`], is) };
  }
  if (typeof exit === "string") {
    const found = page.exits?.some((each) => each.domain === domain && each.name === exit) ?? false;
    return found
      ? { words: "VM exits", href: address(page, "vm-exits", ["domain", domain], ["exit", exit]) }
      : undefined;
  }
  const scheduled = page.timeline?.vcpus.some((vcpu) => vcpu.domain === domain) ?? false;
  return scheduled ? { words: "timeline", href: address(page, "timeline", ["find", `${domain} v`]) } : undefined;
}

function Link({ page, finding }: { page: Page; finding: Finding }): JSX.Element {
  const section = SECTIONS[finding.rule];
  if (section !== undefined) {
    const [id, words] = section;
    return <button onClick={() => document.getElementById(id)?.scrollIntoView({ block: "center" })}>{words}</button>;
  }
  const to = target(page, finding);
  return to === undefined ? <span /> : <a href={to.href}>{to.words}</a>;
}

/** What a finding's function or exit has in the selection; undefined: its figures are of the whole recording alone. */
function inSelection(page: Page, finding: Finding): string | undefined {
  const of = page.domains?.find((each) => each.domid === finding.domid);
  const { function: name, exit } = finding.figures;
  if (of === undefined) return undefined;
  const domain = of.name;
  if (typeof exit === "string") {
    const found = page.exits?.filter((each) => each.domain === domain && each.name === exit) ?? [];
    const cycles = found.reduce((sum, each) => sum + each.cycles, 0);
    const hz = page.report?.cpu_hz ?? 1e9;
    return `${time(cycles / hz)}, ${percent(cycles / hz / (page.seconds || 1), 1)} of a pCPU`;
  }
  if (WAITING.includes(finding.rule) && of.waited !== undefined && of.ran !== undefined) {
    const hz = page.report?.cpu_hz ?? 1e9;
    const part = of.waited / (of.waited + of.ran || 1);
    return `waited ${time(of.waited / hz)}, ${percent(part, 1)} of the time in which it could run`;
  }
  if (typeof name !== "string" || page.flame === undefined) return undefined;
  const { rows } = tableRows(page, { by: ["function"], where: [["domain", domain]] });
  const row = rows.find(({ words }) => words[0] === name);
  if (row === undefined) return "no sample";
  return `${percent(row.share)} of its time, 95 % interval: ${percent(row.low)} to ${percent(row.high)}`;
}

function Item({ page, finding }: { page: Page; finding: Finding }): JSX.Element {
  const { seconds, low, high } = finding;
  const here = page.selection === undefined ? undefined : inSelection(page, finding);
  return (
    <li>
      <b class="n">{seconds === null ? "–" : time(seconds)}</b>
      <div>
        <div class="said">{finding.text}</div>
        {low !== null && high !== null ? (
          <div class="soft">{`95 % interval: ${time(low)} to ${time(high)}`}</div>
        ) : null}
        {here === undefined ? null : <div class="here">{`In the selection: ${here}`}</div>}
        {finding.advice === "" ? null : <div class="soft">{finding.advice}</div>}
        <code class="soft">{finding.command}</code>
      </div>
      <Link page={page} finding={finding} />
    </li>
  );
}

/** The first findings, in their order: by the time that they concern. Nothing where nothing stands out. */
export function Findings({ page, all }: { page: Page; all: Finding[] }): JSX.Element | null {
  const only = page.selection?.domain;
  const domid = page.domains?.find((each) => each.name === only)?.domid;
  const findings = only === undefined ? all : all.filter((each) => each.domid === domid);
  if (findings.length === 0) return null;
  const more = findings.length - MOST;
  return (
    <div>
      <h2 class="first">
        Findings
        <span class="soft">
          {" by the time that they concern" +
            (page.selection === undefined ? "" : "; texts are of the whole recording")}
        </span>
      </h2>
      <ol id="findings">
        {findings.slice(0, MOST).map((finding) => (
          <Item page={page} finding={finding} />
        ))}
      </ol>
      {more > 0 ? <p class="soft">{`${more} more: report --findings`}</p> : null}
    </div>
  );
}

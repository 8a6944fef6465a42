// The findings: what stands out in the recording, each with a link to the view that shows it.
import { Finding, Page } from "./data";
import { h, percent, time } from "./dom";
import { selectionState } from "./selection";
import { tableRows } from "./table";
import { State, addressOf } from "./view";

/** Findings on the page; `report --findings` has all. */
const MOST = 10;

/** The element of the overview that a finding without a view of its own is shown by. */
const SECTIONS: Record<string, [id: string, words: string]> = {
  bias: ["table-checks", "samples and trace"],
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
  if (typeof exit === "string") {
    const found = page.exits?.some((each) => each.domain === domain && each.name === exit) ?? false;
    return found
      ? { words: "VM exits", href: address(page, "vm-exits", ["domain", domain], ["exit", exit]) }
      : undefined;
  }
  const scheduled = page.timeline?.vcpus.some((vcpu) => vcpu.domain === domain) ?? false;
  return scheduled ? { words: "timeline", href: address(page, "timeline", ["find", `${domain} v`]) } : undefined;
}

function link(page: Page, finding: Finding): HTMLElement | null {
  const section = SECTIONS[finding.rule];
  if (section !== undefined) {
    const [id, words] = section;
    return h("button", { click: () => document.getElementById(id)?.scrollIntoView({ block: "center" }) }, words);
  }
  const to = target(page, finding);
  return to === undefined ? null : h("a", { href: to.href }, to.words);
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

function item(page: Page, finding: Finding): HTMLElement {
  const { seconds, low, high } = finding;
  const here = page.selection === undefined ? undefined : inSelection(page, finding);
  return h(
    "li",
    {},
    h("b", { class: "n" }, seconds === null ? "–" : time(seconds)),
    h(
      "div",
      {},
      h("div", { class: "said" }, finding.text),
      low !== null && high !== null
        ? h("div", { class: "soft" }, `95 % interval: ${time(low)} to ${time(high)}`)
        : null,
      here === undefined ? null : h("div", { class: "here" }, `In the selection: ${here}`),
      finding.advice === "" ? null : h("div", { class: "soft" }, finding.advice),
      h("code", { class: "soft" }, finding.command),
    ),
    link(page, finding) ?? h("span"),
  );
}

/** The first findings, in their order: by the time that they concern. Null where nothing stands out. */
export function findingsList(page: Page, all: Finding[]): HTMLElement | null {
  const only = page.selection?.domain;
  const domid = page.domains?.find((each) => each.name === only)?.domid;
  const findings = only === undefined ? all : all.filter((each) => each.domid === domid);
  if (findings.length === 0) return null;
  const more = findings.length - MOST;
  return h(
    "div",
    {},
    h(
      "h2",
      { class: "first" },
      "Findings",
      h(
        "span",
        { class: "soft" },
        " by the time that they concern" + (page.selection === undefined ? "" : "; texts are of the whole recording"),
      ),
    ),
    h("ol", { id: "findings" }, ...findings.slice(0, MOST).map((finding) => item(page, finding))),
    more > 0 ? h("p", { class: "soft" }, `${more} more: report --findings`) : null,
  );
}

// The findings: what stands out in the recording, each with a link to the view that shows it.
import { Finding, Page } from "./data";
import { h, time } from "./dom";
import { State, addressOf } from "./view";

/** Findings on the page; `report --findings` has all. */
const MOST = 10;

/** The element of the overview that a finding without a view of its own is shown by. */
const SECTIONS: Record<string, [id: string, words: string]> = {
  bias: ["table-checks", "samples and trace"],
  losses: ["data-quality", "data quality"],
};

interface Target {
  words: string;
  href: string;
}

function address(view: string, ...state: State): string {
  return addressOf(view, new URLSearchParams(state).toString());
}

/** The view, with its filters, whose figures the finding is made of. None if the page does not have it. */
function target(page: Page, finding: Finding): Target | undefined {
  const domain = page.domains?.find((each) => each.domid === finding.domid)?.name;
  if (finding.rule === "hot_domain") return { words: "domains", href: address("functions", ["by", "domain"]) };
  if (domain === undefined) return undefined;
  const exit = finding.figures.exit;
  if (finding.rule === "hot_function") {
    return { words: "functions", href: address("functions", ["by", "function"], ["is", `domain=${domain}`]) };
  }
  if (typeof exit === "string") {
    const found = page.exits?.some((each) => each.domain === domain && each.name === exit) ?? false;
    return found ? { words: "VM exits", href: address("vm-exits", ["domain", domain], ["exit", exit]) } : undefined;
  }
  const scheduled = page.timeline?.vcpus.some((vcpu) => vcpu.domain === domain) ?? false;
  return scheduled ? { words: "timeline", href: address("timeline", ["find", `${domain} v`]) } : undefined;
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

function item(page: Page, finding: Finding): HTMLElement {
  const { seconds, low, high } = finding;
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
      finding.advice === "" ? null : h("div", { class: "soft" }, finding.advice),
      h("code", { class: "soft" }, finding.command),
    ),
    link(page, finding) ?? h("span"),
  );
}

/** The first findings, in their order: by the time that they concern. Null where nothing stands out. */
export function findingsList(page: Page, findings: Finding[]): HTMLElement | null {
  if (findings.length === 0) return null;
  const more = findings.length - MOST;
  return h(
    "div",
    {},
    h("h2", { class: "first" }, "Findings", h("span", { class: "soft" }, " by the time that they concern")),
    h("ol", { id: "findings" }, ...findings.slice(0, MOST).map((finding) => item(page, finding))),
    more > 0 ? h("p", { class: "soft" }, `${more} more: report --findings`) : null,
  );
}

// The rows of the timeline: pCPUs, domains and their vCPUs, with what there is to draw in each.
import { Activity, GUEST, PCPU_BIN, RUNNABLE, UNDIVIDED, VCPU_BIN, XEN } from "./activity";
import { colour } from "./canvas";
import { Timeline } from "./data";
import { count, percent, time } from "./format";
import { domainsHeat, pcpusHeat } from "./heat_lanes";
import type { Heat } from "./heat_track";
import { Handlers, pcpuHandlers, vcpuHandlers } from "./handlers";
import { Intervals, firstAfter, hasIntervals, intervalRows } from "./intervals";
import { pcpuThreads, threadGroups, vcpuThreads } from "./thread_tracks";
import { Threads } from "./threads";

const STATES = ["running", "runnable", "blocked", "offline", "lost", "unknown"];
const CAUSES = ["", "woken", "preempted", ""];
const MODES = ["user", "kernel", "Xen"];
// Colours of domains, each with the colour of text on it: the "muted" scheme of Paul Tol (Colour Schemes,
// SRON/EPS/TN/09-002), which people with any colour vision can distinguish. No state has one of these colours.
export const DOMAINS: [string, string][] = [
  ["#332288", "#fff"],
  ["#44aa99", "#111"],
  ["#aa4499", "#fff"],
  ["#999933", "#111"],
  ["#882255", "#fff"],
  ["#88ccee", "#111"],
  ["#117733", "#fff"],
  ["#ddcc77", "#111"],
  ["#cc6677", "#111"],
];

/** The colour of text on a ground. */
export const inkOn = (ground: string): string => DOMAINS.find(([paint]) => paint === ground)?.[1] ?? "#111";

/** Bars of a row, by index, in the order of time. */
export interface Layer {
  begin: ArrayLike<number>;
  end: ArrayLike<number>;
  /** The colours of a bar from the bottom, each with its part of the height. */
  paint: (i: number) => [part: number, colour: string][];
  lines: (i: number, when: When) => string[];
  label?: (i: number) => string;
  /** What is said of a bar that was clicked. */
  about?: (i: number) => string;
  /** Of bars that are threads, which have the colours that the reader has chosen: the place in the list, or -1. */
  thread?: (i: number) => number;
}
/** Writes an instant, as precisely as it can be seen. */
export type When = (cycles: number) => string;
export interface Bins {
  bytes: Uint8Array;
  each: number;
  draw: (from: number) => [number, string][];
  describe: (from: number) => string[];
}
export interface Track {
  title: string;
  height: number;
  layers: Layer[];
  bins?: Bins;
  heat?: Heat;
  /** The pCPU or the vCPU whose runs the track has: its index in the timeline. */
  pcpu?: number;
  vcpu?: number;
  /** When the vCPU was woken in [from, to), at most `most` times and one more, and by which pCPU. */
  wakes?: (from: number, to: number, most: number) => { at: number; by: number }[];
}

/** The entries of a list, `each` numbers long, by the first of them: the row that they are of. */
function entriesByRow(list: number[], each: number): Map<number, number[][]> {
  const rows = new Map<number, number[][]>();
  for (let i = 0; i + each <= list.length; i += each) {
    const entry = list.slice(i, i + each);
    const row = rows.get(entry[0]);
    if (row === undefined) rows.set(entry[0], [entry]);
    else row.push(entry);
  }
  return rows;
}

/** The tracks of a pCPU or a vCPU, or of several together with the groups `below` it. */
export interface Group {
  title: string;
  /** What it is opened by, where its title is not its own. */
  key?: string;
  /** The thread, of a row of one. */
  thread?: number;
  /** The domain. */
  of?: string;
  /** Makes the tracks, when they are first shown. */
  make: (title: string) => Track[];
  tracks?: Track[];
  /** What is written beside it about [from, to): ran, waited. */
  beside?: (from: number, to: number) => string;
  below?: Group[];
  isOpen?: boolean;
}

/** Hosts of more pCPUs and vCPUs than this show them together first. */
const MOST_OPEN = 64;
/** The numbers of a vCPU's bin: colours and words. */
const VCPU_KINDS: [string, string][] = [
  ["guest", "in the guest"],
  ["exit", "in Xen"],
  ["running", "running"],
  ["runnable", "waiting for a pCPU"],
  ["blocked", "blocked"],
];

export interface Groups {
  groups: Group[];
  threads?: Threads;
  /** The vCPU that runs on a pCPU at an instant; undefined: none, or that is not known. */
  runsOn: (pcpu: number, at: number) => number | undefined;
}

/** The colour of the vCPU's domain, by the order of domains. */
export function domainColours(timeline: Timeline): (vcpu: number) => string {
  const domains = [...new Set(timeline.vcpus.map((vcpu) => vcpu.domain))];
  const places = new Map(domains.map((domain, i) => [domain, i % DOMAINS.length]));
  return (vcpu) => DOMAINS[places.get(timeline.vcpus[vcpu]?.domain ?? "") ?? 0]?.[0] ?? "#888";
}

/** Makes the groups in the order in which they are drawn, with the colours of the theme. */
export function timelineGroups(timeline: Timeline, activity: Activity, hz: number): Groups {
  const seconds = (cycles: number): string => time(cycles / hz);
  const vcpus = timeline.vcpus;
  const nameOf = (vcpu: number): string => vcpus[vcpu]?.name ?? "?";
  const domainColour = domainColours(timeline);
  const c: Record<string, string> = {};
  for (const name of "guest exit running runnable blocked lost irq line bracket user kernel xen".split(" "))
    c[name] = colour(name);

  const threads = timeline.threads === undefined ? undefined : new Threads(timeline.threads);
  const handlers = timeline.threads === undefined ? undefined : new Handlers(timeline.threads.handlers);
  const ofPcpu = intervalRows(timeline.schedule);
  const ofRunstates = (vcpu: number): Intervals => ofPcpu(timeline.pcpus.length + vcpu);
  const ofInterrupts = intervalRows(timeline.details);
  const segmentsAt = (vcpu: number): number => timeline.pcpus.length + vcpu;
  const ofSegments = (vcpu: number): Intervals => ofInterrupts(segmentsAt(vcpu));
  const binBytes = activity.bytes;
  const samples = entriesByRow(timeline.samples, 6);
  const losses = entriesByRow(timeline.lost, 4);
  const vcpuOn = (pcpu: number, i: number): number => timeline.vcpu_numbers[ofPcpu(pcpu).code[i] ?? 0] ?? 0;

  /**
   * A layer of packed intervals, those shorter than `below` together; `kind` has the words of an interval, `parts`
   * those and the colours of the parts.
   */
  function packedLayer(
    of: Intervals,
    below: number,
    kind: (i: number) => { words: string; colour: string },
    parts: [words: string, colour: string][],
    name: (i: number) => string,
  ): Layer {
    const length = (i: number): number => of.end[i] - of.begin[i];
    const timed = (i: number, when: When): string => `${seconds(length(i))}, from ${when(of.begin[i])}`;
    return {
      get begin() {
        return of.begin;
      },
      get end() {
        return of.end;
      },
      paint: (i) => {
        const several = of.several.get(i);
        if (several === undefined) return [[1, kind(i).colour]];
        return parts.map(([, paint], k): [number, string] => [(several.parts[k] ?? 0) / (length(i) || 1), paint]);
      },
      label: (i) => (of.several.has(i) ? "" : kind(i).words),
      lines: (i, when) => {
        const several = of.several.get(i);
        if (several === undefined) return [name(i), kind(i).words, timed(i, when)];
        return [
          name(i),
          `${count(several.count)} intervals, each shorter than ${seconds(below)}`,
          ...parts.flatMap(([words], k) =>
            (several.parts[k] ?? 0) > 0 ? [`${words} ${seconds(several.parts[k])}`] : [],
          ),
          timed(i, when),
        ];
      },
    };
  }

  /** What ran on a pCPU during [begin, end), the longest first. */
  function ranMeanwhile(pcpu: number, begin: number, end: number): string {
    const there = pcpu < 0 ? undefined : ofPcpu(pcpu);
    const who = new Map<string, number>();
    if (there !== undefined) {
      for (let i = firstAfter(there.end, begin); i < there.begin.length && there.begin[i] < end; i++) {
        const name = there.several.has(i) ? "several vCPUs, each shortly" : nameOf(vcpuOn(pcpu, i));
        const part = there.several.get(i)?.parts[0] ?? there.end[i] - there.begin[i];
        who.set(
          name,
          (who.get(name) ?? 0) + Math.min(part, Math.min(there.end[i], end) - Math.max(there.begin[i], begin)),
        );
      }
    }
    const list = [...who].sort((a, b) => b[1] - a[1]).slice(0, 6);
    return list.map(([name, cycles]) => `${name} ${seconds(cycles)}`).join(", ");
  }

  function runstateTrack(vcpu: number): Track {
    const of = ofRunstates(vcpu);
    const kindOf = (i: number): Timeline["run_kinds"][number] => timeline.run_kinds[of.code[i] ?? 0] ?? [5, 0, 0, 0];
    /** What woke the vCPU for an interval; nothing where that is not known. */
    const wokenBy = (i: number): string => {
      const waker = of.several.has(i) ? 0 : kindOf(i)[3];
      if (waker === 0) return "";
      const [pcpu, at] = [timeline.pcpus.indexOf(waker - 1), of.begin[i]];
      const handled = pcpu < 0 ? undefined : entryAt(ofInterrupts(pcpu), at);
      if (handled !== undefined) return `woken by interrupt ${handled} on pCPU ${waker - 1}`;
      const meanwhile = runsOn(pcpu, at);
      const how = meanwhile === undefined ? "which was idle" : `while ${nameOf(meanwhile)} ran there`;
      return `woken on pCPU ${waker - 1}, ${how}`;
    };
    const kind = (i: number): { words: string; colour: string } => {
      const [state, cause, on] = kindOf(i);
      const why = CAUSES[cause] ?? "";
      const words = STATES[state] ?? "";
      return {
        words: `${words}${state === 1 && why !== "" ? `, ${why}` : ""}${state === 0 ? ` on pCPU ${on}` : ""}`,
        colour: c[words] ?? c.line ?? "",
      };
    };
    const parts = ["running", "runnable", "blocked"].map((words): [string, string] => [words, c[words] ?? ""]);
    const layer = packedLayer(of, timeline.schedule.together_below, kind, parts, () => nameOf(vcpu));
    layer.label = undefined;
    const { lines } = layer;
    layer.lines = (i, when) => [...lines(i, when), ...[wokenBy(i)].filter((text) => text !== "")];
    layer.about = (i) => {
      const [state, cause, on] = kindOf(i);
      const [begin, end] = [of.begin[i], of.end[i]];
      const several = of.several.get(i)?.count;
      if (several !== undefined) return `${nameOf(vcpu)}: ${count(several)} intervals in ${seconds(end - begin)}`;
      if (state !== 1) return `${nameOf(vcpu)} ${STATES[state] ?? ""} for ${seconds(end - begin)}`;
      const how = wokenBy(i) || (CAUSES[cause] ?? "");
      const meanwhile = ranMeanwhile(timeline.pcpus.indexOf(on), begin, end);
      return (
        `${nameOf(vcpu)} waited ${seconds(end - begin)} for pCPU ${on}${how === "" ? "" : `, ${how}`}; ` +
        `meanwhile that pCPU ran: ${meanwhile || "nothing"}`
      );
    };
    const wakes: Track["wakes"] = (from, to, most) => {
      const found: { at: number; by: number }[] = [];
      for (let i = firstAfter(of.end, from); i < of.begin.length && of.begin[i] < to && found.length <= most; i++) {
        const waker = of.several.has(i) ? 0 : kindOf(i)[3];
        if (waker > 0 && of.begin[i] >= from) found.push({ at: of.begin[i], by: timeline.pcpus.indexOf(waker - 1) });
      }
      return found;
    };
    return { title: nameOf(vcpu), height: 22, layers: [layer], bins: vcpuBins(vcpu, VCPU_KINDS), vcpu, wakes };
  }

  function binsOf(bytes: Uint8Array, kinds: [string, string][]): Bins {
    return {
      bytes,
      each: VCPU_BIN,
      draw: (from) => kinds.map(([kind], k): [number, string] => [bytes[from + k] ?? 0, c[kind] ?? ""]),
      describe: (from) =>
        kinds.flatMap(([, words], k) =>
          (bytes[from + k] ?? 0) > 0 ? [`${words} ${percent((bytes[from + k] ?? 0) / 255, 0)}`] : [],
        ),
    };
  }
  /** The first kinds of the vCPU's bins. */
  function vcpuBins(vcpu: number, kinds: [string, string][]): Bins {
    const each = timeline.bins * VCPU_BIN;
    return binsOf(binBytes.subarray(vcpu * each, (vcpu + 1) * each), kinds);
  }

  function exitTrack(vcpu: number): Track {
    const of = ofSegments(vcpu);
    const kind = (i: number): { words: string; colour: string } => ({
      words: timeline.segment_kinds[of.code[i] ?? 0] ?? "",
      colour: (of.part[i] === 0 ? c.guest : c.exit) ?? "",
    });
    const parts: [string, string][] = [
      ["in the guest", c.guest ?? ""],
      ["in Xen", c.exit ?? ""],
    ];
    const layer = packedLayer(of, timeline.details.together_below, kind, parts, () => nameOf(vcpu));
    return { title: "guest, exits", height: 14, layers: [layer], bins: vcpuBins(vcpu, VCPU_KINDS.slice(0, 2)) };
  }

  function sampleTrack(vcpu: number): Track {
    const entries = samples.get(vcpu) ?? [];
    const layer: Layer = {
      begin: entries.map((entry) => entry[3]),
      end: entries.map((entry) => entry[3] + entry[4]),
      paint: (i) => {
        const [, mode, , , length] = entries[i];
        return [[1, (length > 1 ? c.bracket : c[["user", "kernel", "xen"][mode] ?? ""]) ?? ""]];
      },
      lines: (i, when) => {
        const [, mode, name, begin, length, n] = entries[i];
        const words = `${MODES[mode]}: ${timeline.strings[name] ?? ""}`;
        return length > 1
          ? [
              `${n} samples of ${nameOf(vcpu)}`,
              `taken within ${seconds(length)}; exact times are not known`,
              `one of them: ${words}`,
            ]
          : [`sample of ${nameOf(vcpu)}`, words, `at ${when(begin)}`];
      },
    };
    return { title: "samples", height: 12, layers: [layer] };
  }

  function pcpuTrack(i: number): Track {
    const number = timeline.pcpus[i];
    const of = ofPcpu(i);
    const entries = losses.get(number) ?? [];
    const lost: Layer = {
      begin: entries.map((entry) => entry[1]),
      end: entries.map((entry) => entry[1] + entry[2]),
      paint: () => [[1, c.lost ?? ""]],
      lines: (k) => [`${entries[k][3]} trace records lost`, seconds(entries[k][2])],
    };
    const kind = (k: number): { words: string; colour: string } => ({
      words: `running on pCPU ${number}`,
      colour: domainColour(vcpuOn(i, k)),
    });
    const ran = packedLayer(of, timeline.schedule.together_below, kind, [["running", c.running ?? ""]], (k) =>
      of.several.has(k) ? `pCPU ${number}` : nameOf(vcpuOn(i, k)),
    );
    ran.label = (k) => (of.several.has(k) ? "" : nameOf(vcpuOn(i, k)));
    const first = vcpus.length * timeline.bins * VCPU_BIN;
    const each = timeline.bins * PCPU_BIN;
    const bytes = binBytes.subarray(first + i * each, first + (i + 1) * each);
    const mostly = (from: number): number => (bytes[from + 1] ?? 0) | ((bytes[from + 2] ?? 0) << 8);
    return {
      title: `pCPU ${number}`,
      height: 22,
      layers: [ran, lost],
      pcpu: i,
      bins: {
        bytes,
        each: PCPU_BIN,
        draw: (from) => [[bytes[from] ?? 0, domainColour(mostly(from))]],
        describe: (from) => [`busy ${percent((bytes[from] ?? 0) / 255, 0)}`, `mostly by ${nameOf(mostly(from))}`],
      },
    };
  }

  function interruptTrack(i: number): Track {
    const of = ofInterrupts(i);
    const kind = (k: number): { words: string; colour: string } => ({
      words: `interrupt ${of.code[k]}`,
      colour: c.irq ?? "",
    });
    const parts: [string, string][] = [["handling interrupts", c.irq ?? ""]];
    const layer = packedLayer(of, timeline.details.together_below, kind, parts, () => `pCPU ${timeline.pcpus[i]}`);
    return { title: "interrupts", height: 12, layers: [layer] };
  }

  /** The part of [from, to) in which the vCPUs ran and waited, from intervals where few are in it, else from bins. */
  function ranAndWaited(of: number[], from: number, to: number): string {
    let [ran, waited] = [0, 0];
    for (const vcpu of of) {
      const own = ofRunstates(vcpu);
      const first = firstAfter(own.end, from);
      if (firstAfter(own.end, to) - first > 2000) {
        const spent = activity.ofVcpu(vcpu, from, to);
        ran += spent[GUEST] + spent[XEN] + spent[UNDIVIDED];
        waited += spent[RUNNABLE];
        continue;
      }
      for (let i = first; i < own.begin.length && own.begin[i] < to; i++) {
        const length = own.end[i] - own.begin[i] || 1;
        const part = (Math.min(own.end[i], to) - Math.max(own.begin[i], from)) / length;
        const several = own.several.get(i)?.parts;
        ran += part * (several?.[0] ?? (own.part[i] === 0 ? length : 0));
        waited += part * (several?.[1] ?? (own.part[i] === 1 ? length : 0));
      }
    }
    const all = (to - from) * of.length || 1;
    return `${percent(ran / all, 1)}  ${percent(waited / all, 1)}`;
  }

  /** All vCPUs of a domain in one row: the mean of what they did. */
  function domainTrack(title: string, of: number[]): Track {
    const sums = activity.series(vcpus[of[0]].domain);
    const bytes = Uint8Array.from(sums, (cycles) => Math.min((cycles / timeline.bin / of.length) * 255, 255));
    return { title, height: 22, layers: [], bins: binsOf(bytes, VCPU_KINDS) };
  }
  /** All pCPUs in one row. */
  function pcpusTrack(title: string): Track {
    const sums = activity.series();
    const all = vcpus.length === 0 ? 1 : timeline.pcpus.length;
    const bytes = Uint8Array.from(sums, (cycles, i) =>
      i % VCPU_BIN >= RUNNABLE ? 0 : Math.min((cycles / timeline.bin / all) * 255, 255),
    );
    return { title, height: 22, layers: [], bins: binsOf(bytes, VCPU_KINDS.slice(0, RUNNABLE)) };
  }

  /** The code of the interval at an instant; undefined: there is none, or several short ones. */
  function entryAt(of: Intervals, at: number): number | undefined {
    const i = firstAfter(of.end, at);
    return i < of.begin.length && of.begin[i] <= at && !of.several.has(i) ? of.code[i] : undefined;
  }
  function runsOn(pcpu: number, at: number): number | undefined {
    const code = pcpu < 0 ? undefined : entryAt(ofPcpu(pcpu), at);
    return code === undefined ? undefined : timeline.vcpu_numbers[code];
  }

  const defined = (tracks: (Track | undefined)[]): Track[] => tracks.filter((track) => track !== undefined);
  const row = (title: string, more: Omit<Group, "title">): Group => ({ title, ...more });
  const isWide = timeline.pcpus.length + vcpus.length > MOST_OPEN;
  const pcpuRows = timeline.pcpus.map((number, i) =>
    row(`pCPU ${number}`, {
      make: () => [
        pcpuTrack(i),
        ...defined([
          threads && pcpuThreads(threads, hz, ofPcpu(i), (k) => nameOf(vcpuOn(i, k))),
          handlers && pcpuHandlers(handlers, hz, ofPcpu(i), (k) => nameOf(vcpuOn(i, k))),
        ]),
        ...(hasIntervals(timeline.details, i) ? [interruptTrack(i)] : []),
      ],
    }),
  );
  const rows: Group[] =
    pcpuRows.length < 2
      ? pcpuRows
      : [
          row(`${pcpuRows.length} pCPUs`, {
            make: (title) => [isWide ? pcpusHeat(timeline, activity, title) : pcpusTrack(title)],
            below: pcpuRows,
            isOpen: !isWide,
          }),
        ];
  const ofDomain = new Map<string, number[]>();
  vcpus.forEach(({ domain }, i) => {
    const own = ofDomain.get(domain);
    if (own === undefined) ofDomain.set(domain, [i]);
    else own.push(i);
  });
  const domainRows: Group[] = [];
  for (const [domain, own] of ofDomain) {
    const below = own.map((i) =>
      row(vcpus[i].name, {
        of: domain,
        make: () => [
          runstateTrack(i),
          ...defined([
            threads && vcpuThreads(threads, hz, vcpus[i].name),
            handlers && vcpuHandlers(handlers, hz, vcpus[i].name),
          ]),
          ...(hasIntervals(timeline.details, segmentsAt(i)) ? [exitTrack(i)] : []),
          ...(samples.has(i) ? [sampleTrack(i)] : []),
        ],
        beside: (from, to) => ranAndWaited([i], from, to),
      }),
    );
    if (own.length === 1) domainRows.push(...below);
    else
      domainRows.push(
        row(`${domain}: ${own.length} vCPUs`, {
          of: domain,
          make: (title) => [domainTrack(title, own)],
          beside: (from, to) => ranAndWaited(own, from, to),
          below,
          isOpen: !isWide,
        }),
      );
  }
  const ofThreads = threads === undefined ? [] : threadGroups(timeline, threads, hz);
  if (domainRows.length <= MOST_OPEN) return { groups: [...rows, ...domainRows, ...ofThreads], threads, runsOn };
  const together = row(`${ofDomain.size} domains`, {
    make: (title) => [
      domainsHeat(timeline, activity, title, "running", [GUEST, XEN, UNDIVIDED]),
      domainsHeat(timeline, activity, "waiting", "waiting", [RUNNABLE]),
    ],
    below: domainRows,
  });
  return { groups: [...rows, together, ...ofThreads], threads, runsOn };
}

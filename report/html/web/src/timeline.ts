// The timeline of vCPUs and pCPUs: runstates, guest and exits, samples. It draws each interval, or, where more of them
// are in view than can be seen, the bins that the command has made.
import { Page, Timeline } from "./data";
import { CanvasView, colour, count, h, hideTip, instant, percent, showTip, time } from "./dom";
import type { Selection } from "./selection";
import { Intervals, firstAfter, readIntervals } from "./intervals";
import { unpack } from "./packed";
import { Remember, State, View } from "./view";

const STATES = ["running", "runnable", "blocked", "offline", "lost", "unknown"];
const CAUSES = ["", "woken", "preempted", ""];
const MODES = ["user", "kernel", "Xen"];
// Colours of domains, each with the colour of text on it: the "muted" scheme of Paul Tol (Colour Schemes,
// SRON/EPS/TN/09-002), which people with any colour vision can distinguish. No state has one of these colours.
const DOMAINS: [string, string][] = [
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

/** Bars of a row, by index, in the order of time. */
interface Layer {
  begin: ArrayLike<number>;
  end: ArrayLike<number>;
  /** The colours of a bar from the bottom, each with its part of the height. */
  paint: (i: number) => [part: number, colour: string][];
  lines: (i: number) => string[];
  label?: (i: number) => string;
  click?: (i: number) => void;
}
interface Bins {
  bytes: Uint8Array;
  each: number;
  draw: (from: number) => [number, string][];
  describe: (from: number) => string[];
}
interface Track {
  title: string;
  height: number;
  layers: Layer[];
  bins?: Bins;
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

export function timelineView(page: Page, timeline: Timeline, remember: Remember, selection: Selection): View {
  const hz = page.report?.cpu_hz ?? 1e9;
  const seconds = (cycles: number): string => time(cycles / hz);
  const sinceTrace = (cycles: number): number => timeline.begin_seconds + cycles / hz;
  /** An instant, to the precision of one pixel, by the clock of --from and --to. */
  const when = (cycles: number): string => instant(sinceTrace(cycles), (to - from) / hz / 1000);
  const tsc = (cycles: number): string => String(BigInt(timeline.begin_tsc) + BigInt(Math.round(cycles)));
  const vcpus = timeline.vcpus;
  const nameOf = (vcpu: number): string => vcpus[vcpu]?.name ?? "?";
  const domains = [...new Set(vcpus.map((vcpu) => vcpu.domain))];
  const domainColour = (vcpu: number): string =>
    DOMAINS[Math.max(domains.indexOf(vcpus[vcpu]?.domain ?? ""), 0) % DOMAINS.length]?.[0] ?? "#888";
  const chosen = h("div", { class: "about", "aria-live": "polite" });

  const packed = unpack(timeline.intervals);
  const ends: number[] = [];
  for (const length of timeline.interval_bytes) ends.push((ends[ends.length - 1] ?? 0) + length);
  const known: (Intervals | undefined)[] = [];
  /** Those of each pCPU, of each vCPU's runstates, of each vCPU's exits; read when they are drawn. */
  const intervals = (i: number): Intervals =>
    (known[i] ??= readIntervals(packed.subarray(ends[i - 1] ?? 0, ends[i] ?? 0)));
  const ofPcpu = (i: number): Intervals => intervals(i);
  const ofRunstates = (vcpu: number): Intervals => intervals(timeline.pcpus.length + vcpu);
  const ofSegments = (vcpu: number): Intervals => intervals(timeline.pcpus.length + vcpus.length + vcpu);
  const binBytes = unpack(timeline.bin_bytes);
  const samples = entriesByRow(timeline.samples, 6);
  const losses = entriesByRow(timeline.lost, 4);
  const VCPU_BIN = 5;
  const PCPU_BIN = 3;
  const vcpuOn = (pcpu: number, i: number): number => timeline.vcpu_numbers[ofPcpu(pcpu).code[i] ?? 0] ?? 0;

  /** A layer of packed intervals; `kind` has the words of an interval, `parts` those and the colours of the parts. */
  function packedLayer(
    of: Intervals,
    kind: (i: number) => { words: string; colour: string },
    parts: [words: string, colour: string][],
    name: (i: number) => string,
  ): Layer {
    const length = (i: number): number => of.end[i] - of.begin[i];
    const timed = (i: number): string => `${seconds(length(i))}, from ${when(of.begin[i])}`;
    return {
      begin: of.begin,
      end: of.end,
      paint: (i) => {
        const several = of.several.get(i);
        if (several === undefined) return [[1, kind(i).colour]];
        return parts.map(([, paint], k): [number, string] => [(several.parts[k] ?? 0) / (length(i) || 1), paint]);
      },
      label: (i) => (of.several.has(i) ? "" : kind(i).words),
      lines: (i) => {
        const several = of.several.get(i);
        if (several === undefined) return [name(i), kind(i).words, timed(i)];
        return [
          name(i),
          `${count(several.count)} intervals, each shorter than ${seconds(timeline.together_below)}`,
          ...parts.flatMap(([words], k) =>
            (several.parts[k] ?? 0) > 0 ? [`${words} ${seconds(several.parts[k])}`] : [],
          ),
          timed(i),
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

  function runstateTrack(vcpu: number, c: Record<string, string>): Track {
    const of = ofRunstates(vcpu);
    const kindOf = (i: number): [number, number, number] => timeline.run_kinds[of.code[i] ?? 0] ?? [5, 0, 0];
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
    const layer = packedLayer(of, kind, parts, () => nameOf(vcpu));
    layer.label = undefined;
    layer.click = (i) => {
      const [state, cause, on] = kindOf(i);
      const [begin, end] = [of.begin[i], of.end[i]];
      const why = CAUSES[cause] ?? "";
      const meanwhile = ranMeanwhile(timeline.pcpus.indexOf(on), begin, end);
      chosen.textContent = of.several.has(i)
        ? layer.lines(i).join("; ")
        : state === 1
          ? `${nameOf(vcpu)} waited ${seconds(end - begin)} for pCPU ${on}${why === "" ? "" : `, ${why}`}; ` +
            `meanwhile that pCPU ran: ${meanwhile || "nothing"}`
          : `${nameOf(vcpu)} ${STATES[state] ?? ""} for ${seconds(end - begin)}`;
    };
    const kinds: [string, string][] = [
      ["guest", "in the guest"],
      ["exit", "in Xen"],
      ["running", "running"],
      ["runnable", "waiting for a pCPU"],
      ["blocked", "blocked"],
    ];
    return { title: nameOf(vcpu), height: 22, layers: [layer], bins: vcpuBins(vcpu, kinds, c) };
  }

  /** The first kinds of the vCPU's bins. */
  function vcpuBins(vcpu: number, kinds: [string, string][], c: Record<string, string>): Bins {
    const each = timeline.bins * VCPU_BIN;
    const bytes = binBytes.subarray(vcpu * each, (vcpu + 1) * each);
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

  function exitTrack(vcpu: number, c: Record<string, string>): Track {
    const of = ofSegments(vcpu);
    const kind = (i: number): { words: string; colour: string } => ({
      words: timeline.segment_kinds[of.code[i] ?? 0] ?? "",
      colour: (of.part[i] === 0 ? c.guest : c.exit) ?? "",
    });
    const parts: [string, string][] = [
      ["in the guest", c.guest ?? ""],
      ["in Xen", c.exit ?? ""],
    ];
    const kinds: [string, string][] = [
      ["guest", "in the guest"],
      ["exit", "in Xen"],
    ];
    const layer = packedLayer(of, kind, parts, () => nameOf(vcpu));
    return { title: "guest, exits", height: 14, layers: [layer], bins: vcpuBins(vcpu, kinds, c) };
  }

  function sampleTrack(vcpu: number, c: Record<string, string>): Track {
    const entries = samples.get(vcpu) ?? [];
    const layer: Layer = {
      begin: entries.map((entry) => entry[3]),
      end: entries.map((entry) => entry[3] + entry[4]),
      paint: (i) => {
        const [, mode, , , length] = entries[i];
        return [[1, (length > 1 ? c.bracket : c[["user", "kernel", "xen"][mode] ?? ""]) ?? ""]];
      },
      lines: (i) => {
        const [, mode, name, begin, length, n] = entries[i];
        const words = `${MODES[mode]}: ${timeline.strings[name] ?? ""}`;
        return length > 1
          ? [
              `${n} samples of ${nameOf(vcpu)}`,
              `taken within a drain interval of ${seconds(length)}; exact times are not known`,
              `one of them: ${words}`,
            ]
          : [`sample of ${nameOf(vcpu)}`, words, `at ${when(begin)}`];
      },
    };
    return { title: "samples", height: 12, layers: [layer] };
  }

  function pcpuTrack(i: number, c: Record<string, string>): Track {
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
    const ran = packedLayer(of, kind, [["running", c.running ?? ""]], (k) =>
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
      bins: {
        bytes,
        each: PCPU_BIN,
        draw: (from) => [[bytes[from] ?? 0, domainColour(mostly(from))]],
        describe: (from) => [`busy ${percent((bytes[from] ?? 0) / 255, 0)}`, `mostly by ${nameOf(mostly(from))}`],
      },
    };
  }

  /** The tracks of a pCPU, or of a vCPU of the domain `of`; made when they are shown. */
  interface Group {
    title: string;
    of?: string;
    make: () => Track[];
    tracks?: Track[];
  }
  function groups(): Group[] {
    const c: Record<string, string> = {};
    for (const name of "guest exit running runnable blocked lost line bracket user kernel xen".split(" "))
      c[name] = colour(name);
    const has = (track: Track): boolean => track.layers.some((layer) => layer.begin.length > 0);
    return [
      ...timeline.pcpus.map((number, i) => ({ title: `pCPU ${number}`, make: () => [pcpuTrack(i, c)] })),
      ...vcpus.map(({ domain, name }, i) => ({
        title: name,
        of: domain,
        make: () => [runstateTrack(i, c), ...[exitTrack(i, c), sampleTrack(i, c)].filter(has)],
      })),
    ];
  }

  const MAX_ROWS = 200; // groups: browsers draw no picture higher than about 32,000 pixels
  const LEFT = 150;
  const TOP = 26;
  let every = groups();
  let words = "";
  /** The only domain whose vCPUs are shown. */
  let only = selection.domain;
  /** What is shown without a range of the view's own. */
  let whole: [number, number] = selection.range ?? [0, timeline.length];
  let all: Track[] = [];
  const narrowed = h("span", { class: "soft" });
  function choose(): void {
    const wanted = every.filter(
      ({ title, of }) => title.toLowerCase().includes(words) && (of === undefined || only === undefined || of === only),
    );
    all = wanted.slice(0, MAX_ROWS).flatMap((group) => (group.tracks ??= group.make()));
    narrowed.textContent =
      wanted.length > MAX_ROWS ? `${MAX_ROWS} of ${count(wanted.length)} pCPUs and vCPUs; filter them by name` : "";
    picture.setHeight(height());
    picture.redraw();
  }
  let [from, to] = whole;
  /** The shortest range that is shown: an exit of some hundred cycles can be seen in it. */
  const LEAST = 2000;
  const height = (): number => TOP + all.reduce((sum, track) => sum + track.height + 4, 0) + 8;
  const xOf = (at: number): number => LEFT + ((at - from) / (to - from)) * (picture.width - LEFT);
  const atX = (x: number): number => from + ((x - LEFT) / Math.max(picture.width - LEFT, 1)) * (to - from);

  function axis(context: CanvasRenderingContext2D): void {
    const span = (to - from) / hz;
    let step = 10 ** Math.floor(Math.log10(span / 6));
    for (const times of [5, 2])
      if (span / (step * times) >= 5) {
        step *= times;
        break;
      }
    context.fillStyle = colour("soft");
    context.strokeStyle = colour("line");
    context.lineWidth = 1;
    context.font = "12px system-ui, DejaVu Sans, sans-serif";
    context.textBaseline = "middle";
    for (let at = Math.ceil(sinceTrace(from) / step) * step; at <= sinceTrace(to); at += step) {
      const x = xOf((at - timeline.begin_seconds) * hz);
      context.beginPath();
      context.moveTo(x, TOP - 6);
      context.lineTo(x, picture.height);
      context.stroke();
      const label = instant(at, step);
      if (x + 4 + context.measureText(label).width < picture.width) context.fillText(label, x + 4, 11);
    }
  }
  function drawBins(context: CanvasRenderingContext2D, track: Track, y: number): void {
    const bins = track.bins;
    if (bins === undefined) return;
    const perPixel = (to - from) / (picture.width - LEFT) / timeline.bin;
    for (let x = LEFT; x < picture.width; x++) {
      const first = Math.floor(atX(x) / timeline.bin);
      const last = Math.min(Math.max(Math.ceil(atX(x + 1) / timeline.bin), first + 1), timeline.bins);
      if (first < 0 || first >= timeline.bins) continue;
      const sums = new Map<string, number>();
      const step = Math.max(1, Math.floor(perPixel / 64));
      let n = 0;
      for (let bin = first; bin < last; bin += step, n++) {
        for (const [part, paint] of bins.draw(bin * bins.each)) sums.set(paint, (sums.get(paint) ?? 0) + part);
      }
      let at = y + track.height;
      for (const [paint, part] of sums) {
        const tall = (part / n / 255) * track.height;
        context.fillStyle = paint;
        context.fillRect(x, at - tall, 1, tall);
        at -= tall;
      }
    }
  }
  function drawLayer(context: CanvasRenderingContext2D, track: Track, layer: Layer, y: number): void {
    let drawn = -1;
    for (let i = firstAfter(layer.end, from); i < layer.begin.length && layer.begin[i] < to; i++) {
      const x = Math.max(xOf(layer.begin[i]), LEFT);
      const right = xOf(layer.end[i]);
      if (right < drawn && right - x < 1) continue;
      const width = Math.max(right - x, 1);
      let bottom = y + track.height;
      let ground = "";
      for (const [part, paint] of layer.paint(i)) {
        const tall = Math.min(part, 1) * track.height;
        context.fillStyle = ground = paint;
        context.fillRect(x, bottom - tall, width > 3 ? width - 0.5 : width, tall);
        bottom -= tall;
      }
      drawn = Math.ceil(right);
      const room = Math.floor((Math.min(right, picture.width) - x - 8) / 7.4);
      const label = room >= 4 ? (layer.label?.(i) ?? "") : "";
      if (label !== "") {
        context.fillStyle = DOMAINS.find(([paint]) => paint === ground)?.[1] ?? "#111";
        context.font = `${track.height > 15 ? 12 : 10}px system-ui, DejaVu Sans, sans-serif`;
        context.fillText(label.length <= room ? label : `${label.slice(0, room - 1)}…`, x + 4, y + track.height / 2);
      }
    }
  }
  const picture = new CanvasView((context) => {
    axis(context);
    let y = TOP;
    context.font = "13px ui-monospace, DejaVu Sans Mono, monospace";
    for (const track of all) {
      context.fillStyle = colour(track.height > 15 ? "fg" : "soft");
      context.textBaseline = "middle";
      context.font = `${track.height > 15 ? 13 : 11}px ui-monospace, DejaVu Sans Mono, monospace`;
      const title = track.title.length > 19 ? `${track.title.slice(0, 18)}…` : track.title;
      context.fillText(title, track.height > 15 ? 4 : 18, y + track.height / 2);
      context.save();
      context.beginPath();
      context.rect(LEFT, y, picture.width - LEFT, track.height);
      context.clip();
      // Bars while each can be seen; else bins, which show the part of each state in each pixel.
      const [main] = track.layers;
      const inView = firstAfter(main.end, to) - firstAfter(main.end, from);
      const binned = track.bins !== undefined && inView > (picture.width - LEFT) / 3;
      if (binned) drawBins(context, track, y);
      for (const layer of binned ? track.layers.slice(1) : track.layers) drawLayer(context, track, layer, y);
      context.restore();
      y += track.height + 4;
    }
  });

  function setRange(begin: number, end: number): void {
    const span = Math.min(Math.max(end - begin, LEAST), timeline.length);
    const middle = (begin + end) / 2;
    from = Math.min(Math.max(middle - span / 2, 0), timeline.length - span);
    to = span === end - begin && from === begin ? end : from + span;
    shown.textContent = `${when(from)} to ${when(to)}: ${seconds(span)}`;
    picture.redraw();
    clearTimeout(settling);
    settling = window.setTimeout(() => remember(state(), false), SETTLED_MS);
  }
  // Browsers limit how often the address changes: it does when the range has come to rest.
  const SETTLED_MS = 200;
  let settling = 0;
  function state(): State {
    const find: State = words === "" ? [] : [["find", words]];
    if (from === whole[0] && to === whole[1]) return find;
    return [...find, ["from", sinceTrace(from).toFixed(9)], ["to", sinceTrace(to).toFixed(9)]];
  }
  function restore(wanted: URLSearchParams): void {
    const at = (key: string, otherwise: number): number => {
      const value = Number.parseFloat(wanted.get(key) ?? "");
      return Number.isFinite(value) ? (value - timeline.begin_seconds) * hz : otherwise;
    };
    words = search.value = (wanted.get("find") ?? "").toLowerCase();
    choose();
    setRange(at("from", whole[0]), at("to", whole[1]));
  }
  const zoom = (by: number, around = (from + to) / 2): void =>
    setRange(around - (around - from) * by, around + (to - around) * by);
  const move = (by: number): void => {
    const step = (to - from) * by;
    const held = Math.min(Math.max(step, -from), timeline.length - to);
    setRange(from + held, to + held);
  };
  function under(event: MouseEvent): { track: Track; layer?: Layer; bar: number; at: number } | null {
    const box = picture.canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    let y = event.clientY - box.top - TOP;
    if (x < LEFT) return null;
    const at = atX(x);
    const pixel = (to - from) / (picture.width - LEFT);
    for (const track of all) {
      if (y >= 0 && y < track.height) {
        for (const layer of [...track.layers].reverse()) {
          const bar = firstAfter(layer.end, at - pixel);
          if (bar < layer.begin.length && layer.begin[bar] <= at + pixel) return { track, layer, bar, at };
        }
        return { track, bar: 0, at };
      }
      y -= track.height + 4;
    }
    return null;
  }
  let grabbed: { x: number; from: number; to: number } | null = null;
  const canvas = picture.canvas;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "Timeline; plus and minus zoom, arrow keys move, 0 shows all");
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const box = canvas.getBoundingClientRect();
      if (event.shiftKey) move(event.deltaY > 0 ? 0.15 : -0.15);
      else zoom(event.deltaY > 0 ? 1.25 : 0.8, atX(Math.max(event.clientX - box.left, LEFT)));
    },
    { passive: false },
  );
  canvas.addEventListener("pointerdown", (event) => {
    grabbed = { x: event.clientX, from, to };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (grabbed !== null && Math.abs(event.clientX - grabbed.x) < 4) {
      const hit = under(event);
      chosen.textContent = "";
      hit?.layer?.click?.(hit.bar);
    }
    grabbed = null;
  });
  canvas.addEventListener("pointermove", (event) => {
    if (grabbed !== null) {
      const by = ((grabbed.x - event.clientX) / Math.max(picture.width - LEFT, 1)) * (grabbed.to - grabbed.from);
      setRange(grabbed.from + by, grabbed.to + by);
      return hideTip();
    }
    const hit = under(event);
    if (hit === null) return hideTip();
    const bins = hit.track.bins;
    const here = `here: ${when(hit.at)}, TSC ${tsc(hit.at)}`;
    if (hit.layer !== undefined) showTip(event.clientX, event.clientY, [...hit.layer.lines(hit.bar), here]);
    else if (bins !== undefined) {
      const bin = Math.min(Math.max(Math.floor(hit.at / timeline.bin), 0), timeline.bins - 1);
      showTip(event.clientX, event.clientY, [
        hit.track.title,
        ...bins.describe(bin * bins.each),
        `in ${seconds(timeline.bin)}, from ${when(bin * timeline.bin)}`,
        here,
      ]);
    } else hideTip();
  });
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("dblclick", () => setRange(...whole));
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "+" || event.key === "=") zoom(0.6);
    else if (event.key === "-") zoom(1.6);
    else if (event.key === "ArrowLeft") move(-0.2);
    else if (event.key === "ArrowRight") move(0.2);
    else if (event.key === "0" || event.key === "Home") setRange(...whole);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  const shown = h("span", { class: "soft", id: "range" });
  /** The options that make other commands look at this range. */
  const options = (): string => `--from ${sinceTrace(from).toFixed(9)} --to ${sinceTrace(to).toFixed(9)}`;
  const copy = (): void => {
    chosen.textContent = options();
    // A page of a file may have no clipboard: then the text is there to be selected.
    if ("clipboard" in navigator) navigator.clipboard.writeText(options()).catch(() => undefined);
  };
  choose();
  setRange(...whole);
  document.addEventListener("theme", () => {
    every = groups();
    choose();
  });
  const search = h("input", {
    type: "search",
    class: "search",
    placeholder: "Filter ( / )",
    "aria-label": "Filter",
    input: () => {
      words = search.value.toLowerCase();
      choose();
      remember(state(), false);
    },
  });
  const legend: [string, string][] = [
    ["guest", "in the guest"],
    ["exit", "in Xen, for an exit"],
    ["running", "running"],
    ["runnable", "waiting for a pCPU"],
    ["blocked", "blocked"],
    ["lost", "records lost"],
    ["bracket", "samples within a drain interval"],
  ];
  const element = h(
    "section",
    {},
    h(
      "div",
      { class: "tools" },
      h("button", { click: () => zoom(0.6) }, "Zoom in (+)"),
      h("button", { click: () => zoom(1.6) }, "Zoom out (−)"),
      h("button", { click: () => setRange(...whole) }, "All (0)"),
      h("button", { click: copy, title: "The options of dump, summary and report for this range" }, "Copy --from --to"),
      search,
      shown,
      narrowed,
    ),
    h(
      "div",
      { class: "legend" },
      ...legend.map(([name, text]) => h("span", {}, h("i", { style: `background:var(--${name})` }), text)),
      ...(domains.length > DOMAINS.length ? [] : domains).map((domain, i) =>
        h("span", {}, h("i", { style: `background:${DOMAINS[i % DOMAINS.length]?.[0] ?? ""}` }), `pCPU: ${domain}`),
      ),
    ),
    timeline.together_below === 0
      ? null
      : h(
          "p",
          { class: "soft" },
          `Neighbours that are shorter than ${seconds(timeline.together_below)} are drawn together. Make a report ` +
            "with --from and --to to see each of them.",
        ),
    timeline.kept_samples === 1
      ? null
      : h(
          "p",
          { class: "soft" },
          `There are too many samples to draw each. One of ${timeline.kept_samples} is drawn and ` +
            `${count(timeline.samples_left_out)} are left out.`,
        ),
    canvas,
    chosen,
  );
  function select({ range, domain }: Selection): void {
    only = domain;
    choose();
    const before = String(whole);
    whole = range ?? [0, timeline.length];
    if (String(whole) !== before) setRange(...whole);
  }
  return { element, restore, select };
}

// The timeline of vCPUs and pCPUs: runstates, guest and exits, samples. It draws each interval, or, where the page
// does not contain each, the bins that the command has made.
import { Page, Timeline } from "./data";
import { CanvasView, colour, count, h, hideTip, instant, percent, showTip, time } from "./dom";
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

interface Bar {
  begin: number;
  end: number;
  colour: string;
  lines: () => string[];
  click?: () => void;
}
interface Track {
  title: string;
  height: number;
  bars: Bar[]; // in the order of their beginning, without overlaps
  bins?: {
    bytes: Uint8Array;
    each: number;
    draw: (from: number) => [number, string][];
    describe: (from: number) => string[];
  };
}

function bytesOf(text: string): Uint8Array {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

/** The first bar that ends after `at`. */
function firstAfter(bars: Bar[], at: number): number {
  let low = 0;
  let high = bars.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bars[middle].end <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function timelineView(page: Page, timeline: Timeline, remember: Remember): View {
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

  /** The tracks of each pCPU and of each vCPU. */
  function groups(): Track[][] {
    const c: Record<string, string> = {};
    for (const name of [
      "guest",
      "exit",
      "running",
      "runnable",
      "blocked",
      "lost",
      "line",
      "bracket",
      "user",
      "kernel",
      "xen",
    ])
      c[name] = colour(name);
    const pcpu = new Map<number, Track>();
    timeline.pcpus.forEach((number, i) => {
      const track: Track = { title: `pCPU ${number}`, height: 22, bars: [] };
      const text = timeline.pcpu_bins[i];
      if (text !== undefined) {
        const bytes = bytesOf(text);
        track.bins = {
          bytes,
          each: 3,
          draw: (at) => [[bytes[at] ?? 0, domainColour((bytes[at + 1] ?? 0) | ((bytes[at + 2] ?? 0) << 8))]],
          describe: (at) => [
            `busy ${percent((bytes[at] ?? 0) / 255, 0)}`,
            `mostly by ${nameOf((bytes[at + 1] ?? 0) | ((bytes[at + 2] ?? 0) << 8))}`,
          ],
        };
      }
      pcpu.set(number, track);
    });
    const states: Track[] = vcpus.map((vcpu, i) => {
      const track: Track = { title: `${vcpu.name}`, height: 22, bars: [] };
      const text = timeline.vcpu_bins[i];
      if (text !== undefined) {
        const bytes = bytesOf(text);
        const kinds: [string, string][] = [
          ["guest", "in the guest"],
          ["exit", "in Xen"],
          ["running", "running"],
          ["runnable", "waiting for a pCPU"],
          ["blocked", "blocked"],
        ];
        track.bins = {
          bytes,
          each: 5,
          draw: (at) => kinds.map(([kind], k): [number, string] => [bytes[at + k] ?? 0, c[kind] ?? ""]),
          describe: (at) =>
            kinds.flatMap(([, words], k) =>
              (bytes[at + k] ?? 0) > 0 ? [`${words} ${percent((bytes[at + k] ?? 0) / 255, 0)}`] : [],
            ),
        };
      }
      return track;
    });
    const inside: Track[] = vcpus.map(() => ({ title: "guest, exits", height: 14, bars: [] }));
    const sampled: Track[] = vcpus.map(() => ({ title: "samples", height: 12, bars: [] }));
    const runs = timeline.runs;
    for (let i = 0; i + 5 < runs.length; i += 6) {
      const [vcpu, on, state, cause, begin, length] = runs.slice(i, i + 6) as [
        number,
        number,
        number,
        number,
        number,
        number,
      ];
      const words = STATES[state] ?? "";
      const why = CAUSES[cause] ?? "";
      const end = begin + length;
      const bar: Bar = {
        begin,
        end,
        colour: c[words] ?? c.line ?? "",
        lines: () => [
          nameOf(vcpu),
          `${words}${state === 1 && why !== "" ? `, ${why}` : ""}${state === 0 ? ` on pCPU ${on}` : ""}`,
          `${seconds(length)}, from ${when(begin)}`,
        ],
        click: () => {
          const there = (pcpu.get(on)?.bars ?? []).filter((other) => other.begin < end && other.end > begin);
          const who = new Map<string, number>();
          for (const other of there) {
            const name = other.lines()[0] ?? "";
            who.set(name, (who.get(name) ?? 0) + Math.min(other.end, end) - Math.max(other.begin, begin));
          }
          const list = [...who]
            .sort((a, b) => b[1] - a[1])
            .slice(0, 6)
            .map(([name, cycles]) => `${name} ${seconds(cycles)}`)
            .join(", ");
          chosen.textContent =
            state === 1
              ? `${nameOf(vcpu)} waited ${seconds(length)} for pCPU ${on}${why === "" ? "" : `, ${why}`}; ` +
                `meanwhile that pCPU ran: ${list || "nothing"}`
              : `${nameOf(vcpu)} ${words} for ${seconds(length)}`;
        },
      };
      states[vcpu]?.bars.push(bar);
      if (state === 0) pcpu.get(on)?.bars.push({ ...bar, colour: domainColour(vcpu) });
    }
    const segments = timeline.segments;
    for (let i = 0; i + 4 < segments.length; i += 5) {
      const [vcpu, , name, begin, length] = segments.slice(i, i + 5) as [number, number, number, number, number];
      const words = name === 0 ? "guest" : (timeline.strings[name - 1] ?? "");
      inside[vcpu]?.bars.push({
        begin,
        end: begin + length,
        colour: (name === 0 ? c.guest : c.exit) ?? "",
        lines: () => [nameOf(vcpu), words, `${seconds(length)}, from ${when(begin)}`],
      });
    }
    const samples = timeline.samples;
    for (let i = 0; i + 5 < samples.length; i += 6) {
      const [vcpu, mode, name, begin, length, n] = samples.slice(i, i + 6) as [
        number,
        number,
        number,
        number,
        number,
        number,
      ];
      const words = timeline.strings[name] ?? "";
      const bracket = length > 1;
      sampled[vcpu]?.bars.push({
        begin,
        end: begin + length,
        colour: (bracket ? c.bracket : c[["user", "kernel", "xen"][mode] ?? ""]) ?? "",
        lines: () =>
          bracket
            ? [
                `${n} samples of ${nameOf(vcpu)}`,
                `taken within a drain interval of ${seconds(length)}; exact times are not known`,
                `one of them: ${MODES[mode]}: ${words}`,
              ]
            : [`sample of ${nameOf(vcpu)}`, `${MODES[mode]}: ${words}`, `at ${when(begin)}`],
      });
    }
    const lost = timeline.lost;
    for (let i = 0; i + 3 < lost.length; i += 4) {
      const [on, begin, length, n] = lost.slice(i, i + 4) as [number, number, number, number];
      pcpu.get(on)?.bars.push({
        begin,
        end: begin + length,
        colour: c.lost ?? "",
        lines: () => [`${n} trace records lost`, seconds(length)],
      });
    }
    const all: Track[][] = [...pcpu.values()].map((track) => [track]);
    vcpus.forEach((_, i) => {
      all.push([states[i], ...[inside[i], sampled[i]].filter((track) => track.bars.length > 0)]);
    });
    for (const track of all.flat()) track.bars.sort((a, b) => a.begin - b.begin || a.end - b.end);
    return all;
  }

  const MAX_ROWS = 200; // groups: browsers draw no picture higher than about 32,000 pixels
  const LEFT = 150;
  const TOP = 26;
  let every = groups();
  let words = "";
  let all: Track[] = [];
  const narrowed = h("span", { class: "soft" });
  function choose(): void {
    const wanted = every.filter((group) => group[0].title.toLowerCase().includes(words));
    all = wanted.slice(0, MAX_ROWS).flat();
    narrowed.textContent =
      wanted.length > MAX_ROWS ? `${MAX_ROWS} of ${count(wanted.length)} pCPUs and vCPUs; filter them by name` : "";
    picture.setHeight(height());
    picture.redraw();
  }
  let from = 0;
  let to = timeline.length;
  const least = (): number => (timeline.exact ? 2000 : timeline.bin * 20);
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
      // Bars while each is visible; else bins, which show the longest state of each pixel.
      const first = firstAfter(track.bars, from);
      const binned =
        track.bins !== undefined &&
        firstAfter(track.bars, to) - first > (timeline.exact ? (picture.width - LEFT) / 3 : -1);
      if (binned) drawBins(context, track, y);
      let drawn = -1;
      for (let i = binned && timeline.exact ? track.bars.length : first; i < track.bars.length; i++) {
        const bar = track.bars[i];
        if (bar.begin >= to) break;
        const x = Math.max(xOf(bar.begin), LEFT);
        const right = xOf(bar.end);
        if (right < drawn && right - x < 1) continue;
        context.fillStyle = bar.colour;
        const width = Math.max(right - x, 1);
        context.fillRect(x, y, width > 3 ? width - 0.5 : width, track.height);
        drawn = Math.ceil(right);
        const words = bar.lines();
        const room = Math.floor((width - 8) / 7.4);
        const label = track.title.startsWith("pCPU") ? words[0] : track.height > 15 ? "" : words[1];
        if (label !== undefined && label !== "" && room >= 4 && track.title !== "samples") {
          context.fillStyle = DOMAINS.find(([paint]) => paint === bar.colour)?.[1] ?? "#111";
          context.font = `${track.height > 15 ? 12 : 10}px system-ui, DejaVu Sans, sans-serif`;
          context.fillText(label.length <= room ? label : `${label.slice(0, room - 1)}…`, x + 4, y + track.height / 2);
        }
      }
      context.restore();
      y += track.height + 4;
    }
  });

  function setRange(begin: number, end: number): void {
    const span = Math.min(Math.max(end - begin, least()), timeline.length);
    const middle = (begin + end) / 2;
    from = Math.min(Math.max(middle - span / 2, 0), timeline.length - span);
    to = from + span;
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
    if (from <= 0 && to >= timeline.length) return find;
    return [...find, ["from", sinceTrace(from).toFixed(9)], ["to", sinceTrace(to).toFixed(9)]];
  }
  function restore(wanted: URLSearchParams): void {
    const at = (key: string, otherwise: number): number => {
      const value = Number.parseFloat(wanted.get(key) ?? "");
      return Number.isFinite(value) ? (value - timeline.begin_seconds) * hz : otherwise;
    };
    words = search.value = (wanted.get("find") ?? "").toLowerCase();
    choose();
    setRange(at("from", 0), at("to", timeline.length));
  }
  const zoom = (by: number, around = (from + to) / 2): void =>
    setRange(around - (around - from) * by, around + (to - around) * by);
  const move = (by: number): void => {
    const step = (to - from) * by;
    const held = Math.min(Math.max(step, -from), timeline.length - to);
    setRange(from + held, to + held);
  };
  function under(event: MouseEvent): { track: Track; bar?: Bar; at: number } | null {
    const box = picture.canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    let y = event.clientY - box.top - TOP;
    if (x < LEFT) return null;
    const at = atX(x);
    const pixel = (to - from) / (picture.width - LEFT);
    for (const track of all) {
      if (y >= 0 && y < track.height) {
        const i = firstAfter(track.bars, at - pixel);
        const bar = track.bars[i];
        return bar !== undefined && bar.begin <= at + pixel ? { track, bar, at } : { track, at };
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
      hit?.bar?.click?.();
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
    if (hit.bar !== undefined) showTip(event.clientX, event.clientY, [...hit.bar.lines(), here]);
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
  canvas.addEventListener("dblclick", () => setRange(0, timeline.length));
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "+" || event.key === "=") zoom(0.6);
    else if (event.key === "-") zoom(1.6);
    else if (event.key === "ArrowLeft") move(-0.2);
    else if (event.key === "ArrowRight") move(0.2);
    else if (event.key === "0" || event.key === "Home") setRange(0, timeline.length);
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
  setRange(0, timeline.length);
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
      h("button", { click: () => setRange(0, timeline.length) }, "All (0)"),
      h("button", { click: copy, title: "The options of dump, summary and report for this range" }, "Copy --from --to"),
      search,
      shown,
      narrowed,
    ),
    h(
      "div",
      { class: "legend" },
      ...legend.map(([name, text]) => h("span", {}, h("i", { style: `background:var(--${name})` }), text)),
      ...domains.map((domain, i) =>
        h("span", {}, h("i", { style: `background:${DOMAINS[i % DOMAINS.length]?.[0] ?? ""}` }), `pCPU: ${domain}`),
      ),
    ),
    timeline.exact
      ? null
      : h(
          "p",
          { class: "soft" },
          `There are too many intervals to show each. A bar covers ${seconds(timeline.bin)}; its height is the ` +
            "part of that time. Make a report with --from and --to to see each interval.",
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
  return { element, restore };
}

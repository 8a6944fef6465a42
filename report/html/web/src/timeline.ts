// The timeline of vCPUs and pCPUs: runstates, guest and exits, samples. It draws each interval, or, where more of them
// are in view than can be seen, the bins that the command has made.
import { timeOfDay } from "./clock";
import { Page, Timeline } from "./data";
import { CanvasView, axisStep, colour, count, h, hideTip, instant, percent, showTip, time } from "./dom";
import type { Activity } from "./activity";
import type { Selection } from "./selection";
import { drawHeat, lineAt } from "./heat_track";
import { firstAfter } from "./intervals";
import { DOMAINS, Group, Groups, Layer, Track, timelineGroups } from "./tracks";
import { MOST_ARROWS, Wake, drawArrows } from "./wake_arrows";
import { Remember, State, View } from "./view";

export function timelineView(
  page: Page,
  timeline: Timeline,
  activity: Activity,
  remember: Remember,
  selection: Selection,
): View {
  const hz = page.report?.cpu_hz ?? 1e9;
  const seconds = (cycles: number): string => time(cycles / hz);
  const sinceTrace = (cycles: number): number => timeline.begin_seconds + cycles / hz;
  /** An instant, to the precision of one pixel, by the clock of --from and --to. */
  const when = (cycles: number): string => instant(sinceTrace(cycles), (to - from) / hz / 1000);
  const tsc = (cycles: number): string => String(BigInt(timeline.begin_tsc) + BigInt(Math.round(cycles)));
  const vcpus = timeline.vcpus;
  const domains = [...new Set(vcpus.map((vcpu) => vcpu.domain))];
  const chosen = h("div", { class: "about", "aria-live": "polite" });

  const MAX_ROWS = 400; // browsers draw no picture higher than about 32,000 pixels
  const LEFT = 150;
  const TOP = 26;
  /** Room at the right for what is written beside rows. */
  const RIGHT = 110;
  const groups = (): Groups =>
    timelineGroups(timeline, activity, { seconds, when, say: (text) => (chosen.textContent = text) });
  let every = groups();
  let words = "";
  /** The only domain whose vCPUs are shown. */
  let only = selection.domain;
  /** What is shown without a range of the view's own. */
  let whole: [number, number] = selection.range ?? [0, timeline.length];
  let all: Row[] = [];
  const narrowed = h("span", { class: "soft" });
  /** Rows of the picture: the first track of a group has what is written beside it, and opens what is below. */
  interface Row {
    track: Track;
    group?: Group;
    depth: number;
  }
  function rowsOf(group: Group, depth: number): Row[] {
    const isWanted =
      group.title.toLowerCase().includes(words) && (group.of === undefined || only === undefined || group.of === only);
    // What is searched is found below closed groups, too.
    const isOpen = group.isOpen === true || words !== "";
    const below = isOpen ? (group.below ?? []).flatMap((each) => rowsOf(each, depth + 1)) : [];
    if (!isWanted) return below;
    const tracks = (group.tracks ??= group.make(group.title));
    return [...tracks.map((track, i) => ({ track, depth, ...(i === 0 ? { group } : {}) })), ...below];
  }
  function choose(): void {
    const rows = every.groups.flatMap((group) => rowsOf(group, 0));
    all = rows.slice(0, MAX_ROWS);
    narrowed.textContent =
      rows.length > MAX_ROWS ? `${MAX_ROWS} of ${count(rows.length)} rows; filter them by name` : "";
    picture.setHeight(height());
    picture.redraw();
  }
  let [from, to] = whole;
  /** The shortest range that is shown: an exit of some hundred cycles can be seen in it. */
  const LEAST = 2000;
  const height = (): number => TOP + all.reduce((sum, { track }) => sum + track.height + 4, 0) + 8;
  const plotWidth = (): number => Math.max(picture.width - LEFT - RIGHT, 1);
  const xOf = (at: number): number => LEFT + ((at - from) / (to - from)) * plotWidth();
  const atX = (x: number): number => from + ((x - LEFT) / plotWidth()) * (to - from);

  function axis(context: CanvasRenderingContext2D): void {
    const span = (to - from) / hz;
    const step = axisStep(span);
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
      if (x + 4 + context.measureText(label).width < LEFT + plotWidth()) context.fillText(label, x + 4, 11);
    }
  }
  function drawBins(context: CanvasRenderingContext2D, track: Track, y: number): void {
    const bins = track.bins;
    if (bins === undefined) return;
    const perPixel = (to - from) / plotWidth() / timeline.bin;
    for (let x = LEFT; x < LEFT + plotWidth(); x++) {
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
      const room = Math.floor((Math.min(right, LEFT + plotWidth()) - x - 8) / 7.4);
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
    context.textAlign = "right";
    context.fillText("ran  waited", picture.width - 2, 11);
    context.textAlign = "left";
    for (const { track, group, depth } of all) {
      const isFirst = group !== undefined;
      context.fillStyle = colour(isFirst ? "fg" : "soft");
      context.textBaseline = "middle";
      context.font = `${isFirst ? 13 : 11}px ui-monospace, DejaVu Sans Mono, monospace`;
      const sign = group?.below === undefined ? "" : group.isOpen === true ? "▾ " : "▸ ";
      const title = sign + track.title;
      const room = 19 - depth;
      const middle = y + Math.min(track.height, 22) / 2;
      context.fillText(
        title.length > room ? `${title.slice(0, room - 1)}…` : title,
        (isFirst ? 4 : 18) + depth * 8,
        middle,
      );
      if (track.heat !== undefined) {
        context.font = "11px system-ui, DejaVu Sans, sans-serif";
        context.fillStyle = colour("soft");
        context.fillText(`shade: part ${track.heat.words}`, 18 + depth * 8, middle + 16);
      }
      if (group?.beside !== undefined) {
        context.textAlign = "right";
        context.font = "12px ui-monospace, DejaVu Sans Mono, monospace";
        context.fillText(group.beside(from, to), picture.width - 2, middle);
        context.textAlign = "left";
      }
      context.save();
      context.beginPath();
      context.rect(LEFT, y, plotWidth(), track.height);
      context.clip();
      // Bars while each can be seen; else bins, which show the part of each state in each pixel.
      const main: Layer | undefined = track.layers[0];
      const inView = main === undefined ? Infinity : firstAfter(main.end, to) - firstAfter(main.end, from);
      if (track.heat !== undefined)
        drawHeat(context, track.heat, { ...timeline, from, to }, { x: LEFT, y, width: plotWidth() });
      const binned = track.bins !== undefined && inView > plotWidth() / 3;
      if (binned) drawBins(context, track, y);
      for (const layer of binned ? track.layers.slice(1) : track.layers) drawLayer(context, track, layer, y);
      context.restore();
      y += track.height + 4;
    }
    drawArrows(context, wakes(), xOf);
  });
  /** The wake-ups in view of the vCPUs that are shown; more than MOST_ARROWS where there are many. */
  function wakes(): Wake[] {
    const [pcpuY, vcpuY] = [new Map<number, number>(), new Map<number, number>()];
    let y = TOP;
    for (const { track } of all) {
      if (track.pcpu !== undefined) pcpuY.set(track.pcpu, y + track.height);
      if (track.vcpu !== undefined) vcpuY.set(track.vcpu, y);
      y += track.height + 4;
    }
    const found: Wake[] = [];
    for (const { track } of all) {
      if (track.wakes === undefined || found.length > MOST_ARROWS) continue;
      const toY = vcpuY.get(track.vcpu ?? -1) ?? 0;
      for (const { at, by } of track.wakes(from, to, MOST_ARROWS)) {
        const waker = every.runsOn(by, at);
        const wakerY = waker === undefined || waker === track.vcpu ? undefined : vcpuY.get(waker);
        const fromY = wakerY === undefined ? pcpuY.get(by) : wakerY + track.height / 2;
        found.push({ at, fromY, toY: fromY !== undefined && fromY > toY ? toY + track.height : toY });
      }
    }
    return found;
  }

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
  /** What is at a point: `down` is the distance from the top of the track. */
  function under(event: MouseEvent): { track: Track; layer?: Layer; bar: number; at: number; down: number } | null {
    const box = picture.canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    let y = event.clientY - box.top - TOP;
    if (x < LEFT) return null;
    const at = atX(x);
    const pixel = (to - from) / plotWidth();
    for (const { track } of all) {
      if (y >= 0 && y < track.height) {
        for (const layer of [...track.layers].reverse()) {
          const bar = firstAfter(layer.end, at - pixel);
          if (bar < layer.begin.length && layer.begin[bar] <= at + pixel) return { track, layer, bar, at, down: y };
        }
        return { track, bar: 0, at, down: y };
      }
      y -= track.height + 4;
    }
    return null;
  }
  /** The group whose title is at a point. */
  function titleAt(event: MouseEvent): Group | undefined {
    const box = picture.canvas.getBoundingClientRect();
    let y = event.clientY - box.top - TOP;
    if (event.clientX - box.left >= LEFT) return undefined;
    for (const { track, group } of all) {
      if (y >= 0 && y < track.height) return group?.below === undefined ? undefined : group;
      y -= track.height + 4;
    }
    return undefined;
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
      const title = titleAt(event);
      if (title !== undefined) {
        title.isOpen = title.isOpen !== true;
        choose();
      }
      const hit = under(event);
      chosen.textContent = "";
      hit?.layer?.click?.(hit.bar);
    }
    grabbed = null;
  });
  canvas.addEventListener("pointermove", (event) => {
    if (grabbed !== null) {
      const by = ((grabbed.x - event.clientX) / plotWidth()) * (grabbed.to - grabbed.from);
      setRange(grabbed.from + by, grabbed.to + by);
      return hideTip();
    }
    const hit = under(event);
    if (hit === null) return hideTip();
    const { bins, heat } = hit.track;
    const day = timeOfDay(page, hit.at);
    const here = `here: ${when(hit.at)}, TSC ${tsc(hit.at)}${day === undefined ? "" : `, ${day}`}`;
    if (hit.layer !== undefined) showTip(event.clientX, event.clientY, [...hit.layer.lines(hit.bar), here]);
    else if (heat !== undefined) {
      const line = lineAt(heat, hit.down);
      const part = heat.value(line, Math.min(Math.max(Math.floor(hit.at / timeline.bin), 0), timeline.bins - 1));
      showTip(event.clientX, event.clientY, [heat.names[line], `${heat.words} ${percent(part, 0)}`, here]);
    } else if (bins !== undefined) {
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
    ["irq", "interrupts"],
    ["lost", "records lost"],
    ["bracket", "samples whose exact time is not known"],
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
      timeline.run_kinds.some(([, , , waker]) => waker > 0)
        ? h("span", {}, h("b", {}, "●→"), " woke (the dot: what ran there)")
        : "",
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

// The timeline of vCPUs and pCPUs: runstates, guest and exits, samples.
import { select } from "d3-selection";
import { type D3ZoomEvent, type ZoomBehavior, type ZoomTransform, zoom as zoomBehaviour, zoomIdentity } from "d3-zoom";
import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Canvas, pointIn } from "./canvas";
import { timeOfDay } from "./clock";
import type { Page, Timeline } from "./data";
import { count, instant, percent, time } from "./format";
import { lineAt } from "./heat_track";
import { firstAfter } from "./intervals";
import { Legend, SearchField } from "./parts";
import type { Selection } from "./selection";
import { timeScale } from "./time_axis";
import { LEFT, RIGHT, TimeScale, drawTimeline } from "./timeline_picture";
import { Row, heightOf, keyOf, rowAt, rowsOf } from "./timeline_rows";
import type { ThreadItem } from "./page_data";
import { THREAD_COLOURS, threadName } from "./threads";
import { hideTip, showTip } from "./tip";
import { DOMAINS, Groups, Layer } from "./tracks";
import { ViewProps, changed } from "./view";
import { MOST_ARROWS, Wake, drawArrows } from "./wake_arrows";

/** Browsers draw no picture higher than about 32,000 pixels. */
const MOST_ROWS = 400;
/** The shortest range that is shown, in cycles: an exit of some hundred cycles can be seen in it. */
const LEAST = 2000;

const LEGEND: [colour: string, words: string][] = [
  ["guest", "in the guest"],
  ["exit", "in Xen, for an exit"],
  ["running", "running"],
  ["runnable", "waiting for a pCPU"],
  ["blocked", "blocked"],
  ["irq", "interrupts"],
  ["lost", "records lost"],
  ["bracket", "samples whose exact time is not known"],
];

/** Where kernels' events are known. */
const OF_KERNELS: [colour: string, words: string][] = [
  ["queued", "a thread waits in its kernel's queue"],
  ["softirq", "softirqs"],
];

/** The wake-ups of the vCPUs in view, from any row; more than MOST_ARROWS where there are many. */
function wakesIn(inView: Row[], rows: Row[], { runsOn }: Groups, [from, to]: number[]): Wake[] {
  const [pcpuY, vcpuY] = [new Map<number, number>(), new Map<number, number>()];
  for (const { track, y } of rows) {
    if (track.pcpu !== undefined) pcpuY.set(track.pcpu, y + track.height);
    if (track.vcpu !== undefined) vcpuY.set(track.vcpu, y);
  }
  const found: Wake[] = [];
  for (const { track } of inView) {
    if (track.wakes === undefined || found.length > MOST_ARROWS) continue;
    const toY = vcpuY.get(track.vcpu ?? -1) ?? 0;
    for (const { at, by } of track.wakes(from, to, MOST_ARROWS)) {
      const waker = runsOn(by, at);
      const wakerY = waker === undefined || waker === track.vcpu ? undefined : vcpuY.get(waker);
      const fromY = wakerY === undefined ? pcpuY.get(by) : wakerY + track.height / 2;
      found.push({ at, fromY, toY: fromY !== undefined && fromY > toY ? toY + track.height : toY });
    }
  }
  return found;
}

/** What is at an instant of a row: the bar, where there is one within a pixel. */
function barAt({ track }: Row, at: number, pixel: number): { layer: Layer; bar: number } | undefined {
  for (const layer of [...track.layers].reverse()) {
    const bar = firstAfter(layer.end, at - pixel);
    if (bar < layer.begin.length && layer.begin[bar] <= at + pixel) return { layer, bar };
  }
  return undefined;
}

/** The wheel and dragging change what is in view, within [0, length): d3-zoom. Gets the scale of all, in the width. */
function useZoom(
  all: (width: number) => TimeScale,
  [from, to]: [number, number],
  change: (from: number, to: number) => void,
): (canvas: HTMLCanvasElement) => void {
  const behaviour = useRef<ZoomBehavior<HTMLCanvasElement, unknown> | undefined>(undefined);
  const canvas = useRef<HTMLCanvasElement | undefined>(undefined);
  const latest = useRef({ all, from, to, change });
  latest.current = { all, from, to, change };
  /** Puts d3's transform to what is in view, in the width that there is now. */
  function fit(): void {
    const element = canvas.current;
    if (element === undefined || behaviour.current === undefined || element.clientWidth === 0) return;
    const scale = latest.current.all(element.clientWidth);
    const [left, right] = scale.range();
    const extent: [[number, number], [number, number]] = [
      [left, 0],
      [right, 1],
    ];
    const [begin, end] = scale.domain();
    behaviour.current
      .extent(extent)
      .translateExtent(extent)
      .scaleExtent([1, Math.max((end - begin) / LEAST, 1)]);
    const k = (end - begin) / (latest.current.to - latest.current.from);
    const transform: ZoomTransform = zoomIdentity.translate(left - k * scale(latest.current.from), 0).scale(k);
    select(element).property("__zoom", transform);
  }
  useLayoutEffect(fit, [from, to]);
  return (element) => {
    canvas.current = element;
    behaviour.current = zoomBehaviour<HTMLCanvasElement, unknown>()
      .filter((event: MouseEvent) => !event.shiftKey && event.button === 0)
      .on("zoom", ({ transform }: D3ZoomEvent<HTMLCanvasElement, unknown>) => {
        hideTip();
        const [begin, end] = transform.rescaleX(latest.current.all(element.clientWidth)).domain();
        latest.current.change(begin, end);
      });
    select(element).call(behaviour.current).on("dblclick.zoom", null);
    new ResizeObserver(fit).observe(element);
  };
}

type Props = {
  page: Page;
  timeline: Timeline;
  groups: Groups;
  selection: Selection;
} & ViewProps;

export function TimelineView({ page, timeline, groups, selection, query, remember }: Props): JSX.Element {
  const clock = { begin: timeline.begin_seconds, hz: page.report?.cpu_hz ?? 1e9 };
  const sinceTrace = (cycles: number): number => clock.begin + cycles / clock.hz;
  const seconds = (cycles: number): string => time(cycles / clock.hz);
  /** What is shown without a range of the view's own. */
  const whole: [number, number] = selection.range ?? [0, timeline.length];
  const [from, to] = rangeOf(query, whole, timeline.length, clock);
  /** An instant, to the precision of one pixel, by the clock of --from and --to. */
  const when = (cycles: number): string => instant(sinceTrace(cycles), (to - from) / clock.hz / 1000);

  const [said, say] = useState("");
  const words = query.get("find") ?? "";
  const toggled = query.getAll("toggle");
  const { rows, all } = useMemo(
    () =>
      rowsOf(
        groups.groups,
        { words: words.toLowerCase(), domain: selection.domain, toggled: new Set(toggled) },
        MOST_ROWS,
      ),
    [groups, words, selection.domain, toggled.join()],
  );

  const by = THREAD_COLOURS.find((each) => each === query.get("threads")) ?? "thread";
  const followed = groups.threads?.list.findIndex((thread) => followKey(thread) === query.get("follow")) ?? -1;
  const paint = groups.threads && { threads: groups.threads, by, followed: followed < 0 ? undefined : followed };
  /** Follows a thread over pCPUs and vCPUs; the one that is followed already: no longer. */
  function follow(thread: number): void {
    const key = thread < 0 || thread === followed ? undefined : groups.threads?.list[thread];
    remember(changed(query, { follow: key === undefined ? undefined : followKey(key) }), true);
  }

  function setRange(begin: number, end: number): void {
    const span = Math.min(Math.max(end - begin, LEAST), timeline.length);
    const first = Math.min(Math.max((begin + end - span) / 2, 0), timeline.length - span);
    const isWhole = Math.abs(first - whole[0]) < 1 && Math.abs(first + span - whole[1]) < 1;
    remember(
      changed(query, {
        from: isWhole ? undefined : sinceTrace(first).toFixed(10),
        to: isWhole ? undefined : sinceTrace(first + span).toFixed(10),
      }),
      false,
    );
  }
  const zoom = (by: number): void => {
    const [middle, half] = [(from + to) / 2, ((to - from) / 2) * by];
    setRange(middle - half, middle + half);
  };
  const move = (by: number): void => {
    const step = Math.min(Math.max((to - from) * by, -from), timeline.length - to);
    setRange(from + step, to + step);
  };
  const scaleOf = (width: number, begin = from, end = to): TimeScale =>
    timeScale(begin, end, LEFT, Math.max(width - RIGHT, LEFT + 1));
  const attach = useZoom((width) => scaleOf(width, 0, timeline.length), [from, to], setRange);

  function toggle(title: string): void {
    const next = toggled.includes(title) ? toggled.filter((each) => each !== title) : [...toggled, title];
    const others = changed(query, { toggle: undefined });
    remember([...others, ...next.map((each): [string, string] => ["toggle", each])], true);
  }
  function onClick(event: MouseEvent): void {
    const [x, y] = pointIn(event);
    const row = rowAt(rows, y);
    if (row === undefined) return;
    if (x < LEFT) {
      say("");
      if (row.group?.below !== undefined) toggle(keyOf(row.group));
      else if (row.group?.thread !== undefined) follow(row.group.thread);
      return;
    }
    const scale = scaleOf((event.currentTarget as Element).clientWidth);
    const hit = barAt(row, scale.invert(x), scale.invert(1) - scale.invert(0));
    say(hit?.layer.about?.(hit.bar) ?? "");
    const thread = hit?.layer.thread?.(hit.bar) ?? -1;
    if (thread >= 0) follow(thread);
  }
  function point(event: PointerEvent): void {
    const [x, y] = pointIn(event);
    const row = x < LEFT || event.buttons !== 0 ? undefined : rowAt(rows, y);
    if (row === undefined) return hideTip();
    const scale = scaleOf((event.currentTarget as Element).clientWidth);
    const at = scale.invert(x);
    const tsc = BigInt(timeline.begin_tsc) + BigInt(Math.round(at));
    const day = timeOfDay(page, at);
    const here = `here: ${when(at)}, TSC ${tsc}${day === undefined ? "" : `, ${day}`}`;
    const hit = barAt(row, at, scale.invert(1) - scale.invert(0));
    const bin = Math.min(Math.max(Math.floor(at / timeline.bin), 0), timeline.bins - 1);
    const { bins, heat, title } = row.track;
    if (hit !== undefined) showTip(event.clientX, event.clientY, [...hit.layer.lines(hit.bar, when), here]);
    else if (heat !== undefined) {
      const line = lineAt(heat, y - row.y);
      const part = `${heat.words} ${percent(heat.parts[line][bin], 0)}`;
      showTip(event.clientX, event.clientY, [heat.names[line], part, here]);
    } else if (bins !== undefined) {
      const span = `in ${seconds(timeline.bin)}, from ${when(bin * timeline.bin)}`;
      showTip(event.clientX, event.clientY, [title, ...bins.describe(bin * bins.each), span, here]);
    } else hideTip();
  }
  function onKey(event: KeyboardEvent): void {
    if (event.key === "+" || event.key === "=") zoom(0.6);
    else if (event.key === "-") zoom(1.6);
    else if (event.key === "ArrowLeft") move(-0.2);
    else if (event.key === "ArrowRight") move(0.2);
    else if (event.key === "0" || event.key === "Home") setRange(...whole);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
  /** Shows the options that make other commands look at this range, and copies them. */
  function copy(): void {
    const options = `--from ${sinceTrace(from).toFixed(9)} --to ${sinceTrace(to).toFixed(9)}`;
    say(options);
    // A page of a file may have no clipboard: then the text is there to be selected.
    if ("clipboard" in navigator) navigator.clipboard.writeText(options).catch(() => undefined);
  }
  return (
    <section>
      <div class="tools">
        <button onClick={() => zoom(0.6)}>Zoom in (+)</button>
        <button onClick={() => zoom(1.6)}>Zoom out (−)</button>
        <button onClick={() => setRange(...whole)}>All (0)</button>
        <button onClick={copy} title="The options of dump, summary and report for this range">
          Copy --from --to
        </button>
        <SearchField
          label="Filter"
          value={words}
          change={(text) => remember(changed(query, { find: text || undefined }), false)}
        />
        {groups.threads === undefined ? null : (
          <label title="The colours of the lanes of threads; click a thread to follow it">
            {"threads by "}
            <select
              id="thread-colours"
              onChange={(event) => remember(changed(query, { threads: event.currentTarget.value }), true)}
            >
              {THREAD_COLOURS.map((each) => (
                <option selected={each === by}>{each}</option>
              ))}
            </select>
          </label>
        )}
        {groups.threads === undefined || followed < 0 ? null : (
          <button id="followed" onClick={() => follow(followed)} title="Follow no thread">
            {`${threadName(groups.threads.list[followed])} ×`}
          </button>
        )}
        <span class="soft" id="range">{`${when(from)} to ${when(to)}: ${seconds(to - from)}`}</span>
        <span class="soft">{all > rows.length ? `${rows.length} of ${count(all)} rows; filter them by name` : ""}</span>
      </div>
      <Colours timeline={timeline} />
      <Notes timeline={timeline} seconds={seconds} />
      <Canvas
        height={heightOf(rows)}
        label="Timeline; plus and minus zoom, arrow keys move, 0 shows all"
        draw={(context, size, { top, bottom }) => {
          const scale = scaleOf(size.width);
          const inView = rows.filter(({ y, track }) => y < bottom && y + track.height > top);
          drawTimeline(context, size, timeline, inView, scale, clock, paint);
          drawArrows(context, wakesIn(inView, rows, groups, scale.domain()), scale);
        }}
        attach={attach}
        onWheel={(event) => {
          if (!event.shiftKey) return;
          event.preventDefault();
          move(event.deltaY + event.deltaX > 0 ? 0.15 : -0.15);
        }}
        onClick={onClick}
        onPointerMove={point}
        onPointerLeave={hideTip}
        onDblClick={() => setRange(...whole)}
        onKeyDown={onKey}
      />
      <div class="about" aria-live="polite">
        {said}
      </div>
    </section>
  );
}

/** What a thread is followed by in the address. */
const followKey = ({ domain, tid }: ThreadItem): string => `${domain}/${tid}`;

/** The range of the address, whose values may be anything. */
function rangeOf(
  query: URLSearchParams,
  whole: [number, number],
  length: number,
  { begin, hz }: { begin: number; hz: number },
): [number, number] {
  const [from, to] = ["from", "to"].map((key, i) => {
    const value = (Number.parseFloat(query.get(key) ?? "") - begin) * hz;
    return Number.isFinite(value) ? Math.min(Math.max(value, 0), length) : whole[i];
  });
  return to - from >= Math.min(LEAST, length) * 0.99 ? [from, to] : whole;
}

function Colours({ timeline }: { timeline: Timeline }): JSX.Element {
  const domains = [...new Set(timeline.vcpus.map(({ domain }) => domain))];
  const shown = domains.length > DOMAINS.length ? [] : domains;
  return (
    <Legend
      of={[
        ...LEGEND,
        ...(timeline.threads === undefined ? [] : OF_KERNELS),
        ...shown.map((name, i): [string, string] => [DOMAINS[i][0], `pCPU: ${name}`]),
      ]}
    >
      {timeline.run_kinds.some(([, , , waker]) => waker > 0) ? (
        <span>
          <b>●→</b> woke (the dot: what ran there)
        </span>
      ) : null}
    </Legend>
  );
}

/** What the picture does not show. */
function Notes({ timeline, seconds }: { timeline: Timeline; seconds: (cycles: number) => string }): JSX.Element {
  const leftOut = timeline.threads?.left_out ?? 0;
  const kinds: [string, number][] = [
    ["timeslices and waits", timeline.schedule.together_below],
    ["VM exits and interrupts", timeline.details.together_below],
  ];
  const together = kinds.filter(([, below]) => below > 0).map(([what, below]) => `${what} below ${seconds(below)}`);
  return (
    <>
      {together.length === 0 ? null : (
        <p class="soft">
          {`Neighbours are drawn together where they are short: ${together.join(", ")}. Make a report with --from ` +
            "and --to to see each of them."}
        </p>
      )}
      {leftOut === 0 ? null : (
        <p class="soft">
          {`${count(leftOut)} ${leftOut === 1 ? "thread" : "threads"} that ran for less time: not in the page.`}
        </p>
      )}
      {timeline.kept_samples === 1 ? null : (
        <p class="soft">
          {`There are too many samples to draw each. One of ${timeline.kept_samples} is drawn and ` +
            `${count(timeline.samples_left_out)} are left out.`}
        </p>
      )}
    </>
  );
}

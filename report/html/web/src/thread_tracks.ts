// The timeline's rows of threads: lanes of the threads on pCPUs and vCPUs, and a tree of domains, containers, processes
// and threads with what each did.
import { VCPU_BIN } from "./activity";
import { colour } from "./canvas";
import type { Timeline } from "./data";
import { count, percent, time } from "./format";
import { Intervals } from "./intervals";
import type { ThreadItem } from "./page_data";
import { THREAD_STATES, Threads, clipped, processName, spentBy, threadName } from "./threads";
import type { Group, Layer, Track } from "./tracks";

/** The lane of one thread after the other: of a vCPU, or of what ran on a pCPU. */
function laneOf(
  threads: Threads,
  hz: number,
  entries: { begin: number; end: number; thread: number; on: string }[],
): Track {
  const { list } = threads;
  const layer: Layer = {
    begin: entries.map(({ begin }) => begin),
    end: entries.map(({ end }) => end),
    paint: () => [],
    thread: (i) => entries[i].thread,
    label: (i) => list[entries[i].thread]?.name ?? "",
    lines: (i, when) => {
      const { begin, end, thread, on } = entries[i];
      const found: ThreadItem | undefined = list[thread];
      const who =
        found === undefined ? ["a thread that is not in the page"] : [threadName(found), `of ${processName(found)}`];
      return [
        ...who,
        `on ${on}`,
        ...(found?.container ? [`in ${found.container}`] : []),
        `${time((end - begin) / hz)}, from ${when(begin)}`,
      ];
    },
  };
  return { title: "threads", height: 12, layers: [layer] };
}

/** The threads on a vCPU; undefined where nothing is known of them. */
export function vcpuThreads(threads: Threads, hz: number, vcpu: string): Track | undefined {
  const of = threads.onVcpu(vcpu);
  if (of === undefined) return undefined;
  const entries = Array.from(of.begin, (begin, i) => ({
    begin,
    end: of.end[i],
    thread: threads.threadOf(of, i),
    on: vcpu,
  }));
  return laneOf(threads, hz, entries);
}

/** The threads that ran on a pCPU: those on the vCPUs that ran there, while they did. */
export function pcpuThreads(
  threads: Threads,
  hz: number,
  ran: Intervals,
  vcpuOf: (i: number) => string,
): Track | undefined {
  const entries: { begin: number; end: number; thread: number; on: string }[] = [];
  ran.begin.forEach((begin, k) => {
    const on = ran.several.has(k) ? "" : vcpuOf(k);
    const of = on === "" ? undefined : threads.onVcpu(on);
    if (of === undefined) return;
    for (const part of clipped(of, begin, ran.end[k]))
      entries.push({ ...part, thread: threads.threadOf(of, part.i), on });
  });
  return entries.length === 0 ? undefined : laneOf(threads, hz, entries);
}

function stateTrack(threads: Threads, hz: number, thread: number, title: string): Track {
  const of = threads.statesOf(thread);
  const paints = THREAD_STATES.map(([, name]) => colour(name));
  const parts = ["running", "runnable", "blocked"].map(colour);
  const layer: Layer = {
    begin: of.begin,
    end: of.end,
    paint: (i) => {
      const several = of.several.get(i);
      const length = of.end[i] - of.begin[i] || 1;
      if (several === undefined) return [[1, paints[of.code[i]] ?? ""]];
      return parts.map((paint, k): [number, string] => [several.parts[k] / length, paint]);
    },
    lines: (i, when) => {
      const several = of.several.get(i);
      const words =
        several === undefined ? (THREAD_STATES[of.code[i]]?.[0] ?? "") : `${count(several.count)} intervals`;
      return [title, words, `${time((of.end[i] - of.begin[i]) / hz)}, from ${when(of.begin[i])}`];
    },
  };
  return { title, height: 14, layers: [layer] };
}

/** Several threads in one row: the part of the domain's vCPUs that they had, and waited for. */
function sumTrack(timeline: Timeline, threads: Threads, of: number[], vcpus: number, title: string): Track {
  const bytes = new Uint8Array(timeline.bins * VCPU_BIN);
  const sums = new Float64Array(timeline.bins * 2);
  for (const thread of of) {
    const own = threads.statesOf(thread);
    own.begin.forEach((begin, i) => {
      const length = own.end[i] - begin || 1;
      const several = own.several.get(i)?.parts;
      for (let k = 0; k < 2; k++) {
        const part = several === undefined ? Number(own.part[i] === k) : several[k] / length;
        if (part === 0) continue;
        for (
          let bin = Math.floor(begin / timeline.bin);
          bin * timeline.bin < own.end[i] && bin < timeline.bins;
          bin++
        ) {
          const within = Math.min(own.end[i], (bin + 1) * timeline.bin) - Math.max(begin, bin * timeline.bin);
          sums[bin * 2 + k] += within * part;
        }
      }
    });
  }
  for (let bin = 0; bin < timeline.bins; bin++)
    for (let k = 0; k < 2; k++)
      bytes[bin * VCPU_BIN + 2 + k] = Math.min((sums[bin * 2 + k] / timeline.bin / (vcpus || 1)) * 255, 255);
  const paints = ["running", "runnable"].map(colour);
  return {
    title,
    height: 18,
    layers: [],
    bins: {
      bytes,
      each: VCPU_BIN,
      draw: (from) => paints.map((paint, k): [number, string] => [bytes[from + 2 + k], paint]),
      describe: (from) =>
        ["ran on", "waited for"].map((words, k) => `${words} ${percent(bytes[from + 2 + k] / 255, 0)} of the vCPUs`),
    },
  };
}

/** The threads by a key, in the order in which its values come first. */
function grouped(of: number[], key: (thread: number) => string): [name: string, threads: number[]][] {
  const groups = new Map<string, number[]>();
  for (const thread of of) groups.set(key(thread), [...(groups.get(key(thread)) ?? []), thread]);
  return [...groups];
}

/** A group for each domain whose threads are known, closed at first. */
export function threadGroups(timeline: Timeline, threads: Threads, hz: number): Group[] {
  const { list } = threads;
  const all = list.map((_, i) => i);
  const besideOf =
    (of: number[]): Group["beside"] =>
    (from, to) =>
      spentBy(
        of.map((thread) => threads.statesOf(thread)),
        from,
        to,
      )
        .slice(0, 2)
        .map((cycles) => percent(cycles / (to - from || 1), 1))
        .join("  ");
  return grouped(all, (i) => list[i].domain).map(([domain, ofDomain]) => {
    const vcpus = timeline.vcpus.filter((vcpu) => vcpu.domain === domain).length;
    const several = (path: string, title: string, of: number[], below: Group[]): Group => ({
      title,
      key: path,
      of: domain,
      make: () => [sumTrack(timeline, threads, of, vcpus, title)],
      beside: besideOf(of),
      below,
    });
    const rowOf = (path: string, i: number): Group => ({
      title: threadName(list[i]),
      key: `${path}/${list[i].tid}`,
      of: domain,
      thread: i,
      make: (title) => [stateTrack(threads, hz, i, title)],
      beside: besideOf([i]),
    });
    const processes = (path: string, of: number[]): Group[] =>
      grouped(of, (i) => processName(list[i])).map(([name, own]) => {
        const key = `${path}/${name}`;
        if (own.length === 1) return { ...rowOf(key, own[0]), title: name };
        return several(
          key,
          name,
          own,
          own.map((i) => rowOf(key, i)),
        );
      });
    const containers = grouped(ofDomain, (i) => list[i].container).flatMap(([name, own]) =>
      name === ""
        ? processes(domain, own)
        : [several(`${domain}/${name}`, name, own, processes(`${domain}/${name}`, own))],
    );
    return several(`${domain}/threads`, `${domain}: threads`, ofDomain, containers);
  });
}

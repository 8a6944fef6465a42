// The timeline's heat maps of hosts with many pCPUs and domains.
import { Activity, PCPU_BIN, RUNNABLE, VCPU_BIN } from "./activity";
import { Timeline } from "./data";
import { Heat, heatHeight } from "./heat_track";
import type { Track } from "./tracks";

const heatTrack = (title: string, heat: Heat): Track => ({ title, height: heatHeight(heat), layers: [], heat });

/** All pCPUs, each a line. */
export function pcpusHeat(timeline: Timeline, { bytes }: Activity, title: string): Track {
  const first = timeline.vcpus.length * timeline.bins * VCPU_BIN;
  return heatTrack(title, {
    names: timeline.pcpus.map((number) => `pCPU ${number}`),
    parts: timeline.pcpus.map((_, line) =>
      Float32Array.from(
        { length: timeline.bins },
        (_, bin) => (bytes[first + (line * timeline.bins + bin) * PCPU_BIN] ?? 0) / 255,
      ),
    ),
    words: "busy",
  });
}

/** All domains, each a line, those that ran longest first: the mean of their vCPUs in activities of these kinds. */
export function domainsHeat(
  timeline: Timeline,
  activity: Activity,
  title: string,
  words: string,
  kinds: number[],
): Track {
  const vcpus = new Map<string, number>();
  for (const { domain } of timeline.vcpus) vcpus.set(domain, (vcpus.get(domain) ?? 0) + 1);
  const all = activity.domains.map((domain) => {
    const sums = activity.series(domain);
    const whole = timeline.bin * (vcpus.get(domain) ?? 1);
    const parts = Float32Array.from({ length: timeline.bins }, (_, bin) =>
      Math.min(kinds.reduce((sum, k) => sum + sums[bin * VCPU_BIN + k], 0) / whole, 1),
    );
    const ran = sums.reduce((sum, cycles, i) => sum + (i % VCPU_BIN < RUNNABLE ? cycles : 0), 0);
    return { domain, parts, ran };
  });
  all.sort((a, b) => b.ran - a.ran);
  return heatTrack(title, {
    names: all.map(({ domain }) => domain),
    parts: all.map(({ parts }) => parts),
    words,
  });
}

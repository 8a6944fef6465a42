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
    parts: timeline.pcpus.map((_, line) => {
      const parts = new Float32Array(timeline.bins);
      for (let bin = 0; bin < timeline.bins; bin++) {
        parts[bin] = (bytes[first + (line * timeline.bins + bin) * PCPU_BIN] ?? 0) / 255;
      }
      return parts;
    }),
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
    const parts = new Float32Array(timeline.bins);
    let ran = 0;
    // Loops, since a host of 512 domains has millions of these numbers.
    for (let bin = 0, at = 0; bin < timeline.bins; bin++, at += VCPU_BIN) {
      let sum = 0;
      for (const k of kinds) sum += sums[at + k];
      parts[bin] = Math.min(sum / whole, 1);
      for (let k = 0; k < RUNNABLE; k++) ran += sums[at + k];
    }
    return { domain, parts, ran };
  });
  all.sort((a, b) => b.ran - a.ran);
  return heatTrack(title, {
    names: all.map(({ domain }) => domain),
    parts: all.map(({ parts }) => parts),
    words,
  });
}

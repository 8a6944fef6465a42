// What vCPUs did, from the bins of the timeline: sums over domains and ranges of time.
import { Timeline } from "./data";
import { unpack } from "./packed";

/** The numbers of a bin of a vCPU. */
export const ACTIVITIES = ["guest", "exit", "running", "runnable", "blocked"] as const;
export const [GUEST, XEN, UNDIVIDED, RUNNABLE] = [0, 1, 2, 3];
const EACH = ACTIVITIES.length;
/** Bytes of a bin of a vCPU, and of one of a pCPU: the busy part, the vCPU that ran longest. */
export const VCPU_BIN = EACH;
export const PCPU_BIN = 3;

export class Activity {
  /** Of all vCPUs: bins * ACTIVITIES, as parts of 255; then the bins of pCPUs. */
  readonly bytes: Uint8Array;
  /** By domain, in cycles: bins * ACTIVITIES. */
  private readonly ofDomain = new Map<string, Float64Array>();

  constructor(readonly timeline: Timeline) {
    this.bytes = unpack(timeline.bin_bytes);
    timeline.vcpus.forEach(({ domain }, vcpu) => {
      let sums = this.ofDomain.get(domain);
      if (sums === undefined) this.ofDomain.set(domain, (sums = new Float64Array(timeline.bins * EACH)));
      const first = vcpu * sums.length;
      for (let i = 0; i < sums.length; i++) sums[i] += (this.bytes[first + i] * timeline.bin) / 255;
    });
  }

  get domains(): string[] {
    return [...this.ofDomain.keys()];
  }
  /** The vCPUs' bins, of those of the domain or of all: bins * ACTIVITIES, in cycles. */
  series(domain?: string): Float64Array {
    if (domain !== undefined) return this.ofDomain.get(domain) ?? new Float64Array(this.timeline.bins * EACH);
    const all = new Float64Array(this.timeline.bins * EACH);
    for (const sums of this.ofDomain.values()) sums.forEach((cycles, i) => (all[i] += cycles));
    return all;
  }
  /** The cycles of a domain in [from, to), by activity. */
  within(domain: string, from: number, to: number): number[] {
    return this.sumOf(this.ofDomain.get(domain) ?? new Float64Array(0), 1, from, to);
  }
  /** Those of one vCPU. */
  ofVcpu(vcpu: number, from: number, to: number): number[] {
    const { bin, bins } = this.timeline;
    return this.sumOf(this.bytes.subarray(vcpu * bins * EACH, (vcpu + 1) * bins * EACH), bin / 255, from, to);
  }
  private sumOf(sums: Float64Array | Uint8Array, unit: number, from: number, to: number): number[] {
    const { bin, bins } = this.timeline;
    const cycles = ACTIVITIES.map(() => 0);
    if (sums.length === 0) return cycles;
    const last = Math.min(Math.ceil(to / bin), bins);
    for (let i = Math.max(Math.floor(from / bin), 0); i < last; i++) {
      const part = (Math.min((i + 1) * bin, to) - Math.max(i * bin, from)) / bin;
      for (let k = 0; k < EACH; k++) cycles[k] += sums[i * EACH + k] * unit * part;
    }
    return cycles;
  }
}

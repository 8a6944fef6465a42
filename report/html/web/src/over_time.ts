// Amounts over time, of many things: correlate/binned_sums.h. A bin at the edge of a range counts by its part in it.
import { OverTime } from "./data";
import { Numbers, unpack } from "./packed";

interface Entries {
  /** The entries of the key k are those from first[k] to first[k + 1]. */
  first: Uint32Array;
  bin: Uint32Array;
  amount: Float64Array;
}

function read(of: OverTime): Entries {
  const bytes = unpack(of.packed);
  const numbers = new Numbers(bytes);
  // A key and an entry have at least one number and two, a number at least one byte.
  const first = new Uint32Array(bytes.length + 1);
  const bin = new Uint32Array(bytes.length / 2);
  const amount = new Float64Array(bytes.length / 2);
  let [keys, entries] = [0, 0];
  while (numbers.more) {
    let at = 0;
    for (let n = numbers.next(); n > 0; n--) {
      at += numbers.next();
      bin[entries] = at;
      amount[entries++] = numbers.next() * of.unit;
    }
    first[++keys] = entries;
  }
  return { first: first.slice(0, keys + 1), bin: bin.slice(0, entries), amount: amount.slice(0, entries) };
}

export class Sums {
  /** Read when they are first asked for: most are of no use before a range is selected. */
  private made: Entries | undefined;

  constructor(private readonly of: OverTime) {}

  private get entries(): Entries {
    return (this.made ??= read(this.of));
  }
  get keys(): number {
    return this.entries.first.length - 1;
  }
  get bins(): number {
    return this.of.bins;
  }
  /** The length of a bin, and where a bin begins, in cycles of the page. */
  get width(): number {
    return this.of.width;
  }
  beginOf(bin: number): number {
    return this.of.begin + bin * this.of.width;
  }
  /** Calls `each` for all entries of a key. */
  forEach(key: number, each: (bin: number, amount: number) => void): void {
    const { first, bin, amount } = this.entries;
    for (let i = first[key]; i < (first[key + 1] ?? 0); i++) each(bin[i], amount[i]);
  }
  /** The part of a bin that is in [from, to). */
  private partOf(bin: number, from: number, to: number): number {
    const begin = this.beginOf(bin);
    return Math.max(Math.min(begin + this.width, to) - Math.max(begin, from), 0) / this.width;
  }
  /** The amount of a key in [from, to). */
  amountIn(key: number, from: number, to: number): number {
    let sum = 0;
    this.forEach(key, (bin, amount) => (sum += amount * this.partOf(bin, from, to)));
    return sum;
  }
  /** By key: the part of its amount that is in [from, to). Of a key without any, 0. */
  partsIn(from: number, to: number): Float64Array {
    const weights = Float64Array.from({ length: this.bins }, (_, bin) => this.partOf(bin, from, to));
    const { first, bin, amount } = this.entries;
    const parts = new Float64Array(this.keys);
    for (let key = 0; key < parts.length; key++) {
      let [all, inside] = [0, 0];
      for (let i = first[key]; i < first[key + 1]; i++) {
        all += amount[i];
        inside += amount[i] * weights[bin[i]];
      }
      parts[key] = all > 0 ? inside / all : 0;
    }
    return parts;
  }
  /** The sum over the keys that are wanted, by bin. */
  series(wanted: (key: number) => boolean): Float64Array {
    const sums = new Float64Array(this.bins);
    for (let key = 0; key < this.keys; key++)
      if (wanted(key)) this.forEach(key, (bin, amount) => (sums[bin] += amount));
    return sums;
  }
}

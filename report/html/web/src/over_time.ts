// Amounts over time, of many things: correlate/binned_sums.h. A bin at the edge of a range counts by its part in it.
import { OverTime } from "./data";
import { Numbers, unpack } from "./packed";

export class Sums {
  /** The entries of the key k are those from first[k] to first[k + 1]. */
  private readonly first: Uint32Array;
  private readonly bin: Uint32Array;
  private readonly amount: Float64Array;

  constructor(private readonly of: OverTime) {
    const numbers = new Numbers(unpack(of.packed));
    const first: number[] = [0];
    const bin: number[] = [];
    const amount: number[] = [];
    while (numbers.more) {
      let at = 0;
      for (let n = numbers.next(); n > 0; n--) {
        at += numbers.next();
        bin.push(at);
        amount.push(numbers.next() * of.unit);
      }
      first.push(bin.length);
    }
    this.first = Uint32Array.from(first);
    this.bin = Uint32Array.from(bin);
    this.amount = Float64Array.from(amount);
  }

  get keys(): number {
    return this.first.length - 1;
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
    for (let i = this.first[key]; i < (this.first[key + 1] ?? 0); i++) each(this.bin[i], this.amount[i]);
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
    const parts = new Float64Array(this.keys);
    for (let key = 0; key < this.keys; key++) {
      let all = 0;
      let inside = 0;
      this.forEach(key, (bin, amount) => {
        all += amount;
        inside += amount * weights[bin];
      });
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

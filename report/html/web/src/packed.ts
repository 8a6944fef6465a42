// What the command packs: bytes in gzip and base64, in pieces with spaces between them, and numbers in these bytes.
import { gunzipSync } from "fflate";

export function unpack(text: string): Uint8Array {
  const pieces = text.split(" ").map(unpackPiece);
  const [first] = pieces;
  if (first !== undefined && pieces.length === 1) return first;
  const all = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

function unpackPiece(text: string): Uint8Array {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return gunzipSync(bytes);
}

/**
 * Rows of packed bytes that follow each other, each as long as `lengths` says, by their number. They are unpacked
 * when the first is asked for: a view of a wide host shows sums, and takes half as long without them.
 */
export function packedRows(text: string, lengths: number[]): (i: number) => Uint8Array {
  let bytes: Uint8Array | undefined;
  const ends: number[] = [];
  for (const length of lengths) ends.push((ends[ends.length - 1] ?? 0) + length);
  return (i) => (bytes ??= unpack(text)).subarray(ends[i - 1] ?? 0, ends[i] ?? 0);
}

/** Reads LEB128 numbers. They are below 2^53, as a trace of cycles would last weeks otherwise. */
export class Numbers {
  private at = 0;
  constructor(private readonly bytes: Uint8Array) {}

  get more(): boolean {
    return this.at < this.bytes.length;
  }
  next(): number {
    // Most numbers have one byte.
    const first = this.bytes[this.at++] ?? 0;
    if (first < 128) return first;
    let value = first & 127;
    for (let scale = 128; ; scale *= 128) {
      const byte = this.bytes[this.at++] ?? 0;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  }
  /** A number that may be negative: zigzag. */
  nextSigned(): number {
    const value = this.next();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }
}

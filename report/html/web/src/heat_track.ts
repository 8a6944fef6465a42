// Many things of the timeline in one track: a line of a few pixels for each, its shade the part of the time.
import { heatShades, shadeOf } from "./heat";

export interface Heat {
  /** Names of the lines, from the top. */
  names: string[];
  /** By line, for each bin of time: the part, 0 to 1. */
  parts: Float32Array[];
  /** What the part is. */
  words: string;
}

const HIGHEST = 256;

/** The height of a line: as many pixels as let all lines have some room. */
const lineHeight = ({ names }: Heat): number => Math.min(Math.max(Math.floor(HIGHEST / names.length), 1), 6);
export const heatHeight = (heat: Heat): number => heat.names.length * lineHeight(heat);
/** The line at a distance from the top of the track. */
export const lineAt = (heat: Heat, y: number): number =>
  Math.min(Math.max(Math.floor(y / lineHeight(heat)), 0), heat.names.length - 1);

/** Draws the bins of [from, to), of `bin` each, into the rectangle. */
export function drawHeat(
  context: CanvasRenderingContext2D,
  heat: Heat,
  { from, to, bin, bins }: { from: number; to: number; bin: number; bins: number },
  box: { x: number; y: number; width: number },
): void {
  const width = Math.max(Math.round(box.width), 1);
  const lines = heat.names.length;
  const image = new ImageData(width, lines);
  // A pixel is four bytes: red, green, blue, alpha.
  const pixels = new Uint32Array(image.data.buffer);
  const shades = heatShades().map((shade) => new Uint32Array(Uint8Array.from([...shade, 255]).buffer)[0]);
  const each = (to - from) / width / bin;
  for (let x = 0; x < width; x++) {
    const first = Math.max(Math.floor(from / bin + x * each), 0);
    const last = Math.min(Math.max(Math.ceil(from / bin + (x + 1) * each), first + 1), bins);
    if (last <= first) continue;
    heat.parts.forEach((parts, line) => {
      let sum = 0;
      for (let at = first; at < last; at++) sum += parts[at];
      if (sum > 0) pixels[line * width + x] = shadeOf(shades, sum / (last - first));
    });
  }
  const picture = document.createElement("canvas");
  picture.width = width;
  picture.height = lines;
  picture.getContext("2d")?.putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(picture, box.x, box.y, box.width, heatHeight(heat));
}

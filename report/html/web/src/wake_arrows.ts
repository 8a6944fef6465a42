// Arrows of the timeline from who woke a vCPU to that vCPU. They are drawn while each can be told from the others.
import { colour } from "./canvas";

/** A wake-up: when, and the row of what ran on the pCPU from which it came; undefined: that row is not shown. */
export interface Wake {
  at: number;
  fromY?: number;
  toY: number;
}

/** More arrows than this in view are a carpet. */
export const MOST_ARROWS = 150;

export function drawArrows(context: CanvasRenderingContext2D, wakes: Wake[], xOf: (at: number) => number): void {
  if (wakes.length > MOST_ARROWS) return;
  context.strokeStyle = context.fillStyle = colour("fg");
  context.lineWidth = 1;
  for (const { at, fromY, toY } of wakes) {
    const x = Math.round(xOf(at)) + 0.5;
    const up = fromY === undefined || fromY < toY ? 1 : -1;
    const from = fromY ?? toY - 16;
    const tip = toY - up * 3;
    context.beginPath();
    context.moveTo(x, from);
    context.lineTo(x, tip);
    context.stroke();
    context.beginPath();
    context.moveTo(x - 3.5, tip - up * 6);
    context.lineTo(x + 3.5, tip - up * 6);
    context.lineTo(x, tip);
    context.fill();
    if (fromY === undefined) continue;
    context.beginPath();
    context.arc(x, from, 2.5, 0, 2 * Math.PI);
    context.fill();
  }
}

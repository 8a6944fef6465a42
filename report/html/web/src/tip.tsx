// The tip beside the pointer.
import { render } from "preact";

const box = document.createElement("div");
box.id = "tip";
box.setAttribute("role", "status");

/** Shows lines, of which the first is a heading, beside a point of the window. */
export function showTip(x: number, y: number, lines: string[]): void {
  if (!box.isConnected) document.body.append(box);
  const [first, ...rest] = lines;
  render(
    <>
      <b>{first}</b>
      {rest.map((line) => (
        <div>{line}</div>
      ))}
    </>,
    box,
  );
  box.style.display = "block";
  const { offsetWidth: width, offsetHeight: height } = box;
  box.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
  box.style.top = `${y + 18 + height > innerHeight ? Math.max(4, y - height - 10) : y + 18}px`;
}
export function hideTip(): void {
  box.style.display = "none";
}

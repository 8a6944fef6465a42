// The page: reads its data and shows it.
import { render } from "preact";
import { App } from "./app";
import { readPage } from "./data";
import { Figures } from "./selection";

const page = readPage(document.getElementById("data")?.textContent ?? "{}");
document.title = page.title;
const place = document.getElementById("app");
if (place !== null) render(<App figures={new Figures(page)} />, place);

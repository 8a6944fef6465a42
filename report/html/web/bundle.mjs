// Bundles the page into one HTML file, and that into a C++ source: bundle.mjs OUT.cc
// The data takes the place of @@XENOSCOPE_DATA@@ when a report is written.
import { build } from "esbuild";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const result = await build({
  entryPoints: [join(here, "src/main.tsx")],
  bundle: true,
  minify: true,
  write: false,
  target: "es2021",
  charset: "utf8",
  legalComments: "inline",
  metafile: true,
  logLevel: "warning",
});
const script = result.outputFiles[0].text.replaceAll("</script", "<\\/script");
const style = readFileSync(join(here, "src/style.css"), "utf8");
// The licences of the packages that have become a part of the page.
const packages = new Set(
  Object.keys(result.metafile.inputs).flatMap((path) => path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1] ?? []),
);
const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
const licences = [...packages].sort().map((name) => {
  const directory = join(here, "node_modules", name);
  const file = readdirSync(directory).find((each) => /^licen[cs]e/i.test(each));
  if (file === undefined) throw new Error(`${name} has no file with its licence`);
  return `${name}\n\n${readFileSync(join(directory, file), "utf8").trim()}`;
});
// Functions, as replacements are not to be looked at for $1 and the like.
const page = readFileSync(join(here, "src/page.html"), "utf8")
  .replace("@@STYLE@@", () => style)
  .replace("@@LICENCES@@", () => escaped(licences.join("\n\n")))
  .replace("@@SCRIPT@@", () => script);
// Literals of at most this many characters, which every compiler takes.
const pieces = page.match(/[^]{1,12000}/gu) ?? [];
writeFileSync(
  process.argv[2],
  `#include "report/html/web_page.h"\n\n#include <string>\n\nnamespace xenoscope::report {\n\n` +
    `std::string_view WebPage() {\n` +
    `  static const std::string page =\n` +
    pieces.map((piece) => `      std::string(R"xenoscope(${piece})xenoscope")`).join(" +\n") +
    `;\n  return page;\n}\n\n}  // namespace xenoscope::report\n`,
);

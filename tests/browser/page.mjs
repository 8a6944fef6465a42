// Opens HTML reports in Chromium as a person would: page.mjs DIRECTORY [PART...], with what page.test has put there.
// Each view is opened and its figures are held against the report's JSON; screenshots go to DIRECTORY/shots.
// Anything on the browser's console, and any request at all, is a failure.
import { chromium } from "playwright-core";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const work = resolve(process.argv[2]);
const shots = join(work, "shots");
mkdirSync(shots, { recursive: true });
const json = (name) => JSON.parse(readFileSync(join(work, name), "utf8"));
let failed = 0;
function check(what, good, seen) {
  if (good) return;
  failed++;
  console.log(`not so: ${what}${seen === undefined ? "" : ` (${JSON.stringify(seen)})`}`);
}
const near = (a, b, by) => Math.abs(a - b) <= by;

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
});

async function open(file, size, colorScheme, hash = "") {
  const page = await browser.newPage({ viewport: size, colorScheme });
  page.on("console", (message) => check(`console of ${file}`, false, message.text()));
  page.on("pageerror", (error) => check(`error in ${file}`, false, error.message));
  page.on("request", (request) => {
    check(
      `a request of ${file}`,
      request.url().startsWith("file:") || request.url().startsWith("data:"),
      request.url(),
    );
  });
  await page.goto(pathToFileURL(join(work, file)).href + hash);
  return page;
}
const cells = (page, table) =>
  page.$$eval(`${table} tbody tr`, (rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
// Each heading has its words, and they are those of --help-columns.
const told = readFileSync(join(work, "words.txt"), "utf8").split("\n");
async function explained(page, table) {
  const headings = await page.$$eval(`${table} th`, (all) => all.map((th) => [th.textContent, th.title]));
  check(`headings of ${table}`, headings.length > 2, headings.length);
  for (const [name, title] of headings) {
    const parts = title.startsWith("low: ") ? title.slice(5).split("; high: ") : [title];
    check(
      `words of '${name}' in ${table}`,
      name === "" || parts.every((part) => part !== "" && told.some((line) => line.endsWith(`  ${part}`))),
      title,
    );
  }
}
// Groups by these columns as a person would: a click adds or removes one, an arrow key moves it.
async function groupBy(page, by) {
  const shown = () => page.$$eval("main .chip.on", (all) => all.map((chip) => chip.textContent));
  const chip = (column) => `main .chip:text-is('${column}')`;
  for (const column of by) if (!(await shown()).includes(column)) await page.click(chip(column));
  for (const column of await shown()) if (!by.includes(column)) await page.click(chip(column));
  for (let i = 0; i < by.length; i++) {
    for (let at = (await shown()).indexOf(by[i]); at > i; at--) {
      await page.focus(chip(by[i]));
      await page.keyboard.press("ArrowLeft");
    }
  }
  check(`grouped by ${by.join()}`, (await shown()).join() === by.join(), await shown());
}
const number = (text) => Number(text.replaceAll(",", "").replace("%", ""));

const laptop = { width: 1366, height: 768 };
const projector = { width: 1920, height: 1080 };

async function wholeReport() {
  const page = await open("small.html", laptop, "light");
  const report = json("small.json");
  const shot = (name) => page.screenshot({ path: join(shots, `${name}.png`) });
  const press = (key) => page.keyboard.press(key);

  // Overview: the totals, and each domain's samples and share.
  check(
    "attributed samples",
    (await page.textContent(".card b")) === report.samples.attributed.toLocaleString("en-US"),
  );
  const domains = await cells(page, "#table-domains");
  const byDomain = json("domains.json");
  check("as many domains", domains.length === byDomain.rows.length, domains.length);
  for (const row of byDomain.rows) {
    const seen = domains.find((cell) => cell[0] === row.domain);
    check(`domain ${row.domain}`, seen !== undefined && near(number(seen[2]), row.share * 100, 0.006), seen);
  }
  check("checks", (await cells(page, "#table-checks")).length === report.checks.length);
  await explained(page, "#table-domains");
  for (const [title, words] of await page.$$eval(".card", (all) =>
    all.map((card) => [card.firstChild.textContent, card.title]),
  )) {
    check(`words of '${title}'`, words !== "" && told.some((line) => line.endsWith(`  ${words}`)), words);
  }
  await explained(page, "#table-checks");
  const notes = await page.$$eval("ul.notes li", (items) => items.map((item) => item.textContent));
  const said = readFileSync(join(work, "small.txt"), "utf8")
    .split("\n")
    .map((line) => line.replace(/^note: /, ""));
  check("notes", notes.length > 1 && notes.every((note) => said.includes(note)), notes);
  await shot("overview");

  // Flame graph: a search, a click, and back.
  await press("2");
  await page.waitForSelector("main canvas");
  check(
    "the whole",
    (await page.textContent(".about")).includes(`${report.samples.attributed.toLocaleString("en-US")} samples`),
    await page.textContent(".about"),
  );
  const hottest = report.rows.reduce((a, b) => (a.share > b.share ? a : b));
  await press("/");
  await page.keyboard.type(hottest.function);
  const named = report.rows.filter((row) => row.function.toLowerCase().includes(hottest.function.toLowerCase()));
  const matched = named.reduce((sum, row) => sum + row.share, 0) * 100;
  const text = await page.textContent("section .tools");
  check("share of what was searched", near(number(text.match(/matched: ([\d.]+)%/)[1]), matched, 0.02), [
    text,
    matched,
  ]);
  await press("Enter");
  await page.waitForTimeout(100);
  await shot("flame-graph");
  await press("/");
  await press("Escape");
  check("nothing is searched any more", !(await page.textContent("section .tools")).includes("matched"));
  await page.focus("main canvas");
  await press("ArrowDown");
  await press("Enter");
  check(
    "what is enlarged",
    (await page.textContent(".crumbs")).startsWith("all › "),
    await page.textContent(".crumbs"),
  );
  await press("Escape");
  check("the whole again", (await page.textContent(".crumbs")) === "all");
  await groupBy(page, ["exit", "domain", "function", "line"]);
  const exitFirst = await page.evaluate(() => location.hash);
  check("the columns are in the address", exitFirst.includes("by=exit%2Cdomain%2Cfunction%2Cline"), exitFirst);
  await groupBy(page, ["domain", "exit", "function", "line"]);
  await page.waitForTimeout(100);
  await shot("flame-graph-by-exit");

  // The flame graph goes down to lines: the widest frame of each step, by keys.
  const lines = json("lines.json").rows;
  const widest = (rows, column) => {
    const sums = new Map();
    for (const row of rows) sums.set(row[column], (sums.get(row[column]) ?? 0) + row.share);
    return [...sums].reduce((a, b) => (a[1] > b[1] ? a : b));
  };
  let within = lines.filter((row) => row.domain === "pvh");
  await page.evaluate(() => document.querySelector("main canvas").focus());
  let domainStep = 0;
  for (; domainStep < 9 && !(await page.textContent(".about")).startsWith("pvh:"); domainStep++) {
    await press(domainStep === 0 ? "ArrowDown" : "ArrowRight");
  }
  check("the domain by keys", domainStep < 9, await page.textContent(".about"));
  for (const column of ["exit", "function", "line"]) {
    const [name, share] = widest(within, column);
    within = within.filter((row) => row[column] === name);
    await press("ArrowDown");
    const about = await page.textContent(".about");
    check(`the widest ${column} in it`, about.startsWith(`${name}: ${(share * 100).toFixed(2)}%`), [
      about,
      name,
      share,
    ]);
  }
  await groupBy(page, ["domain", "exit", "function"]);
  check("without lines", (await page.textContent(".about")).startsWith("all:"));

  // Functions: the rows of the report, in its order, with its intervals; then another grouping.
  await press("3");
  await page.waitForSelector("#table-functions");
  const functions = await cells(page, "#table-functions");
  check("the first 100 functions", functions.length === Math.min(report.rows.length, 100), functions.length);
  report.rows.slice(0, 20).forEach((row, i) => {
    check(`share of function ${i}`, near(number(functions[i][1]), row.share * 100, 0.006), [functions[i], row.share]);
  });
  const label = await page.getAttribute("#table-functions tbody svg", "aria-label");
  const first = report.rows[0];
  check(
    "the interval",
    label.includes(`between ${(first.low * 100).toFixed(2)}% and ${(first.high * 100).toFixed(2)}%`),
    label,
  );
  await shot("functions");
  await groupBy(page, ["domain", "exit"]);
  const byExit = json("exits.json").rows;
  const grouped = await cells(page, "#table-functions");
  check("rows by exit", grouped.length === byExit.length, [grouped.length, byExit.length]);
  for (const row of byExit) {
    const seen = grouped.find((cell) => cell[4] === row.domain && cell[5] === row.exit);
    check(`${row.domain} ${row.exit}`, seen !== undefined && near(number(seen[1]), row.share * 100, 0.02), [
      seen,
      row.share,
    ]);
  }
  // The columns of every page.
  const chips = await page.$$eval("main .chip", (all) => all.map((chip) => chip.textContent));
  const known = "domain vcpu mode exit image line function subreason".split(" ").sort();
  check("columns to group by", [...chips].sort().join() === known.join(), chips);
  await groupBy(page, ["domain", "subreason"]);
  const bySubreason = json("subreason.json").rows;
  const ofSubreason = await cells(page, "#table-functions");
  check("rows by subreason", ofSubreason.length === bySubreason.length, [ofSubreason.length, bySubreason.length]);
  // A report by subreasons refines the places of samples by them; the page has the places of its own report.
  for (const row of bySubreason) {
    const own = ofSubreason.find((cell) => cell[4] === row.domain && cell[5] === row.subreason);
    check(`${row.domain} ${row.subreason}`, own !== undefined && near(number(own[1]), row.share * 100, 0.15), [
      own,
      row.share,
    ]);
  }
  await groupBy(page, ["domain", "exit"]);
  await page.click("#table-functions th button:has-text('samples')");
  const sorted = (await cells(page, "#table-functions")).map((cell) => number(cell[0]));
  check(
    "sorted by samples",
    sorted.every((n, i) => i === 0 || n <= sorted[i - 1]),
    sorted,
  );

  // Down from a domain to the lines of a function, row by row, and back.
  await press("1");
  await page.click("#table-domains tbody tr:has(td:text-is('pvh'))");
  const path = [
    ["domain", "pvh"],
    ["exit", "guest"],
    ["function", "do_cpuid"],
    ["line", ""],
  ];
  for (let i = 1; i < path.length; i++) {
    const [column, next] = path[i];
    const crumbs = ["all", ...path.slice(0, i).map(([, words]) => words)].join(" › ");
    check(
      `where ${column} is of`,
      (await page.textContent("section .crumbs")) === crumbs,
      await page.textContent("section .crumbs"),
    );
    const sums = new Map();
    for (const row of lines.filter((each) => path.slice(0, i).every(([name, words]) => each[name] === words))) {
      const sum = sums.get(row[column]) ?? { samples: 0, share: 0 };
      sums.set(row[column], { samples: sum.samples + row.samples, share: sum.share + row.share });
    }
    const more = await page.$("main .scroll button:has-text('more')");
    check(`all rows by ${column}`, (more !== null) === sums.size > 100, sums.size);
    await more?.click();
    const seen = await cells(page, "#table-functions");
    check(`rows by ${column}`, seen.length === sums.size && sums.size > 0, [seen.length, sums.size]);
    for (const cell of seen) {
      const sum = sums.get(cell[4]);
      check(
        `${column} ${cell[4]}`,
        sum !== undefined && near(number(cell[0]), sum.samples, 0.06) && near(number(cell[1]), sum.share * 100, 0.006),
        [cell, sum],
      );
    }
    if (i + 1 === path.length) {
      check("a line is the last step", (await page.$("#table-functions tbody tr.choose")) === null);
      await explained(page, "#table-functions");
      await shot("lines");
    } else {
      await page.focus(`#table-functions tbody tr:has(td:text-is('${next}'))`);
      await press("Enter");
    }
  }
  await page.click("section .crumbs button:has-text('pvh')");
  check("back at the exits", (await page.$("#table-functions th:has-text('exit')")) !== null);

  // VM exits: counts as xenalyze and summary have them.
  await press("4");
  const exits = await cells(page, "#table-exits");
  for (const domain of json("summary.json").domains) {
    const counts = {};
    for (const vcpu of domain.vcpus) {
      for (const [name, stat] of Object.entries(vcpu.exits)) counts[name] = (counts[name] ?? 0) + stat.count;
    }
    for (const [name, count] of Object.entries(counts)) {
      const seen = exits.find((cell) => cell[0] === domain.name && cell[1] === name);
      // The page's are of the sampled part of the trace.
      check(`${name}`, count === 0 || (seen !== undefined && number(seen[2]) > 0 && number(seen[2]) <= count), [
        seen,
        count,
      ]);
    }
  }
  await explained(page, "#table-exits");
  // By what they were about: each exit is divided without a rest, as summary divides it.
  const sumOf = (rows, column) => rows.reduce((sum, row) => sum + number(row[column]), 0);
  const total = sumOf(exits, 2);
  await groupBy(page, ["exit", "subreason"]);
  const parts = await cells(page, "#table-exits");
  await explained(page, "#table-exits");
  check("subreasons add up", near(sumOf(parts, 2), total, parts.length) && parts.length > exits.length, parts);
  const pvh = json("summary.json").domains.find((domain) => domain.name === "pvh");
  const io = pvh.vcpus[0].exits.VMEXIT_IOIO;
  for (const [kind, { parts: ports }] of Object.entries(io.parts)) {
    for (const [port, stat] of Object.entries(ports)) {
      const seen = parts.find((row) => row[0] === "VMEXIT_IOIO" && row[1] === `${kind} ${port}`);
      const part = number(exits.find((row) => row[1] === "VMEXIT_IOIO")[2]) * (stat.count / io.count);
      check(`exits for ${kind} ${port}`, seen !== undefined && near(number(seen[2]), part, 1), [seen, part]);
    }
  }
  await groupBy(page, ["domain"]);
  const byDomainOnly = await cells(page, "#table-exits");
  check("exits by domain", byDomainOnly.length === 3 && sumOf(byDomainOnly, 1) === total, byDomainOnly);
  await groupBy(page, ["domain", "exit"]);
  // What PV guests did in Xen: bounds, which come behind times.
  const firstBound = exits.findIndex((row) => row[3].startsWith("≤ "));
  check(
    "times of PV guests are bounds",
    firstBound > 0 &&
      exits.every(
        (row, i) => row[3].startsWith("≤ ") === i >= firstBound && row[1].startsWith("VMEXIT") === i < firstBound,
      ),
    exits,
  );
  await groupBy(page, ["domain", "exit", "subreason"]);
  const calls = await cells(page, "#table-exits");
  check(
    "hypercalls by name",
    calls.some((row) => row[0] === "pv" && row[1] === "hypercall" && row[2] === "vcpu_op" && number(row[3]) > 0),
    calls.slice(0, 5),
  );
  await groupBy(page, ["domain", "exit"]);
  await page.click("#table-exits tbody tr:nth-child(2)");
  // The heat map: where the exit's median is there is a cell, and its tip has that length.
  const map = await page.waitForSelector(".latency canvas");
  await map.scrollIntoViewIfNeeded();
  await page.waitForTimeout(100);
  await shot("exit-lengths");
  const area = await map.boundingBox();
  const tips = new Set();
  for (let y = 8; y < area.height - 26; y += 4) {
    await page.mouse.move(area.x + area.width / 2, area.y + y);
    tips.add(
      await page.evaluate(() => {
        const tip = document.getElementById("tip");
        return tip?.style.display === "none" ? "" : (tip?.textContent ?? "");
      }),
    );
  }
  tips.delete("");
  check(
    "lengths of exits in a bin of time",
    tips.size > 0 && [...tips].every((text) => /^[1-9][0-9.,]* exits?took .* to .*in .*, from [0-9.]+ s$/.test(text)),
    [...tips],
  );
  const legend = await page.textContent(".latency .legend");
  check("the scale of the heat map", /logarithmic: 1 \d+/.test(legend), legend);
  await page.mouse.move(1, 1);
  check("the chosen exit", (await page.textContent("section h2")).startsWith(exits[1][1]));
  await shot("vm-exits");
  await page.click("button:has-text('Show its functions')");
  check(
    "the functions of the chosen exit",
    (await page.textContent("section .crumbs")) === `all › ${exits[1][0]} › ${exits[1][1]}`,
    await page.textContent("section .crumbs"),
  );

  // Timeline: zoom by keys and by the wheel, and a tip.
  await press("5");
  await page.waitForSelector("#range");
  await page.waitForTimeout(200);
  await shot("timeline");
  const all = await page.textContent("#range");
  await page.focus("main canvas");
  for (let i = 0; i < 9; i++) await press("+");
  const box = await (await page.$("main canvas")).boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 36);
  await page.mouse.wheel(0, -120);
  check("it zooms", (await page.textContent("#range")) !== all);
  await page.waitForTimeout(100);
  await page.mouse.move(box.x + box.width / 2 + 9, box.y + 36);
  check("a tip", ((await page.textContent("#tip")) ?? "").length > 5);
  await shot("timeline-zoomed");
  check("a tip with the TSC", /here: [0-9.]+ s, TSC [0-9]+/.test((await page.textContent("#tip")) ?? ""), [
    await page.textContent("#tip"),
  ]);
  // Down to microseconds, where each exit is a bar of its own.
  for (let i = 0; i < 40; i++) await press("+");
  check(
    "it zooms to microseconds",
    / (µs|ns)$/.test(await page.textContent("#range")),
    await page.textContent("#range"),
  );
  await page.waitForTimeout(100);
  await shot("timeline-microseconds");
  await press("0");
  check("all of it again", (await page.textContent("#range")) === all);
  const high = () => page.$eval("main canvas", (canvas) => canvas.offsetHeight);
  const before = await high();
  await press("/");
  await page.keyboard.type("pvh");
  check("fewer lanes where they are filtered", (await high()) < before, [before, await high()]);
  await press("Escape");
  check("all lanes again", (await high()) === before);

  // Dark, by its key.
  for (const key of ["t", "t", "5"]) await press(key);
  await page.waitForTimeout(200);
  check("dark", (await page.getAttribute("html", "data-theme")) === "dark");
  await shot("timeline-dark");
  await press("2");
  await page.waitForTimeout(100);
  await shot("flame-graph-dark");
  await press("1");
  await shot("overview-dark");
  await page.close();

  const wide = await open("small.html", projector, "dark", "#functions");
  check("the view that the address names", (await wide.$("#table-functions")) !== null);
  check("dark as the system is", (await wide.getAttribute("html", "data-theme")) === "dark");
  await wide.screenshot({ path: join(shots, "functions-projector.png") });
  await wide.close();

  // Beside another window there is less room: tables move, the page does not.
  const narrow = await open("small.html", { width: 700, height: 900 }, "light");
  for (const key of ["1", "2", "3", "4", "5"]) {
    await narrow.keyboard.press(key);
    await narrow.waitForTimeout(50);
    check(
      `view ${key} in a narrow window`,
      await narrow.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
    );
  }
  await narrow.close();
}

// The address has the state of a view: Back and Forward go through steps, and a copied address shows the same.
async function addresses() {
  const page = await open("small.html", laptop, "light");
  const crumbs = () => page.textContent("section .crumbs");
  const hash = () => page.evaluate(() => location.hash);
  await page.click("#table-domains tbody tr:has(td:text-is('pvh'))");
  await page.click("#table-functions tbody tr:has(td:text-is('guest'))");
  check("two steps", (await crumbs()) === "all › pvh › guest", await crumbs());
  const deep = await hash();
  // The page follows the address a little later.
  const go = async (direction) => {
    const followed = page.evaluate(
      () => new Promise((done) => addEventListener("hashchange", () => setTimeout(done), { once: true })),
    );
    await (direction === "back" ? page.goBack() : page.goForward());
    await followed;
  };
  await go("back");
  check("Back is one step", (await crumbs()) === "all › pvh", await crumbs());
  await go("back");
  check("Back to the domains", (await page.$("#table-domains")) !== null, await hash());
  await go("forward");
  await go("forward");
  check("Forward again", (await crumbs()).endsWith("guest") && (await hash()) === deep, [await crumbs(), await hash()]);

  await page.keyboard.press("2");
  await page.waitForSelector("main canvas");
  await page.focus("main canvas");
  for (const key of ["ArrowDown", "Enter"]) await page.keyboard.press(key);
  const enlarged = await crumbs();
  check("a frame is enlarged", enlarged.startsWith("all › "), enlarged);
  const frame = await hash();
  await page.keyboard.press("/");
  await page.keyboard.type("a");
  const tools = await page.textContent("section .tools");
  check("what matches is a part of what is shown", tools.includes(` of ${enlarged.slice("all › ".length)}`), tools);
  await page.keyboard.press("Escape");
  await go("back");
  check("Back enlarges no frame", (await crumbs()) === "all", await crumbs());

  await page.keyboard.press("5");
  await page.focus("main canvas");
  for (let i = 0; i < 5; i++) await page.keyboard.press("+");
  await page.waitForTimeout(400);
  const range = await page.textContent("#range");
  const zoomed = await hash();
  check("the range is in the address", /^#timeline[?]from=[0-9.]+&to=[0-9.]+$/.test(zoomed), zoomed);
  await page.close();

  const same = await open("small.html", laptop, "light", zoomed);
  check("the range of an address", (await same.textContent("#range")) === range, [
    await same.textContent("#range"),
    range,
  ]);
  await same.close();
  const again = await open("small.html", laptop, "light", deep);
  check("the rows of an address", (await again.textContent("section .crumbs")) === "all › pvh › guest", [
    await again.textContent("section .crumbs"),
    deep,
  ]);
  await again.close();
  const flame = await open("small.html", laptop, "light", frame);
  check("the frame of an address", (await flame.textContent("section .crumbs")) === enlarged, frame);
  await flame.close();

  for (const nonsense of [
    "#nothing?x=1",
    "#functions?by=evil&is=domain",
    "#functions?by=domain&is=exit%3D%00&is==",
    "#timeline?from=NaN&to=1e999",
    "#timeline?from=9&to=1",
    "#flame-graph?by=function,evil&in=x",
    "#flame-graph?by=function,function",
    "#?%",
  ]) {
    const other = await open("small.html", laptop, "light", nonsense);
    check(`${nonsense} shows a view`, (await other.$("main section")) !== null);
    await other.close();
  }
}

// The findings come first, in the report's order and words, and the link of each shows what it is about.
async function findings() {
  const page = await open("small.html", laptop, "light");
  const said = json("small.json").findings;
  const seen = await page.$$eval("#findings .said", (all) => all.map((each) => each.textContent));
  check("the findings", said.length > 0 && seen.join("\n") === said.map((each) => each.text).join("\n"), seen);
  const top = (selector) => page.$eval(selector, (element) => element.getBoundingClientRect().top);
  check("findings come first", (await top("#findings")) < (await top(".cards")));
  const follow = async (rule) => {
    await page.goto(`${page.url().split("#")[0]}#overview`);
    const i = said.findIndex((each) => each.rule === rule);
    await page.click(`#findings li:nth-child(${i + 1}) a`);
    return said[i].figures;
  };
  const exit = (await follow("exits")).exit;
  await page.waitForSelector("#table-exits");
  const chosen = await page.$$eval("#table-exits .chosen td", (all) => all.map((cell) => cell.textContent));
  check("the exit of a finding", chosen[0] === "pvh" && chosen[1] === exit, chosen);
  const figures = await follow("hot_function");
  await page.waitForSelector("#table-functions");
  const row = (await cells(page, "#table-functions")).find((each) => each[4] === figures.function);
  check("the function of a finding", near(number(row?.[1] ?? ""), figures.share * 100, 0.006), row);
  await follow("waits");
  await page.waitForSelector("#range");
  check("the timeline of a finding", (await page.inputValue("section .search")) === "pv v");
  await page.close();

  const quiet = await open("quiet.html", laptop, "light");
  const none = json("quiet.json").findings.length === 0;
  check("nothing where nothing stands out", none && (await quiet.$("#findings")) === null);
  await quiet.close();
}

// A range of the strip of time, and a domain of the list, are what all views are of; the address has both.
async function selections() {
  const page = await open("small.html", laptop, "light", "#functions");
  const report = json("small.json");
  const whole = report.rows.reduce((sum, row) => sum + row.samples, 0);
  const samples = async () => number((await page.textContent("section .tools")).match(/rows?, ([\d.,]+) samples/)[1]);
  check("all samples", near(await samples(), whole, 0.2), [await samples(), whole]);
  const parts = [];
  const box = await (await page.$("#strip canvas")).boundingBox();
  const drag = async (from, to) => {
    const x = (part) => box.x + 22 + part * (box.width - 44);
    await page.mouse.move(x(from), box.y + 40);
    await page.mouse.down();
    await page.mouse.move(x((from + to) / 2), box.y + 40);
    await page.mouse.move(x(to), box.y + 40);
    await page.mouse.up();
  };
  for (const [from, to] of [
    [0, 0.5],
    [0.5, 1],
  ]) {
    await page.keyboard.press("Escape");
    await drag(from, to);
    parts.push(await samples());
  }
  check("two halves are the whole", near(parts[0] + parts[1], whole, 0.01 * whole) && parts[0] > 0.3 * whole, parts);
  const half = await page.evaluate(() => location.hash);
  check("the range is in the address", /range=[\d.]+-[\d.]+$/.test(half), half);
  await page.screenshot({ path: join(shots, "selected-range.png") });
  // The edges of the range can be moved, and the range as a whole.
  await drag(0.5, 0.75);
  const quarter = await samples();
  check("an edge is moved", quarter < 0.8 * parts[1] && quarter > 0.2 * parts[1], [quarter, parts[1]]);
  const selected = async () =>
    (await page.textContent("#selected"))
      .match(/^([\d.]+) s to ([\d.]+) s: /)
      .slice(1)
      .map(Number);
  const before = await selected();
  await drag(0.8, 0.55);
  const after = await selected();
  check("the range is moved", after[0] < before[0] - 0.1 && near(after[1] - after[0], before[1] - before[0], 1e-3), [
    before,
    after,
  ]);

  // The same figures as a report of that range gives, within the error of samples that are known by an interval.
  const part = json("part.json");
  const again = await open("small.html", laptop, "light", "#functions?range=4-8");
  await groupBy(again, ["domain", "function"]);
  const rows = await cells(again, "#table-functions");
  for (const row of part.rows.filter((each) => each.share > 0.05)) {
    const seen = rows.find((cell) => cell[4] === row.domain && cell[5] === row.function);
    const by = 1.5 * Math.max(row.high - row.low, 0.01) * 100;
    check(`${row.function} from 4 s to 8 s`, seen !== undefined && near(number(seen[1]), row.share * 100, by), [
      seen,
      row.share,
    ]);
  }
  await again.close();

  await page.click("#strip button");
  await page.click("#domains .domain:has(b:text-is('pvh'))");
  const own = report.rows.filter((row) => row.domain === "pvh").reduce((sum, row) => sum + row.samples, 0);
  check("the samples of a domain", near(await samples(), own, 0.2), [await samples(), own]);
  await page.keyboard.press("4");
  const exits = await cells(page, "#table-exits");
  check("its exits", exits.length > 2 && exits.every((cell) => cell[0] === "pvh"), exits[0]);
  await page.keyboard.press("5");
  await page.waitForSelector("#range");
  await page.screenshot({ path: join(shots, "selected-domain.png") });
  await page.click("#domains .domain:has(b:text-is('pvh'))");
  await page.keyboard.press("3");
  check("all again", near(await samples(), whole, 0.2), await samples());
  await page.goBack();
  await page.waitForTimeout(200);
  await page.close();
}

// Functions and frames highlight each other; a function alone, its callers and back.
async function functionsBesideFlames() {
  const page = await open("small.html", laptop, "light", "#flame-graph");
  const sums = new Map();
  for (const row of json("small.json").rows) {
    const key = `${row.mode} ${row.function}`;
    sums.set(key, (sums.get(key) ?? 0) + row.share);
  }
  const [hottest, share] = [...sums].reduce((a, b) => (a[1] > b[1] ? a : b));
  const name = hottest.slice(hottest.indexOf(" ") + 1);
  const first = (await cells(page, "#functions table"))[0];
  check("the hottest function", first[1] === name && near(number(first[0]), share * 100, 0.06), [first, share]);
  await page.click("#functions tbody tr:first-child");
  const alone = `callers and callees of ${name}`;
  const tools = () => page.textContent("section .tools");
  check("the function alone", (await tools()).includes(alone));
  check("it is marked", (await page.textContent("#functions tr.chosen")).includes(name));
  // Above it are those that called it, then its groups; below it what it called, then its lines.
  const about = () => page.textContent(".about");
  const whole = await about();
  check("all of it", whole.startsWith(`${name}: ${(share * 100).toFixed(2)}% of all; `), whole);
  const lines = json("lines.json").rows.filter((row) => row.function === name);
  const widest = (column) => {
    const sums = new Map();
    for (const row of lines) sums.set(row[column], (sums.get(row[column]) ?? 0) + row.share);
    return [...sums].reduce((a, b) => (a[1] > b[1] ? a : b));
  };
  // Its code, as annotate has it.
  const [annotated] = json("code.json").functions;
  const shownCode = await cells(page, "#code table");
  const wantedCode = annotated.blocks.flatMap((block) => block.lines);
  check("lines of code", shownCode.length === wantedCode.length && wantedCode.length > 10, shownCode.length);
  wantedCode.forEach((each, i) => {
    const [self, inExit, place, code] = shownCode[i] ?? [];
    const share = each.samples > 0 ? `${((each.samples / annotated.samples) * 100).toFixed(1)}%` : "";
    check(
      `line ${each.place} of code`,
      self === share && number(inExit) === Math.round(each.samples) && place === each.place && code === each.code,
      [shownCode[i], each],
    );
  });
  await page.focus("main canvas");
  await page.keyboard.press("ArrowUp");
  const [domain, domainShare] = widest("domain");
  check("what is above it", (await about()).startsWith(`${domain}: ${(domainShare * 100).toFixed(2)}%`), await about());
  await page.keyboard.press("ArrowDown");
  check("down to the function", (await about()) === whole, await about());
  await page.keyboard.press("ArrowDown");
  const [line, lineShare] = widest("line");
  check("what is below it", (await about()).startsWith(`${line}: ${(lineShare * 100).toFixed(2)}%`), await about());
  await page.keyboard.press("Enter");
  const hash = await page.evaluate(() => location.hash);
  const crumbs = await page.textContent(".crumbs");
  check("a frame of it is enlarged", crumbs === `${name} › ${line}`, crumbs);
  await page.waitForTimeout(100);
  await page.screenshot({ path: join(shots, "sandwich.png") });
  for (const key of ["Escape", "Escape"]) await page.keyboard.press(key);
  check("all functions again", !(await tools()).includes(alone) && (await about()).startsWith("all: "), await about());
  await page.check("label:has-text('inverted') input");
  await page.focus("main canvas");
  await page.keyboard.press("ArrowDown");
  check("the hottest function comes first", (await about()).startsWith(`${name}: `), await about());
  await page.waitForTimeout(100);
  await page.screenshot({ path: join(shots, "inverted.png") });
  await page.keyboard.press("c");
  check("callers and callees by a key", (await tools()).includes(alone), await tools());
  await page.click(`button:has-text('${alone}')`);
  await page.mouse.dblclick(
    (await page.locator("main canvas").boundingBox()).x + 40,
    (await page.locator("main canvas").boundingBox()).y + 31,
  );
  check("callers and callees by a double click", (await tools()).includes(alone), await tools());
  await page.close();
  const again = await open("small.html", laptop, "light", hash);
  check("the frame of an address", (await again.textContent(".crumbs")) === crumbs, hash);
  await again.close();
}

// A host of many pCPUs and domains: no view has more than 5,000 elements, or takes longer than 200 ms.
async function wideHost() {
  const page = await open("wide.html", projector, "light");
  const nodes = () => page.evaluate(() => document.querySelectorAll("*").length);
  const bytes = readFileSync(join(work, "wide.html")).length;
  check("a page below 10 MB", bytes < 10e6, bytes);
  // The time of the page's own thread on a processor, in ms: other programs run beside the test.
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const spent = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return 1000 * metrics.find(({ name }) => name === "TaskDuration").value;
  };
  const drawn = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
  // The browser counts anew for each document.
  const opened = [];
  for (let i = 0; i < 3; i++) {
    await page.reload();
    await drawn();
    opened.push(await spent());
  }
  check("it opens within a second", Math.min(...opened) < 1000 && Math.min(...opened) > 10, opened);
  /** The time of what `act` does, until its pictures are drawn, which is in the next frame. */
  const timeOf = async (act) => {
    await page.waitForTimeout(300);
    const before = await spent();
    await act();
    await drawn();
    return (await spent()) - before;
  };
  const strip = await (await page.$("#strip canvas")).boundingBox();
  for (const key of ["1", "2", "3", "4", "5"]) {
    const [shown, selected, filtered] = [[], [], []];
    for (let i = 0; i < 3; i++) {
      await page.keyboard.press(key === "1" ? "2" : "1");
      shown.push(await timeOf(() => page.keyboard.press(key)));
      await page.mouse.move(strip.x + 0.3 * strip.width, strip.y + 40);
      await page.mouse.down();
      await page.mouse.move(strip.x + (0.5 + 0.1 * i) * strip.width, strip.y + 40);
      selected.push(await timeOf(() => page.mouse.up()));
      await page.keyboard.press("Escape");
      const domain = page.locator("#domains .domain").nth(i);
      filtered.push(await timeOf(() => domain.click()));
      await domain.click();
    }
    check(`view ${key} of a wide host within 200 ms`, Math.min(...shown) < 200, shown);
    check(`a range in view ${key} of a wide host within 200 ms`, Math.min(...selected) < 200, selected);
    check(`a domain in view ${key} of a wide host within 200 ms`, Math.min(...filtered) < 200, filtered);
    check(`elements of view ${key} of a wide host`, (await nodes()) < 5000, await nodes());
    await page.waitForTimeout(100);
    await page.screenshot({ path: join(shots, `wide-${key}.png`) });
  }
  // The pCPUs are one heat map at first; a click on its title opens it.
  const canvas = await page.$("main canvas");
  const high = () => canvas.evaluate((element) => element.offsetHeight);
  const closed = await high();
  const box = await canvas.boundingBox();
  await page.mouse.click(box.x + 30, box.y + 26 + 11);
  check("171 pCPUs as rows of their own", (await high()) !== closed, [closed, await high()]);
  // Only what is in view is drawn: the last row, a heat map, when it comes into view.
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const painted = await canvas.evaluate((element) => {
    const { data } = element
      .getContext("2d")
      .getImageData(element.width / 4, element.height - 80, element.width / 4, 60);
    return data.filter((value, i) => i % 4 === 3 && value > 0).length / (data.length / 4);
  });
  check("what is scrolled into view is drawn", painted > 0.5, painted);
  await page.evaluate(() => scrollTo(0, 0));
  await page.mouse.click(box.x + 30, box.y + 26 + 11);
  check("one row for them again", (await high()) === closed, [closed, await high()]);
  await page.close();
}

// Threads: lanes on pCPUs and vCPUs, a tree with what each did, and one that is followed.
async function threads() {
  const page = await open("threads.html", projector, "light", "#timeline");
  const high = () => page.$eval("main canvas", (canvas) => canvas.offsetHeight);
  const canvas = page.locator("main canvas");
  const closed = await high();
  // The last row is the group of the domain's threads: a click opens containers and processes.
  const { x, y, height } = await canvas.boundingBox();
  await page.mouse.click(x + 30, y + height - 8 - 4 - 9);
  check("containers and processes", (await high()) > closed, [await high(), closed]);
  const hash = await page.evaluate(() => new Promise((done) => setTimeout(() => done(location.hash), 300)));
  check("what is open is in the address", hash.includes("toggle=pv%2Fthreads"), hash);
  // The last row is now the process db, which has one thread.
  const opened = await canvas.boundingBox();
  const last = opened.y + opened.height - 8 - 4 - 7;
  await page.mouse.click(opened.x + 30, last);
  const followed = () => page.textContent("#followed");
  check("a thread is followed", (await followed()) === "db (9) ×", await followed());
  await page.mouse.move(opened.x + 500, last);
  const tip = await page.textContent("#tip");
  check("what it did", /^db \(9\)(running|sleeping)/.test(tip), tip);
  await page.selectOption("#thread-colours", "container");
  await page.waitForTimeout(100);
  await page.screenshot({ path: join(shots, "threads.png") });
  await page.click("#followed");
  check("no thread is followed", (await page.$("#followed")) === null);
  // The threads of a vCPU are found on the pCPU where it ran: the lane below the pCPU's.
  const lane = y + 26 + 22 + 4 + 6;
  const seenIn = async (row, before) => {
    const seen = new Set();
    for (let at = 200; at < 900; at += 7) {
      await page.mouse.move(x + at, row);
      const text = await page.textContent("#tip");
      if (text.includes("on pv v0")) seen.add(text.split(before)[0]);
    }
    return seen;
  };
  const seen = await seenIn(lane, "of ");
  check("threads on the pCPU", seen.has("web (7)") && seen.has("db (9)"), [...seen]);
  // Below it, the handlers of its kernel's interrupts: an interrupt is drawn over the softirq that it stopped.
  const handlers = await seenIn(lane + 12 + 4, "on ");
  check("handlers on the pCPU", handlers.has("irq 24 eth0") && handlers.has("softirq NET_RX"), [...handlers]);
  await page.close();
}

// A domain whose name is markup stays a name.
async function hostileNames() {
  const page = await open("evil.html", laptop, "light");
  const { name } = json("evil.name.json");
  check(
    "the name is text",
    (await cells(page, "#table-domains")).some((cell) => cell[0] === name),
    name,
  );
  check(
    "the name made no element",
    (await page.$("main b.evil, main img")) === null && !(await page.evaluate(() => "evil" in window)),
  );
  for (const key of ["2", "3", "4", "5"]) await page.keyboard.press(key);
  await page.close();
}

async function differences() {
  const page = await open("diff.html", laptop, "light");
  const rows = json("diff.json").rows;
  await page.click("label:has-text('only') input");
  const seen = await cells(page, "#table-diff");
  if (rows.length > 0 && rows.some((row) => row.p < 0.05)) {
    check("all differences", seen.length === Math.min(rows.length, 500), [seen.length, rows.length]);
    rows
      .slice(0, 10)
      .forEach((row, i) =>
        check(`difference ${i}`, near(number(seen[i][2].replace("+", "")), row.difference * 100, 0.006), [
          seen[i],
          row.difference,
        ]),
      );
  }
  await explained(page, "#table-diff");
  await page.screenshot({ path: join(shots, "diff.png") });
  // The graph: the function with the largest part of its mode, which comes first, with its figures; a click filters.
  const of = (row) => Math.max(row.before, row.after);
  const modes = new Map();
  for (const row of rows) modes.set(row.mode, (modes.get(row.mode) ?? 0) + of(row));
  const [mode] = [...modes].reduce((a, b) => (a[1] > b[1] ? a : b));
  const largest = rows.filter((row) => row.mode === mode).reduce((a, b) => (of(a) > of(b) ? a : b));
  await page.hover("#diff-graph canvas", { position: { x: 8, y: 50 } });
  const tip = await page.textContent("#tip");
  const share = (value) => `${(value * 100).toFixed(2)}%`;
  check(
    "a frame of the differences",
    tip.startsWith(`${largest.function}${share(largest.before)} before, ${share(largest.after)} after`) &&
      tip.includes(largest.p < 0.05 ? "more than chance" : "may be chance"),
    [tip, largest],
  );
  await page.click("#diff-graph canvas", { position: { x: 8, y: 50 } });
  const filtered = await cells(page, "#table-diff");
  check(
    "the rows of a frame",
    filtered.length > 0 && filtered.every((row) => row.some((cell) => cell.includes(largest.function))),
    filtered,
  );
  await page.close();
}

// speedscope's own page, with what it is to read.
async function speedscope() {
  const index = resolve("node_modules/speedscope/dist/release/index.html");
  if (!existsSync(index)) return;
  for (const file of ["small.folded", "small.pb.gz"]) {
    const page = await browser.newPage({ viewport: laptop });
    const errors = [];
    page.on("pageerror", (error) => errors.push(error.message));
    await page.goto(pathToFileURL(index).href);
    await page.setInputFiles("input[type=file]", join(work, file));
    await page.waitForFunction(() => document.title.includes("small"), null, { timeout: 20000 }).catch(() => {});
    await page.waitForTimeout(500);
    check(`speedscope reads ${file}`, (await page.title()).includes("small") && errors.length === 0, [
      await page.title(),
      errors,
    ]);
    await page.screenshot({ path: join(shots, `speedscope-${file}.png`) });
    await page.close();
  }
}

// Columns that decide how samples are placed are those of --by; the page groups by them with others.
async function columnsOfReport() {
  const page = await open("waiting.html", laptop, "light", "#functions");
  const rows = json("waiting.json").rows;
  await groupBy(page, ["domain", "wakeup", "waiting"]);
  const seen = await cells(page, "#table-functions");
  check("rows by wakeup and waiting", seen.length === rows.length && rows.length > 3, [seen.length, rows.length]);
  for (const row of rows) {
    const own = seen.find((cell) => cell[4] === row.domain && cell[5] === row.wakeup && cell[6] === row.waiting);
    check(`${row.domain} ${row.wakeup}`, own !== undefined && near(number(own[1]), row.share * 100, 0.05), [own, row]);
  }
  await groupBy(page, ["waiting", "function"]);
  check("functions by whom they kept waiting", (await cells(page, "#table-functions")).length > rows.length);
  await page.close();
}

// Where nobody samples Xen, its share is not none.
async function guestAlone() {
  const page = await open("alone.html", laptop, "light");
  const cards = Object.fromEntries(
    await page.$$eval(".card", (all) => all.map((card) => [card.firstChild.textContent, card.children[1].textContent])),
  );
  check("Xen's share where only a guest is sampled", cards["Xen's share"] === "unknown", cards);
  check(
    "its samples",
    cards["samples attributed"] === json("alone.json").samples.attributed.toLocaleString("en-US"),
    cards,
  );
  await page.close();
}

// The time of day stands beside seconds, where the recording knows it.
async function wallClock() {
  const page = await open("clock.html", laptop, "light");
  const begin = await page.textContent("#selected");
  check("the time of day", /; from 2026-03-01 12:00:0\d\.\d{3} UTC;/.test(begin), begin);
  check("how right it is", (await page.getAttribute("#selected", "title")).includes("right to 2.0 ms"));
  await page.hover("#strip .plot");
  const tip = await page.textContent("#tip");
  const seconds = Number(tip.match(/^([\d.]+) s/)[1]);
  const [, minute, second] = tip.match(/ 12:(\d\d):([\d.]+) UTC/) ?? [];
  // The clock was read when recording started, which is at most a second from the trace's first record.
  check("it runs with the seconds", near(Number(minute) * 60 + Number(second), seconds, 1), tip);
  await page.close();
  const none = await open("small.html", laptop, "light");
  check("no time of day where it is not known", !(await none.textContent("#selected")).includes("UTC"));
  await none.close();
}

const parts = [
  wholeReport,
  findings,
  addresses,
  selections,
  functionsBesideFlames,
  columnsOfReport,
  wideHost,
  threads,
  wallClock,
  guestAlone,
  hostileNames,
  differences,
  speedscope,
];
const wanted = process.argv.slice(3);
for (const name of wanted)
  check(
    `there is a part ${name}`,
    parts.some((part) => part.name === name),
  );
for (const part of parts.filter(({ name }) => wanted.length === 0 || wanted.includes(name))) {
  try {
    await part();
  } catch (error) {
    check(part.name, false, error.message);
  }
}
await browser.close();
console.log(failed === 0 ? "all is so" : `${failed} things are not so`);
process.exit(failed === 0 ? 0 : 1);

// Holds files against the schemas of docs/schemas: schema.mjs SCHEMAS DIRECTORY. There, *.json are reports and *.html
// pages. Each wrong file is named, with what is wrong in it; and each schema must refuse what is not of it.
import Ajv from "ajv";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

const [schemas, work] = process.argv.slice(2);
const schema = (name) => JSON.parse(readFileSync(join(schemas, `${name}.schema.json`), "utf8"));
const ajv = new Ajv({ allErrors: true, allowUnionTypes: true, strictTuples: false });
ajv.addSchema(schema("report"), "report.schema.json");
const check = { json: ajv.getSchema("report.schema.json"), html: ajv.compile(schema("page")) };
const data = (name, text) =>
  JSON.parse(
    name.endsWith(".json") ? text : text.match(/<script type="application\/json" id="data">(.*?)<\/script>/s)[1],
  );

let wrong = 0;
let looked = 0;
for (const name of readdirSync(work).sort()) {
  const kind = name.split(".").pop();
  if (check[kind] === undefined) continue;
  looked++;
  const document = data(name, readFileSync(join(work, name), "utf8"));
  if (!check[kind](document)) {
    wrong++;
    for (const error of check[kind].errors.slice(0, 5))
      console.log(`${name}${error.instancePath} ${error.message}`, error.params);
  }
  if (check[kind]({ ...document, unknown: 1 }) || check[kind]({})) {
    wrong++;
    console.log(`${kind}: its schema refuses nothing`);
  }
}
console.log(`${looked} documents, ${wrong} wrong`);
process.exit(wrong === 0 && looked > 0 ? 0 : 1);

// Writes the types of the page's data, of their one definition, docs/schemas: types.mjs SCHEMAS OUT.ts
import { compileFromFile } from "json-schema-to-typescript";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const [schemas, out] = process.argv.slice(2);
const types = await compileFromFile(join(schemas, "page.schema.json"), {
  bannerComment: "// Made of docs/schemas by types.mjs.",
  cwd: schemas,
  format: false,
});
writeFileSync(out, types);

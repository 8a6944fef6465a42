// What scripts/lint asks of the page's sources and of its test in a browser.
import js from "@eslint/js";
import globals from "globals";
import typescript from "typescript-eslint";

export default typescript.config(
  { ignores: ["node_modules", "src/page_data.ts"] },
  js.configs.recommended,
  {
    files: ["**/*.ts", "**/*.tsx"],
    extends: [typescript.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
  },
  {
    files: ["**/*.mjs"],
    languageOptions: { globals: { ...globals.node, ...globals.browser } },
  },
  {
    rules: {
      eqeqeq: "error",
      "max-len": ["error", { code: 120 }],
      "no-var": "error",
      "prefer-const": "error",
    },
  },
);

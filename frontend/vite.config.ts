import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
// Every file in src/entries is an entry: what `{% entry "name" %}` in a template asks for.
const entries = readdirSync(here("src/entries")).map((file) => file.replace(/\.ts$/, ""));

export default defineConfig({
  // Django serves the build from here (STATIC_URL).
  base: "/static/",
  // Types and checks of the server's data, written by dev/payload_types.py.
  resolve: { alias: { "#payloads": here("../.build/payloads") } },
  build: {
    outDir: here("../.build/frontend"),
    emptyOutDir: true,
    manifest: "manifest.json",
    target: "es2022",
    modulePreload: { polyfill: false },
    rollupOptions: {
      input: Object.fromEntries(entries.map((name) => [name, here(`src/entries/${name}.ts`)])),
    },
  },
  test: { include: ["tests/**/*.test.ts"] },
});

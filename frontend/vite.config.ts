import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const entries = ["theme", "base", "overview", "run", "trial", "compare"];

export default defineConfig({
  // Django serves the build from here (STATIC_URL).
  base: "/static/",
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

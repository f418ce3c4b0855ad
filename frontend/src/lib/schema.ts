/** Run-time checks of the server's data. A check returns the typed value, or throws an error with its path. */

export class PayloadError extends Error {
  constructor(path: string, wanted: string) {
    super(`The server's response is invalid: ${path || "the response"} is not ${wanted}. Reload the page.`);
  }
}

export type Check<T> = (value: unknown, path?: string) => T;
export type Checked<C> = C extends Check<infer T> ? T : never;

function primitive<T>(wanted: string, is: (value: unknown) => value is T): Check<T> {
  return (value, path = "") => {
    if (!is(value)) throw new PayloadError(path, wanted);
    return value;
  };
}

export const string = primitive("a text", (value): value is string => typeof value === "string");
export const boolean = primitive("true or false", (value): value is boolean => typeof value === "boolean");
export const number = primitive("a number", (value): value is number => Number.isFinite(value));

export function nullable<T>(check: Check<T>): Check<T | null> {
  return (value, path = "") => (value === null ? null : check(value, path));
}

export function oneOf<T extends string>(...values: readonly T[]): Check<T> {
  return primitive(`one of ${values.join(", ")}`, (value): value is T => values.includes(value as T));
}

export function list<T>(check: Check<T>): Check<readonly T[]> {
  return (value, path = "") => {
    if (!Array.isArray(value)) throw new PayloadError(path, "a list");
    return value.map((item, index) => check(item, `${path}[${index}]`));
  };
}

type Shape = Readonly<Record<string, Check<unknown>>>;
type Struct<S extends Shape> = { readonly [K in keyof S]: Checked<S[K]> };

/** An object with exactly these fields: missing and additional fields are refused, as by the server. */
export function struct<S extends Shape>(shape: S): Check<Struct<S>> {
  return (value, path = "") => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw new PayloadError(path, "an object");
    const extra = Object.keys(value).find((key) => !(key in shape));
    if (extra !== undefined) throw new PayloadError(`${path}.${extra}`, "known here");
    const source = value as Record<string, unknown>;
    const fields = Object.entries(shape).map(([key, check]) => [key, check(source[key], `${path}.${key}`)]);
    return Object.fromEntries(fields) as Struct<S>;
  };
}

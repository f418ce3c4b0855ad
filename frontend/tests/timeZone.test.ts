import { expect, test } from "vitest";
import { zoneIn } from "../src/features/timeZone";

test("the zone is found among other cookies", () => {
  expect(zoneIn("csrftoken=a; timezone=America/New_York; theme=dark")).toBe("America/New_York");
  expect(zoneIn("timezone=UTC")).toBe("UTC");
});

test("without the cookie there is no zone", () => {
  expect(zoneIn("")).toBe("");
  expect(zoneIn("mytimezone=UTC")).toBe("");
});

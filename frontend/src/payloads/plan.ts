/** `webapp/screens/plans/previewing.py`; tests/vectors/planJobs.json and planAnswer.json test both. */

import { type Checked, list, number, string, struct } from "../lib/schema";

export const planJob = struct({
  trial: number,
  title: string,
  target: string,
  command: string,
  job_text: string,
  prefill_text: string,
  steps_text: string,
});

export const planJobs = struct({ chosen: number, jobs: list(planJob) });

const planProblem = struct({ place: string, message: string });

export const planAnswer = struct({
  problems: list(planProblem),
  warnings: list(planProblem),
  html: string,
  said: string,
});

export type PlanJob = Checked<typeof planJob>;
export type PlanProblem = Checked<typeof planProblem>;
export type PlanAnswer = Checked<typeof planAnswer>;

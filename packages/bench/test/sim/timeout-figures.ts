// Prints, as JSON, what the `timeout` limiter does in each file of scenarios-timeout. A process of its own: in jest's
// sandbox every global is looked up the long way, and the simulation takes eight times as long.
import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createLimiter, parseMaxConcurrency } from '@elimit/core';
import { LimiterAdmission } from '../../src/sim/admission.js';
import { readScenario, type Scenario } from '../../src/sim/scenario.js';
import { simulate, type WindowFigures } from '../../src/sim/simulate.js';

const FOLDER = fileURLToPath(new URL('../../scenarios-timeout/', import.meta.url));
const SEEDS = [1, 2, 3];

/** Windows of one run; the limiter's own timeout is the longest deadline. */
function run(scenario: Scenario, seed: number, maxConcurrency: number): readonly WindowFigures[] {
  const { deadlineMs } = scenario;
  const timeoutMs =
    typeof deadlineMs === 'number' ? deadlineMs : Math.max(...deadlineMs.map(({ ms }) => ms));
  const limit = parseMaxConcurrency({ timeoutMs, maxConcurrency });
  return simulate(
    scenario,
    (random, nowUs) => new LimiterAdmission(createLimiter(limit, { random, nowUs })),
    seed,
  ).windows;
}

const median = (values: number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] as number;

const figures = readdirSync(FOLDER).flatMap((file) => {
  const scenario = readScenario(join(FOLDER, file));
  // with the cap out of the way, the prediction alone has to hold the load
  return [100, 10_000].flatMap((maxConcurrency) => {
    const runs = SEEDS.map((seed) => run(scenario, seed, maxConcurrency));
    return scenario.expect.map(({ measure, goodputMin = 0, refusedMax = 1 }) => {
      const of = (figure: 'late' | 'goodput' | 'refused'): number =>
        median(runs.map((windows) => (windows[measure] as WindowFigures)[figure]));
      return {
        name: basename(file, '.json'),
        maxConcurrency,
        measure,
        goodputMin,
        refusedMax,
        late: of('late'),
        goodput: of('goodput'),
        refused: of('refused'),
      };
    });
  });
});
console.log(JSON.stringify(figures));

import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';

interface Figures {
  readonly name: string;
  readonly maxConcurrency: number;
  readonly measure: number;
  readonly goodputMin: number;
  readonly refusedMax: number;
  readonly late: number;
  readonly goodput: number;
  readonly refused: number;
}

const script = fileURLToPath(new URL('./timeout-figures.ts', import.meta.url));
const output = execFileSync(
  process.execPath,
  ['--conditions=@elimit/source', '--import', 'tsx', script],
  { encoding: 'utf8' },
);

it.each(JSON.parse(output) as Figures[])(
  'timeout limiter, at most $maxConcurrency: $name, window $measure: late at most 2 %, goodput at least $goodputMin',
  ({ late, goodput, goodputMin, refused, refusedMax }) => {
    expect(late).toBeLessThanOrEqual(0.02);
    expect(goodput).toBeGreaterThanOrEqual(goodputMin);
    expect(refused).toBeLessThanOrEqual(refusedMax);
  },
);

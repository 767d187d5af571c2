// npm run -s bench:two-sides -- [--quick] [--out FILE]: our server behind our client, on real sockets. Exits 1 if a promise was not kept.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import {
  capacityOfNode,
  deadlines,
  type Finding,
  fullNode,
  MARKS,
  overload,
  retryStorm,
} from './scenarios.js';

const { values } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, out: { type: 'string' } },
});
const forMs = values.quick ? 5000 : 20_000;

const perNode = await capacityOfNode(values.quick ? 2000 : 5000);
process.stdout.write(`one node does ${perNode.toFixed(1)} calls/s when it is never idle\n`);
const setting = { forMs, perNode };
const findings: Finding[] = [];
for (const run of [
  () => overload(1.5, setting),
  () => overload(2, setting),
  () => fullNode(setting),
  () => retryStorm(setting),
  () => deadlines(),
]) {
  const finding = await run();
  process.stdout.write(textOf(finding));
  findings.push(finding);
}

const problems = findings.flatMap(({ name, problems: found }) =>
  found.map((it) => `${name}: ${it}`),
);
process.stdout.write(
  problems.length === 0 ? 'all promises kept\n' : `NOT KEPT\n  ${problems.join('\n  ')}\n`,
);
if (values.out !== undefined) writeResults(values.out);
process.exitCode = problems.length === 0 ? 0 : 1;

function textOf({ name, about, figures, problems: found }: Finding): string {
  const lines = Object.entries(figures).map(([key, value]) => `  ${key}: ${JSON.stringify(value)}`);
  const verdict = found.length === 0 ? '  kept' : `  NOT KEPT: ${found.join('; ')}`;
  return `\n${name}: ${about}\n${lines.join('\n')}\n${verdict}\n`;
}

/** FILE.json, and FILE.txt beside it. */
function writeResults(file: string): void {
  const head = {
    command: `npm run -s bench:two-sides -- ${process.argv.slice(2).join(' ')}`,
    commit: git('rev-parse', '--short', 'HEAD'),
    date: new Date().toISOString().slice(0, 10),
    versions: { node: process.version },
    machine: `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}`,
    marks: MARKS,
    perNode,
  };
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify({ ...head, problems, findings }, undefined, 2)}\n`);
  const text = Object.entries(head).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  writeFileSync(
    file.replace(/\.json$/, '.txt'),
    `${text.join('\n')}\n${findings.map(textOf).join('')}\n${problems.length === 0 ? 'all promises kept' : problems.join('\n')}\n`,
  );
}

function git(...args: readonly string[]): string {
  try {
    return execFileSync('git', args, { encoding: 'utf8' }).trim();
  } catch {
    return 'unknown';
  }
}

// npm run -s bench:two-sides: our server behind our client, on real sockets. Exits 1 if a promise was not kept.
import { CommandLine } from '../command-line.js';
import { provenanceLines, provenanceOf, saveReport } from '../report.js';
import {
  capacityOfNode,
  deadlines,
  type Finding,
  fullNode,
  MARKS,
  overload,
  retryStorm,
} from './scenarios.js';

const { values } =
  new CommandLine(`npm run -s bench:two-sides -- [options]   our server behind our client; exits 1 if a promise is not kept
  --quick       each scenario for five seconds instead of twenty
  --json FILE   the report; beside it, with the ending .txt, what was printed
`).read({
    options: { quick: { type: 'boolean', default: false }, json: { type: 'string' } },
  });
const provenance = provenanceOf({
  command: 'npm run -s bench:two-sides --',
  sources: ['packages/core/src', 'packages/node-http/src', 'packages/client/src'],
  packages: [],
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
if (values.json !== undefined) writeResults(values.json);
process.exitCode = problems.length === 0 ? 0 : 1;

function textOf({ name, about, figures, problems: found }: Finding): string {
  const lines = Object.entries(figures).map(([key, value]) => `  ${key}: ${JSON.stringify(value)}`);
  const verdict = found.length === 0 ? '  kept' : `  NOT KEPT: ${found.join('; ')}`;
  return `\n${name}: ${about}\n${lines.join('\n')}\n${verdict}\n`;
}

function writeResults(file: string): void {
  const verdict = problems.length === 0 ? ['all promises kept'] : problems;
  const text = [...provenanceLines(provenance), ...findings.map(textOf), ...verdict];
  saveReport(file, { ...provenance, marks: MARKS, perNode, problems, findings }, text);
}
